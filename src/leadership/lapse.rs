//! Reports whether a term was lost since the last check.

use super::{inner::Inner, reader::Leadership, term::Loss};
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;

/// Remembers which terms had ended at the last check. It counts no write.
#[derive(Debug)]
pub(crate) struct Lapse {
    inner: Arc<Inner>,
    /// The number of the last grant that is known to have ended.
    seen: u64,
}

impl Lapse {
    pub(crate) fn new(leadership: &Leadership) -> Self {
        let inner = leadership.inner.clone();
        let seen = inner.last_ended();
        Self { inner, seen }
    }

    /// Whether a term was lost since the last call. A release after all writes have finished does not count. A passed
    /// deadline counts, even if no task has noticed it (rule S1).
    pub(crate) fn occurred(&mut self) -> bool {
        let ended = self.inner.last_ended();
        let count = ended - self.seen;
        self.seen = ended;
        count > 1 || count == 1 && self.inner.loss_of(ended) != Loss::Released
    }

    /// A future that resolves when a term ends. Cancel-safe.
    pub(crate) fn term_ended(&self) -> OwnedNotified {
        self.inner.ended.next_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leadership::{Clock, Grantor, Moment, Term};
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicBool, AtomicU64, Ordering},
        },
        thread,
    };

    /// Once armed, this clock reports one nanosecond before the deadline. It answers only after another thread has
    /// seen the deadline pass.
    #[derive(Debug)]
    struct Edge {
        now: AtomicU64,
        armed: AtomicBool,
        reached: Barrier,
        passed: Barrier,
        seen: AtomicBool,
    }

    const DEADLINE: u64 = 1_000;

    impl Clock for Edge {
        fn now(&self) -> Moment {
            if self.armed.swap(false, Ordering::SeqCst) {
                self.reached.wait();
                self.passed.wait();
                return Moment::from_nanos(DEADLINE - 1);
            }
            let now = self.now.load(Ordering::SeqCst);
            if now >= DEADLINE && self.seen.swap(false, Ordering::SeqCst) {
                self.passed.wait();
            }
            Moment::from_nanos(now)
        }
    }

    /// A renewal is in time but recorded late. A thread that looks in between sees a passed deadline.
    #[test]
    fn a_last_moment_renewal_is_no_lapse() {
        let clock = Arc::new(Edge {
            now: 0.into(),
            armed: false.into(),
            reached: Barrier::new(2),
            passed: Barrier::new(2),
            seen: false.into(),
        });
        let grantor = Grantor::with_clock(clock.clone());
        let leadership = grantor.leadership();
        let grant = grantor.grant(Term::new("u", 1), Moment::from_nanos(DEADLINE)).unwrap();
        clock.armed.store(true, Ordering::SeqCst);
        let mut lapse = thread::scope(|scope| {
            let renewing = scope.spawn(|| grant.extend(Moment::from_nanos(2 * DEADLINE)));
            clock.reached.wait();
            clock.now.store(DEADLINE, Ordering::SeqCst);
            clock.seen.store(true, Ordering::SeqCst);
            let lapse = Lapse::new(&leadership);
            renewing.join().unwrap().unwrap();
            lapse
        });
        assert!(!lapse.occurred(), "it was renewed");
        clock.now.store(2 * DEADLINE, Ordering::SeqCst);
        assert!(lapse.occurred(), "it has run out");
    }
}
