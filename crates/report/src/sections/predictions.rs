//! The instruments of the catalogue that each target carries, from recordings and predictions.

use nilometer_analysis::{Basis, Predictions, Prospect, Prospects, Study, Withheld, letter};

use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table, Tone},
    figure_key::{instrument_tooltip, limit_tooltip},
    prospects::{SUBTITLE, is_recorded, known_rows, limit, notes, rate, says, title, withheld},
};

/// Width in letters of an instrument's name, and of a target's result.
const NAME: usize = 28;
const PROSPECT: usize = 13;

/// Recorded instruments first. The others follow for those who ask, or if nothing was recorded.
pub(crate) fn predictions(study: &Study<'_>, predictions: &Predictions, detail: Detail) -> Vec<Section> {
    let (recorded, others) = by_basis(predictions);
    let first = recorded_section(study, &recorded);
    first.into_iter().chain(predicted_section(study, &recorded, &others, detail)).collect()
}

/// The instruments with a recording, and all others.
fn by_basis(predictions: &Predictions) -> (Predictions, Predictions) {
    let is_one = |row: &&Prospects| row.on.iter().any(|on| is_recorded(on.as_ref().ok()));
    let rows = predictions.rows.iter();
    let (recorded, others): (Vec<_>, Vec<_>) = rows.partition(is_one);
    let part = |rows: Vec<&Prospects>| Predictions {
        rows: rows.into_iter().cloned().collect(),
        limits: predictions.limits.clone(),
    };
    (part(recorded), part(others))
}

/// Returns nothing if verdicts say everything.
fn recorded_section(study: &Study<'_>, recorded: &Predictions) -> Option<Section> {
    let is_said = study.verdicts.len() < 2 && !recorded.predicts() && withheld(study, recorded).is_none();
    if is_said || !recorded.records() {
        return None;
    }
    let mut blocks = vec![Block::Table(table(study, recorded))];
    blocks.extend(recorded.predicts().then(|| Block::soft("* recorded.")));
    blocks.extend(notes(study, recorded).into_iter().map(Block::soft));
    Some(Section::new(heading(recorded), blocks))
}

/// A table of the instruments that nobody recorded, or one sentence if it would have only dashes.
fn predicted_section(
    study: &Study<'_>,
    recorded: &Predictions,
    others: &Predictions,
    detail: Detail,
) -> Option<Section> {
    if !others.predicts() {
        return withheld_section(study, recorded, others, detail);
    }
    let table = Block::Table(table(study, others));
    let blocks = [table].into_iter().chain(notes(study, others).into_iter().map(Block::soft)).collect();
    if !recorded.records() {
        return Some(Section::new(heading(others), blocks).from(Detail::Predicted));
    }
    let fold = Block::closed("The instruments of the catalogue that were not recorded", blocks);
    Some(Section::new(heading(others), vec![fold]).from(Detail::Predicted).on_screen())
}

/// The reasons why there are no predictions. A campaign that measured none of the limits has no such section, unless
/// the reader asks for predictions.
fn withheld_section(
    study: &Study<'_>,
    recorded: &Predictions,
    others: &Predictions,
    detail: Detail,
) -> Option<Section> {
    let is_expected = detail == Detail::Predicted || (!recorded.records() && was_measured(others));
    let reasons = withheld(study, others).filter(|_| is_expected)?;
    Some(Section::new(heading(others), vec![Block::soft(reasons)]).from(Detail::Predicted))
}

/// True if a limit was measured, and is not usable.
fn was_measured(predictions: &Predictions) -> bool {
    let mut reasons = predictions.rows.iter().flat_map(|row| &row.on).filter_map(|on| on.as_ref().err());
    reasons.any(|why| !matches!(why, Withheld::NotMeasured(_) | Withheld::NotRecorded))
}

fn heading(predictions: &Predictions) -> Heading {
    Heading::with(title(predictions), format!(": {SUBTITLE}"))
}

/// Makes a row for each instrument with a result, and a column for each target.
fn table(study: &Study<'_>, predictions: &Predictions) -> Table {
    let targets: Vec<usize> = (0..study.results.targets.len()).collect();
    let mut columns =
        vec![Column::new(Role::Name, "instrument").at_least(NAME).at_most(NAME), Column::figure("written")];
    columns.extend(targets.iter().map(|target| Column::figure(letter(*target)).at_least(PROSPECT)));
    let rows = known_rows(predictions, &targets);
    Table { columns, rows: rows.map(|row| of_instrument(study, predictions, row, &targets)).collect() }
}

fn of_instrument(study: &Study<'_>, predictions: &Predictions, row: &Prospects, targets: &[usize]) -> Row {
    let both = predictions.records() && predictions.predicts();
    let prospects = targets.iter().map(|target| {
        let prospect = row.on.get(*target).and_then(|prospect| prospect.as_ref().ok());
        let star = if both && is_recorded(prospect) { " *" } else { "" };
        Cell::toned(tone(prospect), format!("{}{star}", says(prospect))).from(origin(
            study,
            predictions,
            row,
            *target,
        ))
    });
    Row::of([Cell::new(&row.instrument), Cell::new(rate(row))].into_iter().chain(prospects))
}

/// The origin of a prospect, or the reason why there is none.
fn origin(study: &Study<'_>, predictions: &Predictions, row: &Prospects, target: usize) -> String {
    match row.on.get(target) {
        None => String::new(),
        Some(Err(why)) => format!("not predicted: {why}"),
        Some(Ok(Prospect { basis: Basis::Recorded, .. })) => {
            format!("recorded, {}", instrument_tooltip(study, &row.instrument, target))
        }
        Some(Ok(Prospect { basis: Basis::Predicted(index), .. })) => {
            let known = predictions.limits.get(*index);
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
