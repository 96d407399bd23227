//! Machines observed during the measurement: their hardware, their use, and the limit of each figure.

use nilometer_analysis::observed::{BUSY_DISKS, LEGEND, ObservedCell, ObservedMachine, ObservedRun};
use nilometer_plan::Results;

use super::observed_charts::RunFrame;
use crate::{
    document::{
        Arrangement, Block, Cell, Column, Detail, Heading, Role, Row, Section, Sentence, Table, Tone,
    },
    observed::{COLUMNS, TITLE, rows},
};

/// Limit on rows. A short report has no longer table.
const ROWS_MOST: usize = 60;
/// Letters of a machine's name, or of a disk's with its figures.
const CELL_MOST: usize = 26;

pub(crate) fn observed(results: &Results, run: Option<&ObservedRun>, detail: Detail) -> Vec<Section> {
    let Some(run) = run else { return Vec::new() };
    let mut blocks: Vec<Block> = run.machines.iter().map(machine).collect();
    if detail == Detail::Page {
        blocks.extend(drawn(results, run));
    }
    let count: usize = run.cells.iter().map(|cell| cell.seen.len()).sum();
    let has_tables = detail >= Detail::Full || count <= ROWS_MOST;
    blocks.extend(has_tables.then(|| Block::soft(format!("Figures are {LEGEND}."))));
    for cell in &run.cells {
        blocks.push(Block::Paragraph(Sentence::new(&cell.what)));
        blocks.extend((has_tables && !cell.seen.is_empty()).then(|| Block::Table(table(run, cell))));
        blocks.push(Block::list(run.sentences(cell)));
    }
    blocks.extend(run.has_busy_disks().then(|| Block::soft(BUSY_DISKS)));
    vec![Section::new(Heading::of(TITLE), blocks).at("observed", "machines observed")]
}

fn drawn(results: &Results, run: &ObservedRun) -> [Block; 3] {
    let frame = RunFrame::of(results, run);
    let more = Block::Charts(frame.more_charts(run), Arrangement::Under);
    [
        Block::Charts(frame.first_charts(results, run), Arrangement::Under),
        Block::soft(frame.legend(run)),
        Block::closed("More charts of these machines", vec![more]),
    ]
}

fn machine(machine: &ObservedMachine) -> Block {
    let tone = if machine.agreement.is_doubtful() { Tone::Doubtful } else { Tone::Soft };
    let mut more = vec![Sentence::toned(tone, &machine.clock)];
    more.extend(machine.notes.iter().map(|note| Sentence::toned(Tone::Doubtful, note)));
    let sentence = Sentence::new(machine.words()).led(&machine.header.host);
    Block::Paragraph(Sentence { more, ..sentence })
}

fn table(run: &ObservedRun, cell: &ObservedCell) -> Table {
    let ranks = (0..).map(|place| u8::try_from(COLUMNS.len() - place).unwrap_or_default());
    let figures = COLUMNS.iter().zip(ranks).skip(1);
    let figures = figures.map(|(heading, rank)| Column::figure(*heading).ranked(rank).at_most(CELL_MOST));
    let columns = std::iter::once(Column::new(Role::Name, "machine").at_most(CELL_MOST)).chain(figures);
    let rows = rows(run, cell).into_iter().map(|row| Row::of(row.map(Cell::new)));
    Table { columns: columns.collect(), rows: rows.collect() }
}
