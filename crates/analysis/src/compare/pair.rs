//! Compares two subjects: differences of logarithms, paired within a record, by Welch's method between records.

use crate::{
    by_round::{CellRounds, LogDifference, RoundLog, RoundMeans, round_means},
    effect::Effect,
};

/// Two subjects in a phase of a stage.
#[derive(Debug, Clone)]
pub struct SubjectPair {
    /// The one with the higher rates, or with the higher cost: index into the subjects.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// The way of comparing their repeats.
    pub basis: PairBasis,
    /// The effect over all cells that both have.
    pub effect: Effect,
    /// The same by cell.
    pub cells: Vec<CellDifference>,
}

/// A way of comparing repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairBasis {
    /// The repeats come from the same rounds of one record, and form pairs.
    Rounds,
    /// The repeats come from two records, without pairs: Welch's method.
    Repeats,
}

/// The difference of two subjects in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellDifference {
    /// Index into the rows of the stage.
    pub row: usize,
    /// The first against the second.
    pub effect: Effect,
}

/// The logarithms of both subjects in one cell; repeats by their rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellLogs {
    /// Index into the rows of the stage.
    pub(crate) row: usize,
    pub(crate) first: Vec<RoundLog>,
    pub(crate) second: Vec<RoundLog>,
}

impl CellLogs {
    /// The log-ratios of repeats of the same round.
    pub(crate) fn differences(&self) -> CellRounds {
        let partner = |one: &RoundLog| self.second.iter().find(|other| other.round == one.round);
        let difference =
            |one: &RoundLog| Some(RoundLog { round: one.round, log: one.log - partner(one)?.log });
        CellRounds { row: self.row, values: self.first.iter().filter_map(difference).collect() }
    }
}

impl CellLogs {
    /// The same with a single value of the first subject: the mean of its repeats.
    fn once(&self) -> CellLogs {
        let logs = self.first.iter().map(|repeat| repeat.log);
        let mean = logs.sum::<f64>() / self.first.len().max(1) as f64;
        let mean = (!self.first.is_empty()).then_some(RoundLog { round: 0, log: mean });
        CellLogs { first: mean.into_iter().collect(), ..self.clone() }
    }
}

/// The differences of repeats that do not form pairs.
#[derive(Debug, Clone)]
pub(crate) struct Unpaired {
    /// The mean over all cells, each with the same weight.
    pub(crate) overall: LogDifference,
    /// Differences by cell: index into the rows of the stage.
    pub(crate) cells: Vec<(usize, LogDifference)>,
}

/// Welch's method over the cells that both have, with the spread of the rounds of each. `None` without any cell.
///
/// If one of the two has no repeats, it gets the spread of the other. If neither has, the spread is unknown.
/// Cells of one round may all be slow for the same reason, and therefore do not replace repeats.
pub(crate) fn unpaired(cells: &[CellLogs]) -> Option<Unpaired> {
    let both = cells.iter().filter(|cell| !cell.first.is_empty() && !cell.second.is_empty());
    let both: Vec<&CellLogs> = both.collect();
    let first = side(&both, |cell| &cell.first)?;
    let second = side(&both, |cell| &cell.second)?;
    let cells =
        first.cells.iter().zip(&second.cells).map(|((row, one), (_, other))| (*row, one.minus(other)));
    Some(Unpaired { overall: first.overall.minus(&second.overall), cells: cells.collect() })
}

/// The means of one of the two subjects.
fn side(cells: &[&CellLogs], values: fn(&CellLogs) -> &Vec<RoundLog>) -> Option<RoundMeans> {
    let rounds = cells.iter().map(|cell| CellRounds { row: cell.row, values: values(cell).clone() });
    round_means(&rounds.collect::<Vec<_>>())
}

/// Compares a run with several earlier ones. Each run counts once, with the mean of its repeats, so that the
/// interval includes the differences between days. If the run's own repeats have a larger spread than the runs,
/// that counts.
///
/// In each cell, the first has the repeats of the run, the second a value for each earlier run.
pub(crate) fn against_runs(cells: &[CellLogs]) -> Option<Unpaired> {
    let by_runs = unpaired(&cells.iter().map(CellLogs::once).collect::<Vec<_>>())?;
    let by_repeats = unpaired(cells)?;
    // Few runs may be similar by chance: their degrees of freedom count, whichever spread is larger.
    let wider = |runs: LogDifference, repeats: LogDifference| LogDifference {
        error: runs.error.max(if repeats.freedom.is_some() { repeats.error } else { 0.0 }),
        freedom: runs.freedom.zip(repeats.freedom).map(|(runs, repeats)| runs.min(repeats)).or(runs.freedom),
        ..runs
    };
    let both = by_runs.cells.iter().zip(&by_repeats.cells);
    let cells = both.map(|((row, runs), (_, repeats))| (*row, wider(*runs, *repeats)));
    Some(Unpaired { overall: wider(by_runs.overall, by_repeats.overall), cells: cells.collect() })
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

    /// Means 20.82 and 22.98857, variances 7.8293 and 0.8548 (n = 5 and 7): t = -1.6914, 4.5836 degrees of
    /// freedom, calculated from the formula without this code.
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
        // The noisy cell is part of the pooled spread: that widens the others, but not as much.
        assert!(width(0) < 0.75 * width(8), "{} {}", width(0), width(8));
    }

    #[test]
    fn without_repeats_nothing_is_decided_however_many_cells_there_are() {
        let single = |row: usize| cell(row, &[0.1 + 0.001 * row as f64], &[0.0]);
        let many: Vec<CellLogs> = (0..20).map(single).collect();
        let found = unpaired(&many).expect("cells");
        assert!(found.overall.effect().low.is_infinite() && found.cells[0].1.effect().low.is_infinite());
        assert!(unpaired(&[cell(0, &[1.0], &[])]).is_none(), "nothing to compare");
        let lone = unpaired(&[cell(0, &[0.5], &[0.0, 0.01, 0.02])]).expect("a cell");
        assert!(lone.overall.effect().low.is_finite(), "it is taken to spread as the other");
        // A repeat has the variance 0.0001, and the mean of three repeats a third of that: two degrees of
        // freedom.
        let overall = lone.overall;
        assert!(near(overall.error, (0.0001_f64 * 4.0 / 3.0).sqrt()), "{overall:?}");
        assert!(near(overall.freedom.expect("repeats"), 2.0), "{overall:?}");
    }

    /// Both records are slower in some rounds, in all of their cells.
    #[test]
    fn cells_of_a_round_do_not_take_the_place_of_rounds() {
        let slow_round = |row: usize| cell(row, &[0.0, 0.2, 0.1], &[0.1, 0.3, 0.2]);
        let cells: Vec<CellLogs> = (0..20).map(slow_round).collect();
        let found = unpaired(&cells).expect("cells").overall;
        // Three rounds with the variance 0.01 on each side, and four degrees of freedom.
        assert!(near(found.error, (2.0_f64 * 0.01 / 3.0).sqrt()), "{found:?}");
        assert!(near(found.freedom.expect("repeats"), 4.0), "{found:?}");
    }

    /// Four runs with the means 0.0, 0.2, 0.1 and 0.1, whose variance is 0.02 / 3: the difference has that of a
    /// run and of a mean of four.
    #[test]
    fn a_run_is_held_against_the_spread_of_runs() {
        let found = against_runs(&[cell(0, &[-0.1, -0.101, -0.099], &[0.0, 0.2, 0.1, 0.1])]).expect("a cell");
        assert!(near(found.overall.mean, -0.2), "{found:?}");
        assert!(near(found.overall.error, (0.02_f64 / 3.0 * 1.25).sqrt()), "{found:?}");
        assert!(near(found.overall.freedom.expect("runs"), 3.0), "{found:?}");
        let noisy = against_runs(&[cell(0, &[-1.0, 0.8, -0.1], &[0.0, 0.001, -0.001])]).expect("a cell");
        assert!(noisy.overall.error > 0.5, "its own repeats spread more: {noisy:?}");
        let lone = against_runs(&[cell(0, &[-0.1, -0.2], &[0.0])]).expect("a cell");
        assert!(lone.overall.freedom.is_none(), "one run says nothing of how runs differ: {lone:?}");
    }
}
