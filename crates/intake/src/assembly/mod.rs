//! Puts packets into blocks of frames. Packets may arrive in any order; each goes to its place. Packets that
//! do not arrive in time are filled or left out.
//!
//! ```text
//! transport -> spots (where the next packets will lie) -> format (where they belong) -> blocks -> ring
//! ```
//!
//! A block is a slot of the ring and holds a whole number of frames. Several blocks are open at once. A
//! packet within them goes to its place, so reordering costs nothing. The kernel writes packets to the places
//! where they are expected ([`Spot`]); only an unexpected packet is copied.
//!
//! A block goes to the ring when it is full. It also goes when packets arrived so far ahead that the missing
//! ones will not arrive any more. For example, with blocks of 8 packets and a window of 16, at most 16 / 8 +
//! 2 = 4 blocks are open. Packets 0 to 7 arrived and are in the ring:
//!
//! ```text
//! spots          8  9  10  11  12  13  14  15     places that are given to the kernel, in block 1
//! packets        8  9  10  12  13  11  14  15     written there in the order of arrival
//!                =  =  =                          as expected: they stay where they are
//!                         12  13  11  14  15      the first that is not, and all behind it, are copied
//! block 1        8  9  10  11  12  13  14  15     full: to the ring; 11 was overtaken by two packets
//!
//! packets        16 17 18 20 .. 47                19 is lost; blocks 2 to 5 are open, 3 to 5 are full
//! packet 48      needs block 6, a fifth           block 2 is closed: 19 is filled, and a gap says so;
//!                                                 blocks 3 to 5 follow it to the ring
//! ```
//!
//! It does no I/O and reads no clock: callers pass the time.

mod beginning;
mod block;
mod candidates;
mod closing;
mod course;
mod drops;
mod lending;
mod order;
mod port;
mod port_lead;
mod progress;
mod sharing;
mod tally;
mod threads;

use std::{collections::VecDeque, ops::Range, sync::Arc};

pub use nilometer_datagram::Spot;
use nilometer_model::{Bytes, Nanos};
use nilometer_recording::Missing;
use nilometer_ring::{Frame, Ring};
use nilometer_storage::Buffer;

pub(crate) use block::MergedPlace;
use block::{Block, Shape};
pub use candidates::CandidateBound;
use candidates::Candidates;
use drops::UnexplainedDrops;
use lending::Lending;
pub(crate) use lending::LentPlace;
use nilometer_wire::{Ignored, Packet, Part, WireFormat};
use order::Order;
use port::Port;
pub use port::PortTally;
use progress::StreamProgress;
pub(crate) use sharing::{HandedOver, PacketRelation, StreamRing};
pub use tally::PacketTally;
use threads::ThreadTallies;
pub use threads::ThreadTally;

/// How far packets may be from where they are expected, in packets and in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReorderWindow {
    /// Number of packets that may overtake a packet, at least. After that it is missing.
    pub window: u64,
    /// The most packets in a row that are filled. Numbers that jump further, and further than the rate of the
    /// stream allows in the time, were set anew.
    pub gap: u64,
    /// Frames that others follow are given up after this long without a packet for them.
    pub patience: Nanos,
    /// Minimum silence at the current place before the stream goes on elsewhere.
    pub quiet: Nanos,
}

impl Default for ReorderWindow {
    fn default() -> Self {
        ReorderWindow {
            window: 512,
            gap: 1 << 16,
            patience: Nanos::from_millis(1000),
            quiet: Nanos::from_millis(10),
        }
    }
}

/// Puts the packets of one stream, which come by one port or by several, into blocks for the ring.
///
/// The *place* of a packet is its number in the recording, counted from 0: place / packets of a block is its
/// block.
#[derive(Debug)]
pub struct Assembly {
    ports: Vec<Port>,
    ring: Arc<Ring>,
    shape: Shape,
    prefix: usize,
    limits: ReorderWindow,
    missing: Missing,
    order: Order,
    /// Blocks into which packets may go. The first of them has the number `first`.
    open: VecDeque<Block>,
    first: u64,
    /// The places at which the stream began, or began anew, as far as their blocks are open.
    starts: VecDeque<u64>,
    /// A bit for each packet that arrived, of the last blocks before `first`, the latest at the end.
    closed: VecDeque<Vec<u64>>,
    /// The last frame that arrived before the first block.
    last: Option<Last>,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
    /// Blocks that lie in other memory than the ring's.
    lending: Lending,
    /// Packets that are not where the stream is.
    candidates: Candidates,
    progress: StreamProgress,
    drops: UnexplainedDrops,
    /// Packets by which the stream had moved at the last look at the candidates.
    settled: u64,
    /// The place after the highest lost packet, if the storage fell behind. There was no slot for a packet
    /// then, and all that follow are lost until there is room again.
    crowded: Option<i64>,
    tally: PacketTally,
    threads: ThreadTallies,
}

/// The place of a packet by this format, and its bytes behind the prefix.
pub(crate) fn part_of<'a>(
    format: &mut dyn WireFormat,
    packet: &'a [u8],
) -> Result<(Part, &'a [u8]), Ignored> {
    let geometry = format.geometry();
    let (prefix, body) = packet.split_at_checked(geometry.prefix).ok_or(Ignored::Size)?;
    if !(0..geometry.parts.len()).any(|part| geometry.sent(part) == body.len()) {
        return Err(Ignored::Size);
    }
    let part = format.place(Packet { prefix, body })?;
    let geometry = format.geometry();
    let fits = part.part < geometry.parts.len() && geometry.sent(part.part) == body.len();
    if fits { Ok((part, body)) } else { Err(Ignored::Size) }
}

/// Bytes at the beginning of a frame: as many as a format needs to make its neighbours.
const HEADER: usize = 64;
type Header = [u8; HEADER];

/// A frame that has already left for the storage.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Its number, counted from the beginning.
    number: u64,
    /// Frames that were left out between it and the first block.
    left_out: i64,
    bytes: Header,
}

/// Number of closed blocks of which the assembly remembers the packets that arrived.
const CLOSED: usize = 8;

impl Assembly {
    /// Makes blocks of `frames_of_block` frames; the ring's slots must have that size.
    ///
    /// Packets arrive by one port for each format. Each port brings an equal share of a frame's parts, in
    /// order.
    pub fn new(
        formats: Vec<Box<dyn WireFormat>>,
        ring: Arc<Ring>,
        frames_of_block: u64,
        limits: ReorderWindow,
        missing: Missing,
    ) -> Self {
        let ports = Port::all(formats);
        let geometry = ports[0].format.geometry();
        let shape = Shape::new(geometry, frames_of_block);
        let slots = ring.books().slots as u64;
        let ring_bytes = Bytes(slots * frames_of_block * shape.frame_size as u64);
        let bound = CandidateBound::of(ring_bytes, Bytes(geometry.packet_size() as u64));
        Assembly {
            shape,
            prefix: geometry.prefix,
            order: Order::new(geometry),
            ports,
            ring,
            limits,
            missing,
            open: VecDeque::new(),
            first: 0,
            starts: VecDeque::new(),
            closed: VecDeque::new(),
            last: None,
            spares: Vec::new(),
            full: Vec::new(),
            lending: Lending::default(),
            candidates: Candidates::within(bound),
            progress: StreamProgress::default(),
            drops: UnexplainedDrops::default(),
            settled: 0,
            crowded: None,
            tally: PacketTally::default(),
            threads: ThreadTallies::default(),
        }
    }

    /// The counters so far.
    pub fn tally(&self) -> &PacketTally {
        &self.tally
    }

    /// How many blocks went to the ring.
    pub fn blocks(&self) -> u64 {
        self.first
    }

    /// Packets of the stream, and those that will be if it goes on at their place.
    pub fn of_stream(&self) -> u64 {
        let parked: u64 = self.ports.iter().map(|port| port.course.parked()).sum();
        self.tally.of_stream() + parked + self.candidates.waiting(self.progress.packets())
    }

    /// Returns true if every writer of the ring has left.
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Tells the ring that the receiver had not looked for this long.
    pub fn halted(&self, length: Nanos) {
        self.ring.halted(length);
    }

    /// The wire format of a port, with its learned state.
    pub fn format(&self, inlet: usize) -> &dyn WireFormat {
        self.ports[inlet].format.as_ref()
    }

    /// Frames of the stream whose header has no right checksum.
    pub(crate) fn unchecked(&self) -> u64 {
        self.ports.iter().map(|port| port.format.unchecked()).sum()
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// The place after the highest packet of all ports. Places that are closed take no packet any more.
    fn next(&self) -> u64 {
        let came = self.ports.iter().map(|port| port.next).max().unwrap_or(0);
        came.max(self.first * self.shape.packets)
    }

    /// The largest number of blocks that may be open at once.
    fn most_open(&self) -> usize {
        // A whole window may overtake the last packet of the first block before the block is closed.
        (self.limits.window.div_ceil(self.shape.packets) + 2) as usize
    }

    /// The places of the next packets of a port if they arrive in order, at most `most`. There are only as
    /// many as the ring has slots for.
    pub fn spots(&mut self, now: Nanos, inlet: usize, most: usize) -> Vec<Spot<'_>> {
        self.open_ahead(now, inlet, most);
        self.expect(inlet, most);
        let Assembly { open, shape, first, ports, prefix, .. } = self;
        let Port { expected, prefixes, .. } = &mut ports[inlet];
        prefixes.resize(most * *prefix, 0);
        let mut spots = Vec::with_capacity(expected.len());
        let mut prefixes = prefixes.as_mut_slice();
        let mut expected = expected.iter().peekable();
        for (number, block) in (*first..).zip(open) {
            // Spots of a block are disjoint parts of it: the bytes before the next one are cut off.
            let mut rest = &mut block.data[..];
            let mut cut = 0;
            while let Some(place) = expected.next_if(|place| *place / shape.packets == number) {
                let range = shape.range((place % shape.packets) as usize);
                let (body, behind) = rest[range.start - cut..].split_at_mut(range.len());
                let (head, others) = prefixes.split_at_mut(*prefix);
                (rest, cut, prefixes) = (behind, range.end, others);
                spots.push(Spot { prefix: head, body });
            }
        }
        spots
    }

    /// The next places of a port that are open.
    fn expect(&mut self, inlet: usize, most: usize) {
        let Assembly { open, shape, first, ports, .. } = self;
        let end = (*first + open.len() as u64) * shape.packets;
        let begin = (*first * shape.packets).max(ports[inlet].next);
        let is_open = |place: &u64| {
            let block = &open[(place / shape.packets - *first) as usize];
            !block.has((place % shape.packets) as usize)
        };
        // Its memory is reused, because this runs for every batch of packets.
        let mut expected = std::mem::take(&mut ports[inlet].expected);
        expected.clear();
        if ports.len() == 1 {
            expected.extend((begin..end).filter(is_open).take(most));
        } else {
            expected.extend(ports[inlet].places(begin, end).filter(is_open).take(most));
        }
        ports[inlet].expected = expected;
    }

    /// Takes the packets in the first `spots` spots of a port, each of the expected size.
    pub fn came(&mut self, now: Nanos, inlet: usize, spots: usize) {
        let expected = std::mem::take(&mut self.ports[inlet].expected);
        let as_expected = self.as_expected(now, inlet, &expected[..spots]);
        if as_expected < spots {
            self.misplaced(now, inlet, &expected[as_expected..spots], as_expected);
        }
        self.ports[inlet].expected = expected;
        self.settle(now);
        self.close_full(now);
    }

    /// All packets that had arrived by now were taken, at all ports.
    pub fn drained(&mut self, now: Nanos) {
        self.progress.drained(now);
    }

    /// The kernel dropped at most this many packets of a port before those that are taken next.
    pub fn dropped(&mut self, inlet: usize, packets: u64) {
        self.ports[inlet].course.dropped(packets);
        self.drops.add(packets, self.progress.packets());
    }

    /// Takes packets that lie where they belong, up to the first that does not. Returns their number.
    fn as_expected(&mut self, now: Nanos, inlet: usize, expected: &[u64]) -> usize {
        // The rest is recorded once for the whole batch, since nothing is between its packets.
        let mut last = None;
        let furthest = self.next();
        for (spot, &place) in expected.iter().enumerate() {
            let Some(part) = self.belongs(inlet, spot, place) else { break };
            self.mark(now, place);
            self.ports[inlet].next = place + 1;
            last = Some((spot, part));
        }
        let Some((spot, part)) = last else { return 0 };
        let first = expected[0];
        let last = expected[spot];
        // If places between them were filled before, or belong to another port, only the last is recorded. It
        // still shows that a packet was overtaken, but extents become smaller.
        let begin = if last - first == spot as u64 { first } else { last };
        self.ports[inlet].arrivals.add(begin, last - begin + 1);
        self.order.follow(part, last);
        self.ports[inlet].course.hear(part, spot as u64 + 1);
        self.progress.advance(spot as u64 + 1, (last + 1).saturating_sub(furthest));
        spot + 1
    }

    /// The frame and part of the packet in a spot, if it belongs there.
    #[inline]
    fn belongs(&mut self, inlet: usize, spot: usize, place: u64) -> Option<Part> {
        let Assembly { ports, open, shape, first, prefix, .. } = self;
        let Port { format, prefixes, .. } = &mut ports[inlet];
        // The number is read where the kernel put the packet, without a copy.
        let block = &open[(place / shape.packets - *first) as usize];
        let body = &block.data[shape.range((place % shape.packets) as usize)];
        let part = format.place(Packet { prefix: &prefixes[spot * *prefix..][..*prefix], body }).ok()?;
        (self.order.has_begun() && self.order.place(part) == place.cast_signed()).then_some(part)
    }

    /// Takes packets that lie in these places, and belong elsewhere, or nowhere. All are copied before one is
    /// put down, since its place may be where another still lies.
    fn misplaced(&mut self, now: Nanos, inlet: usize, places: &[u64], first_spot: usize) {
        for packet in self.lift(inlet, places, first_spot) {
            self.aside(now, inlet, &packet);
        }
    }

    /// Copies of the packets in these places, of which the first is this spot of its port.
    fn lift(&self, inlet: usize, places: &[u64], first_spot: usize) -> Vec<Vec<u8>> {
        let mut lifted = Vec::with_capacity(places.len());
        for (spot, &place) in (first_spot..).zip(places) {
            let block = &self.open[(place / self.shape.packets - self.first) as usize];
            let body = &block.data[self.shape.range((place % self.shape.packets) as usize)];
            let prefix = &self.ports[inlet].prefixes[spot * self.prefix..][..self.prefix];
            lifted.push([prefix, body].concat());
        }
        lifted
    }

    /// Copies the packets in these spots of a port. [`Assembly::came`] may then take the packets that are not
    /// copied.
    pub(crate) fn lift_spots(&self, inlet: usize, spots: Range<usize>) -> Vec<Vec<u8>> {
        self.lift(inlet, &self.ports[inlet].expected[spots.clone()], spots.start)
    }

    /// Takes a packet that the transport received outside the spots, and copies it to its place.
    pub fn aside(&mut self, now: Nanos, inlet: usize, packet: &[u8]) {
        match part_of(self.ports[inlet].format.as_mut(), packet) {
            Ok((part, body)) => self.insert(now, inlet, part, &body[..self.shape.parts[part.part]]),
            Err(why) => self.ignored(why),
        }
        self.settle(now);
        self.close_full(now);
    }

    /// Counts a packet that does not belong to the stream.
    pub fn ignored(&mut self, why: Ignored) {
        self.tally.ignore(why);
    }

    /// Puts a packet of the stream into its block, which it opens if necessary.
    fn put(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        let is_open = self.reach(now, part);
        // Only now: if frames are left out, closing a block moves all places down.
        let place = self.order.place(part).cast_unsigned();
        if !is_open {
            return self.refuse(place.cast_signed());
        }
        let at = (place % self.shape.packets) as usize;
        let block = (place / self.shape.packets).checked_sub(self.first);
        let Some(block) = block.and_then(|block| self.open.get_mut(block as usize)) else {
            // Opening the block of this packet closed its own.
            self.tally.late += 1;
            return;
        };
        if block.has(at) {
            self.tally.count_behind(block.repeated(self.shape.range(at), body));
            return;
        }
        block.data[self.shape.range(at)].copy_from_slice(body);
        self.mark(now, place);
        let furthest = self.next();
        let Port { next, arrivals, .. } = &mut self.ports[inlet];
        if place < *next {
            // It was overtaken: the numbers go on from the packet that is furthest ahead.
            self.tally.reorder(arrivals.extent(place));
        } else {
            *next = place + 1;
            self.order.follow(part, place);
            self.drops.explain(place.saturating_sub(furthest));
            self.progress.advance(1, (place + 1).saturating_sub(furthest));
        }
        arrivals.add(place, 1);
    }

    /// Records that the packet of an open place has arrived.
    #[inline]
    fn mark(&mut self, now: Nanos, place: u64) {
        let at = (place % self.shape.packets) as usize;
        let block = &mut self.open[(place / self.shape.packets - self.first) as usize];
        block.set(at);
        block.touched = now;
        self.tally.placed += 1;
        self.tally.bytes += self.shape.parts[at % self.shape.parts.len()] as u64;
    }

    /// Opens blocks up to that of a packet, and closes the first if there are too many. Returns false if no
    /// slot is free.
    fn reach(&mut self, now: Nanos, part: Part) -> bool {
        loop {
            // Frames that are left out move everything down.
            let place = self.order.place(part).max(0).cast_unsigned();
            if place / self.shape.packets < self.first + self.open.len() as u64 {
                return true;
            }
            // Past its window a block is closed even if more may be open, but not because of a single packet,
            // which may be wrong.
            let is_past = (self.first + 1) * self.shape.packets + self.limits.window <= place;
            if self.open.len() >= self.most_open() || is_past && self.is_followed(1) {
                self.close_first(now, place);
            } else if !self.open_one(now) {
                return false;
            }
        }
    }

    /// Opens the next block in a free slot of the ring. Returns false if there is none.
    fn open_one(&mut self, now: Nanos) -> bool {
        if self.spares.is_empty() {
            self.ring.put(now, &mut self.full, &mut self.spares, false);
        }
        let Some(slot) = self.spares.pop() else { return false };
        self.open.push_back(Block::new(slot, self.shape.packets, now));
        true
    }
}

#[cfg(test)]
mod forged_tests;
#[cfg(test)]
mod overload_tests;
#[cfg(test)]
mod tests;
