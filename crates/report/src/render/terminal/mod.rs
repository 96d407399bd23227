//! A document in a terminal.

mod page;
mod table;

pub(crate) use page::printable;
pub use page::{Palette, TextLayout};

use page::{BOLD, DIM, GREEN, Page, RED, YELLOW};

use crate::document::{Block, Document, Level, NamedFact, Section, Sentence, Tone};

/// Renders a document. No line is wider than the layout.
pub(crate) fn terminal_text(document: &Document, layout: TextLayout) -> String {
    let mut page = Page::new(layout);
    page.paragraph(BOLD, "", &document.title);
    page.paragraph(DIM, "", &document.origin);
    if !document.targets.is_empty() {
        page.line("", "");
    }
    for target in &document.targets {
        page.paragraph("", &format!("  {:<3}", target.letter), &target.line());
    }
    for section in &document.sections {
        page.section(section);
    }
    page.text()
}

const fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Soft => DIM,
        Tone::Good => GREEN,
        Tone::Doubtful => YELLOW,
        Tone::Bad => RED,
    }
}

impl Page {
    fn section(&mut self, section: &Section) {
        let heading = format!("{}{}", section.heading.label.to_uppercase(), section.heading.rest);
        let indent = match section.level {
            Level::Section => "",
            Level::Part => "  ",
        };
        if section.level == Level::Section {
            self.line("", "");
        }
        self.paragraph(BOLD, indent, &heading);
        for block in &section.blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(sentence) => self.sentence("  ", sentence),
            Block::List(sentences) => self.list(sentences),
            Block::Table(table) => self.table(table),
            Block::Fold(fold) => fold.blocks.iter().for_each(|block| self.block(block)),
            Block::Code(text) => text.lines().for_each(|line| self.paragraph("", "    ", line)),
            Block::Facts(facts) => self.facts(facts),
            // Drawings are for pages.
            Block::Charts(..) | Block::Key(_) | Block::Glance(_) | Block::Answer(_) | Block::Aside(_) => {}
        }
    }

    fn facts(&mut self, facts: &[NamedFact]) {
        for fact in facts {
            self.line(colour(fact.tone), &fact.to_string());
        }
    }

    fn sentence(&mut self, before: &str, sentence: &Sentence) {
        let lead = if sentence.lead.is_empty() { String::new() } else { format!("{}: ", sentence.lead) };
        self.paragraph(colour(sentence.tone), before, &format!("{lead}{}", sentence.text));
        let indent = format!("{}  - ", " ".repeat(before.chars().count()));
        for more in &sentence.more {
            self.sentence(&indent, more);
        }
    }

    /// Grave and doubtful sentences have marks of their own, which a reader sees without colours too.
    fn list(&mut self, sentences: &[Sentence]) {
        for sentence in sentences {
            let mark = match sentence.tone {
                Tone::Bad => "  !! ",
                Tone::Doubtful => "   ! ",
                _ => "  - ",
            };
            self.sentence(mark, sentence);
        }
    }
}
