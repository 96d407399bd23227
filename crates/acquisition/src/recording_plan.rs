//! How a recording is laid out: decided here, once, for the recorder of packets, for simulated instruments, for evaluations
//! and for copies, so that what is measured is what will run, in its layout too. Pure: from what is recorded, where, and
//! what was wished, to lanes, files and memory.

mod slots;
mod whole_files;

use std::fmt;

use nilometer_model::{
    Bytes, Format, Instrument, Picture, Storing, TargetDescription, packets::frames_of_block,
};
use nilometer_recording::journal::Head;
use nilometer_ring::{MemoryPart, MemoryPlan};
use nilometer_storage::{Arena, buffer::ALIGNMENT};

use crate::sink::{Durability, RawLayout, Spacing};
use slots::SlotMemory;
use whole_files::FileRules;

/// What is stored: an instrument's frames, or blocks of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFrames {
    /// Bytes of each.
    pub size: u64,
    /// How each is written.
    pub format: Format,
    /// Into which files they go. Of packets the plan decides: see [`RecordingPlan::of`].
    pub storing: Storing,
    /// How many go into a file, where that is said.
    pub per_file: Option<u64>,
    /// So many consecutive ones are in one file: the channels of an image, or a line of a scan.
    pub together: u64,
    /// Of pictures, what the header of a file says.
    pub picture: Option<Picture>,
    /// They come as packets: the plan decides how they are stored.
    pub packets: bool,
    /// They may begin at pages of a file, with something between them: not blocks of packets, which are one stream.
    pub padded: bool,
    /// Bytes that a slot of the ring has at the least: a frame may come longer than it is stored.
    pub slot_min: u64,
}

impl StoredFrames {
    /// The frames of an instrument, as it says that they are stored.
    pub fn of(instrument: &Instrument) -> Self {
        StoredFrames {
            size: instrument.frame_size().0,
            format: instrument.recording.format,
            storing: instrument.recording.storing,
            per_file: instrument.recording.frames_per_file,
            together: instrument.recording.scan.map_or(1, |scan| scan.line()),
            picture: instrument.picture(),
            packets: instrument.packets.is_some(),
            padded: true,
            slot_min: 0,
        }
    }

    /// Blocks of packets whose frames have so many bytes: in order and without gaps, as one stream.
    pub fn blocks(frame_size: usize, format: Format) -> Self {
        let frames = frames_of_block(frame_size, ALIGNMENT).or_else(|| frames_of_block(frame_size, 1));
        StoredFrames {
            size: frames.unwrap_or(1) * frame_size as u64,
            format,
            storing: Storing::Shared,
            per_file: None,
            together: 1,
            picture: None,
            packets: true,
            padded: false,
            slot_min: 0,
        }
    }

    /// Blocks of this size.
    pub fn blocks_of(size: u64, format: Format) -> Self {
        StoredFrames { size, ..StoredFrames::blocks(1, format) }
    }
}

/// What stays of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// All of it.
    #[default]
    All,
    /// The latest frames: at least so many bytes of them, in all directories together.
    Latest(Bytes),
}

/// What is wished for, beside what is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutOptions {
    /// Memory between what delivers frames and the storage.
    pub buffer: Bytes,
    /// What stays.
    pub retention: Retention,
    /// Writers in each directory; as suits the storage, if none.
    pub writers: Option<u32>,
    /// Bytes of a chunk of packets.
    pub chunk_size: Option<Bytes>,
    /// What stays free on each storage.
    pub reserve: Bytes,
    /// A checksum of each frame is kept.
    pub checksums: bool,
    /// Frames that are larger begin in HDF5 files at multiples of this; of the stripe size, where storage has one, if none.
    pub align: Option<Bytes>,
}

impl LayoutOptions {
    /// With so much memory: all stays, and nothing is left free.
    pub fn with_buffer(buffer: Bytes) -> Self {
        LayoutOptions {
            buffer,
            retention: Retention::All,
            writers: None,
            chunk_size: None,
            reserve: Bytes(0),
            checksums: false,
            align: None,
        }
    }
}

/// Frames go into files of about this size, and one file is synced by parts of it, unless another size is asked for: large
/// enough that making and syncing one costs little, small enough that little is not yet durable.
pub const PART: u64 = 256 << 20;
/// Parts are so small that little storage is left when no other one fits: this many fit at first.
const PARTS: u64 = 16;
/// A file that is put whole stays in memory until it is: it is smaller, so that little is not acknowledged.
const WHOLE: u64 = 64 << 20;
/// Of what is kept of a recording, one part at a time is overwritten: these are small enough that little is.
const PARTS_KEPT: u64 = 64;
/// Smaller ones would be synced so often that it holds up a disk.
const PART_LEAST: u64 = 16 << 20;
/// Where frames go through the cache, a write is a copy by one processor, and the writes of one file exclude each other:
/// two lanes copy at the same time.
const BUFFERED_WRITERS: u32 = 2;

/// Frames that wait for what says which dataset they go into have one slot in so many, and no more than are of use.
const WAITING_SHARE: u64 = 4;
const WAITING_MAX: u64 = 1024;

/// A recording as it is laid out: the same in every directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingPlan {
    frames: StoredFrames,
    spacing: Spacing,
    /// Or of a part, where there is one file.
    frames_per_file: u64,
    /// Full files, or parts, that stay in a lane.
    keep: Option<u64>,
    directories: u32,
    writers: u32,
    buffer: Bytes,
    checksums: bool,
    align: u64,
    /// What all of the storage can do.
    storage: FileRules,
    /// It was said how many frames a file has.
    size_was_said: bool,
}

impl RecordingPlan {
    /// For frames onto directories that are described so, of which there is at least one.
    ///
    /// An instrument's frames are stored as it says; in HDF5 they go into one file, or into one for each N of their numbers. Packets go into one growing file; into chunks scattered over the
    /// directories, if there are several, or if files are put whole; and where only the latest stay, into a file in each that is
    /// overwritten from its beginning, or into files of which the oldest are removed.
    pub fn of(frames: StoredFrames, onto: &[TargetDescription], options: &LayoutOptions) -> Self {
        let directories = onto.len().max(1) as u32;
        let storage = FileRules::of(onto);
        let storing = match frames.format {
            Format::Hdf5 => {
                storing_of_hdf5(frames, directories.saturating_mul(options.writers.unwrap_or(1)), options)
            }
            _ if frames.packets => storing_of_packets(directories, options, storage),
            _ => frames.storing,
        };
        let frames = StoredFrames { storing, ..frames };
        let spacing = spacing(frames, onto);
        let writers = options.writers.unwrap_or_else(|| suited_writers(frames, spacing, directories));
        let mut plan = RecordingPlan {
            frames,
            spacing,
            frames_per_file: 1,
            keep: None,
            directories,
            writers,
            buffer: options.buffer,
            checksums: options.checksums,
            align: alignment(onto, options),
            storage,
            size_was_said: frames.per_file.or(options.chunk_size.map(|size| size.0)).is_some(),
        };
        let together = if frames.storing.is_many_files() { frames.together.max(1) } else { 1 };
        plan.frames_per_file = (plan.suited_file(onto, options) / together).max(1) * together;
        plan.keep = plan.kept(options);
        plan
    }

    /// Frames of a file, or of a part of the only one.
    fn suited_file(&self, onto: &[TargetDescription], options: &LayoutOptions) -> u64 {
        let usual = self.usual_file(onto, options);
        if !self.storage.whole || self.size_was_said {
            return usual;
        }
        let room = self.slots() as u64 / (2 * u64::from(self.lanes()));
        usual.min(room).min(WHOLE / self.spacing.stride).max(1)
    }

    /// The same where files may be of any size.
    fn usual_file(&self, onto: &[TargetDescription], options: &LayoutOptions) -> u64 {
        let Spacing { stride, .. } = self.spacing;
        let room = onto.iter().map(|onto| onto.space.free.0.saturating_sub(options.reserve.0)).min();
        let of_all = PART.min(room.unwrap_or(0) / PARTS);
        if !self.frames.packets || self.frames.format == Format::Hdf5 {
            let part = match options.retention {
                Retention::Latest(keep) if self.frames.packets => self.part_of_kept(keep),
                _ if self.frames.storing.kind().many_files => PART,
                _ => of_all,
            };
            let suited = if self.frames.format == Format::Cbf { 1 } else { part / stride };
            let asked = self.frames.per_file.unwrap_or(suited).max(1);
            let lanes_wait = self.frames.format == Format::Hdf5 && self.lanes() > 1;
            if self.frames.storing.is_chunked() && (self.frames.per_file.is_none() || lanes_wait) {
                // A chunk waits for each lane while the lanes before are busy.
                let room = self.slots() as u64 / (2 * u64::from(self.lanes()));
                return asked.min(room).max(1);
            }
            return asked;
        }
        let size = match (options.retention, self.frames.storing) {
            (Retention::Latest(keep), _) => self.part_of_kept(keep),
            (Retention::All, Storing::Scattered) => options.chunk_size.map_or(PART, |size| size.0),
            (Retention::All, _) => of_all,
        };
        (size / stride).max(1)
    }

    /// Bytes of a part where only so many of all parts stay.
    fn part_of_kept(&self, keep: Bytes) -> u64 {
        let share = keep.0.div_ceil(u64::from(self.directories));
        (share / PARTS_KEPT).max(PART_LEAST.min(share / PARTS)).min(PART)
    }

    /// Full files or parts that stay in a lane.
    fn kept(&self, options: &LayoutOptions) -> Option<u64> {
        let Retention::Latest(keep) = options.retention else { return None };
        let share = keep.0 / u64::from(self.lanes());
        match self.frames.storing {
            // The last may have a frame only, and takes the place of a full one.
            Storing::Files if self.frames.packets => Some(share.div_ceil(self.file_size()) + 1),
            Storing::Files => Some((share / self.file_size()).max(1)),
            // The last part may end anywhere.
            Storing::Ring => Some(keep.0.div_ceil(u64::from(self.lanes())).div_ceil(self.file_size()) + 1),
            _ => None,
        }
    }

    /// Looks whether each of several writers finds frames to write: those that are together, a line of a scan, are in one file,
    /// which one writer has.
    ///
    /// # Errors
    /// What can be done, if one has the whole buffer and the others wait.
    pub fn check_lines(&self) -> Result<(), String> {
        let lanes = u64::from(self.lanes());
        let line = self.frames.together;
        let needed = self.buffer_for((2 * lanes).saturating_mul(line));
        let is_chunked = self.frames.format == Format::Hdf5 && self.frames.storing.is_chunked();
        if !is_chunked || lanes < 2 || line < 2 || needed <= self.buffer {
            return Ok(());
        }
        let buffer = self.buffer;
        Err(format!(
            "--buffer {buffer}: {line} frames that belong together (a line of the scan, or the channels of an image) are \
             written into one file by one of {lanes} writers, and the others find nothing to do in so little memory: it needs \
             {needed}, or one directory and one writer"
        ))
    }

    /// Into which files frames go.
    pub fn storing(&self) -> Storing {
        self.frames.storing
    }

    /// How frames lie in files and in memory.
    pub fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// Writers in all directories.
    pub fn lanes(&self) -> u32 {
        self.directories.saturating_mul(self.writers)
    }

    /// Writers in each directory.
    pub fn writers(&self) -> u32 {
        self.writers
    }

    /// Slots of the ring between what delivers frames and the storage: at least two, and no more than the buffer has room for
    /// with all that the recorder keeps beside each.
    pub fn slots(&self) -> usize {
        self.slot_memory().slots(self.buffer) as usize
    }

    /// The smallest buffer that has so many slots.
    pub fn buffer_for(&self, slots: u64) -> Bytes {
        self.slot_memory().buffer_for(slots)
    }

    fn slot_memory(&self) -> SlotMemory {
        let alignment = self.spacing.alignment();
        let bytes = self.spacing.stride.max(self.frames.slot_min);
        let slot = Arena::distance(bytes as usize, alignment) as u64;
        SlotMemory { slot, is_listed: self.frames.storing.is_chunked() || self.storage.whole }
    }

    /// Memory of the ring's slots.
    pub fn memory(&self) -> Bytes {
        Bytes(self.slots() as u64 * self.slot_memory().slot)
    }

    /// The account of the ring: its slots, and what is kept beside them.
    pub fn ring_memory(&self) -> MemoryPlan {
        let beside = self.slots() as u64 * self.slot_memory().beside();
        let ring = MemoryPlan::default().with(MemoryPart::Ring, self.memory().0);
        ring.with(MemoryPart::SlotHeaders, beside)
    }

    /// Bytes of a full file, or of a part of the only one.
    pub fn file_size(&self) -> u64 {
        self.frames_per_file.saturating_mul(self.spacing.stride)
    }

    /// Bytes of the file that only the latest frames stay in, and two parts more that are being overwritten.
    pub fn ring_size(&self) -> Option<Bytes> {
        let overwrites = self.frames.storing.kind().overwrites;
        self.keep.filter(|_| overwrites).map(|parts| Bytes((parts + 2).saturating_mul(self.file_size())))
    }

    /// Whether old frames make room for new ones: then it goes on for as long as frames come.
    pub fn is_bounded(&self) -> bool {
        self.keep.is_some()
    }

    /// The most that lies in a directory at once of so many frames: what is kept and what is being filled, or all of them.
    pub fn space(&self, frames: u64) -> Bytes {
        let lanes = u64::from(self.writers);
        let open = if self.frames.storing.kind().overwrites { 2 } else { 3 };
        match self.keep {
            Some(keep) => Bytes((lanes * (keep + open)).saturating_mul(self.file_size())),
            None => Bytes(frames.saturating_mul(self.spacing.stride)),
        }
    }

    /// Files that lie in a directory at once of so many frames, the journals included.
    pub fn files(&self, frames: u64) -> u64 {
        let many = self.frames.storing.is_many_files();
        // A chunk may be in two pieces, where one writer leaves it to another.
        let chunked = self.frames.storing.is_chunked();
        let chunks = if chunked { 2 * frames.div_ceil(self.frames_per_file) } else { 0 };
        let each = self.keep.filter(|_| many).map_or(2, |keep| keep + 4);
        u64::from(self.writers) * each + chunks
    }

    /// A lane of the recording of this number and name.
    pub fn layout(&self, name: &str, recording: u64, lane: u32) -> RawLayout {
        let head = Head {
            recording,
            lane,
            lanes: self.lanes(),
            frame_size: self.frames.size,
            stride: self.spacing.stride,
            frames_per_file: self.frames_per_file,
            storing: self.frames.storing,
            format: self.frames.format,
        };
        let suited = RawLayout::suited(name.into(), head, self.spacing.direct);
        let durability = match self.storage {
            FileRules { syncs: false, .. } => Durability::Never,
            FileRules { whole: true, .. } => Durability::EachFile,
            _ if self.frames.packets => Durability::EachFile,
            _ => suited.durability,
        };
        RawLayout {
            keep: self.keep,
            durability,
            checksums: self.checksums,
            align: self.align,
            picture: self.frames.picture,
            waiting: (self.slots() as u64 / WAITING_SHARE).min(WAITING_MAX),
            whole_files: self.storage.whole,
            checkpoint: if self.storage.whole { self.held_at_most() } else { suited.checkpoint },
            ..suited
        }
    }
}

/// Past the cache only where that is possible on each.
fn spacing(frames: StoredFrames, onto: &[TargetDescription]) -> Spacing {
    let StoredFrames { size, storing, format, padded, .. } = frames;
    let each = onto.iter().map(|onto| Spacing::suited(onto, size, storing, format));
    let spacing = each.min_by_key(|spacing| spacing.direct);
    let spacing = spacing.unwrap_or(Spacing { direct: false, stride: size });
    if padded { spacing } else { spacing.unpadded(size) }
}

/// What was asked for, or the largest stripe of these.
fn alignment(onto: &[TargetDescription], options: &LayoutOptions) -> u64 {
    let stripes = onto.iter().filter_map(|onto| onto.stripe_size).max();
    options.align.or(stripes).map_or(0, |align| align.0)
}

/// One file, or files of which those are removed that need not stay. A file of N frames has those of its numbers, whichever
/// came; several lanes have such files too, so that a file over all of them has few parts.
fn storing_of_hdf5(frames: StoredFrames, lanes: u32, options: &LayoutOptions) -> Storing {
    match (options.retention, frames.per_file) {
        (Retention::Latest(_), _) => Storing::Files,
        (Retention::All, None) if lanes == 1 => Storing::Growing,
        (Retention::All, _) => Storing::Positions,
    }
}

fn storing_of_packets(directories: u32, options: &LayoutOptions, storage: FileRules) -> Storing {
    match options.retention {
        Retention::Latest(_) if storage.whole => Storing::Files,
        Retention::Latest(_) => Storing::Ring,
        Retention::All if directories > 1 || storage.whole => Storing::Scattered,
        Retention::All => Storing::Shared,
    }
}

/// Packets have one stream to be written. Frames that go through the cache are copied by two writers, unless there are
/// several directories with one each; who shares a file is one of two.
fn suited_writers(frames: StoredFrames, spacing: Spacing, directories: u32) -> u32 {
    let shared = frames.storing.kind().one_for_all;
    // One file that readers know, rather than two.
    let copied = !spacing.direct && directories == 1 && frames.format != Format::Hdf5;
    if !frames.packets && (shared || copied) { BUFFERED_WRITERS } else { 1 }
}

impl fmt::Display for RecordingPlan {
    /// In a line: files, writers, through the cache or past it, memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Bytes(self.file_size());
        match (self.ring_size(), self.frames.storing) {
            (None, Storing::Growing) if self.frames.format == Format::Hdf5 => {
                write!(f, "one HDF5 file, synced every {file}")?;
            }
            (None, _) if self.frames.format == Format::Hdf5 => {
                let frames = self.frames_per_file;
                let plural = if frames == 1 { "" } else { "s" };
                write!(f, "HDF5 files of {frames} frame{plural}")?;
            }
            (Some(size), _) => write!(f, "one file of {size} that is overwritten from its beginning")?,
            (None, Storing::Shared) if self.writers == 1 => {
                write!(f, "one growing file, synced every {file}")?;
            }
            (None, Storing::Shared | Storing::Growing) => {
                write!(f, "{}, synced every {file}", self.frames.storing.kind().words)?;
            }
            (None, storing) => write!(f, "{}, of {file} each", storing.kind().words)?,
        }
        if let Some(keep) = self.keep.filter(|_| self.ring_size().is_none()) {
            write!(f, ", the last {} kept", keep * u64::from(self.lanes()))?;
        }
        let cache = if self.spacing.direct { "past the cache" } else { "through the cache" };
        let writers = self.lanes();
        let plural = if writers == 1 { "" } else { "s" };
        write!(f, "; {cache}, {writers} writer{plural}, {} of memory", self.memory())
    }
}

#[cfg(test)]
mod tests;
