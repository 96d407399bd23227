//! Offsets of blocks in a recording that is one file. Pure: computed from the index.

use crate::reader::Index;

/// Blocks one after the other. Almost all have the same size, so this keeps only the offsets after shorter
/// blocks.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    size: u64,
    /// First block of each run of full blocks, with its offset.
    runs: Vec<(u64, u64)>,
    /// Number after the last block.
    end: u64,
}

impl Blocks {
    /// Creates an empty list of blocks of `size` bytes. The first block gets number `first`.
    pub(super) fn new(size: u64, first: u64) -> Self {
        Blocks { size, runs: vec![(first, 0)], end: first }
    }

    /// Number of the first block.
    pub(super) fn first(&self) -> u64 {
        self.runs[0].0
    }

    /// Adds the blocks up to `end` with their present lengths. Missing blocks count as full, except the last of
    /// the recording.
    pub(super) fn extend(&mut self, index: &Index, end: u64) {
        let lengths = index.frames.range(self.end..end.max(self.end));
        let lengths = lengths.map(|(block, place)| (block, Some(place.extent.size)));
        // The journal states the length of the last block even if that block is missing.
        let last = index.due.and_then(|due| due.checked_sub(1)).filter(|last| (self.end..end).contains(last));
        let last = last.filter(|last| !index.frames.contains(*last)).map(|last| (last, index.last));
        for (block, length) in lengths.chain(last) {
            let length = length.map_or(self.size, u64::from).min(self.size);
            if length < self.size {
                self.runs.push((block + 1, self.begin(block) + length));
            }
        }
        self.end = self.end.max(end);
    }

    /// Bytes of all blocks.
    pub(super) fn length(&self) -> u64 {
        self.begin(self.end)
    }

    /// Number after the last block.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offset of a block. Give it no block before the first.
    pub(super) fn begin(&self, block: u64) -> u64 {
        let run = self.runs.partition_point(|(first, _)| *first <= block).saturating_sub(1);
        let (first, begin) = self.runs[run];
        begin + block.saturating_sub(first) * self.size
    }

    /// Returns the block that holds the byte at `offset`, which must be below the length.
    pub(super) fn at(&self, offset: u64) -> u64 {
        let run = self.runs.partition_point(|(_, begin)| *begin <= offset) - 1;
        let (first, begin) = self.runs[run];
        first + (offset - begin) / self.size
    }
}

/// Returns the watermark: all blocks below it have arrived or never will. The caller knows this for those below
/// `from`.
///
/// A missing block counts as lost when others were complete some time after it.
pub(super) fn mark(index: &Index, from: u64) -> u64 {
    let mut next = from;
    for block in index.frames.numbers(from..u64::MAX) {
        let removed = || index.removed.count_in(next..block);
        let open = block > next && removed() < block - next;
        if open && index.recent.has(block) {
            break;
        }
        next = block + 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        journal::{Encoding, Entry, FrameExtent, Head, RECORD},
        reader::Trust,
    };
    use nilometer_model::{FileNames, Format, Storing};

    /// Returns an index of blocks with these numbers, lengths and completion times.
    fn index(blocks: &[(u64, u32, u64)]) -> Index {
        let head = Entry::Head(Head {
            recording: 1,
            lane: 0,
            lanes: 1,
            frame_size: 10,
            stride: 10,
            frames_per_file: 7,
            storing: Storing::Growing,
            format: Format::Raw,
            names: FileNames::default(),
        });
        let frame = |&(number, length, due)| Entry::Frame {
            number,
            extent: FrameExtent {
                file: 0,
                offset: 10 * number,
                length,
                encoding: Encoding::Raw,
                size: length,
            },
            due,
            checksum: None,
        };
        let mut journal = vec![0; (blocks.len() + 1) * RECORD];
        let entries = std::iter::once(head).chain(blocks.iter().map(frame));
        for (sequence, (entry, record)) in (0..).zip(entries.zip(journal.chunks_exact_mut(RECORD))) {
            entry.put(sequence, record);
        }
        Index::unite([journal.as_slice()], Trust::Acknowledged)
    }

    proptest! {
        #[test]
        fn every_byte_is_in_the_block_that_a_plain_sum_says(
            first in 0..9_u64, lengths in prop::collection::vec(prop::option::of(1..=10_u32), 0..40), cut in 0..40_u64,
        ) {
            let present = (first..).zip(&lengths).filter_map(|(block, length)| Some((block, (*length)?, 0)));
            let index = index(&present.collect::<Vec<_>>());
            let (mut blocks, end) = (Blocks::new(10, first), first + lengths.len() as u64);
            blocks.extend(&index, (first + cut).min(end));
            blocks.extend(&index, end);
            let mut offset = 0;
            for (block, length) in (first..).zip(&lengths) {
                prop_assert_eq!(blocks.begin(block), offset);
                for _ in 0..length.unwrap_or(10) {
                    prop_assert_eq!(blocks.at(offset), block);
                    offset += 1;
                }
            }
            prop_assert_eq!(blocks.length(), offset);
        }
    }

    #[test]
    fn the_mark_waits_for_what_is_on_its_way_and_not_for_ever() {
        let second = 1_000_000_000;
        let there = |blocks: &[(u64, u64)]| {
            index(&blocks.iter().map(|(block, due)| (*block, 10, due * second)).collect::<Vec<_>>())
        };
        assert_eq!(mark(&there(&[]), 0), 0);
        assert_eq!(mark(&there(&[(0, 0), (1, 0), (3, 1), (4, 10)]), 0), 2, "the third may still come");
        assert_eq!(mark(&there(&[(0, 0), (1, 0), (3, 1), (4, 11)]), 0), 5, "ten seconds later it will not");
        assert_eq!(mark(&there(&[(0, 0), (1, 0), (3, 1), (4, 2)]), 3), 5);
        let mut removed = there(&[(2, 0), (3, 1)]);
        (0..2).for_each(|block| removed.removed.add(block));
        assert_eq!(mark(&removed, 0), 4, "what was removed is not on its way");
    }
}
