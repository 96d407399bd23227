//! The noise of a mean over time, where neighbouring values are alike.

use std::f64::consts::PI;

use super::bins::mean;

/// Number of slow waves for the estimate of the noise, and its degrees of freedom. Fewer waves see slower
/// changes and give wider intervals. With four, the intervals for simulated storages have the coverage that
/// they claim.
pub(super) const WAVES: usize = 4;

/// The variance of the mean of a stationary series: the mean square of its projections onto the first four
/// cosine waves (half a period to two periods over its length).
///
/// Events more frequent than twice in the series, such as the sync of files, add little at any period. With
/// Student's t and four degrees of freedom it gives an interval.
///
/// Source: Lazarus, Lewis, Stock and Watson, HAR inference: recommendations for practice, 2018, the EWC
/// estimator.
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
