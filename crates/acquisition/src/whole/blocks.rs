//! Where blocks lie in a recording that is one file: pure, from the index.

use nilometer_model::Nanos;

use crate::reader::Index;

/// Blocks one after the other. All but a few have one size: what follows from that is not kept.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    size: u64,
    /// From which block on which offset follows from the size.
    runs: Vec<(u64, u64)>,
    /// Behind the last one.
    end: u64,
}

/// A block that is missing in a recording that is still made is given up when others were complete so long after it.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

impl Blocks {
    /// None yet; so many bytes each. The first one has this number.
    pub(super) fn new(size: u64, first: u64) -> Self {
        Blocks { size, runs: vec![(first, 0)], end: first }
    }

    /// The number of the first one.
    pub(super) fn first(&self) -> u64 {
        self.runs[0].0
    }

    /// Up to this one as they are there now. What is missing is taken to be of full length, but for the last.
    pub(super) fn extend(&mut self, index: &Index, end: u64) {
        let lengths = index.frames.range(self.end..end.max(self.end));
        let lengths = lengths.map(|(&block, place)| (block, place.length));
        // Of the last one that is known too where it is missing.
        let last = index.due.and_then(|due| due.checked_sub(1)).filter(|last| (self.end..end).contains(last));
        let last = last.filter(|last| !index.frames.contains_key(last)).map(|last| (last, index.last));
        for (block, length) in lengths.chain(last) {
            let length = length.map_or(self.size, u64::from).min(self.size);
            if length < self.size {
                self.runs.push((block + 1, self.begin(block) + length));
            }
        }
        self.end = self.end.max(end);
    }

    /// Bytes of all.
    pub(super) fn length(&self) -> u64 {
        self.begin(self.end)
    }

    /// The number behind the last one.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Where a block begins, which is not before the first one.
    pub(super) fn begin(&self, block: u64) -> u64 {
        let run = self.runs.partition_point(|(first, _)| *first <= block).saturating_sub(1);
        let (first, begin) = self.runs[run];
        begin + block.saturating_sub(first) * self.size
    }

    /// The block that has the byte at this offset, which is below the length.
    pub(super) fn at(&self, offset: u64) -> u64 {
        let run = self.runs.partition_point(|(_, begin)| *begin <= offset) - 1;
        let (first, begin) = self.runs[run];
        first + (offset - begin) / self.size
    }
}

/// Below this, every block of a recording that is still made is there or will not come; the first `from` are known to be.
pub(super) fn mark(index: &Index, from: u64) -> u64 {
    let latest = index.frames.last_key_value().map_or(Nanos(0), |(_, place)| Nanos(place.due));
    let mut next = from;
    for (&block, place) in index.frames.range(from..) {
        let removed = || index.removed.count_in(next..block);
        let open = block > next && removed() < block - next;
        if open && latest.since(Nanos(place.due)) < PATIENCE {
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
    use crate::reader::Place;

    fn index(blocks: &[(u64, u32, u64)]) -> Index {
        let place =
            |length, due| Place { lane: 0, file: 0, position: 0, checksum: None, length: Some(length), due };
        let frames = blocks.iter().map(|(block, length, due)| (*block, place(*length, *due))).collect();
        Index { frames, ..Index::default() }
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
        removed.removed.add_all(0..2);
        assert_eq!(mark(&removed, 0), 4, "what was removed is not on its way");
    }
}
