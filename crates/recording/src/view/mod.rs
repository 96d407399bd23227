//! A recording as one file: all blocks in order, independent of their location, with frames marked as invalid
//! in place of missing ones.
//!
//! ```text
//! directories -> Recording (journals united) -> RecordingView -> export, mount, replay
//! ```
//!
//! For example, five blocks of 100 B in two lanes, of which block 2 is lost and block 4, the last, has only
//! 60 B:
//!
//! ```text
//! offset        0        100      200      300      400   460
//! block         |   0    |   1    |   2    |   3    |  4  |
//! lies in       lane 0   lane 1   -        lane 0   lane 1
//! read_at(150, 200 B)         1111.........3333            50 B of lane 1, 100 B filled, 50 B of lane 0
//! ```
//!
//! Any number of threads may read at once, also while the recording is in progress. Then all data below the
//! watermark are present.
//!
//! With blocks 0, 1 and 3 in the journals so far, the view shows 200 B, because block 2 may be on its way. When
//! block 2 arrives, or when a block after it was complete 10 s later than block 3, the view shows more. Data
//! once shown keep their offset.

mod block_reading;
mod blocks;
mod continuity;
mod faults;
mod files;
mod fill;
#[cfg(any(test, feature = "test-kit"))]
pub mod laid_out;
mod limits;
mod offsets;
mod part_limit;
mod read_ahead;
mod runs;
mod scan;
mod sources;
mod survey;

use std::{
    fs::File,
    io,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use nilometer_model::Format;

use crate::{
    Stream, Wire,
    journal::{Encoding, RECORD},
    reader::{FrameLocation, Look, News, Recording, first_there, read_encoded},
    recording_file::PageCache,
    recording_storage::RecordingStorage,
};
pub use block_reading::BlockReading;
use blocks::{Blocks, mark};
pub use continuity::{Continuity, Jump};
pub use faults::ReadFaults;
use files::Files;
use fill::Filling;
use nilometer_wire::{Stamp, Stamps};
pub use part_limit::{LimitPosition, PartLimit, PartLimitError, PartLimits};
pub use read_ahead::{Asked, ReadAhead};
use runs::Run;
pub use scan::{Read, Scan};
pub use sources::{Hole, SourceLoss};
pub use survey::Survey;

/// The part of a recording that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All blocks known now.
    All,
    /// The blocks below the watermark, and more with each [`RecordingView::refresh`].
    Mark,
}

/// A recording as one file. Its offsets count the bytes of consecutive blocks, without the bytes between them
/// on disk.
#[derive(Debug)]
pub struct RecordingView {
    state: RwLock<State>,
    files: Files,
    name: String,
    format: Format,
    stamps: Option<Stamps>,
    frame_size: u64,
    block_size: u64,
    extent: Extent,
    /// The bytes that it shows, among those of all blocks.
    part: Range<u64>,
    filling: Mutex<Option<Filling>>,
    survey: Mutex<Option<Survey>>,
    faults: Mutex<ReadFaults>,
}

/// The part of a view that changes while the recording is in progress.
#[derive(Debug)]
struct State {
    recording: Recording,
    blocks: Blocks,
    /// The recording ended in order, and the view has taken in all its records.
    over: bool,
}

impl State {
    /// Shows the blocks that the journals have by now.
    fn extend(&mut self, extent: Extent) {
        let State { recording, blocks, over } = self;
        let all = extent == Extent::All || *over;
        let index = &recording.index;
        let end = if all { index.expected() } else { mark(index, blocks.end()) };
        blocks.extend(index, end);
    }
}

/// Returns the number of a view's first block. For a ring in progress, the view starts two parts after the
/// oldest block, which may be overwritten at any moment.
fn begin(recording: &Recording, extent: Extent) -> u64 {
    let index = &recording.index;
    let head = recording.head();
    let moves = extent == Extent::Mark && head.storing.kind().overwrites && !recording.is_over();
    if !moves || index.removed.is_empty() {
        return index.first();
    }
    let later = index.first() + 2 * head.frames_per_file.saturating_mul(u64::from(head.lanes));
    later.min(index.expected())
}

impl RecordingView {
    /// Creates a view of an open recording.
    pub fn new(recording: Recording, extent: Extent) -> Self {
        let head = *recording.head();
        let stream = recording.index.stream.as_ref();
        let format = stream.map_or(head.format, Stream::format);
        // A camera's frame is a block by itself, and so are its unpacked bytes.
        let format = if matches!(format, Format::Cbf | Format::Hdf5) { Format::Raw } else { format };
        let frame_size = stream.map_or(head.frame_size, |stream| stream.frame_size() as u64);
        let near = stream.and_then(|stream| stream.wire()).map_or(0, |wire| wire.known().begins);
        let whole = RecordingView {
            files: Files::new(recording.access()),
            name: recording.name().to_owned(),
            format,
            stamps: Stamps::of(format, near),
            frame_size: frame_size.max(1),
            block_size: head.frame_size.max(1),
            extent,
            part: 0..u64::MAX,
            filling: Mutex::default(),
            survey: Mutex::default(),
            faults: Mutex::default(),
            state: RwLock::new(State {
                over: extent == Extent::All && recording.is_over(),
                blocks: Blocks::new(head.frame_size.max(1), begin(&recording, extent)),
                recording,
            }),
        };
        if extent == Extent::Mark {
            // This reads the journals one after the other, so some may have ended since.
            whole.refresh();
        }
        whole.state_mut().extend(extent);
        whole
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the recording.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Format of its unpacked frames, whose name is the suffix of the view's file name. For CBF files it is the
    /// format of their pixels, one picture after the other.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The description of its packets on the network, if it has packets and the journal states that.
    pub fn wire(&self) -> Option<Wire> {
        self.state().recording.index.stream.as_ref().and_then(|stream| stream.wire()).cloned()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> u64 {
        self.frame_size
    }

    /// Passes the recording in its present state to `look`.
    pub fn recording<T>(&self, look: impl FnOnce(&Recording) -> T) -> T {
        look(&self.state().recording)
    }

    /// Takes in new records of the journals, and returns true if there were any. Shows more if the watermark
    /// rises. While this waits for disks, other threads may read and refresh.
    pub fn refresh(&self) -> bool {
        let before = self.length();
        let mut news = self.gain(Recording::look);
        let ends = !self.is_over() && self.recording(Recording::is_over);
        if ends {
            // A journal that was read before the one with the end may have gained records since. None gains
            // more from here on.
            self.gain(Recording::look);
            news = true;
        }
        // Extend only after reading all journals: records of one lane are no reason to give up blocks that
        // another has.
        if ends || self.extent == Extent::Mark {
            let state = &mut *self.state_mut();
            state.over |= ends;
            state.extend(self.extent);
        }
        news || self.length() != before
    }

    /// Reads some journals and takes in their new records. Returns true if there were any.
    fn gain(&self, look: impl FnOnce(&Recording) -> Look) -> bool {
        self.gain_by(look, Look::read)
    }

    /// Does the same, with `ask` reading the journals, which may wait for disks.
    fn gain_by(&self, look: impl FnOnce(&Recording) -> Look, ask: impl FnOnce(&Look) -> News) -> bool {
        // The lock is free while `ask` reads disks, so a hanging disk blocks no reader of the others.
        let look = look(&self.state().recording);
        self.take_in(ask(&look))
    }

    /// Takes in new records of journals. Returns true if there were any.
    fn take_in(&self, news: News) -> bool {
        if news.is_empty() {
            return false;
        }
        let state = &mut *self.state_mut();
        let lanes = state.recording.index.heads.len();
        let gained = state.recording.take_in(news);
        if state.over && state.recording.index.heads.len() > lanes {
            // Missing blocks may be shorter than assumed.
            state.blocks = Blocks::new(self.block_size, state.blocks.first());
            state.extend(self.extent);
        }
        gained
    }

    /// Adds directories in which to look for journals of unknown lanes, from the next refresh on.
    pub fn look_in(&self, directories: &[PathBuf]) {
        self.state_mut().recording.look_in(directories);
    }

    /// Shows all known blocks, as if no more would arrive.
    pub fn settle(&self) {
        self.state_mut().extend(Extent::All);
    }

    /// Returns true if the storage of every lane is readable, judged by reading its journal.
    pub fn is_readable(&self) -> bool {
        let storage = self.storage();
        let head = |journal: &PathBuf| storage.open(journal)?.file.read_exact_at(&mut [0; RECORD], 0);
        self.journals().iter().all(|journal| head(journal).is_ok())
    }

    /// Journals of the known lanes.
    pub fn journals(&self) -> Vec<PathBuf> {
        let recording = &self.state().recording;
        (0..recording.index.heads.len()).map(|lane| recording.journal(lane)).collect()
    }

    /// Returns the path of the file at a location: the first of its names that exists.
    fn path(&self, place: FrameLocation) -> PathBuf {
        let paths = self.state().recording.paths(place);
        first_there(&*self.storage(), paths)
    }

    /// The storage that opens its files.
    fn storage(&self) -> Arc<dyn RecordingStorage> {
        self.state().recording.storage().clone()
    }

    /// Returns true if the recording ended in order, and the view knows all of it.
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// Reads from `offset` and returns the bytes read, fewer than `buffer` has only at the end. Fills blocks
    /// that are missing or can't be read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let total = (buffer.len() as u64).min(self.length().saturating_sub(offset)) as usize;
        let mut done = 0;
        while done < total {
            // Read block by block, because neighbours may be on other disks or missing.
            let (block, within, length) = self.piece(offset + done as u64);
            let length = length.min((total - done) as u64) as usize;
            self.read_block(block, within, &mut buffer[done..done + length]);
            done += length;
        }
        total
    }

    /// Opens the file that equals the whole view byte for byte, if there is one. In such a file no block is
    /// missing, and there is no space between blocks.
    pub fn only_file(&self) -> Option<File> {
        let (place, all) = self.only_place()?;
        let user = self.recording(|recording| recording.user(place.lane));
        let opened = self.storage().open_of(&self.path(place), user, PageCache::Through).ok()?;
        let file = self.admit(opened).ok()?.into_file()?;
        let length = file.metadata().ok()?.len();
        (length == all).then_some(file)
    }

    /// Returns a location in the only file, and the length in bytes that the file must have by the journals.
    fn only_place(&self) -> Option<(FrameLocation, u64)> {
        let State { recording, blocks, over } = &*self.state();
        let index = &recording.index;
        let place = index.frames.get(0)?;
        let lies = |(number, at): (u64, FrameLocation)| {
            let raw = at.extent.encoding == Encoding::Raw;
            raw && index.file_of(at) == index.file_of(place) && at.extent.offset == blocks.begin(number)
        };
        let whole = index.frames.len() as u64 == blocks.end() && *over && !self.is_part();
        let whole = whole && index.frames.iter().all(lies);
        whole.then(|| (place, blocks.length()))
    }

    /// Returns every location of a block.
    pub fn places(&self, block: u64) -> Vec<FrameLocation> {
        self.state().recording.index.places(block).collect()
    }

    /// Frames per block, 1 if frames did not come in packets.
    pub fn frames_of_block(&self) -> u64 {
        self.block_size / self.frame_size
    }

    /// Returns the reader of time stamps in frame headers, if the frames have any.
    pub fn stamps(&self) -> Option<Stamps> {
        self.stamps
    }

    /// Checks, after a read, that the bytes read at a location are those stored there. In a ring the writer may
    /// have overwritten them in the meantime; it journals that before it writes the first byte.
    fn stays(&self, place: FrameLocation) -> io::Result<()> {
        let ring = self.recording(|recording| recording.index.heads[place.lane].storing.kind().overwrites);
        if ring && !self.is_over() {
            let look = self.recording(|recording| recording.look_at(place.lane));
            self.take_in(look.read_each()?);
        }
        if ring && self.is_gone(place) { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    /// Returns true if the journals so far list a location as removed or overwritten.
    fn is_gone(&self, place: FrameLocation) -> bool {
        self.recording(|recording| recording.index.is_gone(place))
    }

    /// Reads a part of a block from its first readable location, or else fills it.
    fn read_block(&self, block: u64, within: u64, into: &mut [u8]) -> BlockReading {
        let places = self.places(block);
        let mut fault = None;
        for place in places {
            match self.read_place(place, within, into) {
                Ok(()) => return BlockReading::Stored,
                // The writer removed it on purpose, so the disk is not at fault.
                Err(_) if self.is_gone(place) => {}
                Err(error) => fault = fault.or(Some((place, error))),
            }
        }
        let is_unreadable = fault.is_some();
        if let Some((place, error)) = fault {
            self.note_fault(block, &self.path(place), &error);
        }
        self.fill_block(block, within, into);
        if is_unreadable {
            return BlockReading::Unreadable;
        }
        let overwritten = self.recording(|recording| recording.index.removed.contains(block));
        if overwritten { BlockReading::Overwritten } else { BlockReading::Missing }
    }

    /// Reads a part of a block from one location.
    fn read_place(&self, place: FrameLocation, within: u64, into: &mut [u8]) -> io::Result<()> {
        let extent = place.extent;
        let there = u64::from(extent.size);
        if within + into.len() as u64 > there {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if extent.encoding != Encoding::Raw {
            // Decoding a compressed frame must start at its beginning.
            let mut frame = vec![0; extent.size as usize];
            let storage = self.storage();
            let user = self.recording(|recording| recording.user(place.lane));
            let file = files::open(self, place, |path| storage.open_of(path, user, PageCache::Through))?;
            read_encoded(&*file, &extent, &mut frame)?;
            into.copy_from_slice(&frame[within as usize..][..into.len()]);
            return Ok(());
        }
        self.files.read(self, place, extent.offset.saturating_add(within), into)
    }

    /// Returns the time stamp in a frame's header, if the frame exists and its format has stamps.
    pub fn stamp(&self, frame: u64) -> Option<Stamp> {
        let mut bytes = [0; Stamps::BYTES];
        let offset = frame.checked_mul(self.frame_size)?;
        let (block, within, _) = (offset < self.length()).then(|| self.piece(offset))?;
        let bytes = &mut bytes[..self.frame_size.min(Stamps::BYTES as u64) as usize];
        self.head(block, within, bytes)?;
        self.stamps?.read(bytes, self.frame_size)
    }

    /// Returns the time stamp in the first bytes of a frame.
    pub fn read_stamp(&self, bytes: &[u8]) -> Option<Stamp> {
        self.stamps?.read(bytes.get(..Stamps::BYTES).unwrap_or(bytes), self.frame_size)
    }

    /// Reads bytes of a block. `None` if they are missing, so that no stamp comes from a filled frame.
    fn head(&self, block: u64, within: u64, into: &mut [u8]) -> Option<()> {
        let places = self.places(block);
        places.into_iter().find_map(|place| self.read_place(place, within, into).ok())
    }

    /// Returns rate and lanes of the stream, from the headers of its frames. Reads the headers anew until it
    /// finds the rate.
    pub fn survey(&self) -> Survey {
        let known = self.survey.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.unwrap_or_else(|| {
            let survey = Survey::of(self);
            if survey.frames_per_second.is_some() {
                *self.survey.lock().unwrap_or_else(PoisonError::into_inner) = Some(survey.clone());
            }
            survey
        })
    }
}

#[cfg(test)]
mod tests;
