//! From samples to numbers, and from numbers to words. Pure: reads results, writes text.

#![forbid(unsafe_code)]

mod outcome;
pub mod report;

pub use outcome::{Outcome, outcomes};
