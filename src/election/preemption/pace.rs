//! How often one candidate preempts others.

use crate::leadership::Moment;
use std::time::Duration;

/// The longest pause between two preemptions by one candidate.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Keeps candidates that each think that they precede from preempting each other all the time.
#[derive(Debug)]
pub(super) struct Pace {
    first_pause: Duration,
    /// The last preemption, and the pause after it.
    last: Option<(Moment, Duration)>,
    /// A preemption was tried, and is not known to have happened yet.
    trying: bool,
}

impl Pace {
    pub(super) fn new(first_pause: Duration) -> Self {
        Self { first_pause, last: None, trying: false }
    }

    /// Notes that a claim is tried, and whether it preempts.
    pub(super) fn try_one(&mut self, preempting: bool) {
        self.trying = preempting;
    }

    /// Notes that the last claim has come to stand in the lease.
    pub(super) fn settle(&mut self, at: Moment) {
        if std::mem::take(&mut self.trying) {
            self.note(at);
        }
    }

    fn note(&mut self, at: Moment) {
        let pause = match self.last {
            Some((_, pause)) if self.is_restless(at) => pause.saturating_mul(2),
            _ => self.first_pause,
        };
        self.last = Some((at, pause.min(LONGEST_PAUSE.max(self.first_pause))));
    }

    pub(super) fn not_before(&self) -> Moment {
        self.last.map_or(Moment::from_nanos(0), |(last, pause)| last.saturating_add(pause))
    }

    /// Of candidates that preempt each other in turn, the slowest finds itself restless each time: its pause is what they
    /// all wait for.
    pub(super) fn is_restless(&self, now: Moment) -> bool {
        self.last.is_some_and(|(last, pause)| now < last.saturating_add(pause.saturating_mul(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_between_two_preemptions_grow_to_an_hour() {
        let first_pause = Duration::from_secs(15);
        let mut pace = Pace::new(first_pause);
        let mut now = Moment::from_nanos(1_000_000_000_000);
        assert!(pace.not_before() <= now);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            pace.note(now);
            let next = pace.not_before();
            pauses.push(next.saturating_since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        now = now.saturating_add(LONGEST_PAUSE * 2);
        assert!(!pace.is_restless(now));
        pace.note(now);
        assert_eq!(pace.not_before(), now.saturating_add(first_pause));
    }
}
