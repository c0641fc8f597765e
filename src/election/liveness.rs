//! What the task of an election tells its handles: signs of life, and its end.

use super::ended::{ErrElectionEnded, LeaseEnd};
use crate::leadership::Moment;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Liveness {
    /// Whether this process has seen the lease since the election began.
    pub(super) seen: AtomicBool,
    /// Whether this candidate takes the lease if it is free.
    pub(super) contends: AtomicBool,
    /// When the election's task last ran. Before the first time: when the election was built.
    ran: AtomicU64,
    /// When the API server began to answer 401 to each request of the workload's clients: the time of the first such
    /// answer. 0 if its last answer to them was another one, or if there was none.
    unknown_since: AtomicU64,
    /// The time from the first to the last of these 401 answers.
    unknown_for: AtomicU64,
    /// How the election ended. None while it runs.
    ended: watch::Sender<Option<Result<LeaseEnd, ErrElectionEnded>>>,
}

impl Liveness {
    pub(super) fn new(built: Moment) -> Self {
        Self {
            seen: AtomicBool::new(false),
            contends: AtomicBool::new(false),
            ran: AtomicU64::new(built.as_nanos()),
            unknown_since: AtomicU64::new(0),
            unknown_for: AtomicU64::new(0),
            ended: watch::Sender::default(),
        }
    }

    /// Records that the election's task runs now. It does so at least once in a retry period.
    pub(super) fn note_run(&self, now: Moment) {
        self.ran.fetch_max(now.as_nanos(), Ordering::AcqRel);
    }

    /// When the election's task last ran.
    pub(super) fn last_ran(&self) -> Moment {
        Moment::from_nanos(self.ran.load(Ordering::Acquire))
    }

    /// Records whether the API server knows the credentials of the workload's clients.
    pub(super) fn note_credentials(&self, are_known: bool, now: impl FnOnce() -> Moment) {
        let (since, lasted) = match (are_known, self.unknown_since.load(Ordering::Relaxed)) {
            (true, 0) => return,
            (true, _) => (0, 0),
            (false, 0) => (now().as_nanos(), 0),
            (false, since) => (since, now().as_nanos().saturating_sub(since)),
        };
        self.unknown_since.store(since, Ordering::Relaxed);
        self.unknown_for.store(lasted, Ordering::Relaxed);
    }

    /// For how long the API server has answered 401 to each request of the workload's clients: from the first such
    /// answer to the last one. So this is zero after a single 401.
    pub(super) fn unknown_for(&self) -> Duration {
        Duration::from_nanos(self.unknown_for.load(Ordering::Relaxed))
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
