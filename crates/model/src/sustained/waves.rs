//! The noise of a mean over time, where neighbouring values are alike.

use std::f64::consts::PI;

use super::bins::mean;

/// Slow waves from which the noise is estimated: as many degrees of freedom. Fewer see slower changes and give wider
/// intervals; with four, the intervals of the simulated storages cover as often as they say.
pub(super) const WAVES: usize = 4;

/// The variance of the mean of a stationary series: the mean square of its projections onto the first four cosine waves
/// (one half period to four over its length). What comes more often than twice in the series, as the sync of files, adds
/// little whatever its period. With Student's t for as many degrees of freedom it gives an interval (Lazarus, Lewis, Stock
/// and Watson, HAR inference: recommendations for practice, 2018, the EWC estimator).
pub(super) fn variance_of_mean(values: &[f64]) -> f64 {
    let length = values.len() as f64;
    let level = mean(values);
    let wave = |wave: usize| -> f64 {
        let at = |i: usize| (PI * wave as f64 * (i as f64 + 0.5) / length).cos();
        values.iter().enumerate().map(|(i, value)| (value - level) * at(i)).sum()
    };
    let squares: f64 = (1..=WAVES).map(|number| wave(number).powi(2)).sum();
    2.0 / (length * length) * squares / WAVES as f64
}
