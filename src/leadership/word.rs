//! The leadership word: flag and deadline in one atomic, and the writes that it has let in.
//!
//! The word is 0 while not leading, else the validity deadline in nanoseconds with bit 0 for "closing" (nothing new is
//! admitted; what was admitted goes on until the deadline). A grant's number tells a write of an earlier term from one
//! of this term. A thread that opens or extends holds the lock of the state; closing and revoking need none.

use super::sync::{AtomicU64, AtomicUsize, Ordering, fence};

const NOT_LEADING: u64 = 0;
const CLOSING: u64 = 1;

#[derive(Debug)]
pub(super) struct Word {
    deadline: AtomicU64,
    /// The number of the last grant.
    grant: AtomicU64,
    admitted: AtomicUsize,
}

impl Word {
    pub(super) fn new() -> Self {
        Self {
            deadline: AtomicU64::new(NOT_LEADING),
            grant: AtomicU64::new(0),
            admitted: AtomicUsize::new(0),
        }
    }

    // --- changes, one at a time ---

    /// Opens a new grant and returns its number. What earlier grants admitted is no longer valid.
    pub(super) fn open(&self, deadline: u64) -> u64 {
        self.deadline.store(NOT_LEADING, Ordering::Release);
        // A reader that sees the new deadline sees the new number too.
        let grant = self.grant.fetch_add(1, Ordering::AcqRel) + 1;
        self.deadline.store(live(deadline), Ordering::Release);
        grant
    }

    /// Moves the deadline of the current grant on. False when it has ended; an ended grant never comes back, be it ended
    /// meanwhile.
    pub(super) fn extend(&self, grant: u64, deadline: u64, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        if self.grant.load(Ordering::Acquire) != grant || word == NOT_LEADING || now() >= word & !CLOSING {
            return false;
        }
        let extended = |word| match word {
            NOT_LEADING => None,
            // A late answer to an early renewal must not shorten what a later one has given.
            word => Some(live(deadline).max(word & !CLOSING) | (word & CLOSING)),
        };
        self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, extended).is_ok()
    }

    // --- changes, at any time ---

    /// Admits nothing more.
    pub(super) fn close(&self) {
        let closing = |word| (word != NOT_LEADING).then_some(word | CLOSING);
        // An error says that there is no grant: closed already.
        let _ = self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, closing);
    }

    /// Ends the current grant at once. A swap and no store, so that its place among racing extensions is plain.
    pub(super) fn revoke(&self) {
        self.deadline.swap(NOT_LEADING, Ordering::AcqRel);
    }

    // --- the write path ---

    /// Counts a write in and returns the grant that admits it, or counts it out again.
    ///
    /// The count is raised before the word is read, and a drain reads the count after the word was changed (a fence
    /// between the two on either side), so that a drain that sees no write has missed none. The clock is read last: a
    /// thread that was frozen in between judges by the time at which it woke.
    pub(super) fn enter(&self, now: impl FnOnce() -> u64) -> Result<u64, Refused> {
        if self.deadline.load(Ordering::Relaxed) == NOT_LEADING {
            return Err(Refused { was_last: false });
        }
        self.admitted.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let word = self.deadline.load(Ordering::Acquire);
        let grant = self.grant.load(Ordering::Acquire);
        if word & CLOSING == 0 && now() < word { Ok(grant) } else { Err(Refused { was_last: self.leave() }) }
    }

    /// Counts an admitted write out. True when it was the last one and nothing new is admitted.
    pub(super) fn leave(&self) -> bool {
        let before = self.admitted.fetch_sub(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let word = self.deadline.load(Ordering::Relaxed);
        before == 1 && (word == NOT_LEADING || word & CLOSING != 0)
    }

    /// Whether a write that `grant` admitted may still go on.
    pub(super) fn is_valid(&self, grant: u64, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        self.grant.load(Ordering::Acquire) == grant && now() < word & !CLOSING
    }

    // --- views ---

    /// Whether a grant is valid now, closing or not.
    pub(super) fn is_leading(&self, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        word != NOT_LEADING && now() < word & !CLOSING
    }

    /// Whether a write would be admitted now.
    pub(super) fn is_open(&self, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        word & CLOSING == 0 && now() < word
    }

    /// The deadline of the current grant, in the past too; none when there is no grant.
    pub(super) fn deadline(&self) -> Option<u64> {
        match self.deadline.load(Ordering::Acquire) & !CLOSING {
            NOT_LEADING => None,
            deadline => Some(deadline),
        }
    }

    pub(super) fn current_grant(&self) -> u64 {
        self.grant.load(Ordering::Acquire)
    }

    /// How many admitted writes have not finished. None, after a `close` or `revoke`: none is under way or will be.
    pub(super) fn admitted(&self) -> usize {
        fence(Ordering::SeqCst);
        self.admitted.load(Ordering::Acquire)
    }
}

/// A write that was not let in; `was_last` asks to wake the task that drains.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) was_last: bool,
}

/// A deadline as the word holds it: bit 0 belongs to "closing", and 0 means "not leading".
fn live(deadline: u64) -> u64 {
    (deadline & !CLOSING).max(2)
}

#[cfg(all(test, leader_gate_loom))]
#[path = "word_loom.rs"]
mod loom_tests;
