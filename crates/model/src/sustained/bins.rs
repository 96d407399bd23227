//! Bytes a bin, of one width in all passes and with several frames in each.

use crate::{Nanos, Series};

/// The fewest bins that show the noise at low frequencies.
pub(super) const LEAST: usize = 16;

/// Frames in a bin on average: with fewer, a bin without any is no stall.
const FRAMES: f64 = 4.0;

/// Passes as bytes a bin. The last bin of each is missing, since it is incomplete.
#[derive(Debug)]
pub(super) struct Bins {
    pub(super) width: Nanos,
    pub(super) passes: Vec<Vec<f64>>,
}

/// Gives all passes bins of one width: the narrowest with enough frames.
pub(super) fn common(passes: &[&Series]) -> Bins {
    let width = passes.iter().map(|pass| suited_width(pass)).max().unwrap_or(Nanos(1));
    let joined = |pass: &&Series| {
        let count = (width.0 / pass.width().0).max(1) as usize;
        finished(pass).chunks_exact(count).map(|bins| bins.iter().sum()).collect()
    };
    Bins { width, passes: passes.iter().map(joined).collect() }
}

fn finished(series: &Series) -> Vec<f64> {
    let bins = series.bins();
    bins[..bins.len().saturating_sub(1)].iter().map(|bin| bin.bytes as f64).collect()
}

/// The width for a series: it joins bins by two, as a series does, while they have too few frames and enough
/// bins remain.
fn suited_width(series: &Series) -> Nanos {
    let count = series.bins().len().saturating_sub(1);
    let frames: u64 = series.bins()[..count].iter().map(|bin| bin.operations).sum();
    let mut joined = 1;
    while (frames as f64) < FRAMES * (count / joined) as f64 && count / (2 * joined) >= 2 * LEAST {
        joined *= 2;
    }
    Nanos(series.width().0 * joined as u64)
}

/// The mean; callers pass at least one value.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The limit for a bin of a stall: half of the usual rate later in the pass, when caches are full.
pub(super) fn stall_below(bins: &[f64]) -> f64 {
    crate::statistics::median(&bins[bins.len() / 2..]).unwrap_or(0.0) / 2.0
}

/// Number of falls of the rate to below half of the usual one.
pub(super) fn stalls(bins: &[f64]) -> usize {
    let below = stall_below(bins);
    let stands: Vec<bool> = bins.iter().map(|bin| *bin < below).collect();
    let first = usize::from(stands.first() == Some(&true));
    first + stands.windows(2).filter(|pair| !pair[0] && pair[1]).count()
}
