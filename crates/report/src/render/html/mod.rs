//! Renders a document as one HTML file that opens offline and without scripts, on a phone and on paper.

mod block;
mod table;

use std::fmt::{self, Write};

use crate::{
    chart::{Escaped, sign},
    document::{Anchor, Document, Level, Medium, Section, TargetLine, Tone},
};

pub(crate) const STYLE: &str = include_str!("page.css");

/// The page.
pub(crate) fn html_text(document: &Document) -> String {
    let mut page = String::new();
    write_page(&mut page, document).expect("writing to a string does not fail");
    page
}

/// The end of a page on paper, if only the screen shows some of its sections.
const SHORTENED: &str =
    " Each stage, all numbers and the measured systems are on the web page, not on this paper.";

fn write_page(page: &mut String, document: &Document) -> fmt::Result {
    write_begin(page, document)?;
    // The answers stand above the list of contents.
    let first = document.sections.iter().take_while(|section| section.heading.label.is_empty()).count();
    write_sections(page, &document.sections[..first])?;
    write_contents(page, document)?;
    write_sections(page, &document.sections[first..])?;
    let is_screen_only = |section: &Section| section.medium == Medium::Screen;
    let is_shortened = document.sections.iter().any(is_screen_only);
    write_foot(page, if is_shortened { SHORTENED } else { "" })
}

/// The page up to its first section. The document needs no sections.
pub(crate) fn html_begin(document: &Document) -> String {
    let mut page = String::new();
    write_begin(&mut page, document).expect("writing to a string does not fail");
    page
}

/// Further sections of a page that has begun.
pub(crate) fn html_sections(sections: &[Section]) -> String {
    let mut page = String::new();
    write_sections(&mut page, sections).expect("writing to a string does not fail");
    page
}

/// The page behind its last section.
pub(crate) fn html_end() -> String {
    let mut page = String::new();
    write_foot(&mut page, "").expect("writing to a string does not fail");
    page
}

fn write_begin(page: &mut String, document: &Document) -> fmt::Result {
    write_head(page, &document.title)?;
    page.push_str("<a class=\"skip\" href=\"#main\">Skip to the answer</a>");
    write_header(page, document)?;
    page.push_str("<main id=\"main\" tabindex=\"-1\">");
    Ok(())
}

/// Everything before the page's own text.
fn write_head(page: &mut String, title: &str) -> fmt::Result {
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"generator\" content=\"Nilometer\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{} – Nilometer</title><style>{STYLE}</style></head><body>",
        Escaped(title)
    )
}

/// Writes the end of the page, with the notes that only paper needs.
fn write_foot(page: &mut String, on_paper: &str) -> fmt::Result {
    writeln!(
        page,
        "</main><footer><p>Written by Nilometer {}. This page holds everything it shows and opens offline.\
         <span class=\"paper\">{on_paper}</span></p></footer></body></html>",
        Escaped(env!("CARGO_PKG_VERSION"))
    )
}

fn write_header(page: &mut String, document: &Document) -> fmt::Result {
    write!(
        page,
        "<header><p class=\"brand\">Nilometer</p><h1>{}</h1><p class=\"soft\">{}</p><ul class=\"targets\">",
        Escaped(&document.title),
        Escaped(&document.origin)
    )?;
    for (index, TargetLine { letter, text, left_out }) in document.targets.iter().enumerate() {
        write!(page, "<li class=\"s{}\">{}<b>{letter}</b> <span>{}", index % 8, sign(index), Escaped(text))?;
        if !left_out.is_empty() {
            write!(page, " <span class=\"left-out\">left out: {}</span>", Escaped(left_out))?;
        }
        page.push_str("</span></li>");
    }
    page.push_str("</ul></header>");
    Ok(())
}

/// Links to the sections.
fn write_contents(page: &mut String, document: &Document) -> fmt::Result {
    let anchors = document.sections.iter().filter_map(|section| section.anchor.as_ref());
    let named: Vec<&Anchor> = anchors.filter(|anchor| !anchor.contents.is_empty()).collect();
    if named.is_empty() {
        return Ok(());
    }
    page.push_str("<nav aria-label=\"Sections\">");
    for Anchor { id, contents } in named {
        write!(page, "<a href=\"#{id}\">{}</a>", Escaped(contents))?;
    }
    page.push_str("</nav>");
    Ok(())
}

/// Parts stand in the card of the section before them.
fn write_sections(page: &mut String, sections: &[Section]) -> fmt::Result {
    for group in sections.chunk_by(|_, next| next.level == Level::Part) {
        write_card(page, &group[0])?;
        group[1..].iter().try_for_each(|part| write_part(page, part))?;
        page.push_str("</section>");
    }
    Ok(())
}

fn write_part(page: &mut String, part: &Section) -> fmt::Result {
    let is_screen = part.medium == Medium::Screen;
    page.push_str(if is_screen { "<div class=\"screen\">" } else { "" });
    let heading = heading_text(part);
    write!(page, "<h3>{}</h3>", Escaped(&heading))?;
    part.blocks.iter().try_for_each(|block| block::write(page, block, &heading))?;
    page.push_str(if is_screen { "</div>" } else { "" });
    Ok(())
}

/// Writes a section from its heading to the end of its own blocks.
fn write_card(page: &mut String, section: &Section) -> fmt::Result {
    let mut classes = Vec::new();
    let heading = heading_text(section);
    classes.extend((!heading.is_empty()).then_some("card"));
    classes.extend((section.medium == Medium::Screen).then_some("screen"));
    page.push_str("<section");
    if !classes.is_empty() {
        write!(page, " class=\"{}\"", classes.join(" "))?;
    }
    if let Some(Anchor { id, .. }) = &section.anchor {
        write!(page, " id=\"{id}\"")?;
    }
    page.push('>');
    if !heading.is_empty() {
        write!(page, "<h2>{}</h2>", Escaped(&heading))?;
    }
    section.blocks.iter().try_for_each(|block| block::write(page, block, &heading))
}

fn heading_text(section: &Section) -> String {
    format!("{}{}", section.heading.label, section.heading.rest)
}

/// The attribute with the text under the pointer. Writes nothing for an empty text.
struct Title<'a>(&'a str);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " title=\"{}\"", Escaped(self.0)) }
    }
}

/// Returns the class that colours a text; empty for plain text.
const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Soft => "soft",
        Tone::Good => "yes",
        Tone::Doubtful => "maybe",
        Tone::Bad => "no",
    }
}

/// The sign that says the same without colours.
const fn sign_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "✓ ",
        Tone::Doubtful => "? ",
        Tone::Bad => "✗ ",
        Tone::Plain | Tone::Soft => "",
    }
}
