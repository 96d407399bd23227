//! Files with an index of their frames, as in HDF5: the position of frames in them, and the time when readers
//! find them.
//!
//! [`Hdf5File`] keeps the index and does no I/O. A frame is first written wherever the file has room. Then it is
//! put into the index, and the changes of the index are written, one after the other. Then the frame gets its
//! record in the journal, and is acknowledged.
//!
//! Frames do not wait for each other. While the index is written, other frames are written too; the next turn
//! takes all that are done by then.
//!
//! ```text
//! frame 5     write        index          journal      acknowledged
//! frame 6     write .....................  index        journal      acknowledged
//! frame 7           write ...............  index        journal      acknowledged
//! ```
//!
//! A reader of the file therefore always finds every acknowledged frame, and no frame that is not written.

use std::mem;

use nilometer_hdf5::{
    ClosedFile, FileWrite, Hdf5Error, Hdf5File, Hdf5FileOptions, StoredChunk, nexus::RecordingTotals,
};
use nilometer_model::{Moment, Nanos, Storing};
use nilometer_recording::journal::DatasetPlace;
use nilometer_ring::{
    FileIndex, Frame, HeldMemory, IndexReservation, MemoryAccount, MemoryPart, WrittenFrame,
};
use nilometer_storage::{Buffer, Errno, Slot};

use crate::{
    Hdf5Contents,
    datasets::DatasetPlaces,
    frame_chunks::{WrittenPlace, each_written_chunk},
    frame_columns::{ClosedFrames, FrameColumns, InsertedFrame},
};

/// The layout of a lane's files, as far as their indices depend on it.
#[derive(Debug, Clone)]
pub struct IndexedLayout {
    /// The name of the recording.
    pub name: String,
    /// The distribution of frames over files.
    pub storing: Storing,
    /// Frames per file, or per part.
    pub frames_per_file: u64,
    /// Bytes of the frames of a full file, without compression.
    pub file_size: u64,
    /// The alignment of frames.
    pub boundaries: FrameBoundaries,
    /// Number of written frames that may wait for the value that names their dataset.
    pub waiting: u64,
    /// The slots for files written through the cache.
    pub slots: IndexSlots,
}

/// Slots of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSlots {
    /// The first slot.
    pub first: u32,
    /// Number of files that may be open at once.
    pub count: u64,
}

/// Alignment of frames, in files that allocate room for each frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBoundaries {
    /// Alignment of any frame.
    pub each: u64,
    /// Alignment of frames that fill a stripe; 0 if there are no stripes.
    pub stripe: u64,
}

impl FrameBoundaries {
    /// The alignment of a frame of `bytes` bytes: a stripe, if it fills one.
    pub fn before(self, bytes: u32) -> u64 {
        if self.stripe > self.each && u64::from(bytes) >= self.stripe { self.stripe } else { self.each }
    }
}

/// The open files of a lane.
#[derive(Debug)]
pub struct IndexedFiles {
    contents: Hdf5Contents,
    layout: IndexedLayout,
    open: Vec<IndexedFile>,
    /// Written frames that are in no index yet.
    unindexed: Vec<WrittenFrame>,
    /// Frames in an index that is being written.
    indexing: Vec<WrittenFrame>,
    /// The assignment of written frames to datasets, if a file has several.
    places: Option<DatasetPlaces>,
    /// The file with a partly written piece of its index, if there is one.
    torn: Option<u64>,
    /// Number of frames of the whole recording, once it is over.
    due: Option<u64>,
    /// The account for the memory of the indices, if there is one.
    held: Option<HeldMemory>,
}

#[derive(Debug)]
struct IndexedFile {
    number: u64,
    state: IndexState,
    /// End of the reserved space.
    reserved: u64,
    /// The values of its frames.
    columns: FrameColumns,
    /// Frames that readers find but that may not survive a loss of power, by their index in the file.
    undurable: Vec<u64>,
    /// Number of the frame with index 0.
    first: Option<u64>,
    /// Number of places up to the last frame received.
    length: u64,
    totals: RecordingTotals,
    /// Arrival of its last frame.
    last: Nanos,
    /// A copy of [`Hdf5Contents::live`].
    live: bool,
}

#[derive(Debug)]
enum IndexState {
    Open(Box<Hdf5File>),
    Closed(ClosedFile),
    Failed,
}

/// Bytes reserved ahead of the writes.
const AHEAD: u64 = 128 << 20;
/// Bytes reserved for the index, beside the frames of a file.
const SPARE: u64 = 4 << 20;

impl IndexedFiles {
    /// Files with these contents and this layout.
    pub fn new(contents: Hdf5Contents, layout: IndexedLayout) -> Self {
        let joined = contents.joined.clone();
        let datasets = contents.datasets.clone();
        let places = datasets.map(|datasets| DatasetPlaces::new(datasets, joined, layout.waiting));
        IndexedFiles {
            contents,
            layout,
            places,
            open: Vec::new(),
            unindexed: Vec::new(),
            indexing: Vec::new(),
            torn: None,
            due: None,
            held: None,
        }
    }

    /// The file that contains a part.
    fn file(&self, part: u64) -> u64 {
        if self.layout.storing.is_many_files() { part } else { 0 }
    }

    fn get(&mut self, part: u64) -> Option<&mut IndexedFile> {
        let number = self.file(part);
        self.open.iter_mut().find(|file| file.number == number)
    }

    fn insert(&mut self, part: u64) {
        let number = self.file(part);
        let all = mem::take(&mut self.unindexed);
        let (mine, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|written| self.file(written.begin.file) == number);
        self.unindexed = others;
        let frame_size = self.contents.frame_size as u32;
        let stack = self.contents.stack.map_or(1, |stack| stack.frames);
        if let Some(file) = self.get(part) {
            for written in &mine {
                file.insert(written, frame_size, stack);
            }
            file.insert_late();
        }
        self.indexing.extend(mine);
    }
}

impl FileIndex for IndexedFiles {
    fn account(&mut self, account: &MemoryAccount) {
        self.held = Some(HeldMemory::new(account.clone(), MemoryPart::FileIndex));
    }

    fn count_memory(&mut self) {
        let bytes = self.open.iter().map(IndexedFile::memory).sum();
        if let Some(held) = &mut self.held {
            held.set(bytes);
        }
    }

    fn slot(&self, part: u64) -> Slot {
        let IndexSlots { first, count } = self.layout.slots;
        Slot(first + (self.file(part) % count) as u32)
    }

    fn begin(&mut self, part: u64, position: Option<u32>) -> Result<(), Errno> {
        let number = self.file(part);
        let before = position.map_or(0, |position| u64::from(position) * self.layout.frames_per_file);
        let first_image = Some(before / self.contents.tree.frames_of_image() + 1);
        let apart = self.places.is_some();
        let options = Hdf5FileOptions { apart, first_image, ..Hdf5FileOptions::default() };
        let file = Hdf5File::create(&self.layout.name, &self.contents.tree, options).map_err(refused)?;
        let columns = FrameColumns::of(&file, &self.contents);
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
            live: self.contents.live,
        });
        Ok(())
    }

    fn allocate(&mut self, part: u64, number: u64, bytes: u32) -> Option<u64> {
        let alignment = self.layout.boundaries.before(bytes);
        let first = match self.layout.storing {
            Storing::Files => number,
            Storing::Positions => number - number % self.layout.frames_per_file,
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

    fn waiting(&self) -> usize {
        self.unindexed.len() + self.indexing.len()
    }

    fn land(&mut self, written: WrittenFrame) {
        match &mut self.places {
            Some(places) => places.land(written),
            None => self.unindexed.push(written),
        }
    }

    fn look_at(&self) -> Option<Nanos> {
        self.places.as_ref().and_then(DatasetPlaces::look_at)
    }

    fn behind(&self) -> Vec<u64> {
        let mut files: Vec<_> = self.unindexed.iter().map(|written| self.file(written.begin.file)).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    fn flush(&mut self, part: u64) -> Result<(), Errno> {
        self.insert(part);
        match &mut self.get(part).ok_or(Errno::EIO)?.state {
            IndexState::Open(file) => file.flush().map_err(refused),
            IndexState::Closed(_) | IndexState::Failed => Err(Errno::EIO),
        }
    }

    fn seal(&mut self, part: u64) -> Result<(), Errno> {
        self.insert(part);
        let number = self.file(part);
        let start = self.contents.start;
        let stack = self.contents.stack;
        let tree = self.contents.tree.clone();
        let frames_of_image = tree.frames_of_image();
        let IndexedLayout { storing, frames_per_file, .. } = self.layout;
        let due = self.due;
        let file = self.get(part).ok_or(Errno::EIO)?;
        debug_assert_eq!(file.number, number);
        let first = file.first.unwrap_or(0);
        let due = due.map(|due| stack.map_or(due, |stack| stack.due));
        let left = due.map(|due| due.saturating_sub(first));
        let frames = match storing {
            // Frames that were never received have places too.
            Storing::Positions => left.map_or(frames_per_file, |left| left.min(frames_per_file)),
            Storing::Files => file.length,
            _ => left.unwrap_or(0),
        };
        let frames = frames.max(file.length);
        let blank = frames.saturating_sub(file.totals.whole + file.totals.incomplete);
        let end = Moment(start.0 + file.last);
        let end_time = (file.last > Nanos(0)).then(|| end.to_string());
        let last_image = Some((first + frames) / frames_of_image);
        let totals = RecordingTotals { blank, end_time, last_image, ..file.totals.clone() };
        if let IndexState::Open(mut open) = mem::replace(&mut file.state, IndexState::Failed) {
            let closed = ClosedFrames { first, count: frames, length: file.length };
            let end = file.columns.close(&mut open, closed, &tree, &totals);
            file.state = IndexState::Closed(open.close(frames, &end).map_err(refused)?);
        }
        Ok(())
    }

    fn synced(&mut self, part: u64, now: Nanos) {
        let Some(IndexedFile { state: IndexState::Open(file), columns, undurable, .. }) = self.get(part)
        else {
            return;
        };
        columns.durable(file, mem::take(undurable), now);
    }

    fn write(&mut self, part: u64, buffer: &mut Buffer) -> Option<(u64, u32)> {
        let write = match &mut self.get(part)?.state {
            IndexState::Open(file) => file.next_write(),
            IndexState::Closed(file) => file.next_write(),
            IndexState::Failed => None,
        }?;
        buffer[..write.bytes.len()].copy_from_slice(&write.bytes);
        Some((write.offset, write.bytes.len() as u32))
    }

    fn put_back(&mut self, slot: Slot, offset: u64, bytes: Vec<u8>) -> bool {
        let write = FileWrite { offset, bytes };
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

    fn indexed(&mut self, part: u64) -> Vec<WrittenFrame> {
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

    fn size(&mut self, part: u64) -> Option<u64> {
        match &self.get(part)?.state {
            IndexState::Closed(file) => Some(file.size()),
            IndexState::Open(_) | IndexState::Failed => None,
        }
    }

    fn is_full(&self, part: u64) -> bool {
        let number = self.file(part);
        let length = self.open.iter().find(|file| file.number == number).map(|file| file.length);
        self.layout.storing != Storing::Positions || length == Some(self.layout.frames_per_file)
    }

    fn closed(&mut self, part: u64) {
        let number = self.file(part);
        self.open.retain(|file| file.number != number);
    }

    fn next_reservation(&mut self) -> Option<IndexReservation> {
        let most = if self.layout.storing.is_many_files() { self.layout.file_size + SPARE } else { u64::MAX };
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

    fn is_quiet(&self) -> bool {
        let is_placed = self.places.as_ref().is_none_or(DatasetPlaces::is_quiet);
        is_placed && self.unindexed.is_empty() && self.indexing.is_empty()
    }

    fn abandon(&mut self) -> Vec<Frame> {
        let indexing = mem::take(&mut self.indexing);
        let waiting = self.places.as_mut().map(DatasetPlaces::abandon).into_iter().flatten();
        let written = indexing.into_iter().chain(mem::take(&mut self.unindexed));
        written.map(|written| written.frame).chain(waiting).collect()
    }

    fn has_places(&self) -> bool {
        self.places.is_some()
    }

    fn place(&mut self, now: Nanos, over: bool) -> Vec<u64> {
        let Some(places) = &mut self.places else { return Vec::new() };
        let known = places.release(now, over);
        let files = known.iter().map(|written| written.begin.file).collect();
        self.unindexed.extend(known);
        files
    }

    fn take_torn(&mut self) -> Option<u64> {
        self.torn.take()
    }

    fn over(&mut self, due: Option<u64>) {
        self.due = due;
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

    /// The index of a frame in the file; `None` for a frame before the file's first one. Only frames of a failed
    /// lane come that late, if the oldest files are removed; the journal then has the frame.
    fn place(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.first?)
    }

    /// Puts a frame, or a stack of `stack` frames, into the index, and the known values of each into the columns.
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

    /// Sets the values of a frame in the file.
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

    /// Sets values that arrived for earlier frames.
    fn insert_late(&mut self) {
        if let (IndexState::Open(file), Some(first)) = (&mut self.state, self.first) {
            self.columns.insert_late(file, first);
        }
    }
}

/// If the library refuses our input, this program has a fault; the lane fails, and other lanes go on.
#[expect(clippy::needless_pass_by_value, reason = "handed over by `map_err`")]
fn refused(error: Hdf5Error) -> Errno {
    debug_assert!(false, "{error}");
    Errno::EIO
}
