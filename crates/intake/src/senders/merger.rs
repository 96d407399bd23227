//! Merges the streams of several senders into the blocks that are recorded.
//!
//! A block of a stream, of a few frames, is a *piece* of a slot of the ring. The usual block gets its piece
//! before its packets, which the kernel then writes to where they are recorded. For example, with slots of
//! four pieces and two streams:
//!
//! ```text
//! slot 7    A4  B2  A5  B3     all have come: it goes to the ring
//! slot 8    A6  B4  A7  .      A waits for packets of 7, the next block gets the last piece
//! ```
//!
//! The merger copies some blocks to their piece when they are complete. Their stream is slow or waits for a
//! missing packet, they found no free slot, or they don't fit into the rest of a slot.
//!
//! No stream holds a slot back for long, because only a few slots are open at once. If one more is needed, all
//! streams give their pieces back ([`BlockMerger::take_back`]). Then the frames that have come move together
//! ([`BlockMerger::compact`]).

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::Nanos;
use nilometer_recording::{Gap, GapSender, Packed};
use nilometer_ring::{Frame, Ring};
use nilometer_storage::Buffer;

use super::{
    merged_slot::{MergedSlot, Piece},
    piece_content::{MergedShape, PieceContent},
    whole_slot::{WholeSlot, move_together},
};
use crate::assembly::{HandedOver, LentPlace, MergedPlace};

/// Open slots have room for this many blocks of streams, if that is no more than one in `OPEN_SHARE` of the
/// ring's slots.
const OPEN_PIECES: u64 = 64;
const OPEN_SHARE: usize = 4;
/// In a ring too small for this many open slots and pieces, a single stream would soon hold all of them. The
/// merger copies all blocks there.
const OPEN_LEAST: usize = 2;
const PIECES_LEAST: u64 = 16;

/// Merges blocks of streams into the blocks of a ring.
#[derive(Debug)]
pub(super) struct BlockMerger {
    ring: Arc<Ring>,
    shape: MergedShape,
    /// The number of the first open slot.
    number: u64,
    slots: VecDeque<MergedSlot>,
    /// The place of the first piece of that slot. Pieces are counted in their order.
    first_place: u64,
    /// Maximum number of open slots while streams have places in them. If it is 0, no stream gets one.
    open_most: usize,
    /// Frames of all blocks so far.
    merged: u64,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
}

impl BlockMerger {
    /// Goes on behind the blocks of the only sender so far.
    pub(super) fn new(ring: Arc<Ring>, shape: MergedShape, handed: HandedOver) -> Self {
        let HandedOver { number, begun, spares } = handed;
        let begun = begun.map(|(data, packed)| {
            let content = PieceContent { frames: shape.frames_in(&packed), gaps: packed.gaps };
            MergedSlot::new(&shape, data, vec![content])
        });
        let open_most = open_most(&shape, ring.books().slots);
        BlockMerger {
            ring,
            shape,
            number,
            slots: begun.into_iter().collect(),
            first_place: 0,
            open_most,
            merged: 0,
            spares,
            full: Vec::new(),
        }
    }

    /// Gives no places from now on: all blocks are copied.
    #[cfg(test)]
    pub(super) fn copy_all(&mut self) {
        self.open_most = 0;
    }

    /// Frames of all blocks so far.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Frames of other streams after which a block should be complete, so that it does not hold slots back.
    pub(super) fn pace(&self) -> u64 {
        self.open_most as u64 * self.shape.frames_of_block * 3 / 4
    }

    /// Returns true if there is room for the frames of this block now.
    pub(super) fn has_room(&mut self, now: Nanos, packed: &Packed) -> bool {
        self.has_room_for(now, self.shape.frames_in(packed))
    }

    fn has_room_for(&mut self, now: Nanos, frames: u64) -> bool {
        if self.room() < frames {
            self.ring.put(now, &mut self.full, &mut self.spares, false);
        }
        self.room() >= frames
    }

    fn room(&self) -> u64 {
        self.left() + self.spares.len() as u64 * self.shape.frames_of_block
    }

    /// Frames that the last open slot has room for.
    fn left(&self) -> u64 {
        self.slots.back().map_or(0, MergedSlot::left)
    }

    /// Returns true if no more slots may be open, and the first waits for a stream.
    pub(super) fn is_stuck(&self) -> bool {
        self.slots.len() >= self.open_most && self.slots.front().is_some_and(|slot| slot.left() == 0)
    }

    /// Returns true if the first slot has waited for a stream for longer than `patience`.
    pub(super) fn is_overdue(&self, now: Nanos, patience: Nanos) -> bool {
        let waiting = self.slots.front().and_then(|slot| slot.waiting(now));
        waiting.is_some_and(|waiting| waiting > patience)
    }

    /// Reports that the receiver had not looked for this long.
    pub(super) fn halted(&self, length: Nanos) {
        self.ring.halted(length);
    }

    /// Reserves a place for a block of a stream. `None`: there is none now.
    pub(super) fn lend(&mut self, now: Nanos) -> Option<LentPlace> {
        let frames = self.shape.frames_of_piece;
        let needs_slot = self.left() < frames;
        if needs_slot && (self.slots.len() >= self.open_most || !self.has_room_for(now, frames)) {
            return None;
        }
        let place = self.reserve(now, frames);
        let piece = self.piece(place)?;
        // If the place is not in one slot, the block is copied when it is complete.
        let data = if piece.frames == frames { piece.data.take() } else { None };
        Some(LentPlace { place, data })
    }

    /// Reserves pieces for the next frames. There must be room for them.
    fn reserve(&mut self, now: Nanos, frames: u64) -> MergedPlace {
        let place = MergedPlace(self.end_place());
        let mut missing = frames;
        while missing > 0 {
            if self.left() == 0 {
                let Some(data) = self.spares.pop() else { break };
                self.slots.push_back(MergedSlot::new(&self.shape, data, Vec::new()));
            }
            let Some(slot) = self.slots.back_mut() else { break };
            let count = missing.min(slot.left());
            slot.reserve(&self.shape, now, count);
            missing -= count;
        }
        place
    }

    /// The place behind all pieces.
    fn end_place(&self) -> u64 {
        self.first_place + self.slots.iter().map(|slot| slot.pieces.len() as u64).sum::<u64>()
    }

    fn piece(&mut self, MergedPlace(place): MergedPlace) -> Option<&mut Piece> {
        let mut at = place.checked_sub(self.first_place)? as usize;
        for slot in &mut self.slots {
            if at < slot.pieces.len() {
                return slot.pieces.get_mut(at);
            }
            at -= slot.pieces.len();
        }
        None
    }

    /// Takes a place back that a block does not need.
    pub(super) fn take_back(&mut self, lent: LentPlace) {
        let LentPlace { place, data } = lent;
        if let Some(piece) = self.piece(place) {
            piece.data = piece.data.take().or(data);
        }
        let behind = place.0.saturating_sub(self.first_place) as usize;
        let pieces = self.slots.iter().flat_map(|slot| &slot.pieces).skip(behind);
        let is_last = pieces.map(|piece| piece.frames).sum::<u64>() == self.shape.frames_of_piece;
        // Otherwise it remains without content, and the frames behind it move down later.
        while is_last && self.end_place() > place.0 {
            self.remove_last();
        }
    }

    /// Removes the last piece, with its slot if it is the only one there: each open slot has a piece.
    fn remove_last(&mut self) {
        let Some(slot) = self.slots.back_mut() else { return };
        slot.remove_last();
        if let Some(slot) = self.slots.pop_back_if(|slot| slot.pieces.is_empty()) {
            self.spares.push(slot.into_whole().data);
        }
    }

    /// Takes a complete block of this sender for which a place is reserved. `bytes` are its frames if it does
    /// not lie in the place.
    pub(super) fn complete(&mut self, now: Nanos, lent: LentPlace, bytes: &[u8], content: PieceContent) {
        let LentPlace { place, data } = lent;
        self.merged += content.frames;
        match (data, self.piece(place)) {
            (Some(data), Some(piece)) => {
                piece.data = Some(data);
                piece.content = Some(content);
            }
            _ => self.copy(place, bytes, &content),
        }
        self.send_complete(now);
    }

    /// Copies the frames of a block of this sender behind all others. There must be room for them.
    pub(super) fn append(&mut self, now: Nanos, bytes: &[u8], content: &PieceContent) {
        let place = self.reserve(now, content.frames);
        self.merged += content.frames;
        self.copy(place, bytes, content);
        self.send_complete(now);
    }

    /// The content of a block of this sender.
    pub(super) fn content(&self, packed: &Packed, sender: GapSender) -> PieceContent {
        PieceContent::of(&self.shape, packed, sender)
    }

    /// Copies frames into consecutive pieces.
    fn copy(&mut self, first: MergedPlace, bytes: &[u8], content: &PieceContent) {
        let BlockMerger { shape, slots, first_place, .. } = self;
        let behind = first.0.saturating_sub(*first_place) as usize;
        let size = shape.frame_size();
        let mut from = 0;
        for piece in slots.iter_mut().flat_map(|slot| &mut slot.pieces).skip(behind) {
            let count = piece.frames.min(content.frames - from);
            let Some(data) = piece.data.as_mut().filter(|_| count > 0) else { return };
            let source = &bytes[from as usize * size..(from + count) as usize * size];
            data[..source.len()].copy_from_slice(source);
            piece.content = Some(content.part(shape, from, count));
            from += count;
        }
    }

    /// Sends complete slots to the ring, in their order.
    fn send_complete(&mut self, now: Nanos) {
        while let Some(slot) = self.slots.pop_front_if(|slot| slot.is_complete()) {
            self.first_place += slot.pieces.len() as u64;
            self.send(now, slot);
        }
    }

    fn send(&mut self, now: Nanos, slot: MergedSlot) {
        let WholeSlot { data, contents } = slot.into_whole();
        let frames = contents.iter().map(|(_, content)| content.frames).sum();
        let mut gaps = Vec::new();
        for (at, content) in contents {
            let offset = (at * self.shape.per_frame()) as u32;
            gaps.extend(content.gaps.into_iter().map(|gap| Gap { at: gap.at + offset, ..gap }));
        }
        let packed = self.shape.packed(frames, gaps);
        let frame = Frame::new(self.number, now, now, data);
        self.full.push(Frame { packed: Some(Box::new(packed)), ..frame });
        self.number += 1;
        self.ring.put(now, &mut self.full, &mut self.spares, false);
    }

    /// Moves frames together over pieces that have no content, and sends the slots that are complete then.
    /// No stream may have a place.
    pub(super) fn compact(&mut self, now: Nanos) {
        let slots = std::mem::take(&mut self.slots);
        self.first_place = 0;
        let slots = slots.into_iter().map(MergedSlot::into_whole).collect();
        for WholeSlot { data, contents } in move_together(&self.shape, slots) {
            if contents.is_empty() {
                self.spares.push(data);
            } else {
                let contents = contents.into_iter().map(|(_, content)| content).collect();
                self.slots.push_back(MergedSlot::new(&self.shape, data, contents));
            }
        }
        self.send_complete(now);
    }

    /// Sends the last block: no frame follows. Returns the number of all blocks.
    pub(super) fn end(&mut self, now: Nanos) -> u64 {
        self.compact(now);
        if let Some(slot) = self.slots.pop_front() {
            self.send(now, slot);
        }
        self.number
    }

    /// Returns true if every writer of the ring has left.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }
}

/// Maximum number of open slots in a ring with this many slots.
fn open_most(shape: &MergedShape, slots: usize) -> usize {
    let wanted = (OPEN_PIECES * shape.frames_of_piece).div_ceil(shape.frames_of_block) as usize;
    let most = wanted.max(OPEN_LEAST).min(slots / OPEN_SHARE);
    let has_pieces = most as u64 * shape.frames_of_block >= PIECES_LEAST * shape.frames_of_piece;
    if most >= OPEN_LEAST && has_pieces { most } else { 0 }
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
        MergedShape { parts: vec![PART; parts], frames_of_block: 5, frames_of_piece: 2 }
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
                prop_assert!(merger.has_room(Nanos(0), &packed));
                merger.append(Nanos(0), &bytes, &merger.content(&packed, GapSender::new(number, None)));
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
