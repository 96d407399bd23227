//! A slot of the ring that is being filled with packets.

use std::ops::Range;

use nilometer_model::Nanos;
use nilometer_storage::Buffer;

use super::candidates::Behind;
use nilometer_recording::Gap;
use nilometer_wire::Geometry;

/// The layout of a block: frames one after the other, each of all its parts.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) parts: Vec<usize>,
    /// Offset of each part in its frame.
    offsets: Vec<usize>,
    pub(super) frame_size: usize,
    /// Packets of a full block.
    pub(super) packets: u64,
}

impl Shape {
    pub(super) fn new(geometry: &Geometry, frames: u64) -> Self {
        let offsets = geometry.parts.iter().scan(0, |end, size| {
            let begin = *end;
            *end += size;
            Some(begin)
        });
        Shape {
            offsets: offsets.collect(),
            frame_size: geometry.frame_size(),
            packets: frames * geometry.parts.len() as u64,
            parts: geometry.parts.clone(),
        }
    }

    /// Packets of a frame.
    pub(super) fn per_frame(&self) -> u64 {
        self.parts.len() as u64
    }

    /// The bytes of the packet at this place in a block.
    #[inline]
    pub(super) fn range(&self, place: usize) -> Range<usize> {
        let frame = place / self.parts.len();
        let part = place % self.parts.len();
        let begin = frame * self.frame_size + self.offsets[part];
        begin..begin + self.parts[part]
    }
}

/// The place of a block among the merged blocks of all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MergedPlace(pub(crate) u64);

/// The place of a block, with the buffer of the stream's own ring that it does not use meanwhile.
#[derive(Debug)]
pub(super) struct BlockPlace {
    pub(super) place: MergedPlace,
    /// `None`: the block uses it.
    pub(super) own: Option<Buffer>,
}

/// A block: a slot of the ring, and the packets that have arrived for it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) data: Buffer,
    /// A bit for each packet that has arrived.
    pub(super) present: Vec<u64>,
    /// The missing packets.
    pub(super) gaps: Vec<Gap>,
    /// Number of packets that have arrived.
    pub(super) count: u64,
    /// When the last of them arrived.
    pub(super) touched: Nanos,
    /// Its place among the merged blocks, if it lies there.
    pub(super) place: Option<BlockPlace>,
}

impl Block {
    pub(super) fn new(data: Buffer, packets: u64, now: Nanos) -> Self {
        Block {
            data,
            present: vec![0; packets.div_ceil(64) as usize],
            gaps: Vec::new(),
            count: 0,
            touched: now,
            place: None,
        }
    }

    /// How a packet with these bytes repeats the one that lies here.
    pub(super) fn repeated(&self, range: Range<usize>, body: &[u8]) -> Behind {
        if self.data[range] == *body { Behind::Copy } else { Behind::Conflict }
    }

    /// Packets below this place that arrived, and their bytes.
    pub(super) fn came(&self, shape: &Shape, end: usize) -> (u64, u64) {
        if self.is_full(shape, end) {
            return (shape.packets, end as u64 / shape.per_frame() * shape.frame_size as u64);
        }
        let there = (0..end).filter(|place| self.has(*place));
        there.fold((0, 0), |(packets, bytes), place| {
            (packets + 1, bytes + shape.parts[place % shape.parts.len()] as u64)
        })
    }

    /// Returns true if all packets of the block arrived and `end` is its end: then none is missing.
    fn is_full(&self, shape: &Shape, end: usize) -> bool {
        self.count == shape.packets && end as u64 == shape.packets
    }

    /// Marks a packet as arrived. Returns false if it already was.
    #[inline]
    pub(super) fn set(&mut self, place: usize) -> bool {
        let word = &mut self.present[place / 64];
        let bit = 1 << (place % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(new);
        new
    }

    pub(super) fn unset(&mut self, place: usize) {
        if self.has(place) {
            self.present[place / 64] &= !(1 << (place % 64));
            self.count -= 1;
        }
    }

    #[inline]
    pub(super) fn has(&self, place: usize) -> bool {
        self.present[place / 64] >> (place % 64) & 1 == 1
    }

    /// Places below `end` whose packets are missing, as ranges.
    pub(super) fn missing(&self, end: usize) -> Vec<Range<usize>> {
        let mut missing: Vec<Range<usize>> = Vec::new();
        for place in (0..end).filter(|place| !self.has(*place)) {
            match missing.last_mut() {
                Some(range) if range.end == place => range.end = place + 1,
                _ => missing.push(place..place + 1),
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_lie_in_their_frames_one_after_the_other() {
        let geometry = Geometry { prefix: 8, parts: vec![10, 10, 3], number_bits: 32, behind: Vec::new() };
        let shape = Shape::new(&geometry, 4);
        let ranges: Vec<_> = (0..5).map(|place| shape.range(place)).collect();
        assert_eq!(ranges, [0..10, 10..20, 20..23, 23..33, 33..43]);
        assert_eq!((shape.packets, shape.per_frame(), shape.frame_size), (12, 3, 23));
    }

    #[test]
    fn what_is_missing_is_what_did_not_come() {
        let mut block = Block::new(Buffer::empty(), 130, Nanos(0));
        let came = [0, 1, 5, 63, 64, 129];
        assert!(came.iter().all(|&place| block.set(place)));
        assert!(!block.set(5), "it is there already");
        assert_eq!(block.missing(130), [2..5, 6..63, 65..129]);
        assert_eq!(block.count, 6);
        block.unset(5);
        block.unset(5);
        assert_eq!((block.count, block.has(5)), (5, false));
    }
}
