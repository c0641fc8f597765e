//! How long a candidate waits by chance before it takes a free lease, so that a crowd does not write at once.
//!
//! A candidate does not wait before it has lost a race: a write takes longer than few candidates should wait, and a conflict
//! costs one write. After that it draws its waits from a range, such that few of a large crowd wait less than a step longer
//! than the first one. The candidates need not know how many they are: the density grows exponentially with the wait
//! (Nonnenmacher and Biersack, "Scalable feedback for large groups", 1999). One that takes the lease, or sees that another one
//! took long for it, waits no more.
//!
//! This decides only *when* a candidate tries. Each take is a swap.

use crate::leadership::Moment;
use std::time::Duration;

/// The shortest step of a range.
const SHORTEST_STEP: Duration = Duration::from_millis(2);
/// The crowd of the first range. Each further one is for so many times as many.
const CROWD: f64 = 1_000.0;
/// The range is not widened further.
const WIDEST: u32 = 2;
/// A crowd that is estimated smaller than this needs no range.
const FEW: f64 = 8.0;

#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// The pause of the lease timing. No wait is much longer.
    pause: Duration,
    /// How long a write takes.
    round_trip: Duration,
    /// How often the range was widened.
    widened: u32,
    /// Even in 0..1. Drawn anew with each look at the lease.
    draw: f64,
    /// Since when the lease is free to take.
    free_since: Option<Moment>,
}

// === impl Spread ===

impl Spread {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, round_trip: Duration::ZERO, widened: 0, draw: 0.0, free_since: None }
    }

    /// Records how long a write took.
    pub(super) fn answered(&mut self, took: Duration) {
        self.round_trip = took;
    }

    /// Takes in a new state of the lease, which is free, or not. `mine`: this candidate holds it.
    /// `draw`: by chance, in 0..1.
    pub(super) fn observe(&mut self, free: bool, mine: bool, now: Moment, draw: f64) {
        match self.free_since {
            _ if mine => self.widened = 0,
            Some(since) if !free && self.crowd_of(now.saturating_since(since)) < FEW => self.widened = 0,
            _ => {}
        }
        self.free_since = if free { self.free_since.or(Some(now)) } else { None };
        self.draw = draw;
    }

    /// Records that another candidate was faster.
    pub(super) fn lost_a_race(&mut self) {
        self.widened = (self.widened + 1).min(WIDEST);
    }

    /// Even in 0..1. Drawn anew with each look at the lease.
    pub(super) const fn draw(&self) -> f64 {
        self.draw
    }

    /// How long this candidate waits for the lease once it is free.
    pub(super) fn wait(&self) -> Duration {
        match self.widened {
            0 => Duration::ZERO,
            _ => self.step().mul_f64((self.draw * self.steepness().exp_m1()).ln_1p()),
        }
    }

    /// How many candidates there are, if the first one waited so long.
    fn crowd_of(&self, waited: Duration) -> f64 {
        let steep = self.steepness();
        let part = waited.as_secs_f64() / (self.step().as_secs_f64() * steep);
        steep.exp_m1() / (steep * part.min(1.0)).exp_m1().max(f64::MIN_POSITIVE)
    }

    /// In one step a candidate writes, and the others see that.
    fn step(&self) -> Duration {
        // The pause of a short timing may be shorter than that.
        (self.round_trip * 3).min(self.pause / 5).max(SHORTEST_STEP)
    }

    fn steepness(&self) -> f64 {
        let widened = i32::try_from(self.widened.max(1)).unwrap_or(1);
        CROWD.powi(widened).ln() + 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(500);

    fn widened(widened: u32, draw: f64) -> Spread {
        let round_trip = Duration::from_millis(2);
        Spread { round_trip, widened, draw, ..Spread::new(PAUSE) }
    }

    /// How many of `crowd` candidates try within a step after the first one, on average.
    fn at_once(crowd: usize, range: u32) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        let mut sum = 0_u32;
        for _ in 0..300 {
            let waits: Vec<_> = (0..crowd).map(|_| widened(range, random.f64()).wait()).collect();
            let first = *waits.iter().min().unwrap();
            let tried = waits.iter().filter(|wait| **wait < first + Duration::from_millis(6));
            sum += u32::try_from(tried.count()).expect("a small crowd");
        }
        f64::from(sum) / 300.0
    }

    #[test]
    fn few_of_a_widened_crowd_try_at_once() {
        for (crowd, range) in [(3, 1), (30, 1), (300, 1), (1_000, 1), (3_000, 2), (3_000, 1)] {
            let tried = at_once(crowd, range);
            assert!(tried < 12.0, "{tried} of {crowd}");
        }
        assert!(at_once(300, 0) > 290.0, "a crowd that knows nothing of itself");
    }

    #[test]
    fn every_wait_is_bounded() {
        for (range, draw) in [(0, 1.0), (1, 0.0), (1, 1.0), (9, 1.0)] {
            let mut slow = widened(range.min(WIDEST), draw);
            slow.answered(Duration::MAX / 4);
            assert!(slow.wait() < PAUSE * 4, "{:?}", slow.wait());
        }
    }

    #[test]
    fn a_win_or_a_long_wait_of_another_ends_the_wait() {
        let at = Moment::from_nanos;
        let after = |wait: u64, mine| {
            let mut spread = widened(0, 0.5);
            spread.lost_a_race();
            spread.observe(true, false, at(1), 0.5);
            spread.observe(false, mine, at(1 + wait * 1_000_000), 0.5);
            spread.widened
        };
        assert_eq!((after(1, false), after(40, false), after(1, true)), (1, 0, 0));
    }
}
