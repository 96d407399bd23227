//! A lane's journal: an append-only file of records of 64 bytes, each with a checksum. The longest valid prefix counts. Where
//! storage has whole files only, it is a row of them: see [`nilometer_storage::pieces`].
//!
//! A record, little-endian: CRC-32 (ISO-HDLC) of all that follows (4 bytes), kind (4), sequence number from 0 (8), then
//! up to six numbers of 8 bytes by kind:
//!
//! | kind | numbers |
//! |---|---|
//! | 1 head | recording, lane (low 32 bits) and lanes (high), frame size, stride, frames a file, version (8; low 32 bits), storing (next 16) and format (high 16) |
//! | 3 durable | frames in earlier records, in files up to this number, survive the loss of power |
//! | 4 removed | the file of this number was removed to make room, or is about to be overwritten |
//! | 5 end | 1 if the whole recording was ended in order, how many frames it was due, and bytes of the last one, if it is a block of packets, or 0; 0 if only this lane was |
//! | 6 origin | in place of the numbers, 48 bytes of text: what simulated frames are made from ([`Origin`]) |
//! | 7 gap | of the block whose record follows: its number, the packet before which or from which on packets are missing, how many, 1 if something that is marked as invalid stands in their place; if several senders number their packets by themselves: which of them (low 16 bits, from 1) and its port (next 16), and its address in IPv4 plus 2^32; else 0 and 0, as programs wrote that knew one sender only |
//! | 8 stream | in place of the numbers, 48 bytes of text: what packets the blocks are made of ([`crate::Stream`]) |
//! | 9 chunk | file, and 1 + the number in its name from now on, or 0 if there is none |
//! | 10 checkpoint | frames in the first so many records of this journal survive the loss of power, in whichever files |
//! | 11 boot | of the machine that records, since it was started last: its boot id (`/proc/sys/kernel/random/boot_id`), 16 bytes |
//! | 12 frame | number, file (low 48 bits) and encoding (high 16), offset in the file that is there, when it was due (ns), CRC-32 of its decoded bytes plus 2^32, or 0 if none was made, bytes of it in the file (low 32) and decoded (high 32) |
//! | 13 contents | in place of the numbers, 48 bytes of text: what HDF5 files have in them beside their frames, as JSON ([`contents_entries`]) |
//! | 14 plug-in | in place of the numbers, 48 bytes of text: the filter of HDF5 that made its chunks, `filter:NUMBER,VALUES` |
//! | 15 placed | of the frame whose record follows, in a file with several datasets of frames: its number, which of them has it, in the order of its contents, and which frame of that dataset it is |
//!
//! Storing is 0 for files of N frames, 1 for a growing file, 2 for one that lanes share, 3 for chunks, 4 for one that is
//! written again and again, 5 for a file for each position of a scan, which is a chunk too. In 1, 2 and 4, which are not made of files, a "file" is a part of so many frames of the lane, which is synced as a whole; an offset is always in the file
//! that is there. Format is 0 for the bytes of frames, 1 for CBF, 2 and 3 for VDIF and Mark5B, 4 for HDF5; encoding is 0 for the bytes of the frame,
//! 1 for a CBF file of it, from 2 on for a chunk of an HDF5 dataset: 2 + 4 x compression (1 bslz4, 2 bszstd, 3 lz4, 4 zstd,
//! 5 the plug-in that is named) + the logarithm of bytes an element; from 256 on for several chunks of a frame, counted in the
//! same way (0 none). The stride is
//! the distance of frames that were written one behind the other: readers need no more than extents.
//!
//! A chunk is noted before its file is made and again before it is renamed: the file has the last name that is noted, or
//! that before. The number in a name is that of the chunk among those of all lanes.
//!
//! Files are noted as durable when they are full. Where that takes long, what is in the file being filled is synced from time
//! to time, and a checkpoint says up to which record: one that was written before the sync began, since the data of a frame
//! are written before its record is.
//!
//! The texts of an origin, of a stream and of contents stand behind the head, each in as many records as it takes, the last one filled up with zeroes.

mod extent;
mod limits;
mod record;

pub use extent::{Encoding, FrameExtent};
pub use limits::*;
pub use record::{JOURNAL_VERSION, RECORD, UnreadVersion, prefix};

use nilometer_model::{ChunkNumber, Format, PluginFilter, Storing};
use nilometer_storage::process::BootId;

use crate::{Due, Gap, instrument::Origin};

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The first of every journal.
    Head(Head),
    /// A frame is acknowledged.
    Frame {
        /// Counted by the instrument.
        number: u64,
        /// Where its bytes are.
        extent: FrameExtent,
        /// When it was due, on the clock of the recording, in ns.
        due: u64,
        /// CRC-32 (ISO-HDLC) of its decoded bytes, if the recording was to have them.
        checksum: Option<u32>,
    },
    /// Where the frame whose record follows stands, in a file with several datasets of frames.
    Placed {
        /// The frame.
        number: u64,
        /// Which of the datasets, and which of its frames.
        place: DatasetPlace,
    },
    /// Packets are missing in the block whose record follows.
    Gap {
        /// The block.
        number: u64,
        /// Which.
        gap: Gap,
    },
    /// Frames in earlier records, in files up to this one, survive the loss of power.
    Durable {
        /// The last such file of the lane.
        file: u64,
    },
    /// A file was removed to make room, or what is there is about to be overwritten.
    Removed {
        /// Which file of the lane.
        file: u64,
    },
    /// The lane was ended in order.
    End {
        /// What the whole recording came to, if it was ended and not only this lane.
        due: Option<Due>,
    },
    /// A part of the text that says what the frames are made from.
    Origin([u8; TEXT]),
    /// A part of the text that says what packets the blocks are made of.
    Stream([u8; TEXT]),
    /// A part of the text that says what HDF5 files have in them beside their frames.
    Contents([u8; TEXT]),
    /// A part of the text that says which plug-in made the chunks.
    Plugin([u8; TEXT]),
    /// Frames in the first so many records survive the loss of power.
    Checkpoint {
        /// How many records, this one not among them.
        records: u64,
    },
    /// Which start of which machine this was recorded in.
    Boot(BootId),
    /// The name that the file of a chunk has or gets.
    Chunk {
        /// Which file of the lane.
        file: u64,
        /// The number in its name, if there is one.
        number: Option<u32>,
    },
}

/// Where a frame stands among several datasets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatasetPlace {
    /// Which dataset, in the order of the file's contents.
    pub dataset: u32,
    /// Which of its frames, from 0.
    pub index: u64,
}

/// Bytes of text in a record.
const TEXT: usize = 48;

/// What all records of a journal have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The same in all lanes of a recording, and in no other.
    pub recording: u64,
    /// Which lane.
    pub lane: u32,
    /// How many lanes the recording has.
    pub lanes: u32,
    /// Bytes of a frame.
    pub frame_size: u64,
    /// Bytes from the start of a frame to the start of the next in a file.
    pub stride: u64,
    /// Frames of a full file, or of a part that is synced as a whole.
    pub frames_per_file: u64,
    /// Into which files they go.
    pub storing: Storing,
    /// How a frame is written.
    pub format: Format,
}

impl Head {
    /// The journal's name, where the recording has this name.
    pub fn journal_name(&self, name: &str) -> String {
        format!("{name}.{}.journal", self.lane)
    }

    /// The name of a file of frames; of a chunk, while it has no number.
    pub fn file_name(&self, name: &str, file: u64) -> String {
        let lane = self.lane;
        let suffix = self.format.suffix();
        let kind = self.storing.kind();
        match (kind.many_files, kind.one_for_all) {
            (true, _) => format!("{name}.{lane}.{file:08}.{suffix}"),
            // What readers of HDF5 are given has the name of the recording, if it is all of it.
            (false, false) if self.format == Format::Hdf5 && self.lanes == 1 => format!("{name}.{suffix}"),
            (false, false) => format!("{name}.{lane}.{suffix}"),
            (false, true) => format!("{name}.{suffix}"),
        }
    }

    /// The name of a chunk with this number.
    pub fn chunk_name(&self, name: &str, number: u32) -> String {
        match self.storing.kind().chunks {
            Some(ChunkNumber::Position) => format!("{name}.{number:08}.{}", self.format.suffix()),
            // As VLBI recorders name them.
            Some(ChunkNumber::InOrder) | None => format!("{name}.{number:08}"),
        }
    }
}

/// The records that say what the frames are made from.
pub fn origin_entries(origin: &Origin) -> Vec<Entry> {
    parts_of(&origin.text()).map(Entry::Origin).collect()
}

/// The records that say what packets the blocks are made of.
pub fn stream_entries(stream: &str) -> Vec<Entry> {
    parts_of(stream).map(Entry::Stream).collect()
}

/// The most bytes of text that say what HDF5 files have in them.
pub const CONTENTS_MAX: usize = 1 << 20;

/// The records that say what HDF5 files have in them; none if that is longer than [`CONTENTS_MAX`].
pub fn contents_entries(contents: &str) -> Vec<Entry> {
    if contents.len() > CONTENTS_MAX { Vec::new() } else { parts_of(contents).map(Entry::Contents).collect() }
}

/// The records that name the plug-in that makes chunks.
pub fn plugin_entries(plugin: PluginFilter) -> Vec<Entry> {
    parts_of(plugin.text()).map(Entry::Plugin).collect()
}

/// The plug-in that a journal names, if it does.
pub fn plugin_of(entries: &[Entry]) -> Option<PluginFilter> {
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Plugin(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// What a journal says that its HDF5 files have in them, if it does.
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

/// What a journal says of the packets that its blocks are made of, if it does.
pub fn stream_of(entries: &[Entry]) -> Option<String> {
    let parts =
        entries.iter().filter_map(|entry| if let Entry::Stream(text) = entry { Some(text) } else { None });
    let text: Vec<u8> = parts.flatten().copied().take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

/// What a journal says that its frames are made from, if it does.
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
            Entry::Boot(BootId(u128::MAX - 7)),
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
        assert_eq!(prefix(&whole).len(), 17);
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
