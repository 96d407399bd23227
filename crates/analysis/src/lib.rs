//! From samples to numbers, and from numbers to words. Pure: reads results, writes text.

#![forbid(unsafe_code)]

mod outcome;
pub mod report;
mod verdict;

pub use outcome::{Outcome, outcomes};
pub use verdict::{Finding, Trial, Verdict, verdicts};
