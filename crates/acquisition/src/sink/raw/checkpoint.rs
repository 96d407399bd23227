//! Durability in time: a file is noted as durable when it is full, which may take hours where frames come slowly. So what is in
//! the file being filled is synced too, when a frame has waited for long, and a checkpoint in the journal says how far that
//! reaches.
//!
//! ```text
//! record     0    1    2    3    4    5    6
//!            head f0   f1   f2   |    f3   checkpoint 4
//!                                sync begins: the data of f0 to f2 are written, those of f3 may not be
//! ```

use nilometer_model::Nanos;

use super::{FileStep, RawFiles};
use crate::{Frame, sink::FrameCount};
use nilometer_recording::journal::Entry;

/// A frame that is written, and its record is not.
#[derive(Debug)]
pub(super) struct Unlogged {
    pub(super) file: u64,
    /// Where it ends in the file, with what was written behind it.
    pub(super) end: u64,
    /// Which of the journal's records is its.
    pub(super) record: u64,
    pub(super) frame: Frame,
}

/// A frame that is acknowledged and not durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undurable {
    pub(super) file: u64,
    pub(super) record: u64,
    pub(super) frame: FrameCount,
}

impl RawFiles {
    /// When the next checkpoint is to be made, if nothing else is being done.
    pub(super) fn next_checkpoint(&self) -> Option<Nanos> {
        self.checkpoint.filter(|_| self.program.is_done() && self.failed.is_none())
    }

    /// What is acknowledged is made durable after a while, also where the file that it is in takes long to be full. Nothing
    /// else is to be done then: all files before that are synced.
    pub(super) fn make_checkpoint(&mut self, now: Nanos) {
        if self.layout.whole_files {
            return self.put_in_time(now);
        }
        if self.undurable.is_empty() || self.finishing {
            self.checkpoint = None;
            return;
        }
        let at = *self.checkpoint.get_or_insert(now + self.layout.checkpoint);
        let (file, frames) = self.files.last();
        if now < at || !self.program.is_done() || frames == 0 {
            return;
        }
        self.checkpoint = None;
        // The data of every frame that has a record are written.
        let records = self.log.added();
        let many = self.placement.is_many_files();
        self.program.add([FileStep::SyncPart(file)]);
        self.program.add(many.then_some(FileStep::SyncNames));
        self.program.add([FileStep::Note(Entry::Checkpoint { records }), FileStep::SyncJournal]);
    }
}
