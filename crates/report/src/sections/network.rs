//! The network rates between machines, and the shares that targets behind the network reach.

use nilometer_analysis::{NetworkOutcome, NetworkShare, network_outcomes};
use nilometer_model::{NetworkResults, NetworkStage};
use nilometer_plan::Results;

use super::network_over_time::over_time;
use crate::{
    chart::{Bar, Bars, Chart, clipped, interval},
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Sentence, Table, Tone},
    network::{
        COLUMNS, LEGEND, NetworkTable, left_out_by_plan, load_words, machine_words, rate_words, sentences,
        tables,
    },
};

/// Letters that a label has room for.
const LABEL_LETTERS: usize = 52;
/// With more bars than this there is no drawing.
const BARS_MOST: usize = 40;

pub(crate) fn network(results: &Results, shares: &[NetworkShare], detail: Detail) -> Vec<Section> {
    let stages = results.network.iter().enumerate();
    let stages = stages.map(|(number, stage)| {
        let left_out = left_out_by_plan(results, number);
        of_stage(stage, &left_out, detail).at(format!("network-{number}"), stage.stage.as_str())
    });
    let mut sections: Vec<Section> = stages.collect();
    if let Some(last) = sections.last_mut().filter(|_| !shares.is_empty()) {
        last.blocks.push(Block::list(shares.iter().map(ToString::to_string)));
    }
    sections
}

fn of_stage(stage: &NetworkStage, left_out: &[String], detail: Detail) -> Section {
    let heading = format!("{}: the network between machines", stage.stage);
    between_machines(&stage.results, left_out, heading, detail)
}

/// The network by itself, or of a stage. `left_out` has the trials that the plan leaves out by itself.
pub(crate) fn between_machines(
    results: &NetworkResults,
    left_out: &[String],
    heading: impl Into<String>,
    detail: Detail,
) -> Section {
    let outcomes = network_outcomes(results);
    let machines = results.machines.iter().map(|machine| Block::soft(machine_words(machine)));
    let mut blocks: Vec<Block> = machines.collect();
    blocks.extend((detail == Detail::Page).then(|| Block::charts(charts(results, &outcomes))));
    blocks.push(Block::soft(format!("{LEGEND}.")));
    for of_flows in tables(results, &outcomes) {
        blocks.push(Block::Paragraph(Sentence::new(&of_flows.heading)));
        blocks.push(Block::Table(table(&of_flows)));
    }
    let sentences = sentences(results, &outcomes, left_out).into_iter().map(|sentence| {
        let tone = match () {
            () if sentence.starts_with("FAILED") => Tone::Bad,
            () if sentence.starts_with("LEFT OUT") => Tone::Doubtful,
            () => Tone::Plain,
        };
        Sentence::toned(tone, sentence)
    });
    blocks.push(Block::List(sentences.collect()));
    blocks.extend(over_time(results, detail == Detail::Page));
    Section::new(Heading::of(heading), blocks)
}

fn table(of_flows: &NetworkTable) -> Table {
    // The most important come first, and are dropped last.
    let ranks = (0..).map(|place| u8::try_from(COLUMNS.len() - place).unwrap_or_default());
    let ranked = COLUMNS.iter().zip(ranks).skip(2);
    let mut columns = vec![Column::new(Role::Label, "pattern"), Column::figure(COLUMNS[1])];
    columns.extend(ranked.map(|(heading, rank)| Column::figure(*heading).ranked(rank)));
    let row = |row: &[String; 6]| Row::of(row.iter().map(Cell::new));
    Table { columns, rows: of_flows.rows.iter().map(row).collect() }
}

/// One for each number of flows with each of their settings.
fn charts(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> Vec<Chart> {
    let groups = outcomes.chunk_by(|one, other| one.cell.has_load_of(&other.cell));
    groups.filter(|group| group.len() <= BARS_MOST).map(|group| chart(results, group)).collect()
}

fn chart(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> Chart {
    let names = results.names();
    let title = outcomes.first().map_or_else(String::new, |outcome| load_words(&outcome.cell));
    let group = |outcome: &NetworkOutcome| {
        (clipped(&outcome.cell.pattern.words(&names), LABEL_LETTERS), vec![bar(results, outcome)])
    };
    let groups = outcomes.iter().map(group).collect();
    let description = format!("network rates with {title}, from each machine to each other");
    Chart::Bars(Bars { title, description, groups })
}

fn bar(results: &NetworkResults, outcome: &NetworkOutcome) -> Bar {
    let valid = results.of_cell(outcome.number).filter(|sample| sample.failed().is_none());
    Bar {
        series: 0,
        name: String::new(),
        value: outcome.rate.map(|rate| rate.mean),
        interval: outcome.rate.as_ref().and_then(interval),
        repeats: valid.map(|sample| sample.rate().0).collect(),
        text: rate_words(outcome),
    }
}
