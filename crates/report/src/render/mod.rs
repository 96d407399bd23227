//! A document in a format. A renderer knows no finding.

mod html;
mod markdown;
mod terminal;

#[cfg(test)]
pub(crate) use html::STYLE;
pub(crate) use html::{html_begin, html_end, html_sections, html_text};
pub(crate) use markdown::{markdown_sections, markdown_text};
pub use terminal::{Palette, TextLayout};
pub(crate) use terminal::{printable, terminal_text};
