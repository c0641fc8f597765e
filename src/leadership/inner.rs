//! What all handles of one leadership share.

use super::{
    clock::Clock,
    term::{LastLoss, LeadershipState, Loss},
    word::Word,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) word: Word,
    pub(super) clock: Arc<dyn Clock>,
    /// Why the word fell last.
    pub(super) falling: LastLoss,
    /// When it fell last: at its deadline if that had passed by then.
    fallen_at: AtomicU64,
    /// What observers see; its lock is the one under which the word changes.
    pub(super) state: watch::Sender<LeadershipState>,
    /// Woken whenever a grant ends.
    pub(super) ended: Arc<Notify>,
    /// Woken when the last admitted write has finished after a close.
    pub(super) idle: Notify,
}

impl Inner {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            word: Word::new(),
            clock,
            falling: LastLoss::default(),
            fallen_at: AtomicU64::new(0),
            state: watch::Sender::new(LeadershipState::default()),
            ended: Arc::default(),
            idle: Notify::new(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// Lets the word fall, and notes when.
    pub(super) fn lower(&self) {
        if let Some(deadline) = self.word.deadline() {
            // Before it falls, so that whoever finds it fallen finds the moment. Never back: several may do this at once.
            self.fallen_at.fetch_max(deadline.min(self.now()), Ordering::AcqRel);
        }
        self.word.revoke();
    }

    /// When the word fell last.
    #[cfg(feature = "election")]
    pub(super) fn fallen_at(&self) -> u64 {
        self.fallen_at.load(Ordering::Acquire)
    }

    /// How the term of `grant`, which has ended, was lost; when others have been lost since, how the last of them was.
    pub(super) fn loss_of(&self, grant: u64) -> Loss {
        let state = self.state.borrow();
        let recorded = state.term.is_none() || self.word.current_grant() != grant;
        match state.lost {
            Some(loss) if recorded => loss,
            // The word has fallen, and whoever let it fall is about to say why.
            _ if self.word.deadline().is_none() => self.falling.load(),
            // A deadline that nobody has acted upon yet.
            _ => Loss::Expired,
        }
    }

    /// The number of the last grant that has ended; it never goes back.
    #[cfg(feature = "election")]
    pub(super) fn last_ended(&self) -> u64 {
        if let (current, true) = self.current() {
            return current - 1;
        }
        // A grant or a renewal may be half written: it is whole under the lock.
        let _whole = self.state.borrow();
        let (current, valid) = self.current();
        if valid { current - 1 } else { current }
    }

    /// The number of the newest grant, and whether it is valid.
    #[cfg(feature = "election")]
    fn current(&self) -> (u64, bool) {
        let current = self.word.current_grant();
        (current, self.word.is_valid(current, || self.now()))
    }

    /// Ends the current grant if its deadline has passed, judged under the lock so that a renewal is not undone.
    pub(super) fn expire(self: &Arc<Self>) {
        let late = |_| self.word.deadline().is_some_and(|deadline| self.now() >= deadline);
        self.end_if(Loss::Expired, late);
    }
}
