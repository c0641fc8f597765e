//! The owner of a leadership: the one part of a process that begins terms.

use super::{
    clock::{BootClock, Clock, LONGEST_SLEEP, Moment},
    closer::Closer,
    grant::{ErrTooLate, Grant},
    inner::{Current, Grants, Inner},
    reader::Leadership,
    term::{Loss, Term},
};
use std::{future::Future, sync::Arc};
use tokio::time::timeout;

/// What a leadership says in [`trouble`](Leadership::trouble) once no grant can come any more.
pub(crate) const ENDED: &str = "the leader election has ended; restart the process to contend again";

/// Owns a [`Leadership`] and grants its terms. An elector holds the only one.
///
/// Dropping it ends the current term, and closes the gate for good (rule S10): no term can begin any more,
/// [`Leadership::changes`] end, and [`Leadership::trouble`] says so.
#[derive(Debug)]
#[must_use = "dropping a grantor closes the gate for good"]
pub struct Grantor {
    inner: Arc<Inner>,
}

// === impl Grantor ===

impl Default for Grantor {
    fn default() -> Self {
        Self::new()
    }
}

impl Grantor {
    /// A leadership without a term, on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(BootClock::new()))
    }

    /// A leadership without a term, on a clock of your own.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner::new(clock)) }
    }

    /// A reader of this leadership, for gates and observers.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        Leadership::new(self.inner.clone())
    }

    /// Ends and closes, and never opens.
    pub(crate) fn closer(&self) -> Closer {
        Closer::new(self.inner.clone())
    }

    /// The present instant of this leadership's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.inner.clock.now()
    }

    /// Opens the gate for `term` until `deadline` (rule S1: the instant *before* the acquiring call was sent, plus the
    /// renew deadline). An earlier grant ends.
    ///
    /// # Errors
    /// [`ErrTooLate`] when the deadline has passed already, or the election stops or stands down.
    pub fn grant(&self, term: Term, deadline: Moment) -> Result<Grant, ErrTooLate> {
        let mut number = None;
        self.inner.state.send_if_modified(|state| {
            if state.grants != Grants::Allowed || self.now() >= deadline {
                return false;
            }
            // An earlier grant has run out, or its owner replaces it by this one.
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
        Ok(Grant::new(self.inner.clone(), term, number))
    }

    /// Ends leadership at once: no write is admitted, and admitted ones are woken to be cut off.
    pub fn revoke(&self, loss: Loss) {
        self.inner.revoke(loss);
    }

    /// Admits nothing more, while admitted writes may finish until the deadline (rule S4).
    pub fn close(&self) {
        self.inner.close_and(|_| {});
    }

    /// Notes who holds the lease, for messages and observers. It opens and closes nothing.
    pub fn note_holder(&self, holder: Option<&str>) {
        self.inner.state.send_if_modified(|state| {
            let changed = state.holder.as_deref() != holder;
            if changed {
                state.holder = holder.map(Arc::from);
            }
            changed
        });
    }

    /// Notes what keeps the election from making progress, for messages. It opens and closes nothing, and
    /// [`changes`](Leadership::changes) do not show it.
    pub fn note_trouble(&self, trouble: Option<Arc<str>>) {
        self.inner.state.send_if_modified(|state| {
            state.trouble = trouble;
            false
        });
    }

    /// A future that ends each term when its deadline has passed. That wakes the waiting writes, and the observers see it.
    ///
    /// The gate closes on time without it. But without it, a write that hangs is cut off only when something else wakes
    /// it. Spawn it beside the elector: it borrows nothing, and ends once the grantor is dropped. It needs a tokio
    /// runtime with its timer. Cancel-safe.
    pub fn watch_deadline(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = self.inner.clone();
        async move {
            let mut state = inner.state.subscribe();
            while state.borrow_and_update().grants != Grants::Gone {
                let Some(deadline) = inner.word.deadline().map(Moment::from_nanos) else {
                    // No error: `inner` keeps the sender.
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
        self.note_trouble(Some(ENDED.into()));
        // Last, so that observers see the loss before their streams end.
        self.inner.close_and(|state| state.grants = Grants::Gone);
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
