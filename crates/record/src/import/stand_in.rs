//! Repeats with only the greatest, the least and the mean value, and perhaps their number and standard
//! deviation.
//!
//! For two or three repeats, these numbers determine all values. For more, stand-in values include the least
//! and the greatest, and the others are as close together as possible. They have the given mean and standard
//! deviation, and an interval depends on nothing else.

/// The given facts about repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Known {
    pub(super) least: f64,
    pub(super) greatest: f64,
    pub(super) mean: f64,
    /// The number of repeats.
    pub(super) count: Option<u64>,
    /// Standard deviation of a sample: the divisor is one less than the number of values.
    pub(super) deviation: Option<f64>,
}

/// Limit on the number of repeats. No benchmark has more.
const COUNT_MOST: u64 = 10_000;
/// Printed numbers are rounded, so the greatest, the least and the mean may contradict each other by this
/// share.
const ROUNDED: f64 = 1e-6;

impl Known {
    /// Returns values with these properties, or `None` if the properties contradict each other.
    pub(super) fn values(&self) -> Option<Vec<f64>> {
        let Known { least, greatest, mean, .. } = *self;
        let slack = ROUNDED * greatest.abs();
        let ordered = least <= mean + slack && mean <= greatest + slack && least >= 0.0;
        if !ordered || self.count == Some(0) || self.count.is_some_and(|count| count > COUNT_MOST) {
            return None;
        }
        let count = self.count.or_else(|| self.fewest())?;
        if count == 1 || greatest - least <= slack {
            return Some(vec![mean; count as usize]);
        }
        let mut values = vec![least, greatest];
        values.extend(self.between(count as usize - 2));
        Some(values)
    }

    /// Returns the smallest possible number of repeats, if it is not given.
    fn fewest(&self) -> Option<u64> {
        if self.greatest - self.least <= ROUNDED * self.greatest.abs() {
            return Some(1);
        }
        let middle = f64::midpoint(self.least, self.greatest);
        if (self.mean - middle).abs() <= ROUNDED * self.greatest {
            return Some(2);
        }
        (3..=COUNT_MOST).find(|&count| {
            let rest = self.rest(count as usize - 2);
            (self.least..=self.greatest).contains(&rest)
        })
    }

    /// Returns the mean of `others` values besides the least and the greatest.
    fn rest(&self, others: usize) -> f64 {
        let all = (others + 2) as f64 * self.mean;
        (all - self.least - self.greatest) / others as f64
    }

    fn between(&self, others: usize) -> Vec<f64> {
        if others == 0 {
            return Vec::new();
        }
        let rest = self.rest(others);
        let distance = self.distance(others, rest);
        // In pairs about their mean; a single one is the mean itself.
        let pairs = others / 2;
        let value = |index: usize| match index {
            _ if index >= 2 * pairs => rest,
            _ if index.is_multiple_of(2) => rest - distance,
            _ => rest + distance,
        };
        (0..others).map(value).map(|value| value.clamp(self.least, self.greatest)).collect()
    }

    /// Returns the distance of pairs from their mean that gives all values the standard deviation.
    fn distance(&self, others: usize, rest: f64) -> f64 {
        let Some(deviation) = self.deviation else { return 0.0 };
        let square = |value: f64| (value - self.mean).powi(2);
        let all = deviation.powi(2) * (others + 1) as f64;
        let left = all - square(self.least) - square(self.greatest) - others as f64 * square(rest);
        let paired = 2 * (others / 2);
        if paired == 0 { 0.0 } else { (left.max(0.0) / paired as f64).sqrt() }
    }
}

/// Returns `count` values around a mean with this standard error.
pub(super) fn with_error(mean: f64, error: f64, count: u64) -> Option<Vec<f64>> {
    let valid = (2..=COUNT_MOST).contains(&count) && error >= 0.0 && error.is_finite();
    if !valid {
        return None;
    }
    let pairs = count / 2;
    let deviation = error * (count as f64).sqrt();
    let distance = deviation * ((count - 1) as f64 / (2 * pairs) as f64).sqrt();
    let value = |index: u64| match index {
        _ if index >= 2 * pairs => mean,
        _ if index.is_multiple_of(2) => mean - distance,
        _ => mean + distance,
    };
    Some((0..count).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::statistics::Summary;

    #[test]
    fn three_repeats_are_what_their_figures_say() {
        // mdtest-3.3.0 of three iterations; its standard deviation is that of the three values themselves.
        let known =
            Known { least: 3211.453, greatest: 7345.338, mean: 5963.545, count: Some(3), deviation: None };
        let values = known.values().expect("they agree");
        let spread = Summary::of(&values).expect("three").spread().expect("three") * known.mean;
        assert!((spread * (2.0_f64 / 3.0).sqrt() - 1945.909).abs() < 0.5, "{spread}: but for rounding");
    }

    #[test]
    fn more_have_the_mean_and_the_deviation_that_are_given() {
        for count in [4, 5, 8, 9] {
            let deviation = Some(20.0);
            let known = Known { least: 70.0, greatest: 130.0, mean: 98.0, count: Some(count), deviation };
            let summary = Summary::of(&known.values().expect("they agree")).expect("values");
            assert_eq!(summary.count as u64, count);
            assert!((summary.mean - 98.0).abs() < 1e-9, "{summary:?}");
            let found = summary.sem.expect("several") * (count as f64).sqrt();
            assert!(count < 5 || (found - 20.0).abs() < 4.5, "{count}: {found}");
        }
        let summary = Summary::of(&with_error(94.0, 5.7, 9).expect("valid")).expect("nine");
        assert!((summary.mean - 94.0).abs() < 1e-9 && (summary.sem.expect("nine") - 5.7).abs() < 1e-9);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let known = Known { least: 2.0, greatest: 1.0, mean: 1.5, ..Known::default() };
        assert_eq!(known.values(), None);
        assert_eq!(Known { least: 1.0, greatest: 2.0, mean: 3.0, ..known }.values(), None);
        assert_eq!(Known { least: f64::NAN, ..known }.values(), None);
        let fewest = Known { least: 1.0, greatest: 3.0, mean: 2.5, ..Known::default() };
        assert_eq!(
            fewest.values(),
            Some(vec![1.0, 3.0, 3.0, 3.0]),
            "three would need one above the greatest"
        );
    }
}
