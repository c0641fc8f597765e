//! How long a candidate stays away after work that ended early.

use crate::api::backoff;
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// If work has run this long, it counts as healthy. Its end then counts as the first failure.
const STEADY: Duration = Duration::from_secs(120);

/// Counts how often in a row work ended early.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after work that ran for `run` and then ended early. It doubles each time, and half of it is random.
    pub(super) fn after(&mut self, run: Duration) -> Duration {
        if run >= STEADY {
            self.failures = 0;
        }
        let pause = backoff(FIRST, self.failures, LONGEST);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_reset_after_healthy_work() {
        let mut backoff = Backoff::default();
        let mut last = Duration::ZERO;
        for round in 0..40 {
            let pause = backoff.after(STEADY.saturating_sub(Duration::from_secs(1)));
            let full = (FIRST * (1 << round.min(10))).min(LONGEST);
            assert!(pause >= full / 2 && pause <= full, "round {round}: {pause:?}");
            assert!(pause >= last || full == LONGEST, "round {round}: {pause:?} after {last:?}");
            last = pause;
        }
        assert!(backoff.after(STEADY) <= FIRST);
    }
}
