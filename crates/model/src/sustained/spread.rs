//! Do repeats differ by more than the noise within each?

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::waves::WAVES;

/// Repeats count as different if the probability of their differences under noise alone is below this.
///
/// A large value keeps the error that a preliminary test adds to an interval small (Bancroft, Analysis and
/// inference for incompletely specified models, 1964).
const POOLED: f64 = 0.25;

/// Two estimates of the variance of a mean over repeats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// From the differences between repeats, with one degree of freedom fewer than repeats.
    pub(super) between: f64,
    /// From the waves in each repeat by itself, with [`WAVES`] degrees of freedom a repeat.
    pub(super) within: f64,
    /// Number of repeats, at least two.
    pub(super) repeats: usize,
}

impl Spread {
    fn freedom(&self) -> (f64, f64) {
        ((self.repeats - 1) as f64, (self.repeats * WAVES) as f64)
    }

    /// An F test for differences between repeats.
    pub(super) fn repeats_differ(&self) -> bool {
        let (between, within) = self.freedom();
        let ratio = self.between / self.within.max(f64::MIN_POSITIVE);
        FisherSnedecor::new(between, within).is_ok_and(|test| ratio > test.inverse_cdf(1.0 - POOLED))
    }

    /// The mean of both, weighted by their degrees of freedom.
    pub(super) fn pooled(&self) -> f64 {
        let (between, within) = self.freedom();
        (within * self.within + between * self.between) / (within + between)
    }
}
