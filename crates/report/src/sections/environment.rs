//! The machine that measured, and on a page the facts found out about each target beforehand.

use nilometer_analysis::letter;
use nilometer_plan::Results;
use serde_json::Value as Json;

use crate::{
    document::{Block, Cell, Column, Detail, Heading, Role, Row, Section, Table},
    network::links,
    words,
};

/// Letters of a fact's name in a terminal: a link's name may have a host's, and the value needs room beside it.
const NAME_MOST: usize = 40;

pub(crate) fn environment(results: &Results, detail: Detail) -> Vec<Section> {
    let all = results.environment.iter().map(|(key, value)| [key.clone(), value.clone()]);
    let links = links(&results.machines).into_iter();
    let links = links.map(|(name, link)| [format!("link {name}"), link.to_string()]);
    let rows: Vec<[String; 2]> = all.chain(links).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let section = Section::new(Heading::of("Measured on"), vec![table(rows)]);
    let mut sections = vec![section.from(Detail::Full).on_screen()];
    if detail == Detail::Page {
        sections.extend((0..results.targets.len()).map(|target| of_target(results, target)));
    }
    sections
}

fn table(rows: Vec<[String; 2]>) -> Block {
    let columns = vec![Column::new(Role::Name, "").at_most(NAME_MOST), Column::new(Role::Sentence, "")];
    let rows = rows.into_iter().map(|row| Row::of(row.map(Cell::new)));
    Block::Table(Table { columns, rows: rows.collect() })
}

fn of_target(results: &Results, target: usize) -> Section {
    let description = results.targets.get(target).and_then(|target| target.description.as_ref());
    let mut description = serde_json::to_value(description).unwrap_or(Json::Null);
    // The table of the storage already has these fields.
    if let Some(fields) = description.as_object_mut() {
        fields.remove("profile");
    }
    let rows = facts("", &description).into_iter().map(|(key, value)| [key, value]).collect();
    let name = format!(" {}: {}", letter(target), words::target(results, target));
    Section::part(Heading::with("Target", name), vec![table(rows)]).from(Detail::Page)
}

/// Returns the leaves of a JSON document with their paths.
fn facts(name: &str, json: &Json) -> Vec<(String, String)> {
    match json {
        Json::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| facts(format!("{name} {}", key.replace('_', " ")).trim(), value))
            .collect(),
        Json::Null => Vec::new(),
        Json::String(text) => vec![(name.into(), quantity(text))],
        other => vec![(name.into(), other.to_string())],
    }
}

/// Formats a size for people, if the text is a size.
fn quantity(text: &str) -> String {
    text.parse::<nilometer_model::Bytes>().map_or_else(|_| text.to_owned(), |bytes| bytes.to_string())
}
