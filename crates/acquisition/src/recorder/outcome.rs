//! The outcome of a recording.

use nilometer_intake::{Traffic, series::SeriesTraffic};
use nilometer_model::{Histogram, Nanos, ReaderTotals};
use nilometer_ring::{Chronicle, RingCounters};
use nilometer_storage::{Errno, process::Usage};

use crate::WriterTotals;

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// Packets received from the network, if frames came from there.
    pub traffic: Option<Traffic>,
    /// Messages received of a series, if frames came as one.
    pub series: Option<SeriesTraffic>,
    /// Counters of slots and losses.
    pub books: RingCounters,
    /// Stalls, halts and rates that the ring recorded.
    pub chronicle: Chronicle,
    /// Frames that were due.
    pub due: u64,
    /// The source stopped because a frame found no free slot.
    pub stopped: bool,
    /// Due time of the first frame, on the clock of the setup.
    pub begun: Nanos,
    /// Time from the first frame until the last lane was done.
    pub wall: Nanos,
    /// Results by lane. `None` for a lane that hung or did not start.
    pub lanes: Vec<Option<Lane>>,
    /// Processor time of this process while it recorded, without the simulated instrument.
    pub usage: Usage,
    /// Processor time of the simulated instrument, or of the thread that receives packets or reads the copied
    /// recording.
    pub source: Usage,
    /// Time between the due time of frames and their intake: the recorder's own lateness.
    pub lateness: Histogram,
    /// Totals and latencies of the reads, if a recording is copied.
    pub reader: Option<(ReaderTotals, Histogram)>,
    /// The source reported; a thread that hangs is therefore a lane.
    pub fed: bool,
    /// Time that the recorder's threads waited for a processor.
    pub run_delay: Nanos,
    /// Reasons why lanes or the source have no result.
    pub faults: Vec<String>,
    /// A thread did not report in time.
    pub hung: bool,
}

/// The result of a lane.
#[derive(Debug)]
pub struct Lane {
    /// Counts of frames.
    pub totals: WriterTotals,
    /// Bytes of frames as written: compressed, if the format is.
    pub written: u64,
    /// Processor time of its thread, and of those that encode frames for it.
    pub usage: Usage,
    /// Time that its thread waited for a processor.
    pub run_delay: Nanos,
    /// Time at which the lane was done.
    pub ended: Nanos,
}

impl Lane {
    /// Returns how the lane ended.
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
    /// At the end of the recording.
    InOrder,
    /// Early but in order, because its storage was full up to the reserve.
    Full,
    /// Early, because its storage failed.
    Failed(Errno),
    /// The lane did not report in time.
    Hung,
}

impl Outcome {
    /// Returns how each lane ended, and when.
    pub fn endings(&self) -> impl Iterator<Item = (Ending, Option<Nanos>)> {
        self.lanes.iter().map(|lane| match lane {
            Some(lane) => (lane.ending(), Some(lane.ended.since(self.begun))),
            None => (Ending::Hung, None),
        })
    }

    /// Frames acknowledged, also by lanes that hung later.
    pub fn stored(&self) -> u64 {
        self.chronicle.work.bins().iter().map(|bin| bin.operations).sum()
    }

    /// Frames stored as they arrived although damaged: their compressed bytes can't be unpacked, or differ from the
    /// sender's hash.
    pub fn damaged(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.totals.damaged).sum()
    }

    /// Frames among the damaged ones whose bytes differ from the sender's hash.
    pub fn altered(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.totals.altered).sum()
    }

    /// Bytes of frames as written by lanes that did not hang: compressed, if the format is.
    pub fn written(&self) -> u64 {
        self.lanes.iter().flatten().map(|lane| lane.written).sum()
    }

    /// Frames of unknown fate: they were not acknowledged when a lane hung.
    pub fn unknown(&self) -> u64 {
        self.due.saturating_sub(self.stored() + self.books.lost())
    }
}
