//! The blocks in a file of frames, and the stretches in which a copy reads them. There is no I/O here.
//!
//! ```text
//! file       |header| block 0 | block 1 |  gap  | block 2 | index ..
//! stretches  |--1---|---------2---------|---3---|----4----| the rest
//! ```

use std::ops::Range;

use crate::{
    instrument::Content,
    journal::{Encoding, FrameExtent},
};

/// A block that the journal has in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockInFile {
    pub(super) number: u64,
    pub(super) extent: FrameExtent,
    /// CRC-32 (ISO-HDLC) of its decoded bytes. `None` if the journal has none.
    pub(super) checksum: Option<u32>,
}

/// The state of a block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// They are those that the recorder wrote.
    Right,
    /// Nothing tells if they are.
    Unchecked,
    Damaged,
}

impl BlockInFile {
    fn end(&self) -> u64 {
        self.extent.offset.saturating_add(self.extent.length.into())
    }

    /// Checks the bytes of a stretch that begins at `begin` in the file.
    pub(super) fn state(&self, bytes: &[u8], begin: u64, content: Option<&Content>) -> BlockState {
        let from = (self.extent.offset - begin) as usize;
        let Some(stored) = bytes.get(from..from + self.extent.length as usize) else {
            return BlockState::Damaged;
        };
        if content.is_none() && self.checksum.is_none() {
            return BlockState::Unchecked;
        }
        let mut decoded = Vec::new();
        let frame = match self.extent.encoding {
            Encoding::Raw => stored,
            encoding => {
                decoded.resize(self.extent.size as usize, 0);
                if encoding.decode(stored, &mut decoded).is_err() {
                    return BlockState::Damaged;
                }
                &decoded
            }
        };
        let is_right = match content {
            Some(content) => content.verify(self.number, frame).is_ok(),
            None => self.checksum == Some(crc32fast::hash(frame)),
        };
        if is_right { BlockState::Right } else { BlockState::Damaged }
    }
}

/// Consecutive bytes of a file, and the blocks in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) bytes: Range<u64>,
    /// Places in the list of the file's blocks.
    pub(super) blocks: Range<usize>,
}

/// Bytes of a stretch, at least, unless a gap or the file ends before.
pub(super) const AT_ONCE: u64 = 4 << 20;

/// Cuts a file into stretches up to the end of its last block. The blocks must be in the order of their offsets.
pub(super) fn stretches(blocks: &[BlockInFile]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut at = 0;
    let mut next = 0;
    while let Some(block) = blocks.get(next) {
        while at < block.extent.offset {
            let end = block.extent.offset.min(at + AT_ONCE);
            stretches.push(Stretch { bytes: at..end, blocks: next..next });
            at = end;
        }
        let first = next;
        let begin = block.extent.offset;
        let mut end = begin;
        while let Some(block) = blocks.get(next)
            && block.extent.offset <= end
            && end - begin < AT_ONCE
        {
            end = end.max(block.end());
            next += 1;
        }
        stretches.push(Stretch { bytes: begin..end, blocks: first..next });
        at = at.max(end);
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64, offset: u64, length: u32) -> BlockInFile {
        let extent = FrameExtent { file: 0, offset, length, encoding: Encoding::Raw, size: length };
        BlockInFile { number, extent, checksum: Some(crc32fast::hash(&vec![7; length as usize])) }
    }

    #[test]
    fn stretches_have_every_byte_and_every_block_once() {
        let mebi = 1 << 20;
        let blocks = [block(0, 100, 3 << 20), block(1, 100 + 3 * mebi, 2 << 20), block(2, 20 * mebi, 50)];
        let stretches = stretches(&blocks);
        let mut at = 0;
        let mut next = 0;
        for stretch in &stretches {
            assert_eq!((stretch.bytes.start, stretch.blocks.start), (at, next), "{stretches:?}");
            (at, next) = (stretch.bytes.end, stretch.blocks.end);
        }
        assert_eq!((at, next), (20 * mebi + 50, 3));
        assert_eq!(stretches[1].blocks, 0..2, "blocks without a gap are read at once");
    }

    #[test]
    fn blocks_that_overlap_in_a_forged_journal_are_still_read() {
        let blocks = [block(0, 0, 100), block(1, 50, 10), block(2, 80, 60)];
        let stretches = stretches(&blocks);
        assert_eq!(stretches, [Stretch { bytes: 0..140, blocks: 0..3 }]);
    }

    #[test]
    fn a_block_is_right_damaged_or_unchecked() {
        let one = block(0, 10, 5);
        assert_eq!(one.state(&[7; 20], 0, None), BlockState::Right);
        assert_eq!(one.state(&[7; 5], 10, None), BlockState::Right);
        assert_eq!(one.state(&[6; 20], 0, None), BlockState::Damaged);
        assert_eq!(one.state(&[7; 12], 0, None), BlockState::Damaged, "the file ends in it");
        let unknown = BlockInFile { checksum: None, ..one };
        assert_eq!(unknown.state(&[6; 20], 0, None), BlockState::Unchecked);
    }
}
