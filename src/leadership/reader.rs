//! The reader of a leadership: what gates and observers hold.

use super::{
    clock::{LONGEST_SLEEP, Moment},
    follow::{Changes, GrantedTerms, TermLoss},
    inner::{Inner, Stage, State},
    intent::Intent,
    permit::WritePermit,
    term::{LeadershipState, Term},
};
use std::{
    error::Error,
    fmt,
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Reads the leadership of this process, and admits writes. It cannot change the leadership.
///
/// [`Grantor::leadership`](super::Grantor::leadership) returns it. Clones are cheap and read the same leadership.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub(super) inner: Arc<Inner>,
    /// The number of the only grant in which this reader admits writes; 0 is no grant. None if it admits writes in every
    /// grant.
    only: Option<u64>,
}

/// A [`drain`](Leadership::drain) ran out of time before all admitted writes had finished.
///
/// The writes go on: a drain does not cut them off. While your elector still renews the lease, it may drain again. Or
/// [revoke](super::Grantor::revoke) the term, which cuts the writes off. Then wait before you give the lease up, for the
/// time that [`Leadership::unanswered`] describes.
///
/// The election of this crate revokes the term by itself when its drain timeout is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrStillWriting {
    /// How many admitted writes had not finished.
    pub writes: usize,
}

/// What a follower knows about the election.
pub(crate) struct FollowerView {
    pub(crate) holder: Option<Arc<str>>,
    pub(crate) trouble: Option<Arc<str>>,
    pub(crate) stage: Stage,
}

// === impl Leadership ===

impl Leadership {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, only: None }
    }

    /// The same leadership for the work of `term`: it admits writes in this term alone, and none if the term is over.
    #[must_use]
    pub fn only_in(&self, term: &Term) -> Self {
        let of_term = |state: &State| {
            state.current.as_ref().filter(|current| current.term == *term).map(|current| current.number)
        };
        let only = self.inner.state.read(of_term).unwrap_or(0);
        Self { only: Some(only), ..self.clone() }
    }

    /// The present instant of this leadership's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.inner.clock.now()
    }

    /// Admits a write if this process leads now. Takes no lock and allocates nothing.
    #[must_use]
    pub fn admit(&self) -> Option<WritePermit> {
        self.admit_for().map(|(permit, _)| permit)
    }

    /// As [`admit`](Self::admit). Also returns how long the term lasts without another renewal.
    pub(crate) fn admit_for(&self) -> Option<(WritePermit, Duration)> {
        match self.inner.word.enter(|| self.inner.now()) {
            Ok((grant, left)) if self.only.is_none_or(|only| only == grant) => {
                Some((WritePermit::new(self.inner.clone(), grant), Duration::from_nanos(left)))
            }
            outcome => {
                if outcome.map_or_else(|refused| refused.was_last, |_| self.inner.word.leave()) {
                    self.inner.idle.ring();
                }
                None
            }
        }
    }

    /// Whether this process leads now. A leader that is closing still leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.inner.recheck_locked(|word| word.is_leading(|| self.inner.now()))
    }

    /// Whether the gate would admit a write now.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.inner.is_open() && self.only.is_none_or(|only| only == self.inner.word.current_grant())
    }

    /// The term in which this process leads now.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        if self.is_leader() { self.state().term } else { None }
    }

    /// The validity deadline of the current grant; it may have passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.inner.word.deadline().map(Moment::from_nanos)
    }

    /// How long this process may still write without another renewal. None for a follower.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.deadline()?.saturating_since(self.now());
        (!left.is_zero()).then_some(left)
    }

    /// The last known holder of the lease.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.inner.state.read(|state| state.holder.clone())
    }

    /// The details for the error of a rejected write.
    pub(crate) fn follower_view(&self) -> FollowerView {
        self.inner.state.read(|state| FollowerView {
            holder: state.holder.clone(),
            trouble: state.trouble(),
            stage: state.stage(),
        })
    }

    /// What this process wants of its election.
    #[cfg(any(feature = "election", test))]
    pub(crate) fn intent(&self) -> Intent {
        self.inner.state.read(|state| state.intent)
    }

    /// How far the election has come.
    pub(crate) fn stage(&self) -> Stage {
        self.inner.state.read(State::stage)
    }

    /// Why the election makes no progress, in words for a person. None if all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.inner.state.read(State::trouble)
    }

    /// Does what [`Grantor::set_trouble`](super::Grantor::set_trouble) does, for a layer of the lock.
    #[cfg(feature = "election")]
    pub(crate) fn set_trouble(&self, what: &'static str, trouble: Option<(&'static str, &dyn fmt::Display)>) {
        self.inner.set_trouble(what, trouble);
    }

    /// Asks the election to end `term` in good order.
    #[cfg(feature = "election")]
    pub(crate) fn ask_for(&self, term: Term) {
        self.inner.state.send_if_modified(|state| {
            state.asked = Some(term);
            true
        });
    }

    /// How many admitted writes have not finished.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        self.inner.word.admitted()
    }

    /// The present state, as observers see it.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.inner.state.read(State::view)
    }

    /// Follows leadership: first the present state, then each change.
    pub fn changes(&self) -> Changes {
        Changes::new(self.inner.state.subscribe())
    }

    /// Follows the terms of this process.
    pub(crate) fn terms(&self) -> GrantedTerms {
        GrantedTerms::new(self.inner.clone())
    }

    /// Returns a [`TermLoss`], which says whether a term was lost after this call.
    #[cfg(any(feature = "election", test))]
    pub(crate) fn term_loss(&self) -> TermLoss {
        TermLoss::new(self.inner.clone())
    }

    /// Waits until the gate admits writes, and returns the term. It never returns a term that has ended. If the
    /// [`Grantor`](super::Grantor) is gone or the election stops for good, it waits for ever. Cancel-safe.
    pub async fn elected(&self) -> Term {
        match self.terms().next().await {
            Some(term) => term.term().clone(),
            None => pending().await,
        }
    }

    /// When an admitted write last ended without an answer, in this term or an earlier one. None if every write was
    /// answered.
    ///
    /// Such a write was dropped, was cut off, or failed. The API server may still carry it out. So an elector must
    /// wait before it gives up the lease: until this instant plus the longest delay of a request
    /// ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
    ///
    /// A write that is still under way may also end without an answer, so call [`drain`](Self::drain) first.
    #[must_use]
    pub fn unanswered(&self) -> Option<Moment> {
        self.inner.unanswered()
    }

    /// Waits until no admitted write is under way, but at most `bound`. Call [`close`](super::Grantor::close) or
    /// [`revoke`](super::Grantor::revoke) first: an open gate may keep admitting writes. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrStillWriting`] if the time ends first.
    pub async fn drain(&self, bound: Duration) -> Result<(), ErrStillWriting> {
        timeout(bound, self.idle()).await.map_err(|_| ErrStillWriting { writes: self.writes_under_way() })
    }

    /// Whether no write can begin before the next grant, and none is under way (rule S4).
    pub(crate) fn is_quiet(&self) -> bool {
        // Look at the gate before you count: if a write is admitted between the two looks, the count includes the write.
        let is_open = self.inner.is_open();
        !is_open && self.writes_under_way() == 0
    }

    /// Waits until no admitted write is under way.
    pub(crate) async fn idle(&self) {
        loop {
            let mut woken = pin!(self.inner.idle.next());
            woken.as_mut().enable();
            if self.writes_under_way() == 0 {
                return;
            }
            woken.await;
        }
    }

    /// Sleeps until `moment` on this leadership's clock, which counts suspend. Each poll looks at that clock.
    /// Cancel-safe.
    pub(crate) async fn sleep_until(&self, moment: Moment) {
        while self.now() < moment {
            let left = moment.saturating_since(self.now());
            let mut nap = pin!(sleep(left.min(LONGEST_SLEEP)));
            poll_fn(|cx| if self.now() < moment { nap.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        }
    }

    /// The moment after which no admitted write of this process can take effect, if each request arrives at most
    /// `margin` late (rule S4). This does not cover writes that are still under way.
    pub(crate) fn settles_at(&self, margin: Duration) -> Moment {
        self.unanswered().map_or(Moment::from_nanos(0), |last| last.saturating_add(margin))
    }
}

// === impl ErrStillWriting ===

impl fmt::Display for ErrStillWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} admitted writes did not finish within the drain timeout", self.writes)
    }
}

impl Error for ErrStillWriting {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{leadership::Grantor, testing::ManualClock};
    use futures_util::FutureExt;

    /// The timer's clock may be behind: it does not count suspend.
    #[tokio::test(start_paused = true)]
    async fn s13_a_sleep_ends_at_its_moment_on_the_leaderships_clock() {
        let clock = ManualClock::new();
        let grantor = Grantor::with_clock(Arc::new(clock.clone()));
        let (leadership, second) = (grantor.leadership(), Duration::from_secs(1));
        let mut sleeping = pin!(leadership.sleep_until(grantor.now().saturating_add(2 * second)));
        for _ in 0..2 {
            assert!(sleeping.as_mut().now_or_never().is_none());
            clock.advance(second);
        }
        assert!(sleeping.now_or_never().is_some());
    }
}
