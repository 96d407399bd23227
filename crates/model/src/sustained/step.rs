//! The step in a rate at which a cache was full: the volume until then, and the rates before and after it.
//!
//! For example, 400 bins of one level, of which the first 50 hold four times as much, with independent noise
//! of 0.1 (all in units of the level):
//!
//! ```text
//! 4  ######                                             before: the cache takes part of it
//! 3        #
//! 2        #
//! 1        #######################################      after: the storage by itself
//! bin      50                                   399
//! ```
//!
//! 1. No bin is below half of the median of the later half, 0.5: there are no stalls to remove.
//! 2. Two levels fit best when cut at bin 50: that lowers the sum of squares by 50 * 350 / 400 * (4 - 1)^2 =
//!    394. Cut at 49 or 51, it would be 385.
//! 3. It never comes back: no 43 neighbours behind the step (an eighth of 350 bins) have a mean above 0.8 * 4
//!    = 3.2.
//! 4. It is clear: 394 is more than 30 times the variance of the noise, 0.01.
//! 5. It is abrupt: around two levels the sum of squares is 400 * 0.01 = 4, around the best straight line it
//!    is 268.
//!
//! The step is therefore at bin 50, and the volume is 50 * 4 = 200 bins of the level. If bins 200 to 299 were
//! four times as high too, point 3 would rule it out: the rate came back.

use super::bins::{self, mean, stall_below};
use crate::{ByteRate, Bytes, Series};

/// A fall of the rate from one level to another: a cache was full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStep {
    /// The volume written up to there. The cache is smaller, because it drained meanwhile.
    pub volume: Bytes,
    /// The mean rate before the step.
    pub before: ByteRate,
    /// The mean rate after the step.
    pub after: ByteRate,
}

/// A rate that returns to more than this share of the earlier one did not fall.
const LARGE: f64 = 0.8;

/// The square of a step must be at least this many times its variance by noise. For a single given point, 8
/// would give a false alarm in one of two hundred series (F for 1 and 22 degrees of freedom is 9.7). The best
/// of all points needs more; the tests simulate it.
const CLEAR: f64 = 30.0;

/// Number of batches for the estimate of the noise.
const BATCHES: usize = 24;

/// The step of a pass at full speed, if the rate fell clearly. Two constant pieces are fitted by least
/// squares: the later one at least a third of the run, the earlier one a fiftieth.
///
/// `None` unless
///
/// - the rate never came back to four fifths of the earlier one, in any stretch as long as the earlier piece
///   (or an eighth of the later one, if that is shorter): it does after a stall, and between the syncs of
///   files;
/// - the step is large against the noise. The noise is the long-run variance of the residuals, from the means
///   of 24 batches. It includes the correlation of neighbouring bins, such as the sawtooth of synced files;
/// - two levels fit better than a straight line, which is a drift.
///
/// A rise is no step, because recordings begin with one. Stalls are removed first: they have other causes,
/// and would hide a step.
pub fn step(series: &Series) -> Option<RateStep> {
    let all = bins::common(&[series]);
    let bins = all.passes.first()?;
    let (before, after) = bins.split_at(position(bins)?);
    #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
    let volume = Bytes(before.iter().sum::<f64>() as u64);
    let [before, after] = [before, after].map(|piece| ByteRate(mean(piece) / all.width.seconds()));
    Some(RateStep { volume, before, after })
}

/// The first bin of the lower level.
pub(super) fn position(bins: &[f64]) -> Option<usize> {
    let below = stall_below(bins);
    // Remove stalls, which would hide the step or look like one. The position is translated back below.
    let goes = |bin: &f64| *bin >= below;
    let going: Vec<f64> = bins.iter().copied().filter(goes).collect();
    let at = fall(&going)?;
    let places = bins.iter().enumerate().filter(|(_, bin)| goes(bin));
    places.map(|(place, _)| place).nth(at)
}

/// The first bin of the lower level, among bins without stalls.
fn fall(bins: &[f64]) -> Option<usize> {
    let (at, gain) = split(bins)?;
    let (before, after) = bins.split_at(at);
    let residuals: Vec<f64> = [before, after].into_iter().flat_map(residuals).collect();
    // A stretch as long as the earlier piece: shorter ones reach its height by chance, or after a stall.
    let fell = highest(after, at.min(after.len() / 8).max(1)) <= LARGE * mean(before);
    let clear = gain > CLEAR * long_run_variance(&residuals)?;
    let abrupt = squares(&residuals) < squares_around_line(bins);
    (fell && clear && abrupt).then_some(at)
}

/// Splits bins into two constant pieces that fit best, the second one lower. Returns the first bin of the
/// second piece, and the reduction of the sum of squares against one mean.
fn split(bins: &[f64]) -> Option<(usize, f64)> {
    let count = bins.len();
    let total = bins.iter().sum::<f64>();
    // The later piece has at least a third: a rate that lasted for most of the run is that of the storage.
    let first = (count / 50).max(3);
    let last = count - count.div_ceil(3);
    let (mut at, mut sum, mut best) = (None, 0.0, 0.0);
    for (i, bin) in bins.iter().enumerate().take(last) {
        sum += bin;
        let left = (i + 1) as f64;
        let right = (count - i - 1) as f64;
        let fall = sum / left - (total - sum) / right;
        // The sum of squares between two groups: all cuts are compared in one pass over the bins, with one
        // running sum.
        let gain = left * right / count as f64 * fall * fall;
        if i + 1 >= first && fall > 0.0 && gain > best {
            at = Some(i + 1);
            best = gain;
        }
    }
    at.map(|at| (at, best))
}

/// The highest mean of `length` neighbours.
fn highest(piece: &[f64], length: usize) -> f64 {
    piece.windows(length).map(mean).fold(0.0, f64::max)
}

fn residuals(piece: &[f64]) -> impl Iterator<Item = f64> {
    let mean = mean(piece);
    piece.iter().map(move |value| value - mean)
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// The means of `count` blocks of equal length, to a bin; `None` if there are fewer bins.
fn blocks(bins: &[f64], count: usize) -> Option<Vec<f64>> {
    let edge = |block: usize| block * bins.len() / count;
    let block = |block| mean(&bins[edge(block)..edge(block + 1)]);
    (bins.len() >= count).then(|| (0..count).map(block).collect())
}

/// The variance of a sum per bin, from the means of batches. `None` if there are fewer bins than batches.
fn long_run_variance(residuals: &[f64]) -> Option<f64> {
    // Means of long batches include the correlation of neighbours; single bins would not.
    let batches = blocks(residuals, BATCHES)?;
    let length = residuals.len() as f64 / BATCHES as f64;
    // Two means were fitted, which takes two degrees of freedom.
    Some(length * squares(&batches) / (BATCHES - 2) as f64)
}

/// The sum of squares around the straight line that fits best.
fn squares_around_line(bins: &[f64]) -> f64 {
    let count = bins.len() as f64;
    let level = mean(bins);
    let middle = (count - 1.0) / 2.0;
    let along = |(i, bin): (usize, &f64)| (i as f64 - middle) * (bin - level);
    let explained: f64 = bins.iter().enumerate().map(along).sum();
    let around = squares(&residuals(bins).collect::<Vec<_>>());
    // The squares of positions around their middle add up to n (n^2 - 1) / 12.
    around - explained * explained / (count * (count * count - 1.0) / 12.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bin, Nanos, RandomStream, Seed};

    const WIDTH: Nanos = Nanos(1 << 25);
    const LEVEL: f64 = 30e6;

    /// A run with bins at these multiples of the level.
    fn run(levels: impl IntoIterator<Item = f64>) -> Series {
        #[expect(clippy::cast_sign_loss, reason = "no level is below zero")]
        let bin = |level: f64| Bin { operations: 8, bytes: (LEVEL * level.max(0.0)) as u64 };
        Series::from_bins(WIDTH, levels.into_iter().map(bin).collect())
    }

    /// A share of `count`, rounded down.
    fn part(count: usize, share: f64) -> usize {
        #[expect(clippy::cast_sign_loss, reason = "no share is below zero")]
        let part = (share * count as f64) as usize;
        part
    }

    fn normal(stream: &mut RandomStream) -> f64 {
        (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
    }

    /// The noise of a steady storage in each of its bins.
    #[derive(Debug, Clone, Copy)]
    enum Noise {
        /// Independent, with this spread.
        White(f64),
        /// Each bin has 0.8 of the deviation of the one before.
        Slow(f64),
        /// A pause in each period, of up to half of it: files are synced when they are full. The period is up
        /// to this share of the run.
        Sawtooth(f64),
        /// One stall of up to a tenth of the run, anywhere, and some noise.
        Stall,
        /// A start-up of up to a tenth of the run, and some noise.
        Ramp,
    }

    const NOISES: [Noise; 7] = [
        Noise::White(0.1),
        Noise::White(0.4),
        Noise::Slow(0.1),
        Noise::Sawtooth(0.01),
        Noise::Sawtooth(0.05),
        Noise::Stall,
        Noise::Ramp,
    ];

    impl Noise {
        fn levels(self, stream: &mut RandomStream, count: usize) -> Vec<f64> {
            let share = |stream: &mut RandomStream, most: f64| 1 + part(count, stream.unit() * most);
            match self {
                Noise::White(spread) => (0..count).map(|_| 1.0 + spread * normal(stream)).collect(),
                Noise::Slow(spread) => {
                    let mut deviation = 0.0;
                    let step = |_| {
                        deviation = 0.8 * deviation + 0.6 * spread * normal(stream);
                        1.0 + deviation
                    };
                    (0..count).map(step).collect()
                }
                Noise::Sawtooth(most) => {
                    let (period, phase) = (2 + share(stream, most), share(stream, most));
                    let pause = 1 + stream.below(period as u64 / 2) as usize;
                    let level = |bin| if (bin + phase) % period < pause { 0.0 } else { 1.0 };
                    (0..count).map(level).collect()
                }
                Noise::Stall => {
                    let mut levels = Noise::White(0.1).levels(stream, count);
                    let length = share(stream, 0.1);
                    let from = stream.below((count - length) as u64) as usize;
                    levels[from..from + length].fill(0.0);
                    levels
                }
                Noise::Ramp => {
                    let mut levels = Noise::White(0.1).levels(stream, count);
                    let length = share(stream, 0.1);
                    (0..length).for_each(|bin| levels[bin] *= bin as f64 / length as f64);
                    levels
                }
            }
        }
    }

    /// The share of 1000 random runs of 300 to 600 bins, in percent, for which `what` holds.
    fn percent(what: impl Fn(&mut RandomStream, usize) -> bool) -> f64 {
        let one = |seed: &u64| {
            let mut stream = Seed(*seed).stream();
            let count = 300 + stream.below(300) as usize;
            what(&mut stream, count)
        };
        (0..1000).filter(one).count() as f64 / 10.0
    }

    /// The run's levels with those from `at` on, as a share of the run, times `factor`.
    fn stepped(mut levels: Vec<f64>, at: f64, factor: f64) -> Series {
        let from = part(levels.len(), at);
        levels[from..].iter_mut().for_each(|level| *level *= factor);
        run(levels)
    }

    #[test]
    fn a_steady_storage_shows_no_step() {
        for noise in NOISES.into_iter().chain([Noise::Slow(0.6)]) {
            let alarms = percent(|stream, count| step(&run(noise.levels(stream, count))).is_some());
            println!("{noise:?}: {alarms} % false alarms");
            assert!(alarms <= 0.2, "{noise:?}: {alarms} %");
        }
        let drift = percent(|stream, count| {
            let levels = Noise::White(0.1).levels(stream, count);
            let slope = |(i, level): (usize, f64)| level * (1.0 - 0.7 * i as f64 / count as f64);
            step(&run(levels.into_iter().enumerate().map(slope))).is_some()
        });
        assert!(drift <= 0.5, "{drift} % of drifts are called steps");
    }

    #[test]
    fn a_full_cache_is_found_with_its_volume_and_both_rates() {
        let levels = (0..400).map(|bin| if bin < 50 { 4.0 } else { 1.0 });
        let found = step(&run(levels)).expect("it is plain");
        assert_eq!(found.volume, Bytes(50 * 4 * 30_000_000));
        let rate = LEVEL / WIDTH.seconds();
        assert!(
            (found.before.0 / rate - 4.0).abs() < 1e-6 && (found.after.0 / rate - 1.0).abs() < 1e-6,
            "{found:?}"
        );
        assert_eq!(step(&run((0..400).map(|bin| if bin < 50 { 1.0 } else { 4.0 }))), None, "a rise");
        assert_eq!(step(&run([1.0; 20])), None, "too short");
    }

    #[test]
    fn a_full_cache_is_found_in_noise() {
        for noise in NOISES {
            let found = percent(|stream, count| {
                let (at, factor) = (0.05 + 0.5 * stream.unit(), 0.1 + 0.4 * stream.unit());
                let series = stepped(noise.levels(stream, count), at, factor);
                let bins = &series.bins()[..part(count, at)];
                let volume = bins.iter().map(|bin| bin.bytes).sum::<u64>() as f64;
                step(&series).is_some_and(|step| (step.volume.0 as f64 / volume - 1.0).abs() < 0.1)
            });
            println!("{noise:?}: {found} % found within a tenth of the volume");
            assert!(found >= 90.0, "{noise:?}: {found} %");
        }
    }
}
