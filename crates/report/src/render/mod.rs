//! A document in a format. A renderer knows no finding.

mod html;
mod markdown;
mod terminal;

pub(crate) use html::{STYLE, html_text};
pub(crate) use markdown::markdown_text;
pub use terminal::{Palette, TextLayout};
pub(crate) use terminal::{printable, terminal_text};
