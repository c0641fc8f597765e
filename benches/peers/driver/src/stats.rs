//! Medians and the like.

/// Some of these values, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|it| it.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Sample {
    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    pub(crate) fn most(&self) -> Option<f64> {
        self.0.last().copied()
    }

    pub(crate) fn median(&self) -> Option<f64> {
        let (half, odd) = (self.0.len() / 2, self.0.len() % 2 == 1);
        let upper = self.0.get(half)?;
        Some(if odd { *upper } else { f64::midpoint(*upper, self.0[half - 1]) })
    }
}

/// Milliseconds in the unit that suits them.
pub(crate) fn time(milliseconds: f64) -> String {
    match milliseconds {
        it if it < 10.0 => format!("{it:.1} ms"),
        it if it < 1000.0 => format!("{it:.0} ms"),
        it => format!("{:.1} s", it / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, time};

    #[test]
    fn sample_has_median_and_most() {
        let sample: Sample = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!(sample.median(), Some(2.5));
        assert_eq!(sample.most(), Some(4.0));
        assert_eq!([7.0, 9.0, 8.0].into_iter().collect::<Sample>().median(), Some(8.0));
        assert_eq!(Sample::default().median(), None);
        assert_eq!(Sample::default().most(), None);
    }

    #[test]
    fn time_has_a_unit() {
        assert_eq!([6.25, 12.0, 1250.0].map(time), ["6.2 ms", "12 ms", "1.2 s"]);
    }
}
