//! How long a candidate stays away after it has given the lease up by itself.

use crate::{growing_pause::GrowingPause, leadership::Moment};
use std::time::Duration;

/// How long a candidate stays away: the first time, and at most.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// If a candidate has led for this long, it counts as healthy. What comes after that counts as the first failure.
const STEADY: Duration = Duration::from_secs(120);

/// Counts how often a candidate has given the lease up by itself.
#[derive(Debug)]
pub(super) struct Retreat {
    pauses: GrowingPause,
    /// Since when the candidate leads.
    leads_from: Option<Moment>,
}

impl Retreat {
    pub(super) const fn new() -> Self {
        Self { pauses: GrowingPause::new(FIRST, LONGEST), leads_from: None }
    }

    /// Takes in that the candidate leads from `now` on.
    pub(super) const fn leads(&mut self, now: Moment) {
        self.leads_from = Some(now);
    }

    /// Takes in that the candidate leads no more.
    pub(super) fn loses(&mut self, now: Moment) {
        if self.leads_from.take().is_some_and(|from| STEADY <= now.saturating_since(from)) {
            self.pauses.reset();
        }
    }

    /// Takes in that the candidate gives the lease up, and returns how long it stays away.
    pub(super) fn pause(&mut self, now: Moment) -> Duration {
        self.loses(now);
        self.pauses.after_failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_minutes_of_leading_make_the_next_failure_the_first() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let mut retreat = Retreat::new();
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
    }
}
