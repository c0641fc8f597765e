//! The settings of an election.

use super::{
    attendants::Attendants,
    built::{Election, ErrBuild},
    candidate::{Candidate, Profile},
    coordination::{self, Coordination, Enrolment},
    early::EarlyTakeover,
    hooks::{Hooks, MakeFence},
    preemption::Priority,
    pulse::{Alive, Pulse},
};
use crate::{
    leadership::{BootClock, Clock, Grantor},
    lease::{Identity, KubeLock, LeaseName, LeasePool, LeaseTiming, Lock},
    policy::Policy,
};
use kube_client::{Client, Config};
use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long admitted writes may take to finish when the election stops.
const DEFAULT_DRAIN: Duration = Duration::from_secs(10);
/// How long the work of a term may take to end. With both preset timings this ends before the lease does. It leaves
/// room for the drain and the release in the 30 s that a pod has to terminate.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Collects the settings of an election; see [`Election::builder`].
#[must_use = "it is no election before it is built"]
pub struct ElectionBuilder {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) hooks: Hooks,
    coordination: Option<Enrolment>,
    pub(crate) fence: Option<MakeFence>,
    identity: Option<Identity>,
    timing: LeaseTiming,
    priority: Option<Priority>,
    early: Option<EarlyTakeover>,
    policy: Policy,
    drain_timeout: Duration,
    grace: Duration,
    server_time: bool,
    clock: Arc<dyn Clock>,
    attendants: Attendants,
}

// === impl Election ===

impl Election {
    /// Begins to build an election on the lease `name` in `namespace`.
    pub fn builder(namespace: impl Into<String>, name: impl Into<String>) -> ElectionBuilder {
        ElectionBuilder {
            namespace: namespace.into(),
            name: name.into(),
            hooks: Hooks::default(),
            coordination: None,
            fence: None,
            identity: None,
            timing: LeaseTiming::default(),
            priority: None,
            early: None,
            policy: Policy::default(),
            drain_timeout: DEFAULT_DRAIN,
            grace: DEFAULT_GRACE,
            server_time: true,
            clock: Arc::new(BootClock::new()),
            attendants: Attendants::default(),
        }
    }
}

// === impl ElectionBuilder ===

impl ElectionBuilder {
    /// Sets the name under which this process contends. Default: [`Identity::infer`].
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Sets the times of the election. Default: 137/107/26 s.
    pub fn timing(self, timing: LeaseTiming) -> Self {
        Self { timing, ..self }
    }

    /// Lets this candidate take the lease from a live holder that it precedes. Default: it never does.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Lets this candidate take the lease from a holder whose container has ended, without waiting for the end of the
    /// lease. Default: it waits.
    pub fn early_takeover(self, early: EarlyTakeover) -> Self {
        Self { early: Some(early), ..self }
    }

    /// Leaves the choice of the leader to the coordinator of the API server. Default: candidates contend by themselves.
    ///
    /// **Beta**: Kubernetes calls its API beta, and may change it. The API server needs a feature gate. See the
    /// [guide](crate::guide::coordinated).
    ///
    /// `client` keeps this candidate's `LeaseCandidate` object. Use a separate client without a gate: a gate would
    /// reject a follower's answer to a ping ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// ```no_run
    /// use kube_client::{Client, Config};
    /// use kube_leader_gate::{Election, election::Coordination};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::infer().await?;
    /// let client = Client::try_from(config.clone())?;
    /// let election = Election::builder("my-namespace", "my-controller")
    ///     .coordinated(client, Coordination::new(env!("CARGO_PKG_VERSION"))?)
    ///     .build(&config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn coordinated(self, client: Client, coordination: Coordination) -> Self {
        Self { coordination: Some(Enrolment::new(client, coordination)), ..self }
    }

    /// Sets which writes a follower may send. Default: none.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Sets how long admitted writes may take to finish when the election stops
    /// ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)). Default: 10 s. They never continue after the
    /// validity deadline.
    pub fn drain_timeout(self, drain_timeout: Duration) -> Self {
        Self { drain_timeout, ..self }
    }

    /// Sets how long the workload may take to end. For [`run_while_leading`](Election::run_while_leading) this counts
    /// from the moment at which its token is cancelled. For [`run_until`](Election::run_until) it counts from the
    /// shutdown. The workload is dropped after that. Default: 5 s.
    ///
    /// On shutdown the workload has all of this time, since the lease is still renewed. After a loss it has at most
    /// [`tolerated_skew`](LeaseTiming::tolerated_skew), because another replica may lead after that. The default fits
    /// both presets (30 s and 5 s).
    ///
    /// Kubernetes gives a pod 30 s to stop by default. With the default settings, a stop whose writes were all
    /// answered takes less: 5 s, the drain timeout of 10 s, and five call timeouts at most. After a write without an
    /// answer it takes up to [`tolerated_skew`](LeaseTiming::tolerated_skew) longer, so up to 57.5 s with the default
    /// timing. The [rollout guide](crate::guide::rollout) says how to set `terminationGracePeriodSeconds`.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets whether the API server gives up a write of [`Election::client`] at the validity deadline
    /// ([bounded server time](crate::server_time)). Default: it does.
    ///
    /// Switch it off if writes may take longer than the renew deadline, for example behind a very slow admission
    /// webhook, or if an API server of your own reads the parameter `timeout` in another way.
    pub fn server_time(self, server_time: bool) -> Self {
        Self { server_time, ..self }
    }

    /// Sets the clock for deadlines. Default: the machine's clock.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Adds an observer that needs a task. The election calls `attend` when it begins, with a handle to follow it.
    /// The returned future runs beside the election.
    ///
    /// The token is cancelled once the election has stopped; the future must then finish within the call timeout.
    /// Dropping the election drops the future at once. If an observer panics, only its own future ends.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    /// use kube_leader_gate::Election;
    ///
    /// # fn example(config: &kube_client::Config) -> Result<(), kube_leader_gate::election::ErrBuild> {
    /// let election = Election::builder("my-namespace", "my-controller")
    ///     .attend(|candidate, stopped| async move {
    ///         let mut changes = candidate.changes();
    ///         while let Some(Some(state)) = stopped.run_until_cancelled(changes.next()).await {
    ///             println!("held by {:?}", state.holder);
    ///         }
    ///     })
    ///     .build(config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attend<F>(
        mut self,
        attend: impl FnOnce(Candidate, CancellationToken) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.attendants.add(attend);
        self
    }

    /// Builds the election over its own kube client, made from `config` without gate and retries
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// [`ErrBuild`] says what was given and what is allowed.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does. rustls also panics here if the program has two crypto
    /// backends and installed neither.
    pub fn build(self, config: &Config) -> Result<Election, ErrBuild> {
        self.build_over(|lease| KubeLock::new(config, lease).map_err(ErrBuild::Client))
    }

    /// Builds the election over the clients and watches of `pool`, which the elections of this process share.
    ///
    /// # Errors
    /// [`ErrBuild`] says what was given and what is allowed.
    pub fn build_in(self, pool: &LeasePool) -> Result<Election, ErrBuild> {
        let timing = self.timing;
        self.build_over(|lease| Ok(pool.lock(lease, &timing)))
    }

    /// Builds the election over your own lock; see [`Lock`].
    ///
    /// # Errors
    /// [`ErrBuild`] says what was given and what is allowed. An error of `lock` becomes [`ErrBuild::Lock`].
    pub fn build_with<L, E>(
        self,
        lock: impl FnOnce(LeaseName) -> Result<L, E>,
    ) -> Result<Election<L>, ErrBuild>
    where
        L: Lock,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.build_over(|lease| lock(lease).map_err(|error| ErrBuild::Lock(error.into())))
    }

    fn build_over<L: Lock>(
        self,
        lock: impl FnOnce(LeaseName) -> Result<L, ErrBuild>,
    ) -> Result<Election<L>, ErrBuild> {
        let lease = LeaseName::new(self.namespace, self.name).map_err(ErrBuild::LeaseName)?;
        self.policy.validate().map_err(ErrBuild::Policy)?;
        if let Some(early) = &self.early {
            early.validate(&self.timing).map_err(ErrBuild::EarlyTakeover)?;
        }
        let identity = match self.identity {
            Some(identity) => identity,
            None => Identity::infer().map_err(ErrBuild::Identity)?,
        };
        if self.coordination.is_some() {
            let early = self.early.is_some();
            coordination::check(&identity, self.priority.as_ref(), early).map_err(ErrBuild::Coordination)?;
        }
        let mut hooks = self.hooks;
        if let Some(make) = self.fence {
            let mut fenced = make(&lease, &identity, &self.policy).map_err(ErrBuild::Fence)?;
            if let Some(observer) = &hooks.writes {
                fenced.refusals = fenced.refusals.with_observer(observer.clone());
            }
            hooks.fenced = Some(fenced);
        }
        let grantor = Grantor::of_election(self.clock);
        let pulse = Arc::new(Pulse::new(grantor.now()));
        Ok(Election {
            alive: Alive(pulse.clone()),
            lock: lock(lease.clone())?,
            grantor,
            profile: Arc::new(Profile { lease, identity, timing: self.timing, pulse, hooks }),
            drain_timeout: self.drain_timeout,
            grace: self.grace,
            attendants: self.attendants,
            priority: self.priority,
            early: self.early,
            coordination: self.coordination,
            policy: self.policy,
            server_time: self.server_time,
        })
    }
}

impl fmt::Debug for ElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .field("timing", &self.timing)
            .field("policy", &self.policy)
            .field("fence", &self.fence.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "test-util"))]
#[path = "builder_tests.rs"]
mod tests;
