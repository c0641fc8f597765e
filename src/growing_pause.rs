//! The pauses between attempts that fail again and again.

use std::time::Duration;

/// The longest pause between two attempts to watch, for example if the API server refuses the watch.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The pause after `failures + 1` failures in a row. It doubles each time up to `longest`, and half of it is by
/// chance: `draw` is in 0..1.
pub(crate) fn backoff(first: Duration, failures: u32, longest: Duration, draw: f64) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(longest);
    full.mul_f64(0.5 + 0.5 * draw)
}

/// Counts the failures in a row of something that is tried for ever, and says how long to wait after each.
#[derive(Clone, Debug)]
pub struct GrowingPause {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl GrowingPause {
    /// The pauses of something that has not failed yet: half of `first` to `first` after the first failure, then twice as long
    /// after each, up to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// The pauses between attempts to watch: they begin as those of [`new`](Self::new), and grow to a minute.
    #[must_use]
    pub const fn of_watches(first: Duration) -> Self {
        Self::new(first, LONGEST_PAUSE)
    }

    /// Counts one more failure, and returns how long to wait now.
    #[must_use]
    pub fn after_failure(&mut self) -> Duration {
        let pause = backoff(self.first, self.failures, self.longest, fastrand::f64());
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Says that it works: the next failure counts as the first.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether the last attempt has failed.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_until_something_works() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut pauses = GrowingPause::new(first, longest);
        let mut last = Duration::ZERO;
        for round in 0..40 {
            let pause = pauses.after_failure();
            let full = (first * (1 << round.min(10))).min(longest);
            assert!(pause >= full / 2 && pause <= full, "round {round}: {pause:?}");
            assert!(pause >= last || full == longest, "round {round}: {pause:?} after {last:?}");
            last = pause;
        }
        pauses.reset();
        assert!(!pauses.has_failed() && pauses.after_failure() <= first && pauses.has_failed());
    }
}
