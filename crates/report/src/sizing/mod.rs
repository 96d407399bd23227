//! A sizing for people and for programs: the answer, the limit, and its basis.

mod basis;
mod json;
mod rooms;
#[cfg(test)]
mod tests;
mod text;

pub use json::sizing_json;
pub(crate) use rooms::rooms_document;
pub use rooms::{InstrumentRooms, rooms_json};
pub(crate) use text::sizing_document;

use nilometer_model::{Bytes, Nanos};
use nilometer_plan::sizing::{
    Demand, Limits, Sizing,
    simulation::{SimulationResult, SizingTrial},
};

/// A sizing with its demand and limits.
#[derive(Debug, Clone)]
pub struct Sized<'a> {
    /// The facility's title.
    pub title: &'a str,
    /// The incoming data.
    pub demand: &'a Demand,
    /// Capacities of one element.
    pub limits: &'a Limits,
    /// The elements needed.
    pub sizing: &'a Sizing,
    /// Caveats of the answer, a sentence each.
    pub remarks: &'a [String],
    /// The results of the simulation, if it ran.
    pub checked: Option<Checked>,
}

/// The results of the simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The method of the trial.
    pub trial: SizingTrial,
    /// The result with the sized numbers.
    pub found: SimulationResult,
    /// The result with one element of the limiting stage fewer, the headroom used up, and the worst phases.
    /// `None` if there is only one element, or if space is the limit.
    pub fewer: Option<SimulationResult>,
    /// The buffer over days, if it is needed: the number of days, the largest content, and the time at which it
    /// was full.
    pub days: Option<(u64, Bytes, Option<Nanos>)>,
}
