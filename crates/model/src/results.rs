//! What a campaign gave, as the record keeps it and the analysis reads it.

use crate::{Bytes, Nanos, Sample, plan::Phase};

/// A campaign with all its samples so far.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// The plan's title.
    pub title: String,
    /// The targets, in the order of the command line.
    pub targets: Vec<TargetEntry>,
    /// The cells, in the order of the plan.
    pub cells: Vec<CellEntry>,
    /// What was measured, in the order it was.
    pub samples: Vec<Measured>,
    /// Where and with what it was measured: key and value.
    pub environment: Vec<(String, String)>,
}

/// A target of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetEntry {
    /// The directory under test.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// Its description as JSON.
    pub description: String,
    /// Why it was left out from some point on, if it was.
    pub left_out: Option<String>,
}

/// A cell of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellEntry {
    /// The stage in the plan.
    pub stage: String,
    /// The parameters in words.
    pub name: String,
    /// The resolved parameters as JSON.
    pub parameters: String,
}

/// Where a sample belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// Counted from 0.
    pub repeat: u32,
    /// The part of the cell.
    pub phase: Phase,
}

/// A sample and where it belongs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Where it belongs.
    pub key: Key,
    /// What was measured.
    pub sample: Sample,
}

/// What the recorder did with an instrument's frames in an ingest phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ingest {
    /// The instrument's name in the catalogue.
    pub instrument: String,
    /// Frames came when due; otherwise as fast as the recorder took them, which finds its limit.
    pub paced: bool,
    /// Bytes of a frame.
    pub frame_size: Bytes,
    /// The time from one frame to the next.
    pub period: Nanos,
    /// How long frames came.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames acknowledged by the storage.
    pub stored: u64,
    /// Frames that found no free slot, or whose write failed everywhere.
    pub lost: u64,
    /// Slots of the ring.
    pub slots: u64,
    /// The most slots that were in use at once.
    pub slots_high: u64,
    /// The longest time from due until the frame's slot was free again.
    pub longest_stall: Nanos,
}
