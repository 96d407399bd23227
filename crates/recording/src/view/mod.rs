//! A recording as one file: all blocks in order, wherever they lie, with frames that are marked as invalid
//! where there are none.
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
//! Any number of threads may read at once, also while the recording is still made: then what lies below the
//! watermark is there. With blocks 0, 1 and 3 in the journals so far, 200 B are shown: block 2 may be on its
//! way. When it comes, or when a block behind it was complete 10 s later than block 3, what follows is shown
//! as well. What was shown stays where it is.

mod blocks;
mod continuity;
mod faults;
mod files;
mod fill;
#[cfg(any(test, feature = "test-kit"))]
pub mod laid_out;
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
use blocks::{Blocks, mark};
pub use continuity::{Continuity, Jump};
pub use faults::ReadFaults;
use files::Files;
use fill::Filling;
use nilometer_wire::{Stamp, Stamps};
pub use read_ahead::{Asked, ReadAhead};
use runs::Run;
pub use scan::{Read, Scan};
pub use sources::{Hole, SourceLoss};
pub use survey::Survey;

/// The part of a recording that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that is known now.
    All,
    /// The blocks below the watermark, and more with each [`RecordingView::refresh`].
    Mark,
}

/// A recording as one file. Its offsets are bytes of blocks one behind the other, without what lies between
/// them on disk.
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
    filling: Mutex<Option<Filling>>,
    survey: Mutex<Option<Survey>>,
    faults: Mutex<ReadFaults>,
}

/// The part of a view that changes while the recording is still made.
#[derive(Debug)]
struct State {
    recording: Recording,
    blocks: Blocks,
    /// It was ended in order, and all that was noted before is taken in.
    over: bool,
}

impl State {
    /// Shows the blocks that the journals say are there by now.
    fn extend(&mut self, extent: Extent) {
        let State { recording, blocks, over } = self;
        let all = extent == Extent::All || *over;
        let index = &recording.index;
        let end = if all { index.expected() } else { mark(index, blocks.end()) };
        blocks.extend(index, end);
    }
}

/// The number of the block that a view begins with. That of a ring of frames which is still made begins two
/// parts behind the oldest one: that will be overwritten at any moment.
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
    /// A view of a recording that was opened.
    pub fn new(recording: Recording, extent: Extent) -> Self {
        let head = *recording.head();
        let stream = recording.index.stream.as_ref();
        let format = stream.map_or(head.format, Stream::format);
        // A frame of a camera is a block by itself, and so are its bytes when they are unpacked.
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
            // The journals were read one after the other, and may have ended meanwhile.
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

    /// The format of its frames once they are unpacked; its name is the suffix of the file that the view
    /// would be: of CBF files it is that of the pixels in them, one behind the other.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The description of its packets as they came, if it is of packets and that is known.
    pub fn wire(&self) -> Option<Wire> {
        self.state().recording.index.stream.as_ref().and_then(|stream| stream.wire()).cloned()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> u64 {
        self.frame_size
    }

    /// The number of the block that it begins with: not 0 where older ones had been overwritten when it was
    /// opened.
    pub fn first_block(&self) -> u64 {
        self.state().blocks.first()
    }

    /// Bytes in all. They never become fewer.
    pub fn length(&self) -> u64 {
        self.state().blocks.length()
    }

    /// Frames in all.
    pub fn frames(&self) -> u64 {
        self.length() / self.frame_size
    }

    /// Asks something of the recording as its journals say it is now.
    pub fn recording<T>(&self, look: impl FnOnce(&Recording) -> T) -> T {
        look(&self.state().recording)
    }

    /// Takes in what the journals gained: whether there was anything. More is shown only if what lies below
    /// the mark is. While disks are asked, others may read, and refresh too.
    pub fn refresh(&self) -> bool {
        let before = self.length();
        let mut news = self.gain(Recording::look);
        let ends = !self.is_over() && self.recording(Recording::is_over);
        if ends {
            // A journal that was read before the one whose end was seen may have more; none gets more from
            // here on.
            self.gain(Recording::look);
            news = true;
        }
        // Only when all were asked: what one lane says is no reason to give up what another has.
        if ends || self.extent == Extent::Mark {
            let state = &mut *self.state_mut();
            state.over |= ends;
            state.extend(self.extent);
        }
        news || self.length() != before
    }

    /// Reads some journals and takes in what they gained: whether there was anything new.
    fn gain(&self, look: impl FnOnce(&Recording) -> Look) -> bool {
        self.gain_by(look, Look::read)
    }

    /// The same, read by `ask`, which waits for as long as a disk does.
    fn gain_by(&self, look: impl FnOnce(&Recording) -> Look, ask: impl FnOnce(&Look) -> News) -> bool {
        // The lock is free while disks are read: one that hangs stops no reader of the others.
        let look = look(&self.state().recording);
        self.take_in(ask(&look))
    }

    /// Takes in what journals gained: whether there was anything new.
    fn take_in(&self, news: News) -> bool {
        if news.is_empty() {
            return false;
        }
        let state = &mut *self.state_mut();
        let lanes = state.recording.index.heads.len();
        let gained = state.recording.take_in(news);
        if state.over && state.recording.index.heads.len() > lanes {
            // What was missing may be shorter than it was taken to be.
            state.blocks = Blocks::new(self.block_size, state.blocks.first());
            state.extend(self.extent);
        }
        gained
    }

    /// Has the journals of lanes that are not known looked for in these directories too, from the next
    /// refresh on.
    pub fn look_in(&self, directories: &[PathBuf]) {
        self.state_mut().recording.look_in(directories);
    }

    /// Shows all that is known, as if nothing came any more.
    pub fn settle(&self) {
        self.state_mut().extend(Extent::All);
    }

    /// Whether the storage of every lane can be read, as far as their journals show.
    pub fn is_readable(&self) -> bool {
        let storage = self.storage();
        let head = |journal: &PathBuf| storage.open(journal)?.file.read_exact_at(&mut [0; RECORD], 0);
        self.journals().iter().all(|journal| head(journal).is_ok())
    }

    /// The journals of the lanes that are known.
    pub fn journals(&self) -> Vec<PathBuf> {
        let recording = &self.state().recording;
        (0..recording.index.heads.len()).map(|lane| recording.journal(lane)).collect()
    }

    /// The path of the file that a place is in, by the first of its names that is there.
    fn path(&self, place: FrameLocation) -> PathBuf {
        let paths = self.state().recording.paths(place);
        first_there(&*self.storage(), paths)
    }

    /// Where its files are opened.
    fn storage(&self) -> Arc<dyn RecordingStorage> {
        self.state().recording.storage().clone()
    }

    /// Whether the recording was ended in order, and all of it is known.
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// Reads from an offset on: how many bytes there were, fewer than the buffer has only at the end. What is
    /// missing, or can't be read, is filled.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let total = (buffer.len() as u64).min(self.length().saturating_sub(offset)) as usize;
        let mut done = 0;
        while done < total {
            // Block by block: neighbours may lie on other disks, or be missing.
            let (block, within, length) = self.piece(offset + done as u64);
            let length = length.min((total - done) as u64) as usize;
            self.read_block(block, within, &mut buffer[done..done + length]);
            done += length;
        }
        total
    }

    /// The file that is all of it, open, if there is one, byte for byte: nothing is missing, and nothing lies
    /// between blocks.
    pub fn only_file(&self) -> Option<File> {
        let (place, all) = self.only_place()?;
        let user = self.recording(|recording| recording.user(place.lane));
        let opened = self.storage().open_of(&self.path(place), user, PageCache::Through).ok()?;
        let file = self.admit(opened).ok()?.into_file()?;
        let length = file.metadata().ok()?.len();
        (length == all).then_some(file)
    }

    /// A place in the only file, and the length that it must have in bytes, by the journals.
    fn only_place(&self) -> Option<(FrameLocation, u64)> {
        let State { recording, blocks, over } = &*self.state();
        let index = &recording.index;
        let place = index.frames.get(0)?;
        let lies = |(number, at): (u64, FrameLocation)| {
            let raw = at.extent.encoding == Encoding::Raw;
            raw && index.file_of(at) == index.file_of(place) && at.extent.offset == blocks.begin(number)
        };
        let whole = index.frames.len() as u64 == blocks.end() && *over;
        let whole = whole && index.frames.iter().all(lies);
        whole.then(|| (place, blocks.length()))
    }

    /// The first block from this one on that is there, by the journals.
    pub fn next_there(&self, block: u64) -> Option<u64> {
        let State { recording, blocks, .. } = &*self.state();
        recording.index.frames.next(block).filter(|next| *next < blocks.end())
    }

    /// The offsets of a block in the view, in bytes.
    pub fn range_of(&self, block: u64) -> Range<u64> {
        let blocks = &self.state().blocks;
        blocks.begin(block)..blocks.begin(block + 1)
    }

    /// Every place where a block is recorded.
    pub fn places(&self, block: u64) -> Vec<FrameLocation> {
        self.state().recording.index.places(block).collect()
    }

    /// The block that has the byte at an offset, the offset in that block, and how many bytes of it follow.
    fn piece(&self, offset: u64) -> (u64, u64, u64) {
        let blocks = &self.state().blocks;
        let block = blocks.at(offset);
        (block, offset - blocks.begin(block), blocks.begin(block + 1) - offset)
    }

    /// Frames of a block; 1 where frames did not come in packets.
    pub fn frames_of_block(&self) -> u64 {
        self.block_size / self.frame_size
    }

    /// The reader of time stamps in the headers of its frames, if they have any.
    pub fn stamps(&self) -> Option<Stamps> {
        self.stamps
    }

    /// Which parts of a range are not there, by what the journals say.
    pub fn filled(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let State { recording, blocks, .. } = &*self.state();
        let range = range.start..range.end.min(blocks.length());
        if range.is_empty() {
            return Vec::new();
        }
        let first = blocks.at(range.start);
        let last = blocks.at(range.end - 1);
        let mut filled = Vec::new();
        let mut next = first;
        let present = recording.index.frames.numbers(first..last + 1);
        for block in present.chain([last + 1]) {
            if block > next {
                filled.push(blocks.begin(next).max(range.start)..blocks.begin(block).min(range.end));
            }
            next = block + 1;
        }
        filled
    }

    /// Checks, after a read, that what was read of a place is what was stored there. In a ring it may have
    /// been overwritten meanwhile: the note of that was in the journal before the first byte was.
    fn stays(&self, place: FrameLocation) -> io::Result<()> {
        let ring = self.recording(|recording| recording.index.heads[place.lane].storing.kind().overwrites);
        if ring && !self.is_over() {
            let look = self.recording(|recording| recording.look_at(place.lane));
            self.take_in(look.read_each()?);
        }
        if ring && self.is_gone(place) { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    /// Whether something of a range was removed or overwritten since it was recorded. Who read it before
    /// asking may have got halves of frames: what was there, and what stands in its place now.
    pub fn is_overwritten(&self, range: Range<u64>) -> bool {
        let State { recording, blocks, .. } = &*self.state();
        let range = range.start..range.end.min(blocks.length());
        let among = |range: Range<u64>| blocks.at(range.start)..blocks.at(range.end - 1) + 1;
        !range.is_empty() && recording.index.removed.count_in(among(range)) > 0
    }

    /// Whether a place was removed or overwritten, by the journals so far.
    fn is_gone(&self, place: FrameLocation) -> bool {
        self.recording(|recording| recording.index.is_gone(place))
    }

    /// Reads a part of a block from the first of its places that can be read, or makes what stands for it.
    fn read_block(&self, block: u64, within: u64, into: &mut [u8]) {
        let places = self.places(block);
        let mut fault = None;
        for place in places {
            match self.read_place(place, within, into) {
                Ok(()) => return,
                // Removed on purpose: no fault of a disk.
                Err(_) if self.is_gone(place) => {}
                Err(error) => fault = fault.or(Some((place, error))),
            }
        }
        if let Some((place, error)) = fault {
            self.note_fault(block, &self.path(place), &error);
        }
        self.fill_block(block, within, into);
    }

    /// Reads a part of a block from one place.
    fn read_place(&self, place: FrameLocation, within: u64, into: &mut [u8]) -> io::Result<()> {
        let extent = place.extent;
        let there = u64::from(extent.size);
        if within + into.len() as u64 > there {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if extent.encoding != Encoding::Raw {
            // A compressed frame can only be decoded from its beginning on.
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

    /// The time stamp in the header of a frame, if the frame is there and its format has one.
    pub fn stamp(&self, frame: u64) -> Option<Stamp> {
        let mut bytes = [0; Stamps::BYTES];
        let offset = frame.checked_mul(self.frame_size)?;
        let (block, within, _) = (offset < self.length()).then(|| self.piece(offset))?;
        let bytes = &mut bytes[..self.frame_size.min(Stamps::BYTES as u64) as usize];
        self.head(block, within, bytes)?;
        self.stamps?.read(bytes, self.frame_size)
    }

    /// The time stamp in the first bytes of a frame, which were read.
    pub fn read_stamp(&self, bytes: &[u8]) -> Option<Stamp> {
        self.stamps?.read(bytes.get(..Stamps::BYTES).unwrap_or(bytes), self.frame_size)
    }

    /// Reads bytes of a block; none if they are not there, so that a stamp is never one that was filled.
    fn head(&self, block: u64, within: u64, into: &mut [u8]) -> Option<()> {
        let places = self.places(block);
        places.into_iter().find_map(|place| self.read_place(place, within, into).ok())
    }

    /// The rate and lanes of the stream by the headers of its frames: looked up again until the rate is
    /// known.
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
