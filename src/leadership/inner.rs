//! The state that the owner and the readers of one leadership share.

use super::{
    clock::{Clock, Moment},
    intent::Intent,
    sync::{AtomicU64, Bell, Ordering, Watched},
    term::{LeadershipState, Loss, Term},
    troubles::Troubles,
    word::Word,
};
use crate::rate_limited_log::Line;
use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

/// The trouble of a leadership that can have no more grants.
pub(crate) const ENDED: &str = "the leader election has ended; restart the process to contend again";
/// The trouble of an election that the program does not drive yet.
pub(crate) const NOT_BEGUN: &str = "the election of this process has not begun: its code must call `run`, `run_until`, \
                                    `run_while_leading` or `start`";

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) word: Word,
    pub(super) clock: Arc<dyn Clock>,
    /// When an admitted write last ended without an answer; 0 if every write was answered. The end of a term does not
    /// reset this time (rule S4).
    unanswered: AtomicU64,
    /// All other state. A thread changes the word only while it holds the lock of this state.
    pub(super) state: Watched<State>,
    /// All troubles. The state also keeps the text of the first trouble, and readers take the text from there.
    troubles: Mutex<Troubles>,
    /// Woken when a grant ends.
    pub(super) ended: Bell,
    /// Woken when the last admitted write finishes after a close.
    pub(super) idle: Bell,
}

/// The state under the lock.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The present grant, until its end is recorded.
    pub(super) current: Option<Current>,
    /// How the last grant ended.
    last_end: Option<End>,
    /// True while the gate admits no new writes and the admitted ones finish.
    pub(super) closing: bool,
    /// The term whose gate waits to open.
    pub(super) opening: Option<Term>,
    pub(super) intent: Intent,
    /// This process will not contend again: it stops for good.
    pub(super) is_final: bool,
    /// The term that is to end in good order, because a program or a layer of the lock has asked for it.
    pub(super) asked: Option<Term>,
    /// The last known holder of the lease.
    pub(super) holder: Option<Arc<str>>,
    /// The text of the trouble that ranks first.
    trouble: Option<Arc<str>>,
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
    /// When the grant ended. If the deadline passed before the end was recorded, this is the deadline.
    pub(super) at: Moment,
}

/// How far an election has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is built, and the program does not drive it yet.
    NotBegun,
    UnderWay,
    /// No more grants can come.
    Over,
}

impl Inner {
    pub(super) fn new(clock: Arc<dyn Clock>, state: State) -> Self {
        Self {
            word: Word::new(),
            clock,
            unanswered: AtomicU64::new(0),
            state: Watched::new(state),
            troubles: Mutex::default(),
            ended: Bell::default(),
            idle: Bell::default(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// The present time, for destructors: a panic of the clock in a destructor can abort the process. Returns None if the
    /// clock panics.
    pub(super) fn time_of_end(&self) -> Option<Moment> {
        catch_unwind(AssertUnwindSafe(|| self.clock.now())).ok()
    }

    /// Whether a write would be admitted now.
    pub(super) fn is_open(&self) -> bool {
        self.recheck_locked(|word| word.is_open(|| self.now()))
    }

    /// Whether `grant` continues. After this has returned false, `grant` never continues again.
    pub(super) fn is_valid(&self, grant: u64) -> bool {
        self.recheck_locked(|word| word.is_valid(grant, || self.now()))
    }

    /// Returns what `look` says of the word. If the first answer is no, looks again under the lock, because another thread
    /// may be in the middle of a grant or a renewal. If the first answer is yes, takes no lock.
    pub(super) fn recheck_locked(&self, look: impl Fn(&Word) -> bool) -> bool {
        look(&self.word) || self.after_changes(look)
    }

    #[cold]
    fn after_changes(&self, look: impl Fn(&Word) -> bool) -> bool {
        self.state.read(|_| look(&self.word))
    }

    // --- writes without an answer ---

    /// Records that an admitted write ends at `at` without an answer.
    pub(super) fn note_unanswered(&self, at: Moment) {
        self.unanswered.fetch_max(at.as_nanos().max(1), Ordering::AcqRel);
    }

    pub(super) fn unanswered(&self) -> Option<Moment> {
        let at = self.unanswered.load(Ordering::Acquire);
        (at > 0).then(|| Moment::from_nanos(at))
    }

    // --- troubles ---

    pub(super) fn set_trouble(&self, what: &'static str, trouble: Option<(&'static str, &dyn Display)>) {
        let mut troubles = self.troubles();
        let line = troubles.set(what, trouble, self.clock.now());
        if line.is_some() {
            let text = troubles.text().cloned();
            self.state.send_if_modified(|state| {
                state.trouble = text;
                false
            });
        }
        drop(troubles);
        // Log last, without the locks: then a log that blocks delays no reader.
        line.into_iter().for_each(Line::log);
    }

    fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- how grants end ---

    /// Closes the gate to new writes, and applies `change` under the same lock.
    pub(super) fn close_and(&self, change: impl FnOnce(&mut State)) {
        self.state.send_if_modified(|state| {
            self.word.close();
            let before = (state.intent, state.is_final, state.closing);
            change(state);
            state.closing |= state.current.is_some();
            // Wake a task that waits for a term, so that it learns that no term will come.
            before != (state.intent, state.is_final, state.closing)
        });
    }

    /// Ends the current grant at once.
    pub(super) fn revoke(&self, loss: Loss) {
        self.end_if(loss, |_| true);
    }

    /// Ends the current grant if there is one and `which` accepts its number.
    pub(super) fn end_if(&self, loss: Loss, which: impl FnOnce(u64) -> bool) {
        let mut ended = None;
        self.state.send_if_modified(|state| {
            if state.current.as_ref().is_some_and(|current| which(current.number)) {
                ended = self.end(state, loss);
            }
            ended.is_some()
        });
        let Some(term) = ended else { return };
        self.ended.ring();
        if loss == Loss::Released {
            // Whether the release succeeds is not known yet (rule S3).
            tracing::info!(%term, loss = loss.as_str(), "leadership given up: the lease is released next");
        } else {
            tracing::warn!(%term, loss = loss.as_str(), "leadership lost: {loss}");
        }
    }

    /// Ends the current grant, if there is one, and records how it ended.
    pub(super) fn end(&self, state: &mut State, loss: Loss) -> Option<Term> {
        let Current { number, term } = state.current.take()?;
        let deadline = self.word.deadline();
        self.word.revoke();
        // Read the clock after the word has changed: this grant admits no write after this time.
        let now = self.time_of_end().or(deadline.map(Moment::from_nanos)).unwrap_or(Moment::from_nanos(0));
        // This end cuts off the writes under way, even if their tasks notice it late. Before a release, the election has
        // waited for all writes.
        if loss != Loss::Released && self.word.admitted() > 0 {
            self.note_unanswered(now);
        }
        state.closing = false;
        let at = deadline.map_or(now, |deadline| now.min(Moment::from_nanos(deadline)));
        state.last_end = Some(End { number, loss, at });
        Some(term)
    }

    /// Ends the current grant if its deadline has passed. It checks this under the lock, so that it does not undo a
    /// renewal.
    pub(super) fn expire(&self) {
        self.end_if(Loss::Expired, |_| self.word.deadline().is_some_and(|deadline| self.now() >= deadline));
    }

    /// How the term of the ended `grant` was lost.
    pub(super) fn loss_of(&self, grant: u64) -> Loss {
        // If there is no record, the deadline has passed and no task has noticed it yet.
        self.state.read(|state| state.end_of(grant).map_or(Loss::Expired, |end| end.loss))
    }

    /// The number of the last grant that has ended. It never goes back.
    pub(super) fn last_ended(&self) -> u64 {
        let newest = self.word.current_grant();
        newest - u64::from(self.is_valid(newest))
    }
}

impl State {
    /// The state of an election that the program does not drive yet.
    pub(super) fn not_begun() -> Self {
        Self { intent: Intent::NotBegun, ..Self::default() }
    }

    /// Whether grants can still come.
    pub(super) fn stage(&self) -> Stage {
        match self.intent {
            Intent::NotBegun => Stage::NotBegun,
            _ if self.is_final => Stage::Over,
            _ => Stage::UnderWay,
        }
    }

    /// Sets what this process wants, unless the grantor is gone. Returns whether the intent has changed.
    pub(super) fn want(&mut self, intent: Intent) -> bool {
        let is_news = self.intent != Intent::Gone && self.intent != intent;
        if is_news {
            self.intent = intent;
        }
        is_news
    }

    /// Why the election makes no progress.
    pub(super) fn trouble(&self) -> Option<Arc<str>> {
        static NOT_BEGUN_TEXT: LazyLock<Arc<str>> = LazyLock::new(|| NOT_BEGUN.into());
        static ENDED_TEXT: LazyLock<Arc<str>> = LazyLock::new(|| ENDED.into());
        match self.intent {
            Intent::NotBegun => Some(NOT_BEGUN_TEXT.clone()),
            Intent::Gone => Some(ENDED_TEXT.clone()),
            _ => self.trouble.clone(),
        }
    }

    /// How `grant` ended. If a later grant has ended since then, returns how that one ended.
    pub(super) fn end_of(&self, grant: u64) -> Option<End> {
        self.last_end.filter(|end| end.number >= grant)
    }

    /// The state that observers see.
    pub(super) fn view(&self) -> LeadershipState {
        LeadershipState {
            term: self.current.as_ref().map(|current| current.term.clone()),
            closing: self.closing,
            opening: self.opening.clone(),
            holder: self.holder.clone(),
            lost: self.last_end.map(|end| end.loss),
        }
    }
}
