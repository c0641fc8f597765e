//! How the calls to the API server go: when the next call may be made, what is in doubt, and what the watch has
//! shown.

use crate::{
    api::backoff,
    election::hooks::LeaseCall,
    leadership::Moment,
    lease::{ErrLockKind, JITTER, LeaseRecord, LeaseTiming},
};
use std::time::Duration;

/// What a failed call counts under an order to release the lease. A conflict is usual, so it counts half.
pub(super) const FAILURE: u32 = 2;
pub(super) const CONFLICT: u32 = 1;

/// After this many retry periods without news, a watch is no longer trusted.
const SILENT_PERIODS: f64 = 2.0;

/// For this part of a pause ([`LeaseTiming::pause`]: a quarter of the retry period, with bounds), a candidate that lost a race waits for the watch to show the winner.
const PATIENCE: u32 = 4;

/// What a candidate knows about its connection to the API server.
#[derive(Clone, Debug)]
pub(super) struct ApiHealth {
    timing: LeaseTiming,
    pub(super) staleness: Staleness,
    /// How many calls in a row failed. A read between two failing writes does not reset it.
    failures: u32,
    /// The earliest moment for the next call.
    pub(super) not_before: Moment,
    /// When to read the lease if there is no news.
    pub(super) next_look: Moment,
    /// How early to send the next renewal.
    pub(super) early: Duration,
    /// None while there is no watch. Otherwise the newest version that the watch has shown (0 if none), and the time
    /// of its last news or of its start.
    watch: Option<(u64, Moment)>,
    /// The watch is silent. Another one shall begin.
    rewatch: bool,
}

/// How far to trust what is known about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Staleness {
    None,
    /// The lease may have changed. Read it, unless a renewal is due: the renewal shows the same.
    MayBeOld,
    /// A write met a newer version. Read the lease before the next write.
    IsOld,
    /// The same, because of a lost race. The watch will show the winner.
    LostRace,
}

impl ApiHealth {
    pub(super) fn new(timing: LeaseTiming) -> Self {
        let origin = Moment::from_nanos(0);
        Self {
            timing,
            staleness: Staleness::None,
            failures: 0,
            not_before: origin,
            next_look: origin,
            early: Duration::ZERO,
            watch: None,
            rewatch: false,
        }
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.staleness != Staleness::None
    }

    // --- calls ---

    /// Records that a call begins. Later events may be newer than its answer.
    pub(super) fn begin(&mut self, now: Moment) {
        self.staleness = Staleness::None;
        self.inform(now);
    }

    /// Records that a call failed. A leader has a deadline, so it tries again soon. A candidate waits longer.
    pub(super) fn fail(&mut self, kind: ErrLockKind, leads: bool, now: Moment) {
        let conflict = kind == ErrLockKind::Conflict;
        let first = self.timing.pause();
        let longest = if leads { first } else { self.timing.retry_period() };
        // It is normal to lose a race. Read at once who won it, and slow down only if more calls fail.
        let at_once = conflict && self.failures == 0;
        let pause =
            if at_once { Duration::ZERO } else { backoff(first, self.failures, longest, fastrand::f64()) };
        self.staleness = self.staleness.max(if conflict { Staleness::IsOld } else { Staleness::MayBeOld });
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(pause);
    }

    /// Records that a follower lost a race for the lease. The watch will show who won. In a large crowd many lose, and
    /// their reads would only delay the winner. If the watch shows nothing soon, the candidate reads.
    pub(super) fn lose_a_race(&mut self, now: Moment) {
        let patience = now.saturating_add(self.timing.pause() / PATIENCE);
        self.fail(ErrLockKind::Conflict, false, now);
        self.not_before = self.not_before.max(patience);
        self.staleness = Staleness::LostRace;
    }

    /// Records that the lease may have changed.
    pub(super) fn doubt(&mut self) {
        self.staleness = self.staleness.max(Staleness::MayBeOld);
    }

    /// Takes earlier failures as over: the next call may be made at once.
    pub(super) fn forgive(&mut self) {
        (self.failures, self.not_before) = (0, Moment::from_nanos(0));
    }

    /// Records that a call succeeded.
    ///
    /// If elections acquired or recovered at the same moment, they would always renew together. So the next renewal
    /// comes early by a random time. The renewal after it comes at its normal time.
    pub(super) fn recover(&mut self, call: LeaseCall, now: Moment) {
        self.not_before = now;
        let recovered = std::mem::take(&mut self.failures) > 0;
        if recovered || call == LeaseCall::Acquire {
            self.early = self.timing.retry_period().mul_f64(0.5 * fastrand::f64());
        } else if call == LeaseCall::Renew {
            self.early = Duration::ZERO;
        }
        // If calls work again, the watch may too, but its pauses have grown meanwhile.
        self.rewatch |= recovered && !self.is_watching();
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    // --- the watch ---

    /// Records that the watch has begun. Earlier events are unknown. After an outage, calls work again too.
    pub(super) fn watch_begins(&mut self, now: Moment) {
        self.watch = Some((0, now));
        if self.failures > 1 {
            self.not_before = self.not_before.min(now);
        }
        self.doubt();
        self.inform(now);
    }

    /// Records that the watch has shown this version.
    pub(super) fn watch_tells(&mut self, record: &LeaseRecord, now: Moment) {
        let before = self.watch.map_or(0, |(newest, _)| newest);
        self.watch = self.watch.map(|_| (before.max(record.version().unwrap_or(0)), now));
        // What was on its way before the race does not show who won it.
        if self.staleness == Staleness::LostRace && record.version().is_none_or(|version| version <= before) {
            return self.inform(now);
        }
        if self.staleness == Staleness::LostRace {
            self.staleness = Staleness::None;
            self.failures = 0;
            self.not_before = now;
        }
        // The write that made this doubt may have met this very version.
        self.staleness = self.staleness.min(Staleness::MayBeOld);
        self.inform(now);
    }

    /// Records that the watch has ended. The lease is polled from now on.
    pub(super) fn watch_ends(&mut self, now: Moment) {
        if self.watch.take().is_some() {
            self.inform(now);
        }
    }

    pub(super) fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Asks for another watch if this one runs but has not shown `known`, which came from another source. Not if the watch
    /// showed something a moment ago, since an answer may be faster than the watch.
    pub(super) fn look_at_the_watch(&mut self, known: Option<u64>, now: Moment) {
        let quiet = |at| now.saturating_since(at) >= self.timing.pause();
        self.rewatch |= self.watch.is_some_and(|(newest, at)| known > Some(newest) && quiet(at));
    }

    /// Whether another watch shall begin. Says so once, and takes this one as ended.
    pub(super) fn wants_another_watch(&mut self, now: Moment) -> bool {
        let wants = std::mem::take(&mut self.rewatch);
        if wants {
            self.watch_ends(now);
        }
        wants
    }

    /// Records that there is news, or will be.
    fn inform(&mut self, now: Moment) {
        // A holder renews each retry period. If a watch shows nothing for longer, it may hang.
        let jitter = 1.0 + (JITTER - 1.0) * fastrand::f64();
        let periods = self.watch.map_or(jitter, |_| SILENT_PERIODS);
        self.next_look = now.saturating_add(self.timing.retry_period().mul_f64(periods));
    }
}
