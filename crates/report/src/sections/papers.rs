//! The tables of published studies, with one's own figures beside the published ones.

use nilometer_analysis::{OwnFigure, PaperCell, PaperLine, PaperStudy, PaperTable};

use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Sentence, Table, Tone},
    words::NONE,
};

/// The meaning of figures beside each other.
const BESIDE: &str = "Published figures are as the study prints them; a dash means that it has none. They come from other \
                      machines and years, so Nilometer gives no ratio between a published figure and your own.";

/// The note for a table without figures of one's own.
const NONE_OWN: &str = "no own figures here: add a record that measured its plan";

/// The sections of these studies: one for each study, with a part for each of its tables.
pub(crate) fn papers(studies: &[PaperStudy]) -> Vec<Section> {
    studies.iter().flat_map(of_study).collect()
}

fn of_study(study: &PaperStudy) -> Vec<Section> {
    let mut blocks = vec![Block::soft(BESIDE)];
    let own = if study.own.is_empty() { vec![NONE_OWN.to_owned()] } else { study.own.clone() };
    blocks.push(Block::list(own));
    let head = Section::new(Heading::with("Published study", format!(": {}", study.title)), blocks);
    let id = format!("study-{}", study.name);
    let tables = study.tables.iter().map(of_table);
    let elsewhere = (!study.elsewhere.is_empty()).then(|| {
        Section::part(Heading::of("Not in these tables"), vec![Block::list(study.elsewhere.clone())])
    });
    std::iter::once(head.at(id, &study.title)).chain(tables).chain(elsewhere).collect()
}

fn of_table(table: &PaperTable) -> Section {
    let mut columns = vec![Column::new(Role::Label, &table.row)];
    columns.extend(table.on.map(|heading| Column::new(Role::Name, heading)));
    columns.extend(table.columns.iter().map(Column::figure));
    let rows = table.lines.iter().map(|line| row(table, line)).collect();
    let mut blocks = vec![Block::Table(Table { columns, rows })];
    blocks.extend((!table.notes.is_empty()).then(|| Block::list(table.notes.clone())));
    let gaps = table.gaps.iter().map(|gap| Sentence::toned(Tone::Doubtful, gap));
    blocks.extend((!table.gaps.is_empty()).then(|| Block::List(gaps.collect())));
    Section::part(Heading::with("Table", format!(" {}", table.name)), blocks)
}

fn row(table: &PaperTable, line: &PaperLine) -> Row {
    let on = table.on.map(|_| Cell::new(&line.on));
    Row::of(std::iter::once(Cell::new(&line.row)).chain(on).chain(line.cells.iter().map(cell)))
}

fn cell(of: &PaperCell) -> Cell {
    match of {
        PaperCell::Published(text) => Cell::toned(Tone::Soft, text),
        PaperCell::Unpublished => Cell::toned(Tone::Soft, NONE),
        PaperCell::Own(figure @ OwnFigure::Missing(_), _) => Cell::toned(Tone::Doubtful, figure),
        PaperCell::Own(figure, "") => Cell::new(figure),
        PaperCell::Own(figure, unit) => Cell::new(format!("{figure} {unit}")),
    }
}
