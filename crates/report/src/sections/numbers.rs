//! Every statistic of each figure.

use nilometer_analysis::{CellOutcome, RateUnit, StageFigures, letter};
use nilometer_model::Coldness;

use super::stage_rows::mark;
use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Table, Tone},
    figure_key::tooltip,
    words::{self, NONE},
};

const COLUMNS: [&str; 25] = [
    "stage",
    "parameters",
    "phase",
    "target",
    "n",
    "mean",
    "±",
    "median",
    "least",
    "greatest",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "longest",
    words::TIMES[0],
    words::TIMES[1],
    words::TIMES[2],
    words::TIMES[3],
    "cores",
    "client",
    "machine",
    "CPU s/GB",
    "waiting",
    "first and last worker done",
];

/// The first of them name the figure.
const NAMES: usize = 4;

pub(crate) fn numbers(stages: &[&StageFigures<'_>]) -> Vec<Section> {
    let rows = stages.iter().flat_map(|stage| stage.outcomes.iter().map(|outcome| row(stage, outcome)));
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let role = |place: usize| if place < NAMES { Role::Name } else { Role::Figure };
    let mut columns: Vec<Column> =
        COLUMNS.iter().enumerate().map(|(place, name)| Column::new(role(place), *name)).collect();
    columns.extend([Column::new(Role::Name, "read is cold"), Column::new(Role::Sentence, "reasons")]);
    columns.insert(0, Column::new(Role::Mark, ""));
    let summary = format!("A table of {} rows", rows.len());
    let blocks = vec![Block::closed(summary, vec![Block::Table(Table { columns, rows })])];
    let section = Section::new(Heading::of("All numbers"), blocks);
    vec![section.at("numbers", "all numbers").on_screen()]
}

fn row(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> Row {
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let named = [stage.name, label, outcome.phase.name(), &letter(outcome.target)].map(Cell::new);
    let origin = tooltip(stage, outcome);
    let figures = figures(stage, outcome).into_iter().map(|figure| Cell::new(figure).from(origin.as_str()));
    let cold = outcome.coldness.map_or(NONE, Coldness::name);
    let invalid = words::invalid(outcome).join("; ");
    let last = [Cell::new(cold), Cell::toned(Tone::Bad, invalid)];
    let mark = words::marked(mark(outcome));
    Row::of(std::iter::once(mark).chain(named).chain(figures).chain(last))
}

fn figures(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> Vec<String> {
    let quantity = stage.quantity(outcome);
    let mut figures = vec![outcome.valid.to_string()];
    if let Some(summary) = outcome.summary(quantity) {
        let [least, most] = quantity.show_range(summary.range.0, summary.range.1);
        figures.extend([
            quantity.show(summary.mean),
            words::interval(&summary).replace('±', ""),
            quantity.show(summary.median),
            least,
            most,
        ]);
    } else {
        figures.push(words::at_least(outcome, RateUnit::own(quantity)).unwrap_or_else(|| NONE.into()));
        figures.extend([NONE; 4].map(str::to_owned));
    }
    figures.extend([0.5, 0.99, 0.999, 0.9999, 1.0].map(|fraction| words::quantile(outcome, fraction)));
    figures.extend(words::times(outcome));
    figures.push(words::cores(outcome, |cores| cores.own));
    figures.push(words::cores(outcome, |cores| cores.client));
    figures.push(words::cores(outcome, |cores| cores.machine));
    let cost = outcome.cores.and_then(|cores| cores.for_gigabyte);
    figures.push(cost.map_or_else(|| NONE.into(), |cost| format!("{cost:.2}")));
    figures.push(format!("{:.0} %", 100.0 * outcome.wait));
    figures.push(outcome.finished.map_or_else(|| NONE.into(), |(first, last)| format!("{first}, {last}")));
    figures
}
