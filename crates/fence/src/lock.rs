//! A lock that answers a claim only when the API server's fence lets this replica pass in the new term.

use crate::{
    definition::Fence,
    error::refuse,
    guard::Guard,
    probe::{Probe, ProbeFailure},
};
use futures_util::{Stream, StreamExt};
use kube_leader_gate::{
    ErrInvalid,
    extension::{LockContext, LockLayer, Trouble},
    kube_client::Client,
    leadership::Term,
    lease::{BoxLock, ErrLock, ErrLockKind, LeaseEvent, LeaseRecord, LeaseUpdate, Lock},
};
use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

/// The pause after the first refusal. It doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(4);

/// How often a leader looks whether its fence still stands, at most. It looks when it renews.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Makes an election rely on a [`Fence`]. [`Fence::layer`] returns it, for
/// [`layer_lock`](kube_leader_gate::election::ElectionBuilder::layer_lock).
#[derive(Clone)]
#[must_use = "pass it to `ElectionBuilder::layer_lock`"]
pub struct FenceLayer {
    fence: Fence,
    client: Client,
    gives_way: bool,
}

/// The lock of an election with a [`FenceLayer`], which makes it.
///
/// Each write that names this candidate in a term in which the fence has not let it pass yet waits for the fence. If that
/// takes too long, the lock withholds the answer, so the gate stays shut, and asks the election to give the lease away.
pub struct FenceLock {
    inner: BoxLock,
    guard: Arc<Guard>,
    /// How long a claim waits for the fence. The election gives its call up after twice this time.
    patience: Duration,
    passed: Mutex<Option<Passed>>,
    shut: Arc<Trouble>,
    /// The look that is under way. It ends with the lock.
    looks: Mutex<JoinSet<()>>,
}

/// The fence lets this candidate pass.
struct Passed {
    term: Term,
    looked: Instant,
}

// === impl Fence ===

impl Fence {
    /// Makes an election rely on this fence, so that no write of a former leader lands.
    ///
    /// 1. After a gain, the gate opens only when the API server's fence lets this replica pass in the new term. If that
    ///    takes longer than half of a [call timeout](kube_leader_gate::LeaseTiming::call_timeout), this replica gives the
    ///    lease away, and contends again after a retry period. [`trouble`](kube_leader_gate::Candidate::trouble) and the log
    ///    say why the gate stays shut.
    /// 2. If there is no fence in the cluster, the gate never opens.
    /// 3. While it leads, it looks about once a minute whether the fence still lets it pass, and reports it as trouble if
    ///    not: see [`FenceLayer::give_way_if_gone`].
    ///
    /// This does not make the fence. [`Fence::apply`] does. Clients of the election recognise its refusals by
    /// [`Fence::refusals`].
    ///
    /// `client` must have the credentials of the workload, and no gate. It sends the questions of the first point: dry
    /// runs that need `create` on `leases` and change nothing.
    ///
    /// If the fence is of another lease, or cannot tell this identity from another, building the election fails with
    /// [`ErrBuild::Lock`](kube_leader_gate::election::ErrBuild::Lock).
    pub fn layer(&self, client: Client) -> FenceLayer {
        FenceLayer { fence: self.clone(), client, gives_way: false }
    }
}

// === impl FenceLayer ===

impl FenceLayer {
    /// Ends the term too, if the fence no longer stands or no longer refuses: this replica gives the lease away, and no
    /// gate opens until the fence is back. Default: it leads on, and reports it.
    pub fn give_way_if_gone(self) -> Self {
        Self { gives_way: true, ..self }
    }
}

impl fmt::Debug for FenceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fence, client: _, gives_way } = self;
        f.debug_struct("FenceLayer")
            .field("fence", fence)
            .field("gives_way", gives_way)
            .finish_non_exhaustive()
    }
}

impl LockLayer for FenceLayer {
    type Lock = FenceLock;
    type Error = ErrInvalid;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<FenceLock, ErrInvalid> {
        let candidate = context.candidate().clone();
        if self.fence.lease() != candidate.lease() {
            let allowed = format!("the election's lease, {}", candidate.lease());
            return refuse("lease", &self.fence.lease().to_string(), &allowed);
        }
        self.fence.writers.admit(candidate.identity())?;
        let patience = candidate.timing().call_timeout() / 2;
        let probe = Probe::new(&self.fence, self.client, candidate.identity().clone());
        let gone = context.trouble("this candidate leads, and its fence may be gone");
        Ok(FenceLock {
            inner,
            guard: Arc::new(Guard { probe, candidate, gone, gives_way: self.gives_way }),
            patience,
            passed: Mutex::default(),
            shut: Arc::new(context.trouble("the fence keeps the gate shut")),
            looks: Mutex::default(),
        })
    }
}

// === impl FenceLock ===

impl FenceLock {
    /// Waits for the fence if `written` names this candidate in a new term. The call has begun at `begun`.
    async fn once_it_passes(&self, begun: Instant, written: LeaseRecord) -> Result<LeaseRecord, ErrLock> {
        if !self.guard.is_named_in(&written) {
            return Ok(written);
        }
        let term = Term::new(written.uid(), written.transitions());
        if self.has_passed_in(&term) {
            return Ok(written);
        }
        // After a slow write, the fence has at least a quarter of the call timeout.
        let until = (begun + self.patience).max(Instant::now() + self.patience / 2);
        let mut last = ProbeFailure::silent(self.patience);
        let asks = async {
            let mut pause = FIRST_PAUSE;
            while let Err(obstacle) = self.guard.probe.ask(&term).await {
                let ProbeFailure { kind, message, .. } = &obstacle;
                tracing::debug!(error = kind, "the fence does not let this term pass yet: {message}");
                last = obstacle;
                sleep(pause).await;
                pause = (pause * 2).min(self.patience / 4);
            }
        };
        if timeout_at(until, asks).await.is_ok() {
            self.shut.settle();
            self.guard.gone.settle();
            *self.passed.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Passed { term, looked: Instant::now() });
            return Ok(written);
        }
        self.shut.raise(last.kind, &last.message);
        // The election releases the lease, since only it knows which writes of an earlier term must end first.
        self.guard.candidate.give_way_in(&term);
        let message = format!("the fence lets no write of the term {term} pass: {}", last.message);
        Err(ErrLock::new(ErrLockKind::Withheld, message))
    }

    /// Whether the fence has let this candidate pass in `term`. At times it begins to look again.
    fn has_passed_in(&self, term: &Term) -> bool {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(passed) = passed.as_mut().filter(|passed| passed.term == *term) else { return false };
        if passed.looked.elapsed() >= LOOK_EVERY {
            passed.looked = Instant::now();
            let (guard, term) = (self.guard.clone(), term.clone());
            let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
            // One at a time.
            looks.abort_all();
            while looks.try_join_next().is_some() {}
            looks.spawn(async move { guard.look(&term).await });
        }
        true
    }
}

impl Lock for FenceLock {
    type Events = Pin<Box<dyn Stream<Item = Result<LeaseEvent, ErrLock>> + Send>>;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        let record = self.inner.get().await?;
        self.guard.hears(&self.shut, record.as_ref());
        Ok(record)
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let begun = Instant::now();
        self.once_it_passes(begun, self.inner.create(claim).await?).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        let begun = Instant::now();
        self.once_it_passes(begun, self.inner.update(seen, claim).await?).await
    }

    async fn watch(&self) -> Result<Self::Events, ErrLock> {
        let (guard, shut) = (self.guard.clone(), self.shut.clone());
        let events = self.inner.watch().await?.inspect(move |event| match event {
            Ok(LeaseEvent::Seen(record)) => guard.hears(&shut, Some(record)),
            Ok(LeaseEvent::Deleted(_)) => guard.hears(&shut, None),
            _ => {}
        });
        Ok(events.boxed())
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.inner.reconnect()
    }
}

impl fmt::Debug for FenceLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLock").field("probe", &self.guard.probe).finish_non_exhaustive()
    }
}
