//! How long a candidate waits by chance before it takes a free lease, so that a crowd does not write at once.
//!
//! A candidate waits a random part of a range. Before it has lost a race, the range is empty: few candidates need none, and a
//! lost race costs only one write. With each lost race the range at least doubles. While many candidates write at once, the API
//! server takes long to answer each of them, so the time of a lost race shows a crowd at the first race already. If the lease then
//! stays free for much longer than a write takes, the crowd is smaller than the range, and the range halves.
//!
//! This decides only *when* a candidate tries. Each take is a swap.

use crate::leadership::Moment;
use std::time::Duration;

/// The range after the first lost race: of 300 candidates, about ten try while one of them writes.
const FIRST: Duration = Duration::from_millis(64);
/// A shorter range is empty, since a write takes longer.
const SHORTEST: Duration = Duration::from_millis(4);

#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// The pause of the lease timing. The range grows no further.
    longest: Duration,
    range: Duration,
    /// How long the last lost race took.
    took: Duration,
    /// Even in 0..1. Drawn anew with each look at the lease.
    draw: f64,
    /// Since when the lease is free to take.
    free_since: Option<Moment>,
}

// === impl Spread ===

impl Spread {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, range: Duration::ZERO, took: Duration::ZERO, draw: 0.0, free_since: None }
    }

    /// Takes in a new state of the lease, which is free, or not. `draw`: by chance, in 0..1.
    pub(super) fn observe(&mut self, free: bool, now: Moment, draw: f64) {
        let since = self.free_since.filter(|_| !free);
        if since.is_some_and(|since| now.saturating_since(since) > self.took + self.range / 4) {
            self.range = if self.range < SHORTEST { Duration::ZERO } else { self.range / 2 };
        }
        self.free_since = if free { self.free_since.or(Some(now)) } else { None };
        self.draw = draw;
    }

    /// Records that another candidate was faster. `took`: how long the API server took to answer so.
    pub(super) fn lost_a_race(&mut self, took: Duration) {
        self.took = took;
        // If the candidates share a range of four such times, about a quarter of them write while one of them is answered.
        self.range = (self.range * 2).max(FIRST).max(took * 4).min(self.longest);
    }

    /// Even in 0..1. Drawn anew with each look at the lease.
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

    /// After so many lost races, and the lease is free from then on.
    fn after(lost: u32) -> Spread {
        let mut spread = Spread::new(PAUSE);
        (0..lost).for_each(|_| spread.lost_a_race(Duration::from_millis(3)));
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
        let mut spread = Spread::new(PAUSE);
        spread.lost_a_race(Duration::from_millis(100));
        spread.observe(true, Moment::from_nanos(1), 1.0);
        assert_eq!(spread.wait(), Duration::from_millis(400));
    }

    #[test]
    fn range_halves_if_the_lease_stays_free_for_long() {
        let range_after = |free: u64| {
            let mut spread = after(1);
            spread.observe(true, Moment::from_nanos(2), 1.0); // as it is seen again
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
