//! What a campaign tells while it runs.

use nilometer_model::{Nanos, NetworkResults, Phase};
use nilometer_plan::{
    Measured,
    search::{Found, SearchBound},
};

use crate::supervise::SoFar;

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A phase runs, told about five times a second.
    Now(Now<'a>),
    /// A phase was measured.
    Measured {
        /// How many cells and repeats are done.
        done: usize,
        /// Of how many.
        of: usize,
        /// How long the rest will take, as far as that is known.
        left: Option<Nanos>,
        /// What was measured.
        measured: &'a Measured,
        /// Which trial of a search it was, counted from 1, if it was one.
        trial: Option<u32>,
    },
    /// A search begins, or goes on.
    Searches {
        /// Where.
        target: usize,
        /// Which recording, behind the cells.
        cell: usize,
        /// How much it may take.
        bound: SearchBound,
    },
    /// A search has come to its end.
    Found {
        /// Where.
        target: usize,
        /// Which recording, behind the cells.
        cell: usize,
        /// Its bracket.
        found: &'a Found,
    },
    /// A target is no longer used.
    LeftOut {
        /// Which.
        target: usize,
        /// Why.
        why: &'a str,
    },
    /// Something of the network between machines was measured.
    Network {
        /// In which stage.
        stage: &'a str,
        /// All that was measured there, the last one last.
        results: &'a NetworkResults,
        /// Trials of the stage that are done, and of how many.
        done: usize,
        /// See `done`.
        of: usize,
    },
    /// Something happened that is worth a line.
    Event(&'a str),
}

/// What runs at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// Where: one target, or all that are measured at once.
    pub targets: &'a [usize],
    /// Which cell, or behind the cells which recording.
    pub cell: usize,
    /// Which repeat of it, from 0; those of the warm-up come first.
    pub repeat: u32,
    /// Which part of it.
    pub phase: Phase,
    /// What it did so far.
    pub so_far: SoFar,
    /// How many cells and repeats are done when it is.
    pub done: usize,
    /// Of how many.
    pub of: usize,
    /// How long this cell and the rest will take, as far as that is known.
    pub left: Option<Nanos>,
}
