//! The right to lead, in the hands of whoever runs the election.

use super::{
    Leadership, Loss, Moment, Term,
    inner::{Current, Grants, State},
};
use std::fmt;

/// Leadership for one term. Dropping it ends the term at once, however the owner came to its end (rule S10).
#[derive(Debug)]
#[must_use = "dropping a grant ends the term"]
pub struct Grant {
    leadership: Leadership,
    term: Term,
    number: u64,
}

/// A grant or an extension that came too late, or for a term that has ended. The gate stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrTooLate(());

impl Leadership {
    /// Opens the gate for `term` until `deadline` (rule S1: the instant *before* the acquiring call was sent, plus the
    /// renew deadline). A grant that was there before ends.
    ///
    /// # Errors
    /// [`ErrTooLate`] when the deadline has passed already, or the election stops or stands down.
    pub fn grant(&self, term: Term, deadline: Moment) -> Result<Grant, ErrTooLate> {
        let mut number = None;
        self.inner.state.send_if_modified(|state| {
            if state.grants != Grants::Allowed || self.now() >= deadline {
                return false;
            }
            // One that is replaced has run out, or is given up by its owner for this one.
            self.inner.end(state, Loss::Expired);
            let opened = self.inner.word.open(deadline.as_nanos());
            state.current = Some(Current { number: opened, term: term.clone() });
            number = Some(opened);
            true
        });
        let number = number.ok_or(ErrTooLate(()))?;
        // Writes of an earlier grant end with it.
        self.inner.ended.notify_waiters();
        tracing::info!(%term, "leadership gained");
        Ok(Grant { leadership: self.clone(), term, number })
    }

    /// Ends leadership at once: no write is admitted, and admitted ones are woken to be cut off.
    pub fn revoke(&self, loss: Loss) {
        self.inner.end_if(loss, |_| true);
    }

    /// Admits nothing more, while admitted writes may finish until the deadline (rule S4).
    pub fn close(&self) {
        self.close_and(|_| {});
    }

    /// Closes for good: no grant is made any more, also not one that is being made at this moment.
    pub(crate) fn seal(&self) {
        self.close_and(|state| state.grants = Grants::Sealed);
    }

    /// Closes, as [`seal`](Self::seal) does, until [`resume`](Self::resume).
    pub(crate) fn suspend(&self) {
        self.close_and(|state| state.grants = state.grants.max(Grants::Suspended));
    }

    /// Allows grants again. A gate that has closed stays closed until the next one.
    pub(crate) fn resume(&self) {
        self.inner.state.send_if_modified(|state| {
            if state.grants == Grants::Suspended {
                state.grants = Grants::Allowed;
            }
            false
        });
    }

    fn close_and(&self, change: impl FnOnce(&mut State)) {
        self.inner.state.send_if_modified(|state| {
            self.inner.word.close();
            let before = (state.grants, state.closing);
            change(state);
            state.closing |= state.current.is_some();
            // Who waits for a term hears that none comes any more.
            before != (state.grants, state.closing)
        });
    }
}

// === impl Grant ===

impl Grant {
    /// Moves the deadline to `deadline`, never back.
    ///
    /// # Errors
    /// [`ErrTooLate`] when the term has ended, or its old deadline has passed: a gate that has closed by itself stays
    /// closed until the next [`grant`](Leadership::grant).
    pub fn extend(&self, deadline: Moment) -> Result<(), ErrTooLate> {
        let inner = &self.leadership.inner;
        let mut extended = false;
        // The lock only: observers hear nothing of a renewal.
        inner.state.send_if_modified(|_| {
            extended = inner.word.extend(self.number, deadline.as_nanos(), || inner.now());
            false
        });
        if extended { Ok(()) } else { Err(ErrTooLate(())) }
    }

    /// The term that this is the right to lead in.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Whether the term goes on: not revoked, and its deadline not passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let inner = &self.leadership.inner;
        inner.word.is_valid(self.number, || inner.now())
    }

    /// Ends this term, unless it has ended.
    pub fn end(self, loss: Loss) {
        self.end_in_place(loss);
    }

    fn end_in_place(&self, loss: Loss) {
        self.leadership.inner.end_if(loss, |current| current == self.number);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.end_in_place(Loss::Abandoned);
    }
}

// === impl ErrTooLate ===

impl fmt::Display for ErrTooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the validity deadline has passed or the term has ended; leadership needs a new grant")
    }
}

impl std::error::Error for ErrTooLate {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leadership::Clock;
    use std::{
        sync::{Arc, Barrier, atomic::AtomicBool, atomic::Ordering},
        thread,
        time::Duration,
    };

    /// A clock that stops once in the middle of a grant.
    #[derive(Debug)]
    struct Trap {
        armed: AtomicBool,
        reached: Barrier,
        go_on: Barrier,
    }

    impl Clock for Trap {
        fn now(&self) -> Moment {
            if self.armed.swap(false, Ordering::SeqCst) {
                self.reached.wait();
                self.go_on.wait();
            }
            Moment::from_nanos(1_000)
        }
    }

    /// A stop that comes while a grant is being made: whichever is first, the gate is closed afterwards, for good.
    #[test]
    fn s4_a_grant_in_the_making_opens_nothing_behind_a_stop() {
        let trap = Arc::new(Trap { armed: true.into(), reached: Barrier::new(2), go_on: Barrier::new(2) });
        let leadership = Leadership::with_clock(trap.clone());
        let deadline = Moment::from_nanos(1_000).saturating_add(Duration::from_secs(10));
        let term = || Term::new("u", 1);
        thread::scope(|scope| {
            let granting = scope.spawn(|| leadership.grant(term(), deadline));
            trap.reached.wait();
            let stopping = scope.spawn(|| {
                leadership.seal();
                assert!(!leadership.can_write());
                assert!(leadership.admit().is_none());
            });
            trap.go_on.wait();
            let grant = granting.join().unwrap();
            stopping.join().unwrap();
            assert!(!leadership.can_write());
            drop(grant);
            assert_eq!(leadership.grant(term(), deadline).unwrap_err(), ErrTooLate(()));
        });
    }
}
