//! A stage of workloads: its figures, their limits, and the findings that belong to it.

use nilometer_analysis::{CellOutcome, Cores, StageFigures, StudyStage, letter};
use nilometer_plan::Results;

use super::{
    beside_load::beside_load,
    cells::cells,
    growth::growth,
    latency::latency,
    overview::overview,
    parameters::parameters,
    rates::rates,
    siblings::siblings,
    stage_rows::{machines, mark, named, rate, row, unit_beside},
    times::times,
};
use crate::{
    document::{
        Block, Cell, Column, Detail, Heading, KeyEntry, Role, Row, RowNote, Section, Sentence, Table, Tone,
    },
    figure_key::tooltip,
    words,
};

/// Widths in characters: a rate, half its interval, a latency, and cores.
const RATE: usize = 11;
const INTERVAL: usize = 7;
const LATENCY: usize = 7;
const CORES: usize = 6;

pub(crate) fn stages(results: &Results, stages: &[StudyStage<'_>], detail: Detail) -> Vec<Section> {
    if detail < Detail::Full {
        return overview(results, stages);
    }
    let stages = stages.iter().enumerate();
    stages.flat_map(|(number, stage)| stage_with_parts(results, stage, number, detail)).collect()
}

/// A finding of a stage without a section is an unused variable, and does not compile.
#[deny(unused_variables)]
fn stage_with_parts(
    results: &Results,
    stage: &StudyStage<'_>,
    number: usize,
    detail: Detail,
) -> Vec<Section> {
    let StudyStage { figures: of, ceiling, growths, optima, interferences, siblings: groups, limits } = stage;
    // The labels of rows have the varying parameters.
    let StageFigures { name, common, varying: _, cells: labelled, outcomes, questions } = of;
    let margin = results.margin;
    let mut blocks = vec![Block::soft(common)];
    if detail == Detail::Page {
        blocks.extend(key(results, &of.targets()));
        blocks.extend(rates(of));
    }
    blocks.push(figures(of, outcomes));
    blocks.extend(machines(of).into_iter().map(Block::soft));
    blocks.extend(ceiling.map(|ceiling| {
        let tone = if ceiling.is_near() { Tone::Doubtful } else { Tone::Soft };
        Block::Paragraph(Sentence::toned(tone, ceiling.words(of)))
    }));
    let several = of.targets().len() > 1;
    blocks.extend(limits.iter().map(|limits| Block::soft(limits.words(several))));
    if detail == Detail::Page {
        blocks.extend(cells(labelled, questions, margin));
        blocks.extend(latency(of));
    }
    let section = Section::new(Heading::of(*name), blocks).at(stage_id(number), *name).on_screen();
    let mut sections = vec![section];
    sections.extend(times(of));
    sections.extend(growth(of, growths, margin, detail));
    sections.extend(parameters(of, optima, detail));
    sections.extend(beside_load(of, interferences, margin));
    sections.extend(siblings(groups, margin));
    sections
}

/// The place of a stage in a page.
pub(super) fn stage_id(number: usize) -> String {
    format!("stage-{number}")
}

/// The signs and letters of targets, if there are several.
pub(super) fn key(results: &Results, targets: &[usize]) -> Option<Block> {
    let entry = |&target: &usize| {
        let path = results.targets.get(target).map_or("", |target| &target.path);
        KeyEntry { series: target, letter: letter(target), text: path.to_owned() }
    };
    (targets.len() > 1).then(|| Block::Key(targets.iter().map(entry).collect()))
}

/// A row for each outcome.
fn figures(stage: &StageFigures<'_>, outcomes: &[CellOutcome<'_>]) -> Block {
    // A single repeat has no interval.
    let has_interval = |outcome: &CellOutcome<'_>| {
        outcome.summary(stage.quantity(outcome)).is_some_and(|summary| summary.half_width().is_some())
    };
    let intervals = outcomes.iter().any(has_interval);
    let has_marks = outcomes.iter().any(|outcome| mark(outcome).is_some());
    let mut columns = columns(intervals);
    let mut rows: Vec<Row> = outcomes.iter().map(|outcome| with_figures(stage, outcome, intervals)).collect();
    if has_marks {
        columns.insert(0, Column::new(Role::Mark, ""));
        for (row, outcome) in rows.iter_mut().zip(outcomes) {
            row.cells.insert(0, words::marked(mark(outcome)));
        }
    }
    Block::Table(Table { columns, rows })
}

/// The quantiles of a latency and their ranks: on a narrow page, the lowest rank disappears first.
const QUANTILES: [(&str, f64, u8); 5] =
    [("p50", 0.5, 7), ("p99", 0.99, 9), ("p99.9", 0.999, 5), ("p99.99", 0.9999, 4), ("max", 1.0, 8)];

/// A column about processors: its name, its value, and its rank.
type CoreColumn = (&'static str, fn(&Cores) -> f64, u8);

/// The ways in which processors were busy.
const CORE_COLUMNS: [CoreColumn; 2] =
    [("cores", |cores| cores.own, 6), ("machine", |cores| cores.machine, 1)];

fn columns(intervals: bool) -> Vec<Column> {
    let mut columns: Vec<Column> = named().into();
    columns.push(Column::figure("rate").at_least(RATE));
    columns.extend(intervals.then(|| Column::figure("±").at_least(INTERVAL)));
    columns.extend(QUANTILES.map(|(name, _, rank)| Column::figure(name).at_least(LATENCY).ranked(rank)));
    columns.extend(CORE_COLUMNS.map(|(name, _, rank)| Column::figure(name).at_least(CORES).ranked(rank)));
    columns.push(Column::figure("CPU s/GB").ranked(2));
    columns
}

fn with_figures(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>, intervals: bool) -> Row {
    let unit = unit_beside(stage, outcome);
    let [mean, interval] = rate(outcome, unit).map(|cell| cell.from(tooltip(stage, outcome)));
    let mut figures = vec![mean];
    figures.extend(intervals.then_some(interval));
    figures.extend(QUANTILES.map(|(_, share, _)| Cell::new(words::short_quantile(outcome, share))));
    figures.extend(CORE_COLUMNS.map(|(_, way, _)| Cell::new(words::cores(outcome, way))));
    let cost = outcome.cores.and_then(|cores| cores.for_gigabyte);
    figures.push(Cell::new(cost.map_or_else(|| words::NONE.into(), |cost| format!("{cost:.2}"))));
    let notes = words::invalid(outcome).into_iter().zip(&outcome.invalid);
    let notes = notes.map(|(text, reason)| RowNote { text, reason: reason.worst.what().to_owned() });
    Row { notes: notes.collect(), ..row(stage, outcome, figures) }
}
