//! The settings of an election.

use super::{
    built::{Election, ErrBuild},
    candidate::{Alive, Candidate, Profile},
    hooks::Hooks,
    layer::{self, LockContext, LockLayer, WrapLock},
    liveness::Liveness,
    observers::Observers,
    priority::Priority,
    program::Program,
    report::rank_troubles,
    running,
};
use crate::{
    gate::{WriteObserver, beside},
    leadership::{BootClock, Clock, Grantor},
    lease::{Alone, BoxLock, Identity, LeaseName, LeasePool, LeaseTiming, Lock, marks::Marks, pod_uid},
    policy::Policy,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::Config;
use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How long admitted writes may take to finish when the election stops.
const DEFAULT_DRAIN: Duration = Duration::from_secs(10);
/// How long the work of a term may take to end. With both preset timings, this time is over before the lease ends.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Collects the settings of an election; see [`Election::builder`].
#[must_use = "it is no election before it is built"]
pub struct ElectionBuilder {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) hooks: Hooks,
    identity: Option<Identity>,
    pod: Option<String>,
    marks: Marks,
    timing: LeaseTiming,
    priority: Option<Priority>,
    policy: Policy,
    drain_timeout: Duration,
    grace: Duration,
    request_deadline: bool,
    clock: Arc<dyn Clock>,
    observers: Observers,
    program: Program,
    lock_layers: Vec<WrapLock>,
    runs_here: fn(u64) -> bool,
}

// === impl Election ===

impl Election {
    /// Begins to build an election on the lease `name` in `namespace`.
    pub fn builder(namespace: impl Into<String>, name: impl Into<String>) -> ElectionBuilder {
        ElectionBuilder {
            namespace: namespace.into(),
            name: name.into(),
            hooks: Hooks::default(),
            identity: None,
            pod: None,
            marks: Marks::default(),
            timing: LeaseTiming::default(),
            priority: None,
            policy: Policy::default(),
            drain_timeout: DEFAULT_DRAIN,
            grace: DEFAULT_GRACE,
            request_deadline: true,
            clock: Arc::new(BootClock),
            observers: Observers::default(),
            program: Program::new(),
            lock_layers: Vec::new(),
            runs_here: running::runs_here,
        }
    }
}

// === impl ElectionBuilder ===

impl ElectionBuilder {
    /// Sets the name under which this process contends. Default: [`Identity::infer`].
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Sets the uid of the pod in which this process runs. Default: the variable `POD_UID`, which the downward API sets from
    /// `metadata.uid`, or else the uid in the pod's own service account token.
    ///
    /// The holder writes the uid into the lease. If a container restarts, the new process finds its own identity and
    /// this uid in the lease. This proves that the process before it has ended, so the new process does not wait for it
    /// ([rule S6](crate::guide::guarantees#s6-compare-and-swap-only)). If the uid is not known, the new process waits
    /// for the lease's end. Never give the same uid to processes of different pods.
    pub fn pod_uid(self, uid: impl Into<String>) -> Self {
        Self { pod: Some(uid.into()), ..self }
    }

    /// Gives the Lease these labels, if this process creates it. Default: none. A second call adds labels. If the Lease exists
    /// already, its labels stay as they are, and labels that a user sets on it stay too
    /// ([rule S12](crate::guide::guarantees#s12-foreign-fields-survive)).
    ///
    /// ```
    /// # use kube_leader_gate::Election;
    /// let labels = [("app.kubernetes.io/name", "my-controller"), ("app.kubernetes.io/part-of", "my-product")];
    /// let builder = Election::builder("my-namespace", "my-controller").lease_labels(labels);
    /// ```
    ///
    /// Then `kubectl get lease -l app.kubernetes.io/name=my-controller` finds it.
    pub fn lease_labels<N, V>(mut self, labels: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.marks.labels.extend(labels.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Gives the Lease this owner, if this process creates it. Default: none, so the Lease stays when the program is
    /// uninstalled. When a user deletes the owner, Kubernetes deletes the Lease too.
    ///
    /// The owner has to be in the namespace of the Lease, or in no namespace. The Deployment of the program fits; [the
    /// guide](crate::guide::production#labels-and-an-owner-for-the-lease) has the code. Do not name an object that is deleted
    /// and created again while the pods of the program live on: Kubernetes would delete each Lease that these pods create
    /// ([rule S8](crate::guide::guarantees#s8-a-deleted-lease-closes-the-gate)).
    pub fn lease_owner(mut self, owner: OwnerReference) -> Self {
        self.marks.owner = Some(owner);
        self
    }

    /// Sets the times of the election. Default: lease duration 137 s, renew deadline 107 s, retry period 26 s.
    pub fn timing(self, timing: LeaseTiming) -> Self {
        Self { timing, ..self }
    }

    /// Lets this candidate ask a live holder for the lease, if it precedes this holder. Default: it never asks.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
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
    /// shutdown. After that, the election drops the workload, at a shutdown only once its admitted writes have finished or the
    /// [drain timeout](Self::drain_timeout) is over. Default: 5 s.
    ///
    /// On shutdown the workload has all of this time, since the lease is still renewed. After a loss it has at most
    /// [`safety_margin`](LeaseTiming::safety_margin), because another replica may lead after that. The
    /// [guide](crate::guide::production#what-a-stop-does) says how to set `terminationGracePeriodSeconds`.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Lets this replica lead only while `check` returns `Ok`. The error says what is missing, in words for a person; it becomes
    /// [one line](crate::extension::one_line). Call this again for each further check; all of them have to return `Ok`.
    ///
    /// It is for a replica whose caches are still empty, one whose own Role is missing, or one of a version that can no longer do
    /// its work. For caches that lack the last writes of the former leader there is [`Election::open_when`].
    ///
    /// 1. A candidate whose check says no does not take the lease, asks no holder for it, and opens no gate. When the check says
    ///    yes, it contends at once. If the checks of all replicas say no, no replica leads.
    /// 2. A holder whose check has said no for longer than the [tolerance](Self::lead_if_tolerance) gives the lease up, as if
    ///    [`Candidate::give_way`] were called. It then stays away until the check says yes, and for the longer of two times after
    ///    it has given the lease up: a retry period, and a random pause. This pause is at most 1 s the first time, and at most
    ///    twice as long each further time, up to a minute. After it has led for two minutes, the pauses start at 1 s again. So a
    ///    check that changes again and again moves the leadership less often each time. If the checks of all replicas change
    ///    together, the leadership moves more often.
    /// 3. If the check of a [preferred candidate](super::Priority) says yes again after it has said no for longer than the
    ///    tolerance, this candidate asks no holder for the lease during a random pause. This pause is at most 15 s the first
    ///    time, and at most twice as long each further time, up to ten minutes, until the candidate has led for two minutes. A
    ///    candidate that has given the lease up itself asks for a lease duration none, too. Meanwhile it takes a free lease.
    /// 4. While the check says no, [`Candidate::trouble`] gives the reason, and so do the log, `/readyz` and `/leader`. So the
    ///    replica is not ready, and a rollout waits for it.
    ///
    /// The election's own task calls `check` four times a second, so it must not block: let a task of yours find the answer, and
    /// let the check read it. If it blocks all the same, this replica does not renew the lease: the gate closes at the deadline,
    /// and [`Candidate::check`] says that the election is stuck. A check that panics says no.
    ///
    /// ```
    /// use kube_leader_gate::Election;
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering::Relaxed}};
    ///
    /// let caches_are_filled = Arc::new(AtomicBool::new(false)); // a task of yours sets it
    /// let builder = Election::builder("my-namespace", "my-controller").lead_if({
    ///     let filled = caches_are_filled.clone();
    ///     move || if filled.load(Relaxed) { Ok(()) } else { Err("the caches are not filled yet") }
    /// });
    /// ```
    pub fn lead_if<E: fmt::Display>(
        mut self,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.program.lead_if.add(check);
        self
    }

    /// Sets for how long a holder leads on while a check of [`lead_if`](Self::lead_if) says no. Default: a retry period.
    pub fn lead_if_tolerance(mut self, tolerance: Duration) -> Self {
        self.program.lead_if.tolerance = Some(tolerance);
        self
    }

    /// Sets how long the gate of a new term waits for what [`Election::open_when`] names. After that, this replica gives the
    /// lease up. Default: 10 s. It has to be longer than zero.
    pub fn open_timeout(mut self, open_timeout: Duration) -> Self {
        self.program.opening.timeout = open_timeout;
        self
    }

    /// Sets whether the API server gives up a write at the validity deadline ([the deadline of a
    /// request](crate::gate#the-deadline-of-a-request)). Default: it does. Switch it off if writes may take longer than
    /// the renew deadline, or if an API server of your own reads the parameter `timeout` in another way.
    pub fn request_deadline(self, request_deadline: bool) -> Self {
        Self { request_deadline, ..self }
    }

    /// Sets the clock for deadlines. Default: the machine's clock.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Adds an observer of each write that a gate of this election or [`Candidate::guard`] judges.
    pub fn write_observer(mut self, observer: Arc<dyn WriteObserver>) -> Self {
        self.hooks.writes = Some(beside(self.hooks.writes.take(), observer));
        self
    }

    /// Adds an observer that needs a task. When the election begins, it calls `attend` with a handle that shows the
    /// state of the election. The returned future runs beside the election.
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
        self.observers.add(attend);
        self
    }

    /// Wraps the lock of the election in a layer. Optional features use this. A layer that you add later wraps the
    /// layers that you added before.
    pub fn layer_lock(mut self, layer: impl LockLayer) -> Self {
        self.lock_layers.push(layer::boxed(layer));
        self
    }

    /// Treats the other elections of this process as if they ran in other processes. Use it in a test in which a
    /// process begins while an earlier process of the same identity still runs. Without this setting, the election
    /// reports that two elections of one process use one lease.
    #[cfg(feature = "test-util")]
    pub fn apart(self) -> Self {
        Self { runs_here: |_| false, ..self }
    }

    /// Builds the election over its own kube client, made from `config` without gate and retries
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// [`ErrBuild`] says why.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does. rustls also panics here if the program has two crypto
    /// backends and installed neither.
    pub fn build(self, config: &Config) -> Result<Election, ErrBuild> {
        let call_timeout = self.timing.call_timeout();
        self.build_over(|lease| {
            Ok(LeasePool::new(config).map_err(ErrBuild::Client)?.lock_within(lease, call_timeout))
        })
    }

    /// Builds the election over the clients and watches of `pool`, which the elections of this process share.
    ///
    /// # Errors
    /// [`ErrBuild`] says why.
    pub fn build_in(self, pool: &LeasePool) -> Result<Election, ErrBuild> {
        let call_timeout = self.timing.call_timeout();
        self.build_over(|lease| Ok(pool.lock_within(lease, call_timeout)))
    }

    /// Builds the election over your own lock; see [`Lock`].
    ///
    /// # Errors
    /// [`ErrBuild`] says why. An error of `lock` becomes [`ErrBuild::Lock`].
    pub fn build_with<L, E>(self, lock: impl FnOnce(LeaseName) -> Result<L, E>) -> Result<Election, ErrBuild>
    where
        L: Lock,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.build_over(|lease| lock(lease).map(BoxLock::new).map_err(|error| ErrBuild::Lock(error.into())))
    }

    /// Builds an election without a Lease and without other candidates: this process leads from the start of the
    /// election until its end. No lease call leaves the process.
    ///
    /// Use it if you run one replica of a program that could also contend (`--leader-elect=false`): probes, metrics and
    /// log stay as they are. Use it also in your tests, if they need a [`Candidate`] that leads. Before the election
    /// starts, this candidate does not lead; [`give_way`](Candidate::give_way) ends its term, and a new term follows
    /// after 2 s.
    ///
    /// Never run two replicas with it, because both would write. [`timing`](Self::timing) has no effect.
    ///
    /// ```
    /// use kube_leader_gate::{Election, Identity};
    ///
    /// # tokio_test::block_on(async {
    /// let election = Election::builder("my-namespace", "my-controller")
    ///     .identity(Identity::new("the-only-one")?)
    ///     .build_alone()?;
    /// let candidate = election.candidate();
    /// assert!(!candidate.can_write());
    /// let running = election.start();
    /// candidate.elected().await;
    /// assert!(candidate.can_write());
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrBuild`] says why.
    pub fn build_alone(self) -> Result<Election, ErrBuild> {
        self.timing(Alone::timing()).build_over(|lease| Ok(BoxLock::new(Alone::new(lease))))
    }

    fn build_over(
        mut self,
        lock: impl FnOnce(LeaseName) -> Result<BoxLock, ErrBuild>,
    ) -> Result<Election, ErrBuild> {
        let lease = LeaseName::new(self.namespace, self.name).map_err(ErrBuild::Invalid)?;
        self.policy.validate().map_err(ErrBuild::Invalid)?;
        self.marks.validate().map_err(ErrBuild::Invalid)?;
        self.program.opening.validate().map_err(ErrBuild::Invalid)?;
        self.program.lead_if.tolerance.get_or_insert(self.timing.retry_period());
        let identity = match self.identity {
            Some(identity) => identity,
            None => Identity::infer().map_err(ErrBuild::Invalid)?,
        };
        let pod = pod_uid(self.pod).map_err(ErrBuild::Invalid)?;
        let grantor = Grantor::of_election(self.clock);
        rank_troubles(&grantor);
        let liveness = Liveness::new(grantor.now());
        let mut lock = lock(lease.clone())?;
        let places = lock.places();
        let (timing, marks, hooks) = (self.timing, self.marks, self.hooks);
        let profile = Arc::new(Profile { lease, identity, pod, timing, marks, liveness, hooks });
        let alive = Alive(profile.clone());
        let context = LockContext::new(Candidate::new(grantor.leadership(), profile.clone()));
        for wrap in self.lock_layers {
            lock = wrap(lock, &context).map_err(ErrBuild::Lock)?;
        }
        Ok(Election {
            alive,
            lock,
            places,
            grantor,
            profile,
            drain_timeout: self.drain_timeout,
            grace: self.grace,
            observers: self.observers,
            program: self.program,
            priority: self.priority,
            policy: self.policy,
            request_deadline: self.request_deadline,
            runs_here: self.runs_here,
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
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "test-util"))]
#[path = "builder_tests.rs"]
mod tests;
