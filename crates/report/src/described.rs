//! The descriptions of storage systems as a document: a section for each, with its facts and its features.

use nilometer_model::{DescriptionRow, TargetDescription};

use crate::document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Table};

/// The document: each storage with its facts, and a part for the features of its file system.
pub(crate) fn described_document(all: &[TargetDescription]) -> Document {
    let title = if all.len() == 1 { "The storage of a directory" } else { "The storage of directories" };
    let sections = all.iter().flat_map(described).collect();
    Document { title: title.into(), sections, ..Document::default() }
}

fn described(description: &TargetDescription) -> Vec<Section> {
    let facts = table("fact", "value", description.rows());
    // A label is in capital letters in a terminal, but a path is not.
    let heading = Heading::with("", description.address.to_string());
    let mut sections = vec![Section::new(heading, vec![Block::Table(facts)])];
    let features = description.feature_rows();
    if !features.is_empty() {
        let features = table("feature", "found", features);
        sections.push(Section::part(Heading::of("Features"), vec![Block::Table(features)]));
    }
    sections
}

fn table(name: &str, value: &str, rows: Vec<DescriptionRow>) -> Table {
    let columns = vec![Column::new(Role::Name, name), Column::new(Role::Sentence, value)];
    let row = |DescriptionRow { name, value }: DescriptionRow| Row::of([name, value].map(Cell::new));
    Table { columns, rows: rows.into_iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use nilometer_analysis::made_up;

    use super::*;
    use crate::{TextLayout, described_html, described_markdown, described_text};

    #[test]
    fn every_fact_is_in_every_form() {
        let named = |path: &str| TargetDescription {
            facts: vec![("servers".into(), "three <of> them".into())],
            ..made_up::described(path)
        };
        let all = [named("/a"), named("/b")];
        let (markdown, page) = (described_markdown(&all), described_html(&all));
        let text = described_text(&all[0], true, TextLayout::unbroken());
        let begin = "The storage of a directory\n\n/a\n  fact          value\n  path          /a\n  file system   xfs (";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains("\n  servers       three <of> them\n"), "{text}");
        let further = described_text(&all[1], false, TextLayout::plain());
        assert!(further.starts_with("\n/b\n"), "{further}");
        for row in all[1].rows() {
            assert!(further.contains(&row.name) && further.contains(&row.value), "{row:?}: {further}");
        }
        let escaped = |text: &str| text.replace('_', r"\_");
        for row in all[1].rows().iter().filter(|row| row.name != "servers") {
            assert!(
                markdown.contains(&format!("| {} | {} |", escaped(&row.name), escaped(&row.value))),
                "{row:?}: {markdown}"
            );
            assert!(page.contains(&row.name) && page.contains(&row.value), "{row:?}: {page}");
        }
        assert!(page.contains("three &lt;of&gt; them"), "{page}");
    }
}
