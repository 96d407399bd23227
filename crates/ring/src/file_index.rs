//! Files with an index of their frames inside: the interface between a lane and the keeper of the index.

use std::fmt::Debug;

use nilometer_model::Nanos;
use nilometer_recording::journal::DatasetPlace;
use nilometer_storage::{Buffer, Errno, Slot};

use crate::{Frame, MemoryAccount};

/// The beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOffset {
    /// The number of the lane's file, or of a part of its only one.
    pub file: u64,
    /// The offset in the existing file, in bytes.
    pub offset: u64,
}

/// A frame that is written to its file.
#[derive(Debug)]
pub struct WrittenFrame {
    /// Its beginning.
    pub begin: FileOffset,
    /// The frame, which still has its slot.
    pub frame: Frame,
    /// The bytes written.
    pub length: u32,
    /// Its place, if the file has several datasets.
    pub place: Option<DatasetPlace>,
}

/// Space that must be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexReservation {
    /// The number of the file.
    pub file: u64,
    /// The bytes of the file afterwards.
    pub upto: u64,
    /// The bytes in addition to its present size.
    pub more: u64,
}

/// Keeps the indices of a lane's open files. It does no I/O. The lane writes frames at the offsets that
/// [`allocate`](FileIndex::allocate) returns, and the pieces of an index that [`write`](FileIndex::write)
/// returns. A file has a number, or is a part of an only file.
pub trait FileIndex: Debug + Send {
    /// Counts the memory of the indices in `account` from now on.
    fn account(&mut self, account: &MemoryAccount);
    /// Updates the count of memory.
    fn count_memory(&mut self);
    /// Returns the slot through which a file is written with the page cache.
    fn slot(&self, file: u64) -> Slot;

    /// Begins a file that was just made: its first bytes must be written. `position` is the number in its name,
    /// if it has one.
    ///
    /// # Errors
    /// The index can't be made.
    fn begin(&mut self, file: u64, position: Option<u32>) -> Result<(), Errno>;
    /// Returns room for `bytes` bytes of the frame with this number; `None` if the file is complete or
    /// failed.
    fn allocate(&mut self, file: u64, number: u64, bytes: u32) -> Option<u64>;
    /// Notes that a frame is written.
    fn land(&mut self, written: WrittenFrame);
    /// Returns the number of written frames that wait for the index.
    fn waiting(&self) -> usize;

    /// Returns true if frames wait until their place in the file is determined.
    fn has_places(&self) -> bool;
    /// Returns the files of frames whose place is now determined. If the recording is over, no further place
    /// will be.
    fn place(&mut self, now: Nanos, over: bool) -> Vec<u64>;
    /// Returns the time at which to check for determined places.
    fn look_at(&self) -> Option<Nanos>;

    /// Returns the files with frames that are missing from their indices.
    fn behind(&self) -> Vec<u64>;
    /// Adds a file's written frames to its index.
    ///
    /// # Errors
    /// The index does not take it.
    fn flush(&mut self, file: u64) -> Result<(), Errno>;
    /// Returns the next piece of a file's index, if there is one: its offset, and the number of bytes in the
    /// buffer.
    fn write(&mut self, file: u64, buffer: &mut Buffer) -> Option<(u64, u32)>;
    /// Takes back bytes from this offset on that were not written through this slot. Returns true if a file
    /// has them.
    fn put_back(&mut self, slot: Slot, offset: u64, bytes: Vec<u8>) -> bool;
    /// Returns the file with a partly written piece, if there is one; a second call does not return it again.
    fn take_torn(&mut self) -> Option<u64>;
    /// Notes that a file's index is completely written, and returns the frames that can now be found.
    fn indexed(&mut self, file: u64) -> Vec<WrittenFrame>;
    /// Notes that a file was synced: its content at that time is durable.
    fn synced(&mut self, file: u64, now: Nanos);

    /// Returns the next reservation of space, if one is due.
    fn next_reservation(&mut self) -> Option<IndexReservation>;
    /// Notes the number of frames of the whole recording, once that is over.
    fn over(&mut self, due: Option<u64>);
    /// Seals a file, to which no more frames come: its last bytes must be written too.
    ///
    /// # Errors
    /// The index can't be completed.
    fn seal(&mut self, file: u64) -> Result<(), Errno>;
    /// Returns the bytes of a sealed file.
    fn size(&mut self, file: u64) -> Option<u64>;
    /// Returns true if all its places are taken, or if it has no fixed number of places.
    fn is_full(&self, file: u64) -> bool;
    /// Notes that a file is closed.
    fn closed(&mut self, file: u64);
    /// Returns true if no frame waits for its index.
    fn is_quiet(&self) -> bool;
    /// Returns the frames that are not acknowledged, after a failure.
    fn abandon(&mut self) -> Vec<Frame>;
}
