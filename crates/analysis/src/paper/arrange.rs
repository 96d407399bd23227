//! Arranges the published figures of a table and one's own in the study's lines and columns.

use nilometer_plan::{
    FigureKind, MappedLine, Measured, PublishedFigure, PublishedStudy, PublishedTable, TableLines,
};

use super::{
    own_figure::{OwnFigure, bytes_of, of_run, over_repeats, own_unit},
    repeated::{LineGap, LineParameters, RepeatedCell, RepeatedPlans},
    table::{OwnTarget, PaperCell, PaperLine, PaperTable},
};
use crate::{CellOutcome, outcomes};

/// The outcomes of a target's record.
struct OwnOutcomes<'a> {
    target: &'a OwnTarget<'a>,
    all: Vec<CellOutcome<'a>>,
}

/// A cell that a target was asked for, and its answer.
struct AskedCell<'a> {
    line: &'a MappedLine,
    target: &'a OwnTarget<'a>,
    parameters: LineParameters,
    found: Result<RepeatedCell, LineGap>,
}

/// A system's published figures of a line.
struct PublishedSystem<'a> {
    name: String,
    figures: Vec<&'a PublishedFigure>,
}

/// The table of a study with the figures of these targets.
pub(super) fn arranged(
    study: &PublishedStudy,
    table: &PublishedTable,
    plans: &RepeatedPlans,
    own: &[OwnTarget<'_>],
) -> PaperTable {
    let own: Vec<OwnOutcomes<'_>> =
        own.iter().map(|target| OwnOutcomes { target, all: outcomes(target.results) }).collect();
    let asked: Vec<AskedCell<'_>> = table.line.iter().flat_map(|line| asked(line, plans, &own)).collect();
    let (on, columns) = heads(study, table, &own);
    let mut lines = Vec::new();
    for line in &table.line {
        let of_line: Vec<&AskedCell<'_>> = asked.iter().filter(|asked| asked.line == line).collect();
        match table.lines {
            TableLines::Figures => lines.extend(by_figure(study, table, line, &of_line, &own)),
            TableLines::Systems | TableLines::Runs => {
                lines.extend(published_lines(study, table, line));
                lines.extend(of_line.iter().flat_map(|asked| own_lines(table, asked, &own)));
            }
        }
    }
    let mut notes = table.notes.clone();
    notes.extend(works(&asked));
    notes.extend(merged(&asked));
    PaperTable {
        name: table.name.clone(),
        row: table.row.clone(),
        on,
        columns,
        lines,
        notes,
        gaps: gaps(&asked).into_iter().chain(invalid(&asked, &own)).collect(),
    }
}

/// The heading of the second name of lines, and those of the figures.
fn heads(
    study: &PublishedStudy,
    table: &PublishedTable,
    own: &[OwnOutcomes<'_>],
) -> (Option<&'static str>, Vec<String>) {
    if table.lines != TableLines::Figures {
        return (Some("on"), table.figures.iter().map(|kind| kind.heading(&table.unit)).collect());
    }
    let mut columns = systems(study, table);
    columns.extend(own.iter().map(|own| own.target.letter.clone()));
    let is_one = table.figures.len() == 1;
    if is_one {
        columns = columns.into_iter().map(|system| format!("{system} [{}]", table.unit)).collect();
    }
    ((!is_one).then_some("figure"), columns)
}

/// The published systems of a table, in their order.
fn systems(study: &PublishedStudy, table: &PublishedTable) -> Vec<String> {
    let mut systems: Vec<String> = Vec::new();
    for figure in table.line.iter().flat_map(|line| study.figures_of(table, line, table.figures[0])) {
        if !systems.contains(&figure.system) {
            systems.push(figure.system.clone());
        }
    }
    systems
}

/// All cells of a line on all targets.
fn asked<'a>(line: &'a MappedLine, plans: &RepeatedPlans, own: &'a [OwnOutcomes<'a>]) -> Vec<AskedCell<'a>> {
    let of_target = |own: &'a OwnOutcomes<'a>| {
        LineParameters::of(line).into_iter().map(|parameters| {
            let found = plans.cell_of(line, &parameters, own.target);
            AskedCell { line, target: own.target, parameters, found }
        })
    };
    own.iter().flat_map(of_target).collect()
}

/// The figures of a line with a column for each system: a line for each kind of figure.
fn by_figure(
    study: &PublishedStudy,
    table: &PublishedTable,
    line: &MappedLine,
    asked: &[&AskedCell<'_>],
    own: &[OwnOutcomes<'_>],
) -> Vec<PaperLine> {
    let is_one = table.figures.len() == 1;
    let of_kind = |kind: &FigureKind| {
        let published = systems(study, table).into_iter().map(|system| {
            let found = study.figures_of(table, line, *kind).find(|figure| figure.system == system);
            found.map_or(PaperCell::Unpublished, |figure| published(*kind, figure, &table.unit))
        });
        let own = asked.iter().map(|asked| own_cell(table, *kind, asked, own));
        PaperLine {
            row: line.name.clone(),
            on: if is_one { String::new() } else { kind.heading(&table.unit) },
            cells: published.chain(own).collect(),
        }
    };
    table.figures.iter().map(of_kind).collect()
}

/// The published lines of a line's name: one for each system, or for each run of it.
fn published_lines(study: &PublishedStudy, table: &PublishedTable, line: &MappedLine) -> Vec<PaperLine> {
    let of_system = |system: &PublishedSystem<'_>| {
        let runs = if table.lines == TableLines::Runs { system.figures.len() } else { 1 };
        let of_run = |run: usize| {
            let cells = table.figures.iter().map(|kind| {
                let mut of_kind = study.figures_of(table, line, *kind).filter(|figure| system.has(figure));
                let found = of_kind.nth(run);
                found.map_or(PaperCell::Unpublished, |figure| published(*kind, figure, &table.unit))
            });
            PaperLine { row: line.name.clone(), on: system.name.clone(), cells: cells.collect() }
        };
        (0..runs).map(of_run).collect::<Vec<_>>()
    };
    published_systems(study, table, line).iter().flat_map(of_system).collect()
}

impl PublishedSystem<'_> {
    fn has(&self, figure: &PublishedFigure) -> bool {
        self.figures.iter().any(|own| (&own.system, &own.params) == (&figure.system, &figure.params))
    }
}

/// The systems of a line. Several parameters of one system are systems of their own.
fn published_systems<'a>(
    study: &'a PublishedStudy,
    table: &'a PublishedTable,
    line: &'a MappedLine,
) -> Vec<PublishedSystem<'a>> {
    let mut systems: Vec<PublishedSystem<'a>> = Vec::new();
    for figure in study.figures_of(table, line, table.figures[0]) {
        match systems.iter_mut().find(|system| system.has(figure)) {
            Some(system) => system.figures.push(figure),
            None => systems.push(PublishedSystem { name: figure.system.clone(), figures: vec![figure] }),
        }
    }
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    for system in &mut systems {
        let is_several = names.iter().filter(|name| **name == system.name).count() > 1;
        if is_several {
            system.name = format!("{}, {}", system.name, system.figures[0].params);
        }
    }
    systems
}

/// The lines of an own cell: one, or one for each run.
fn own_lines(table: &PublishedTable, asked: &AskedCell<'_>, own: &[OwnOutcomes<'_>]) -> Vec<PaperLine> {
    if asked.found == Err(LineGap::Layout) {
        return Vec::new();
    }
    let separator = if asked.parameters.words.is_empty() { "" } else { ", " };
    let on = format!("{}{separator}{}", asked.target.letter, asked.parameters.words);
    let line = |on: String, cells: Vec<PaperCell>| PaperLine { row: asked.line.name.clone(), on, cells };
    let outcome = outcome_of(asked, own);
    let Some(outcome) = outcome.filter(|_| table.lines == TableLines::Runs) else {
        return vec![line(on, table.figures.iter().map(|kind| own_cell(table, *kind, asked, own)).collect())];
    };
    let of = |measured: &&Measured| {
        let cell = |kind: &FigureKind| PaperCell::Own(of_run(*kind, &measured.sample), own_unit(*kind));
        line(format!("{on}, run {}", measured.key.repeat + 1), table.figures.iter().map(cell).collect())
    };
    outcome.samples.iter().map(of).collect()
}

fn own_cell(
    table: &PublishedTable,
    kind: FigureKind,
    asked: &AskedCell<'_>,
    own: &[OwnOutcomes<'_>],
) -> PaperCell {
    let outcome = outcome_of(asked, own);
    let figure = outcome.map_or(OwnFigure::Missing("not measured"), |of| over_repeats(kind, &table.unit, of));
    PaperCell::Own(figure, own_unit(kind))
}

fn outcome_of<'a>(asked: &AskedCell<'_>, own: &'a [OwnOutcomes<'a>]) -> Option<&'a CellOutcome<'a>> {
    let RepeatedCell { cell, phase, .. } = asked.found.as_ref().ok()?;
    let all = &own.iter().find(|own| own.target.letter == asked.target.letter)?.all;
    let key = (*cell, *phase, asked.target.target);
    all.iter().find(|outcome| (outcome.cell, outcome.phase, outcome.target) == key)
}

/// A published figure in a table's unit.
fn published(kind: FigureKind, figure: &PublishedFigure, unit: &str) -> PaperCell {
    let text = match kind {
        FigureKind::TimeError => figure.sem.clone(),
        FigureKind::Load => figure.load_avg.clone(),
        FigureKind::LoadError => figure.load_sem.clone(),
        FigureKind::BackgroundIo => figure.background_io.clone(),
        FigureKind::BackgroundIoError => figure.background_sem.clone(),
        _ => value_of(figure, unit),
    };
    if text.is_empty() { PaperCell::Unpublished } else { PaperCell::Published(text) }
}

/// A value or a range. It keeps the publication's digits if the units are the same.
fn value_of(figure: &PublishedFigure, unit: &str) -> String {
    let converted = |text: &str| match (bytes_of(&figure.unit), bytes_of(unit), text.parse::<f64>()) {
        (Some(from), Some(to), Ok(value)) if figure.unit != unit => format!("{}", value * from / to),
        _ => text.to_owned(),
    };
    let [value, least, most] =
        [&figure.value, &figure.value_min, &figure.value_max].map(|text| converted(text));
    match (value.is_empty(), least.is_empty(), most.is_empty()) {
        (false, ..) => value,
        (_, false, false) => format!("{least} to {most}"),
        (_, true, false) => format!("up to {most}"),
        _ => least,
    }
}

/// More works than these are not listed: their lines have the names of their parameters.
const WORKS_MOST: usize = 12;

/// The work behind own figures, if it is not the plan's full size.
fn works(asked: &[AskedCell<'_>]) -> Vec<String> {
    let mut works: Vec<String> = Vec::new();
    for asked in asked.iter().filter(|asked| (asked.target.scale() - 1.0).abs() > f64::EPSILON) {
        let Ok(found) = &asked.found else { continue };
        let work = format!("own `{}`: {}", asked.line.name, asked.target.results.cells[found.cell]);
        if !works.contains(&work) {
            works.push(work);
        }
    }
    if works.len() > WORKS_MOST { Vec::new() } else { works }
}

/// Lines that are one measurement at a small scale, since their sizes became the same.
fn merged(asked: &[AskedCell<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for (at, one) in asked.iter().enumerate() {
        let Ok(found) = &one.found else { continue };
        let is_same = |other: &&AskedCell<'_>| {
            other.target.letter == one.target.letter
                && other
                    .found
                    .as_ref()
                    .is_ok_and(|of| (of.cell, of.phase) == (found.cell, found.phase) && of.full != found.full)
        };
        let sentence = asked[..at].iter().find(is_same).map(|other| {
            format!("`{}` and `{}` are one measurement at this scale", other.line.name, one.line.name)
        });
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

/// The reasons for cells without a figure, each once for a target.
fn gaps(asked: &[AskedCell<'_>]) -> Vec<String> {
    let mut counted: Vec<(String, String, usize)> = Vec::new();
    for asked in asked {
        let Err(gap) = &asked.found else { continue };
        let why = match gap {
            LineGap::Layout => {
                "left out, since files there have no choice of stripes: the line with the fewest stands for all".into()
            }
            LineGap::Because(why) => format!("not measured: {why}"),
        };
        let letter = &asked.target.letter;
        match counted.iter_mut().find(|known| (&known.0, &known.1) == (letter, &why)) {
            Some(known) => known.2 += 1,
            None => counted.push((letter.clone(), why, 1)),
        }
    }
    let words = |(letter, why, count): (String, String, usize)| match count {
        1 => format!("{letter}: 1 cell {why}"),
        count => format!("{letter}: {count} cells {why}"),
    };
    counted.into_iter().map(words).collect()
}

/// The reasons why repeats are INVALID.
fn invalid(asked: &[AskedCell<'_>], own: &[OwnOutcomes<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for asked in asked {
        let Some(outcome) = outcome_of(asked, own) else { continue };
        let all = outcome.samples.len();
        let words = if asked.parameters.words.is_empty() {
            String::new()
        } else {
            format!(", {}", asked.parameters.words)
        };
        let of = |reason: &crate::Reason| {
            format!(
                "{}, {}{words}: INVALID in {} of {all} repeats: {reason}",
                asked.target.letter, asked.line.name, reason.count
            )
        };
        sentences.extend(outcome.invalid.iter().map(of));
    }
    sentences
}
