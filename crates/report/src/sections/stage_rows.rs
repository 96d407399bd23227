//! Rows and cells that several sections of a stage share.

use nilometer_analysis::{CellOutcome, Question, RateUnit, StageCell, StageFigures, letter};

use crate::{
    document::{Cell, Column, Role, Row, Table, Tone},
    words,
};

/// Width in characters of a rate beside others.
const BESIDE: usize = 17;

/// `INVALID`, or in how many of its repeats: before a row, so that nobody reads its figures first.
pub(super) fn mark(outcome: &CellOutcome<'_>) -> Option<String> {
    let all = outcome.samples.len();
    match all - outcome.valid {
        0 => None,
        count if count == all => Some("INVALID".to_owned()),
        count => Some(format!("INVALID {count}/{all}")),
    }
}

/// The columns that identify a row: parameters, phase and target.
pub(super) fn named() -> [Column; 3] {
    [Column::new(Role::Label, "parameters"), Column::new(Role::Group, "phase"), Column::new(Role::Name, "on")]
}

/// A row with these columns, and figures behind them.
pub(super) fn row(
    stage: &StageFigures<'_>,
    outcome: &CellOutcome<'_>,
    figures: impl IntoIterator<Item = Cell>,
) -> Row {
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let named = [label.to_owned(), outcome.phase.name().to_owned(), letter(outcome.target)];
    Row::of(named.map(Cell::new).into_iter().chain(figures))
}

/// The mean and half its interval; a bound, or that it is invalid, where there is no mean.
pub(super) fn rate(outcome: &CellOutcome<'_>, unit: RateUnit) -> [Cell; 2] {
    let cells = match outcome.summary(unit.quantity()) {
        Some(summary) => [unit.show(summary.mean), words::interval(&summary)],
        None => match words::at_least(outcome, unit) {
            Some(bound) => [bound, String::new()],
            None if outcome.valid > 0 => [words::without_mean(outcome, unit), String::new()],
            None => return [Cell::toned(Tone::Bad, "INVALID"), Cell::new("")],
        },
    };
    cells.map(Cell::new)
}

/// The unit of a figure, which those of the other targets beside it share.
pub(super) fn unit_beside(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> RateUnit {
    let beside = |other: &&CellOutcome<'_>| (other.cell, other.phase) == (outcome.cell, outcome.phase);
    words::unit_of(stage.outcomes.iter().filter(beside), stage.quantity(outcome))
}

/// A row for each cell and phase, and a column for each target.
pub(super) fn by_target(stage: &StageFigures<'_>) -> Table {
    let targets = stage.targets();
    let mut columns = vec![Column::new(Role::Label, "parameters"), Column::new(Role::Group, "phase")];
    columns.extend(targets.iter().map(|target| Column::figure(letter(*target)).at_least(BESIDE)));
    let rows = stage.cells.iter().flat_map(|cell| rows_of_cell(stage, cell, &targets));
    Table { columns, rows: rows.collect() }
}

fn rows_of_cell(stage: &StageFigures<'_>, cell: &StageCell, targets: &[usize]) -> Vec<Row> {
    let questions = stage.questions.iter().filter(|question| has_figure(stage, question, cell));
    let row = |question: &Question| {
        let named = [cell.label.as_str(), question.phase.name()].map(Cell::new);
        let figures = targets.iter().map(|target| Cell::new(rate_of(stage, question, cell, *target)));
        Row::of(named.into_iter().chain(figures))
    };
    questions.map(row).collect()
}

/// Returns true if a cell has this phase.
fn has_figure(stage: &StageFigures<'_>, question: &Question, cell: &StageCell) -> bool {
    let mut outcomes = stage.outcomes.iter();
    outcomes.any(|outcome| (outcome.cell, outcome.phase) == (cell.index, question.phase))
}

fn rate_of(stage: &StageFigures<'_>, question: &Question, cell: &StageCell, target: usize) -> String {
    let of = (cell.index, question.phase, target);
    let outcome = stage.outcomes.iter().find(|outcome| (outcome.cell, outcome.phase, outcome.target) == of);
    let figure = |outcome| words::rate_or_bound(outcome, unit_beside(stage, outcome));
    outcome.map_or_else(|| words::NONE.into(), figure)
}

/// The shares of the machines in figures of several processes, and the machines that were behind.
pub(super) fn machines(stage: &StageFigures<'_>) -> Vec<String> {
    let of = |(outcome, words): (&CellOutcome<'_>, String)| {
        let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
        let label = if label.is_empty() { String::new() } else { format!(", {label}") };
        format!("{}{label} on {}: {words}", outcome.phase.name(), letter(outcome.target))
    };
    words::across_machines(stage).into_iter().map(of).collect()
}
