//! What the lock tells the task that keeps the `LeaseCandidate`.

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockStatus {
    /// The lease was read, or there was none.
    pub(crate) seen: bool,
    /// From this moment on no candidate holds the lease, and none is named, unless there is news before.
    pub(crate) vacant_from: Option<Instant>,
}
