//! What the network between machines carries, and what targets behind it do of that.

use nilometer_analysis::{Study, network_outcomes};
use nilometer_model::NetworkStage;

use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Sentence, Table, Tone},
    network::{COLUMNS, LEGEND, NetworkTable, machine_words, sentences, tables},
};

pub(crate) fn network(study: &Study<'_>) -> Vec<Section> {
    let mut sections: Vec<Section> = study.results.network.iter().map(of_stage).collect();
    if let Some(last) = sections.last_mut().filter(|_| !study.network_shares.is_empty()) {
        last.blocks.push(Block::list(study.network_shares.iter().map(ToString::to_string)));
    }
    sections
}

fn of_stage(stage: &NetworkStage) -> Section {
    let outcomes = network_outcomes(&stage.results);
    let machines = stage.results.machines.iter().map(|machine| Block::soft(machine_words(machine)));
    let mut blocks: Vec<Block> = machines.collect();
    blocks.push(Block::soft(format!("{LEGEND}.")));
    for of_flows in tables(&stage.results, &outcomes) {
        blocks.push(Block::Paragraph(Sentence::new(&of_flows.heading)));
        blocks.push(Block::Table(table(&of_flows)));
    }
    let sentences = sentences(&stage.results, &outcomes).into_iter().map(|sentence| {
        let tone = if sentence.starts_with("FAILED") { Tone::Bad } else { Tone::Plain };
        Sentence::toned(tone, sentence)
    });
    blocks.push(Block::List(sentences.collect()));
    Section::new(Heading::of(format!("{}: the network between machines", stage.stage)), blocks)
}

fn table(of_flows: &NetworkTable) -> Table {
    // The most important stand first, and are dropped last.
    let ranks = (0..).map(|place| u8::try_from(COLUMNS.len() - place).unwrap_or_default());
    let ranked = COLUMNS.iter().zip(ranks).skip(2);
    let mut columns = vec![Column::new(Role::Label, "pattern"), Column::figure(COLUMNS[1])];
    columns.extend(ranked.map(|(heading, rank)| Column::figure(*heading).ranked(rank)));
    let row = |row: &[String; 6]| Row::of(row.iter().map(Cell::new));
    Table { columns, rows: of_flows.rows.iter().map(row).collect() }
}
