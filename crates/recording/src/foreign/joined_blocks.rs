//! The blocks of a recording without a journal, joined to an index as a journal would state it.

use std::{path::Path, sync::Arc};

use nilometer_model::{FileNames, Format, Storing};

use super::shape::StreamShape;
use crate::{
    ForeignFacts,
    foreign_facts::ForeignLane,
    journal::{Encoding, FrameExtent, Head},
    reader::{FrameLocation, Index, Recording},
    recording_storage::RecordingStorage,
};

/// Properties that all blocks of a recording share.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLayout {
    /// The stream, if its frames were recognized.
    pub(super) shape: Option<StreamShape>,
    /// Bytes of a full block.
    pub(super) block_size: u64,
    /// Distance in bytes between two consecutive blocks of a file.
    pub(super) stride: u64,
    /// Blocks of a full file.
    pub(super) blocks_per_file: u64,
    pub(super) storing: Storing,
}

/// Largest block, unless a frame is larger. A smaller one would take more memory for the same file.
const BLOCK_MAX: u64 = 4 << 20;
/// Smallest block that divides a chunk, for the same reason.
const BLOCK_MIN: u64 = 64 << 10;
/// Largest chunk that is a block by itself.
const CHUNK_MAX: u64 = 1 << 30;

/// Returns the size of blocks of whole frames that divide a chunk, if there is one. A missing chunk is then as
/// many missing blocks.
pub(super) fn block_size(frame: u64, chunk: u64) -> u64 {
    let most = (BLOCK_MAX / frame).max(1);
    if chunk == 0 || !chunk.is_multiple_of(frame) {
        return most * frame;
    }
    let frames = chunk / frame;
    let is_share =
        |count: &u64| frames.is_multiple_of(*count) && (count * frame >= BLOCK_MIN || *count == frames);
    match (1..=most).rev().find(is_share) {
        Some(count) => count * frame,
        None if chunk <= CHUNK_MAX => chunk,
        None => most * frame,
    }
}

/// A block in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedBlock {
    pub(super) number: u64,
    pub(super) lane: usize,
    /// Index among the lane's files.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// An index in the making.
#[derive(Debug)]
pub(super) struct JoinedBlocks {
    layout: BlockLayout,
    index: Index,
    lanes: Vec<ForeignLane>,
}

impl JoinedBlocks {
    /// Starts with the files of all lanes.
    pub(super) fn new(layout: BlockLayout, lanes: Vec<ForeignLane>) -> Self {
        let mut index = Index::default();
        let first = lanes.first().and_then(|lane| lane.files.first());
        let head = Head {
            recording: first.map_or(0, |path| recording_id(path)),
            lane: 0,
            lanes: lanes.len() as u32,
            frame_size: layout.block_size,
            stride: layout.stride,
            frames_per_file: layout.blocks_per_file,
            storing: layout.storing,
            format: layout.shape.map_or(Format::Raw, |shape| shape.format),
            names: FileNames::default(),
        };
        for lane in 0..head.lanes {
            index.add_lane(Head { lane, ..head });
        }
        JoinedBlocks { layout, index, lanes }
    }

    /// Adds a block. Returns false if another file has it too.
    pub(super) fn add(&mut self, PlacedBlock { number, lane, file, offset, size }: PlacedBlock) -> bool {
        let is_first = !self.index.frames.contains(number);
        let length = size as u32;
        let extent = FrameExtent { file: file as u64, offset, length, encoding: Encoding::Raw, size: length };
        self.index.place(number, FrameLocation { lane, extent });
        is_first
    }

    /// Adds the bytes of a file from `begin` on, as blocks from `number` on. Returns the number after the last.
    pub(super) fn add_all(&mut self, first: PlacedBlock) -> u64 {
        let PlacedBlock { mut number, mut offset, .. } = first;
        let end = offset + first.size;
        while offset < end {
            let size = self.layout.block_size.min(end - offset);
            self.add(PlacedBlock { number, offset, size, ..first });
            number += 1;
            offset += size;
        }
        number
    }

    /// Returns the recording, whose blocks are all known. `near` is a time near that of its frames, in seconds
    /// since 2000.
    pub(super) fn recording(
        mut self,
        name: &str,
        near: u64,
        storage: Arc<dyn RecordingStorage>,
        facts: ForeignFacts,
    ) -> Recording {
        self.index.stream = self.layout.shape.map(|shape| shape.stream(near));
        self.index.due = Some(self.index.expected());
        Recording::without_journal(self.index, name, self.lanes, storage, facts)
    }
}

/// The same number for the same path: recordings that a mount shows at once have different ones.
fn recording_id(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    let backwards: Vec<u8> = bytes.iter().rev().copied().collect();
    u64::from(crc32fast::hash(bytes)) << 32 | u64::from(crc32fast::hash(&backwards))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_frames_and_shares_of_a_chunk() {
        // 256 MB, rounded down to whole frames of 8032 B as jive5ab does.
        let chunk = 256_000_000 / 8032 * 8032;
        let size = block_size(8032, chunk);
        assert!((BLOCK_MIN..=BLOCK_MAX).contains(&size), "{size}");
        assert!(chunk % size == 0 && size.is_multiple_of(8032), "{size}");
        assert_eq!(block_size(8032, 8032 * 33_427), 8032 * 33_427, "a prime number of frames is one block");
        assert_eq!(block_size(8032, 1_000_000), BLOCK_MAX / 8032 * 8032, "frames go over the end of a chunk");
        assert_eq!(block_size(1 << 23, 1 << 25), 1 << 23, "a frame is larger than a block");
        assert_eq!(block_size(8032, 0), BLOCK_MAX / 8032 * 8032);
        assert_eq!(block_size(8032, 8032), 8032, "a chunk of one frame");
    }
}
