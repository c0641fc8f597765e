//! How long a candidate stays away after it has given the lease up by itself, and how long it asks no holder for the lease.

use crate::{growing_pause::GrowingPause, leadership::Moment};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long a candidate stays away: the first time, and at most.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// How long a preferred candidate then asks no holder: the first time, and at most. Each question ends the work of a holder that
/// works well, so these pauses are longer.
const FIRST_SILENCE: Duration = Duration::from_secs(15);
const LONGEST_SILENCE: Duration = Duration::from_secs(600);
/// If a candidate has led for this long, it counts as healthy. What comes after that counts as the first failure.
const STEADY: Duration = Duration::from_secs(120);

/// Counts how often a candidate has given the lease up by itself, or could not have led. The clones count together.
#[derive(Clone, Debug)]
pub(super) struct Retreat(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    pauses: GrowingPause,
    silences: GrowingPause,
    /// This candidate asks no holder before.
    asks_from: Moment,
    /// Since when the candidate leads.
    leads_from: Option<Moment>,
}

impl Retreat {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Counts {
            pauses: GrowingPause::new(FIRST, LONGEST),
            silences: GrowingPause::new(FIRST_SILENCE, LONGEST_SILENCE),
            asks_from: Moment::from_nanos(0),
            leads_from: None,
        })))
    }

    /// Takes in that the candidate leads from `now` on.
    pub(super) fn leads(&self, now: Moment) {
        self.counts().leads_from = Some(now);
    }

    /// Takes in that the candidate leads no more.
    pub(super) fn loses(&self, now: Moment) {
        let mut counts = self.counts();
        if counts.leads_from.take().is_some_and(|from| STEADY <= now.saturating_since(from)) {
            counts.pauses.reset();
            counts.silences.reset();
            counts.asks_from = now;
        }
    }

    /// Takes in that the candidate gives the lease up, and returns how long it stays away.
    pub(super) fn pause(&self, now: Moment) -> Duration {
        self.loses(now);
        self.counts().pauses.after_failure()
    }

    /// Takes in that the candidate could not have led a moment ago, so that it asks no holder for a while.
    pub(super) fn fall_silent(&self, now: Moment) {
        let mut counts = self.counts();
        counts.asks_from = now.saturating_add(counts.silences.after_failure());
    }

    /// From when on this candidate may ask a holder for the lease.
    pub(super) fn asks_from(&self) -> Moment {
        self.counts().asks_from
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_minutes_of_leading_make_the_next_failure_the_first() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let retreat = Retreat::new();
        let first = |pause| pause <= FIRST;
        assert!(first(retreat.pause(at(1))) && !first(retreat.pause(at(2))));
        retreat.leads(at(10));
        retreat.loses(at(129));
        assert!(!first(retreat.pause(at(500))), "the time after the loss does not count");
        retreat.leads(at(600));
        retreat.loses(at(720));
        assert!(first(retreat.pause(at(721))));
        retreat.leads(at(800));
        assert!(first(retreat.pause(at(920))), "it gives the lease up itself");
        for _ in 0..9 {
            retreat.fall_silent(at(930));
        }
        assert!(at(930 + 300) <= retreat.asks_from() && retreat.asks_from() <= at(930 + 600));
        retreat.leads(at(2000));
        retreat.loses(at(2120));
        assert_eq!(retreat.asks_from(), at(2120), "it may ask at once");
        retreat.fall_silent(at(2130));
        assert!(retreat.asks_from() <= at(2145), "it is the first failure again");
    }
}
