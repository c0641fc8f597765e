//! How an election reads and writes its lease.

use super::{Claim, LeaseName, LeaseRecord, LockError};
use futures_util::Stream;
use std::future::Future;

/// One Lease object, written by compare-and-swap only (rule S6).
///
/// Implement it to run an election over something else than a kube client. An election bounds each call by its call
/// timeout and drops the future then: the effect of a dropped call is unknown, and must be allowed to be.
pub trait Lock: Send + Sync + 'static {
    /// What a watch yields.
    type Events: Stream<Item = Result<LeaseEvent, LockError>> + Send + Unpin;

    /// The lease that this is.
    fn name(&self) -> &LeaseName;

    /// Reads the lease; none when there is none.
    fn get(&self) -> impl Future<Output = Result<Option<LeaseRecord>, LockError>> + Send;

    /// Creates the lease. [`Conflict`](super::LockErrorKind::Conflict) when there is one.
    fn create(&self, claim: &Claim) -> impl Future<Output = Result<LeaseRecord, LockError>> + Send;

    /// Writes `claim` into the lease if its resource version is still that of `seen`;
    /// [`Conflict`](super::LockErrorKind::Conflict) otherwise. All other fields stay as they are in `seen` (rule S12);
    /// [`LeaseRecord::with`] makes the object.
    fn update(
        &self,
        seen: &LeaseRecord,
        claim: &Claim,
    ) -> impl Future<Output = Result<LeaseRecord, LockError>> + Send;

    /// Follows the lease: first what is there, then each change. The stream may end at any time.
    fn watch(&self) -> impl Future<Output = Result<Self::Events, LockError>> + Send;

    /// Sees to it that later calls use a fresh connection; called after one that was not answered in time (rule S9).
    /// Must not block: begin it, and let calls go on over the old one meanwhile.
    fn reconnect(&self) {}
}

/// What a watch tells of the lease.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LeaseEvent {
    /// The lease as it is now.
    Seen(LeaseRecord),
    /// There is no lease any more; this is how it was last, at the version of its deletion.
    Deleted(LeaseRecord),
}
