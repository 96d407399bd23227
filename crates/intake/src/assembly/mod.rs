//! Packets into blocks of frames: each goes to its place, whatever the order in which they come, and what
//! does not come in time is filled or left out.
//!
//! ```text
//! transport -> spots (where the next packets will lie) -> format (where they belong) -> blocks -> ring
//! ```
//!
//! A block is a slot of the ring and holds a whole number of frames. Some blocks are open at once: a packet
//! within them is put where it belongs, so reordering costs nothing. The kernel writes packets to where they
//! are expected ([`Spot`]); only one that is not the expected one is copied. A block goes to the ring when it
//! is full, or when packets so far ahead of it came that what is missing will not come any more. For example,
//! blocks of 8 packets and a window of 16, so that at most 16 / 8 + 2 = 4 blocks are open; packets 0 to 7
//! came and are in the ring:
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
//! No I/O and no clock: it is told the time.

mod block;
mod candidates;
mod closing;
mod course;
mod drops;
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

use block::{Block, Shape};
pub use candidates::CandidateBound;
use candidates::Candidates;
use drops::UnexplainedDrops;
use nilometer_wire::{Ignored, Packet, Part, WireFormat};
use order::Order;
use port::Port;
use progress::StreamProgress;
pub(crate) use sharing::{HandedOver, PacketRelation, StreamRing};
pub use tally::PacketTally;
use threads::ThreadTallies;
pub use threads::ThreadTally;

/// How far from where they are expected packets may be, in packets and in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReorderWindow {
    /// A packet may be overtaken by so many others, at least; after that it is missing.
    pub window: u64,
    /// The most packets in a row that are filled. Numbers that jump further, and further than the rate of the
    /// stream allows in the time, were set anew.
    pub gap: u64,
    /// After so long without a packet for them, frames are given up that others follow.
    pub patience: Nanos,
    /// The stream goes on elsewhere when nothing of it came for so long where it was, at least.
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
    /// Blocks that packets may go into, the first of them being number `first`.
    open: VecDeque<Block>,
    first: u64,
    /// The places at which the stream began, or began anew, as far as their blocks are open.
    starts: VecDeque<u64>,
    /// A bit for each packet that was there, of the last blocks before the first, the latest at the end.
    closed: VecDeque<Vec<u64>>,
    /// The last frame that came before the first block.
    last: Option<Last>,
    spares: Vec<Buffer>,
    full: Vec<Frame>,
    /// Packets that are not where the stream is.
    candidates: Candidates,
    progress: StreamProgress,
    drops: UnexplainedDrops,
    /// Packets by which the stream had gone on when the candidates were looked at.
    settled: u64,
    /// The storage fell behind, and there was no slot for a packet: all that follow are lost until there is
    /// room again. The place after the highest of them.
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

/// Bytes at the beginning of a frame, as many as a format needs to make its neighbours.
const HEADER: usize = 64;
type Header = [u8; HEADER];

/// A frame that is on its way to storage already.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Counted from the beginning.
    number: u64,
    /// Frames that were left out between it and the first block.
    left_out: i64,
    bytes: Header,
}

/// Blocks before the first one of which it is known what was there.
const CLOSED: usize = 8;

impl Assembly {
    /// Of blocks of so many frames; the ring's slots are as large. Packets come by as many ports as there are
    /// formats: each brings as many parts of a frame, the first ones the first.
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

    /// Packets that are of the stream, and those that will be if it goes on where they are.
    pub fn of_stream(&self) -> u64 {
        let parked: u64 = self.ports.iter().map(|port| port.course.parked()).sum();
        self.tally.of_stream() + parked + self.candidates.waiting(self.progress.packets())
    }

    /// Whether every writer of the ring has left.
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// The receiver had not looked for this long.
    pub fn halted(&self, length: Nanos) {
        self.ring.halted(length);
    }

    /// The wire format of a port, with what it learned.
    pub fn format(&self, inlet: usize) -> &dyn WireFormat {
        self.ports[inlet].format.as_ref()
    }

    /// How many ports packets come by.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// The place after the highest that came, of all ports: what is closed does not come any more.
    fn next(&self) -> u64 {
        let came = self.ports.iter().map(|port| port.next).max().unwrap_or(0);
        came.max(self.first * self.shape.packets)
    }

    /// How many blocks may be open at once.
    fn most_open(&self) -> usize {
        // So that the last packet of the first block may be overtaken by a whole window before the block is
        // closed.
        (self.limits.window.div_ceil(self.shape.packets) + 2) as usize
    }

    /// The places where the next packets of a port will lie if they come in order, in as many blocks as there
    /// are slots for: at most so many.
    pub fn spots(&mut self, now: Nanos, inlet: usize, most: usize) -> Vec<Spot<'_>> {
        let Port { next, .. } = self.ports[inlet];
        let end = (next + most as u64 * self.ports[inlet].count()) / self.shape.packets;
        // Blocks are opened ahead of the packets: where the kernel finds no spot, a packet has to be copied.
        let may_open =
            |assembly: &Self| assembly.crowded.is_none() && assembly.open.len() < assembly.most_open();
        while self.first + self.open.len() as u64 <= end && may_open(self) {
            if !self.open_one(now) {
                break;
            }
        }
        self.expect(inlet, most);
        let Assembly { open, shape, first, ports, prefix, .. } = self;
        let Port { expected, prefixes, .. } = &mut ports[inlet];
        prefixes.resize(most * *prefix, 0);
        let mut spots = Vec::with_capacity(expected.len());
        let mut prefixes = prefixes.as_mut_slice();
        let mut expected = expected.iter().peekable();
        for (number, block) in (*first..).zip(open) {
            // Spots of a block are disjoint parts of it: what lies before the next one is cut off.
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
        // Its memory is used again: this is asked for with every batch of packets.
        let mut expected = std::mem::take(&mut ports[inlet].expected);
        expected.clear();
        if ports.len() == 1 {
            expected.extend((begin..end).filter(is_open).take(most));
        } else {
            expected.extend(ports[inlet].places(begin, end).filter(is_open).take(most));
        }
        ports[inlet].expected = expected;
    }

    /// The first so many spots of a port were filled, each with a packet of the size that was expected.
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

    /// Everything that had come by now was taken, at all ports.
    pub fn drained(&mut self, now: Nanos) {
        self.progress.drained(now);
    }

    /// The kernel dropped at most this many packets of a port before those that are taken next.
    pub fn dropped(&mut self, inlet: usize, packets: u64) {
        self.ports[inlet].course.dropped(packets);
        self.drops.add(packets, self.progress.packets());
    }

    /// Takes packets that lie where they belong, up to the first that does not; how many.
    fn as_expected(&mut self, now: Nanos, inlet: usize, expected: &[u64]) -> usize {
        // What follows is noted once for the whole batch, since nothing is between its packets.
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
        // Where places between them were filled before, or are another port's, only the last is noted: enough
        // to know that a packet was overtaken, but extents become smaller.
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
        // The number is read where the kernel put the packet: nothing was copied for it.
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

    /// Copies of the packets in these spots of a port. Those that are not copied may then be taken by [`Assembly::came`].
    pub(crate) fn lift_spots(&self, inlet: usize, spots: Range<usize>) -> Vec<Vec<u8>> {
        self.lift(inlet, &self.ports[inlet].expected[spots.clone()], spots.start)
    }

    /// Takes a packet that the transport received beside the spots: it is copied to where it belongs.
    pub fn aside(&mut self, now: Nanos, inlet: usize, packet: &[u8]) {
        match part_of(self.ports[inlet].format.as_mut(), packet) {
            Ok((part, body)) => self.insert(now, inlet, part, &body[..self.shape.parts[part.part]]),
            Err(why) => self.ignored(why),
        }
        self.settle(now);
        self.close_full(now);
    }

    /// Counts a packet that is none of the stream.
    pub fn ignored(&mut self, why: Ignored) {
        self.tally.ignore(why);
    }

    /// Puts a packet of the stream into its block, which is opened if need be.
    fn put(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        let is_open = self.reach(now, part);
        // Only now: where frames are left out, closing a block moves all places down.
        let place = self.order.place(part).cast_unsigned();
        if !is_open {
            return self.refuse(place.cast_signed());
        }
        let at = (place % self.shape.packets) as usize;
        let block = (place / self.shape.packets).checked_sub(self.first);
        let Some(block) = block.and_then(|block| self.open.get_mut(block as usize)) else {
            // Reaching it closed it.
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

    /// Notes that the packet of an open place is there.
    #[inline]
    fn mark(&mut self, now: Nanos, place: u64) {
        let at = (place % self.shape.packets) as usize;
        let block = &mut self.open[(place / self.shape.packets - self.first) as usize];
        block.set(at);
        block.touched = now;
        self.tally.placed += 1;
        self.tally.bytes += self.shape.parts[at % self.shape.parts.len()] as u64;
    }

    /// Opens blocks up to that of a packet, closing the first if there are too many; false if no slot is
    /// free.
    fn reach(&mut self, now: Nanos, part: Part) -> bool {
        loop {
            // What is left out moves everything down.
            let place = self.order.place(part).max(0).cast_unsigned();
            if place / self.shape.packets < self.first + self.open.len() as u64 {
                return true;
            }
            // Past its window a block is closed even if more may be open, but not because of one packet that
            // may be wrong.
            let is_past = (self.first + 1) * self.shape.packets + self.limits.window <= place;
            if self.open.len() >= self.most_open() || is_past && self.is_followed(1) {
                self.close_first(now, place);
            } else if !self.open_one(now) {
                return false;
            }
        }
    }

    /// Opens the next block in a free slot of the ring; false if there is none.
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
