//! The difference of a sustained rate between two conditions: with and without readers.

use super::{
    behind_caches,
    bins::{self, mean},
    spread::Spread,
    waves::{WAVES, variance_of_mean},
};
use crate::{Series, statistics::student};

/// The relative effect of a condition on a rate: -0.2 is a fifth less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// The mean over pairs (of the logarithm of their ratio).
    pub share: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

/// The logarithm of the ratio of a pair, and its variance by the noise within the two.
struct Pair {
    ratio: f64,
    variance: f64,
}

/// The rate of the second of each pair of passes, relative to the first.
///
/// Both of a pair were made in the same round, so that changes between rounds affect both alike. `None` with
/// fewer than two pairs that are long enough.
pub fn rate_change(pairs: &[(&Series, &Series)]) -> Option<RateChange> {
    let pairs: Vec<Pair> = pairs.iter().filter_map(|(usual, changed)| pair(usual, changed)).collect();
    if pairs.len() < 2 {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.ratio).collect();
    let level = mean(&ratios);
    let count = pairs.len() as f64;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - level).powi(2)).sum();
    let within = pairs.iter().map(|pair| pair.variance).sum::<f64>() / (count * count);
    let spread = Spread { between: squares / (count - 1.0) / count, within, repeats: pairs.len() };
    let (variance, freedom) =
        if spread.repeats_differ() { (spread.between, pairs.len() - 1) } else { (spread.pooled(), WAVES) };
    let half = student(freedom) * variance.sqrt();
    let share = |ratio: f64| ratio.exp_m1();
    Some(RateChange {
        share: share(level),
        low: share(level - half),
        high: share(level + half),
        pairs: pairs.len(),
    })
}

fn pair(usual: &Series, changed: &Series) -> Option<Pair> {
    let usual = level(usual)?;
    let changed = level(changed)?;
    Some(Pair { ratio: (changed.rate / usual.rate).ln(), variance: usual.variance + changed.variance })
}

/// The rate of one pass in bytes a second, and the variance of its logarithm.
struct Level {
    rate: f64,
    variance: f64,
}

fn level(pass: &Series) -> Option<Level> {
    let all = bins::common(&[pass]);
    let kept = behind_caches(all.passes.first()?);
    let level = mean(kept);
    let rate = level / all.width.seconds();
    (kept.len() >= bins::LEAST && level > 0.0)
        .then(|| Level { rate, variance: variance_of_mean(kept) / (level * level) })
}
