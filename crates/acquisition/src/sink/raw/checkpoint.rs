//! Durability in time: a file is noted as durable when it is full, which may take hours if frames arrive
//! slowly. If a frame has waited for long, the lane therefore also syncs the file being filled. A checkpoint in
//! the journal states the last record that this covers.
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

/// A written frame whose record is not yet in the journal.
#[derive(Debug)]
pub(super) struct Unlogged {
    pub(super) file: u64,
    /// End of the frame in the file, including padding written behind it.
    pub(super) end: u64,
    /// Number of its record in the journal.
    pub(super) record: u64,
    pub(super) frame: Frame,
}

/// An acknowledged frame that is not yet durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undurable {
    pub(super) file: u64,
    pub(super) record: u64,
    pub(super) frame: FrameCount,
}

/// Most frames whose records wait for the journal. Behind a journal that stands still, frames wait in the ring.
const UNLOGGED_MAX: usize = 8192;
/// If this many frames are not durable, the lane makes them durable early: a million small frames may arrive in
/// a second.
const UNDURABLE_MANY: usize = 1 << 17;
/// Most frames that may wait to be durable; beyond it the lane takes no more, because its storage syncs more
/// slowly than they arrive.
const UNDURABLE_MAX: usize = 1 << 19;
/// Files in which frames wait to be durable: one being synced, one full, and one being filled.
const UNDURABLE_FILES: u64 = 3;

/// Most bytes of a lane's lists of frames on their way into the journal and to the device. Lists grow by
/// doubling.
pub(super) fn lists_memory(layout: &RawLayout) -> u64 {
    let unlogged = UNLOGGED_MAX * (size_of::<Unlogged>() + size_of::<Entry>());
    let frames = layout.head.frames_per_file.saturating_mul(UNDURABLE_FILES).min(UNDURABLE_MAX as u64);
    2 * (unlogged as u64 + frames * size_of::<Undurable>() as u64)
}

impl LaneFiles {
    /// Returns true if the lists of written frames have room for one more.
    pub(super) fn has_room_in_lists(&self) -> bool {
        let indexing = self.index.as_ref().map_or(0, |index| index.waiting());
        self.unlogged.len() + indexing < UNLOGGED_MAX && self.undurable.len() < UNDURABLE_MAX
    }

    /// Time of the next checkpoint, if the lane has nothing else to do.
    pub(super) fn next_checkpoint(&self) -> Option<Nanos> {
        self.checkpoint.filter(|_| self.program.is_done() && self.failed.is_none())
    }

    /// Makes acknowledged frames durable after a while, even if their file takes long to fill. It waits until
    /// all other steps are done: then all files before are synced.
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
