//! A document in a format. A renderer knows no finding.

mod markdown;
mod terminal;

pub(crate) use markdown::markdown_text;
pub(crate) use terminal::{BOLD, DIM, Page, RED, YELLOW, clipped, printable, terminal_text};
pub use terminal::{Palette, TextLayout};
