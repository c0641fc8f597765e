//! How long a candidate waits for others before it tries.

use std::time::Duration;

/// The largest crowd for which the waits are made. In a larger one, more candidates try at the same instant.
pub(super) const LARGEST: f64 = 10_000.0;

/// The shortest time for which a candidate waits for another one.
const SHORTEST: Duration = Duration::from_millis(2);

/// What the API server needs to tell one more candidate that the lease has changed.
const TELLING: Duration = Duration::from_micros(20);

/// How fast things go. All waits follow from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long a call takes.
    pub(super) round_trip: Duration,
    /// The pause of the lease timing. No wait is much longer.
    pub(super) pause: Duration,
    /// How many candidates there may be. None if they are known to be few.
    pub(super) crowd: Option<f64>,
}

// === impl Pace ===

impl Pace {
    /// How long the next one waits for a standby: until it has read and written, and everybody has seen that.
    pub(super) fn slot(&self) -> Duration {
        let crowd = self.crowd.unwrap_or(0.0);
        let usual = self.round_trip.saturating_mul(3).saturating_add(TELLING.mul_f64(crowd));
        usual.max(SHORTEST).min(self.longest_slot())
    }

    /// How long a candidate waits by chance once all standbys have had their time. Few candidates need not wait.
    /// `draw` is even in 0..1.
    pub(super) fn by_chance(&self, draw: f64) -> Duration {
        self.crowd.map_or(Duration::ZERO, |crowd| self.slot().mul_f64(steps(draw, crowd)))
    }

    /// How long a candidate waits that finds no lease, or a free one, when it begins. Perhaps a thousand others begin
    /// too; the API server then answers late.
    pub(super) fn at_the_start(&self, draw: f64) -> Duration {
        let longest = self.pause.saturating_mul(4);
        self.round_trip.min(longest).mul_f64(steps(draw, LARGEST)).min(longest)
    }

    /// How long a candidate waits until it asks for a free place among the standbys.
    pub(super) fn before_joining(&self, draw: f64) -> Duration {
        self.joining().mul_f64(steps(draw, LARGEST) / steps(1.0, LARGEST))
    }

    /// How many candidates wait for a free place, if the first one joined after `time`. A guess from one draw.
    pub(super) fn joined_after(&self, time: Duration) -> f64 {
        let part = time.as_secs_f64() / self.joining().as_secs_f64().max(f64::MIN_POSITIVE);
        (1.0 / share(part.clamp(0.0, 1.0), LARGEST)).clamp(1.0, LARGEST)
    }

    fn joining(&self) -> Duration {
        self.pause.saturating_mul(2)
    }

    fn longest_slot(&self) -> Duration {
        self.pause / 5
    }
}

/// The longest time for which a candidate leaves a free lease alone, by the pause of the lease timing: three slots, and
/// the longest wait by chance.
#[cfg(any(test, fuzzing))]
pub(in crate::election) fn longest_wait(pause: Duration) -> Duration {
    let pace = Pace { round_trip: Duration::MAX, pause, crowd: Some(LARGEST) };
    pace.slot() * 3 + pace.by_chance(1.0)
}

/// The same for a candidate that begins.
#[cfg(any(test, fuzzing))]
pub(in crate::election) fn longest_wait_at_the_start(pause: Duration) -> Duration {
    let pace = Pace { round_trip: Duration::MAX, pause, crowd: Some(LARGEST) };
    longest_wait(pause).max(pace.slot() * 3 + pace.at_the_start(1.0))
}

/// A wait in steps, such that few of up to `most` candidates wait less than a step longer than the shortest. The
/// candidates need not know how many they are: the density grows exponentially with the wait, so most candidates wait
/// long, and the shortest wait of a larger crowd is as lonely as that of a smaller one. Nonnenmacher and Biersack,
/// "Scalable feedback for large groups", 1999, use it for answers to a multicast.
fn steps(draw: f64, most: f64) -> f64 {
    let steep = steepness(most);
    (draw.clamp(0.0, 1.0) * steep.exp_m1()).ln_1p()
}

/// The share of candidates that wait at most this part of the longest wait.
fn share(part: f64, most: f64) -> f64 {
    let steep = steepness(most);
    (steep * part).exp_m1() / steep.exp_m1()
}

fn steepness(most: f64) -> f64 {
    most.max(1.0).ln() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(500);

    fn pace(round_trip: u64, crowd: Option<f64>) -> Pace {
        Pace { round_trip: Duration::from_millis(round_trip), pause: PAUSE, crowd }
    }

    /// How many of `crowd` candidates try within `quiet` after the first one, on average.
    fn at_once(crowd: usize, quiet: Duration, wait: impl Fn(f64) -> Duration) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        let rounds = 300;
        let mut sum = 0;
        for _ in 0..rounds {
            let waits: Vec<_> = (0..crowd).map(|_| wait(random.f64())).collect();
            let first = waits.iter().min().unwrap();
            sum += waits.iter().filter(|wait| **wait < *first + quiet).count();
        }
        f64::from(u32::try_from(sum).unwrap()) / f64::from(rounds)
    }

    #[test]
    fn few_try_at_once_in_any_crowd() {
        let pace = pace(2, Some(LARGEST));
        for crowd in [1, 3, 30, 300, 3_000] {
            let tried = at_once(crowd, pace.slot() / 2, |draw| pace.by_chance(draw));
            assert!(tried < 3.0, "{tried} of {crowd}");
            let joined = at_once(crowd, Duration::from_millis(20), |draw| pace.before_joining(draw));
            assert!(joined < 1.5, "{joined} of {crowd}");
        }
    }

    #[test]
    fn every_wait_is_bounded() {
        for crowd in [None, Some(1.0), Some(LARGEST), Some(f64::INFINITY), Some(f64::NAN)] {
            for round_trip in [0, 1, 1_000, u64::MAX] {
                let pace = pace(round_trip, crowd.filter(|it| it.is_finite()));
                for draw in [0.0, 0.5, 1.0, 2.0] {
                    let wait = |by_chance| pace.slot() * 3 + by_chance;
                    assert!(wait(pace.by_chance(draw)) <= longest_wait(PAUSE));
                    assert!(wait(pace.at_the_start(draw)) <= longest_wait_at_the_start(PAUSE));
                }
                assert!(pace.before_joining(1.0) <= PAUSE * 2);
            }
        }
        assert!(longest_wait(PAUSE) < PAUSE * 3 && longest_wait_at_the_start(PAUSE) < PAUSE * 5);
    }

    #[test]
    fn few_candidates_wait_shortly() {
        assert_eq!(pace(1, None).by_chance(1.0), Duration::ZERO);
        assert_eq!(pace(1, None).slot(), Duration::from_millis(3));
        assert!(pace(1, None).at_the_start(0.5) < Duration::from_millis(10), "a lone candidate begins");
        let two = pace(10, Some(1.0));
        assert!(two.by_chance(1.0).abs_diff(two.slot()) < Duration::from_micros(1), "a slot at most");
    }

    /// The first of `crowd` waits says how many there are, up to the luck of one draw.
    #[test]
    fn the_first_joiner_tells_the_size() {
        let mut random = fastrand::Rng::with_seed(7);
        let usual = pace(1, None);
        let slow = Pace { pause: PAUSE * 4, ..usual };
        for (crowd, pace) in [(2, usual), (20, slow), (200, usual), (2_000, slow)] {
            let rounds = 400;
            let mut logs = 0.0;
            for _ in 0..rounds {
                let first = (0..crowd).map(|_| pace.before_joining(random.f64())).min().unwrap();
                logs += pace.joined_after(first).ln();
            }
            let guess = (logs / f64::from(rounds)).exp();
            let crowd = f64::from(crowd);
            assert!(guess > crowd && guess < crowd * 3.0, "{guess} for {crowd}");
        }
    }
}
