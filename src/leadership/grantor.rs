//! The owner of a leadership. Only the owner begins terms.

use super::{
    clock::{BootClock, Clock, LONGEST_SLEEP, Moment},
    follow::Orders,
    grant::{ErrTooLate, Grant},
    inner::{Current, Inner, State},
    intent::Intent,
    reader::Leadership,
    term::{Loss, Term},
};
use std::{fmt::Display, future::Future, sync::Arc};
use tokio::time::timeout;

/// Owns a [`Leadership`] and grants its terms. The elector holds the only grantor of a leadership.
///
/// Dropping it ends the current term and closes the gate for good
/// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). No term can begin after that.
/// [`Leadership::changes`] then ends, and [`Leadership::trouble`] gives the reason.
#[derive(Debug)]
#[must_use = "dropping a grantor closes the gate for good"]
pub struct Grantor {
    inner: Arc<Inner>,
}

/// Closes the gate and ends terms. It cannot open the gate, so several parts of an election may hold a clone.
#[derive(Clone, Debug)]
pub(crate) struct Closer {
    inner: Arc<Inner>,
}

// === impl Grantor ===

impl Default for Grantor {
    fn default() -> Self {
        Self::new()
    }
}

impl Grantor {
    /// Makes a leadership without a term, on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(BootClock))
    }

    /// Makes a leadership without a term, on `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner::new(clock, State::default())) }
    }

    /// Makes the leadership of an election. Before [`begin`](Self::begin), no term can begin, and
    /// [`Leadership::trouble`] gives the reason.
    pub(crate) fn of_election(clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner::new(clock, State::not_begun())) }
    }

    /// Allows terms from now on.
    pub(crate) fn begin(&self) {
        self.inner
            .state
            .send_if_modified(|state| state.intent == Intent::NotBegun && state.want(Intent::Contend));
    }

    /// Returns [`Orders`], from which the election learns what the rest of the process wants.
    pub(crate) fn orders(&self) -> Orders {
        Orders::new(self.inner.clone())
    }

    /// If this process wanted to leave the lease, records that the election has left it, and whether the lease was
    /// `released`. Returns whether the intent has changed.
    pub(crate) fn note_left(&self, released: bool) -> bool {
        let mut is_news = false;
        self.inner.state.send_if_modified(|state| {
            is_news = state.intent == Intent::Leave && state.want(Intent::Left { released });
            is_news
        });
        is_news
    }

    /// Returns a reader of this leadership, for gates and observers.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        Leadership::new(self.inner.clone())
    }

    /// Returns a [`Closer`], which can close the gate but never open it.
    pub(crate) fn closer(&self) -> Closer {
        Closer { inner: self.inner.clone() }
    }

    /// The present instant of this leadership's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.inner.clock.now()
    }

    /// Opens the gate for `term` until `deadline`, and ends any earlier grant.
    ///
    /// Read the clock *before* you send the call that acquires the lease. The deadline is that instant plus the renew
    /// deadline ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)).
    ///
    /// # Errors
    /// [`ErrTooLate`] if the deadline has passed already. Also if the process lets no term begin now, because its election has
    /// not begun, stops or stands down, or because the work of its last term has not ended.
    pub fn grant(&self, term: Term, deadline: Moment) -> Result<Grant, ErrTooLate> {
        let mut number = None;
        self.inner.state.send_if_modified(|state| {
            if state.intent != Intent::Contend || self.now() >= deadline {
                return false;
            }
            // The earlier grant has expired, or its owner replaces it with this one.
            self.inner.end(state, Loss::Expired);
            let opened = self.inner.word.open(deadline.as_nanos());
            state.current = Some(Current { number: opened, term: term.clone() });
            state.opening = None;
            number = Some(opened);
            true
        });
        let number = number.ok_or(ErrTooLate(()))?;
        // Wake the writes of the earlier grant: they have ended with that grant.
        self.inner.ended.ring();
        // Log last: then a log that blocks delays neither the deadline nor the end of those writes.
        tracing::info!(%term, fencing_token = term.fencing_token(), "leadership gained");
        Ok(Grant::new(self.inner.clone(), term, number))
    }

    /// Ends leadership at once. The gate admits no write, and wakes each admitted write so that it is cut off.
    pub fn revoke(&self, loss: Loss) {
        self.inner.revoke(loss);
    }

    /// Stops admitting writes. Writes that were admitted earlier may finish until the deadline
    /// ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
    pub fn close(&self) {
        self.inner.close_and(|_| {});
    }

    /// Records who holds the lease, for messages and observers. This does not open or close the gate.
    pub fn note_holder(&self, holder: Option<&str>) {
        self.inner.state.send_if_modified(|state| {
            let changed = state.holder.as_deref() != holder;
            if changed {
                state.holder = holder.map(Arc::from);
            }
            changed
        });
    }

    /// Records which term has the lease, and waits for something else before its gate opens. None if no term does.
    pub(crate) fn note_opening(&self, term: Option<&Term>) {
        self.inner.state.send_if_modified(|state| {
            let changed = state.opening.as_ref() != term;
            state.opening = term.cloned();
            changed
        });
    }

    /// Records why the election makes no progress, or, with None, that a trouble is over.
    ///
    /// `what` is the sort of the trouble: there is one trouble of each sort, and its message begins with `what`. `trouble`
    /// has the kind (a word for log fields) and the details (what is wrong, and what to do). Call this at each failure.
    ///
    /// [`Leadership::trouble`] and the error of each rejected write show the first trouble that lasts. The log has a
    /// warning when a kind is new, and again every five minutes, and a line when the trouble is over. This does not open
    /// or close the gate, and [`changes`](Leadership::changes) does not report it.
    pub fn set_trouble(&self, what: &'static str, trouble: Option<(&'static str, &dyn Display)>) {
        self.inner.set_trouble(what, trouble);
    }

    /// Records that a write may have ended at `at` without an answer: an earlier process of this candidate may have sent
    /// such a write.
    pub(crate) fn note_unanswered(&self, at: Moment) {
        self.inner.note_unanswered(at);
    }

    /// A future that ends each term when its deadline has passed. It wakes the waiting writes and the observers.
    ///
    /// The gate closes on time without this future. But without it, a hanging write is cut off only when something
    /// else wakes it.
    ///
    /// Spawn it beside the elector. It borrows nothing, and ends when the grantor is dropped. It needs a tokio
    /// runtime with a timer. Cancel-safe.
    pub fn watch_deadline(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = self.inner.clone();
        async move {
            let mut state = inner.state.subscribe();
            while state.borrow_and_update().intent != Intent::Gone {
                let Some(deadline) = inner.word.deadline().map(Moment::from_nanos) else {
                    // Cannot fail: `inner` keeps the sender.
                    let _ = state.changed().await;
                    continue;
                };
                let left = deadline.saturating_since(inner.clock.now());
                if left.is_zero() {
                    inner.expire();
                    continue;
                }
                let _ = timeout(left.min(LONGEST_SLEEP), state.changed()).await;
            }
        }
    }
}

impl Drop for Grantor {
    fn drop(&mut self) {
        self.closer().seal();
        self.revoke(Loss::Abandoned);
        // Do this last, so that observers see the loss before their streams end.
        self.inner.close_and(|state| (state.intent, state.opening) = (Intent::Gone, None));
    }
}

// === impl Closer ===

impl Closer {
    /// Ends leadership at once. The gate admits no write, and wakes each admitted write so that it is cut off.
    pub(crate) fn revoke(&self, loss: Loss) {
        self.inner.revoke(loss);
    }

    /// Closes the gate, and lets no term begin until [`contend`](Self::contend). A later grant does not open the gate, and
    /// neither does a grant that another thread is making now.
    pub(crate) fn close(&self) {
        self.inner.close_and(|state| {
            state.want(Intent::Keep);
        });
    }

    /// Closes the gate, as [`close`](Self::close) does, for good.
    pub(crate) fn seal(&self) {
        self.inner.close_and(|state| {
            state.is_final = true;
            state.want(Intent::Keep);
        });
    }

    /// Lets no other term follow the present one until [`contend`](Self::contend). The gate stays open. Call it before the
    /// work of the term begins: the task that polls the work may be too late to forbid the next term (rule S11).
    pub(crate) fn keep_to_this_term(&self) {
        self.inner.state.send_if_modified(|state| state.want(Intent::Keep));
    }

    /// Asks the election to leave the lease. Before this call, close the gate, and let the admitted writes finish.
    pub(crate) fn leave(&self) {
        self.inner.state.send_if_modified(|state| state.want(Intent::Leave));
    }

    /// Waits until the election has left the lease. Returns true if this process no longer holds the lease. Cancel-safe.
    pub(crate) async fn left(&self) -> bool {
        let mut state = self.inner.state.subscribe();
        loop {
            if let Intent::Left { released } = state.borrow_and_update().intent {
                return released;
            }
            // Cannot fail: `self` keeps the sender.
            let _ = state.changed().await;
        }
    }

    /// Allows terms again, unless the gate is sealed. A closed gate stays closed until the next grant.
    pub(crate) fn contend(&self) {
        self.inner.state.send_if_modified(|state| !state.is_final && state.want(Intent::Contend));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leadership::ErrTooLate;
    use std::{
        sync::{Arc, Barrier, atomic::AtomicBool, atomic::Ordering},
        thread,
        time::Duration,
    };

    /// A clock that pauses once in the middle of a grant.
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

    /// A stop races with a grant. Whichever comes first, the gate is closed for good afterwards.
    #[test]
    fn s4_a_grant_racing_with_a_stop_opens_nothing() {
        let trap = Arc::new(Trap { armed: true.into(), reached: Barrier::new(2), go_on: Barrier::new(2) });
        let grantor = Grantor::with_clock(trap.clone());
        let (leadership, closer) = (grantor.leadership(), grantor.closer());
        let deadline = Moment::from_nanos(1_000).saturating_add(Duration::from_secs(10));
        let term = || Term::new("u", 1);
        thread::scope(|scope| {
            let granting = scope.spawn(|| grantor.grant(term(), deadline));
            trap.reached.wait();
            let stopping = scope.spawn(|| {
                closer.seal();
                assert!(!leadership.can_write());
                assert!(leadership.admit().is_none());
            });
            trap.go_on.wait();
            let grant = granting.join().unwrap();
            stopping.join().unwrap();
            assert!(!leadership.can_write());
            drop(grant);
            assert_eq!(grantor.grant(term(), deadline).unwrap_err(), ErrTooLate(()));
        });
    }
}
