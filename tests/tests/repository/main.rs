//! The repository itself: its style, its words, its book, its README's commands, and what is installed of it.
//! The repository itself: its style, its words, its reference and README, and the files that it installs.

mod book;
mod circles;
mod density;
mod dependencies;
mod packages;
mod prose;
mod readme;
mod reference;
mod style;
mod words;
