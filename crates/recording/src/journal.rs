//! A lane's journal: an append-only file of 64-byte records, each with a checksum. Its longest valid prefix
//! counts.
//!
//! On storage that only takes whole files, the journal is a series of files: see [`nilometer_storage::pieces`].
//!
//! A record is little-endian. It begins with the CRC-32 (ISO-HDLC) of all bytes after it (4 bytes). The kind (4)
//! and the sequence number from 0 (8) follow. The rest is up to six numbers (8 each), or 48 bytes of text.
//!
//! Kinds, with their numbers in order:
//!
//! - 1 head: recording; lane (low 32 bits) and lanes (high); frame size; stride; frames a file. The last number
//!   has the version (8; low 32 bits), storing (next 16), format (next 15) and the pattern of names (the highest).
//! - 3 durable: frames in earlier records, in files up to this number, survive the loss of power.
//! - 4 removed: the writer removed the file of this number to make room, or is about to overwrite it.
//! - 5 end: 1 if the whole recording ended in order, 0 if only this lane did; the number of due frames. The last
//!   number is the bytes of the last block of packets; 0 for frames.
//! - 6 origin: text, the origin of simulated frames ([`Origin`]).
//! - 7 gap: missing packets of the block whose record follows. Its number; the packet before or from which they
//!   are missing; their count; 1 if something marked as invalid replaces them. If several senders number their
//!   packets themselves, two numbers identify the sender. The first has its number from 1 (low 16 bits) and its
//!   port (next 16); the second is its IPv4 address plus 2^32. Else both are 0, as from programs that knew one
//!   sender only.
//! - 8 stream: text, the packets in the blocks ([`crate::Stream`]).
//! - 9 chunk: file; 1 + the number in its name from now on, or 0 if there is none.
//! - 10 checkpoint: frames in this number of records, from the first, survive the loss of power, in any file.
//! - 11 boot: the boot id of the recording machine (`/proc/sys/kernel/random/boot_id`), 16 bytes. Then the state of
//!   its clock at the start (adjtimex(2)): 2 synchronised, 1 not, 0 unknown, as from older programs. Its largest
//!   error, its offset (signed) and its estimated error follow, in ns.
//! - 12 frame: number; file (low 48 bits) and encoding (high 16); offset in the file; due time (ns). Then the
//!   CRC-32 of its decoded bytes plus 2^32, or 0 without one. The last number has its bytes in the file (low 32)
//!   and decoded (high 32).
//! - 13 contents: text, the contents of HDF5 files beside their frames, as JSON ([`contents_entries`]).
//! - 14 plug-in: text, the HDF5 filter that made its chunks, `filter:NUMBER,VALUES`.
//! - 15 placed: the dataset of the frame whose record follows, in a file with several datasets of frames. Its
//!   number; the dataset, in the order of the contents; the frame's number in that dataset.
//!
//! Values of *storing*:
//!
//! - 0: files of N frames
//! - 1: a growing file
//! - 2: a file that all lanes share
//! - 3: chunks
//! - 4: a file that the writer overwrites again and again
//! - 5: a file for each position of a scan, which is a chunk too
//!
//! For storing 1, 2 and 4, a "file" in a record is a part of the lane with a fixed number of frames. The writer
//! syncs each part as a whole. Offsets always refer to the real file.
//!
//! Values of *format*: 0 bytes of frames, 1 CBF, 2 VDIF, 3 Mark5B, 4 HDF5.
//!
//! Values of the *pattern of names*: 0 the recorder's, 1 that of DECTRIS. Programs that know only 0 take a journal
//! with 1 for damaged.
//!
//! Values of *encoding*:
//!
//! - 0: the bytes of the frame
//! - 1: a CBF file of the frame
//! - from 2: a chunk of an HDF5 dataset, as 2 + 4 x compression + logarithm of the bytes of an element.
//!   Compression is 1 for bslz4, 2 bszstd, 3 lz4, 4 zstd and 5 for the plug-in that the journal names.
//! - from 256: several chunks of a frame, numbered in the same way from 256 (compression 0 is none)
//!
//! The stride is the distance between frames that the writer stored one after the other. Readers need only the
//! extents.
//!
//! The writer journals a chunk's name before it makes the file, and the new name before it renames the file.
//! The file therefore has the last name in the journal, or the one before. A number in a name counts the chunks
//! of all lanes.
//!
//! The writer journals a file as durable when it is full. If that takes long, the writer also syncs the file
//! from time to time while it fills it.
//!
//! A checkpoint then states the last record whose frame is safe. This record precedes the start of the sync,
//! because the writer stores a frame's data before its record.
//!
//! The texts of an origin, a stream and contents follow the head. Each takes as many records as it needs.
//! Zeroes fill the last one.

mod extent;
mod limits;
mod record;

pub use extent::{Encoding, FrameExtent};
pub use limits::*;
pub use record::{JOURNAL_VERSION, RECORD, UnreadVersion, prefix};

use nilometer_model::{ChunkNumber, FileNames, Format, PluginFilter, Storing, observed::ClockReading};
use nilometer_storage::process::BootId;

use crate::{Due, Gap, instrument::Origin};

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The first record of every journal.
    Head(Head),
    /// An acknowledged frame.
    Frame {
        /// The frame's number, as the instrument counts.
        number: u64,
        /// Position and encoding of its bytes.
        extent: FrameExtent,
        /// Time when it was due, on the recording's clock, in ns.
        due: u64,
        /// CRC-32 (ISO-HDLC) of its decoded bytes, if the recording has checksums.
        checksum: Option<u32>,
    },
    /// The place of the frame whose record follows, in a file with several datasets of frames.
    Placed {
        /// The frame's number.
        number: u64,
        /// The dataset, and the index in it.
        place: DatasetPlace,
    },
    /// A gap in the block whose record follows.
    Gap {
        /// The block's number.
        number: u64,
        /// The missing packets.
        gap: Gap,
    },
    /// Frames in earlier records, in files up to this one, survive the loss of power.
    Durable {
        /// The last durable file of the lane.
        file: u64,
    },
    /// The writer removed a file to make room, or is about to overwrite its frames.
    Removed {
        /// Index of the file in the lane.
        file: u64,
    },
    /// The lane ended in order.
    End {
        /// Length of the whole recording. `None` if only this lane ended.
        due: Option<Due>,
    },
    /// A part of the text of the frames' origin.
    Origin([u8; TEXT]),
    /// A part of the text that describes the packets of the blocks.
    Stream([u8; TEXT]),
    /// A part of the text that describes the contents of HDF5 files beside the frames.
    Contents([u8; TEXT]),
    /// A part of the text that names the plug-in that made the chunks.
    Plugin([u8; TEXT]),
    /// Frames in the first `records` records survive the loss of power.
    Checkpoint {
        /// Number of records, without this one.
        records: u64,
    },
    /// The recording machine.
    Boot {
        /// Its boot id during the recording.
        id: BootId,
        /// Its clock at the start of the recording. `None` if unknown.
        clock: Option<ClockReading>,
    },
    /// The present or next name of a chunk's file.
    Chunk {
        /// Index of the file in the lane.
        file: u64,
        /// Number in its name, if any.
        number: Option<u32>,
    },
}

/// Position of a frame among several datasets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatasetPlace {
    /// Index of the dataset, in the order of the file's contents.
    pub dataset: u32,
    /// Index of the frame in the dataset, from 0.
    pub index: u64,
}

/// Bytes of text in a record.
const TEXT: usize = 48;

/// Properties that all records of a journal share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Id of the recording: the same in all its lanes, and in no other recording.
    pub recording: u64,
    /// Index of the lane.
    pub lane: u32,
    /// Number of lanes in the recording.
    pub lanes: u32,
    /// Bytes of a frame.
    pub frame_size: u64,
    /// Distance in bytes between the starts of two consecutive frames in a file.
    pub stride: u64,
    /// Frames of a full file, or of a part that the writer syncs as a whole.
    pub frames_per_file: u64,
    /// Kind of files for the frames.
    pub storing: Storing,
    /// Format of a frame in its file.
    pub format: Format,
    /// Pattern of the names of its files.
    pub names: FileNames,
}

impl Head {
    /// Returns the journal's name, for a recording called `name`.
    pub fn journal_name(&self, name: &str) -> String {
        format!("{name}.{}.journal", self.lane)
    }

    /// Returns the names of the journals of all lanes, if one directory has them.
    pub fn journal_names(&self, name: &str) -> Vec<String> {
        (0..self.lanes).map(|lane| Head { lane, ..*self }.journal_name(name)).collect()
    }

    /// Returns true if all lanes write frames into one dataset of one HDF5 file.
    pub fn is_one_dataset(&self) -> bool {
        self.format == Format::Hdf5 && self.storing.kind().one_for_all
    }

    /// Returns the name of a file of frames, or of a chunk that has no number yet.
    pub fn file_name(&self, name: &str, file: u64) -> String {
        let lane = self.lane;
        let suffix = self.format.suffix();
        let kind = self.storing.kind();
        match (kind.many_files, kind.one_for_all) {
            (true, _) => format!("{name}.{lane}.{file:08}.{suffix}"),
            // A single HDF5 file with the whole recording bears the recording's name, since users open it.
            (false, false) if self.format == Format::Hdf5 && self.lanes == 1 => format!("{name}.{suffix}"),
            (false, false) => format!("{name}.{lane}.{suffix}"),
            (false, true) => format!("{name}.{suffix}"),
        }
    }

    /// Returns the name of the file over all files of frames, if it is there from the start.
    pub fn growing_master_name(&self, name: &str) -> Option<String> {
        (self.names == FileNames::Dectris).then(|| format!("{name}_master.{}", self.format.suffix()))
    }

    /// True if each frame is a picture in a file of its own.
    fn is_pictures(&self) -> bool {
        self.format == Format::Cbf && self.frames_per_file == 1
    }

    /// Returns the name of the chunk with this number.
    pub fn chunk_name(&self, name: &str, number: u32) -> String {
        match self.storing.kind().chunks {
            Some(ChunkNumber::Position) if self.is_pictures() => {
                // Programs count pictures from 1 and find them by a template: `NAME_?????.cbf`.
                format!("{name}_{:05}.{}", u64::from(number) + 1, self.format.suffix())
            }
            Some(ChunkNumber::Position) if self.names == FileNames::Dectris => {
                format!("{name}_data_{:06}.{}", u64::from(number) + 1, self.format.suffix())
            }
            Some(ChunkNumber::Position) => format!("{name}.{number:08}.{}", self.format.suffix()),
            // VLBI recorders use such names.
            Some(ChunkNumber::InOrder) | None => format!("{name}.{number:08}"),
        }
    }
}

/// Returns the records that state the origin of the frames.
pub fn origin_entries(origin: &Origin) -> Vec<Entry> {
    parts_of(&origin.text()).map(Entry::Origin).collect()
}

/// Returns the records that describe the packets of the blocks.
pub fn stream_entries(stream: &str) -> Vec<Entry> {
    parts_of(stream).map(Entry::Stream).collect()
}

/// Limit on the bytes of text that describe the contents of HDF5 files.
pub const CONTENTS_MAX: usize = 1 << 20;

/// Returns the records that describe the contents of HDF5 files. None if the text is longer than
/// [`CONTENTS_MAX`].
pub fn contents_entries(contents: &str) -> Vec<Entry> {
    if contents.len() > CONTENTS_MAX { Vec::new() } else { parts_of(contents).map(Entry::Contents).collect() }
}

/// Returns the records that name the plug-in that makes chunks.
pub fn plugin_entries(plugin: PluginFilter) -> Vec<Entry> {
    parts_of(plugin.text()).map(Entry::Plugin).collect()
}

/// Returns the plug-in that a journal names, if any.
pub fn plugin_of(entries: &[Entry]) -> Option<PluginFilter> {
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Plugin(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// Returns the text in which a journal describes the contents of its HDF5 files, if any.
pub fn contents_of(entries: &[Entry]) -> Option<String> {
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Contents(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

fn parts_of(text: &str) -> impl Iterator<Item = [u8; TEXT]> {
    text.as_bytes().chunks(TEXT).map(|bytes| {
        let mut part = [0; TEXT];
        part[..bytes.len()].copy_from_slice(bytes);
        part
    })
}

/// Returns the text in which a journal describes the packets of its blocks, if any.
pub fn stream_of(entries: &[Entry]) -> Option<String> {
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Stream(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

/// Returns the origin of a journal's frames, if it states one.
pub fn origin_of(entries: &[Entry]) -> Option<Origin> {
    let Some(Entry::Head(head)) = entries.first() else { return None };
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Origin(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    Origin::read(std::str::from_utf8(&text).ok()?, head.frame_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GapSender;

    #[test]
    fn pictures_have_the_number_of_their_frame_from_1() {
        let head = Head {
            recording: 9,
            lane: 1,
            lanes: 2,
            frame_size: 100,
            stride: 4096,
            frames_per_file: 1,
            storing: Storing::Positions,
            format: Format::Cbf,
            names: FileNames::default(),
        };
        assert_eq!(head.chunk_name("scan", 0), "scan_00001.cbf");
        assert_eq!(head.chunk_name("scan", 99_999), "scan_100000.cbf");
        let other = Head { format: Format::Hdf5, ..head };
        assert_eq!(other.chunk_name("scan", 0), "scan.00000000.h5");
        let other = Head { names: FileNames::Dectris, ..other };
        assert_eq!(other.chunk_name("scan", 0), "scan_data_000001.h5");
    }

    fn journal() -> Vec<u8> {
        let head = Head {
            recording: 9,
            lane: 1,
            lanes: 3,
            frame_size: 100,
            stride: 4096,
            frames_per_file: 7,
            storing: Storing::Shared,
            format: Format::Cbf,
            names: FileNames::Dectris,
        };
        let sender = GapSender::new(3, Some(([10, 0, 0, 2], 46_227).into()));
        let entries = [
            Entry::Head(head),
            Entry::Origin([255; TEXT]),
            Entry::Frame { number: 5, extent: head.extent(0, 0, 100), due: 77, checksum: None },
            Entry::Gap { number: 6, gap: Gap { at: 3, count: 1 << 40, filled: true, sender: Some(sender) } },
            Entry::Placed { number: 6, place: DatasetPlace { dataset: 2, index: 1 << 47 } },
            Entry::Stream([254; TEXT]),
            Entry::Contents([253; TEXT]),
            Entry::Frame { number: 6, extent: head.extent(1 << 47, 1 << 61, 99), due: 78, checksum: Some(0) },
            Entry::Durable { file: 2 },
            Entry::Removed { file: 0 },
            Entry::End { due: None },
            Entry::End { due: Some(Due { frames: 0, last: None }) },
            Entry::End { due: Some(Due { frames: 9, last: Some(7) }) },
            Entry::Chunk { file: 7, number: None },
            Entry::Chunk { file: 7, number: Some(0) },
            Entry::Checkpoint { records: 12 },
            Entry::Boot { id: BootId(u128::MAX - 7), clock: None },
            Entry::Boot { id: BootId(7), clock: ClockReading::of_numbers([2, 5, 1_u64.wrapping_neg(), 3]) },
        ];
        let mut bytes = vec![0; entries.len() * RECORD];
        for (sequence, (entry, record)) in entries.into_iter().zip(bytes.chunks_exact_mut(RECORD)).enumerate()
        {
            entry.put(sequence as u64, record);
            assert_eq!(Entry::read(sequence as u64, record), Some(entry));
        }
        bytes
    }

    #[test]
    fn any_flipped_bit_ends_the_prefix_there() {
        let whole = journal();
        assert_eq!(prefix(&whole).len(), 18);
        for byte in 0..whole.len() {
            let mut torn = whole.clone();
            torn[byte] ^= 0x10;
            assert_eq!(prefix(&torn).len(), byte / RECORD, "byte {byte}");
        }
    }

    #[test]
    fn a_cut_or_reordered_journal_is_a_shorter_one() {
        let whole = journal();
        for end in 0..whole.len() {
            assert_eq!(prefix(&whole[..end]).len(), end / RECORD);
        }
        let mut moved = whole.clone();
        moved.copy_within(2 * RECORD..3 * RECORD, RECORD);
        assert_eq!(prefix(&moved).len(), 1);
        assert_eq!(prefix(&whole[RECORD..]).len(), 0, "a journal without its head is none");
    }

    #[test]
    fn a_journal_says_what_its_frames_are_made_from_or_nothing() {
        let data =
            nilometer_model::Data { distinct: Some(2), ..nilometer_model::DataKind::Diffraction.into() };
        let (shape, pixel, seed) = ([5, 10], nilometer_model::PixelType::Uint16, nilometer_model::Seed(1));
        let content =
            crate::instrument::Content::prepare(&data, &shape, pixel, seed).expect("it can be made");
        let origin = content.origin();
        let mut entries = prefix(&journal());
        entries.remove(1);
        assert_eq!(origin_of(&entries), None);
        let records = origin_entries(origin.as_ref().expect("it follows from the seed"));
        assert!(records.len() > 2);
        entries.splice(1..1, records.iter().copied());
        assert_eq!(origin_of(&entries), origin);
        entries.remove(2);
        assert_eq!(origin_of(&entries), None, "a part is not the whole");
    }
}
