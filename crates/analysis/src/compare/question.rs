//! The question for a phase of a stage over several records: the faster subject, and the one that needs less
//! processor time.

use nilometer_model::{Phase, Sample, statistics::Summary};

use super::{
    AcrossQuestion, AlignedCell, AlignedStage, CellDifference, PairBasis, Subject, SubjectPair,
    pair::{CellLogs, unpaired},
};
use crate::{
    CellOutcome, Quantity,
    by_round::{CellRounds, RoundLog, round_means},
    comparison::{agreeing, in_order},
    effect::Answer,
};

/// The questions of a stage, one per phase.
pub(super) fn questions(
    subjects: &[Subject],
    shown: &[usize],
    stage: &AlignedStage<'_>,
) -> Vec<AcrossQuestion> {
    let asked = |phase| Asked { subjects, stage, phase }.question(shown);
    stage.phases().into_iter().map(asked).collect()
}

/// Orders subjects by the mean over cells of their logarithm relative to all in the cell, the highest first.
/// `cells` has the mean logarithms of the shown subjects in each cell, in their order.
pub(super) fn by_means(shown: &[usize], cells: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<usize> {
    let mut scores: Vec<(usize, Vec<f64>)> = shown.iter().map(|&subject| (subject, Vec::new())).collect();
    for means in cells {
        let known: Vec<f64> = means.iter().flatten().copied().collect();
        let Some(all) = Summary::of(&known) else { continue };
        for (score, mean) in scores.iter_mut().zip(means) {
            score.1.extend(mean.map(|mean| mean - all.mean));
        }
    }
    let mut order: Vec<(usize, f64)> = scores
        .into_iter()
        .filter_map(|(subject, scores)| Some((subject, Summary::of(&scores)?.mean)))
        .collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1));
    order.into_iter().map(|(subject, _)| subject).collect()
}

/// An order that agrees with the comparisons, and these: all pairs of at most three, else each with the first.
pub(super) fn agreeing_pairs(
    order: Vec<usize>,
    compare: impl Fn(usize, usize) -> Option<SubjectPair>,
) -> (Vec<usize>, Vec<SubjectPair>) {
    let contradiction = |pair: &SubjectPair| {
        let is_lower = pair.effect.answer(0.0) == Answer::Slower;
        is_lower.then_some((pair.first, pair.second))
    };
    agreeing(order, |order| in_order(order, &compare), contradiction)
}

/// A phase of a stage with the subjects that measured it.
pub(super) struct Asked<'a> {
    pub(super) subjects: &'a [Subject],
    pub(super) stage: &'a AlignedStage<'a>,
    pub(super) phase: Phase,
}

/// The figure taken from a sample.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    /// Its rate.
    Rate(Quantity),
    /// Processor time of the whole machine per GB.
    Need,
}

impl Asked<'_> {
    fn question(&self, shown: &[usize]) -> AcrossQuestion {
        let quantity = self.quantity();
        let (order, pairs) = self.agreeing(shown, Taken::Rate(quantity));
        let (_, needs) = self.agreeing(shown, Taken::Need);
        AcrossQuestion { phase: self.phase, quantity, order, pairs, needs }
    }

    /// The common quantity of all rates in the phase.
    pub(super) fn quantity(&self) -> Quantity {
        let rows = self.stage.of_phase(self.phase);
        let all: Vec<&CellOutcome<'_>> = rows.flat_map(|(_, row)| row.outcomes.iter().flatten()).collect();
        Quantity::for_all(&all)
    }

    /// The order by rates, or by cost, the highest first.
    fn order(&self, shown: &[usize], taken: Taken) -> Vec<usize> {
        let means = |row: &AlignedCell<'_>| {
            shown.iter().map(|&subject| Self::mean(row, subject, taken)).collect::<Vec<_>>()
        };
        by_means(shown, self.stage.of_phase(self.phase).map(|(_, row)| means(row)))
    }

    fn mean(row: &AlignedCell<'_>, subject: usize, taken: Taken) -> Option<f64> {
        let logs: Vec<f64> = Self::logs(row, subject, taken).iter().map(|round| round.log).collect();
        Summary::of(&logs).map(|summary| summary.mean)
    }

    fn agreeing(&self, shown: &[usize], taken: Taken) -> (Vec<usize>, Vec<SubjectPair>) {
        agreeing_pairs(self.order(shown, taken), |first, second| self.pair(first, second, taken))
    }

    fn pair(&self, first: usize, second: usize, taken: Taken) -> Option<SubjectPair> {
        let cells = self.cells(first, second, taken);
        let is_imported = self.stage.rows.iter().all(|row| row.cell.as_imported().is_some());
        if is_imported || self.subjects[first].record != self.subjects[second].record {
            let found = unpaired(&cells)?;
            let cells = found.cells.iter();
            let cells = cells.map(|(row, cell)| CellDifference { row: *row, effect: cell.effect() });
            let effect = found.overall.effect();
            return Some(SubjectPair {
                first,
                second,
                basis: PairBasis::Repeats,
                effect,
                cells: cells.collect(),
            });
        }
        let differences: Vec<CellRounds> = cells.iter().map(CellLogs::differences).collect();
        let found = round_means(&differences)?;
        let cells = found.cells.iter();
        let cells = cells.map(|(row, cell)| CellDifference { row: *row, effect: cell.difference().effect() });
        let effect = found.overall.difference().effect();
        Some(SubjectPair { first, second, basis: PairBasis::Rounds, effect, cells: cells.collect() })
    }

    /// The repeats of both subjects in each cell that both have.
    pub(super) fn cells(&self, first: usize, second: usize, taken: Taken) -> Vec<CellLogs> {
        let rows = self.stage.of_phase(self.phase);
        rows.map(|(index, row)| CellLogs {
            row: index,
            first: Self::logs(row, first, taken),
            second: Self::logs(row, second, taken),
        })
        .filter(|cell| !cell.first.is_empty() && !cell.second.is_empty())
        .collect()
    }

    /// The repeats of a subject in each cell, and the mean of each of several earlier runs.
    pub(super) fn cells_of_runs(&self, now: usize, runs: &[usize], taken: Taken) -> Vec<CellLogs> {
        let rows = self.stage.of_phase(self.phase);
        let of_run = |row: &AlignedCell<'_>, (round, &run): (u32, &usize)| {
            Some(RoundLog { round, log: Self::mean(row, run, taken)? })
        };
        rows.map(|(index, row)| CellLogs {
            row: index,
            first: Self::logs(row, now, taken),
            second: (0..).zip(runs).filter_map(|run| of_run(row, run)).collect(),
        })
        .filter(|cell| !cell.first.is_empty() && !cell.second.is_empty())
        .collect()
    }

    /// Returns true if a valid repeat of a subject in a cell has moved nothing. Its rate has no logarithm, and
    /// the others alone would look faster.
    pub(super) fn has_zero(row: &AlignedCell<'_>, subject: usize) -> bool {
        let is_zero = |sample: &Sample| sample.bytes == 0 && sample.operations == 0;
        row.outcome(subject).is_some_and(|outcome| outcome.usable().any(|measured| is_zero(&measured.sample)))
    }

    /// The logarithms of the valid repeats of a subject in a cell; none if one of them has moved nothing.
    pub(super) fn logs(row: &AlignedCell<'_>, subject: usize, taken: Taken) -> Vec<RoundLog> {
        let Some(outcome) = row.outcome(subject) else { return Vec::new() };
        let has_figure = match taken {
            Taken::Need => Self::has_cost(outcome),
            Taken::Rate(_) => !Self::has_zero(row, subject),
        };
        if !has_figure {
            return Vec::new();
        }
        let value = |sample: &Sample| match taken {
            Taken::Rate(quantity) => quantity.of(sample),
            Taken::Need => sample.machine.seconds() / sample.bytes as f64,
        };
        let values = outcome.usable().map(|measured| (measured.key.repeat, value(&measured.sample)));
        let positive = values.filter(|(_, value)| *value > 0.0 && value.is_finite());
        positive.map(|(round, value)| RoundLog { round, log: value.ln() }).collect()
    }

    /// Returns true if each repeat was long enough for the kernel's count of the machine's processor time.
    fn has_cost(outcome: &CellOutcome<'_>) -> bool {
        outcome.cores.is_some_and(|cores| cores.for_gigabyte.is_some())
    }
}
