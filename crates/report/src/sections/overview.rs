//! A short report's figures: one table of all stages, a row for each figure. A row names the part of the system
//! that was at its limit.

use nilometer_analysis::{CellOutcome, LimitingParts, StageFigures, StudyStage, letter};
use nilometer_model::Phase;
use nilometer_plan::Results;

use super::{
    beside_load::beside_load,
    growth::growth,
    siblings::siblings,
    stage_rows::{by_target, machines, mark, rate, unit_beside},
    times::times,
};
use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table},
    figure_key::{figure_key, tooltip},
    words,
};

/// With more rows than this, a target is a column.
const ROWS_MOST: usize = 40;
/// A stage with more cells than this has a row for the fastest only.
const CELLS_MOST: usize = 4;
/// A stage with more phases than this has no row for directories and trees, if it has some for files.
const PHASES_MOST: usize = 6;
/// Letters of a rate, of half its interval, and of a latency.
const RATE: usize = 11;
const INTERVAL: usize = 6;
const LATENCY: usize = 7;

pub(super) fn overview(results: &Results, stages: &[StudyStage<'_>]) -> Vec<Section> {
    let mut rows: Vec<FigureRow<'_>> = stages.iter().flat_map(rows_of_stage).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    if let [only] = stages {
        for row in &mut rows {
            row.label = without_stage(&row.label, only.figures.name);
        }
    }
    let has_all = rows.len() > ROWS_MOST && results.targets.len() > 1;
    let mut blocks = if has_all {
        stages.iter().flat_map(targets_beside).collect()
    } else {
        vec![Block::Table(table(results, &rows))]
    };
    blocks.extend(stages.iter().filter_map(machines_of));
    let hidden = if has_all { Vec::new() } else { hidden(stages) };
    blocks.push(Block::soft(guide(&rows, &hidden)));
    let parts = stages.iter().flat_map(|stage| stage_parts(stage, results.margin));
    std::iter::once(Section::new(heading(stages), blocks)).chain(parts).collect()
}

/// The heading. It has the name of a single stage, which the rows then lack.
fn heading(stages: &[StudyStage<'_>]) -> Heading {
    match stages {
        [only] => Heading::with("Figures", format!(": {}", only.figures.name)),
        _ => Heading::of("Figures"),
    }
}

/// A figure in the table.
struct FigureRow<'a> {
    stage: &'a StudyStage<'a>,
    outcome: &'a CellOutcome<'a>,
    label: String,
}

fn rows_of_stage<'a>(stage: &'a StudyStage<'a>) -> Vec<FigureRow<'a>> {
    let is_shown = |outcome: &&CellOutcome<'_>| is_shown(&stage.figures, outcome);
    let row =
        |outcome: &'a CellOutcome<'a>| FigureRow { stage, outcome, label: label(&stage.figures, outcome) };
    stage.figures.outcomes.iter().filter(is_shown).map(row).collect()
}

fn is_shown(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> bool {
    let has_files = stage.questions.iter().any(|question| question.phase == Phase::CreateFiles);
    let is_many = stage.questions.len() > PHASES_MOST && has_files;
    if is_many && is_of_directories(outcome.phase) {
        return false;
    }
    if stage.cells.len() <= CELLS_MOST {
        return true;
    }
    let best = stage.best(outcome.phase, outcome.target);
    // If no figure is valid, the first cell stands for all.
    let shown = best.map(|best| best.cell).or_else(|| stage.cells.first().map(|cell| cell.index));
    shown == Some(outcome.cell)
}

const fn is_of_directories(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::MakeTree
            | Phase::MakeDirectories
            | Phase::StatDirectories
            | Phase::RemoveDirectories
            | Phase::RemoveTree
    )
}

/// `large files, workers 2`; `matrix, fastest of 24: workers 8`.
fn label(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> String {
    let cell = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    match stage.cells.len() {
        _ if cell.is_empty() => stage.name.to_owned(),
        count if count > CELLS_MOST => format!("{}, fastest of {count}: {cell}", stage.name),
        _ => format!("{}, {cell}", stage.name),
    }
}

/// The label of a cell in a table of one stage.
fn without_stage(label: &str, stage: &str) -> String {
    label.strip_prefix(stage).unwrap_or(label).trim_start_matches(", ").to_owned()
}

fn table(results: &Results, rows: &[FigureRow<'_>]) -> Table {
    let has_marks = rows.iter().any(|row| mark(row.outcome).is_some());
    let has_targets = results.targets.len() > 1;
    let mut columns = Vec::new();
    columns.extend(has_marks.then(|| Column::new(Role::Mark, "")));
    columns.push(Column::new(Role::Label, "stage").ranked(3));
    columns.push(Column::new(Role::Group, "phase"));
    let on = Column::new(Role::Name, "on");
    columns.push(if has_targets { on } else { on.ranked(0) });
    columns.push(Column::figure("rate").at_least(RATE));
    columns.push(Column::figure("±").at_least(INTERVAL).ranked(4));
    columns.extend(QUANTILES.map(|(name, _, rank)| Column::figure(name).at_least(LATENCY).ranked(rank)));
    columns.push(Column::figure("at its limit"));
    Table { columns, rows: rows.iter().map(|row| row.cells(has_marks)).collect() }
}

/// The quantiles of a latency and their ranks.
const QUANTILES: [(&str, f64, u8); 2] = [("p99", 0.99, 1), ("max", 1.0, 2)];

impl FigureRow<'_> {
    fn cells(&self, has_marks: bool) -> Row {
        let marked = has_marks.then(|| words::marked(mark(self.outcome)));
        let named = [&self.label, self.outcome.phase.name()].map(Cell::new);
        let target = Cell::new(letter(self.outcome.target));
        Row::of(marked.into_iter().chain(named).chain([target]).chain(self.figures()))
    }

    fn figures(&self) -> Vec<Cell> {
        let origin = tooltip(&self.stage.figures, self.outcome);
        let rate = rate(self.outcome, unit_beside(&self.stage.figures, self.outcome));
        let mut cells: Vec<Cell> = rate.map(|cell| cell.from(origin.as_str())).into();
        let quantile = |(_, share, _)| Cell::new(words::short_quantile(self.outcome, share));
        cells.extend(QUANTILES.map(quantile));
        cells.push(Cell::new(self.limit()));
        cells
    }

    /// The part at its limit: only the fastest cell of a phase can prove one.
    fn limit(&self) -> String {
        let StudyStage { figures, limits, ceiling, .. } = self.stage;
        let of = (self.outcome.phase, self.outcome.target);
        let best = figures.best(of.0, of.1).filter(|best| best.cell == self.outcome.cell);
        let limit = best.and_then(|_| limits.iter().find(|limits| (limits.phase, limits.target) == of));
        let limit = limit.map(short_limit);
        let near = ceiling.filter(|near| {
            near.is_near() && (near.phase, near.target, near.cell) == (of.0, of.1, self.outcome.cell)
        });
        match limit {
            Some(limit) if limit != NOT_SEEN => limit,
            _ if near.is_some() => "tool in part".to_owned(),
            other => other.unwrap_or_else(|| words::NONE.to_owned()),
        }
    }
}

/// Neither the tool nor a cache, a device or a processor of this machine was at its limit.
const NOT_SEEN: &str = "not seen";

fn short_limit(limits: &LimitingParts) -> String {
    let names = limits.parts.iter().map(|part| part.kind.name().trim_start_matches("the "));
    let names = names.collect::<Vec<_>>().join(", ");
    if names.is_empty() { NOT_SEEN.to_owned() } else { names }
}

fn targets_beside(stage: &StudyStage<'_>) -> Vec<Block> {
    let name = Block::Paragraph(crate::document::Sentence::new(stage.figures.name));
    vec![name, Block::Table(by_target(&stage.figures))]
}

fn machines_of(stage: &StudyStage<'_>) -> Option<Block> {
    let sentences = machines(&stage.figures);
    (!sentences.is_empty())
        .then(|| Block::list(sentences.into_iter().map(|words| format!("{}, {words}", stage.figures.name))))
}

/// The figures that have no row.
fn hidden<'a>(stages: &'a [StudyStage<'_>]) -> Vec<&'a CellOutcome<'a>> {
    let of_stage = |stage: &'a StudyStage<'_>| {
        stage.figures.outcomes.iter().filter(move |outcome| !is_shown(&stage.figures, outcome))
    };
    stages.iter().flat_map(of_stage).collect()
}

/// How to see the rest, and how much of it is INVALID.
fn guide(rows: &[FigureRow<'_>], hidden: &[&CellOutcome<'_>]) -> String {
    let invalid = hidden.iter().filter(|outcome| outcome.valid < outcome.samples.len()).count();
    let invalid = if invalid > 0 { format!(" ({invalid} with INVALID repeats)") } else { String::new() };
    let rest = match hidden.len() {
        0 => String::new(),
        1 => format!("1 more figure{invalid} and "),
        rest => format!("{rest} more figures{invalid} and "),
    };
    let key = rows.first().map(|row| figure_key(&row.stage.figures, row.outcome)).unwrap_or_default();
    format!(
        "More by nilometer report: --all shows {rest}all latencies and limits, --why '{key}' the samples behind a figure."
    )
}

/// Findings that a plan asked for by its stages.
fn stage_parts(stage: &StudyStage<'_>, margin: f64) -> Vec<Section> {
    let figures = &stage.figures;
    let mut parts: Vec<Section> = times(figures).into_iter().collect();
    parts.extend(growth(figures, &stage.growths, margin, Detail::Short));
    parts.extend(beside_load(figures, &stage.interferences, margin));
    parts.extend(siblings(&stage.siblings, margin));
    if parts.iter().all(|part| part.detail > Detail::Short) {
        return Vec::new();
    }
    parts.insert(0, Section::new(Heading::of(figures.name), vec![Block::soft(&figures.common)]));
    parts
}
