//! The sustained rate of a storage system: its long-run rate behind all caches, stalls included. It comes
//! from passes in which frames arrive as fast as the storage takes them.
//!
//! The page docs/verdict.md explains the method; `nilometer-bench verdict` tests it against known rates.
//!
//! ```text
//! bytes a bin
//!   ####                        cache          left out: up to where the rate fell for good ([`step`])
//!   ####  ## ##### ####         stalls         kept: they are a part of the rate
//!   ####_#########_####_###
//!   |cache|..|--- kept -----|   start-up       left out: a tenth of the rest
//! ```
//!
//! Bins of a series are not independent: a cache is flushed, a file is synced, a rush follows a stall. The
//! noise of a mean is therefore that at low frequencies (`waves::variance_of_mean`), not that of single bins.

mod bins;
mod change;
mod recorder_wait;
mod spread;
mod step;
mod waves;

use crate::{ByteRate, Nanos, Series, statistics::student};
use bins::mean;
pub use change::{RateChange, rate_change};
pub use recorder_wait::RecorderWait;
use spread::Spread;
pub use step::{RateStep, step};
use waves::{WAVES, variance_of_mean};

/// The long-run rate of a storage system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SustainedRate {
    /// The mean behind all caches, stalls included.
    pub rate: ByteRate,
    /// The lower end of its 95 % interval; never below zero.
    pub low: ByteRate,
    /// The upper end.
    pub high: ByteRate,
    /// The time behind caches that it is based on, over all passes.
    pub over: Nanos,
    /// Number of passes.
    pub passes: usize,
    /// The relative excess of the second half of the passes over the first, if it is clear. The rate then
    /// still changes, and the interval holds for these passes only.
    pub trend: Option<f64>,
    /// How long the recorder waited for a processor in the passes. Rate and interval are as measured, the wait
    /// included.
    pub waited: RecorderWait,
}

/// A pass is precise enough when half the width of its interval is below this share of its rate.
const HALF_WIDTH_MOST: f64 = 0.05;

/// The least relative error of a rate. Bins end in the middle of frames, and a full file costs a little more
/// than a frame.
const HALF_WIDTH_LEAST: f64 = 0.005;

/// Halves of passes that differ by less than this share of the rate are alike, however sure the difference is.
const TREND_LEAST: f64 = 0.05;

/// The fewest stalls in a pass that show their share of the time.
const STALLS_LEAST: usize = 4;

impl SustainedRate {
    /// Half the width of the interval as a share of the rate.
    pub fn uncertainty(&self) -> f64 {
        (self.high.0 - self.low.0) / 2.0 / self.rate.0
    }

    /// The highest rate that the storage may have: the upper end of the interval, raised by the wait for a
    /// processor. `None` if that wait was too long: the passes then show no upper end.
    pub fn most(&self) -> Option<ByteRate> {
        self.waited.raised(self.high)
    }

    /// True if the recorder waited too long for a processor: the rate is then only a lower bound.
    pub fn is_lower_bound(&self) -> bool {
        self.waited.is_long()
    }

    /// The rate as a multiple of a needed rate: the mean and the ends of its interval.
    pub fn margin(&self, needed: ByteRate) -> Margin {
        let times = |rate: ByteRate| rate.0 / needed.0;
        Margin { times: times(self.rate), low: times(self.low), high: times(self.high) }
    }
}

/// The rate of a storage as a multiple of a needed rate, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// The multiple of the mean.
    pub times: f64,
    /// The multiple of the lower end.
    pub low: f64,
    /// The multiple of the upper end.
    pub high: f64,
}

/// The sustained rate from passes at full speed under the same conditions. `None` with too little data: fewer
/// than sixteen bins behind caches.
pub fn sustained(passes: &[&Series]) -> Option<SustainedRate> {
    let all = bins::common(passes);
    let kept: Vec<&[f64]> = all.passes.iter().map(|pass| behind_caches(pass)).collect();
    let kept: Vec<&[f64]> = kept.into_iter().filter(|pass| pass.len() >= bins::LEAST).collect();
    let joined = kept.concat();
    let level = mean(&joined);
    if kept.is_empty() || level <= 0.0 {
        return None;
    }
    let half = half_width(&kept, &joined).max(HALF_WIDTH_LEAST * level);
    let rate = |level: f64| ByteRate(level.max(0.0) / all.width.seconds());
    Some(SustainedRate {
        rate: rate(level),
        low: rate(level - half),
        high: rate(level + half),
        over: Nanos(all.width.0 * joined.len() as u64),
        passes: kept.len(),
        trend: trend(&kept, level),
        waited: RecorderWait::default(),
    })
}

/// Returns true if a pass at full speed gives a precise rate: a narrow interval, no trend, and no stall or
/// several. You can call it at any time during the pass.
pub fn is_precise(pass: &Series) -> bool {
    let Some(found) = sustained(&[pass]) else { return false };
    let all = bins::common(&[pass]);
    let stalls = all.passes.iter().map(|pass| bins::stalls(behind_caches(pass))).sum::<usize>();
    found.uncertainty() <= HALF_WIDTH_MOST && found.trend.is_none() && (stalls == 0 || stalls >= STALLS_LEAST)
}

/// The bins behind caches and behind the start-up.
fn behind_caches(pass: &[f64]) -> &[f64] {
    let from = step::position(pass).unwrap_or(0);
    &pass[from + (pass.len() - from) / 10..]
}

/// Half the width of the 95 % interval of the mean of all passes.
///
/// The noise within passes is that of the slowest waves of all of them in a row. If passes differ by clearly
/// more than that, the spread of their means counts, as for any repeats.
fn half_width(kept: &[&[f64]], joined: &[f64]) -> f64 {
    let in_a_row = variance_of_mean(joined);
    let Some(spread) = spread_of(kept, joined) else { return student(WAVES) * in_a_row.sqrt() };
    let (variance, freedom) = if spread.repeats_differ() && spread.between > in_a_row {
        (spread.between, kept.len() - 1)
    } else {
        (in_a_row.max(spread.pooled()), WAVES)
    };
    student(freedom) * variance.sqrt()
}

/// The differences between passes; `None` for a single one.
fn spread_of(kept: &[&[f64]], joined: &[f64]) -> Option<Spread> {
    let level = mean(joined);
    let length = joined.len() as f64;
    let share = |pass: &[f64]| pass.len() as f64 / length;
    let squares: f64 = kept.iter().map(|pass| share(pass) * (mean(pass) - level).powi(2)).sum();
    let within = kept.iter().map(|pass| share(pass).powi(2) * variance_of_mean(pass)).sum();
    let repeats = kept.len();
    (repeats > 1).then(|| Spread { between: squares / (repeats - 1) as f64, within, repeats })
}

/// The excess of the second halves of passes over the first, as a share of the mean, if it is significant and
/// large enough.
fn trend(kept: &[&[f64]], level: f64) -> Option<f64> {
    let length: usize = kept.iter().map(|pass| pass.len()).sum();
    let (mut above, mut variance) = (0.0, 0.0);
    for pass in kept {
        let share = pass.len() as f64 / length as f64;
        let (earlier, later) = pass.split_at(pass.len() / 2);
        above += share * (mean(later) - mean(earlier));
        variance += share.powi(2) * (variance_of_mean(earlier) + variance_of_mean(later));
    }
    let half = student(2 * WAVES * kept.len()) * variance.sqrt();
    (above.abs() > half && above.abs() > TREND_LEAST * level).then_some(above / level)
}

#[cfg(test)]
mod tests;
