//! The election's signs of life, for the health check.

use super::ended::{ErrElectionEnded, LeaseEnd};
use crate::leadership::Moment;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Pulse {
    /// When the election was built.
    built: Moment,
    /// Whether this process has seen the lease since the election began.
    seen: AtomicBool,
    /// When the last successful renewal was sent; 0 while this process does not hold the lease.
    renewed: AtomicU64,
    /// How the election ended. None while it runs.
    ended: watch::Sender<Option<Result<LeaseEnd, ErrElectionEnded>>>,
}

/// Marks the election as ended when it is dropped, for any reason (rule S10). This counts as a failure, unless an
/// orderly end was recorded before.
#[derive(Debug)]
pub(super) struct Alive(pub(super) Arc<Pulse>);

impl Pulse {
    pub(super) fn new(built: Moment) -> Self {
        Self {
            built,
            seen: AtomicBool::new(false),
            renewed: AtomicU64::new(0),
            ended: watch::Sender::default(),
        }
    }

    pub(super) const fn built(&self) -> Moment {
        self.built
    }

    /// Records that this process has seen the lease.
    pub(super) fn see(&self) {
        self.seen.store(true, Ordering::Release);
    }

    pub(super) fn has_seen(&self) -> bool {
        self.seen.load(Ordering::Acquire)
    }

    /// Records a successful renewal that was sent at `sent`.
    pub(super) fn beat(&self, sent: Moment) {
        self.renewed.store(sent.as_nanos(), Ordering::Release);
    }

    /// Records that this process no longer holds the lease.
    pub(super) fn rest(&self) {
        self.renewed.store(0, Ordering::Release);
    }

    /// Whether this process holds the lease, as far as it knows, even if it is late to renew it.
    pub(super) fn holds(&self) -> bool {
        self.renewed() > Moment::from_nanos(0)
    }

    /// When the last successful renewal was sent. The clock's origin while this process does not hold the lease.
    pub(super) fn renewed(&self) -> Moment {
        Moment::from_nanos(self.renewed.load(Ordering::Acquire))
    }

    /// Records how the election ended. Only the first call counts.
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
        // Cannot fail: `self` keeps the sender.
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| *how);
        how.unwrap_or(Err(ErrElectionEnded(())))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.end(Err(ErrElectionEnded(())));
    }
}
