//! How the calls to the API server go: when the next one may be made, what is doubted, and what the watch has told.

use crate::{
    api::backoff,
    election::hooks::LeaseCall,
    leadership::Moment,
    lease::{ErrLockKind, JITTER, LeaseRecord, LeaseTiming},
};
use std::time::Duration;

/// After so many retry periods without news, a watch is not trusted any more.
const SILENT_PERIODS: f64 = 2.0;

/// What a candidate knows of its way to the API server.
#[derive(Debug)]
pub(in crate::election) struct Contact {
    timing: LeaseTiming,
    pub(super) doubt: Doubt,
    /// Calls that failed in a row, reads that only led to another failing write aside.
    failures: u32,
    /// No call is made before this moment.
    pub(super) not_before: Moment,
    /// When to look at the lease although there is no news.
    pub(super) next_look: Moment,
    /// How early the next renewal comes.
    pub(super) early: Duration,
    /// The newest version that the watch has told of, 0 if it has told of none, and when it last told of something or began;
    /// none while the watch does not stand.
    watch: Option<(u64, Moment)>,
}

/// How far what is known of the lease can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    None,
    /// Something may have happened meanwhile: read, unless a renewal is due, which tells as much.
    MayBeOld,
    /// A write met a newer version: read before the next one.
    IsOld,
}

impl Contact {
    pub(super) fn new(timing: LeaseTiming) -> Self {
        let origin = Moment::from_nanos(0);
        Self {
            timing,
            doubt: Doubt::None,
            failures: 0,
            not_before: origin,
            next_look: origin,
            early: Duration::ZERO,
            watch: None,
        }
    }

    pub(in crate::election) fn is_in_doubt(&self) -> bool {
        self.doubt != Doubt::None
    }

    // --- calls ---

    /// A call begins: what happens from here on may be newer than its answer.
    pub(in crate::election) fn begin(&mut self, now: Moment) {
        self.doubt = Doubt::None;
        self.inform(now);
    }

    /// A call has failed. A leader has a deadline and tries again soon; a candidate has time.
    pub(in crate::election) fn fail(&mut self, kind: ErrLockKind, leads: bool, now: Moment) {
        let conflict = kind == ErrLockKind::Conflict;
        let first = self.timing.pause();
        let longest = if leads { first } else { self.timing.retry_period() };
        // Losing a race is part of the game: look at once who won it, and slow down only if it goes on.
        let at_once = conflict && self.failures == 0;
        let pause = if at_once { Duration::ZERO } else { backoff(first, self.failures, longest) };
        self.doubt = self.doubt.max(if conflict { Doubt::IsOld } else { Doubt::MayBeOld });
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(pause);
    }

    /// A call has worked. Returns whether calls had failed before it.
    ///
    /// Elections that acquired, or came out of trouble, at one moment would renew together ever after: the next renewal
    /// comes early, by chance, and the one after it in its time.
    pub(in crate::election) fn recover(&mut self, call: LeaseCall, now: Moment) -> bool {
        self.not_before = now;
        let recovered = std::mem::take(&mut self.failures) > 0;
        if recovered || call == LeaseCall::Acquire {
            self.early = self.timing.retry_period().mul_f64(0.5 * fastrand::f64());
        } else if call == LeaseCall::Renew {
            self.early = Duration::ZERO;
        }
        recovered
    }

    pub(in crate::election) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    // --- the watch ---

    /// The watch stands. What happened before it did is not known. After an outage, calls work again too.
    pub(in crate::election) fn watch_begins(&mut self, now: Moment) {
        self.watch = Some((0, now));
        if self.failures > 1 {
            self.not_before = self.not_before.min(now);
        }
        self.doubt = self.doubt.max(Doubt::MayBeOld);
        self.inform(now);
    }

    /// The watch has told of this version.
    pub(in crate::election) fn watch_tells(&mut self, record: &LeaseRecord, now: Moment) {
        self.watch = self.watch.map(|(newest, _)| (newest.max(record.version().unwrap_or(0)), now));
        // Perhaps this is what a write has met that found what is known to be old.
        self.doubt = self.doubt.min(Doubt::MayBeOld);
        self.inform(now);
    }

    /// The watch does not stand any more: from now on the lease is polled.
    pub(in crate::election) fn watch_ends(&mut self, now: Moment) {
        if self.watch.take().is_some() {
            self.inform(now);
        }
    }

    pub(in crate::election) fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether the watch stands, and has not told of `known`, which was learnt in other ways. Not if it told of something a
    /// moment ago: an answer may be faster than the watch.
    pub(in crate::election) fn is_watch_silent(&self, known: Option<u64>, now: Moment) -> bool {
        let quiet = |at| now.saturating_since(at) >= self.timing.pause();
        self.watch.is_some_and(|(newest, at)| known > Some(newest) && quiet(at))
    }

    /// There is news, or will be.
    fn inform(&mut self, now: Moment) {
        // A holder renews each retry period: a watch that tells nothing for longer may hang.
        let jitter = 1.0 + (JITTER - 1.0) * fastrand::f64();
        let periods = self.watch.map_or(jitter, |_| SILENT_PERIODS);
        self.next_look = now.saturating_add(self.timing.retry_period().mul_f64(periods));
    }
}
