//! The repository itself: its style, words, book, reference and README, and the files that it installs.

mod book;
mod circles;
mod density;
mod dependencies;
mod monitoring;
mod packages;
mod prose;
mod readme;
mod reference;
mod style;
mod words;
