//! The repository itself: its style, its words, its book, its README's commands, and what is installed of it.

mod book;
mod circles;
mod density;
mod dependencies;
mod packages;
mod prose;
mod readme;
mod style;
mod words;
