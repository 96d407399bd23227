//! How a rate grows with the number of elements (servers, disks, directories) that work at the same time, from
//! one to all. It shows the share of the sum of the single rates that is left, and the number from which on more
//! elements add nothing.
//!
//! The rate of several is all bytes moved over the time until the last was done. The knee is the smallest number
//! that no larger one beats:
//!
//! ```text
//!   rate |          +----+   4 elements of 100 MB/s behind a link of 250 MB/s:
//!        |        /          3 do more than 2 by 25 %, 4 no more than 3,
//!        |      +            so that the knee is at 3
//!        |    /
//!        |  +
//!        +--1---2---3----4-- at once
//! ```

mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use nilometer_model::{
    Invalid, Phase, Sample,
    statistics::{Summary, median},
};
use nilometer_plan::{Measured, Results, Volumes, WorkloadRun};

use crate::{
    CellOutcome, Quantity, StageFigures,
    by_round::{CellRounds, RoundLog, round_means},
    effect::{Answer, Effect},
    parameters::words,
};
pub(crate) use rounds::{ResidualSpread, RoundRates, by_round, differences};

/// A phase of a workload over the number of elements at once.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementGrowth {
    /// The parameters that differ from other workloads of the stage, in words; empty for a single one.
    pub label: String,
    /// The part of the workload.
    pub phase: Phase,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// The numbers at once, the smallest first: at least two have a figure.
    pub counts: Vec<AtOnce>,
    /// The number from which on more elements add nothing.
    pub knee: GrowthKnee,
    /// The largest number against the knee, or against the number from which on the knee is undecided.
    pub beyond_knee: Option<Effect>,
    /// Elements that are much slower than the others when each works alone.
    pub odd: Vec<OddElement>,
}

/// A number of elements at once.
#[derive(Debug, Clone, PartialEq)]
pub struct AtOnce {
    /// Indices into [`Results::targets`].
    pub targets: Vec<usize>,
    /// Their rate together, over valid repeats; `None` if no repeat is valid on all of them.
    pub rate: Option<Summary>,
    /// The sum of their single rates; `None` if those were not measured.
    pub sum_alone: Option<f64>,
    /// Their rate together against that sum, in pairs of the same round; `None` for one element.
    pub share: Option<Effect>,
    /// The tool's own rate with as many workers; `None` if it was not measured.
    pub ceiling: Option<f64>,
    /// Rates by repeat, of repeats that are valid on all of them.
    repeats: RoundRates,
}

/// The number from which on more elements add nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthKnee {
    /// The first number that no larger number beats.
    At(usize),
    /// Beyond the measured numbers: the largest beats all others.
    Beyond,
    /// At this number or beyond it: the data do not decide.
    Undecided(usize),
}

/// An element that is much slower than its equals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OddElement {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Its single rate against the median of the others.
    pub effect: Effect,
}

/// An element is odd if the others are certainly faster than it by this percentage.
pub(crate) const ODD: f64 = 25.0;
/// Elements needed to find an odd one, at the least: of two that differ, neither is odd.
pub(crate) const EQUALS_LEAST: usize = 3;

impl AtOnce {
    /// Number of elements.
    pub fn count(&self) -> usize {
        self.targets.len()
    }
}

/// The growth of every workload in a stage that several elements do at once.
pub(crate) fn growths(results: &Results, stage: &StageFigures<'_>) -> Vec<ElementGrowth> {
    let mut runs: Vec<WorkloadRun> = Vec::new();
    for cell in &stage.cells {
        let Some(run) = results.cells[cell.index].as_workload() else { continue };
        let alone = WorkloadRun { volumes: Volumes::Alone, ..run.clone() };
        if run.volumes != Volumes::Alone && !runs.contains(&alone) {
            runs.push(alone);
        }
    }
    let of_run = |run: &WorkloadRun| {
        let elements = Elements { results, stage, run: run.clone() };
        let phases = stage.questions.iter().map(|question| question.phase);
        phases.filter_map(|phase| elements.growth(phase)).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of_run).collect()
}

/// A workload of a stage, for all numbers of elements.
struct Elements<'a> {
    results: &'a Results,
    stage: &'a StageFigures<'a>,
    /// The workload as each element does it alone.
    run: WorkloadRun,
}

impl Elements<'_> {
    fn growth(&self, phase: Phase) -> Option<ElementGrowth> {
        let quantity = self.stage.question(phase)?.quantity;
        let part = PhaseElements { elements: self, phase, quantity, alone: self.alone(phase, quantity) };
        let mut counts = part.several();
        counts.extend(part.first(&counts));
        counts.sort_by_key(AtOnce::count);
        set_shares(&mut counts, &part.alone);
        let curve = GrowthCurve::of(&counts)?;
        let knee = curve.knee(self.results.margin);
        let beyond_knee = curve.beyond(knee);
        // Siblings declared in the plan are compared elsewhere.
        let odd = if self.run.siblings.is_some() { Vec::new() } else { odd(&part.alone) };
        Some(ElementGrowth { label: self.label(), phase, quantity, counts, knee, beyond_knee, odd })
    }

    /// The parameters that tell the workload from others, without the number at once.
    fn label(&self) -> String {
        let varying = &self.stage.varying;
        let names = varying.axis.iter().chain(&varying.others).filter(|name| *name != "volumes");
        let cell = self.cells().next().and_then(|(cell, _)| self.stage.cell(cell));
        cell.map_or_else(String::new, |cell| words(&cell.parameters, names))
    }

    /// Its cells, each with its number at once.
    fn cells(&self) -> impl Iterator<Item = (usize, Volumes)> + '_ {
        self.stage.cells.iter().filter_map(|cell| {
            let run = self.results.cells[cell.index].as_workload()?;
            let same = WorkloadRun { volumes: Volumes::Alone, ..run.clone() } == self.run;
            same.then_some((cell.index, run.volumes))
        })
    }

    fn cell_alone(&self) -> Option<usize> {
        self.cells().find(|(_, volumes)| *volumes == Volumes::Alone).map(|(cell, _)| cell)
    }

    fn outcomes(&self, cell: usize, phase: Phase) -> Vec<&CellOutcome<'_>> {
        let outcomes = self.stage.outcomes.iter();
        outcomes.filter(|outcome| (outcome.cell, outcome.phase) == (cell, phase)).collect()
    }

    /// The rate of each element alone.
    fn alone(&self, phase: Phase, quantity: Quantity) -> BTreeMap<usize, RoundRates> {
        let outcomes = self.cell_alone().map(|cell| self.outcomes(cell, phase)).unwrap_or_default();
        let rate = |measured: &Measured| (measured.key.repeat, quantity.of(&measured.sample));
        let rates = |outcome: &CellOutcome<'_>| -> RoundRates {
            outcome.usable().map(rate).filter(|(_, rate)| *rate > 0.0).collect()
        };
        outcomes.into_iter().map(|outcome| (outcome.target, rates(outcome))).collect()
    }
}

/// The elements of a workload in one phase.
struct PhaseElements<'a> {
    elements: &'a Elements<'a>,
    phase: Phase,
    quantity: Quantity,
    /// The rate of each element alone.
    alone: BTreeMap<usize, RoundRates>,
}

impl PhaseElements<'_> {
    /// All numbers above one.
    fn several(&self) -> Vec<AtOnce> {
        let mut counts: Vec<AtOnce> = Vec::new();
        for (cell, volumes) in self.elements.cells().filter(|(_, volumes)| *volumes != Volumes::Alone) {
            let outcomes = self.elements.outcomes(cell, self.phase);
            let targets: Vec<usize> = outcomes.iter().map(|outcome| outcome.target).collect();
            let known = counts.iter().any(|at| at.targets.len() == targets.len());
            // If an element was left out, fewer were measured than the plan says.
            let whole = volumes.at_once(targets.len()) == Some(targets.len());
            if targets.len() > 1 && whole && !known {
                counts.push(self.at_once(cell, targets, together(&outcomes, self.quantity)));
            }
        }
        counts
    }

    /// The start of the curve: the first element alone.
    fn first(&self, several: &[AtOnce]) -> Option<AtOnce> {
        let first = *several.iter().flat_map(|at| &at.targets).min()?;
        let rates = self.alone.get(&first)?.clone();
        Some(self.at_once(self.elements.cell_alone()?, vec![first], rates))
    }

    fn at_once(&self, cell: usize, targets: Vec<usize>, repeats: RoundRates) -> AtOnce {
        let summary = |rates: &RoundRates| Summary::of(&rates.values().copied().collect::<Vec<_>>());
        let alone = |target: &usize| Some(summary(self.alone.get(target)?)?.mean);
        let sum_alone = targets.iter().map(alone).sum();
        let rate = summary(&repeats);
        AtOnce { rate, sum_alone, share: None, ceiling: self.ceiling(cell), targets, repeats }
    }

    /// The tool's own rate. It counts even if the tool waited for a processor, because that is its limit.
    fn ceiling(&self, cell: usize) -> Option<f64> {
        let here = |measured: &&Measured| (measured.key.cell, measured.key.phase) == (cell, self.phase);
        let can_be_used = |sample: &&Sample| matches!(sample.invalid, None | Some(Invalid::Starved(_)));
        let ceilings = self.elements.results.ceilings.iter().filter(here);
        let samples = ceilings.map(|measured| &measured.sample).filter(can_be_used);
        samples.map(|sample| self.quantity.of(sample)).find(|rate| *rate > 0.0)
    }
}

/// The rate of all of them in each repeat, over the time until the last was done. A repeat that is invalid on one
/// of them is invalid for all.
fn together(outcomes: &[&CellOutcome<'_>], quantity: Quantity) -> RoundRates {
    let samples = outcomes.iter().flat_map(|outcome| &outcome.samples);
    let rounds: BTreeSet<u32> = samples.map(|measured| measured.key.repeat).collect();
    let rates = rounds.into_iter().filter_map(|round| {
        let samples: Option<Vec<&Sample>> = outcomes.iter().map(|outcome| valid_in(outcome, round)).collect();
        Some((round, rate_of_all(&samples?, quantity)?))
    });
    rates.collect()
}

fn valid_in<'a>(outcome: &'a CellOutcome<'_>, round: u32) -> Option<&'a Sample> {
    outcome.usable().find(|measured| measured.key.repeat == round).map(|measured| &measured.sample)
}

fn rate_of_all(samples: &[&Sample], quantity: Quantity) -> Option<f64> {
    let amount = |sample: &&Sample| match quantity {
        Quantity::Bytes => sample.bytes as f64,
        Quantity::Operations | Quantity::Time => sample.operations as f64,
    };
    let longest = samples.iter().map(|sample| sample.wall).max()?.seconds();
    let rate = samples.iter().map(amount).sum::<f64>() / longest;
    (longest > 0.0 && rate > 0.0).then_some(rate)
}

/// Sets the share of each number: its rate against the sum of its elements' single rates.
fn set_shares(counts: &mut [AtOnce], alone: &BTreeMap<usize, RoundRates>) {
    let shares =
        counts.iter().enumerate().map(|(row, at)| CellRounds { row, values: against_sum(at, alone) });
    let shares: Vec<CellRounds> = shares.collect();
    let Some(means) = round_means(&shares) else { return };
    for (row, share) in means.cells {
        counts[row].share = Some(share.difference().effect());
    }
}

/// The rate at once against the sum of the single rates, by round; empty for one element.
fn against_sum(at: &AtOnce, alone: &BTreeMap<usize, RoundRates>) -> Vec<RoundLog> {
    let of = |round: u32, target: &usize| alone.get(target)?.get(&round).copied();
    let sum = |round: u32| -> Option<f64> { at.targets.iter().map(|target| of(round, target)).sum() };
    if at.count() > 1 { by_round(&at.repeats, sum) } else { Vec::new() }
}

/// The numbers with a figure, at least two.
struct GrowthCurve<'a> {
    counts: Vec<&'a AtOnce>,
    spread: ResidualSpread,
}

impl<'a> GrowthCurve<'a> {
    fn of(counts: &'a [AtOnce]) -> Option<Self> {
        let counts: Vec<&AtOnce> = counts.iter().filter(|at| at.rate.is_some()).collect();
        let rows: Vec<&RoundRates> = counts.iter().map(|at| &at.repeats).collect();
        let spread = ResidualSpread::of(&rows);
        (counts.len() > 1).then_some(GrowthCurve { counts, spread })
    }

    fn effect(&self, of: &AtOnce, against: &AtOnce) -> Option<Effect> {
        self.spread.effect(&differences(&of.repeats, |round| against.repeats.get(&round).copied()))
    }

    /// The smallest number that no larger one beats by more than the margin.
    fn knee(&self, margin: f64) -> GrowthKnee {
        let edge = (margin / 100.0).ln_1p();
        let beats = |effect: &Option<Effect>| effect.is_some_and(|effect| effect.low >= edge);
        let does_not = |effect: &Option<Effect>| effect.is_some_and(|effect| effect.high < edge);
        let (_, fewer) = self.counts.split_last().expect("there are two at least");
        for (place, at) in fewer.iter().enumerate() {
            let larger = self.counts[place + 1..].iter();
            let effects: Vec<Option<Effect>> = larger.map(|more| self.effect(more, at)).collect();
            if effects.iter().all(does_not) {
                return GrowthKnee::At(at.count());
            }
            if !effects.iter().any(beats) {
                return GrowthKnee::Undecided(at.count());
            }
        }
        GrowthKnee::Beyond
    }

    /// The largest number against the knee.
    fn beyond(&self, knee: GrowthKnee) -> Option<Effect> {
        let (GrowthKnee::At(count) | GrowthKnee::Undecided(count)) = knee else { return None };
        let at = self.counts.iter().find(|at| at.count() == count)?;
        self.effect(self.counts.last()?, at)
    }
}

/// Elements that are certainly much slower alone than the median of the others.
pub(crate) fn odd(alone: &BTreeMap<usize, RoundRates>) -> Vec<OddElement> {
    let rows: Vec<&RoundRates> = alone.values().filter(|rates| !rates.is_empty()).collect();
    if rows.len() < EQUALS_LEAST {
        return Vec::new();
    }
    let spread = ResidualSpread::of(&rows);
    let elements = alone.iter().filter_map(|(&target, rates)| {
        let others = alone.iter().filter(|(other, _)| **other != target).map(|(_, rates)| rates);
        let others: Vec<&RoundRates> = others.collect();
        let effect = spread.effect(&differences(rates, |round| middle(&others, round)))?;
        Some(OddElement { target, effect })
    });
    elements.filter(|element| element.effect.answer(ODD) == Answer::Slower).collect()
}

/// The median of a round's rates.
fn middle(of: &[&RoundRates], round: u32) -> Option<f64> {
    median(&of.iter().filter_map(|rates| rates.get(&round).copied()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
