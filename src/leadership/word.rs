//! The leadership word: flag and deadline in one atomic, and the count of admitted writes.
//!
//! The word is 0 while this process does not lead. Otherwise it is the validity deadline in nanoseconds. Bit 0 means
//! "closing": the gate admits no new write, and admitted writes continue until the deadline.
//!
//! A write keeps the number of the grant that admitted it, so a write of an earlier term is not valid in this term. A
//! thread that opens or extends a grant holds the lock of the state. The word itself needs no lock to close or to revoke.

use super::sync::{AtomicU64, AtomicUsize, Ordering};
use std::mem;

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

    // --- changes under the lock of the state ---

    /// Opens a new grant and returns its number. Writes that earlier grants admitted are no longer valid.
    pub(super) fn open(&self, deadline: u64) -> u64 {
        self.deadline.store(NOT_LEADING, Ordering::Release);
        // A reader that sees the new deadline also sees the new number.
        let grant = self.grant.fetch_add(1, Ordering::AcqRel) + 1;
        self.deadline.store(live(deadline), Ordering::Release);
        grant
    }

    /// Moves the deadline of the current grant forward. Returns false if the grant has ended, even if it ends during
    /// this call. An ended grant never comes back.
    pub(super) fn extend(&self, grant: u64, deadline: u64, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        if self.grant.load(Ordering::Acquire) != grant || word == NOT_LEADING || now() >= word & !CLOSING {
            return false;
        }
        let extended = |word| match word {
            NOT_LEADING => None,
            // A late answer to an early renewal must not shorten the deadline of a later renewal.
            word => Some(live(deadline).max(word & !CLOSING) | (word & CLOSING)),
        };
        self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, extended).is_ok()
    }

    // --- changes that need no lock ---

    /// Stops admitting writes.
    pub(super) fn close(&self) {
        let closing = |word| (word != NOT_LEADING).then_some(word | CLOSING);
        // An error means that there is no grant, so the gate is closed already.
        let _ = self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, closing);
    }

    /// Ends the current grant at once. This is a swap and no store: an extension at the same time then either comes before it, or
    /// sees that the grant has ended.
    pub(super) fn revoke(&self) {
        self.deadline.swap(NOT_LEADING, Ordering::AcqRel);
    }

    // --- the write path ---

    /// Counts a write in and returns the grant that admits it, with the time that this grant has left. If no grant
    /// admits the write, counts the write out again.
    ///
    /// The writer raises the count before it reads the word. A task that drains closes the gate, which changes the word,
    /// before it reads the count, and it reads the count by a read-modify-write. So either the writer or the drain is first
    /// at the count. If the writer was first, the drain sees the write. If the drain was first, the writer sees the changed
    /// word. The writer reads the clock last: if its thread was frozen before, it compares the deadline with the time at
    /// which the thread woke.
    pub(super) fn enter(&self, now: impl FnOnce() -> u64) -> Result<(u64, u64), Refused> {
        if self.deadline.load(Ordering::Relaxed) == NOT_LEADING {
            return Err(Refused { was_last: false });
        }
        self.admitted.fetch_add(1, Ordering::AcqRel);
        let entered = Entered(self);
        let word = self.deadline.load(Ordering::Acquire);
        let grant = self.grant.load(Ordering::Acquire);
        let left = if word & CLOSING == 0 { word.saturating_sub(now()) } else { 0 };
        mem::forget(entered);
        if left > 0 { Ok((grant, left)) } else { Err(Refused { was_last: self.leave() }) }
    }

    /// Counts an admitted write out. Returns true if it was the last one and the gate admits no new write.
    pub(super) fn leave(&self) -> bool {
        // As in `enter`: either the drain sees the lower count, or this thread sees the changed word.
        let before = self.admitted.fetch_sub(1, Ordering::AcqRel);
        let word = self.deadline.load(Ordering::Acquire);
        before == 1 && (word == NOT_LEADING || word & CLOSING != 0)
    }

    /// Whether a write that `grant` admitted may continue.
    pub(super) fn is_valid(&self, grant: u64, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        let in_time = now() < word & !CLOSING;
        self.grant.load(Ordering::Acquire) == grant && in_time
    }

    // --- views ---

    /// Whether a grant is valid now. A grant that is closing is valid.
    pub(super) fn is_leading(&self, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        word != NOT_LEADING && now() < word & !CLOSING
    }

    /// Whether the gate would admit a write now.
    pub(super) fn is_open(&self, now: impl FnOnce() -> u64) -> bool {
        let word = self.deadline.load(Ordering::Acquire);
        word & CLOSING == 0 && now() < word
    }

    /// The deadline of the current grant, even if it has passed. None if there is no grant.
    pub(super) fn deadline(&self) -> Option<u64> {
        match self.deadline.load(Ordering::Acquire) & !CLOSING {
            NOT_LEADING => None,
            deadline => Some(deadline),
        }
    }

    pub(super) fn current_grant(&self) -> u64 {
        self.grant.load(Ordering::Acquire)
    }

    /// How many admitted writes have not finished. After a `close` or `revoke`, 0 means that no write is under way
    /// and none will be.
    pub(super) fn admitted(&self) -> usize {
        // Adding 0 changes nothing, but a read-modify-write always reads the newest count. A load could see an old count.
        self.admitted.fetch_add(0, Ordering::AcqRel)
    }
}

/// Counts a write out if the clock panics before the write is admitted.
struct Entered<'a>(&'a Word);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // This wakes no drain: a drain that waits for this write returns at the drain timeout.
        self.0.leave();
    }
}

/// A refused write. If `was_last` is true, wake the task that drains.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) was_last: bool,
}

/// The deadline as the word stores it. Bit 0 means "closing", and 0 means "not leading".
fn live(deadline: u64) -> u64 {
    (deadline & !CLOSING).max(2)
}

#[cfg(test)]
mod tests {
    //! Which write wakes a drain, and what is read first.

    use super::Word;

    fn enter(word: &Word, writes: usize) {
        for _ in 0..writes {
            assert!(word.enter(|| 10).is_ok());
        }
    }

    /// A thread may freeze between the two reads. It must compare the deadline with the time at which it woke.
    #[test]
    fn s1_the_clock_is_read_after_the_word() {
        type Look = fn(&Word, &dyn Fn() -> u64) -> bool;
        let looks: [Look; 5] = [
            |word, now| word.enter(now).is_ok(),
            |word, now| word.is_valid(1, now),
            |word, now| word.is_leading(now),
            |word, now| word.is_open(now),
            |word, now| !word.extend(1, 2_000, now) && word.deadline().is_none(),
        ];
        for (number, look) in looks.into_iter().enumerate() {
            let word = Word::new();
            word.open(1_000);
            let changes_the_word = || {
                word.revoke();
                10
            };
            assert!(look(&word, &changes_the_word), "{number}: the word was read after the clock");
        }
    }

    #[test]
    fn s4_the_last_write_behind_a_closed_gate_wakes_the_drain_and_no_other_write_does() {
        let word = Word::new();
        word.open(1_000);
        enter(&word, 2);
        assert!(!word.leave() && !word.leave(), "the gate is open");
        enter(&word, 2);
        word.close();
        assert!(!word.leave(), "another write is under way");
        assert!(word.leave());
        word.open(1_000);
        enter(&word, 2);
        word.revoke();
        assert!(!word.leave(), "another write is under way");
        assert!(word.leave());
    }
}
