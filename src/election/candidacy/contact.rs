//! How the calls to the API server go: when the next one may be made, what is doubted, and what the watch has told.

use crate::{
    api::backoff,
    leadership::Moment,
    lease::{ErrLockKind, JITTER, LeaseRecord, LeaseTiming},
};
use std::time::Duration;

/// After so many retry periods without news, a watch is not trusted any more.
const SILENT_PERIODS: u32 = 2;

/// What a candidate knows of its way to the API server.
#[derive(Debug)]
pub(in crate::election) struct Contact {
    timing: LeaseTiming,
    doubt: Doubt,
    /// Calls that failed in a row, reads that only led to another failing write aside.
    failures: u32,
    /// No call is made before this moment.
    pub(super) not_before: Moment,
    /// When a call or the watch last brought news.
    informed: Moment,
    /// Where there is no watch, the next look comes so long after that.
    poll: Duration,
    /// How early the next renewal comes.
    pub(super) early: Duration,
    /// What the watch has told; none while it does not stand.
    watch: Option<Told>,
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

#[derive(Clone, Copy, Debug)]
struct Told {
    /// The newest version that the watch has told of.
    newest: Option<u64>,
    /// When it last told of something, or began.
    at: Moment,
}

impl Contact {
    pub(super) fn new(timing: LeaseTiming) -> Self {
        let origin = Moment::from_nanos(0);
        Self {
            timing,
            doubt: Doubt::None,
            failures: 0,
            not_before: origin,
            informed: origin,
            poll: Duration::ZERO,
            early: Duration::ZERO,
            watch: None,
        }
    }

    pub(super) fn doubt(&self) -> Doubt {
        self.doubt
    }

    pub(in crate::election) fn is_in_doubt(&self) -> bool {
        self.doubt != Doubt::None
    }

    /// When to look at the lease although there is no news.
    pub(super) fn next_look(&self) -> Moment {
        // A holder renews each retry period: a watch that tells nothing for longer may hang.
        let patience = self.watch.map_or(self.poll, |_| self.timing.retry_period() * SILENT_PERIODS);
        self.informed.saturating_add(patience)
    }

    // --- calls ---

    /// A call begins: what happens from here on may be newer than its answer.
    pub(in crate::election) fn begin(&mut self, now: Moment) {
        self.doubt = Doubt::None;
        self.inform(now);
    }

    /// A call has failed. A leader has a deadline and tries again soon; a candidate has time.
    pub(in crate::election) fn fail(&mut self, kind: ErrLockKind, leads: bool, now: Moment) {
        let first = self.timing.pause();
        let longest = if leads { first } else { self.timing.retry_period() };
        let mut pause = backoff(first, self.failures, longest);
        if kind == ErrLockKind::Conflict {
            self.doubt = Doubt::IsOld;
            // Losing a race is part of the game: look at once who won it, and slow down only if it goes on.
            if self.failures == 0 {
                pause = Duration::ZERO;
            }
        } else {
            self.doubt = self.doubt.max(Doubt::MayBeOld);
        }
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(pause);
    }

    /// A call has worked. Returns whether calls had failed before it.
    pub(in crate::election) fn recover(&mut self, now: Moment) -> bool {
        self.not_before = now;
        std::mem::take(&mut self.failures) > 0
    }

    pub(in crate::election) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Elections that acquired, or came out of trouble, at one moment would renew together ever after: the next renewal
    /// comes early, by chance.
    pub(in crate::election) fn fall_out_of_step(&mut self) {
        self.early = self.timing.retry_period().mul_f64(0.5 * fastrand::f64());
    }

    /// The next renewal comes in its time.
    pub(in crate::election) fn keep_step(&mut self) {
        self.early = Duration::ZERO;
    }

    // --- the watch ---

    /// The watch stands. What happened before it did is not known. After an outage, calls work again too.
    pub(in crate::election) fn watch_begins(&mut self, now: Moment) {
        self.watch = Some(Told { newest: None, at: now });
        if self.failures > 1 {
            self.not_before = self.not_before.min(now);
        }
        self.doubt = self.doubt.max(Doubt::MayBeOld);
        self.inform(now);
    }

    /// The watch has told of this version.
    pub(in crate::election) fn watch_tells(&mut self, record: &LeaseRecord, now: Moment) {
        if let Some(told) = &mut self.watch {
            *told = Told { newest: told.newest.max(record.version()), at: now };
        }
        if self.doubt == Doubt::IsOld {
            // Perhaps this is what the write has met.
            self.doubt = Doubt::MayBeOld;
        }
        self.inform(now);
    }

    pub(in crate::election) fn watch_ends(&mut self) {
        self.watch = None;
    }

    pub(in crate::election) fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether the watch stands, and has not told of `known`, which was learnt in other ways. Not if it told of something a
    /// moment ago: an answer may be faster than the watch.
    pub(in crate::election) fn is_watch_silent(&self, known: Option<u64>, now: Moment) -> bool {
        let quiet = |told: Told| now.saturating_since(told.at) >= self.timing.pause();
        self.watch.is_some_and(|told| known > told.newest && quiet(told))
    }

    fn inform(&mut self, now: Moment) {
        self.informed = now;
        self.poll = self.timing.retry_period().mul_f64(1.0 + (JITTER - 1.0) * fastrand::f64());
    }
}
