//! Layout of a lane's files: their names, the position of frames, and syncing.

use nilometer_hdf5_recording::{
    FrameBoundaries, Hdf5Contents, IndexSlots, IndexedFiles, IndexedLayout, LaneStrides, StridedFile,
};
use nilometer_model::{Format, Nanos, Picture, Storing, TargetDescription, observed::ClockReading};
use nilometer_recording::{
    Packed, Stream,
    instrument::Origin,
    journal::{Encoding, FrameExtent, Head},
};
use nilometer_ring::{FileIndex, FileOffset, Frame, StoredAs};
use nilometer_storage::{
    Slot,
    buffer::{ALIGNMENT, Alignment},
    process::BootId,
};

/// Times at which files are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Each file when it is full.
    EachFile,
    /// Never: frames survive the death of the process, not a loss of power. For files so small that the storage
    /// would do nothing but sync.
    Never,
}

/// If a lane writes many files, those smaller than this are not synced one by one.
const SYNCED_MIN: u64 = 64 << 20;

/// Three files can be open at once: one draining, one being filled, one made ahead.
pub(crate) const OPEN: u64 = 3;
/// The last block of a recording may end at any byte. It is written through the cache, by another slot of its
/// file.
pub(super) const THROUGH: Slot = Slot(FIRST + OPEN as u32);
/// The file for `VLBIstreamer`'s reader.
pub(super) const STREAMER: Slot = Slot(THROUGH.0 + 1);
/// First of the slots through which indices are written. They go through the cache, because they are no whole
/// pages.
pub(super) const INDEX: u32 = STREAMER.0 + 1;
/// File slots that an engine must have for a lane.
pub const FILE_SLOTS: u32 = INDEX + OPEN as u32;
/// Slot 0 is the directory, slot 1 the journal.
pub(super) const FIRST: u32 = 2;

/// Frames smaller than this are written together with their neighbours, in writes of at most `TOGETHER` bytes.
/// A write costs the storage about as much for a few KiB as for many.
const SMALL: u64 = 64 << 10;
const TOGETHER: u32 = 1 << 20;

/// Limit of padding for frames past the cache: one part in `PADDING`. Frames that need more lie side by side
/// and go through the cache. A frame of 1 KiB would otherwise take four times its space, and as much of the
/// rate.
const PADDING: u64 = 16;

/// Position of frames in files and in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// Frames are written past the cache, in whole pages.
    pub direct: bool,
    /// Bytes from the start of a frame to the start of the next in a file.
    pub stride: u64,
}

impl Spacing {
    /// Chooses the spacing for frames of this size on a target.
    ///
    /// Frames go past the cache if the target can do that and they need little padding. CBF files never do,
    /// because compressed frames have any length. Frames in chunks, except in HDF5 files, do only if they are
    /// whole pages: such chunks have nothing between frames.
    pub fn suited(target: &TargetDescription, frame_size: u64, storing: Storing, format: Format) -> Self {
        let paged = frame_size.next_multiple_of(ALIGNMENT as u64);
        let padding = paged - frame_size;
        let apart = format == Format::Hdf5 || !storing.is_chunked();
        let padded = apart && padding.saturating_mul(PADDING) <= frame_size;
        let direct = target.direct_alignment().is_some() && format != Format::Cbf && (padding == 0 || padded);
        Spacing { direct, stride: if direct { paged } else { frame_size } }
    }

    /// The same spacing for frames of this size with nothing between them, on any storage.
    #[must_use]
    pub fn unpadded(self, frame_size: u64) -> Self {
        if self.stride == frame_size { self } else { Spacing { direct: false, stride: frame_size } }
    }

    /// Alignment of each frame in memory.
    pub fn alignment(self) -> Alignment {
        if self.direct { Alignment::Page } else { Alignment::CacheLine }
    }
}

/// Layout of a lane's files.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is chosen by itself")]
pub struct RawLayout {
    /// First part of all file names.
    pub name: String,
    /// The head of the journal.
    pub head: Head,
    /// `O_DIRECT` for frames.
    pub direct: bool,
    /// Reserve a file's space when it is made, and that of an only file part by part. Not for files that grow
    /// or that several lanes write.
    pub preallocate: bool,
    /// Full files to keep; the lane removes older ones. `None` keeps all. It applies to many files and to a
    /// ring. A ring keeps at least this many parts and overwrites two more.
    pub keep: Option<u64>,
    /// Most bytes of consecutive frames that are written together; 0 if each frame is a write of its own.
    pub together: u32,
    /// Times at which files are synced.
    pub durability: Durability,
    /// Add a checksum of each frame to the journal.
    pub checksums: bool,
    /// Stripe size of the storage, or 0 if it has none. In files with an index, larger frames begin at a
    /// multiple of it.
    pub align: u64,
    /// Origin of simulated frames, for the journal.
    pub origin: Option<Origin>,
    /// Stream whose packets the frames contain, for the journal. `None` if they are no blocks of packets.
    pub stream: Option<Stream>,
    /// Picture in the CBF file of each frame; needed for that format only.
    pub picture: Option<Picture>,
    /// Contents of HDF5 files; needed for that format only.
    pub hdf5: Option<Hdf5Contents>,
    /// Values for `VLBIstreamer`'s own reader, if it is to read the chunks.
    pub streamer: Option<Streamer>,
    /// Longest time that an acknowledged frame waits to be durable, if files are synced: then the file being
    /// filled is synced too. If files are put whole, it is the longest time that a frame waits to be
    /// acknowledged: then the file is put, full or not.
    pub checkpoint: Nanos,
    /// The machine's boot in which this is recorded, for the journal.
    pub boot: Option<BootId>,
    /// The machine's clock at the start, for the journal. It needs `boot`.
    pub clock: Option<ClockReading>,
    /// Most written frames that may wait until their dataset is known, in HDF5 files with several datasets.
    pub waiting: u64,
    /// A write may complete before its bytes arrive: only a sync or close confirms them, for the whole file.
    pub whole_files: bool,
}

/// Longer than it takes to fill a file at 25 MB/s and more, and short enough for slow sources.
const CHECKPOINT: Nanos = Nanos::from_millis(10_000);

/// Values for `VLBIstreamer`'s reader, in `<name>.cfg` on each disk that holds part of the recording when it
/// ends. The reader divides to find the position of a byte; chunks closed short before the last mislead it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamer {
    /// Bytes stored of each packet, at least 1.
    pub packet_size: u64,
    /// Bytes in front of them that were received and not stored.
    pub stripped: u32,
}

impl Streamer {
    /// The text for libconfig, for `files` files with `bytes` bytes in all.
    pub(super) fn text(self, files: u64, bytes: u64) -> String {
        let Streamer { packet_size, stripped } = self;
        let packets = bytes / packet_size.max(1);
        let offset = if stripped > 0 { format!("offset_onwrite = {stripped};\n") } else { String::new() };
        format!(
            "packet_size = {packet_size}L;\n{offset}cumul = {files}L;\ntotal_packets = {packets}L;\nbuf_division = 1;\n"
        )
    }
}

/// Most bytes of a write, if frames are small enough to be written together; 0 otherwise.
fn together(head: &Head) -> u32 {
    let side_by_side = !matches!(head.format, Format::Cbf | Format::Hdf5);
    let small = head.stride < SMALL && head.frames_per_file > 1 && side_by_side;
    if small { TOGETHER } else { 0 }
}

/// Returns true if a lane alone decides where its files end.
fn has_own_files(head: &Head) -> bool {
    let kind = head.storing.kind();
    kind.many_files || kind.overwrites || kind.one_for_all && head.lanes == 1
}

impl RawLayout {
    /// Makes the index of its files, if they have one.
    pub(super) fn index(&self) -> Option<Box<dyn FileIndex>> {
        let contents = self.hdf5.clone()?;
        if self.head.is_one_dataset() {
            let strides = LaneStrides::of(&self.head, self.boundaries());
            return Some(Box::new(StridedFile::new(strides, Slot(INDEX))));
        }
        let layout = IndexedLayout {
            name: self.name.clone(),
            storing: self.head.storing,
            frames_per_file: self.head.frames_per_file,
            file_size: self.file_size(),
            boundaries: self.boundaries(),
            waiting: self.waiting,
            slots: IndexSlots { first: INDEX, count: OPEN },
        };
        Some(Box::new(IndexedFiles::new(contents, layout)))
    }

    /// The alignment of frames in files with an index.
    fn boundaries(&self) -> FrameBoundaries {
        FrameBoundaries { each: if self.direct { ALIGNMENT as u64 } else { 8 }, stripe: self.align }
    }

    /// Makes the usual layout for these files.
    ///
    /// Space is reserved for a ring always, and otherwise if `direct` and more than one write fills a file. All
    /// files are kept. Each is synced unless it is one of many small ones. Small frames are written together.
    pub fn suited(name: String, head: Head, direct: bool) -> Self {
        let kind = head.storing.kind();
        let grows = !kind.many_files && !kind.overwrites;
        let synced = grows || head.frames_per_file.saturating_mul(head.stride) >= SYNCED_MIN;
        RawLayout {
            name,
            head,
            direct,
            preallocate: head.storing.kind().overwrites
                || direct && head.frames_per_file > 1 && has_own_files(&head),
            keep: None,
            together: together(&head),
            durability: if synced { Durability::EachFile } else { Durability::Never },
            checksums: false,
            align: 0,
            origin: None,
            stream: None,
            picture: None,
            hdf5: None,
            streamer: None,
            checkpoint: CHECKPOINT,
            boot: None,
            clock: None,
            waiting: 0,
            whole_files: false,
        }
    }

    /// Position of its frames in files and in memory.
    pub fn spacing(&self) -> Spacing {
        Spacing { direct: self.direct, stride: self.head.stride }
    }

    /// Returns true if several operations in flight help. Past the cache they keep the device busy. If small
    /// frames are written together through the cache, a full file is synced while the next is written. If files
    /// are whole, several parts are on their way.
    pub fn is_deep(&self) -> bool {
        self.direct || self.together > 0 || self.whole_files
    }

    /// Bytes of a full file, or of a part.
    pub fn file_size(&self) -> u64 {
        self.head.frames_per_file.saturating_mul(self.head.stride)
    }

    /// The journal's name.
    pub fn journal_name(&self) -> String {
        self.head.journal_name(&self.name)
    }

    /// The name of a file of frames.
    pub fn file_name(&self, file: u64) -> String {
        self.head.file_name(&self.name, file)
    }

    /// The names of all files that a lane may have made before a frame was written.
    pub fn names_before_frames(&self) -> Vec<String> {
        let ahead = OPEN * u64::from(self.head.lanes);
        let numbered = (0..ahead).filter_map(|number| u32::try_from(number).ok());
        let chunks = numbered.map(|number| self.head.chunk_name(&self.name, number));
        let files = (0..OPEN).map(|file| self.file_name(file));
        let master = self.head.growing_master_name(&self.name);
        std::iter::once(self.journal_name()).chain(files).chain(chunks).chain(master).collect()
    }

    /// The extent of a frame that was written at `begin` with `written` bytes.
    pub(super) fn extent(&self, begin: FileOffset, frame: &Frame, written: u32) -> FrameExtent {
        let FileOffset { file, offset } = begin;
        let size = frame.packed.as_deref().map_or(self.whole(), |packed| packed.length);
        // Padding behind a frame, up to the next, is not part of it.
        let own = StoredAs { encoding: Encoding::Raw, length: written };
        let StoredAs { encoding, length } = frame.stored_as().unwrap_or(own);
        let length = if encoding == Encoding::Raw { size } else { length };
        FrameExtent { file, offset, length, encoding, size }
    }

    /// Bytes of a frame that is whole.
    fn whole(&self) -> u32 {
        self.head.frame_size as u32
    }

    /// The frame's bytes in its slot.
    pub(super) fn bytes<'a>(&self, frame: &'a Frame) -> &'a [u8] {
        let length = frame.packed.as_deref().map_or(self.whole(), |packed| packed.length);
        &frame.data[..length as usize]
    }

    /// Bytes to write of a frame: up to the next one, or exactly those of a recording's shorter last block.
    pub(super) fn written(&self, packed: Option<&Packed>) -> u32 {
        match packed {
            Some(packed) if packed.length < self.whole() => packed.length,
            _ => self.head.stride as u32,
        }
    }

    /// Bytes to write of an encoded frame. Past the cache they are whole pages, with zeroes behind the frame.
    pub(super) fn padded(&self, length: u32, bytes: &mut [u8]) -> u32 {
        if !self.direct {
            return length;
        }
        let padded = (length as usize).next_multiple_of(ALIGNMENT);
        bytes[length as usize..padded].fill(0);
        padded as u32
    }

    /// Returns true if `length` bytes can't be written past the cache. This applies only to a shorter last
    /// block.
    pub(super) fn is_odd(&self, length: u32) -> bool {
        let shorter = u64::from(length) < self.head.stride;
        self.direct && shorter && !(length as usize).is_multiple_of(ALIGNMENT)
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::FileNames;

    use super::*;
    use nilometer_storage::{
        Target,
        clock::VirtualClock,
        testing::{Device, Simulated},
    };

    fn suited(frame: u64, storing: Storing, format: Format) -> Spacing {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        assert!(target.description().direct_alignment().is_some());
        Spacing::suited(target.description(), frame, storing, format)
    }

    #[test]
    fn no_frame_takes_much_more_space_than_it_has_bytes() {
        for frame in
            (1..300).chain([511, 1000, 1024, 4095, 4096, 4097, 5000, 60_000, 65_536, 70_001, 21_422_898])
        {
            for storing in Storing::STORED {
                let Spacing { direct, stride } = suited(frame, storing, Format::Raw);
                assert!(stride >= frame && (stride - frame) * 16 <= frame, "{frame} take {stride}");
                assert!(!direct || stride.is_multiple_of(4096), "{frame} take {stride} past the cache");
            }
        }
    }

    #[test]
    fn whole_pages_and_large_frames_go_past_the_cache() {
        assert_eq!(suited(4096, Storing::Scattered, Format::Raw), Spacing { direct: true, stride: 4096 });
        assert_eq!(suited(70_001, Storing::Files, Format::Raw), Spacing { direct: true, stride: 73_728 });
        assert_eq!(
            suited(70_001, Storing::Scattered, Format::Raw),
            Spacing { direct: false, stride: 70_001 }
        );
        assert_eq!(suited(8192, Storing::Files, Format::Cbf), Spacing { direct: false, stride: 8192 });
    }

    #[test]
    fn small_frames_are_written_together_and_several_operations_are_in_flight() {
        let layout = |frame_size, direct| {
            let layout = RawLayout::suited("n".into(), head(Storing::Files, frame_size, 100), direct);
            (layout.together > 0, layout.is_deep())
        };
        assert_eq!((layout(1024, false), layout(4096, true)), ((true, true), (true, true)));
        assert_eq!((layout(1 << 20, false), layout(1 << 20, true)), ((false, false), (false, true)));
    }

    #[test]
    fn only_small_files_among_many_are_not_synced() {
        for (storing, frames_per_file, synced) in [
            (Storing::Files, 100, Durability::Never),
            (Storing::Files, 16_384, Durability::EachFile),
            // On a small disk the parts of a growing file are small.
            (Storing::Growing, 100, Durability::EachFile),
            (Storing::Shared, 100, Durability::EachFile),
        ] {
            let layout = RawLayout::suited("n".into(), head(storing, 4096, frames_per_file), true);
            assert_eq!(layout.durability, synced, "{storing:?} {frames_per_file}");
        }
    }

    fn head(storing: Storing, frame_size: u64, frames_per_file: u64) -> Head {
        let Spacing { stride, .. } = suited(frame_size, storing, Format::Raw);
        let format = Format::Raw;
        Head {
            recording: 1,
            lane: 0,
            lanes: 1,
            frame_size,
            stride,
            frames_per_file,
            storing,
            format,
            names: FileNames::default(),
        }
    }
}
