//! The times of a stage: real, user, system and waiting.

use nilometer_analysis::StageFigures;
use nilometer_model::Phase;

use super::stage_rows::{named, row};
use crate::{
    document::{Block, Cell, Column, Detail, Heading, Section, Table},
    words,
};

/// Letters of a time.
const TIME: usize = 8;

/// The times of a stage. One that copies has them in every report, because its study is about these times.
pub(super) fn times(stage: &StageFigures<'_>) -> Option<Section> {
    if stage.outcomes.iter().all(|outcome| outcome.times.is_none()) {
        return None;
    }
    let figures = words::TIMES.map(|name| Column::figure(name).at_least(TIME));
    let columns = named().into_iter().chain(figures).collect();
    let rows = stage.outcomes.iter().map(|outcome| row(stage, outcome, words::times(outcome).map(Cell::new)));
    let table = Table { columns, rows: rows.collect() };
    let section = Section::part(Heading::of("Time"), vec![Block::Table(table)]);
    Some(if stage.question(Phase::Source).is_some() { section } else { section.from(Detail::Full) })
}
