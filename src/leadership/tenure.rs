//! One term of this process, as its work sees it.

use super::{clock::Moment, inner::Inner, term::Term};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

/// A term in which this process leads or has led. It counts no write.
#[derive(Debug)]
pub(crate) struct Tenure {
    inner: Arc<Inner>,
    grant: u64,
    term: Term,
}

// === impl Tenure ===

impl Tenure {
    pub(super) fn new(inner: Arc<Inner>, grant: u64, term: Term) -> Self {
        Self { inner, grant, term }
    }

    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    /// Whether the term continues. The term of a leader that is closing continues.
    fn is_valid(&self) -> bool {
        self.inner.word.is_valid(self.grant, || self.inner.now())
    }

    /// Whether the gate admits writes in this term.
    pub(crate) fn is_open(&self) -> bool {
        self.is_valid() && self.inner.is_open()
    }

    /// Waits until the term is over. Each poll looks at the deadline itself. A task can poll this first, and do other
    /// work only while this is pending. It then does no other work after a freeze. Cancel-safe.
    pub(crate) async fn over(&self) {
        while self.is_valid() {
            let mut woken = pin!(self.inner.ended.next());
            poll_fn(|cx| if self.is_valid() { woken.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        }
    }

    /// Waits until the gate admits no new write in this term, while admitted writes may still finish. Cancel-safe.
    pub(crate) async fn closing(&self) {
        // Cannot fail: `self` keeps the sender.
        let _ = self.inner.state.subscribe().wait_for(|state| state.closing).await;
    }

    /// When the term ended. If it expired, this is its deadline, even if that was noticed late. Returns the present
    /// instant while the term continues, and the clock's origin if the end is no longer known.
    pub(crate) fn ended_at(&self) -> Moment {
        self.inner.state.read(|state| {
            let now = self.inner.clock.now();
            match state.end_of(self.grant) {
                Some(end) if end.number == self.grant => end.at,
                Some(_) => Moment::from_nanos(0),
                // The term continues, or its deadline has passed and no end is recorded yet.
                None => {
                    self.inner.word.deadline().map_or(now, |deadline| now.min(Moment::from_nanos(deadline)))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        leadership::{Grant, Grantor, Leadership, Loss, Term},
        testing::ManualClock,
    };
    use futures_util::FutureExt;
    use std::{sync::Arc, time::Duration};

    const SECOND: Duration = Duration::from_secs(1);

    fn granted() -> (Grantor, Leadership, ManualClock, Grant) {
        let clock = ManualClock::new();
        let grantor = Grantor::with_clock(Arc::new(clock.clone()));
        let deadline = grantor.now().saturating_add(10 * SECOND);
        let grant = grantor.grant(Term::new("u", 1), deadline).unwrap();
        let leadership = grantor.leadership();
        (grantor, leadership, clock, grant)
    }

    fn tenure(leadership: &Leadership) -> Tenure {
        leadership.terms().next().now_or_never().flatten().expect("leading")
    }

    #[test]
    fn s1_an_expired_term_ended_at_its_deadline() {
        for noticed in [false, true] {
            let (_grantor, leadership, clock, grant) = granted();
            let (tenure, deadline) = (tenure(&leadership), leadership.deadline().unwrap());
            assert!(tenure.over().now_or_never().is_none());
            clock.advance(60 * SECOND);
            if noticed {
                grant.end(Loss::Expired);
            }
            assert!(tenure.over().now_or_never().is_some());
            assert_eq!(tenure.ended_at(), deadline, "noticed: {noticed}");
        }
    }

    #[test]
    fn a_theft_ends_only_the_term_it_hits() {
        let (grantor, leadership, clock, grant) = granted();
        let first = tenure(&leadership);
        clock.advance(SECOND);
        let seen = leadership.now();
        grant.end(Loss::Taken);
        clock.advance(SECOND);
        assert_eq!(first.ended_at(), seen);
        assert!(leadership.terms().next().now_or_never().is_none(), "no replica leads");
        let deadline = leadership.now().saturating_add(10 * SECOND);
        let _second = grantor.grant(Term::new("u", 2), deadline).unwrap();
        assert!(!first.is_valid() && first.ended_at() == seen);
        assert_eq!(tenure(&leadership).term(), &Term::new("u", 2));
    }
}
