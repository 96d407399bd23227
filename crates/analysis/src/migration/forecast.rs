//! The time that moving many files takes, from the copies of short runs.
//!
//! A copy takes a time for each file and a time for each byte. Two trees with files of different sizes give both:
//!
//! ```text
//!   1000 files, 100 MB:  2.00 s  =  1000 a +   100 MB x c      a = 1 ms a file
//!     10 files,   1 GB: 10.01 s  =    10 a +  1000 MB x c      c = 10 ns a byte, 100 MB/s
//!   a million files, 1 TB: 1000 s + 10 000 s
//! ```
//!
//! One tree gives a range: its time may all be due to its bytes, or all to its files. If the files to move are
//! as large as those of the tree, both ends agree.

use nilometer_model::{Bytes, statistics::Summary};

/// The bytes and files to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveAmount {
    /// Bytes of all files.
    pub bytes: Bytes,
    /// The number of files; `None` if they are as large as those of the copied tree.
    pub files: Option<u64>,
}

/// The copy of a tree in one repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CopiedPart {
    /// Files copied.
    pub(super) files: f64,
    /// Bytes copied.
    pub(super) bytes: f64,
    /// The time that this took, in seconds.
    pub(super) seconds: f64,
}

/// The time that a move will take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveForecast {
    /// The least and the greatest estimate, which are the same if the figures decide the time of a file.
    pub expected: (f64, f64),
    /// The interval at 95 % around both, from the spread of repeats; `None` with one repeat.
    pub interval: Option<(f64, f64)>,
    /// The times of a file and of a byte, as means over repeats; `None` if the copied trees don't tell them apart.
    pub costs: Option<CopyCosts>,
}

/// The times of a copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyCosts {
    /// Seconds for each file.
    pub per_file: f64,
    /// Seconds for each byte.
    pub per_byte: f64,
}

impl MoveForecast {
    /// The forecast from repeats, each of which has the copy of every tree. `None` without a repeat that copied
    /// something.
    pub(super) fn of(amount: MoveAmount, repeats: &[Vec<CopiedPart>]) -> Option<MoveForecast> {
        let costs: Option<Vec<CopyCosts>> = repeats.iter().map(|parts| solved(parts)).collect();
        let costs = costs.filter(|costs| !costs.is_empty());
        if let (Some(costs), Some(files)) = (&costs, amount.files) {
            let times: Vec<f64> = costs.iter().map(|cost| cost.time(amount.bytes, files)).collect();
            return Some(MoveForecast { costs: mean_costs(costs), ..MoveForecast::over(&[times])? });
        }
        let trees = repeats.iter().map(Vec::len).min()?;
        let mut estimates = Vec::new();
        for tree in 0..trees {
            let parts: Vec<CopiedPart> = repeats.iter().map(|parts| parts[tree]).collect();
            estimates.extend(by_bytes(amount, &parts));
            estimates.extend(by_files(amount, &parts));
        }
        MoveForecast::over(&estimates)
    }

    /// The range of several estimates, each over all repeats.
    fn over(estimates: &[Vec<f64>]) -> Option<MoveForecast> {
        let summaries: Vec<Summary> = estimates.iter().filter_map(|times| Summary::of(times)).collect();
        let means = summaries.iter().map(|summary| summary.mean);
        let expected = (means.clone().reduce(f64::min)?, means.reduce(f64::max)?);
        let ends: Option<Vec<(f64, f64)>> = summaries.iter().map(ends_of).collect();
        let interval = ends.map(|ends| {
            let low = ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
            (low, ends.iter().map(|(_, high)| *high).fold(0.0, f64::max))
        });
        Some(MoveForecast { expected, interval, costs: None })
    }
}

impl CopyCosts {
    fn time(&self, Bytes(bytes): Bytes, files: u64) -> f64 {
        self.per_file * files as f64 + self.per_byte * bytes as f64
    }
}

/// The ends of the interval of a time; no time is below zero.
fn ends_of(summary: &Summary) -> Option<(f64, f64)> {
    let half = summary.half_width()?;
    Some(((summary.mean - half).max(0.0), summary.mean + half))
}

/// The times if all of a copy's time is due to its bytes; `None` if a repeat copied none.
fn by_bytes(amount: MoveAmount, parts: &[CopiedPart]) -> Option<Vec<f64>> {
    let time = |part: &CopiedPart| (part.bytes > 0.0).then(|| part.seconds / part.bytes);
    let of_a_byte: Option<Vec<f64>> = parts.iter().map(time).collect();
    Some(of_a_byte?.into_iter().map(|seconds| seconds * amount.bytes.0 as f64).collect())
}

/// The times if all of a copy's time is due to its files; `None` if their number is unknown, or a repeat copied
/// none.
fn by_files(amount: MoveAmount, parts: &[CopiedPart]) -> Option<Vec<f64>> {
    let files = amount.files?;
    let time = |part: &CopiedPart| (part.files > 0.0).then(|| part.seconds / part.files);
    let of_a_file: Option<Vec<f64>> = parts.iter().map(time).collect();
    Some(of_a_file?.into_iter().map(|seconds| seconds * files as f64).collect())
}

fn mean_costs(costs: &[CopyCosts]) -> Option<CopyCosts> {
    let mean =
        |cost: fn(&CopyCosts) -> f64| Some(Summary::of(&costs.iter().map(cost).collect::<Vec<_>>())?.mean);
    Some(CopyCosts { per_file: mean(|cost| cost.per_file)?, per_byte: mean(|cost| cost.per_byte)? })
}

/// Trees whose mean sizes differ by less than this share tell nothing about the time of a file.
const DIFFER_LEAST: f64 = 0.5;

/// The times of a file and of a byte that explain these copies best: the least squares of relative errors, with no
/// time below zero. `None` if the mean sizes of files hardly differ.
fn solved(parts: &[CopiedPart]) -> Option<CopyCosts> {
    let sizes: Option<Vec<f64>> =
        parts.iter().map(|part| (part.files > 0.0).then(|| part.bytes / part.files)).collect();
    let sizes = sizes?;
    let least = sizes.iter().copied().reduce(f64::min)?;
    let greatest = sizes.iter().copied().fold(0.0, f64::max);
    if greatest <= least * (1.0 + DIFFER_LEAST) {
        return None;
    }
    // With x files and y bytes a second, each copy is a x + c y = 1.
    let rates = || parts.iter().map(|part| (part.files / part.seconds, part.bytes / part.seconds));
    let sum = |of: fn(f64, f64) -> f64| rates().map(|(x, y)| of(x, y)).sum::<f64>();
    let [xx, xy, yy] = [sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y)];
    let [x, y] = [sum(|x, _| x), sum(|_, y| y)];
    let determinant = xx * yy - xy * xy;
    let per_file = (x * yy - y * xy) / determinant;
    let per_byte = (y * xx - x * xy) / determinant;
    Some(match (per_file < 0.0, per_byte < 0.0) {
        (true, _) => CopyCosts { per_file: 0.0, per_byte: y / yy },
        (_, true) => CopyCosts { per_file: x / xx, per_byte: 0.0 },
        _ => CopyCosts { per_file, per_byte },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERABYTE: Bytes = Bytes(1_000_000_000_000);

    fn part(files: f64, bytes: f64, seconds: f64) -> CopiedPart {
        CopiedPart { files, bytes, seconds }
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-6 * other.abs()
    }

    fn forecast(files: Option<u64>, repeats: &[Vec<CopiedPart>]) -> MoveForecast {
        MoveForecast::of(MoveAmount { bytes: TERABYTE, files }, repeats).expect("something was copied")
    }

    #[test]
    fn two_trees_give_the_time_of_a_file_and_of_a_byte() {
        let repeat = vec![part(1000.0, 1e8, 2.0), part(10.0, 1e9, 10.01)];
        let found = forecast(Some(1_000_000), &[repeat]);
        assert!(is_near(found.expected.0, 11_000.0) && is_near(found.expected.1, 11_000.0), "{found:?}");
        let costs = found.costs.expect("the trees differ");
        assert!(is_near(costs.per_file, 1e-3) && is_near(costs.per_byte, 1e-8), "{costs:?}");
        assert_eq!(found.interval, None, "one repeat has no spread");
    }

    #[test]
    fn one_tree_gives_a_range_that_closes_at_its_own_size_of_files() {
        // 1000 files of 100 kB in 2 s: 50 MB/s and 500 files/s.
        let repeat = || vec![part(1000.0, 1e8, 2.0)];
        let few = forecast(Some(1_000_000), &[repeat()]);
        assert_eq!(few.expected, (2000.0, 20_000.0), "files of a MB: by files, and by bytes");
        let alike = forecast(Some(10_000_000), &[repeat()]);
        assert_eq!(alike.expected, (20_000.0, 20_000.0));
        let unknown = forecast(None, &[repeat()]);
        assert_eq!((unknown.expected, unknown.costs), ((20_000.0, 20_000.0), None));
    }

    #[test]
    fn the_spread_of_repeats_gives_the_interval() {
        // 1 TB at 100, 125 and 80 MB/s: 10 000, 8000 and 12 500 s. Mean 10 166.7, deviation 2254.6, t for two
        // degrees of freedom 4.3027: 10 166.7 +- 5600.8.
        let repeats = [1.0, 0.8, 1.25].map(|seconds| vec![part(1.0, 1e8, seconds)]);
        let found = forecast(None, &repeats);
        let (low, high) = found.interval.expect("three repeats");
        assert!((found.expected.0 - 10_166.67).abs() < 0.01, "{found:?}");
        assert!((low - 4565.9).abs() < 1.0 && (high - 15_767.4).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn noise_makes_no_time_negative() {
        // The tree of small files was faster by bytes than that of large ones.
        let repeat = vec![part(1000.0, 1e8, 0.5), part(10.0, 1e9, 10.0)];
        let costs = forecast(Some(1), &[repeat]).costs.expect("the trees differ");
        assert!(is_near(costs.per_file, 0.0) || costs.per_file == 0.0, "{costs:?}");
        // y is 2e8 and 1e8: y / yy is 3e8 / 5e16.
        assert!(is_near(costs.per_byte, 6e-9), "{costs:?}");
    }

    #[test]
    fn a_repeat_without_a_whole_file_still_tells_about_bytes() {
        let found = forecast(Some(1000), &[vec![part(0.0, 1e9, 10.0)]]);
        assert_eq!(found.expected, (10_000.0, 10_000.0));
        assert_eq!(MoveForecast::of(MoveAmount { bytes: TERABYTE, files: None }, &[]), None);
        let nothing = [vec![part(0.0, 0.0, 10.0)]];
        assert_eq!(MoveForecast::of(MoveAmount { bytes: TERABYTE, files: None }, &nothing), None);
    }
}
