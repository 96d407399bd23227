//! The repository itself: its style, its words, its README's commands, and what is installed of it.

mod density;
mod dependencies;
mod packages;
mod readme;
mod style;
mod words;
