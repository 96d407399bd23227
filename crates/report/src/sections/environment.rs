//! The machine that measured, and on a page the facts found out about each target beforehand.

use nilometer_analysis::letter;
use nilometer_model::Bytes;
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
    let all = results.environment.iter().map(|(key, value)| shown_fact(key, value));
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

/// A fact about the machine as readers see it. Records have sizes as the kernel prints them, and names of paces
/// in the words of their version.
pub(crate) fn shown_fact(key: &str, value: &str) -> [String; 2] {
    let name = key.replace(" as fast as it is taken on ", " at full speed on ");
    let name = name.replace(" at a pace on ", " at its own pace on ");
    let kib = value.strip_suffix(" kB").and_then(|count| count.parse::<u64>().ok());
    let size = match key {
        "memory" | "swap" => kib.map(|count| Bytes(1024 * count)),
        "locked memory" => value.parse().ok().map(Bytes),
        _ => None,
    };
    [name, size.map_or_else(|| value.to_owned(), |size| size.to_string())]
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
        Json::Bool(is_true) => vec![(name.into(), if *is_true { "yes" } else { "no" }.into())],
        Json::Array(items) if items.iter().all(Json::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            (!texts.is_empty()).then(|| (name.into(), texts.join(", "))).into_iter().collect()
        }
        other => vec![(name.into(), other.to_string())],
    }
}

/// Formats a size for people, if the text is a size.
fn quantity(text: &str) -> String {
    text.parse::<Bytes>().map_or_else(|_| text.to_owned(), |bytes| bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_in_the_words_and_units_of_readers() {
        assert_eq!(shown_fact("memory", "24684084 kB"), ["memory", "25.3 GB"]);
        assert_eq!(shown_fact("locked memory", "8388608"), ["locked memory", "8 MiB"]);
        assert_eq!(shown_fact("locked memory", "unlimited")[1], "unlimited");
        let name = |pace: &str| shown_fact(&format!("layout of cam {pace} on /data"), "files")[0].clone();
        assert_eq!(name("as fast as it is taken"), "layout of cam at full speed on /data");
        assert_eq!(name("at a pace"), "layout of cam at its own pace on /data");
    }

    #[test]
    fn facts_of_a_target_are_no_json() {
        let json =
            serde_json::json!({"writable": true, "facts": [], "capabilities": ["read", "write"], "at": "/"});
        let expected = [("at", "/"), ("capabilities", "read, write"), ("writable", "yes")];
        assert_eq!(facts("", &json), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
