//! The election's signs of life: what health is judged by.

use super::ended::{ErrElectionEnded, LeaseEnd};
use crate::leadership::Moment;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// When the last successful renewal was sent; 0 while the lease is not this process's.
    renewed: AtomicU64,
    /// How the election has ended, once it has.
    ended: watch::Sender<Option<Result<LeaseEnd, ErrElectionEnded>>>,
}

/// Marks the election as ended when it is dropped, for any reason (rule S10). The end counts as a failure, unless an
/// orderly end was noted before.
#[derive(Debug)]
pub(super) struct Alive(pub(super) Arc<Pulse>);

impl Pulse {
    /// Notes a successful renewal that was sent at `sent`.
    pub(super) fn beat(&self, sent: Moment) {
        self.renewed.store(sent.as_nanos(), Ordering::Release);
    }

    /// Notes that the lease is no longer this process's.
    pub(super) fn rest(&self) {
        self.renewed.store(0, Ordering::Release);
    }

    /// Whether the lease is this process's, as far as it knows, renewed in time or not.
    pub(super) fn holds(&self) -> bool {
        self.renewed() > Moment::from_nanos(0)
    }

    /// When the last successful renewal was sent; the clock's origin while the lease is not this process's.
    pub(super) fn renewed(&self) -> Moment {
        Moment::from_nanos(self.renewed.load(Ordering::Acquire))
    }

    /// Notes how the election has ended; the first word counts.
    pub(super) fn end(&self, how: Result<LeaseEnd, ErrElectionEnded>) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(how);
            }
            first
        });
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits until the election has ended. Cancel-safe.
    pub(super) async fn ended(&self) -> Result<LeaseEnd, ErrElectionEnded> {
        let mut ended = self.ended.subscribe();
        // No error: `self` keeps the sender.
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| *how);
        how.unwrap_or(Err(ErrElectionEnded(())))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.end(Err(ErrElectionEnded(())));
    }
}
