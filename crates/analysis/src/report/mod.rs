//! Numbers and words for people.

mod terminal;

pub use terminal::terminal;
