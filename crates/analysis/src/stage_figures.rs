//! The cells of a stage with their outcomes and comparisons. All findings about a stage follow from these figures.

use nilometer_model::Phase;
use nilometer_plan::{Cell, Measured, Results};

use crate::{
    CellOutcome, PairBasis, Quantity,
    comparison::{Question, question},
    outcomes,
    parameters::{CommonParameters, Value, Varying, parameters, varying, words},
};

/// The cells of a stage of the plan with their figures and comparisons, from which findings follow.
#[derive(Debug, Clone)]
pub struct StageFigures<'a> {
    /// Its name.
    pub name: &'a str,
    /// The common parameters of its cells, in words.
    pub common: String,
    /// The parameters that vary among its cells.
    pub varying: Varying,
    /// Its cells in the plan's order.
    pub cells: Vec<StageCell>,
    /// Outcomes by cell, phase and target.
    pub outcomes: Vec<CellOutcome<'a>>,
    /// One question per phase, in the phases' order.
    pub questions: Vec<Question>,
}

/// A cell of a stage.
#[derive(Debug, Clone)]
pub struct StageCell {
    /// Index into [`Results::cells`].
    pub index: usize,
    /// The parameters that tell it from the others of its stage, in words; empty for a single one.
    pub label: String,
    /// Its parameters.
    pub parameters: CommonParameters,
}

/// The figures of all stages in the plan's order, without stages that have no samples.
pub(crate) fn stage_figures(results: &Results) -> Vec<StageFigures<'_>> {
    let outcomes = shown_outcomes(results);
    let mut stages = Vec::new();
    let mut rest = outcomes.as_slice();
    while let Some(first) = rest.first() {
        let name = &results.cells[first.cell].stage;
        let same = |outcome: &CellOutcome<'_>| results.cells[outcome.cell].stage == *name;
        let end = rest.iter().position(|outcome| !same(outcome)).unwrap_or(rest.len());
        stages.push(figures(results, rest[..end].to_vec()));
        rest = &rest[end..];
    }
    stages
}

/// The outcomes that reports show. The trials of a search are excluded, because their rates differ and a mean
/// would be meaningless. Recordings without storage are excluded too.
pub(crate) fn shown_outcomes(results: &Results) -> Vec<CellOutcome<'_>> {
    let mut outcomes = outcomes(results);
    let is_trial =
        |measured: &&Measured| measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal.searches());
    let is_of_target = |cell: usize| results.cells.get(cell).is_some_and(|cell| !cell.is_onto_nothing());
    outcomes.retain(|outcome| is_of_target(outcome.cell) && !outcome.samples.iter().any(is_trial));
    outcomes
}

fn figures<'a>(results: &'a Results, outcomes: Vec<CellOutcome<'a>>) -> StageFigures<'a> {
    let entry = |index: usize| &results.cells[index];
    let name = &entry(outcomes[0].cell).stage;
    let mut indices: Vec<usize> = outcomes.iter().map(|outcome| outcome.cell).collect();
    indices.dedup();
    let parameters: Vec<CommonParameters> = indices.iter().map(|&index| parameters(entry(index))).collect();
    let varying = varying(&parameters);
    let entries: Vec<&Cell> = indices.iter().map(|&index| entry(index)).collect();
    let labels = labels(&entries, &parameters, &varying);
    let cells = indices.into_iter().zip(labels).zip(parameters);
    // Imported repeats were not measured in rounds.
    let is_imported = entries.iter().all(|entry| entry.as_imported().is_some());
    let basis = if is_imported { PairBasis::Repeats } else { PairBasis::Rounds };
    let questions = phases(&outcomes).into_iter().map(|phase| {
        let of_phase: Vec<&CellOutcome<'_>> =
            outcomes.iter().filter(|outcome| outcome.phase == phase).collect();
        question(phase, &of_phase, basis)
    });
    StageFigures {
        name,
        common: common(&entries),
        questions: questions.collect(),
        varying,
        cells: cells.map(|((index, label), parameters)| StageCell { index, label, parameters }).collect(),
        outcomes,
    }
}

fn phases(outcomes: &[CellOutcome<'_>]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = outcomes.iter().map(|outcome| outcome.phase).collect();
    phases.sort_unstable();
    phases.dedup();
    phases
}

/// The varying parameters of each cell, or its whole name if these do not tell all cells apart.
pub(crate) fn labels(entries: &[&Cell], parameters: &[CommonParameters], varying: &Varying) -> Vec<String> {
    if let [_] = entries {
        return vec![String::new()];
    }
    let names: Vec<&String> = varying.axis.iter().chain(&varying.others).collect();
    let labels: Vec<String> = parameters.iter().map(|cell| words(cell, names.iter().copied())).collect();
    let mut sorted: Vec<&String> = labels.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == labels.len() {
        return labels;
    }
    entries.iter().map(ToString::to_string).collect()
}

/// The common parameters of all cells, in words.
pub(crate) fn common(entries: &[&Cell]) -> String {
    let mut all = entries.iter().map(|entry| entry.phrases());
    let Some(mut shared) = all.next() else { return String::new() };
    for phrases in all {
        shared.retain(|phrase| phrases.contains(phrase));
    }
    shared.join(", ")
}

impl StageFigures<'_> {
    /// The question of a phase.
    pub fn question(&self, phase: Phase) -> Option<&Question> {
        self.questions.iter().find(|question| question.phase == phase)
    }

    /// The outcomes of a phase.
    pub fn of_phase(&self, phase: Phase) -> Vec<&CellOutcome<'_>> {
        self.outcomes.iter().filter(|outcome| outcome.phase == phase).collect()
    }

    /// The targets with samples.
    pub fn targets(&self) -> Vec<usize> {
        let mut targets: Vec<usize> = self.outcomes.iter().map(|outcome| outcome.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// The quantity for the rate of an outcome.
    pub fn quantity(&self, outcome: &CellOutcome<'_>) -> Quantity {
        self.question(outcome.phase).map_or(Quantity::Operations, |question| question.quantity)
    }

    /// The cell with an index into the results' cells.
    pub fn cell(&self, index: usize) -> Option<&StageCell> {
        self.cells.iter().find(|cell| cell.index == index)
    }

    /// The outcome with the highest mean of a target in a phase, in the phase's quantity.
    pub fn best(&self, phase: Phase, target: usize) -> Option<&CellOutcome<'_>> {
        let quantity = self.question(phase)?.quantity;
        let here = self.outcomes.iter().filter(|o| o.phase == phase && o.target == target);
        let mean = |outcome: &CellOutcome<'_>| outcome.summary(quantity).map(|summary| summary.mean);
        here.filter(|o| mean(o).is_some())
            .max_by(|a, b| mean(a).unwrap_or_default().total_cmp(&mean(b).unwrap_or_default()))
    }
}

impl StageCell {
    /// A parameter's value as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).and_then(Value::number)
    }
}
