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

/// The outcomes of a target.
pub(super) struct OwnOutcomes<'a> {
    target: &'a OwnTarget<'a>,
    all: Vec<CellOutcome<'a>>,
}

impl<'a> OwnOutcomes<'a> {
    pub(super) fn of(target: &'a OwnTarget<'a>) -> Self {
        let mut all = outcomes(target.results);
        all.retain(|outcome| outcome.target == target.target);
        OwnOutcomes { target, all }
    }
}

/// A line's cell on a target: the cell of its record, or the reason why it has none.
struct AskedCell<'a> {
    line: &'a MappedLine,
    target: &'a OwnTarget<'a>,
    parameters: LineParameters,
    found: Result<RepeatedCell, LineGap>,
}

/// A system's published figures of a line.
struct SystemFigures<'a> {
    name: String,
    figures: Vec<&'a PublishedFigure>,
}

/// The table of a study with the figures of these targets.
pub(super) fn arranged(
    study: &PublishedStudy,
    table: &PublishedTable,
    plans: &RepeatedPlans,
    own: &[OwnOutcomes<'_>],
) -> PaperTable {
    let asked: Vec<AskedCell<'_>> = table.line.iter().flat_map(|line| asked(line, plans, own)).collect();
    let (on, columns) = heads(study, table, own);
    let mut lines = Vec::new();
    for line in &table.line {
        let of_line: Vec<&AskedCell<'_>> = asked.iter().filter(|asked| asked.line == line).collect();
        match table.lines {
            TableLines::Figures => lines.extend(by_figure(study, table, line, &of_line, own)),
            TableLines::Systems | TableLines::Runs => {
                lines.extend(published_lines(study, table, line));
                lines.extend(of_line.iter().flat_map(|asked| own_lines(table, asked, own)));
            }
        }
    }
    let mut notes = table.notes.clone();
    notes.extend(works(&asked));
    if table.lines == TableLines::Runs {
        notes.extend(own.iter().map(|own| nodes_of(own.target)));
    }
    PaperTable {
        name: table.name.clone(),
        row: table.row.clone(),
        on,
        columns,
        lines,
        notes,
        gaps: gaps(&asked).into_iter().chain(invalid(&asked, own)).collect(),
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
    let mut all = Vec::new();
    for own in own {
        for parameters in LineParameters::of(line) {
            let found = plans.cell_of(line, &parameters, own.target);
            all.push(AskedCell { line, target: own.target, parameters, found });
        }
    }
    all
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
    let mut lines = Vec::new();
    for kind in &table.figures {
        let mut cells = Vec::new();
        for system in systems(study, table) {
            let found = study.figures_of(table, line, *kind).find(|figure| figure.system == system);
            cells.push(published(*kind, found, &table.unit));
        }
        cells.extend(asked.iter().map(|asked| own_cell(table, *kind, asked, own)));
        let on = if is_one { String::new() } else { kind.heading(&table.unit) };
        lines.push(PaperLine { row: line.name.clone(), on, cells });
    }
    lines
}

/// The published lines of a line's name: one for each system, or for each run of it.
pub(super) fn published_lines(
    study: &PublishedStudy,
    table: &PublishedTable,
    line: &MappedLine,
) -> Vec<PaperLine> {
    let mut lines = Vec::new();
    for system in published_systems(study, table, line) {
        let runs = if table.lines == TableLines::Runs { system.figures.len() } else { 1 };
        for run in 0..runs {
            let mut cells = Vec::new();
            for kind in &table.figures {
                let mut of_kind = study.figures_of(table, line, *kind).filter(|figure| system.has(figure));
                cells.push(published(*kind, of_kind.nth(run), &table.unit));
            }
            lines.push(PaperLine { row: line.name.clone(), on: system.name.clone(), cells });
        }
    }
    lines
}

impl SystemFigures<'_> {
    fn has(&self, figure: &PublishedFigure) -> bool {
        self.figures.iter().any(|own| (&own.system, &own.params) == (&figure.system, &figure.params))
    }
}

/// The systems of a line. Several parameters of one system are systems of their own.
fn published_systems<'a>(
    study: &'a PublishedStudy,
    table: &'a PublishedTable,
    line: &'a MappedLine,
) -> Vec<SystemFigures<'a>> {
    let mut systems: Vec<SystemFigures<'a>> = Vec::new();
    let of_kind = |kind: &FigureKind| study.figures_of(table, line, *kind).collect::<Vec<_>>();
    let figures = table.figures.iter().map(of_kind).find(|figures| !figures.is_empty());
    for figure in figures.unwrap_or_default() {
        match systems.iter_mut().find(|system| system.has(figure)) {
            Some(system) => system.figures.push(figure),
            None => systems.push(SystemFigures { name: figure.system.clone(), figures: vec![figure] }),
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

/// A published figure in a table's unit, if there is one.
fn published(kind: FigureKind, figure: Option<&PublishedFigure>, unit: &str) -> PaperCell {
    let Some(figure) = figure else { return PaperCell::Unpublished };
    let text = match kind {
        FigureKind::Time => with_error(&figure.value, &figure.sem),
        FigureKind::Load => with_error(&figure.load_avg, &figure.load_sem),
        FigureKind::BackgroundIo => with_error(&figure.background_io, &figure.background_sem),
        FigureKind::LinkShare if !figure.note.contains('%') => String::new(),
        FigureKind::SentAgain | FigureKind::LinkShare => figure.note.clone(),
        _ => value_of(figure, unit),
    };
    if text.is_empty() { PaperCell::Unpublished } else { PaperCell::Published(text) }
}

fn with_error(value: &str, error: &str) -> String {
    if error.is_empty() { value.to_owned() } else { format!("{value} ± {error}") }
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

/// The work of own figures that is not of the plan's full size, with the lines that it stands in.
fn works(asked: &[AskedCell<'_>]) -> Vec<String> {
    let mut works: Vec<(String, Vec<&AskedCell<'_>>)> = Vec::new();
    for asked in asked.iter().filter(|asked| (asked.target.scale() - 1.0).abs() > f64::EPSILON) {
        let Ok(found) = &asked.found else { continue };
        let phrases = asked.target.results.cells[found.cell].phrases();
        let work = phrases.into_iter().next().unwrap_or_default();
        match works.iter_mut().find(|(known, _)| *known == work) {
            Some((_, of)) => of.push(asked),
            None => works.push((work, vec![asked])),
        }
    }
    works.into_iter().map(|(work, of)| work_words(&work, &of)).collect()
}

/// The origin of the figures of runs.
fn nodes_of(target: &OwnTarget<'_>) -> String {
    let letter = &target.letter;
    match target.nodes() {
        1 => format!("{letter}: a single machine has no SEM over nodes"),
        count if target.has_node_starts() => format!("{letter}: SEM over {count} nodes"),
        count => format!(
            "{letter}: SEM over {count} nodes. The record has the greatest load of the nodes and the I/O of all of them, \
             so the SEM of these is unknown"
        ),
    }
}

fn work_words(work: &str, of: &[&AskedCell<'_>]) -> String {
    let mut names: Vec<String> = of.iter().map(|asked| format!("`{}`", asked.line.name)).collect();
    names.dedup();
    let once = if is_merged(of) { ", and one measurement at this scale" } else { "" };
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("own {} {verb} {work}{once}", names.join(", "))
}

/// Returns true if a small scale made one cell of several of the plan's.
fn is_merged(of: &[&AskedCell<'_>]) -> bool {
    let found = || of.iter().filter_map(|asked| Some((&asked.target.letter, asked.found.as_ref().ok()?)));
    found().any(|(letter, one)| {
        found().any(|(of, other)| {
            of == letter && (other.cell, other.phase) == (one.cell, one.phase) && other.full != one.full
        })
    })
}

/// Sentences about cells, each with the number of cells that it is about, in the order of the first of them.
#[derive(Default)]
pub(super) struct CountedSentences(Vec<(String, String, usize)>);

impl CountedSentences {
    pub(super) fn add(&mut self, letter: &str, sentence: String) {
        match self.0.iter_mut().find(|known| known.0 == letter && known.1 == sentence) {
            Some(known) => known.2 += 1,
            None => self.0.push((letter.to_owned(), sentence, 1)),
        }
    }

    pub(super) fn words(self) -> Vec<String> {
        let words = |(letter, sentence, count): (String, String, usize)| {
            let cells = if count == 1 { "cell" } else { "cells" };
            format!("{letter}: {count} {cells} {sentence}")
        };
        self.0.into_iter().map(words).collect()
    }
}

/// The reasons for cells without a figure.
fn gaps(asked: &[AskedCell<'_>]) -> Vec<String> {
    let mut sentences = CountedSentences::default();
    for asked in asked {
        let why = match &asked.found {
            Ok(_) => continue,
            Err(LineGap::Layout) => "left out: files there have no choice of stripes, and the line with the \
                                     fewest stands for all"
                .to_owned(),
            Err(LineGap::Because(why)) => format!("not measured: {why}"),
        };
        sentences.add(&asked.target.letter, why);
    }
    sentences.words()
}

/// The reasons for INVALID repeats.
fn invalid(asked: &[AskedCell<'_>], own: &[OwnOutcomes<'_>]) -> Vec<String> {
    let mut sentences = CountedSentences::default();
    for asked in asked {
        let Some(outcome) = outcome_of(asked, own) else { continue };
        let all = outcome.samples.len();
        for reason in &outcome.invalid {
            let why = reason.worst.what();
            sentences
                .add(&asked.target.letter, format!("INVALID in {} of {all} repeats: {why}", reason.count));
        }
    }
    sentences.words()
}
