//! Merges the streams of several senders: small blocks of each, as they are closed, into the blocks that are
//! recorded.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_recording::{Gap, GapSender, Packed};
use nilometer_ring::{Frame, Ring};
use nilometer_storage::Buffer;

use crate::assembly::HandedOver;

/// The shape of the blocks of a recording.
#[derive(Debug, Clone)]
pub(super) struct MergedShape {
    /// Bytes kept of each packet of a frame.
    pub(super) parts: Vec<usize>,
    /// Frames of a full block.
    pub(super) frames_of_block: u64,
}

impl MergedShape {
    fn frame_size(&self) -> usize {
        self.parts.iter().sum()
    }

    /// The counts of a block with this many frames and these gaps.
    fn packed(&self, frames: u64, gaps: Vec<Gap>) -> Packed {
        let per_frame = self.parts.len() as u64;
        let mut packets = frames * per_frame;
        let mut bytes = frames * self.frame_size() as u64;
        for gap in gaps.iter().filter(|gap| gap.filled) {
            packets -= gap.count;
            let places = u64::from(gap.at)..u64::from(gap.at) + gap.count;
            bytes -= places.map(|place| self.parts[(place % per_frame) as usize] as u64).sum::<u64>();
        }
        Packed { length: (frames * self.frame_size() as u64) as u32, packets, bytes, gaps }
    }
}

/// A merged block that is not full yet.
#[derive(Debug)]
struct MergedBlock {
    data: Buffer,
    frames: u64,
    gaps: Vec<Gap>,
}

/// Merges small blocks into the blocks of a ring.
#[derive(Debug)]
pub(super) struct BlockMerger {
    ring: Arc<Ring>,
    shape: MergedShape,
    /// The number of the current block.
    number: u64,
    block: Option<MergedBlock>,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
}

impl BlockMerger {
    /// Goes on behind the blocks of the only sender so far.
    pub(super) fn new(ring: Arc<Ring>, shape: MergedShape, handed: HandedOver) -> Self {
        let HandedOver { number, begun, spares } = handed;
        let block = begun.map(|(data, packed)| MergedBlock {
            data,
            frames: u64::from(packed.length) / shape.frame_size() as u64,
            gaps: packed.gaps,
        });
        BlockMerger { ring, shape, number, block, spares, full: Vec::new() }
    }

    /// Returns true if there is room for this many frames now.
    pub(super) fn has_room(&mut self, now: Nanos, frames: u64) -> bool {
        if self.room() < frames {
            self.ring.put(now, &mut self.full, &mut self.spares, false);
        }
        self.room() >= frames
    }

    fn room(&self) -> u64 {
        let begun = self.block.as_ref().map_or(0, |block| self.shape.frames_of_block - block.frames);
        begun + self.spares.len() as u64 * self.shape.frames_of_block
    }

    /// Number of frames in a block.
    pub(super) fn frames_in(&self, packed: &Packed) -> u64 {
        u64::from(packed.length) / self.shape.frame_size() as u64
    }

    /// Reports that the receiver had not looked for this long.
    pub(super) fn halted(&self, length: Nanos) {
        self.ring.halted(length);
    }

    /// Appends the frames of a block of this sender. There must be room for them.
    pub(super) fn append(&mut self, now: Nanos, bytes: &[u8], packed: &Packed, sender: GapSender) {
        let frames = u64::from(packed.length) / self.shape.frame_size() as u64;
        let mut from = 0;
        while from < frames {
            let Some(mut block) = self.block.take().or_else(|| self.next_block()) else { return };
            let count = (frames - from).min(self.shape.frames_of_block - block.frames);
            self.copy(&mut block, bytes, from..from + count);
            let gaps = self.cut(&packed.gaps, from, count, from + count == frames);
            let offset = (block.frames * self.per_frame()) as u32;
            block.gaps.extend(gaps.map(|gap| Gap { at: gap.at + offset, sender: Some(sender), ..gap }));
            block.frames += count;
            from += count;
            self.put_back(now, block);
        }
    }

    fn next_block(&mut self) -> Option<MergedBlock> {
        self.spares.pop().map(|data| MergedBlock { data, frames: 0, gaps: Vec::new() })
    }

    fn per_frame(&self) -> u64 {
        self.shape.parts.len() as u64
    }

    fn copy(&self, block: &mut MergedBlock, bytes: &[u8], frames: std::ops::Range<u64>) {
        let size = self.shape.frame_size();
        let source = &bytes[frames.start as usize * size..frames.end as usize * size];
        block.data[block.frames as usize * size..][..source.len()].copy_from_slice(source);
    }

    /// The gaps in `count` frames beginning with frame `from`, counted from there. The last frames include
    /// the gaps after them.
    fn cut<'a>(
        &self,
        gaps: &'a [Gap],
        from: u64,
        count: u64,
        is_last: bool,
    ) -> impl Iterator<Item = Gap> + use<'a> {
        let begin = from * self.per_frame();
        let end = (from + count) * self.per_frame();
        gaps.iter().filter_map(move |gap| {
            let at = u64::from(gap.at);
            if !gap.filled {
                let is_here = (begin..end).contains(&at) || is_last && at >= end;
                return is_here.then(|| Gap { at: (at - begin) as u32, ..*gap });
            }
            let first = at.max(begin);
            let last = (at + gap.count).min(end);
            (first < last).then(|| Gap { at: (first - begin) as u32, count: last - first, ..*gap })
        })
    }

    /// Sends a block on if it is full.
    fn put_back(&mut self, now: Nanos, block: MergedBlock) {
        if block.frames == self.shape.frames_of_block {
            self.send(now, block);
        } else {
            self.block = Some(block);
        }
    }

    fn send(&mut self, now: Nanos, block: MergedBlock) {
        let packed = self.shape.packed(block.frames, block.gaps);
        let frame = Frame::new(self.number, now, now, block.data);
        self.full.push(Frame { packed: Some(Box::new(packed)), ..frame });
        self.number += 1;
        self.ring.put(now, &mut self.full, &mut self.spares, false);
    }

    /// Sends the last block: no frame follows. Returns the number of all blocks.
    pub(super) fn end(&mut self, now: Nanos) -> u64 {
        if let Some(block) = self.block.take() {
            self.send(now, block);
        }
        self.number
    }

    /// Returns true if every writer of the ring has left.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use nilometer_storage::Arena;
    use proptest::prelude::*;

    use super::*;
    use nilometer_ring::Chronicle;

    const PART: usize = 8;

    fn shape(parts: usize) -> MergedShape {
        MergedShape { parts: vec![PART; parts], frames_of_block: 5 }
    }

    /// The finished blocks: their frames' first bytes, and their gaps.
    fn taken(ring: &Ring) -> Vec<(Vec<u8>, Packed)> {
        let mut frames = VecDeque::new();
        while ring.take(Nanos(0), 0, &mut frames) == nilometer_ring::Taken::Frames {}
        frames
            .into_iter()
            .map(|frame| {
                let packed = *frame.packed.expect("blocks of packets");
                let bytes = frame.data[..packed.length as usize].iter().step_by(PART).copied().collect();
                (bytes, packed)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn frames_and_gaps_of_all_senders_come_out_in_the_order_in_which_they_came(
            pieces in prop::collection::vec((1_u64..9, 1_u16..4, any::<u8>()), 1..12), parts in 1_usize..3,
        ) {
            let shape = shape(parts);
            let size = shape.frame_size();
            let ring = Ring::new(
                Arena::shared_out(40, 5 * size).1, 1, Chronicle::new(5 * size as u64, Nanos(1)),
            );
            let handed = HandedOver { number: 0, begun: None, spares: Vec::new() };
            let mut merger = BlockMerger::new(ring.clone(), shape.clone(), handed);
            let mut expected: Vec<(u8, Option<u16>)> = Vec::new();
            let mut left_out = 0;
            for (at, (frames, number, mask)) in pieces.into_iter().enumerate() {
                // Packets whose bits are 0 are missing, and one frame was left out before the last.
                let places = frames * parts as u64;
                let gaps: Vec<Gap> = (0..places)
                    .filter(|place| mask >> (place % 8) & 1 == 0)
                    .map(|place| Gap { at: place as u32, count: 1, filled: true, sender: None })
                    .chain([Gap { at: places as u32, count: parts as u64, filled: false, sender: None }])
                    .collect();
                left_out += parts as u64;
                let packed = shape.packed(frames, gaps);
                let bytes = vec![at as u8; frames as usize * size];
                prop_assert!(merger.has_room(Nanos(0), frames));
                merger.append(Nanos(0), &bytes, &packed, GapSender::new(number, None));
                expected.extend((0..places).map(|place| {
                    (at as u8, (mask >> (place % 8) & 1 == 0).then_some(number))
                }));
            }
            let blocks = merger.end(Nanos(0));
            let mut came: Vec<(u8, Option<u16>)> = Vec::new();
            let (mut said, mut out) = (0, 0);
            for (bytes, packed) in taken(&ring) {
                let mut block: Vec<_> = bytes.into_iter().map(|byte| (byte, None)).collect();
                for gap in packed.gaps.iter().filter(|gap| gap.filled) {
                    let begin = gap.at as usize;
                    for place in &mut block[begin..begin + gap.count as usize] {
                        place.1 = gap.sender.map(|sender| sender.number);
                    }
                }
                said += packed.gaps.iter().filter(|gap| !gap.filled).map(|gap| gap.count).sum::<u64>();
                let absent = block.iter().filter(|(_, missing)| missing.is_some()).count() as u64;
                prop_assert_eq!((packed.packets, packed.bytes), (
                    block.len() as u64 - absent, (block.len() as u64 - absent) * PART as u64
                ));
                came.extend(block);
                out += 1;
            }
            prop_assert_eq!((came, said, out), (expected, left_out, blocks));
        }
    }
}
