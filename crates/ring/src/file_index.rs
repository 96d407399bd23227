//! Files that have an index of their frames inside: what a lane asks of whoever keeps the index.

use std::fmt::Debug;

use nilometer_model::Nanos;
use nilometer_recording::journal::DatasetPlace;
use nilometer_storage::{Buffer, Errno, Slot};

use crate::{Frame, MemoryAccount};

/// Where a frame begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOffset {
    /// Which file of the lane, or part of its only one.
    pub file: u64,
    /// In the file that is there, in bytes.
    pub offset: u64,
}

/// A frame that is in its file.
#[derive(Debug)]
pub struct WrittenFrame {
    /// Where it begins.
    pub begin: FileOffset,
    /// The frame, which still has its slot.
    pub frame: Frame,
    /// Bytes that were written.
    pub length: u32,
    /// Where it stands, if its file has several datasets.
    pub place: Option<DatasetPlace>,
}

/// Space that is to be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexReservation {
    /// For which file.
    pub file: u64,
    /// The file has so many bytes then.
    pub upto: u64,
    /// More than it has now.
    pub more: u64,
}

/// Keeps the indices of a lane's open files. It does no I/O: the lane writes frames where [`allocate`](FileIndex::allocate) gives
/// them room, and the pieces of an index that [`write`](FileIndex::write) hands out. Files are named by number, or by the part
/// of an only file.
pub trait FileIndex: Debug + Send {
    /// Counts the memory of the indices here from now on.
    fn account(&mut self, account: &MemoryAccount);
    /// Counts it as it is now.
    fn count_memory(&mut self);
    /// The slot of a file through the cache.
    fn slot(&self, file: u64) -> Slot;

    /// A file was made: what it begins with is to be written.
    ///
    /// # Errors
    /// The index can't be made.
    fn begin(&mut self, file: u64) -> Result<(), Errno>;
    /// Room for the frame of this number, of so many bytes; none in a file that is complete.
    fn allocate(&mut self, file: u64, number: u64, bytes: u32) -> Option<u64>;
    /// A frame is written.
    fn land(&mut self, written: WrittenFrame);
    /// Frames that are written and wait for the index.
    fn waiting(&self) -> usize;

    /// Frames wait until it is known where they stand in their file.
    fn has_places(&self) -> bool;
    /// The files of those frames whose place is known now. Where the recording is over, nothing more comes to be known.
    fn place(&mut self, now: Nanos, over: bool) -> Vec<u64>;
    /// When it is to be looked whether it is known where frames stand.
    fn look_at(&self) -> Option<Nanos>;

    /// Files with frames that their indices do not have.
    fn behind(&self) -> Vec<u64>;
    /// Puts what is written of a file into its index.
    ///
    /// # Errors
    /// The index does not take it.
    fn flush(&mut self, file: u64) -> Result<(), Errno>;
    /// The next piece of a file's index, if there is one: where it is to be written, and how many of the buffer's bytes.
    fn write(&mut self, file: u64, buffer: &mut Buffer) -> Option<(u64, u32)>;
    /// Bytes from this offset on that were not written through this slot; whether a file has them.
    fn put_back(&mut self, slot: Slot, offset: u64, bytes: Vec<u8>) -> bool;
    /// The file of which a piece is written in part, if there is one; it is asked for once.
    fn take_torn(&mut self) -> Option<u64>;
    /// What was written of a file's index is all of it: these frames can be found.
    fn indexed(&mut self, file: u64) -> Vec<WrittenFrame>;
    /// What was in a file when it was synced is durable now.
    fn synced(&mut self, file: u64, now: Nanos);

    /// Up to where the space of a file is to be reserved now, if some is to be.
    fn next_reservation(&mut self) -> Option<IndexReservation>;
    /// Frames of the whole recording, once that is over.
    fn over(&mut self, due: Option<u64>);
    /// No frame comes into a file any more: what it ends with is to be written too.
    ///
    /// # Errors
    /// The index can't be completed.
    fn seal(&mut self, file: u64) -> Result<(), Errno>;
    /// Bytes of a file that is sealed.
    fn size(&mut self, file: u64) -> Option<u64>;
    /// All its places are taken, or it has no number of places.
    fn is_full(&self, file: u64) -> bool;
    /// It is closed.
    fn closed(&mut self, file: u64);
    /// Nothing waits to be found.
    fn is_quiet(&self) -> bool;
    /// After a failure: frames that are not acknowledged.
    fn abandon(&mut self) -> Vec<Frame>;
}
