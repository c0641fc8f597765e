//! What an election is built from.

use super::{
    attendants::Attendants,
    built::{Election, ErrBuild},
    candidate::{Candidate, Profile},
    hooks::Hooks,
    preemption::Priority,
    pulse::{Alive, Pulse},
};
use crate::{
    leadership::{BootClock, Clock, Grantor},
    lease::{Identity, KubeLock, LeaseName, LeasePool, LeaseTiming, Lock},
    policy::Policy,
};
use kube_client::Config;
use std::{error::Error, future::Future, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long admitted writes may take to finish when the election stops.
const DEFAULT_DRAIN: Duration = Duration::from_secs(10);
/// How long the work of a term may take to end. It fits before the end of the lease with both preset timings, and
/// leaves room for the drain and the release in the 30 s that a pod has to terminate.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Gathers what an election needs; see [`Election::builder`].
#[derive(Debug)]
#[must_use = "it is no election before it is built"]
pub struct ElectionBuilder {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) hooks: Hooks,
    identity: Option<Identity>,
    timing: LeaseTiming,
    priority: Option<Priority>,
    policy: Policy,
    drain_timeout: Duration,
    grace: Duration,
    clock: Arc<dyn Clock>,
    attendants: Attendants,
}

// === impl Election ===

impl Election {
    /// An election on the lease `name` in `namespace`.
    pub fn builder(namespace: impl Into<String>, name: impl Into<String>) -> ElectionBuilder {
        ElectionBuilder {
            namespace: namespace.into(),
            name: name.into(),
            hooks: Hooks::default(),
            identity: None,
            timing: LeaseTiming::default(),
            priority: None,
            policy: Policy::default(),
            drain_timeout: DEFAULT_DRAIN,
            grace: DEFAULT_GRACE,
            clock: Arc::new(BootClock::new()),
            attendants: Attendants::default(),
        }
    }
}

// === impl ElectionBuilder ===

impl ElectionBuilder {
    /// The name under which this process contends; [`Identity::infer`] if none is given.
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// The election's times; 137/107/26 s if none are given.
    pub fn timing(self, timing: LeaseTiming) -> Self {
        Self { timing, ..self }
    }

    /// Lets this candidate take the lease from a live holder that it precedes; it never does if none is given.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// What a follower may send nevertheless; nothing if no policy is given.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// How long admitted writes may take to finish when the election stops (rule S4); 10 s if nothing is given. They
    /// never go on past the validity deadline.
    pub fn drain_timeout(self, drain_timeout: Duration) -> Self {
        Self { drain_timeout, ..self }
    }

    /// How long the work of [`run_while_leading`](Election::run_while_leading) may take to end once its token is
    /// cancelled, and that of [`run_until`](Election::run_until) after the shutdown; 5 s if nothing is given. It is dropped
    /// then.
    ///
    /// On shutdown it has all of this: the lease is still renewed. After a loss it has no more of it than
    /// [`tolerated_skew`](LeaseTiming::tolerated_skew), the lease duration less the renew deadline: another replica may
    /// lead after that. The default fits both presets (30 s and 5 s), and a stop with it, the drain timeout and the lease
    /// calls takes less than the 30 s that Kubernetes gives a pod by default.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The clock that deadlines are kept on; the machine's if none is given.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Adds an observer that needs a task: `attend` is called when the election begins, with the handle to follow it by,
    /// and its future runs beside the election. The token is cancelled once the election has stopped; what is left to tell
    /// then must be told within the call timeout. An election that is dropped drops the future at once. An observer that
    /// panics ends alone.
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

    /// Builds the election over a kube client of its own, made from `config`: ungated, without retries (rule S14).
    ///
    /// # Errors
    /// [`ErrBuild`] says what was given and what is allowed.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as every kube client does. With two crypto backends of rustls in one program and none
    /// installed, rustls panics here.
    pub fn build(self, config: &Config) -> Result<Election, ErrBuild> {
        self.build_over(|lease| KubeLock::new(config, lease).map_err(ErrBuild::Client))
    }

    /// Builds the election over what the elections of this process share.
    ///
    /// # Errors
    /// [`ErrBuild`] says what was given and what is allowed.
    pub fn build_in(self, pool: &LeasePool) -> Result<Election, ErrBuild> {
        let timing = self.timing;
        self.build_over(|lease| Ok(pool.lock(lease, &timing)))
    }

    /// Builds the election over a lock of your own; see [`Lock`].
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
        let identity = match self.identity {
            Some(identity) => identity,
            None => Identity::infer().map_err(ErrBuild::Identity)?,
        };
        let pulse = Arc::new(Pulse::default());
        Ok(Election {
            alive: Alive(pulse.clone()),
            lock: lock(lease.clone())?,
            grantor: Grantor::with_clock(self.clock),
            profile: Arc::new(Profile { lease, identity, timing: self.timing, pulse, hooks: self.hooks }),
            drain_timeout: self.drain_timeout,
            grace: self.grace,
            attendants: self.attendants,
            priority: self.priority,
            policy: self.policy,
        })
    }
}
