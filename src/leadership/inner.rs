//! What the owner and the readers of one leadership share.

use super::{
    clock::{Clock, Moment},
    term::{LeadershipState, Loss, Term},
    word::Word,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, watch};

/// How many ends of grants are remembered.
const ENDS: usize = 8;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) word: Word,
    pub(super) clock: Arc<dyn Clock>,
    /// When an admitted write last ended without an answer; 0 if none has. It outlives the term (rule S4).
    unanswered: AtomicU64,
    /// All else; its lock is the one under which the word changes.
    pub(super) state: watch::Sender<State>,
    /// Woken whenever a grant ends.
    pub(super) ended: Arc<Notify>,
    /// Woken when the last admitted write has finished after a close.
    pub(super) idle: Notify,
}

/// What changes under the lock.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The present grant, until its end is recorded.
    pub(super) current: Option<Current>,
    /// How the last grants ended, the newest last.
    ends: VecDeque<End>,
    /// The gate admits nothing more while admitted writes finish.
    pub(super) closing: bool,
    pub(super) grants: Grants,
    /// The last known holder of the lease.
    pub(super) holder: Option<Arc<str>>,
    /// What keeps the election from making progress; observers are not woken by it.
    pub(super) trouble: Option<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Current {
    pub(super) number: u64,
    pub(super) term: Term,
}

/// How a grant ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) number: u64,
    pub(super) loss: Loss,
    /// At its deadline if that had passed by then.
    pub(super) at: Moment,
}

/// Whether a term may be granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grants {
    #[default]
    Allowed,
    /// Not for now.
    Suspended,
    /// Never again.
    Sealed,
    /// Never again, and nothing else changes either: the [`Grantor`](super::Grantor) is gone.
    Gone,
}

impl Inner {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            word: Word::new(),
            clock,
            unanswered: AtomicU64::new(0),
            state: watch::Sender::new(State::default()),
            ended: Arc::default(),
            idle: Notify::new(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// Whether a write would be admitted now.
    pub(super) fn is_open(&self) -> bool {
        self.word.is_open(|| self.now())
    }

    // --- writes without an answer ---

    /// Notes that an admitted write has ended without an answer, or will, at `at`.
    pub(super) fn note_unanswered(&self, at: Moment) {
        self.unanswered.fetch_max(at.as_nanos(), Ordering::AcqRel);
    }

    pub(super) fn unanswered(&self) -> Option<Moment> {
        let at = self.unanswered.load(Ordering::Acquire);
        (at > 0).then(|| Moment::from_nanos(at))
    }

    // --- how grants end ---

    /// Closes the gate to new writes, and makes `change` under the same lock.
    pub(super) fn close_and(&self, change: impl FnOnce(&mut State)) {
        self.state.send_if_modified(|state| {
            self.word.close();
            let before = (state.grants, state.closing);
            change(state);
            state.closing |= state.current.is_some();
            // A task that waits for a term learns that none comes any more.
            before != (state.grants, state.closing)
        });
    }

    /// Ends the current grant at once, whichever it is.
    pub(super) fn revoke(&self, loss: Loss) {
        self.end_if(loss, |_| true);
    }

    /// Ends the current grant if there is one and `which` says so of its number.
    pub(super) fn end_if(&self, loss: Loss, which: impl FnOnce(u64) -> bool) {
        let mut ended = None;
        self.state.send_if_modified(|state| {
            if state.current.as_ref().is_some_and(|current| which(current.number)) {
                ended = self.end(state, loss);
            }
            ended.is_some()
        });
        let Some(term) = ended else { return };
        self.ended.notify_waiters();
        if loss == Loss::Released {
            tracing::info!(%term, loss = loss.as_str(), "leadership given up: {loss}");
        } else {
            tracing::warn!(%term, loss = loss.as_str(), "leadership lost: {loss}");
        }
    }

    /// Ends the current grant, if there is one, and records how.
    pub(super) fn end(&self, state: &mut State, loss: Loss) -> Option<Term> {
        let Current { number, term } = state.current.take()?;
        let deadline = self.word.deadline();
        self.word.revoke();
        // Read after the word has changed: no write that the grant admitted is later than this.
        let now = self.clock.now();
        // Admitted writes are cut off, however late their tasks notice that. A release has waited for all of them.
        if loss != Loss::Released && self.word.admitted() > 0 {
            self.note_unanswered(now);
        }
        state.closing = false;
        if state.ends.len() == ENDS {
            state.ends.pop_front();
        }
        let at = deadline.map_or(now, |deadline| now.min(Moment::from_nanos(deadline)));
        state.ends.push_back(End { number, loss, at });
        Some(term)
    }

    /// Ends the current grant if its deadline has passed, judged under the lock so that a renewal is not undone.
    pub(super) fn expire(&self) {
        self.end_if(Loss::Expired, |_| self.word.deadline().is_some_and(|deadline| self.now() >= deadline));
    }

    /// How the term of `grant`, which has ended, was lost.
    pub(super) fn loss_of(&self, grant: u64) -> Loss {
        // Without a record, a deadline has passed that has not been acted upon.
        self.state.borrow().end_of(grant).map_or(Loss::Expired, |end| end.loss)
    }

    /// The number of the last grant that has ended; it never goes back.
    pub(super) fn last_ended(&self) -> u64 {
        let is_valid = |grant| self.word.is_valid(grant, || self.now());
        let newest = self.word.current_grant();
        if is_valid(newest) {
            return newest - 1;
        }
        // A grant or a renewal may be half written: it is whole under the lock.
        let _whole = self.state.borrow();
        let newest = self.word.current_grant();
        if is_valid(newest) { newest - 1 } else { newest }
    }
}

impl State {
    /// How `grant` ended; of one that ended long ago, how the oldest did that is still known.
    pub(super) fn end_of(&self, grant: u64) -> Option<End> {
        self.ends.iter().find(|end| end.number >= grant).copied()
    }

    /// What observers see.
    pub(super) fn view(&self) -> LeadershipState {
        LeadershipState {
            term: self.current.as_ref().map(|current| current.term.clone()),
            closing: self.closing,
            holder: self.holder.clone(),
            lost: self.ends.back().map(|end| end.loss),
        }
    }
}
