//! Types that follow a leadership: its changes, its terms one after the other, what the process wants, and whether a term
//! was lost since the last look.

use super::{
    clock::Moment,
    inner::{Inner, State},
    intent::Intent,
    term::{LeadershipState, Loss, Term},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};
use tokio::sync::{futures::OwnedNotified, watch};

/// Returns the states of a [`Leadership`](super::Leadership) one after the other.
#[derive(Clone, Debug)]
#[must_use = "it tells nothing unless `next` is called"]
pub struct Changes {
    state: watch::Receiver<State>,
    /// The last state that was returned.
    delivered: Option<LeadershipState>,
}

impl Changes {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        Self { state, delivered: None }
    }

    /// Returns the present state at the first call, and then the newest state after each change. A slow reader may
    /// skip states in between. A renewal is not a change.
    ///
    /// Returns None when the [`Grantor`](super::Grantor) is gone and the last state has been returned. Cancel-safe.
    pub async fn next(&mut self) -> Option<LeadershipState> {
        loop {
            let (seen, gone) = {
                let state = self.state.borrow_and_update();
                (state.view(), state.intent == Intent::Gone)
            };
            if self.delivered.as_ref() != Some(&seen) {
                self.delivered = Some(seen.clone());
                return Some(seen);
            }
            if gone {
                return None;
            }
            self.state.changed().await.ok()?;
        }
    }
}

/// The terms of this process.
///
/// Returns each term in which the gate admits writes, once. If two terms begin between two calls, it returns only the
/// newer one.
#[derive(Debug)]
pub(crate) struct GrantedTerms {
    inner: Arc<Inner>,
    state: watch::Receiver<State>,
    /// The number of the last grant that was returned; 0 if none.
    delivered: u64,
}

impl GrantedTerms {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        let state = inner.state.subscribe();
        Self { inner, state, delivered: 0 }
    }

    /// Waits until the gate admits writes in a new term. Returns None if no more grants can come. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<GrantedTerm> {
        loop {
            {
                // The number and the term match while the lock is held.
                let state = self.state.borrow_and_update();
                if state.is_final {
                    return None;
                }
                let new = state.current.as_ref().filter(|current| current.number != self.delivered);
                if let Some(current) = new.filter(|_| self.inner.word.is_open(|| self.inner.now())) {
                    self.delivered = current.number;
                    let (inner, term) = (self.inner.clone(), current.term.clone());
                    return Some(GrantedTerm { inner, grant: current.number, term });
                }
            }
            // Cannot fail: `self` keeps the sender.
            let _ = self.state.changed().await;
        }
    }
}

/// Tells the task of the election what the rest of the process wants.
#[derive(Debug)]
pub(crate) struct Orders {
    inner: Arc<Inner>,
    state: watch::Receiver<State>,
}

impl Orders {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        let state = inner.state.subscribe();
        Self { inner, state }
    }

    /// Takes the term that a caller has asked to end in good order. Each such order is returned once: after a restored backup
    /// a later term may have the same number, and the order must not end that term, too. After this call,
    /// [`changed`](Self::changed) waits for the next change.
    pub(crate) fn take_asked(&mut self) -> Option<Term> {
        let is_asked = self.state.borrow_and_update().asked.is_some();
        let mut asked = None;
        if is_asked {
            self.inner.state.send_if_modified(|state| {
                asked = state.asked.take();
                false
            });
        }
        asked
    }

    /// Waits until the state has changed since the last [`take_asked`](Self::take_asked). Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        // Cannot fail: `self` keeps the sender.
        let _ = self.state.changed().await;
    }
}

/// A term in which this process leads or has led. Unlike a permit, it does not count as a write under way.
#[derive(Debug)]
pub(crate) struct GrantedTerm {
    inner: Arc<Inner>,
    grant: u64,
    term: Term,
}

// === impl GrantedTerm ===

impl GrantedTerm {
    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    /// Whether the term continues. The term of a leader that is closing continues.
    fn is_valid(&self) -> bool {
        self.inner.is_valid(self.grant)
    }

    /// Whether the gate admits writes in this term.
    pub(crate) fn is_open(&self) -> bool {
        self.is_valid() && self.inner.is_open()
    }

    /// Waits until the term is over. Each poll compares the clock with the deadline. A task can poll this first,
    /// and do other work only while this is pending. If a freeze then lasts past the deadline, the task does no other work
    /// after the freeze. Cancel-safe.
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

    /// When the term ended. If it expired, this is its deadline, even if a task noticed it late. Returns the present
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

/// Remembers which terms had ended at the last check.
#[derive(Debug)]
pub(crate) struct TermLoss {
    inner: Arc<Inner>,
    /// The number of the last grant that is known to have ended.
    seen: u64,
}

impl TermLoss {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        let seen = inner.last_ended();
        Self { inner, seen }
    }

    /// Whether a term was lost since the last call. If only one term ended, by a release after all writes had finished,
    /// this does not count. A passed deadline counts, even if no task has noticed it (rule S1).
    pub(crate) fn occurred(&mut self) -> bool {
        // If no grant is newer than the last ended one, no grant can end. So a follower needs no clock and no lock here.
        if self.seen == self.inner.word.current_grant() {
            return false;
        }
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

    fn term(leadership: &Leadership) -> GrantedTerm {
        leadership.terms().next().now_or_never().flatten().expect("leading")
    }

    #[test]
    fn s1_an_expired_term_ended_at_its_deadline() {
        for noticed in [false, true] {
            let (_grantor, leadership, clock, grant) = granted();
            let (term, deadline) = (term(&leadership), leadership.deadline().unwrap());
            assert!(term.over().now_or_never().is_none());
            clock.advance(60 * SECOND);
            if noticed {
                grant.end(Loss::Expired);
            }
            assert!(term.over().now_or_never().is_some());
            assert_eq!(term.ended_at(), deadline, "noticed: {noticed}");
        }
    }

    #[test]
    fn a_theft_ends_only_the_term_it_hits() {
        let (grantor, leadership, clock, grant) = granted();
        let first = term(&leadership);
        clock.advance(SECOND);
        let seen = leadership.now();
        grant.end(Loss::Taken);
        clock.advance(SECOND);
        assert_eq!(first.ended_at(), seen);
        assert!(leadership.terms().next().now_or_never().is_none(), "no replica leads");
        let deadline = leadership.now().saturating_add(10 * SECOND);
        let _second = grantor.grant(Term::new("u", 2), deadline).unwrap();
        assert!(!first.is_valid() && first.ended_at() == seen);
        assert_eq!(term(&leadership).term(), &Term::new("u", 2));
    }
}
