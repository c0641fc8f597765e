//! How many candidates there may be.

use super::pace::LARGEST;

/// One draw can be far off, so the guess is taken this many times larger. Too large a guess costs a little time, and
/// too small a guess costs requests.
const MARGIN: f64 = 8.0;

/// What a candidate has learnt about the number of candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// There were more candidates than the lease has places for.
    many: bool,
    /// The logarithm of the average guess.
    guess: Option<f64>,
}

impl Size {
    /// Takes in that all places were taken.
    pub(super) fn all_places_are_taken(&mut self) {
        self.many = true;
    }

    /// Takes in that a place has long been free: every candidate has one.
    pub(super) fn a_place_stays_free(&mut self) {
        *self = Self::default();
    }

    /// Takes in one guess.
    pub(super) fn learn(&mut self, guess: f64) {
        let new = guess.clamp(1.0, LARGEST).ln();
        self.guess = Some(self.guess.map_or(new, |old| f64::midpoint(old, new)));
    }

    /// How many candidates there may be, on the safe side. None if they are few, as far as is known.
    pub(super) fn most(&self) -> Option<f64> {
        let most = self.guess.map_or(LARGEST, |guess| (guess.exp() * MARGIN).min(LARGEST));
        self.many.then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_means_many_until_more_is_known() {
        let mut size = Size::default();
        assert_eq!(size.most(), None);
        size.learn(4.0);
        assert_eq!(size.most(), None, "there are places for all");
        size.all_places_are_taken();
        assert!((size.most().unwrap() - 32.0).abs() < 0.1);
        size.learn(f64::INFINITY);
        assert!(size.most().unwrap() > 1_000.0);
        size.a_place_stays_free();
        size.all_places_are_taken();
        assert_eq!(size.most(), Some(LARGEST));
    }
}
