//! How long a candidate waits before it takes a free lease. This time is random, so that many candidates do not all
//! write at the same moment.
//!
//! A candidate waits a random part of a range. Before the candidate has lost a race, the range is empty: a few
//! candidates need no range, since a lost race costs only one write. With each lost race the range at least doubles.
//! While many candidates write at once, the API server takes long to answer each of them, so the time of the first lost
//! race already shows that there is a crowd. If the lease then stays free for much longer than a write takes, the range
//! is too long for this crowd, and it halves.
//!
//! This decides only *when* a candidate tries to take the lease. Safety does not depend on it, because each attempt is
//! a compare-and-swap.

use crate::leadership::Moment;
use std::time::Duration;

/// The range after the first lost race. With this range, about ten of 300 candidates try to take the lease while one of
/// them writes.
const FIRST: Duration = Duration::from_millis(64);
/// A shorter range is empty, since a write takes longer.
const SHORTEST: Duration = Duration::from_millis(4);

#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    range: Duration,
    /// How long the last lost race took.
    took: Duration,
    /// A random number in 0..1, evenly distributed. Each look at the lease draws a new one.
    draw: f64,
    /// Since when the lease has been free to take. None if it is not free.
    free_since: Option<Moment>,
}

// === impl Spread ===

impl Spread {
    /// Takes in a new state of the lease. `free` says whether a candidate may take the lease, and `draw` is a random
    /// number in 0..1.
    pub(super) fn observe(&mut self, free: bool, now: Moment, draw: f64) {
        let since = self.free_since.filter(|_| !free);
        if since.is_some_and(|since| now.saturating_since(since) > self.took + self.range / 4) {
            self.range = if self.range < SHORTEST { Duration::ZERO } else { self.range / 2 };
        }
        self.free_since = if free { self.free_since.or(Some(now)) } else { None };
        self.draw = draw;
    }

    /// Records that another candidate was faster. `took` is how long the API server took for this answer. The range
    /// grows at most to `longest`, which is the pause of the lease timing.
    pub(super) fn lost_a_race(&mut self, took: Duration, longest: Duration) {
        self.took = took;
        // If the range is four times as long as this answer took, about a quarter of the candidates write while the API
        // server answers one of them.
        self.range = (self.range * 2).max(FIRST).max(took * 4).min(longest);
    }

    /// The random number in 0..1 that the last look at the lease drew.
    pub(super) const fn draw(&self) -> f64 {
        self.draw
    }

    /// How long this candidate waits for the lease once it is free.
    pub(super) fn wait(&self) -> Duration {
        self.range.mul_f64(self.draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(500);

    /// The spread after `lost` lost races. The lease has been free since then.
    fn after(lost: u32) -> Spread {
        let mut spread = Spread::default();
        (0..lost).for_each(|_| spread.lost_a_race(Duration::from_millis(3), PAUSE));
        spread.observe(true, Moment::from_nanos(1), 1.0);
        spread
    }

    #[test]
    fn range_doubles_with_each_lost_race_up_to_the_pause() {
        let waits: Vec<_> = (0..6).map(|lost| after(lost).wait().as_millis()).collect();
        assert_eq!(waits, [0, 64, 128, 256, 500, 500]);
    }

    #[test]
    fn range_is_four_times_as_long_as_a_race_that_a_crowd_made_slow() {
        let mut spread = Spread::default();
        spread.lost_a_race(Duration::from_millis(100), PAUSE);
        spread.observe(true, Moment::from_nanos(1), 1.0);
        assert_eq!(spread.wait(), Duration::from_millis(400));
    }

    #[test]
    fn range_halves_if_the_lease_stays_free_for_long() {
        let range_after = |free: u64| {
            let mut spread = after(1);
            spread.observe(true, Moment::from_nanos(2), 1.0); // another look at the free lease
            spread.observe(false, Moment::from_nanos(1 + free * 1_000_000), 1.0);
            spread.wait().as_millis()
        };
        assert_eq!((range_after(19), range_after(20)), (64, 32));
        let mut small = after(1);
        for handover in 1..=8 {
            small.observe(true, Moment::from_nanos(handover * 1_000_000_000), 1.0);
            small.observe(false, Moment::from_nanos(handover * 1_000_000_000 + 100_000_000), 1.0);
        }
        assert_eq!(small.wait(), Duration::ZERO);
    }
}
