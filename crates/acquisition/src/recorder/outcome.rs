//! What a recording came to.

use nilometer_intake::{Traffic, series::SeriesTraffic};
use nilometer_model::{Histogram, Nanos, ReaderTotals};
use nilometer_ring::{Chronicle, RingCounters};
use nilometer_storage::{Errno, process::Usage};

use crate::WriterTotals;

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// What came from the network, if frames came from there.
    pub traffic: Option<Traffic>,
    /// What came of a series, if frames came as one.
    pub series: Option<SeriesTraffic>,
    /// Slots, loss.
    pub books: RingCounters,
    /// What the ring lived through.
    pub chronicle: Chronicle,
    /// Frames that were due.
    pub due: u64,
    /// A frame found no free slot, and the recording was to end then.
    pub stopped: bool,
    /// When the first frame was due, on the clock of the setup.
    pub begun: Nanos,
    /// From the first frame until the last lane was done.
    pub wall: Nanos,
    /// By lane; none for one that hung or did not start.
    pub lanes: Vec<Option<Lane>>,
    /// Processor time of this process while it recorded, the simulated instrument apart.
    pub usage: Usage,
    /// Processor time of the simulated instrument, or of what receives packets or reads the recording that is copied.
    pub source: Usage,
    /// From when frames were due until they were taken in: the recorder's own lateness.
    pub lateness: Histogram,
    /// What was read of the recording that is copied, and how late, if one is.
    pub reader: Option<(ReaderTotals, Histogram)>,
    /// The source reported: whoever hangs is a lane.
    pub fed: bool,
    /// How long the recorder's threads waited for a processor.
    pub run_delay: Nanos,
    /// Why lanes or the source have no result.
    pub faults: Vec<String>,
    /// Somebody did not report in time.
    pub hung: bool,
}

/// What a lane did.
#[derive(Debug)]
pub struct Lane {
    /// Frames.
    pub totals: WriterTotals,
    /// Bytes of frames as they were written: compressed, if the format is.
    pub written: u64,
    /// Processor time of its thread, and of those that encode frames for it.
    pub usage: Usage,
    /// How long it waited for a processor.
    pub run_delay: Nanos,
    /// When it was done.
    pub ended: Nanos,
}

impl Lane {
    /// How it ended.
    pub fn ending(&self) -> Ending {
        match self.totals {
            WriterTotals { fault: Some(errno), .. } => Ending::Failed(errno),
            WriterTotals { full: true, .. } => Ending::Full,
            _ => Ending::InOrder,
        }
    }
}

/// How a lane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the recording.
    InOrder,
    /// Before, in order, because its storage was full up to the reserve.
    Full,
    /// Before, because its storage failed.
    Failed(Errno),
    /// It did not report in time.
    Hung,
}

impl Outcome {
    /// How each lane ended, and when.
    pub fn endings(&self) -> impl Iterator<Item = (Ending, Option<Nanos>)> {
        self.lanes.iter().map(|lane| match lane {
            Some(lane) => (lane.ending(), Some(lane.ended.since(self.begun))),
            None => (Ending::Hung, None),
        })
    }

    /// Frames that are acknowledged, also by lanes that hung after it.
    pub fn stored(&self) -> u64 {
        self.chronicle.work.bins().iter().map(|bin| bin.operations).sum()
    }

    /// Frames that are stored as they came, and came damaged: their compressed bytes can't be unpacked.
    pub fn damaged(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.totals.damaged).sum()
    }

    /// Bytes of frames as they were written by lanes that did not hang: compressed, if the format is.
    pub fn written(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.written).sum()
    }

    /// Frames that were not acknowledged when a lane hung: nobody knows.
    pub fn unknown(&self) -> u64 {
        self.due.saturating_sub(self.stored() + self.books.lost())
    }
}
