//! A document says the same in every format.

use super::{studied, zoo};
use crate::{
    document::{Block, Cell, Detail, Document, Heading, Level, Sentence},
    order::{Answers, document},
    render::{Palette, TextLayout, html_text, markdown_text, terminal_text},
};

/// Letters and digits only: renderers break lines, escape signs and align columns.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn sentences(blocks: &[Block]) -> Vec<&Sentence> {
    let all = blocks.iter().flat_map(sentences_of);
    all.flat_map(|sentence| std::iter::once(sentence).chain(&sentence.more)).collect()
}

fn sentences_of(block: &Block) -> &[Sentence] {
    match block {
        Block::Paragraph(sentence) => std::slice::from_ref(sentence),
        Block::List(sentences) => sentences,
        _ => &[],
    }
}

fn cells(blocks: &[Block]) -> impl Iterator<Item = &Cell> {
    let rows = blocks.iter().flat_map(|block| match block {
        Block::Table(table) => table.rows.as_slice(),
        _ => &[],
    });
    rows.flat_map(|row| &row.cells)
}

fn assert_all_in(name: &str, document: &Document, text: &str) {
    let text = letters(text);
    for section in &document.sections {
        let heading = format!("{}{}", section.heading.label, section.heading.rest);
        let sentences = sentences(&section.blocks).into_iter().map(|sentence| &sentence.text);
        for part in sentences.chain([&heading]) {
            assert!(text.contains(&letters(part)), "{name}: {part} is missing");
        }
    }
}

fn document_of_page(study: &nilometer_analysis::Study<'_>) -> Document {
    document(study, Answers::First, Detail::Page)
}

/// Text of a page without its marks.
fn unescaped(page: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    escapes.into_iter().fold(page.to_owned(), |text, (escape, sign)| text.replace(escape, sign))
}

#[test]
fn every_section_is_in_every_format() {
    for (name, results) in zoo() {
        let study = studied(&results);
        for answers in [Answers::First, Answers::Last] {
            let document = document(&study, answers, Detail::Full);
            let markdown = markdown_text(&document).replace("&lt;", "<").replace("&amp;", "&");
            assert_all_in(name, &document, &markdown);
            assert_all_in(name, &document, &terminal_text(&document, TextLayout::new(Palette::Plain, 100)));
            let page = document_of_page(&study);
            assert_all_in(name, &page, &unescaped(&html_text(&page)));
            let found = letters(&markdown);
            for section in &document.sections {
                let lines = cells(&section.blocks).flat_map(|cell| &cell.lines);
                lines.for_each(|line| assert!(found.contains(&letters(line)), "{name}: {line} is missing"));
            }
        }
    }
}

#[test]
fn a_short_document_has_no_more_than_the_full_one() {
    for (name, results) in zoo() {
        let study = studied(&results);
        let of = |detail| document(&study, Answers::Last, detail).sections;
        let headings = |detail| of(detail).into_iter().map(|section| section.heading).collect::<Vec<_>>();
        let full = headings(Detail::Full);
        // All stages share a table in the short one.
        let is_own = |heading: &Heading| heading.label == "Figures";
        assert!(
            headings(Detail::Short).iter().all(|heading| is_own(heading) || full.contains(heading)),
            "{name}"
        );
        assert!(of(Detail::Full).first().is_none_or(|section| section.level == Level::Section), "{name}");
    }
}
