//! The frames of a recording's files according to its journals, and the state of their bytes.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt};

use nilometer_hdf5::StoredChunk;
use nilometer_model::Storing;
use nilometer_recording::{
    FrameProof,
    instrument::Content,
    journal::{DatasetPlace, Encoding, Entry, FrameExtent, Head},
    reader::{FrameLocation, FrameReader, Recording},
    tiles::TileTable,
};

use super::RepairError;
use crate::frame_chunks::each_chunk;

/// The state of a frame's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FrameBytes {
    /// Not read yet.
    Unread,
    /// Correct, or out of danger.
    Right,
    /// Readable, but the machine went down before they were durable, and nothing proves them correct.
    Unproved,
    /// Missing, or not those of the frame, with the reason.
    Lost(String),
}

/// A frame of a file, according to a lane's journal.
#[derive(Debug, Clone)]
pub(super) struct KnownFrame {
    pub(super) number: u64,
    pub(super) place: FrameLocation,
    /// The time when it was due, in ns.
    pub(super) due: u64,
    pub(super) checksum: Option<u32>,
    pub(super) bytes: FrameBytes,
    /// Its position, if its file has several datasets of frames.
    pub(super) in_dataset: Option<DatasetPlace>,
}

impl KnownFrame {
    /// Its position among the datasets of its file; `in_file` is its index in the file.
    pub(super) fn in_dataset(&self, in_file: u64) -> DatasetPlace {
        self.in_dataset.unwrap_or(DatasetPlace { dataset: 0, index: in_file })
    }

    /// Reads the frame, and compares it with its checksum, or with its simulated content.
    pub(super) fn prove(
        &mut self,
        frames: &mut FrameReader<'_>,
        content: Option<&Content>,
        may_be_lost: bool,
    ) {
        let proof = match (content, self.checksum) {
            (Some(content), _) => FrameProof::Made(content),
            (None, Some(checksum)) => FrameProof::Checksum(checksum),
            (None, None) => FrameProof::Nothing,
        };
        self.bytes = match proof.check(frames, self.number, self.place) {
            Ok((_, false)) if may_be_lost => FrameBytes::Unproved,
            Ok(_) => FrameBytes::Right,
            Err(why) => FrameBytes::Lost(why),
        };
    }
}

/// The frames of one file.
#[derive(Debug, Default)]
pub(super) struct FileFrames {
    /// The frames by number.
    pub(super) frames: BTreeMap<u64, KnownFrame>,
    /// Number of the frame with index 0.
    pub(super) first: u64,
    /// Number of places for frames.
    pub(super) places: u64,
    /// Values that only the old file had and that the repaired file lacks.
    pub(super) lost_values: Vec<String>,
}

/// Bytes behind the end of a file, at the most: no recorder has more in flight. A foreign journal could otherwise
/// make files very long.
const BEHIND_MAX: u64 = 64 << 30;
/// Frames of a file, at the most.
const PLACES_MAX: u64 = 1 << 32;

impl FileFrames {
    /// The index of a frame in the file; `None` if it is larger than any file allows.
    pub(super) fn in_file(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.first).filter(|place| *place < PLACES_MAX)
    }

    /// Position of the first frame in the file.
    pub(super) fn begin(&self) -> u64 {
        self.frames.values().map(|frame| frame.place.extent.offset).min().unwrap_or(0)
    }

    /// Position of the end of the last frame, including lost ones. Frames too far behind the file's `length` are
    /// ignored.
    pub(super) fn end(&self, length: u64) -> u64 {
        let ends = self.frames.values().map(|frame| {
            let extent = frame.place.extent;
            extent.offset.saturating_add(extent.length.into())
        });
        ends.filter(|end| *end < length.saturating_add(BEHIND_MAX)).fold(length, u64::max)
    }

    /// Returns true if the file has several datasets of frames, each of which counts its own.
    pub(super) fn is_apart(&self) -> bool {
        self.frames.values().any(|frame| frame.in_dataset.is_some())
    }

    /// Checks that each frame has a place in one of `datasets` datasets.
    pub(super) fn check_datasets(&self, datasets: usize) -> Result<(), String> {
        let wrong = self.frames.values().find(|frame| {
            let DatasetPlace { dataset, index } = frame.in_dataset(0);
            dataset as usize >= datasets || index >= PLACES_MAX
        });
        let Some(frame) = wrong else { return Ok(()) };
        let DatasetPlace { dataset, index } = frame.in_dataset(0);
        Err(format!(
            "frame {} is frame {index} of dataset {dataset}, and there are {datasets} datasets of {PLACES_MAX} frames at the most",
            frame.number
        ))
    }

    /// The location of one of its frames.
    pub(super) fn any(&self) -> Option<FrameLocation> {
        self.frames.values().next().map(|frame| frame.place)
    }

    /// Finds the number of places from the recording, and frames that can have none.
    pub(super) fn settle(&mut self, recording: &Recording, head: &Head) {
        let lowest = self.frames.values().min_by_key(|frame| frame.place.extent.offset);
        let of_lowest = lowest.map_or(0, |frame| frame.number);
        self.first = match head.storing {
            Storing::Files => of_lowest,
            Storing::Positions => of_lowest - of_lowest % head.frames_per_file,
            _ => 0,
        };
        let there = self.frames.last_key_value().map_or(0, |(last, _)| last + 1 - self.first.min(*last));
        let index = &recording.index;
        let due = index.due.map(|due| due.saturating_sub(self.first));
        let full = index.expected() >= self.first.saturating_add(head.frames_per_file);
        let places = match (head.storing, due) {
            (Storing::Positions, Some(due)) => due.min(head.frames_per_file),
            (Storing::Positions, None) if full => head.frames_per_file,
            (Storing::Positions | Storing::Files, _) => 0,
            (_, due) => due.unwrap_or(0),
        };
        self.places = places.max(there).min(PLACES_MAX);
        // A frame without a place in the file can't be found there.
        let first = self.first;
        for (number, frame) in &mut self.frames {
            let extent = frame.place.extent;
            if number.checked_sub(first).is_none_or(|place| place >= PLACES_MAX) {
                frame.bytes = FrameBytes::Lost("its number is none of this file's".into());
            } else if extent.offset < nilometer_hdf5::SUPERBLOCK {
                frame.bytes = FrameBytes::Lost("it lies where files of HDF5 begin".into());
            }
        }
    }
}

/// Bytes of a tiled frame that are read first: its whole table, if it has up to some thousand tiles.
const TABLE_READ: usize = 4096;

/// The chunks of a frame with the index `in_file` in its file.
pub(super) fn chunks_of(file: &File, extent: &FrameExtent, in_file: u64) -> io::Result<Vec<StoredChunk>> {
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut begin = Vec::new();
    if matches!(extent.encoding, Encoding::Tiles(..)) {
        let length = extent.length as usize;
        begin.resize(length.min(TABLE_READ), 0);
        file.read_exact_at(&mut begin, extent.offset)?;
        let read = begin.len();
        begin.resize(TileTable::length(&begin).map_err(wrong)?.min(length), 0);
        if let Some(more) = begin.get_mut(read..) {
            file.read_exact_at(more, extent.offset + read as u64)?;
        }
    }
    let mut chunks = Vec::new();
    each_chunk(extent, in_file, &begin, |chunk| chunks.push(chunk)).map_err(wrong)?;
    Ok(chunks)
}

/// Files by lane and index.
pub(super) type Files = BTreeMap<(usize, u64), FileFrames>;

/// The frames from a lane's records.
#[derive(Default)]
struct TakenRecords {
    files: Files,
    /// Positions of frames whose own records follow.
    placed: BTreeMap<u64, DatasetPlace>,
}

/// Adds a record of a lane, if it belongs to a valid frame.
fn take(recording: &Recording, lane: usize, entry: Entry, taken: &mut TakenRecords) {
    if let Entry::Placed { number, place } = entry {
        taken.placed.insert(number, place);
    }
    let Entry::Frame { number, extent, due, checksum } = entry else { return };
    let in_dataset = taken.placed.remove(&number);
    let index = &recording.index;
    let place = FrameLocation { lane, extent };
    if !index.places(number).any(|known| known == place) {
        return;
    }
    // All lanes have one file if they share it.
    let is_shared = index.heads[lane].is_one_dataset();
    let key = if is_shared { (0, 0) } else { index.file_of(place) };
    let file = taken.files.entry(key).or_default();
    let bytes = FrameBytes::Unread;
    file.frames.insert(number, KnownFrame { number, place, due, checksum, bytes, in_dataset });
}

/// The frames of each file, by lane and index.
pub(super) fn by_file(recording: &Recording) -> Result<Files, RepairError> {
    let index = &recording.index;
    let mut taken = TakenRecords::default();
    for lane in 0..index.heads.len() {
        taken.placed.clear();
        recording
            .each_entry(lane, |entry| take(recording, lane, entry, &mut taken))
            .map_err(|source| RepairError::Directory { path: recording.journal(lane), source })?;
    }
    let mut files = taken.files;
    for ((lane, _), file) in &mut files {
        file.settle(recording, &index.heads[*lane]);
    }
    Ok(files)
}
