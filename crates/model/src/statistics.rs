//! Statistics over repeats. A repeat is the unit: workers of one repeat are not independent.

use statrs::distribution::{ContinuousCDF, Gamma, StudentsT};

/// The confidence of every interval that Nilometer prints.
pub const CONFIDENCE: f64 = 0.95;

/// Statistics of a quantity over its repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of repeats.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard error of the mean; `None` with fewer than two repeats.
    pub sem: Option<f64>,
    /// Median.
    pub median: f64,
    /// Least and greatest.
    pub range: (f64, f64),
}

impl Summary {
    /// Summarizes `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let count = values.len();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let &least = sorted.first()?;
        let &greatest = sorted.last()?;
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sem = (count > 1).then(|| (squares / (count - 1) as f64 / count as f64).sqrt());
        Some(Summary { count, mean, sem, median: middle(&sorted), range: (least, greatest) })
    }

    /// Half the width of the interval of the mean at [`CONFIDENCE`], by Student's t; `None` with one repeat.
    pub fn half_width(&self) -> Option<f64> {
        Some(self.sem? * student(self.count - 1))
    }

    /// The standard deviation as a share of the mean (the coefficient of variation); `None` with one repeat.
    pub fn spread(&self) -> Option<f64> {
        Some(self.sem? * (self.count as f64).sqrt() / self.mean)
    }
}

/// The median; `None` of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| middle(&sorted))
}

/// The median of sorted values; there must be at least one.
fn middle(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// The half width of a two-sided interval at [`CONFIDENCE`] in standard errors, by Student's t with `freedom`
/// degrees of freedom; infinite with 0.
pub fn student(freedom: usize) -> f64 {
    student_at(CONFIDENCE, freedom as f64)
}

/// Like [`student`], at any confidence, and with degrees of freedom that need not be whole.
///
/// Source: Welch, "The generalization of 'Student's' problem when several different population variances are
/// involved", Biometrika 34, 1947.
pub fn student_at(confidence: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom);
    student.map_or(f64::INFINITY, |student| student.inverse_cdf(f64::midpoint(confidence, 1.0)))
}

/// The probability that Student's t with `freedom` degrees of freedom is at least as far from zero:
/// two-sided.
pub fn student_p(t: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom);
    student.map_or(1.0, |student| (2.0 * student.sf(t.abs())).min(1.0))
}

/// The fewest rounds that show how rounds differ.
pub const ROUNDS_LEAST: usize = 2;

/// The most degrees of freedom that the other cells of a stage add to those of a cell. Cells may differ in
/// their spread, so the others are weak evidence about one.
pub const SPREAD_PRIOR: f64 = 3.0;

/// The smallest difference between two targets that repeats can show, as a fraction: for one of `cells`
/// cells, and for all together. `None` with fewer than [`ROUNDS_LEAST`] repeats.
///
/// `spread` is the standard deviation of single repeats over their mean. A target that is slower in a whole
/// round widens both intervals.
///
/// The logarithm of the ratio of a pair has the standard deviation `spread` x sqrt 2. The interval of a mean
/// of n pairs is therefore t x `spread` x sqrt (2 / n).
///
/// Over all cells Student's t has `repeats` - 1 degrees of freedom, for a round counts once. For one cell the
/// other cells add up to [`SPREAD_PRIOR`] to these.
pub fn detectable(cells: usize, repeats: u32, spread: f64) -> (Option<f64>, Option<f64>) {
    let rounds = repeats as usize;
    if rounds < ROUNDS_LEAST {
        return (None, None);
    }
    let freedom = (rounds - 1) as f64;
    let others = freedom * cells.saturating_sub(1) as f64;
    let of = |freedom: f64, pairs: usize| {
        (student_at(CONFIDENCE, freedom) * spread * (2.0 / pairs as f64).sqrt()).exp_m1()
    };
    (Some(of(freedom + SPREAD_PRIOR.min(others), rounds)), Some(of(freedom, cells * rounds)))
}

/// The highest expected number of events compatible with `seen` events, one-sided at [`CONFIDENCE`]. It is
/// the exact Poisson bound (Garwood 1936): 3.0 for none seen (the "rule of three").
pub fn poisson_upper(seen: u64) -> f64 {
    Gamma::new(seen as f64 + 1.0, 1.0).map_or(f64::INFINITY, |gamma| gamma.inverse_cdf(CONFIDENCE))
}

/// The lowest expected number of events compatible with `seen` events, one-sided at [`CONFIDENCE`]. It is the
/// exact Poisson bound (Garwood 1936): 0 for none seen.
pub fn poisson_lower(seen: u64) -> f64 {
    let seen = seen as f64;
    Gamma::new(seen, 1.0).map_or(0.0, |gamma| gamma.inverse_cdf(1.0 - CONFIDENCE))
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
    fn students_t_as_in_tables() {
        assert!(near(student_at(0.95, 4.0), 2.7764) && near(student_at(0.99, 10.0), 3.1693));
        assert!(near(student_p(2.7764, 4.0), 0.05) && near(student_p(-2.7764, 4.0), 0.05));
        assert!(student_at(0.95, 0.0).is_infinite());
    }

    #[test]
    fn more_repeats_and_more_cells_show_smaller_differences() {
        let (cell, stage) = detectable(2, 6, 0.1);
        // t for 5 and 3 more degrees of freedom is 2.3060, for 5 it is 2.5706.
        assert!(near(cell.expect("six repeats"), (2.306_f64 * 0.1 / 3_f64.sqrt()).exp_m1()));
        assert!(near(stage.expect("six rounds"), (2.5706_f64 * 0.1 / 6_f64.sqrt()).exp_m1()));
        assert_eq!(detectable(6, 1, 0.1), (None, None), "one round says nothing, however many cells it has");
        let (cell, stage) = detectable(1, 6, 0.05);
        assert_eq!(cell, stage, "one cell is its stage");
    }

    #[test]
    fn poisson_bounds_as_in_tables() {
        assert!(near(poisson_upper(0), 2.9957));
        assert!(near(poisson_upper(1), 4.7439));
        assert!(near(poisson_upper(10), 16.962));
        assert!(near(poisson_lower(1), 0.051_29) && near(poisson_lower(10), 5.4254));
        assert!(poisson_lower(0).abs() < f64::EPSILON);
    }
}
