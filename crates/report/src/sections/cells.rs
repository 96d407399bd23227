//! The comparison of targets, cell by cell.

use nilometer_analysis::{Question, StageCell, effect::Effect, letter};

use crate::document::{Block, Cell, Column, Fold, Role, Row, Table};

/// Longer tables start closed.
const ROWS_OPEN: usize = 12;

pub(super) fn cells(cells: &[StageCell], questions: &[Question], margin: f64) -> Option<Block> {
    let pairs: usize = questions.iter().flat_map(|q| &q.comparisons).map(|c| c.cells.len()).sum();
    if cells.len() < 2 || pairs == 0 {
        return None;
    }
    let columns = ["parameters", "phase"].map(|name| Column::new(Role::Name, name));
    let columns = columns.into_iter().chain([Column::new(Role::Sentence, "answer")]).collect();
    let of_question = |question| cells.iter().filter_map(move |cell| row(margin, question, cell));
    let rows = questions.iter().flat_map(of_question).collect();
    let blocks = vec![Block::Table(Table { columns, rows })];
    Some(Block::Fold(Fold { summary: "Cell by cell".into(), is_open: pairs <= ROWS_OPEN, blocks }))
}

fn row(margin: f64, question: &Question, cell: &StageCell) -> Option<Row> {
    let lines = question.comparisons.iter().filter_map(|comparison| {
        let (_, effect): &(usize, Effect) =
            comparison.cells.iter().find(|(index, _)| *index == cell.index)?;
        Some(effect.words(margin, &letter(comparison.first), &letter(comparison.second)))
    });
    let lines: Vec<String> = lines.collect();
    let answer = Cell { lines, ..Cell::new("") };
    let named = [cell.label.as_str(), question.phase.name()].map(Cell::new);
    (!answer.lines.is_empty()).then(|| Row::of(named.into_iter().chain([answer])))
}
