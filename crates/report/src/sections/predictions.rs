//! The instruments of the catalogue that each target carries, from recordings and predictions.

use nilometer_analysis::{Basis, Predictions, Prospect, Prospects, Study, letter};

use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table, Tone},
    figure_key::{instrument_tooltip, limit_tooltip},
    prospects::{SUBTITLE, is_recorded, is_table, known_rows, limit, notes, rate, says, title},
};

/// Width in letters of an instrument's name, and of a target's result.
const NAME: usize = 28;
const PROSPECT: usize = 13;

/// Returns no table if verdicts say everything.
pub(crate) fn predictions(study: &Study<'_>, predictions: &Predictions) -> Vec<Section> {
    let notes = notes(study);
    if !predictions.predicts() && study.verdicts.len() < 2 && notes.is_empty() {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    blocks.extend(is_table(predictions).then(|| Block::Table(table(study, predictions))));
    let both = predictions.records() && predictions.predicts();
    blocks.extend(both.then(|| Block::soft("* recorded.")));
    blocks.extend(notes.into_iter().map(Block::soft));
    let section = Section::new(Heading::with(title(predictions), format!(": {SUBTITLE}")), blocks);
    // A campaign that records an instrument asks for its margin. `--predict` asks for all margins.
    vec![if predictions.records() { section } else { section.from(Detail::Predicted) }]
}

/// Makes a row for each instrument with a result, and a column for each target.
fn table(study: &Study<'_>, predictions: &Predictions) -> Table {
    let targets: Vec<usize> = (0..study.results.targets.len()).collect();
    let mut columns =
        vec![Column::new(Role::Name, "instrument").at_least(NAME).at_most(NAME), Column::figure("rate")];
    columns.extend(targets.iter().map(|target| Column::figure(letter(*target)).at_least(PROSPECT)));
    let rows = known_rows(predictions, &targets);
    Table { columns, rows: rows.map(|row| of_instrument(study, row, &targets)).collect() }
}

fn of_instrument(study: &Study<'_>, row: &Prospects, targets: &[usize]) -> Row {
    let predictions = &study.predictions;
    let both = predictions.records() && predictions.predicts();
    let prospects = targets.iter().map(|target| {
        let prospect = row.on.get(*target).and_then(|prospect| prospect.as_ref().ok());
        let star = if both && is_recorded(prospect) { " *" } else { "" };
        Cell::toned(tone(prospect), format!("{}{star}", says(prospect))).from(origin(study, row, *target))
    });
    Row::of([Cell::new(&row.instrument), Cell::new(rate(row))].into_iter().chain(prospects))
}

/// The origin of a prospect, or the reason why there is none.
fn origin(study: &Study<'_>, row: &Prospects, target: usize) -> String {
    match row.on.get(target) {
        None => String::new(),
        Some(Err(why)) => format!("not predicted: {why}"),
        Some(Ok(Prospect { basis: Basis::Recorded, .. })) => {
            format!("recorded, {}", instrument_tooltip(study, &row.instrument, target))
        }
        Some(Ok(Prospect { basis: Basis::Predicted(index), .. })) => {
            let known = study.predictions.limits.get(*index);
            let [limit, samples] =
                known.map_or_else(Default::default, |known| [limit(known), limit_tooltip(study, known)]);
            format!("predicted from {limit}: {samples}")
        }
    }
}

/// Recordings are certain, and a failure must be visible at once.
fn tone(prospect: Option<&Prospect>) -> Tone {
    match prospect {
        Some(Prospect { carried: Some(false), .. }) => Tone::Bad,
        Some(Prospect { carried: None, .. }) => Tone::Doubtful,
        Some(Prospect { basis: Basis::Recorded, .. }) => Tone::Good,
        _ => Tone::Plain,
    }
}
