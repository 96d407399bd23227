//! Files that have an index of their frames inside, as HDF5 has: where frames go in them, and when readers find them.
//!
//! The index is kept by [`Hdf5File`], which does no I/O. A frame is written first, wherever there is room in the file; then
//! it is put into the index, and what that changes in the file is written, a piece behind the other; then it gets its record
//! in the journal, and is acknowledged. Frames do not wait for each other: while the index is written, others are, and the
//! next turn takes all that came back meanwhile.
//!
//! ```text
//! frame 5     write        index          journal      acknowledged
//! frame 6     write .....................  index        journal      acknowledged
//! frame 7           write ...............  index        journal      acknowledged
//! ```
//!
//! So a reader of the file finds every frame that is acknowledged, and none that is not written, at each moment.

use std::mem;

use nilometer_hdf5::{
    ClosedFile, FileWrite, Hdf5Error, Hdf5File, Hdf5FileOptions, StoredChunk, nexus::RecordingTotals,
};
use nilometer_model::{Moment, Nanos, Storing};
use nilometer_recording::journal::DatasetPlace;
use nilometer_storage::{Buffer, Errno, Slot};

use super::{
    FileOffset, RawLayout,
    datasets::DatasetPlaces,
    frame_columns::{ClosedFrames, FrameColumns, InsertedFrame},
    layout::{FrameBoundaries, OPEN},
};
use crate::{
    Frame, HeldMemory, MemoryAccount, MemoryPart,
    frame_chunks::{WrittenPlace, each_written_chunk},
    sink::Hdf5Contents,
};

/// Of these files, those that are open.
#[derive(Debug)]
pub(super) struct IndexedFiles {
    layout: Hdf5Contents,
    /// The name of the recording.
    name: String,
    storing: Storing,
    frames_per_file: u64,
    /// Bytes of the frames of a full file, as they come.
    file_size: u64,
    /// What frames begin at.
    boundaries: FrameBoundaries,
    open: Vec<IndexedFile>,
    /// Written, and in no index yet.
    pub(super) unindexed: Vec<WrittenFrame>,
    /// In an index that is being written.
    indexing: Vec<WrittenFrame>,
    /// Where frames go that are written, if a file has several datasets of them.
    pub(super) places: Option<DatasetPlaces>,
    /// The file of which a piece is written in part, if there is one.
    pub(super) torn: Option<u64>,
    /// Frames of the whole recording, once that is over.
    pub(super) due: Option<u64>,
    /// Where the memory of the indices is counted, if somewhere.
    held: Option<HeldMemory>,
}

/// Space that is to be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexReservation {
    pub(super) file: u64,
    /// The file has so many bytes then.
    pub(super) upto: u64,
    /// More than it has now.
    pub(super) more: u64,
}

/// A frame that is in its file.
#[derive(Debug)]
pub(super) struct WrittenFrame {
    pub(super) begin: FileOffset,
    pub(super) frame: Frame,
    /// Bytes that were written.
    pub(super) length: u32,
    /// Where it stands, if there are several datasets.
    pub(super) place: Option<DatasetPlace>,
}

#[derive(Debug)]
struct IndexedFile {
    number: u64,
    state: IndexState,
    /// Up to where space is reserved.
    reserved: u64,
    /// What is said of each of its frames.
    columns: FrameColumns,
    /// Frames that readers find and that may not survive the loss of power, by their place in the file.
    undurable: Vec<u64>,
    /// The number of the frame that is the first of its datasets.
    first: Option<u64>,
    /// Frames up to the last that is there.
    length: u64,
    totals: RecordingTotals,
    /// When its last frame was there.
    last: Nanos,
    /// See [`Hdf5Contents::live`].
    live: bool,
}

#[derive(Debug)]
enum IndexState {
    Open(Box<Hdf5File>),
    Closed(ClosedFile),
    Failed,
}

/// Space is reserved so far ahead of what is written.
const AHEAD: u64 = 128 << 20;
/// Beside the frames of a file of N, for its index.
const SPARE: u64 = 4 << 20;

impl IndexedFiles {
    pub(super) fn new(hdf5: Hdf5Contents, layout: &RawLayout) -> Self {
        let joined = hdf5.joined.clone();
        let places =
            hdf5.datasets.clone().map(|datasets| DatasetPlaces::new(datasets, joined, layout.waiting));
        IndexedFiles {
            layout: hdf5,
            places,
            name: layout.name.clone(),
            storing: layout.head.storing,
            frames_per_file: layout.head.frames_per_file,
            file_size: layout.file_size(),
            boundaries: layout.boundaries(),
            open: Vec::new(),
            unindexed: Vec::new(),
            indexing: Vec::new(),
            torn: None,
            due: None,
            held: None,
        }
    }

    /// Counts the memory of the indices here from now on.
    pub(super) fn account(&mut self, account: &MemoryAccount) {
        self.held = Some(HeldMemory::new(account.clone(), MemoryPart::FileIndex));
    }

    /// Counts it as it is now.
    pub(super) fn count_memory(&mut self) {
        let bytes = self.open.iter().map(IndexedFile::memory).sum();
        if let Some(held) = &mut self.held {
            held.set(bytes);
        }
    }

    /// The file that a part is of.
    fn file(&self, part: u64) -> u64 {
        if self.storing.is_many_files() { part } else { 0 }
    }

    /// The slot of a file through the cache.
    pub(super) fn slot(&self, part: u64) -> Slot {
        Slot(super::layout::INDEX + (self.file(part) % OPEN) as u32)
    }

    fn get(&mut self, part: u64) -> Option<&mut IndexedFile> {
        let number = self.file(part);
        self.open.iter_mut().find(|file| file.number == number)
    }

    /// A file was made: what it begins with is to be written.
    pub(super) fn begin(&mut self, part: u64) -> Result<(), Errno> {
        let number = self.file(part);
        let options = Hdf5FileOptions { apart: self.places.is_some(), ..Hdf5FileOptions::default() };
        let file = Hdf5File::create(&self.name, &self.layout.tree, options).map_err(refused)?;
        let columns = FrameColumns::of(&file, &self.layout);
        self.open.push(IndexedFile {
            number,
            state: IndexState::Open(Box::new(file)),
            reserved: 0,
            columns,
            undurable: Vec::new(),
            first: None,
            length: 0,
            totals: RecordingTotals::default(),
            last: Nanos(0),
            live: self.layout.live,
        });
        Ok(())
    }

    /// Room for the frame of this number, of so many bytes.
    pub(super) fn allocate(&mut self, part: u64, number: u64, bytes: u32) -> Option<u64> {
        let alignment = self.boundaries.before(bytes);
        let first = match self.storing {
            Storing::Files => number,
            Storing::Positions => number - number % self.frames_per_file,
            _ => 0,
        };
        let file = self.get(part)?;
        file.first.get_or_insert(first);
        let offset = match &mut file.state {
            IndexState::Open(file) => file.allocate(bytes.into(), alignment),
            IndexState::Closed(_) | IndexState::Failed => return None,
        };
        if let Some(places) = &mut self.places {
            places.issue(offset);
        }
        Some(offset)
    }

    /// Frames that are written and wait for the index.
    pub(super) fn waiting(&self) -> usize {
        self.unindexed.len() + self.indexing.len()
    }

    /// A frame is written.
    pub(super) fn land(&mut self, written: WrittenFrame) {
        match &mut self.places {
            Some(places) => places.land(written),
            None => self.unindexed.push(written),
        }
    }

    /// When it is to be looked whether it is known where frames go.
    pub(super) fn look_at(&self) -> Option<Nanos> {
        self.places.as_ref().and_then(DatasetPlaces::look_at)
    }

    /// Files with frames that their indices do not have.
    pub(super) fn behind(&self) -> Vec<u64> {
        let mut files: Vec<_> = self.unindexed.iter().map(|written| self.file(written.begin.file)).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Puts what is written of a file into its index.
    pub(super) fn flush(&mut self, part: u64) -> Result<(), Errno> {
        self.insert(part);
        match &mut self.get(part).ok_or(Errno::EIO)?.state {
            IndexState::Open(file) => file.flush().map_err(refused),
            IndexState::Closed(_) | IndexState::Failed => Err(Errno::EIO),
        }
    }

    fn insert(&mut self, part: u64) {
        let number = self.file(part);
        let all = mem::take(&mut self.unindexed);
        let (mine, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|written| self.file(written.begin.file) == number);
        self.unindexed = others;
        let frame_size = self.layout.frame_size as u32;
        let stack = self.layout.stack.map_or(1, |stack| stack.frames);
        if let Some(file) = self.get(part) {
            for written in &mine {
                file.insert(written, frame_size, stack);
            }
            file.insert_late();
        }
        self.indexing.extend(mine);
    }

    /// No frame comes into a file any more: what it ends with is to be written too.
    pub(super) fn seal(&mut self, part: u64) -> Result<(), Errno> {
        self.insert(part);
        let number = self.file(part);
        let start = self.layout.start;
        let stack = self.layout.stack;
        let tree = self.layout.tree.clone();
        let IndexedFiles { storing, frames_per_file, due, .. } = *self;
        let file = self.get(part).ok_or(Errno::EIO)?;
        debug_assert_eq!(file.number, number);
        let first = file.first.unwrap_or(0);
        let due = due.map(|due| stack.map_or(due, |stack| stack.due));
        let left = due.map(|due| due.saturating_sub(first));
        let frames = match storing {
            // Those that did not come have their places too.
            Storing::Positions => left.map_or(frames_per_file, |left| left.min(frames_per_file)),
            Storing::Files => file.length,
            _ => left.unwrap_or(0),
        };
        let frames = frames.max(file.length);
        let blank = frames.saturating_sub(file.totals.whole + file.totals.incomplete);
        let end = Moment(start.0 + file.last);
        let end_time = (file.last > Nanos(0)).then(|| end.to_string());
        let totals = RecordingTotals { blank, end_time, ..file.totals.clone() };
        if let IndexState::Open(mut open) = mem::replace(&mut file.state, IndexState::Failed) {
            let closed = ClosedFrames { first, count: frames, length: file.length };
            let end = file.columns.close(&mut open, closed, &tree, &totals);
            file.state = IndexState::Closed(open.close(frames, &end).map_err(refused)?);
        }
        Ok(())
    }

    /// What was in a file when it was synced is durable now.
    pub(super) fn synced(&mut self, part: u64, now: Nanos) {
        let Some(IndexedFile { state: IndexState::Open(file), columns, undurable, .. }) = self.get(part)
        else {
            return;
        };
        columns.durable(file, mem::take(undurable), now);
    }

    /// Writes the next piece of a file's index, if there is one.
    pub(super) fn write(&mut self, part: u64, buffer: &mut Buffer) -> Option<(u64, u32)> {
        let write = match &mut self.get(part)?.state {
            IndexState::Open(file) => file.next_write(),
            IndexState::Closed(file) => file.next_write(),
            IndexState::Failed => None,
        }?;
        buffer[..write.bytes.len()].copy_from_slice(&write.bytes);
        Some((write.offset, write.bytes.len() as u32))
    }

    /// What was not written through this slot; whether a file has it.
    pub(super) fn put_back(&mut self, slot: Slot, write: FileWrite) -> bool {
        let number = self.open.iter().map(|file| file.number).find(|number| self.slot(*number) == slot);
        let file = number.and_then(|number| self.open.iter_mut().find(|file| file.number == number));
        match file.map(|file| &mut file.state) {
            Some(IndexState::Open(file)) => file.put_back(write),
            Some(IndexState::Closed(file)) => file.put_back(write),
            Some(IndexState::Failed) | None => return false,
        }
        self.torn = number;
        true
    }

    /// What was written of a file's index is all of it: these frames can be found.
    pub(super) fn indexed(&mut self, part: u64) -> Vec<WrittenFrame> {
        let number = self.file(part);
        let all = mem::take(&mut self.indexing);
        let (mine, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|written| self.file(written.begin.file) == number);
        self.indexing = others;
        if let Some(file) = self.get(part) {
            let frames = mine.iter().flat_map(|written| InsertedFrame::all_of(&written.frame));
            let places: Vec<_> = frames.filter_map(|frame| file.place(frame.number)).collect();
            file.undurable.extend(places);
        }
        mine
    }

    /// Bytes of a file that is sealed.
    pub(super) fn size(&mut self, part: u64) -> Option<u64> {
        match &self.get(part)?.state {
            IndexState::Closed(file) => Some(file.size()),
            IndexState::Open(_) | IndexState::Failed => None,
        }
    }

    /// All its places are taken, or it has no number of places.
    pub(super) fn is_full(&self, part: u64) -> bool {
        let number = self.file(part);
        let length = self.open.iter().find(|file| file.number == number).map(|file| file.length);
        self.storing != Storing::Positions || length == Some(self.frames_per_file)
    }

    /// It is closed.
    pub(super) fn closed(&mut self, part: u64) {
        let number = self.file(part);
        self.open.retain(|file| file.number != number);
    }

    /// Up to where the space of a file is to be reserved now, if some is to be; and how much more that is.
    pub(super) fn next_reservation(&mut self) -> Option<IndexReservation> {
        let most = if self.storing.is_many_files() { self.file_size + SPARE } else { u64::MAX };
        for IndexedFile { number, state, reserved, .. } in &mut self.open {
            if let IndexState::Open(file) = state
                && file.end() + AHEAD / 2 > *reserved
                && *reserved < most
            {
                let upto = (file.end() + AHEAD).min(most.max(file.end()));
                let more = upto.saturating_sub(*reserved);
                *reserved = upto;
                return Some(IndexReservation { file: *number, upto, more });
            }
        }
        None
    }

    /// Nothing waits to be found.
    pub(super) fn is_quiet(&self) -> bool {
        let is_placed = self.places.as_ref().is_none_or(DatasetPlaces::is_quiet);
        is_placed && self.unindexed.is_empty() && self.indexing.is_empty()
    }

    /// After a failure: frames that are not acknowledged.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Frame> {
        let indexing = mem::take(&mut self.indexing);
        let waiting = self.places.as_mut().map(DatasetPlaces::abandon).into_iter().flatten();
        let written = indexing.into_iter().chain(mem::take(&mut self.unindexed));
        written.map(|written| written.frame).chain(waiting)
    }
}

impl IndexedFile {
    /// Bytes of its metadata.
    fn memory(&self) -> u64 {
        match &self.state {
            IndexState::Open(file) => file.memory(),
            IndexState::Closed(file) => file.memory(),
            IndexState::Failed => 0,
        }
    }

    /// Which frame of the file the frame of this number is. None is before the first that was given room, unless it comes
    /// from a lane that failed, into files of which the oldest are removed: the journal has it then.
    fn place(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.first?)
    }

    /// Puts a frame into the index, or so many that are stored as one, and what is known of each into the columns.
    fn insert(&mut self, written: &WrittenFrame, frame_size: u32, stack: u64) {
        let WrittenFrame { begin, frame, length, place: placed } = written;
        let Some(number) = self.place(frame.number * stack) else { return };
        let IndexState::Open(file) = &mut self.state else { return };
        let place = WrittenPlace { offset: begin.offset, length: *length, size: frame_size };
        let DatasetPlace { dataset, index } = placed.unwrap_or(DatasetPlace { dataset: 0, index: number });
        let dataset = dataset as usize;
        each_written_chunk(frame, place, index, |chunk| file.insert(StoredChunk { dataset, ..chunk }));
        for inserted in InsertedFrame::all_of(frame) {
            self.say(InsertedFrame { placed: *placed, ..inserted });
        }
    }

    /// Says what is known of a frame that is there.
    fn say(&mut self, inserted: InsertedFrame) {
        let Some(place) = self.place(inserted.number) else { return };
        let IndexState::Open(file) = &mut self.state else { return };
        let InsertedFrame { arrived, missing, .. } = inserted;
        let is_whole = inserted.is_whole();
        self.length = self.length.max(place + 1);
        self.columns.insert(file, place, inserted);
        if self.live {
            self.last = self.last.max(arrived);
        }
        self.totals.missing += missing;
        let count = if is_whole { &mut self.totals.whole } else { &mut self.totals.incomplete };
        *count += 1;
    }

    /// Says what came of frames that were there before.
    fn insert_late(&mut self) {
        if let (IndexState::Open(file), Some(first)) = (&mut self.state, self.first) {
            self.columns.insert_late(file, first);
        }
    }
}

/// The flag of a frame that is there and not whole.
pub(super) const INCOMPLETE: i64 = 2;

/// What the library can't do with what it is given here is a fault of this program; the lane fails, and others go on.
#[expect(clippy::needless_pass_by_value, reason = "handed over by `map_err`")]
fn refused(error: Hdf5Error) -> Errno {
    debug_assert!(false, "{error}");
    Errno::EIO
}
