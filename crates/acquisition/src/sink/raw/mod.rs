//! Frames into plain files, and a journal beside them.
//!
//! A lane writes a journal `<name>.<lane>.journal` ([`nilometer_recording::journal`]) and, by
//! [`Storing`](nilometer_model::Storing):
//!
//! - files of N frames, `<name>.<lane>.<file, 8 digits>.raw`;
//! - a growing file, `<name>.<lane>.raw`: one write at a time, each where the file ends;
//! - a ring of the latest frames, `<name>.<lane>.raw`: a file of a fixed size whose oldest part is written again;
//! - with the other lanes one shared file, `<name>.raw`: each frame at its number, whoever writes it;
//! - chunks of N consecutive frames, `<name>.<number among those of all lanes, 8 digits>` ([`Numbering`]);
//! - a file for each position of a scan, `<name>.<position, 8 digits>.raw`, whichever lane has it.
//!
//! A [`Placement`] implements each of these, in a file of `placement`.
//!
//! Frames of a file lie a stride apart: the frame size, or that size rounded up to the alignment that
//! `O_DIRECT` needs. It is rounded up only if little space is lost ([`Spacing`]); no two frames share a page
//! then. The journal states the extent of each frame, so that no reader has to guess the padding. Large frames
//! are a write each; small ones are written together ([`Grouping`]).
//!
//! A frame is written as it is, or encoded: as a CBF file of its own (`.cbf`), or in an HDF5 file.
//!
//! Data are written at the engine's depth. Everything else is a program of [`FileStep`]s, one at a time and in
//! order. The lane makes the next file before it is needed; it syncs a full one, notes it as durable, and
//! closes it.
//!
//! A frame is acknowledged when its record is in the journal; if files are put whole, not before its file is.
//! If the storage has no room for a next file ([`Gauge`]), the lane makes none, and ends in order with those it
//! has.
//!
//! A growing or shared file and a ring are made once. The lane then does the same for each part, except that it
//! makes and closes no file.

mod checkpoint;
mod chunks;
mod driving;
mod file_steps;
mod files;
mod frame_write;
mod gauge;
mod grouping;
mod held;
mod index_steps;
mod layout;
mod log;
mod numbering;
mod placement;
mod scattered;
mod settling;
mod writing;

use std::collections::VecDeque;

use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::Nanos;
use nilometer_recording::journal::{
    Entry, RECORD, contents_entries, origin_entries, plugin_entries, stream_entries,
};
use nilometer_ring::{FileIndex, FileOffset, Frame, WrittenFrame};
use nilometer_storage::{Arena, Buffer, Errno, InFlightTable, OpKind, Operation};

use checkpoint::{Undurable, Unlogged};
use chunks::Chunks;
use file_steps::{FileStep, Program};
use files::Files;
use frame_write::{Carried, EncodedSlot, FrameWrite};
pub use gauge::Gauge;
use grouping::{FrameGroup, Grouping};
use held::HeldFile;
pub(crate) use layout::OPEN;
use layout::STREAMER;
pub use layout::{Durability, FILE_SLOTS, RawLayout, Spacing, Streamer};
use log::Log;
pub use numbering::Numbering;
use placement::{LastFile, Placement};

/// A lane's sink: it turns frames into operations on files. It has the shape of a workload, one level up, and is
/// as pure.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is independent of the others")]
pub struct LaneFiles {
    layout: RawLayout,
    placement: Box<dyn Placement>,
    gauge: Gauge,
    files: Files,
    log: Log,
    program: Program,
    /// Chunks of the lane, if its frames go into chunks.
    chunks: Option<Chunks>,
    /// Index of the frames, if its files have one.
    index: Option<Box<dyn FileIndex>>,
    waiting: Option<Frame>,
    /// Collects small frames.
    grouping: Option<Grouping>,
    /// No frame waits, so the collected ones are written.
    flush: bool,
    in_flight: InFlightTable<FrameWrite>,
    /// Bytes of frames as they were written.
    written: u64,
    /// Frames written into whole files that the storage has not yet confirmed.
    unarrived: Vec<WrittenFrame>,
    held: Option<HeldFile>,
    /// A chunk ended before its lease did: the next frame begins another.
    lease_goes_on: bool,
    /// Frames written to their file, with records queued for the journal, oldest first.
    unlogged: VecDeque<Unlogged>,
    /// Frames acknowledged and not yet durable, oldest first. Empty if files are never synced.
    undurable: VecDeque<Undurable>,
    /// Time at which frames that are not yet durable have to be.
    checkpoint: Option<Nanos>,
    /// Frames that came back after the sink failed.
    returned: Vec<Frame>,
    scratch: Vec<Buffer>,
    failed: Option<Errno>,
    /// End of the last frame in the current file.
    end: u64,
    /// The file is or will be open a second time, for a block that can't go past the cache.
    through: bool,
    /// The first file for which there was no room.
    no_room_for: Option<u64>,
    finishing: bool,
}

/// Bytes of a journal beside the records of a part.
const JOURNAL_SPARE: u64 = 1 << 16;
/// Buffers for names and journal records.
const SCRATCH: usize = 4;
const SCRATCH_SIZE: usize = 4096;
/// Size of such a buffer if frames are grouped: thousands of frames need as many records at once.
const SCRATCH_OF_GROUPS: usize = 1 << 16;

/// Most bytes of the buffers and lists of a lane with this layout, without the frames in its ring.
pub(crate) fn lane_memory(layout: &RawLayout) -> u64 {
    let scratch = if layout.together > 0 || layout.hdf5.is_some() { SCRATCH_OF_GROUPS } else { SCRATCH_SIZE };
    let groups = grouping::memory(layout);
    (SCRATCH * scratch) as u64 + groups + checkpoint::lists_memory(layout)
}

impl LaneFiles {
    /// Begins a new recording; no file is made yet.
    pub fn new(mut layout: RawLayout, gauge: Gauge) -> Self {
        if layout.head.storing.is_many_files() {
            layout.hdf5 = layout.hdf5.map(Hdf5Contents::of_parts);
        }
        let grouping = Grouping::of(&layout);
        let placement = placement::of(&layout);
        let index = layout.index();
        let large = grouping.is_some() || index.is_some();
        let size = if large { SCRATCH_OF_GROUPS } else { SCRATCH_SIZE };
        let (_, scratch) = Arena::shared_out(SCRATCH, size);
        let mut sink = LaneFiles {
            files: Files::new(layout.head.frames_per_file),
            log: Log::default(),
            program: Program::default(),
            chunks: (!placement.makes_ahead()).then(|| Chunks::new(Numbering::default(), layout.head.lane)),
            index,
            waiting: None,
            grouping,
            flush: false,
            in_flight: InFlightTable::default(),
            written: 0,
            unarrived: Vec::new(),
            held: None,
            lease_goes_on: false,
            unlogged: VecDeque::new(),
            undurable: VecDeque::new(),
            checkpoint: None,
            returned: Vec::new(),
            scratch,
            failed: None,
            end: 0,
            through: false,
            no_room_for: None,
            finishing: false,
            placement,
            layout,
            gauge,
        };
        sink.program.add([FileStep::CreateJournal, FileStep::Note(Entry::Head(sink.layout.head))]);
        let clock = sink.layout.clock;
        sink.program.add(sink.layout.boot.map(|id| FileStep::Note(Entry::Boot { id, clock })));
        let origin = sink.layout.origin.iter().flat_map(origin_entries);
        sink.program.add(origin.map(FileStep::Note));
        let stream = sink.layout.stream.iter().flat_map(|stream| stream_entries(&stream.text()));
        sink.program.add(stream.map(FileStep::Note));
        let contents = sink.layout.hdf5.iter().flat_map(|hdf5| contents_entries(&hdf5.text()));
        sink.program.add(contents.map(FileStep::Note));
        let plugin = sink.layout.hdf5.as_ref().and_then(Hdf5Contents::plugin);
        sink.program.add(plugin.into_iter().flat_map(plugin_entries).map(FileStep::Note));
        if sink.placement.makes_ahead() {
            sink.add_make(0);
            sink.program.add([FileStep::SyncNames]);
            sink.add_make(1);
        } else {
            sink.program.add([FileStep::SyncNames, FileStep::Room(0)]);
        }
        sink
    }

    /// Takes the numbers of its chunks from here, shared with other lanes.
    #[must_use]
    pub fn numbered(mut self, numbering: Numbering) -> Self {
        if let Some(chunks) = &mut self.chunks {
            chunks.numbering = numbering;
        }
        self
    }

    /// The last file whose frames survive the loss of power; files before it do too, unless they were removed.
    pub fn durable(&self) -> Option<u64> {
        self.program.durable()
    }

    /// Number of journal records whose frames survive a loss of power too, in any file.
    pub fn durable_records(&self) -> u64 {
        self.program.durable_records()
    }

    /// Returns true if this operation writes a frame.
    pub fn writes_frame(operation: &Operation) -> bool {
        operation.kind == OpKind::Write && operation.file != Log::SLOT && operation.file != STREAMER
    }

    /// Adds the steps that make a file, or another part of an only file.
    fn add_make(&mut self, file: u64) {
        if self.placement.reserves_all() && self.no_room_for.is_some() {
            // Existing parts stay.
            return;
        }
        self.program.add(self.placement.make(file));
    }

    /// Adds the steps for a file whose frames are all issued.
    fn add_complete(&mut self, file: u64) {
        self.program.add(self.placement.complete(file));
    }

    /// Adds the steps for the last file, or for a chunk that is over.
    fn add_end(&mut self) {
        let (file, frames) = self.files.last();
        let made = self.is_made(file);
        let next_made = self.is_made(file + 1);
        let end = self.end;
        self.program.add(self.placement.end(LastFile { file, frames, end, made, next_made }));
    }

    /// Returns true if there was room for this file, so that it is made or will be.
    fn is_made(&self, file: u64) -> bool {
        self.no_room_for.is_none_or(|first| file < first)
    }

    /// Returns true if the storage takes another file. Files made before and not yet full have their space
    /// reserved, or still need as much as a file.
    fn has_room_for(&mut self, file: u64) -> bool {
        let unfilled = self.placement.unfilled(file, self.files.last().0);
        let room =
            self.no_room_for.is_none() && self.gauge.claim(self.layout.file_size().saturating_mul(unfilled));
        if !room {
            self.no_room_for.get_or_insert(file);
        }
        room
    }

    /// Returns true if the journal may grow by the records of another part of a ring; the part takes no other
    /// space.
    fn has_room_for_records(&mut self, file: u64) -> bool {
        let records = self.layout.head.frames_per_file.saturating_mul(2 * RECORD as u64);
        let room = self.no_room_for.is_none() && self.gauge.claim(records.saturating_add(JOURNAL_SPARE));
        if !room {
            self.no_room_for.get_or_insert(file);
        }
        room
    }

    /// The next step as an operation, if it may be done now. Notes and other steps without an operation are
    /// done here.
    fn step(&mut self, now: Nanos) -> Option<Operation> {
        self.add_move();
        loop {
            let step = self.program.next(&self.files, &self.log)?;
            match step {
                FileStep::Note(entry) => self.note(entry),
                FileStep::Overwrite(file, _) if self.has_room_for_records(file) => self.ready(file),
                FileStep::Overwrite(..) => {}
                FileStep::Ready(file) => self.ready(file),
                FileStep::Room(file) if self.has_room_for(file) => self.make_room(file),
                FileStep::Room(file) => self.program.cancel(file),
                FileStep::Name(file) => self.name(file),
                FileStep::Moved(file) => self.moved(file),
                FileStep::WriteIndex(file) => {
                    if let Some(operation) = self.write_of_index(file) {
                        return Some(operation);
                    }
                }
                FileStep::SealIndex(file) if !self.may_seal(file) => {
                    self.program.put_back(step);
                    return None;
                }
                step if step.is_of_index() => {
                    if let Err(errno) = self.step_of_index(step) {
                        self.failed = Some(errno);
                        self.fail();
                        return None;
                    }
                }
                FileStep::Settle if self.is_settled(now) => {}
                FileStep::Settle => {
                    self.program.put_back(FileStep::Settle);
                    return None;
                }
                step => {
                    let Some(buffer) = self.scratch.pop() else {
                        self.program.put_back(step);
                        return None;
                    };
                    return Some(self.start(step, buffer));
                }
            }
        }
    }

    fn note(&mut self, entry: Entry) {
        self.log.add(entry);
        self.program.noted(entry, self.log.added());
    }

    /// The next operation, if one may be issued now.
    fn issue(&mut self, now: Nanos) -> Option<(Operation, Nanos)> {
        let other = self.journal().or_else(|| self.step(now)).or_else(|| self.journal());
        let other = other.map(|operation| (operation, now)).or_else(|| self.write());
        // A frame may need a step to be done first.
        other.or_else(|| self.step(now).map(|operation| (operation, now)))
    }

    fn journal(&mut self) -> Option<Operation> {
        if !self.program.journal_is_open() || !self.log.has_more() {
            return None;
        }
        self.scratch.pop().map(|buffer| self.log.write(buffer))
    }
}
