//! Progress messages of a running campaign.

use nilometer_model::{Nanos, NetworkResults, Phase};
use nilometer_plan::{
    Measured,
    search::{Found, SearchBound},
};

use crate::supervise::SoFar;

/// A progress message of a running campaign.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A phase runs; sent about five times a second.
    Now(Now<'a>),
    /// A phase was measured.
    Measured {
        /// The number of cells and repeats done.
        done: usize,
        /// The number of all.
        of: usize,
        /// The expected time for the rest; `None` before enough was measured.
        left: Option<Nanos>,
        /// The key and the sample.
        measured: &'a Measured,
        /// The number of the trial in its search, counted from 1; `None` if this is no search.
        trial: Option<u32>,
    },
    /// A search begins or goes on.
    Searches {
        /// The target's number in the plan.
        target: usize,
        /// The recording's index among the plan's cells.
        cell: usize,
        /// A bound on the length of the search.
        bound: SearchBound,
    },
    /// A search has come to its end.
    Found {
        /// The target's number in the plan.
        target: usize,
        /// The recording's index among the plan's cells.
        cell: usize,
        /// The bracket that the search found.
        found: &'a Found,
    },
    /// A target is no longer used.
    LeftOut {
        /// The target's number in the plan.
        target: usize,
        /// The reason.
        why: &'a str,
    },
    /// A trial of the network between machines was made.
    Network {
        /// The name of the stage.
        stage: &'a str,
        /// All results of the stage, the latest last.
        results: &'a NetworkResults,
        /// The number of trials of the stage that are done.
        done: usize,
        /// The number of all its trials.
        of: usize,
    },
    /// An event worth a line.
    Event(&'a str),
}

/// The phase that runs at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// The targets: one, or all that are measured at once.
    pub targets: &'a [usize],
    /// The index among the plan's cells, which include recordings.
    pub cell: usize,
    /// The number of the repeat, from 0; those of the warm-up come first.
    pub repeat: u32,
    /// The phase of the cell.
    pub phase: Phase,
    /// The progress of the phase so far.
    pub so_far: SoFar,
    /// The number of cells and repeats done once this one is.
    pub done: usize,
    /// The number of all.
    pub of: usize,
    /// The expected time for this cell and the rest; `None` before enough was measured.
    pub left: Option<Nanos>,
}
