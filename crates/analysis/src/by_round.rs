//! The interval of a mean over cells, and of each cell, from values measured in rounds. It is one method for
//! everything that pools cells, such as targets, load levels, elements and records.
//!
//! The cells of a round are measured in the same minutes. A storage that is slow in these minutes is slow in all
//! of them, so cells are not independent of each other. Rounds are independent, and a round counts once:
//!
//! ```text
//!             cell 1   cell 2   cell 3    mean
//!   round 1     0.02     0.05     0.02    0.03
//!   round 2    -0.04     0.00    -0.05   -0.03     three values, two degrees of freedom:
//!   round 3     0.05     0.01     0.00    0.02     0.007 +- 4.30 x 0.032 / sqrt 3
//! ```
//!
//! A round with missing cells would shift its mean by the differences between cells. Each cell therefore has the
//! same weight, and the error is that of the jackknife: how far the mean over cells moves without one round. If
//! all cells are in all rounds, this is Student's t over the means of rounds.
//!
//! A single cell has few repeats. Its variance leans on that of all cells, which counts as [`SPREAD_PRIOR`] more
//! degrees of freedom. The limit is there because cells may differ in their spread (G. K. Smyth, "Linear models
//! and empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3, 2004, with a fixed
//! prior).
//!
//! Cells that go up and down together have fewer degrees of freedom than their number suggests. The more the
//! cells of a round have in common, the less a cell takes from the others.

use std::collections::BTreeMap;

use nilometer_model::statistics::{CONFIDENCE, SPREAD_PRIOR, student_at, student_p};

use crate::effect::Effect;

/// The logarithm of a repeat, or of the ratio of two repeats of the same round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundLog {
    pub(crate) round: u32,
    pub(crate) log: f64,
}

/// The values of a cell, by round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellRounds {
    /// The caller's number for the cell.
    pub(crate) row: usize,
    pub(crate) values: Vec<RoundLog>,
}

/// The means of values by round.
#[derive(Debug, Clone)]
pub(crate) struct RoundMeans {
    /// Mean over all cells, each with the same weight.
    pub(crate) overall: RoundEstimate,
    /// Each cell's number and mean.
    pub(crate) cells: Vec<(usize, RoundEstimate)>,
    /// Number of rounds with a value of any cell.
    pub(crate) rounds: usize,
}

/// A mean of logarithms, with its variance over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundEstimate {
    pub(crate) mean: f64,
    /// The variance of the mean.
    variance: f64,
    /// The degrees of freedom of the variance; `None` for a single round, which does not show the variance.
    freedom: Option<f64>,
    /// Number of rounds that would give the mean the same weight.
    rounds: f64,
    /// The number of values.
    values: usize,
}

/// A mean difference of logarithms, with all that determines its interval at any confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogDifference {
    /// The mean of the first minus that of the second.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error; `None` if the spread is unknown.
    pub freedom: Option<f64>,
    /// Number of repeats: the smaller number of the two.
    pub repeats: usize,
}

impl LogDifference {
    /// The effect with its interval at the usual confidence.
    pub fn effect(&self) -> Effect {
        self.effect_at(CONFIDENCE)
    }

    /// The effect with its interval at this confidence.
    pub fn effect_at(&self, confidence: f64) -> Effect {
        let half = self.freedom.map_or(f64::INFINITY, |freedom| student_at(confidence, freedom) * self.error);
        Effect { log_ratio: self.mean, low: self.mean - half, high: self.mean + half, pairs: self.repeats }
    }

    /// The two-sided p-value: the probability of such a large difference if there is none.
    pub fn p(&self) -> f64 {
        match self.freedom {
            Some(freedom) if self.error > 0.0 => student_p(self.mean / self.error, freedom),
            Some(_) if self.mean != 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// The means over cells and of each cell. Cells without values are ignored; `None` if no cell has any.
pub(crate) fn round_means(cells: &[CellRounds]) -> Option<RoundMeans> {
    let known: Vec<CellValues<'_>> = cells.iter().filter_map(CellValues::of).collect();
    let left_out = LeftOut::of(&known);
    let overall = overall(&known, &left_out)?;
    let spread = CommonSpread::of(&known);
    let cells = known.iter().map(|cell| (cell.row, spread.estimate(cell))).collect();
    Some(RoundMeans { overall, cells, rounds: left_out.len() })
}

/// A cell with at least one value.
struct CellValues<'a> {
    row: usize,
    values: &'a [RoundLog],
    mean: f64,
}

impl<'a> CellValues<'a> {
    fn of(cell: &'a CellRounds) -> Option<Self> {
        let sum: f64 = cell.values.iter().map(|value| value.log).sum();
        let mean = sum / cell.values.len() as f64;
        (!cell.values.is_empty()).then_some(CellValues { row: cell.row, values: &cell.values, mean })
    }

    fn count(&self) -> f64 {
        self.values.len() as f64
    }

    /// Degrees of freedom of its own variance.
    fn freedom(&self) -> f64 {
        self.count() - 1.0
    }

    fn squares(&self) -> f64 {
        self.values.iter().map(|value| (value.log - self.mean).powi(2)).sum()
    }
}

/// The change of the sum of the cells' means when a round is left out.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    /// The change of the sum.
    shift: f64,
    /// Number of cells without any other round.
    dropped: usize,
    /// The weight of the round in the mean over cells.
    weight: f64,
}

impl LeftOut {
    fn of(cells: &[CellValues<'_>]) -> BTreeMap<u32, LeftOut> {
        let mut rounds: BTreeMap<u32, LeftOut> = BTreeMap::new();
        for cell in cells {
            for value in cell.values {
                let round = rounds.entry(value.round).or_default();
                round.weight += 1.0 / (cell.count() * cells.len() as f64);
                if cell.values.len() > 1 {
                    round.shift += (cell.mean - value.log) / cell.freedom();
                } else {
                    round.shift -= cell.mean;
                    round.dropped += 1;
                }
            }
        }
        rounds
    }
}

/// The mean over cells, with the error of the jackknife over rounds. Rounds with few cells have little weight,
/// and add few degrees of freedom.
fn overall(cells: &[CellValues<'_>], rounds: &BTreeMap<u32, LeftOut>) -> Option<RoundEstimate> {
    if cells.is_empty() {
        return None;
    }
    let sum: f64 = cells.iter().map(|cell| cell.mean).sum();
    let count = rounds.len() as f64;
    let without = |round: &LeftOut| (sum + round.shift) / (cells.len() - round.dropped) as f64;
    let squares: f64 = rounds.values().map(|round| round.weight.powi(2)).sum();
    let fourths: f64 = rounds.values().map(|round| round.weight.powi(4)).sum();
    let freedom = squares.powi(2) / fourths - 1.0;
    let mut estimate = RoundEstimate {
        mean: sum / cells.len() as f64,
        variance: f64::INFINITY,
        freedom: None,
        rounds: 1.0 / squares,
        values: cells.iter().map(|cell| cell.values.len()).sum(),
    };
    if rounds.len() > 1 {
        let means: Vec<f64> = rounds.values().map(without).collect();
        let mean = means.iter().sum::<f64>() / count;
        let spread: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
        estimate.variance = spread * (count - 1.0) / count;
        estimate.freedom = Some(freedom);
    }
    Some(estimate)
}

/// The variance of values around the mean of their cell, over all cells.
#[derive(Debug, Clone, Copy)]
struct CommonSpread {
    variance: f64,
    /// Its degrees of freedom; fewer if cells go up and down together, 0 without repeats.
    freedom: f64,
}

/// Sums over the values of a round.
#[derive(Debug, Clone, Copy, Default)]
struct RoundSum {
    sum: f64,
    squares: f64,
    count: f64,
}

impl CommonSpread {
    fn of(cells: &[CellValues<'_>]) -> Self {
        let repeated: Vec<&CellValues<'_>> = cells.iter().filter(|cell| cell.values.len() > 1).collect();
        let squares: f64 = repeated.iter().map(|cell| cell.squares()).sum();
        let freedom: f64 = repeated.iter().map(|cell| cell.freedom()).sum();
        let rounds = round_sums(&repeated);
        let values: f64 = rounds.values().map(|round| round.count).sum();
        let correlation = correlation(&rounds, squares / values.max(1.0));
        let cells_a_round = values / rounds.len().max(1) as f64;
        let together = 1.0 + (cells_a_round - 1.0).max(0.0) * correlation;
        CommonSpread { variance: squares / freedom.max(1.0), freedom: freedom / together }
    }

    /// A cell's mean. Its variance combines its own, if it has repeats, with the common one, if there is one.
    fn estimate(&self, cell: &CellValues<'_>) -> RoundEstimate {
        let own = cell.freedom();
        let prior = SPREAD_PRIOR.min((self.freedom - own).max(0.0));
        let freedom = own + prior;
        let variance = (cell.squares() + prior * self.variance) / freedom;
        RoundEstimate {
            mean: cell.mean,
            variance: if freedom > 0.0 { variance / cell.count() } else { f64::INFINITY },
            freedom: (freedom > 0.0).then_some(freedom),
            rounds: cell.count(),
            values: cell.values.len(),
        }
    }
}

fn round_sums(cells: &[&CellValues<'_>]) -> BTreeMap<u32, RoundSum> {
    let mut rounds: BTreeMap<u32, RoundSum> = BTreeMap::new();
    for cell in cells {
        for value in cell.values {
            let residual = value.log - cell.mean;
            let round = rounds.entry(value.round).or_default();
            round.sum += residual;
            round.squares += residual.powi(2);
            round.count += 1.0;
        }
    }
    rounds
}

/// The correlation of cells in the same round: 1 if they only move together, 0 if each moves by itself. Few
/// rounds show little of it, so one perfectly correlated round is added to the measured ones.
fn correlation(rounds: &BTreeMap<u32, RoundSum>, variance: f64) -> f64 {
    let products: f64 = rounds.values().map(|round| round.sum.powi(2) - round.squares).sum();
    let pairs: f64 = rounds.values().map(|round| round.count * (round.count - 1.0)).sum();
    let found = if pairs > 0.0 && variance > 0.0 { products / pairs / variance } else { 0.0 };
    let count = rounds.len().max(1) as f64;
    (found.clamp(0.0, 1.0) * (count - 1.0) + 1.0) / count
}

impl RoundEstimate {
    /// Its distance from zero; for logarithms of ratios, this is the difference.
    pub(crate) fn difference(&self) -> LogDifference {
        LogDifference {
            mean: self.mean,
            error: self.variance.sqrt(),
            freedom: self.freedom,
            repeats: self.values,
        }
    }

    /// Its distance from an estimate with other rounds, by Welch's method. If one of them has no repeats, it gets
    /// the spread of the other.
    pub(crate) fn minus(&self, other: &RoundEstimate) -> LogDifference {
        let [one, two] = [self.or_as(other), other.or_as(self)];
        let variance = one.variance + two.variance;
        let part = |side: &RoundEstimate, freedom: f64| side.variance.powi(2) / freedom;
        let freedom = match (self.freedom, other.freedom) {
            (None, known) | (known, None) => known,
            (Some(first), Some(second)) if variance <= 0.0 => Some(first + second),
            (Some(first), Some(second)) => Some(variance.powi(2) / (part(&one, first) + part(&two, second))),
        };
        LogDifference {
            mean: self.mean - other.mean,
            error: variance.sqrt(),
            freedom,
            repeats: self.values.min(other.values),
        }
    }

    fn or_as(&self, other: &RoundEstimate) -> RoundEstimate {
        if self.freedom.is_some() {
            return *self;
        }
        RoundEstimate { variance: other.variance * other.rounds / self.rounds, ..*self }
    }
}

#[cfg(test)]
mod tests;
