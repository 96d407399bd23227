//! Numbers over repeats. A repeat is the unit: workers of one repeat are not independent.

use statrs::distribution::{ContinuousCDF, Gamma, StudentsT};

/// The confidence of every interval that Nilometer prints.
pub const CONFIDENCE: f64 = 0.95;

/// What is known of a quantity from its repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many repeats.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard error of the mean; none from fewer than two repeats.
    pub sem: Option<f64>,
    /// Median.
    pub median: f64,
    /// Least and greatest.
    pub range: (f64, f64),
}

impl Summary {
    /// None of no values.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let count = values.len();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sem = (count > 1).then(|| (squares / (count - 1) as f64 / count as f64).sqrt());
        let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        Some(Summary { count, mean, sem, median, range: (least, greatest) })
    }

    /// Half the width of the interval of the mean at [`CONFIDENCE`], by Student's t; none from one repeat.
    pub fn half_width(&self) -> Option<f64> {
        let freedom = (self.count - 1) as f64;
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        Some(self.sem? * student.inverse_cdf(f64::midpoint(CONFIDENCE, 1.0)))
    }
}

/// The smallest difference between two targets that repeats can show, as a fraction: for one of so many cells, and for
/// all of them together. None from fewer than two repeats.
///
/// `spread` is that of repeats (their standard deviation over their mean). The logarithm of the ratio of a pair has the
/// standard deviation `spread` x sqrt 2; its residual variance is pooled over the cells, so Student's t has
/// `cells` x (`repeats` - 1) degrees of freedom, and the interval of a mean of n pairs is t x `spread` x sqrt (2 / n).
pub fn detectable(cells: usize, repeats: u32, spread: f64) -> (Option<f64>, Option<f64>) {
    let (cells, repeats) = (cells as f64, f64::from(repeats));
    let Ok(student) = StudentsT::new(0.0, 1.0, cells * (repeats - 1.0)) else { return (None, None) };
    let t = student.inverse_cdf(f64::midpoint(CONFIDENCE, 1.0));
    let of = |pairs: f64| (t * spread * (2.0 / pairs).sqrt()).exp_m1();
    (Some(of(repeats)), Some(of(cells * repeats)))
}

/// The highest number of events that is compatible with having seen `seen`, one-sided at [`CONFIDENCE`]: the exact
/// Poisson bound (Garwood 1936), which is 3.0 for none seen (the "rule of three").
pub fn poisson_upper(seen: u64) -> f64 {
    Gamma::new(seen as f64 + 1.0, 1.0).map_or(f64::INFINITY, |gamma| gamma.inverse_cdf(CONFIDENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn summary_of_known_values() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("values");
        assert!(near(summary.mean, 5.0) && near(summary.median, 4.5));
        assert!(near(summary.sem.expect("eight values"), 0.7559));
        // t for 7 degrees of freedom at 97.5 % is 2.365.
        assert!(near(summary.half_width().expect("eight values"), 0.7559 * 2.3646));
        assert_eq!(summary.range, (2.0, 9.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0]).expect("one value").half_width(), None);
    }

    #[test]
    fn more_repeats_and_more_cells_show_smaller_differences() {
        // t for 10 degrees of freedom at 97.5 % is 2.228; 2.228 x 0.1 x sqrt (2 / 6) = 0.1286 in the logarithm.
        let (cell, stage) = detectable(2, 6, 0.1);
        assert!(near(cell.expect("six repeats"), 0.1286_f64.exp_m1()));
        assert!(near(stage.expect("six repeats"), (0.1286 / 2_f64.sqrt()).exp_m1()));
        assert_eq!(detectable(5, 1, 0.1), (None, None));
    }

    #[test]
    fn poisson_bounds_as_in_tables() {
        assert!(near(poisson_upper(0), 2.9957));
        assert!(near(poisson_upper(1), 4.7439));
        assert!(near(poisson_upper(10), 16.962));
    }
}
