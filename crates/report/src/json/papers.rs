//! The tables of published studies with own figures beside the published ones, for programs.

use serde::Serialize;

use nilometer_analysis::{OwnFigure, PaperCell, PaperLine, PaperStudy, PaperTable};

/// A published study that the campaign measured again, or that the record was imported from.
#[derive(Serialize)]
pub(super) struct StudyTables<'a> {
    /// The name of its files in `reference/`.
    study: &'a str,
    title: &'a str,
    /// The scale of own figures, a sentence for each target; empty without own figures.
    own: &'a [String],
    /// True if the record was imported from the study's table.
    is_imported: bool,
    /// The tables with own figures; all tables if there are none.
    tables: Vec<StudyTable<'a>>,
    /// Other tables and rows, with the place or the reason.
    elsewhere: &'a [String],
}

/// A table in the lines, columns and units of the study.
#[derive(Serialize)]
struct StudyTable<'a> {
    /// The number or name of the table in the study.
    name: &'a str,
    /// The heading of the names of lines.
    row: &'a str,
    /// The heading of the second name of a line, a system or a figure; null if lines have one name.
    on: Option<&'a str>,
    /// The headings of the figures, with units.
    columns: &'a [String],
    lines: Vec<StudyLine<'a>>,
    /// Differences between the measurement of the study and yours.
    notes: &'a [String],
    /// Reasons for missing own figures.
    gaps: &'a [String],
}

/// A line of a table.
#[derive(Serialize)]
struct StudyLine<'a> {
    row: &'a str,
    /// Its system or figure; empty if lines have one name.
    on: &'a str,
    /// One for each column.
    cells: Vec<StudyFigure<'a>>,
}

/// A figure of the study or of your own. No key has the ratio of the two: machines and years differ.
#[derive(Serialize)]
struct StudyFigure<'a> {
    /// True for a figure of your own.
    is_own: bool,
    /// The text of the cell in reports for people; null if the study has no such figure.
    shown: Option<String>,
    /// The own figure, in the unit of its column or in `unit`; null for published figures, bounds and missing ones.
    value: Option<f64>,
    /// The unit of an own figure, if its column has none.
    unit: Option<&'a str>,
    /// The number of valid repeats, and of all.
    repeats: Option<[usize; 2]>,
    /// Half the width of the 95 % interval over repeats.
    half_width: Option<f64>,
    /// The standard error over nodes.
    standard_error: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

pub(super) fn study_tables(study: &PaperStudy) -> StudyTables<'_> {
    let PaperStudy { title, name, own, is_imported, tables, elsewhere } = study;
    StudyTables {
        study: name,
        title,
        own,
        is_imported: *is_imported,
        tables: tables.iter().map(study_table).collect(),
        elsewhere,
    }
}

fn study_table(table: &PaperTable) -> StudyTable<'_> {
    let PaperTable { name, row, on, columns, lines, notes, gaps } = table;
    let lines = lines.iter().map(study_line).collect();
    StudyTable { name, row, on: *on, columns, lines, notes, gaps }
}

fn study_line(line: &PaperLine) -> StudyLine<'_> {
    let PaperLine { row, on, cells } = line;
    StudyLine { row, on, cells: cells.iter().map(study_figure).collect() }
}

fn study_figure(cell: &PaperCell) -> StudyFigure<'_> {
    match cell {
        PaperCell::Published(text) => StudyFigure { shown: Some(text.clone()), ..StudyFigure::NONE },
        PaperCell::Unpublished => StudyFigure::NONE,
        PaperCell::Own(figure, unit) => StudyFigure {
            is_own: true,
            shown: Some(figure.to_string()),
            unit: Some(*unit).filter(|unit| !unit.is_empty()),
            ..own_values(figure)
        },
    }
}

fn own_values(figure: &OwnFigure) -> StudyFigure<'static> {
    match *figure {
        OwnFigure::Known { value, valid, all } => {
            StudyFigure { value: Some(value), repeats: Some([valid, all]), ..StudyFigure::NONE }
        }
        OwnFigure::OverNodes { mean, error } => {
            StudyFigure { value: Some(mean), standard_error: error, ..StudyFigure::NONE }
        }
        OwnFigure::OverRepeats { mean, half_width, valid, all } => StudyFigure {
            value: Some(mean),
            half_width: Some(half_width),
            repeats: Some([valid, all]),
            ..StudyFigure::NONE
        },
        OwnFigure::AtLeast(bound) => StudyFigure { at_least: Some(bound), ..StudyFigure::NONE },
        OwnFigure::AtMost(bound) => StudyFigure { at_most: Some(bound), ..StudyFigure::NONE },
        OwnFigure::Missing(_) => StudyFigure::NONE,
    }
}

impl StudyFigure<'_> {
    /// A figure that the study does not have.
    const NONE: StudyFigure<'static> = StudyFigure {
        is_own: false,
        shown: None,
        value: None,
        unit: None,
        repeats: None,
        half_width: None,
        standard_error: None,
        at_least: None,
        at_most: None,
    };
}
