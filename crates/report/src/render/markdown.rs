//! A document for an issue, a wiki or a text: GitHub's Markdown.

use std::fmt::{self, Write};

use crate::document::{Block, Cell, Document, Level, Role, Row, Section, Sentence, Table, Tone};

/// Headings are of the second level and below.
pub(crate) fn markdown_text(document: &Document) -> String {
    let mut text = String::new();
    write_document(&mut text, document).expect("writing to a string does not fail");
    text
}

/// Further sections of a document that has begun.
pub(crate) fn markdown_sections(sections: &[Section]) -> String {
    let mut text = String::new();
    let written = sections.iter().try_for_each(|section| write_section(&mut text, section));
    written.expect("writing to a string does not fail");
    text
}

fn write_document(text: &mut String, document: &Document) -> fmt::Result {
    writeln!(text, "# {}", plain(&document.title))?;
    if !document.origin.is_empty() {
        writeln!(text, "\n{}", plain(&document.origin))?;
    }
    if !document.targets.is_empty() {
        text.push('\n');
    }
    for target in &document.targets {
        writeln!(text, "- **{}** {}", target.letter, plain(&target.line()))?;
    }
    document.sections.iter().try_for_each(|section| write_section(text, section))
}

fn write_section(text: &mut String, section: &Section) -> fmt::Result {
    let level = match section.level {
        Level::Section => "##",
        Level::Part => "###",
    };
    writeln!(text, "\n{level} {}{}", plain(&section.heading.label), plain(&section.heading.rest))?;
    section.blocks.iter().try_for_each(|block| write_block(text, block))
}

fn write_block(text: &mut String, block: &Block) -> fmt::Result {
    match block {
        Block::Paragraph(sentence) if sentence.text.is_empty() => Ok(()),
        Block::Paragraph(sentence) => {
            writeln!(text, "\n{}", toned(sentence))?;
            if !sentence.more.is_empty() {
                text.push('\n');
            }
            sentence.more.iter().try_for_each(|more| write_item(text, 0, more))
        }
        Block::List(sentences) if sentences.is_empty() => Ok(()),
        Block::List(sentences) => {
            text.push('\n');
            sentences.iter().try_for_each(|sentence| write_item(text, 0, sentence))
        }
        Block::Table(table) => write_table(text, table),
        Block::Fold(fold) => fold.blocks.iter().try_for_each(|block| write_block(text, block)),
        Block::Code(code) => writeln!(text, "\n````text\n{code}\n````"),
        Block::Facts(facts) if facts.is_empty() => Ok(()),
        Block::Facts(facts) => write_table(text, &Table::of_facts(facts)),
        // Drawings are for pages.
        Block::Charts(..) | Block::Key(_) | Block::Glance(_) | Block::Answer(_) | Block::Aside(_) => Ok(()),
    }
}

/// Grave and doubtful sentences have a sign before them.
fn write_item(text: &mut String, depth: usize, sentence: &Sentence) -> fmt::Result {
    let sign = match sentence.tone {
        Tone::Bad => "**!!** ",
        Tone::Doubtful => "**!** ",
        _ => "",
    };
    writeln!(text, "{}- {sign}{}", "  ".repeat(depth), plain(&sentence.text))?;
    sentence.more.iter().try_for_each(|more| write_item(text, depth + 1, more))
}

fn toned(sentence: &Sentence) -> String {
    let Sentence { lead, text, tone, .. } = sentence;
    if !lead.is_empty() {
        return format!("**{}**: {}", plain(lead), plain(text));
    }
    match tone {
        Tone::Good | Tone::Bad => format!("**{}**", plain(text)),
        _ => plain(text),
    }
}

fn write_table(text: &mut String, table: &Table) -> fmt::Result {
    let headings: Vec<String> = table.columns.iter().map(|column| plain(&column.heading)).collect();
    let rules: Vec<&str> =
        table.columns.iter().map(|column| if column.role == Role::Figure { "--:" } else { "---" }).collect();
    writeln!(text, "\n| {} |\n|{}|", headings.join(" | "), rules.join("|"))?;
    table.rows.iter().try_for_each(|row| write_row(text, table, row))
}

/// Notes stand below the first figure that they are of.
fn write_row(text: &mut String, table: &Table, row: &Row) -> fmt::Result {
    let first = table.columns.iter().position(|column| column.role == Role::Figure);
    let notes: Vec<String> = row.notes.iter().map(|note| format!("**{}**", plain(&note.text))).collect();
    let cells = row.cells.iter().enumerate();
    let cells = cells.map(|(place, cell)| with_notes(cell, if first == Some(place) { &notes } else { &[] }));
    writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn with_notes(cell: &Cell, notes: &[String]) -> String {
    let lines = cell.lines.iter().map(|line| shown(line, cell.tone)).chain(notes.iter().cloned());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("<br>")
}

fn shown(line: &str, tone: Tone) -> String {
    let line = plain(line);
    if matches!(tone, Tone::Good | Tone::Bad) && !line.is_empty() { format!("**{line}**") } else { line }
}

/// Escapes text that has a meaning in Markdown or in embedded HTML.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '\n' | '\r' => plain.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => plain.extend(['\\', letter]),
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_become_markup() {
        assert_eq!(plain("a_b|<c> & `d`\n*"), "a\\_b\\|&lt;c> &amp; \\`d\\`  \\*".replace("  ", " "));
    }
}
