//! Two subjects beside each other: differences of logarithms, paired within a record, by Welch's method between records.

use nilometer_model::statistics::{CONFIDENCE, Summary, student_at, student_p, variance_ratio_p};

use crate::effect::{Effect, pooled_variance};

/// Two subjects in a phase of a stage.
#[derive(Debug, Clone)]
pub struct SubjectPair {
    /// The one with the higher rates, or with the higher need: index into the subjects.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// How their repeats are set against each other.
    pub basis: PairBasis,
    /// Over all cells that both have.
    pub effect: Effect,
    /// The same by cell.
    pub cells: Vec<CellDifference>,
}

/// How repeats are set against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairBasis {
    /// They were measured in the same rounds of one record, and are pairs.
    Rounds,
    /// They are of two records, and no two belong together: Welch's method.
    Repeats,
}

/// Two subjects in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellDifference {
    /// Index into the rows of the stage.
    pub row: usize,
    /// The first against the second.
    pub effect: Effect,
}

/// A mean difference of logarithms, with what its interval at any confidence follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogDifference {
    /// The mean of the first less that of the second.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that; none where nothing is known of the spread.
    pub freedom: Option<f64>,
    /// Repeats that it is from: the fewer of both.
    pub repeats: usize,
}

impl LogDifference {
    /// With its interval at the usual confidence.
    pub fn effect(&self) -> Effect {
        self.effect_at(CONFIDENCE)
    }

    /// With its interval at a confidence.
    pub fn effect_at(&self, confidence: f64) -> Effect {
        let half = self.freedom.map_or(f64::INFINITY, |freedom| student_at(confidence, freedom) * self.error);
        Effect { log_ratio: self.mean, low: self.mean - half, high: self.mean + half, pairs: self.repeats }
    }
}

impl LogDifference {
    /// How probable so large a difference is if there is none: two-sided.
    pub fn p(&self) -> f64 {
        match self.freedom {
            Some(freedom) if self.error > 0.0 => student_p(self.mean / self.error, freedom),
            Some(_) if self.mean != 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// The logarithms of a quantity in one cell, of both; repeats by their rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellLogs {
    /// Index into the rows of the stage.
    pub(crate) row: usize,
    pub(crate) first: Vec<RoundLog>,
    pub(crate) second: Vec<RoundLog>,
}

/// The logarithm of a repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundLog {
    pub(crate) round: u32,
    pub(crate) log: f64,
}

impl CellLogs {
    /// The log-ratios of repeats of the same round.
    pub(crate) fn differences(&self) -> Vec<f64> {
        let partner = |one: &RoundLog| self.second.iter().find(|other| other.round == one.round);
        self.first.iter().filter_map(|one| Some(one.log - partner(one)?.log)).collect()
    }
}

/// What repeats of two records say that do not belong together.
#[derive(Debug, Clone)]
pub(crate) struct Unpaired {
    /// Over all cells: their mean, each with the same weight.
    pub(crate) overall: LogDifference,
    /// By cell: index into the rows of the stage.
    pub(crate) cells: Vec<(usize, LogDifference)>,
}

/// The variance of repeats around the mean of their cell, with its degrees of freedom.
#[derive(Debug, Clone, Copy)]
struct Spread {
    variance: f64,
    freedom: usize,
}

/// A cell whose repeats spread as much more than those of the others as chance would have it in one of so many has an
/// interval of its own.
const SPREADS_ALIKE: f64 = 0.05;

/// Welch's method over cells that both have. None without any.
///
/// The spread of repeats is taken to be the same in all cells, as within a record, but may be another one of each subject:
/// it is pooled over the cells of each. Where a cell spreads more than that (F test), its own spread counts in it. Where one
/// of the two has no repeats, it is taken to spread as the other.
pub(crate) fn unpaired(cells: &[CellLogs]) -> Option<Unpaired> {
    let known: Vec<CellValues> = cells.iter().filter_map(CellValues::of).collect();
    let first = pooled(known.iter().map(|cell| cell.first.as_slice()));
    let second = pooled(known.iter().map(|cell| cell.second.as_slice()));
    let [first, second] = [or_other(first, second), or_other(second, first)];
    let of_cell = |cell: &CellValues| (cell.row, cell.difference(first, second));
    let by_cell: Vec<(usize, LogDifference)> = known.iter().map(of_cell).collect();
    Some(Unpaired { overall: overall(&known, &by_cell, first, second)?, cells: by_cell })
}

fn pooled<'a>(cells: impl Iterator<Item = &'a [f64]>) -> Spread {
    let (variance, freedom) = pooled_variance(cells);
    Spread { variance, freedom }
}

fn or_other(one: Spread, other: Spread) -> Spread {
    if one.freedom > 0 { one } else { other }
}

/// A cell with repeats of both.
struct CellValues {
    row: usize,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl CellValues {
    fn of(cell: &CellLogs) -> Option<Self> {
        let logs = |rounds: &[RoundLog]| -> Vec<f64> { rounds.iter().map(|round| round.log).collect() };
        let values = CellValues { row: cell.row, first: logs(&cell.first), second: logs(&cell.second) };
        (!values.first.is_empty() && !values.second.is_empty()).then_some(values)
    }

    fn mean(&self) -> f64 {
        mean(&self.first) - mean(&self.second)
    }

    fn difference(&self, first: Spread, second: Spread) -> LogDifference {
        let first = share(own_if_larger(&self.first, first), self.first.len());
        let second = share(own_if_larger(&self.second, second), self.second.len());
        welch(self.mean(), first, second, self.first.len().min(self.second.len()))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The cell's own spread, where it is surely larger than that of all.
fn own_if_larger(values: &[f64], all: Spread) -> Spread {
    let own = pooled(std::iter::once(values));
    let ratio = own.variance / all.variance.max(f64::MIN_POSITIVE);
    let larger = own.freedom > 0
        && own.freedom < all.freedom
        && variance_ratio_p(ratio, own.freedom, all.freedom - own.freedom) < SPREADS_ALIKE;
    if larger { own } else { all }
}

/// What one side adds to the variance of the difference.
fn share(spread: Spread, repeats: usize) -> Spread {
    Spread { variance: spread.variance / repeats.max(1) as f64, freedom: spread.freedom }
}

/// The degrees of freedom are those of Welch and Satterthwaite.
fn welch(mean: f64, first: Spread, second: Spread, repeats: usize) -> LogDifference {
    let variance = first.variance + second.variance;
    let part = |side: Spread| side.variance.powi(2) / side.freedom as f64;
    let freedom = match (first.freedom, second.freedom) {
        (0, 0) => None,
        (one, other) if variance <= 0.0 => Some((one + other) as f64),
        _ => Some(variance.powi(2) / (part(first) + part(second))),
    };
    LogDifference { mean, error: variance.sqrt(), freedom, repeats }
}

/// Fewer cells without repeats say too little of how they differ.
const CELLS_LEAST: usize = 3;

/// The mean over cells. Where no cell has repeats, cells are what it is from, as pairs are within a record.
fn overall(
    known: &[CellValues],
    cells: &[(usize, LogDifference)],
    first: Spread,
    second: Spread,
) -> Option<LogDifference> {
    let means: Vec<f64> = cells.iter().map(|(_, cell)| cell.mean).collect();
    let summary = Summary::of(&means)?;
    let repeats = cells.iter().map(|(_, cell)| cell.repeats).sum();
    if first.freedom == 0 {
        let enough = means.len() >= CELLS_LEAST;
        return Some(LogDifference {
            mean: summary.mean,
            error: summary.sem.unwrap_or(f64::INFINITY),
            freedom: enough.then(|| (means.len() - 1) as f64),
            repeats,
        });
    }
    let weight = 1.0 / (known.len() as f64).powi(2);
    let of = |spread: Spread, repeats: fn(&CellValues) -> usize| {
        let shares = known.iter().map(|cell| weight * spread.variance / repeats(cell) as f64);
        Spread { variance: shares.sum(), freedom: spread.freedom }
    };
    let first = of(first, |cell| cell.first.len());
    let second = of(second, |cell| cell.second.len());
    Some(welch(summary.mean, first, second, repeats))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: usize, first: &[f64], second: &[f64]) -> CellLogs {
        let rounds =
            |values: &[f64]| (0..).zip(values).map(|(round, &log)| RoundLog { round, log }).collect();
        CellLogs { row, first: rounds(first), second: rounds(second) }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1e-9)
    }

    /// Means 20.82 and 22.98857, variances 7.8293 and 0.8548 (n = 5 and 7): t = -1.6914, 4.5836 degrees of freedom, worked by
    /// the formula apart from this code.
    #[test]
    fn welch_as_worked_by_hand() {
        let first = [17.2, 20.9, 22.6, 18.1, 25.3];
        let second = [21.5, 22.8, 21.0, 23.0, 22.5, 23.6, 23.6];
        let found = unpaired(&[cell(0, &first, &second)]).expect("a cell");
        let of = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            squares / (values.len() - 1) as f64 / values.len() as f64
        };
        let (a, b) = (of(&first), of(&second));
        let freedom = (a + b).powi(2) / (a * a / 4.0 + b * b / 6.0);
        let LogDifference { error, freedom: found_freedom, .. } = found.overall;
        assert!(near(error, (a + b).sqrt()), "{found:?}");
        assert!(near(found_freedom.expect("repeats"), freedom), "{found:?}");
        assert_eq!(found.overall.mean.to_bits(), found.cells[0].1.mean.to_bits(), "one cell is its stage");
    }

    #[test]
    fn a_cell_that_spreads_more_has_its_own_interval() {
        let quiet = |row: usize| cell(row, &[1.0, 1.01, 0.99, 1.0], &[1.0, 0.99, 1.01, 1.0]);
        let mut cells: Vec<CellLogs> = (0..8).map(quiet).collect();
        cells.push(cell(8, &[1.5, 0.4, 1.9, 0.6], &[1.0, 0.99, 1.01, 1.0]));
        let found = unpaired(&cells).expect("cells");
        let width = |at: usize| found.cells[at].1.effect().high - found.cells[at].1.effect().low;
        assert!(width(8) > 1.0, "{}", width(8));
        // The noisy one is among those that the spread is pooled over: that widens the others, and not as far.
        assert!(width(0) < 0.75 * width(8), "{} {}", width(0), width(8));
    }

    #[test]
    fn without_repeats_many_cells_decide_and_few_do_not() {
        let single = |row: usize| cell(row, &[0.1 + 0.001 * row as f64], &[0.0]);
        let few: Vec<CellLogs> = (0..2).map(single).collect();
        assert!(unpaired(&few).expect("cells").overall.effect().low.is_infinite());
        let many: Vec<CellLogs> = (0..6).map(single).collect();
        let found = unpaired(&many).expect("cells");
        assert!(found.overall.effect().low > 0.09 && found.cells[0].1.effect().low.is_infinite());
        assert!(unpaired(&[cell(0, &[1.0], &[])]).is_none(), "nothing to compare");
        let lone = unpaired(&[cell(0, &[0.5], &[0.0, 0.01, 0.02])]).expect("a cell");
        assert!(lone.overall.effect().low.is_finite(), "it is taken to spread as the other");
    }
}
