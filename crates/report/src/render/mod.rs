//! A document in a format. A renderer knows no finding.

mod html;
mod markdown;
mod terminal;

pub(crate) use html::{STYLE, charts, html_text, write_foot, write_head};
pub(crate) use markdown::markdown_text;
pub(crate) use terminal::{BOLD, DIM, Page, RED, YELLOW, clipped, printable, terminal_text};
pub use terminal::{Palette, TextLayout};
