//! A stream that turns out to share its port with others, each of which numbers its packets by itself: it goes on in blocks
//! of a ring of its own, from which all streams are put together.

use std::sync::Arc;

use nilometer_model::{Bytes, Nanos};
use nilometer_recording::{Missing, Packed};
use nilometer_ring::Ring;
use nilometer_storage::Buffer;
use nilometer_wire::{Part, WireFormat};

use super::{Assembly, CandidateBound, ReorderWindow, Shape, candidates::Behind};

/// A packet that the stream has passed by this many places would have come, if it were the stream's.
const PASSED: i64 = 8;

/// A ring for one of several streams, with small blocks.
#[derive(Debug, Clone)]
pub(crate) struct StreamRing {
    pub(crate) ring: Arc<Ring>,
    pub(crate) frames_of_block: u64,
    /// A packet may be overtaken by this many of the same stream: its blocks have slots.
    pub(crate) window: u64,
}

/// The relation of another sender's packet to this stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketRelation {
    /// The stream went past it and does not have it.
    Missed,
    /// The stream comes there soon.
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
    /// Whether the stream can go on elsewhere now: not while its packets find no slot.
    pub(crate) fn can_hand_over(&self) -> bool {
        self.crowded.is_none()
    }

    /// Goes on in another ring, in smaller blocks. All that came is in the ring before, except a block that is not full.
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

    /// The first block, if packets came into it.
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

    /// Places are counted from 0 again.
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

    /// The ring that its blocks go to.
    pub(crate) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Bytes of packets elsewhere that are kept, at the most.
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

    /// How far from their place packets may come, and what becomes of those that do not.
    pub(crate) fn limits(&self) -> (ReorderWindow, Missing) {
        (self.limits, self.missing)
    }

    /// The same format for a sender that numbers its packets by itself, if such senders can be told apart.
    pub(crate) fn format_of_another(&self) -> Option<Box<dyn WireFormat>> {
        if self.ports.len() == 1 { self.ports[0].format.of_another_sender() } else { None }
    }

    /// Whether a packet of the stream came.
    pub(crate) fn has_begun(&self) -> bool {
        self.order.has_begun()
    }

    /// Whether nothing came of the stream for a while.
    pub(crate) fn is_silent(&self) -> bool {
        let ReorderWindow { quiet, patience, .. } = self.limits;
        // The rate of a young stream is not known.
        let at_least = if self.progress.is_young() { patience } else { quiet };
        self.progress.is_silent(at_least, patience)
    }

    /// Whether nothing came of the stream for so long that a few packets elsewhere are better than nothing.
    pub(crate) fn is_given_up(&self) -> bool {
        let patience = self.limits.patience;
        self.progress.is_silent(patience, patience)
    }

    /// How many frames `to` is behind `from`, the shorter way round.
    pub(crate) fn distance(&self, from: u64, to: u64) -> i64 {
        self.order.distance(from, to)
    }

    /// How far a packet is from where the stream is, in packets.
    pub(crate) fn places_away(&self, part: Part) -> u64 {
        self.order.place(part).abs_diff(self.next().cast_signed())
    }

    /// The relation of a packet with these bytes to this stream, if it came by another way.
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

    /// Counts packets that came and will not be put down, since no slot is free for them.
    pub(crate) fn refuse_all(&mut self, packets: u64) {
        self.tally.refused += packets;
        self.tally.lose_unfilled(packets);
    }

    /// Counts packets that are far from all others.
    pub(crate) fn count_stray(&mut self, packets: u64) {
        self.tally.stray += packets;
    }

    /// Packets that had their place did not find one in the recording.
    pub(crate) fn take_back(&mut self, packets: u64, bytes: u64) {
        self.tally.placed -= packets;
        self.tally.bytes -= bytes;
        self.refuse_all(packets);
    }
}
