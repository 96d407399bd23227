//! Durability in time: a file is noted as durable when it is full, which may take hours where frames come slowly. So what is in
//! the file being filled is synced too, when a frame has waited for long, and a checkpoint in the journal says how far that
//! reaches.
//!
//! ```text
//! record     0    1    2    3    4    5    6
//!            head f0   f1   f2   |    f3   checkpoint 4
//!                                sync begins: the data of f0 to f2 are written, those of f3 may not be
//! ```

use std::mem::size_of;

use nilometer_model::Nanos;
use nilometer_recording::journal::Entry;
use nilometer_ring::{Frame, FrameCount};

use super::{FileStep, LaneFiles, RawLayout};

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

/// Frames whose records wait for the journal, at the most: behind a journal that stands still, frames wait in the ring.
const UNLOGGED_MAX: usize = 8192;
/// So many frames that are not durable are made durable at once, before their time: small ones come a million a second.
const UNDURABLE_MANY: usize = 1 << 17;
/// More are not taken: their storage syncs more slowly than they come.
const UNDURABLE_MAX: usize = 1 << 19;
/// Files in which frames wait to be durable: one that is synced, one that is full and one that is being filled.
const UNDURABLE_FILES: u64 = 3;

/// Bytes of the lists of frames on their way into the journal and to the device, at the most, in a lane that is laid out so. Lists
/// grow by doubling.
pub(super) fn lists_memory(layout: &RawLayout) -> u64 {
    let unlogged = UNLOGGED_MAX * (size_of::<Unlogged>() + size_of::<Entry>());
    let frames = layout.head.frames_per_file.saturating_mul(UNDURABLE_FILES).min(UNDURABLE_MAX as u64);
    2 * (unlogged as u64 + frames * size_of::<Undurable>() as u64)
}

impl LaneFiles {
    /// Whether the lists of frames that are written have room for one more.
    pub(super) fn has_room_in_lists(&self) -> bool {
        let indexing = self.index.as_ref().map_or(0, |index| index.waiting());
        self.unlogged.len() + indexing < UNLOGGED_MAX && self.undurable.len() < UNDURABLE_MAX
    }

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
        let is_time = now >= at || self.undurable.len() >= UNDURABLE_MANY;
        if !is_time || !self.program.is_done() || frames == 0 {
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
