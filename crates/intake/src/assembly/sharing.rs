//! A stream that turns out to share its port with others, each of which numbers its packets separately. It
//! goes on in blocks of its own ring, and all streams are later put together from their rings.

use std::sync::Arc;

use nilometer_model::{Bytes, Nanos};
use nilometer_recording::{Missing, Packed};
use nilometer_ring::Ring;
use nilometer_storage::Buffer;
use nilometer_wire::{Part, WireFormat};

use super::{Assembly, CandidateBound, ReorderWindow, Shape, candidates::Behind};

/// A packet of the stream would have arrived before the stream is this many places past it.
const PASSED: i64 = 8;

/// A ring for one of several streams, with small blocks.
#[derive(Debug, Clone)]
pub(crate) struct StreamRing {
    pub(crate) ring: Arc<Ring>,
    pub(crate) frames_of_block: u64,
    /// This many packets of the same stream may overtake a packet: there are slots for its blocks.
    pub(crate) window: u64,
}

/// The relation of another sender's packet to this stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketRelation {
    /// The stream went past it and does not have it.
    Missed,
    /// The stream will reach it soon.
    Ahead,
    /// The stream has the same packet: a network delivered it twice.
    Copy,
    /// The stream has another packet there, has left it behind, or is elsewhere.
    Other,
}

/// The position of a stream in the ring that it left.
#[derive(Debug)]
pub(crate) struct HandedOver {
    /// The number of its next block.
    pub(crate) number: u64,
    /// The block that is not full yet.
    pub(crate) begun: Option<(Buffer, Packed)>,
    /// Free slots of the ring.
    pub(crate) spares: Vec<Buffer>,
}

impl Assembly {
    /// Returns true if the stream can go on elsewhere now: not while its packets find no slot.
    pub(crate) fn can_hand_over(&self) -> bool {
        self.crowded.is_none()
    }

    /// Goes on in another ring, in smaller blocks. Before that it sends all blocks to the old ring, except
    /// one that is not full.
    pub(crate) fn hand_over(&mut self, now: Nanos, own: StreamRing) -> HandedOver {
        while self.first * self.shape.packets + self.shape.packets <= self.next() && !self.open.is_empty() {
            self.close_first(now, self.next());
        }
        let begun = self.finish_begun();
        let number = self.first;
        self.leave_ring(now);
        let open = self.open.drain(..).map(|block| block.data);
        let spares = open.chain(self.spares.drain(..)).collect();
        self.begin_in(own);
        HandedOver { number, begun, spares }
    }

    /// Removes the first block, if packets arrived for it.
    fn finish_begun(&mut self) -> Option<(Buffer, Packed)> {
        let begin = self.first * self.shape.packets;
        let end = |assembly: &Self| {
            let end = assembly.next().next_multiple_of(assembly.shape.per_frame());
            end.saturating_sub(begin).min(assembly.shape.packets) as usize
        };
        if self.missing == Missing::LeftOut {
            self.leave_out(end(self));
        }
        let end = end(self);
        if end == 0 {
            return None;
        }
        let block = self.finish_first(end)?;
        let packed = self.packed(&block, end);
        Some((block.data, packed))
    }

    /// Gives full blocks to the ring that it leaves.
    fn leave_ring(&mut self, now: Nanos) {
        self.ring.put(now, &mut self.full, &mut self.spares, false);
    }

    /// Begins in another ring. Places are counted from 0 again.
    fn begin_in(&mut self, own: StreamRing) {
        let StreamRing { ring, frames_of_block, window } = own;
        self.limits.window = window;
        let geometry = self.ports[0].format.geometry();
        self.shape = Shape::new(geometry, frames_of_block);
        let packet = Bytes(geometry.packet_size() as u64);
        let bytes = ring.books().slots as u64 * frames_of_block * self.shape.frame_size as u64;
        self.candidates.rebind(CandidateBound::of(Bytes(bytes), packet));
        let places = self.next().next_multiple_of(self.shape.per_frame());
        self.order.move_down(places);
        let port = &mut self.ports[0];
        port.next = port.next.saturating_sub(places);
        port.arrivals.move_down(places);
        port.expected.clear();
        port.format.share();
        self.ring = ring;
        self.first = 0;
        self.last = None;
        self.closed.clear();
        self.starts.clear();
        self.starts.push_back(0);
    }

    /// The ring for its blocks.
    pub(crate) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Maximum bytes of candidate packets.
    pub(crate) fn candidate_bytes(&self) -> u64 {
        self.candidates.bound().bytes().0
    }

    /// Bytes of the slots of that ring, as far as blocks fill them.
    pub(crate) fn ring_bytes(&self) -> u64 {
        self.ring.books().slots as u64 * self.frames_of_block() * self.shape.frame_size as u64
    }

    /// Packets of a frame.
    pub(crate) fn packets_of_frame(&self) -> u64 {
        self.shape.per_frame()
    }

    /// Frames of a block.
    pub(crate) fn frames_of_block(&self) -> u64 {
        self.shape.packets / self.shape.per_frame()
    }

    /// The reorder window, and the treatment of missing packets.
    pub(crate) fn limits(&self) -> (ReorderWindow, Missing) {
        (self.limits, self.missing)
    }

    /// The same format for another sender with separate numbers. `None` if senders can't be distinguished.
    pub(crate) fn format_of_another(&self) -> Option<Box<dyn WireFormat>> {
        if self.ports.len() == 1 { self.ports[0].format.of_another_sender() } else { None }
    }

    /// Returns true if a packet of the stream has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.order.has_begun()
    }

    /// Returns true if the stream was silent for a while.
    pub(crate) fn is_silent(&self) -> bool {
        let ReorderWindow { quiet, patience, .. } = self.limits;
        // The rate of a young stream is unknown.
        let at_least = if self.progress.is_young() { patience } else { quiet };
        self.progress.is_silent(at_least, patience)
    }

    /// Returns true if the silence is long enough that a few packets elsewhere are better than nothing.
    pub(crate) fn is_given_up(&self) -> bool {
        let patience = self.limits.patience;
        self.progress.is_silent(patience, patience)
    }

    /// How many frames `to` is behind `from`, the shorter way round.
    pub(crate) fn distance(&self, from: u64, to: u64) -> i64 {
        self.order.distance(from, to)
    }

    /// Distance of a packet from the stream's current place, in packets.
    pub(crate) fn places_away(&self, part: Part) -> u64 {
        self.order.place(part).abs_diff(self.next().cast_signed())
    }

    /// The relation of a packet with these bytes to this stream, if it arrived by another way.
    pub(crate) fn relation(&self, part: Part, body: &[u8]) -> PacketRelation {
        let body = &body[..body.len().min(self.shape.parts[part.part])];
        match self.repeated(part, body) {
            Some(Behind::Copy) if self.order.has_begun() => return PacketRelation::Copy,
            Some(_) => return PacketRelation::Other,
            None => {}
        }
        let place = self.order.place(part);
        let open = (self.first * self.shape.packets).cast_signed();
        let next = self.next().cast_signed();
        let far = next.saturating_add(self.limits.window.cast_signed());
        if !self.order.has_begun() || place < open || place >= far {
            PacketRelation::Other
        } else if place.saturating_add(PASSED) <= next {
            PacketRelation::Missed
        } else {
            PacketRelation::Ahead
        }
    }

    /// Counts packets that arrived but get no place, since no slot is free for them.
    pub(crate) fn refuse_all(&mut self, packets: u64) {
        self.tally.refused += packets;
        self.tally.lose_unfilled(packets);
    }

    /// Counts packets that are far from all others.
    pub(crate) fn count_stray(&mut self, packets: u64) {
        self.tally.stray += packets;
    }

    /// Counts packets as refused that had a place but found none in the recording.
    pub(crate) fn take_back(&mut self, packets: u64, bytes: u64) {
        self.tally.placed -= packets;
        self.tally.bytes -= bytes;
        self.refuse_all(packets);
    }
}
