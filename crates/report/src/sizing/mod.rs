//! A sizing for people and for programs: the answer, what limits, and all that it rests on.

mod basis;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub use json::sizing_json;
pub use text::sizing_text;

use nilometer_model::{Bytes, Nanos};
use nilometer_plan::sizing::{
    Demand, Limits, Sizing,
    simulation::{SimulationResult, SizingTrial},
};

/// A sizing and what it is for.
#[derive(Debug, Clone)]
pub struct Sized<'a> {
    /// The facility's title.
    pub title: &'a str,
    /// What comes.
    pub demand: &'a Demand,
    /// What one element gives.
    pub limits: &'a Limits,
    /// What is needed.
    pub sizing: &'a Sizing,
    /// What must be known before the answer is used, a sentence each.
    pub remarks: &'a [String],
    /// What the simulation found, if it ran.
    pub checked: Option<Checked>,
}

/// What the simulation found.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// How it was tried.
    pub trial: SizingTrial,
    /// With the sized numbers.
    pub found: SimulationResult,
    /// With one element of the limiting stage fewer and the headroom used up, in the worst phases; none if there is only
    /// one, or if space is what limits.
    pub fewer: Option<SimulationResult>,
    /// Of the buffer over days, if there is a need for one: how many days, the most that lay there, and when it was full.
    pub days: Option<(u64, Bytes, Option<Nanos>)>,
}
