//! Reads and writes the lease of an election.

use super::{error::ErrLock, pool::places::Places, record::LeaseRecord, update::LeaseUpdate};
use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use std::{any::Any, fmt, future::Future, sync::Arc};

/// One Lease object. It is written by compare-and-swap only
/// ([rule S6](crate::guide::guarantees#s6-compare-and-swap-only)).
///
/// Implement this trait to run an election over something other than a kube client, and pass it to
/// [`ElectionBuilder::build_with`](crate::election::ElectionBuilder::build_with).
/// [`testing::lock_conformance`](crate::testing::lock_conformance) (feature `test-util`) checks an implementation.
///
/// - If a resource version is a whole number, it must be larger than every earlier version of this lease, also of a lease
///   that was deleted and created again. It becomes the [fencing token](crate::leadership::Term::fencing_token) of a term.
///   If your versions are not like that, use text that is not a number.
/// - If a call takes longer than the call timeout, or if the election ends, the election drops the future of the call. Your
///   store may still carry out such a call later. The next call must work all the same.
/// - The election refuses an answer about another lease, and an update that returns the old resource version or an
///   older one. If a lock panics, the election ends: the gate closes, and the election is unhealthy
///   ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)).
///
/// # Example
/// Leases in a map, for the tests of a program:
///
/// ```
/// # #![allow(dead_code)]
#[doc = include_str!("../../examples/map_lock/map_lock.rs")]
/// # use kube_leader_gate::{Election, Identity};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let leases = Leases::default();
/// let running = Election::builder("default", "my-controller")
///     .identity(Identity::new("replica-a")?)
///     .build_with(|lease| Ok::<_, std::convert::Infallible>(leases.lock(lease)))?
///     .start();
/// running.candidate().elected().await;
/// running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Lock: Send + Sync + 'static {
    /// The events of a watch.
    type Events: Stream<Item = Result<LeaseEvent, ErrLock>> + Send + Unpin + 'static;

    /// Reads the lease. Returns none if the lease does not exist.
    fn get(&self) -> impl Future<Output = Result<Option<LeaseRecord>, ErrLock>> + Send;

    /// Creates the lease with `claim` in it, as [`LeaseUpdate::new_lease`] makes it. The new object has a new uid.
    ///
    /// # Errors
    /// [`Conflict`](super::ErrLockKind::Conflict) if the lease exists already. In this case nothing is written.
    fn create(&self, claim: &LeaseUpdate) -> impl Future<Output = Result<LeaseRecord, ErrLock>> + Send;

    /// Writes `claim` into the lease, as [`LeaseRecord::with`] makes it, and gives it a new resource version. All
    /// other fields stay as they are in `seen` ([rule S12](crate::guide::guarantees#s12-foreign-fields-survive)).
    ///
    /// # Errors
    /// [`Conflict`](super::ErrLockKind::Conflict) if the lease no longer has the uid and the resource version of
    /// `seen`. [`NotFound`](super::ErrLockKind::NotFound) if there is no lease. In both cases nothing is written.
    fn update(
        &self,
        seen: &LeaseRecord,
        claim: &LeaseUpdate,
    ) -> impl Future<Output = Result<LeaseRecord, ErrLock>> + Send;

    /// Follows the lease. The stream begins with the present lease, if there is one, and then yields each change. A
    /// slow reader may miss states, but it never misses the newest state or a deletion. The stream may end at any
    /// time; the election then begins another one.
    fn watch(&self) -> impl Future<Output = Result<Self::Events, ErrLock>> + Send;

    /// Makes later calls use a fresh connection. The election calls this method after a lease call that had no answer in time
    /// ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)).
    ///
    /// This method must not block: begin the work here, and let calls use the old connection until the fresh one is there. If
    /// something prevents a fresh connection, return what it is. The election reports it as trouble. The default does nothing.
    fn reconnect(&self) -> Option<&'static str> {
        None
    }
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LeaseEvent {
    /// The present lease.
    Seen(LeaseRecord),
    /// The lease was deleted. This is its last state, at the version of its deletion.
    Deleted(LeaseRecord),
}

/// A [`Lock`] of any type. An election runs on it, and a [layer](crate::extension::LockLayer) wraps it. All clones are the
/// same lock.
#[derive(Clone)]
pub struct BoxLock {
    lock: Arc<dyn Erased>,
    places: Option<Places>,
}

type Events = BoxStream<'static, Result<LeaseEvent, ErrLock>>;

/// [`Lock`] with futures of one type.
trait Erased: Send + Sync {
    fn get(&self) -> BoxFuture<'_, Result<Option<LeaseRecord>, ErrLock>>;
    fn create<'a>(&'a self, claim: &'a LeaseUpdate) -> BoxFuture<'a, Result<LeaseRecord, ErrLock>>;
    fn update<'a>(
        &'a self,
        seen: &'a LeaseRecord,
        claim: &'a LeaseUpdate,
    ) -> BoxFuture<'a, Result<LeaseRecord, ErrLock>>;
    fn watch(&self) -> BoxFuture<'_, Result<Events, ErrLock>>;
    fn reconnect(&self) -> Option<&'static str>;
}

// === impl BoxLock ===

impl BoxLock {
    /// Boxes `lock`.
    pub fn new(lock: impl Lock) -> Self {
        match (&lock as &dyn Any).downcast_ref::<Self>() {
            Some(lock) => lock.clone(),
            None => Self { lock: Arc::new(lock), places: None },
        }
    }

    /// Boxes a lock of a pool, together with its places for calls.
    pub(super) fn with_places(lock: impl Lock, places: Places) -> Self {
        Self { lock: Arc::new(lock), places: Some(places) }
    }

    /// The places for calls, if a pool made this lock. None if a layer wraps the lock of the pool.
    pub(crate) fn places(&self) -> Option<Places> {
        self.places.clone()
    }
}

impl Lock for BoxLock {
    type Events = Events;

    async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
        self.lock.get().await
    }

    async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.lock.create(claim).await
    }

    async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
        self.lock.update(seen, claim).await
    }

    async fn watch(&self) -> Result<Events, ErrLock> {
        self.lock.watch().await
    }

    fn reconnect(&self) -> Option<&'static str> {
        self.lock.reconnect()
    }
}

impl<L: Lock> Erased for L {
    fn get(&self) -> BoxFuture<'_, Result<Option<LeaseRecord>, ErrLock>> {
        Lock::get(self).boxed()
    }

    fn create<'a>(&'a self, claim: &'a LeaseUpdate) -> BoxFuture<'a, Result<LeaseRecord, ErrLock>> {
        Lock::create(self, claim).boxed()
    }

    fn update<'a>(
        &'a self,
        seen: &'a LeaseRecord,
        claim: &'a LeaseUpdate,
    ) -> BoxFuture<'a, Result<LeaseRecord, ErrLock>> {
        Lock::update(self, seen, claim).boxed()
    }

    fn watch(&self) -> BoxFuture<'_, Result<Events, ErrLock>> {
        Lock::watch(self).map(|watch| watch.map(StreamExt::boxed)).boxed()
    }

    fn reconnect(&self) -> Option<&'static str> {
        Lock::reconnect(self)
    }
}

impl fmt::Debug for BoxLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxLock").finish_non_exhaustive()
    }
}
