//! Whether a recording at full speed has come to its rate in the long run, and where a cache was full before that. From
//! the series of one recording to the rate that a verdict may use.

use std::f64::consts::PI;

use crate::{ByteRate, Bytes, Nanos, Series, statistics::student};

/// What a recording comes to in the long run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// The mean over the last third of the run, its stalls included.
    pub rate: ByteRate,
    /// Where that third begins, from the start of the series.
    pub from: Nanos,
}

/// Halves of the last third that differ by less than this are alike, as a share of the rate.
pub const MARGIN: f64 = 0.1;

/// Slow waves in each half from which the noise of its mean is estimated.
const WAVES: usize = 4;

/// Fewer bins than this in the last third say nothing.
const BINS_LEAST: usize = 20;

/// Whether the rate has been steady for the last third of the run, and which rate that is. May be asked at any time while
/// data are taken; the more often, the more likely is a lucky yes.
///
/// The third is cut into halves. The 95 % interval of how much the mean of the later one is above that of the earlier one must
/// lie within [`MARGIN`] to both sides. That is an equivalence test: noise makes for *not yet*, never for *steady*. Why so:
///
/// - Files that are synced when full make a sawtooth, and neighbouring bins are alike in other ways. So the noise of a mean
///   is not that of single bins, but what is left at low frequencies: the mean square of the first four cosine waves of each
///   half, with Student's t for 8 degrees of freedom (Lazarus, Lewis, Stock and Watson, HAR inference: recommendations for
///   practice, 2018). A tooth that comes more than a few times in a half adds little, whatever its period.
/// - A single stall says nothing of the level: a pause (bins below half of the mean) that is more than twice as long as any
///   other is filled with the mean of the others before halves are compared. The rate that is given does count it.
/// - A cache that is full just now looks like a stall. So a pause at the very end is not filled.
///
/// None as well of fewer than 60 bins.
pub fn steady(series: &Series) -> Option<Steady> {
    let bins = finished(series);
    let from = bins.len() - bins.len() / 3;
    let third = &bins[from..];
    let filled = without_pause(third);
    let (low, high) = shift(&filled);
    let alike = third.len() >= BINS_LEAST && low > -MARGIN && high < MARGIN;
    let width = series.width();
    alike.then(|| Steady { rate: rate(third, width), from: Nanos(from as u64 * width.0) })
}

/// Bytes of all bins but the last, which is not over.
fn finished(series: &Series) -> Vec<f64> {
    let bins = series.bins();
    bins[..bins.len().saturating_sub(1)].iter().map(|bin| bin.bytes as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn rate(bins: &[f64], width: Nanos) -> ByteRate {
    ByteRate(mean(bins) / width.seconds())
}

/// The means of so many blocks of equal length, to a bin; none of fewer bins.
fn blocks(bins: &[f64], count: usize) -> Option<Vec<f64>> {
    let edge = |block: usize| block * bins.len() / count;
    let block = |block| mean(&bins[edge(block)..edge(block + 1)]);
    (bins.len() >= count).then(|| (0..count).map(block).collect())
}

/// The bins with the longest pause filled, if it is over and more than twice as long as any other.
fn without_pause(bins: &[f64]) -> Vec<f64> {
    let half = mean(bins) / 2.0;
    let mut pauses: Vec<&[f64]> = bins.split(|bin| *bin >= half).collect();
    let at_end = pauses.pop().map_or(0, <[f64]>::len);
    let mut from = 0;
    let begun = |pause: &&[f64]| {
        from += pause.len() + 1;
        (pause.len(), from - pause.len() - 1)
    };
    let mut pauses: Vec<(usize, usize)> = pauses.iter().map(begun).collect();
    pauses.sort_unstable();
    let (length, from) = pauses.pop().unwrap_or_default();
    let next = pauses.last().map_or(0, |(length, _)| *length).max(at_end);
    let mut filled = bins.to_vec();
    if length > 2 * next {
        filled.drain(from..from + length);
        let level = mean(&filled);
        filled.splice(from..from, std::iter::repeat_n(level, length));
    }
    filled
}

/// The 95 % interval of what the mean of the later half is above that of the earlier one, as a share of the mean.
fn shift(bins: &[f64]) -> (f64, f64) {
    let (earlier, later) = bins.split_at(bins.len() / 2);
    let (above, variance) =
        (mean(later) - mean(earlier), variance_of_mean(earlier) + variance_of_mean(later));
    let half = student(2 * WAVES) * variance.sqrt();
    ((above - half) / mean(bins), (above + half) / mean(bins))
}

/// From the waves with one to four half periods.
fn variance_of_mean(bins: &[f64]) -> f64 {
    let length = bins.len() as f64;
    let wave = |wave: usize| {
        let at = |i: usize| (PI * wave as f64 * (i as f64 + 0.5) / length).cos();
        bins.iter().enumerate().map(|(i, bin)| bin * at(i)).sum::<f64>()
    };
    let waves: Vec<f64> = (1..=WAVES).map(wave).collect();
    2.0 / (length * length) * squares(&waves) / WAVES as f64
}

/// Where a cache was full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What was taken up to there. The cache is smaller: it drained meanwhile.
    pub volume: Bytes,
    /// The mean rate up to there.
    pub before: ByteRate,
    /// The mean rate from there on.
    pub after: ByteRate,
}

/// Where the rate comes back to more than this share of what it was, it did not fall.
const LARGE: f64 = 0.8;

/// How many times its variance by noise the square of a step must be. For one point that is given, 8 would do for a false
/// alarm in two hundred series (F for 1 and 22 degrees of freedom is 9.7); the best of all points needs more. Simulated in
/// the tests.
const CLEAR: f64 = 30.0;

/// Batches from which the noise is estimated.
const BATCHES: usize = 24;

/// Where the rate fell from one level to another, if it did so clearly: two constant pieces fitted by least squares, the
/// later one a third of the run at least, the earlier one a fiftieth. None unless
///
/// - it never came back to four fifths of what it was, in any stretch as long as the earlier piece (or an eighth of the later
///   one, if that is shorter): after a stall it comes back, and so it does between the syncs of files;
/// - the step is large against the noise: the variance of the residuals in the long run, from the means of 24 batches,
///   which counts what neighbouring bins have in common, as the sawtooth of synced files;
/// - two levels fit better than a straight line, which is a drift.
///
/// A rise is no step: so a recording begins.
pub fn step(series: &Series) -> Option<Step> {
    let bins = finished(series);
    let (at, gain) = split(&bins)?;
    let (before, after) = bins.split_at(at);
    let residuals: Vec<f64> = [before, after].into_iter().flat_map(residuals).collect();
    let fell = highest(after, at.min(after.len() / 8).max(1)) <= LARGE * mean(before);
    let clear = gain > CLEAR * long_run_variance(&residuals)?;
    let abrupt = squares(&residuals) < squares_around_line(&bins);
    let volume = series.bins()[..at].iter().map(|bin| bin.bytes).sum();
    let [before, after] = [before, after].map(|piece| rate(piece, series.width()));
    (fell && clear && abrupt).then_some(Step { volume: Bytes(volume), before, after })
}

/// Where two constant pieces, the second below the first, fit best, and by how much the sum of squares is smaller then.
fn split(bins: &[f64]) -> Option<(usize, f64)> {
    let (count, total) = (bins.len(), bins.iter().sum::<f64>());
    let (first, last) = ((count / 50).max(3), count - count.div_ceil(3));
    let (mut at, mut sum, mut best) = (None, 0.0, 0.0);
    for (i, bin) in bins.iter().enumerate().take(last) {
        sum += bin;
        let (left, right) = ((i + 1) as f64, (count - i - 1) as f64);
        let fall = sum / left - (total - sum) / right;
        let gain = left * right / count as f64 * fall * fall;
        if i + 1 >= first && fall > 0.0 && gain > best {
            (at, best) = (Some(i + 1), gain);
        }
    }
    at.map(|at| (at, best))
}

/// The highest mean of so many neighbours.
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

/// The variance of a sum for each of its bins, from the means of batches. None of fewer bins than batches.
fn long_run_variance(residuals: &[f64]) -> Option<f64> {
    let batches = blocks(residuals, BATCHES)?;
    let length = residuals.len() as f64 / BATCHES as f64;
    Some(length * squares(&batches) / (BATCHES - 2) as f64)
}

/// The sum of squares around the straight line that fits best.
fn squares_around_line(bins: &[f64]) -> f64 {
    let (count, level) = (bins.len() as f64, mean(bins));
    let middle = (count - 1.0) / 2.0;
    let along = |(i, bin): (usize, &f64)| (i as f64 - middle) * (bin - level);
    let explained: f64 = bins.iter().enumerate().map(along).sum();
    let around = squares(&residuals(bins).collect::<Vec<_>>());
    around - explained * explained / (count * (count * count - 1.0) / 12.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bin, Seed, Stream};

    const WIDTH: Nanos = Nanos(1 << 25);
    const LEVEL: f64 = 30e6;

    /// A run whose bins hold so many times the level.
    fn run(levels: impl IntoIterator<Item = f64>) -> Series {
        #[expect(clippy::cast_sign_loss, reason = "no level is below zero")]
        let bin = |level: f64| Bin { operations: 1, bytes: (LEVEL * level.max(0.0)) as u64 };
        Series::from_bins(WIDTH, levels.into_iter().map(bin).collect())
    }

    /// So many of `count`, rounded down.
    fn part(count: usize, share: f64) -> usize {
        #[expect(clippy::cast_sign_loss, reason = "no share is below zero")]
        let part = (share * count as f64) as usize;
        part
    }

    fn normal(stream: &mut Stream) -> f64 {
        (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
    }

    /// What a steady storage does to each of so many bins.
    #[derive(Debug, Clone, Copy)]
    enum Noise {
        /// Independent, with this spread.
        White(f64),
        /// Each bin has 0.8 of the deviation of the one before.
        Slow(f64),
        /// A pause in each period, of up to half of it: files are synced when they are full. The period is up to this share
        /// of the run.
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
        fn levels(self, stream: &mut Stream, count: usize) -> Vec<f64> {
            let share = |stream: &mut Stream, most: f64| 1 + part(count, stream.unit() * most);
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

    /// The share of 1000 random runs of 300 to 600 bins, in percent, of which something holds.
    fn percent(what: impl Fn(&mut Stream, usize) -> bool) -> f64 {
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
    fn a_constant_rate_is_steady_and_is_given_exactly() {
        let found = steady(&run([1.0; 301])).expect("constant");
        assert!((found.rate.0 - LEVEL / WIDTH.seconds()).abs() < 1.0, "{}", found.rate);
        assert_eq!(found.from, Nanos(200 * WIDTH.0));
        assert_eq!(
            (steady(&run([1.0; 60])), steady(&run([0.0; 300]))),
            (None, None),
            "too short, or nothing done"
        );
        assert!(steady(&run([1.0; 61])).is_some());
    }

    #[test]
    fn a_steady_storage_is_found_to_be_steady() {
        // With a spread of 0.4 of each bin, a run of 600 bins is too short to tell.
        for (noise, least) in [
            (Noise::White(0.1), 95.0),
            (Noise::Slow(0.1), 15.0),
            (Noise::Sawtooth(0.01), 75.0),
            (Noise::Sawtooth(0.05), 45.0),
            (Noise::Stall, 95.0),
            (Noise::Ramp, 95.0),
        ] {
            let found = percent(|stream, count| steady(&run(noise.levels(stream, count))).is_some());
            println!("{noise:?}: {found} % steady");
            assert!(found >= least, "{noise:?}: {found} %");
        }
    }

    #[test]
    fn a_rate_that_drifts_or_steps_is_not_steady() {
        for noise in NOISES {
            // Its halves of the last third differ by a tenth.
            let drifts = percent(|stream, count| {
                let slope = |(i, level): (usize, f64)| level * (1.0 - 0.6 * i as f64 / count as f64 / 1.5);
                steady(&run(noise.levels(stream, count).into_iter().enumerate().map(slope))).is_some()
            });
            // It steps in the last quarter of the run, but not in its last fiftieth, by a quarter at least.
            let steps = percent(|stream, count| {
                let (at, factor) = (0.75 + 0.23 * stream.unit(), 0.75 * stream.unit());
                steady(&stepped(noise.levels(stream, count), at, factor)).is_some()
            });
            println!("{noise:?}: called steady {drifts} % of drifts, {steps} % of steps");
            assert!(drifts <= 3.0 && steps <= 1.0, "{noise:?}: {drifts} % and {steps} %");
        }
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
