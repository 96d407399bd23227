//! Plans the layout of a recording. Only this module decides it, for the packet recorder, simulated
//! instruments, evaluations and copies, so an evaluation measures the layout that a recording will have.
//!
//! Pure: it computes lanes, files and memory from the frames, the directories and the options.

mod slots;
mod stored_frames;
mod whole_files;

pub use stored_frames::StoredFrames;

use std::fmt;

use nilometer_model::{Bytes, Format, Storing, TargetDescription};
use nilometer_recording::journal::Head;
use nilometer_ring::{MemoryPart, MemoryPlan};
use nilometer_storage::Arena;

use crate::sink::{Durability, RawLayout, Spacing};
use slots::SlotMemory;
use whole_files::FileRules;

/// The part of a recording to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// Keep all frames.
    #[default]
    All,
    /// Keep the latest frames: at least this number of bytes, in all directories together.
    Latest(Bytes),
}

/// Options for the layout of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutOptions {
    /// Memory between the source of frames and the storage.
    pub buffer: Bytes,
    /// The part of the recording to keep.
    pub retention: Retention,
    /// Writers in each directory. `None` lets the plan choose.
    pub writers: Option<u32>,
    /// Bytes of a chunk of packets.
    pub chunk_size: Option<Bytes>,
    /// Space to leave free on each storage.
    pub reserve: Bytes,
    /// True to keep a checksum of each frame.
    pub checksums: bool,
    /// Alignment of larger frames in HDF5 files. `None` aligns them to the storage's stripe size, if it has
    /// one.
    pub align: Option<Bytes>,
    /// True if the caller completes an HDF5 file that all writers share, once they have ended. Otherwise each
    /// writer has files of its own, even if the frames' settings ask for a shared one.
    pub completes_shared: bool,
}

impl LayoutOptions {
    /// Creates options with this buffer that keep all frames and leave no space free.
    pub fn with_buffer(buffer: Bytes) -> Self {
        LayoutOptions {
            buffer,
            retention: Retention::All,
            writers: None,
            chunk_size: None,
            reserve: Bytes(0),
            checksums: false,
            align: None,
            completes_shared: false,
        }
    }
}

/// Default size of a file or, if there is only one file, of the parts in which it is synced. Larger ones make
/// creating and syncing a file cheap, smaller ones leave fewer data not yet durable.
pub const PART: u64 = 256 << 20;
/// Parts shrink so that at least this number of them fits at first. Little storage is then left when no other
/// one fits.
const PARTS: u64 = 16;
/// Size limit of a file that the storage takes only as a whole. The file stays in memory until then, so a
/// smaller limit leaves fewer frames unacknowledged.
const WHOLE: u64 = 64 << 20;
/// Number of parts that the kept frames are divided into. One part at a time is overwritten, so small parts
/// waste little.
const PARTS_KEPT: u64 = 64;
/// Least size of a part. Syncing smaller ones holds up a disk.
const PART_LEAST: u64 = 16 << 20;
/// Number of writers for buffered writes. A write through the page cache is a copy by one processor, and writes
/// to one file exclude each other. Two lanes therefore copy at the same time.
const BUFFERED_WRITERS: u32 = 2;

/// Frames that wait to learn their dataset take at most one slot in `WAITING_SHARE`, and at most `WAITING_MAX`.
const WAITING_SHARE: u64 = 4;
const WAITING_MAX: u64 = 1024;

/// The layout of a recording, the same in every directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingPlan {
    frames: StoredFrames,
    spacing: Spacing,
    /// Frames of a file, or of a part if there is only one file.
    frames_per_file: u64,
    /// Number of full files, or parts, to keep in a lane.
    keep: Option<u64>,
    directories: u32,
    writers: u32,
    buffer: Bytes,
    checksums: bool,
    align: u64,
    /// Rules that all of the storage obeys.
    storage: FileRules,
    /// True if the user set the number of frames per file.
    size_was_said: bool,
}

impl RecordingPlan {
    /// Plans a recording of these frames onto the described directories, of which there must be at least one.
    ///
    /// An instrument's frames are stored with its settings. In HDF5 they go into one file, or into one file for
    /// each N frame numbers.
    ///
    /// Packets go into one growing file. With several directories, or if the storage takes only whole files,
    /// they go into chunks scattered over the directories. To keep only the latest, each directory has a file
    /// that is overwritten from its beginning, or files of which the oldest are removed.
    pub fn of(frames: StoredFrames, onto: &[TargetDescription], options: &LayoutOptions) -> Self {
        let directories = onto.len().max(1) as u32;
        let storage = FileRules::of(onto);
        let storing = match frames.format {
            Format::Hdf5 => storing_of_hdf5(frames, directories, options),
            _ if frames.packets => storing_of_packets(directories, options, storage),
            Format::Cbf => storing_of_pictures(frames, options),
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

    /// Returns the frames of a file, or of a part of the only file.
    fn suited_file(&self, onto: &[TargetDescription], options: &LayoutOptions) -> u64 {
        let usual = self.usual_file(onto, options);
        if !self.storage.whole || self.size_was_said {
            return usual;
        }
        let room = self.slots() as u64 / (2 * u64::from(self.lanes()));
        usual.min(room).min(WHOLE / self.spacing.stride).max(1)
    }

    /// Returns the same for storage without limits on files.
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
                // A chunk may wait for each lane while the lanes before it are busy.
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

    /// Bytes of a part if the recording keeps only `keep` bytes.
    fn part_of_kept(&self, keep: Bytes) -> u64 {
        let share = keep.0.div_ceil(u64::from(self.directories));
        (share / PARTS_KEPT).max(PART_LEAST.min(share / PARTS)).min(PART)
    }

    /// Number of full files or parts to keep in a lane.
    fn kept(&self, options: &LayoutOptions) -> Option<u64> {
        let Retention::Latest(keep) = options.retention else { return None };
        let share = keep.0 / u64::from(self.lanes());
        match self.frames.storing {
            // The last file may have one frame only, and takes the place of a full one.
            Storing::Files if self.frames.packets => Some(share.div_ceil(self.file_size()) + 1),
            Storing::Files => Some((share / self.file_size()).max(1)),
            // The last part may end anywhere.
            Storing::Ring => Some(keep.0.div_ceil(u64::from(self.lanes())).div_ceil(self.file_size()) + 1),
            _ => None,
        }
    }

    /// Checks that each of several writers finds frames to write. Frames of one line of a scan go into one
    /// file, which one writer has.
    ///
    /// # Errors
    /// If one writer would take the whole buffer while the others wait. The message names the remedies.
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
            "--buffer {buffer}: too small for {lanes} writers of {line} frames each (a scan line, or all channels): \
             give {needed}, or one directory and one writer"
        ))
    }

    /// Kind of files for the frames.
    pub fn storing(&self) -> Storing {
        self.frames.storing
    }

    /// Spacing of frames in files and in memory.
    pub fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// Number of writers in all directories.
    pub fn lanes(&self) -> u32 {
        self.directories.saturating_mul(self.writers)
    }

    /// Number of writers in each directory.
    pub fn writers(&self) -> u32 {
        self.writers
    }

    /// Number of slots of the ring between the source of frames and the storage. It is at least two, and at
    /// most as many as fit in the buffer together with the recorder's data about each slot.
    pub fn slots(&self) -> usize {
        self.slot_memory().slots(self.buffer) as usize
    }

    /// Returns the smallest buffer with this number of slots.
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

    /// Returns the memory account of the ring: its slots, and the recorder's data about them.
    pub fn ring_memory(&self) -> MemoryPlan {
        let beside = self.slots() as u64 * self.slot_memory().beside();
        let ring = MemoryPlan::default().with(MemoryPart::Ring, self.memory().0);
        ring.with(MemoryPart::SlotHeaders, beside)
    }

    /// Bytes of a full file, or of a part of the only file.
    pub fn file_size(&self) -> u64 {
        self.frames_per_file.saturating_mul(self.frame_room())
    }

    /// Bytes of a file that a frame takes at most. A frame in HDF5 that is at least as large as a stripe begins
    /// and ends at one.
    fn frame_room(&self) -> u64 {
        let stride = self.spacing.stride;
        let is_aligned = self.frames.format == Format::Hdf5 && self.align > 0 && stride >= self.align;
        if is_aligned { stride.next_multiple_of(self.align) } else { stride }
    }

    /// Bytes of the file that keeps only the latest frames. They include two parts that are being overwritten.
    pub fn ring_size(&self) -> Option<Bytes> {
        let overwrites = self.frames.storing.kind().overwrites;
        self.keep.filter(|_| overwrites).map(|parts| Bytes((parts + 2).saturating_mul(self.file_size())))
    }

    /// Returns true if old frames make room for new ones, so that the recording needs no end.
    pub fn is_bounded(&self) -> bool {
        self.keep.is_some()
    }

    /// Upper bound on the bytes in a directory during a recording of `frames` frames: the kept files and those
    /// in progress, or all frames.
    pub fn space(&self, frames: u64) -> Bytes {
        let lanes = u64::from(self.writers);
        let open = if self.frames.storing.kind().overwrites { 2 } else { 3 };
        match self.keep {
            Some(keep) => Bytes((lanes * (keep + open)).saturating_mul(self.file_size())),
            None => Bytes(frames.saturating_mul(self.frame_room())),
        }
    }

    /// Number of files in a directory during a recording of `frames` frames, including the journals.
    pub fn files(&self, frames: u64) -> u64 {
        let many = self.frames.storing.is_many_files();
        // A chunk may be in two pieces, if one writer leaves it to another.
        let chunked = self.frames.storing.is_chunked();
        let chunks = if chunked { 2 * frames.div_ceil(self.frames_per_file) } else { 0 };
        let each = self.keep.filter(|_| many).map_or(2, |keep| keep + 4);
        u64::from(self.writers) * each + chunks
    }

    /// Returns the layout of a lane for the recording with this number and name.
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
            names: self.frames.names,
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

/// Returns the spacing of frames. Uses direct I/O only if all storage supports it.
fn spacing(frames: StoredFrames, onto: &[TargetDescription]) -> Spacing {
    let StoredFrames { size, storing, format, padded, .. } = frames;
    let each = onto.iter().map(|onto| Spacing::suited(onto, size, storing, format));
    let spacing = each.min_by_key(|spacing| spacing.direct);
    let spacing = spacing.unwrap_or(Spacing { direct: false, stride: size });
    if padded { spacing } else { spacing.unpadded(size) }
}

/// Returns the requested alignment, or the largest stripe size of these.
fn alignment(onto: &[TargetDescription], options: &LayoutOptions) -> u64 {
    let stripes = onto.iter().filter_map(|onto| onto.stripe_size).max();
    options.align.or(stripes).map_or(0, |align| align.0)
}

/// Returns one file, or files of which the oldest are removed. With N frames per file, each file has a fixed
/// range of numbers, even if frames are missing. Several lanes also use such files, so that a virtual file over
/// all of them has few parts. All lanes of one directory may share a file, from which nothing is removed.
fn storing_of_hdf5(frames: StoredFrames, directories: u32, options: &LayoutOptions) -> Storing {
    let is_shared = frames.storing == Storing::Shared && !frames.packets && directories == 1;
    if is_shared && options.completes_shared {
        return Storing::Shared;
    }
    let lanes = directories.saturating_mul(options.writers.unwrap_or(1));
    match (options.retention, frames.per_file) {
        (Retention::Latest(_), _) => Storing::Files,
        (Retention::All, None) if lanes == 1 => Storing::Growing,
        (Retention::All, _) => Storing::Positions,
    }
}

/// Returns files with the numbers of their pictures, over all writers. If the oldest are removed, each writer removes
/// its own, and numbers them.
fn storing_of_pictures(frames: StoredFrames, options: &LayoutOptions) -> Storing {
    let alone = frames.per_file.is_none_or(|frames| frames == 1);
    match (frames.storing, options.retention) {
        (Storing::Files, Retention::All) if alone => Storing::Positions,
        (storing, _) => storing,
    }
}

fn storing_of_packets(directories: u32, options: &LayoutOptions, storage: FileRules) -> Storing {
    match options.retention {
        Retention::Latest(_) if storage.whole => Storing::Files,
        Retention::Latest(_) => Storing::Ring,
        Retention::All if directories > 1 || storage.whole || options.chunk_size.is_some() => {
            Storing::Scattered
        }
        Retention::All => Storing::Shared,
    }
}

/// Returns the number of writers per directory. Packets form one stream and have one writer. Two writers copy
/// frames through the page cache, unless there are several directories with one writer each. Two writers also
/// share a file.
fn suited_writers(frames: StoredFrames, spacing: Spacing, directories: u32) -> u32 {
    let shared = frames.storing.kind().one_for_all;
    let copied = !spacing.direct && directories == 1;
    // Prefer one file in HDF5, which readers know, to two.
    let takes_more = !frames.packets && frames.format != Format::Hdf5;
    if takes_more && (shared || copied) { BUFFERED_WRITERS } else { 1 }
}

impl fmt::Display for RecordingPlan {
    /// Writes one line with files, writers, page cache use and memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Bytes(self.file_size());
        match (self.ring_size(), self.frames.storing) {
            (None, Storing::Growing) if self.frames.format == Format::Hdf5 => {
                write!(f, "one HDF5 file, synced every {file}")?;
            }
            (None, Storing::Shared) if self.frames.format == Format::Hdf5 => {
                write!(f, "one HDF5 file of all writers, synced every {file}")?;
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
            (None, Storing::Positions) if self.frames_per_file == 1 => {
                write!(f, "a file for each frame, of {file}")?;
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
