//! Several senders at one port, such as boards of a back end, each of which numbers its packets separately.
//!
//! ```text
//! one sender       packets -> Assembly -> blocks of the ring
//!
//! several          packets of A -> Assembly -- small blocks --.
//!                                     ^                       v
//!                                     '------- places --- BlockMerger -> blocks of the ring
//!                                     .------- places --------^
//!                                     v                       |
//!                  packets of B -> Assembly -- small blocks --'
//!                  packets of C -> UndecidedSender
//! ```
//!
//! The kernel writes the packets of a single stream directly to their places. With the second stream, each
//! gets its own assembly with a reorder window, losses and counters. Its packets leave the assembly in blocks
//! of a few frames, in order.
//!
//! The blocks of all streams stand one behind the other in the blocks of the ring, in the order in which their
//! first packets arrived. A file then holds frames of all threads, nearly in the order of time, as those of
//! other recorders of VDIF do. The kernel writes the packets of a small block there, too, as long as its
//! stream keeps pace with the others. Otherwise the block lies in a small ring of the stream, and is copied
//! when it is complete.
//!
//! This code does no I/O and reads no clock: callers pass the time.

mod counts;
mod merged_slot;
mod merger;
mod merging;
mod piece_content;
mod ports;
mod ring_budget;
mod sender_stream;
mod undecided;
mod whole_slot;

use std::net::SocketAddr;

use nilometer_model::{Bytes, Nanos};
use nilometer_wire::{StreamThread, WireFormat};

use crate::{
    assembly::{Assembly, PacketTally, ReorderWindow, Spot, StreamRing},
    transport::SenderId,
};
pub use counts::{SenderCounts, SilenceWatch, ThreadCounts};
use merger::BlockMerger;
use piece_content::MergedShape;
pub use ring_budget::RingBudget;
use sender_stream::{SenderStream, StreamPace};
use undecided::{SenderVerdict, UndecidedSender};

/// Maximum number of streams recorded at once.
pub const STREAMS_MOST: usize = 64;
/// Minimum limit for undecided senders. The memory for candidate packets determines the actual limit.
const UNDECIDED_LEAST: u64 = 4;
/// The route of a sender's packets.
#[derive(Debug)]
enum SenderRoute {
    /// No packet has arrived.
    Unknown,
    /// They belong to this stream.
    Stream(usize),
    /// They are kept until the sender is identified.
    Undecided(Box<UndecidedSender>),
}

/// The streams of all senders at the ports of a recording.
#[derive(Debug)]
pub struct SenderStreams {
    streams: Vec<SenderStream>,
    /// By sender.
    routes: Vec<SenderRoute>,
    /// By sender.
    addresses: Vec<Option<SocketAddr>>,
    undecided: usize,
    /// Maximum number of undecided senders.
    undecided_most: usize,
    /// True if it distinguishes senders.
    separates: bool,
    merger: Option<BlockMerger>,
    /// The stream whose spots the next packets may lie in.
    offered: Option<usize>,
    rings: RingBudget,
    /// Threads that the user named.
    named: Vec<StreamThread>,
    silence: SilenceWatch,
}

impl SenderStreams {
    /// Makes one stream, from all ports of an assembly. Others may join it if it has one port.
    pub fn new(assembly: Assembly) -> Self {
        let separates = assembly.format_of_another().is_some();
        let rings = RingBudget::of(Bytes(assembly.ring_bytes()));
        let named = assembly.format(0).threads();
        let undecided_most = undecided_most(&assembly);
        SenderStreams {
            streams: vec![SenderStream::new(None, assembly, None)],
            routes: Vec::new(),
            addresses: Vec::new(),
            undecided: 0,
            undecided_most,
            separates,
            merger: None,
            offered: None,
            rings,
            named,
            silence: SilenceWatch::default(),
        }
    }

    fn first(&self) -> &Assembly {
        &self.streams[0].assembly
    }

    /// Gives out [`Assembly::spots`] of the stream of this sender. With several streams and an
    /// unknown sender there are none: the next packet may be of any stream.
    pub fn spots(&mut self, now: Nanos, port: usize, most: usize, sender: Option<SenderId>) -> Vec<Spot<'_>> {
        self.offered = if self.merger.is_none() { Some(0) } else { sender.and_then(|it| self.stream_of(it)) };
        let Some(at) = self.offered else { return Vec::new() };
        self.lend_ahead(now, at, port, most);
        self.streams[at].assembly.spots(now, port, most)
    }

    /// The stream to which the packets of a sender belong.
    fn stream_of(&self, sender: SenderId) -> Option<usize> {
        let SenderRoute::Stream(at) = self.routes.get(usize::from(sender.0))? else { return None };
        Some(*at)
    }

    /// Records the address of a new sender.
    pub fn name(&mut self, sender: SenderId, address: impl FnOnce() -> Option<SocketAddr>) {
        let at = usize::from(sender.0);
        if at >= self.addresses.len() {
            self.addresses.resize(at + 1, None);
            self.addresses[at] = address();
        } else if self.addresses[at].is_none() {
            self.addresses[at] = address();
        }
    }

    /// Takes the packets in the first spots of a port. `senders` has the sender of each.
    pub fn came(&mut self, now: Nanos, port: usize, spots: usize, senders: &[SenderId]) {
        let Some(stream) = self.offered.take() else { return };
        let own = (0..spots).take_while(|at| self.is_of(stream, sender_of(senders, *at))).count();
        let others = self.streams[stream].assembly.lift_spots(port, own..spots);
        self.streams[stream].assembly.came(now, port, own);
        self.take_unused(stream);
        self.pass_on(now, stream);
        for (packet, at) in others.iter().zip(own..spots) {
            self.aside(now, port, sender_of(senders, at), packet);
        }
    }

    /// Takes a packet that arrived outside the spots.
    pub fn aside(&mut self, now: Nanos, port: usize, sender: SenderId, packet: &[u8]) {
        if !self.separates {
            return self.deliver(now, 0, port, packet);
        }
        self.find_route(sender);
        match &self.routes[usize::from(sender.0)] {
            SenderRoute::Stream(at) => self.deliver(now, *at, port, packet),
            SenderRoute::Undecided(_) => self.keep(now, sender, packet),
            // Its number decides.
            SenderRoute::Unknown => self.deliver(now, 0, port, packet),
        }
    }

    /// Returns true if packets of a sender belong to this stream.
    fn is_of(&mut self, stream: usize, sender: SenderId) -> bool {
        if !self.separates {
            return true;
        }
        if self.stream_of(sender).is_none() {
            self.find_route(sender);
        }
        self.stream_of(sender) == Some(stream)
    }

    /// Begins to examine a new sender, if there is room for one more.
    fn find_route(&mut self, sender: SenderId) {
        let at = usize::from(sender.0);
        if at >= self.routes.len() {
            self.routes.resize_with(at + 1, || SenderRoute::Unknown);
        }
        if !matches!(self.routes[at], SenderRoute::Unknown) {
            return;
        }
        if self.streams[0].sender.is_none() {
            self.streams[0].sender = Some(sender);
            self.routes[at] = SenderRoute::Stream(0);
        } else if self.undecided < self.undecided_most
            && let Some(format) = self.first().format_of_another()
        {
            self.undecided += 1;
            self.routes[at] = SenderRoute::Undecided(Box::new(UndecidedSender::new(format)));
        }
    }

    fn deliver(&mut self, now: Nanos, at: usize, port: usize, packet: &[u8]) {
        self.streams[at].assembly.aside(now, port, packet);
        self.pass_on(now, at);
    }

    /// Keeps a packet of an undecided sender.
    fn keep(&mut self, now: Nanos, sender: SenderId, packet: &[u8]) {
        let moved = self.placed();
        let first = &mut self.streams[0].assembly;
        let SenderRoute::Undecided(undecided) = &mut self.routes[usize::from(sender.0)] else { return };
        match undecided.keep(first, moved, packet) {
            Ok(given_up) => {
                first.count_stray(given_up);
                self.decide(now, sender);
            }
            Err(why) => first.ignored(why),
        }
    }

    /// Decides about a sender, if its packets suffice.
    fn decide(&mut self, now: Nanos, sender: SenderId) {
        let SenderRoute::Undecided(undecided) = &self.routes[usize::from(sender.0)] else { return };
        let verdict = undecided.verdict(self.placed(), self.streams.iter().map(|stream| &stream.assembly));
        self.carry_out(now, sender, verdict);
    }

    fn carry_out(&mut self, now: Nanos, sender: SenderId, verdict: SenderVerdict) {
        match verdict {
            SenderVerdict::Open => {}
            SenderVerdict::Of(at) => self.join(now, sender, at),
            SenderVerdict::GoesOn(at) => self.go_on(now, sender, at),
            SenderVerdict::Fits(at) => self.put_down(now, sender, at),
            SenderVerdict::Own => self.separate(now, sender),
        }
    }

    /// A sender goes on with a silent stream.
    fn go_on(&mut self, now: Nanos, sender: SenderId, at: usize) {
        let SenderRoute::Undecided(undecided) = &mut self.routes[usize::from(sender.0)] else { return };
        let early = if self.streams[at].assembly.has_begun() { undecided.forget_early() } else { 0 };
        self.streams[0].assembly.count_stray(early);
        self.join(now, sender, at);
    }

    /// Assigns a sender to a stream, including its kept packets.
    fn join(&mut self, now: Nanos, sender: SenderId, at: usize) {
        let route = &mut self.routes[usize::from(sender.0)];
        let SenderRoute::Undecided(mut undecided) = std::mem::replace(route, SenderRoute::Stream(at)) else {
            return;
        };
        self.undecided -= 1;
        for packet in undecided.take_packets() {
            self.deliver(now, at, 0, &packet);
        }
    }

    /// Assigns the kept packets of a sender to this stream. The sender remains undecided.
    fn put_down(&mut self, now: Nanos, sender: SenderId, at: usize) {
        let SenderRoute::Undecided(undecided) = &mut self.routes[usize::from(sender.0)] else { return };
        for packet in undecided.take_packets() {
            self.deliver(now, at, 0, &packet);
        }
    }

    /// Makes the packets of a sender a stream with its own numbers.
    fn separate(&mut self, now: Nanos, sender: SenderId) {
        let format = self.first().format_of_another();
        let is_possible = self.streams.len() < STREAMS_MOST && self.begin_merging(now);
        match format.filter(|_| is_possible) {
            Some(format) => {
                let mut stream = self.stream(sender, format);
                stream.pace = self.merger.as_ref().map(StreamPace::begin).unwrap_or_default();
                self.streams.push(stream);
                self.join(now, sender, self.streams.len() - 1);
            }
            None => self.refuse(sender),
        }
    }

    /// Gives up the packets of a sender: there is no room for one more stream, or no slots now.
    fn refuse(&mut self, sender: SenderId) {
        let SenderRoute::Undecided(undecided) = &mut self.routes[usize::from(sender.0)] else { return };
        let packets = undecided.take_packets().len() as u64;
        let are_many = self.streams.len() == STREAMS_MOST;
        let first = &mut self.streams[0].assembly;
        if are_many { first.count_stray(packets) } else { first.refuse_all(packets) }
    }

    /// Begins to merge streams. Returns false if the first one finds no slots now.
    fn begin_merging(&mut self, now: Nanos) -> bool {
        if self.merger.is_some() {
            return true;
        }
        if !self.first().can_hand_over() {
            return false;
        }
        let ring = self.first().ring().clone();
        let own = self.rings.ring(&self.streams[0].assembly);
        let shape = MergedShape {
            parts: self.first().format(0).geometry().parts.clone(),
            frames_of_block: self.first().frames_of_block(),
            frames_of_piece: own.frames_of_block,
        };
        self.streams[0].own = Some(own.ring.clone());
        let handed = self.streams[0].assembly.hand_over(now, own);
        self.merger = Some(BlockMerger::new(ring, shape, handed));
        true
    }

    fn stream(&mut self, sender: SenderId, format: Box<dyn WireFormat>) -> SenderStream {
        let StreamRing { ring, frames_of_block, window } = self.rings.ring(&self.streams[0].assembly);
        let (limits, missing) = self.first().limits();
        let limits = ReorderWindow { window, ..limits };
        let assembly = Assembly::new(vec![format], ring.clone(), frames_of_block, limits, missing);
        SenderStream::new(Some(sender), assembly, Some(ring))
    }

    /// All packets that had arrived by now were taken.
    pub fn drained(&mut self, now: Nanos) {
        self.streams.iter_mut().for_each(|stream| stream.assembly.drained(now));
    }

    /// Ends a look that began now.
    pub fn tick(&mut self, now: Nanos) {
        for at in 0..self.streams.len() {
            self.streams[at].assembly.tick(now);
            self.pass_on(now, at);
        }
        self.limit_wait(now);
        if self.undecided > 0 {
            self.undecided_senders().for_each(|sender| self.decide(now, sender));
        }
    }

    fn undecided_senders(&self) -> impl Iterator<Item = SenderId> + use<> {
        let is_undecided = |at: &usize| matches!(self.routes[*at], SenderRoute::Undecided(_));
        let senders: Vec<_> = (0..self.routes.len()).filter(is_undecided).collect();
        senders.into_iter().map(|at| SenderId(at as u16))
    }

    /// Reports that the receiver had not looked for this long.
    pub fn halted(&self, length: Nanos) {
        match &self.merger {
            Some(merger) => merger.halted(length),
            None => self.first().halted(length),
        }
    }

    /// Packets of streams, and those that will be if a stream goes on at their place.
    pub fn of_stream(&self) -> u64 {
        self.streams.iter().map(|stream| stream.assembly.of_stream()).sum()
    }

    /// Packets with a place.
    pub fn placed(&self) -> u64 {
        self.streams.iter().map(|stream| stream.assembly.tally().placed).sum()
    }

    /// The counters of all streams together.
    pub fn tally(&self) -> PacketTally {
        let mut tallies = self.streams.iter().map(|stream| stream.assembly.tally());
        let first = tallies.next().cloned().unwrap_or_default();
        let all = tallies.fold(first, PacketTally::and);
        let unchecked = self.streams.iter().map(|stream| stream.assembly.unchecked()).sum();
        PacketTally { unchecked, ..all }
    }

    /// The counters of each stream. It compares them with the last call to find the silent ones.
    pub fn counts(&mut self, now: Nanos) -> Vec<SenderCounts> {
        let placed: Vec<_> = self.streams.iter().map(|stream| stream.assembly.tally().placed).collect();
        let silent = self.silence.look(now, &placed);
        let mut counts = Vec::with_capacity(self.streams.len());
        for (stream, silent) in self.streams.iter_mut().zip(silent) {
            let id = stream.sender.unwrap_or_default();
            let address = self.addresses.get(usize::from(id.0)).copied().flatten();
            let threads = stream.threads(now);
            counts.push(SenderCounts {
                silent,
                threads,
                ..SenderCounts::of(address, stream.assembly.tally())
            });
        }
        self.add_named(&mut counts);
        counts
    }

    /// Adds threads that the user named and that never arrived to the first sender.
    fn add_named(&self, counts: &mut [SenderCounts]) {
        let is_there = |named: &StreamThread, counts: &[SenderCounts]| {
            counts.iter().flat_map(|sender| &sender.threads).any(|thread| thread.thread == named.thread)
        };
        for named in self.named.iter().filter(|_| self.merger.is_some()) {
            if !is_there(named, counts) {
                counts[0].threads.push(ThreadCounts::of(*named, &[], 0));
            }
        }
    }

    /// Returns true if every writer of the ring has left.
    pub fn is_abandoned(&self) -> bool {
        self.merger.as_ref().map_or_else(|| self.first().is_abandoned(), BlockMerger::is_abandoned)
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.first().ports()
    }

    /// Ends the streams: no packet arrives any more. Returns the number of all blocks.
    ///
    /// `wait` waits a little for free slots of the ring and returns the time. It returns `None` after a while.
    pub fn end(&mut self, now: Nanos, mut wait: impl FnMut() -> Option<Nanos>) -> u64 {
        self.decide_all(now);
        self.take_all_back(now);
        let blocks: Vec<u64> = self.streams.iter_mut().map(|stream| stream.assembly.end(now)).collect();
        if self.merger.is_none() {
            return blocks[0];
        }
        let mut now = now;
        loop {
            (0..self.streams.len()).for_each(|at| self.pass_on(now, at));
            let is_empty = self.streams.iter().all(|stream| stream.taken.is_empty());
            match wait().filter(|_| !is_empty && !self.is_abandoned()) {
                Some(later) => now = later,
                None => break,
            }
        }
        self.streams.iter_mut().for_each(|stream| stream.take_back(now));
        self.merger.as_mut().map_or(0, |merger| merger.end(now))
    }

    fn decide_all(&mut self, now: Nanos) {
        let placed = self.first().tally().placed;
        for sender in self.undecided_senders() {
            self.decide(now, sender);
            let SenderRoute::Undecided(undecided) = &self.routes[usize::from(sender.0)] else { continue };
            let count = undecided.count();
            let verdict = undecided.verdict_at_end(placed);
            match verdict {
                SenderVerdict::Open => self.streams[0].assembly.count_stray(count),
                verdict => self.carry_out(now, sender, verdict),
            }
        }
    }
}

/// Maximum number of undecided senders: as many as fit into the memory for candidate packets.
fn undecided_most(assembly: &Assembly) -> usize {
    let packet = assembly.format(0).geometry().packet_size() as u64;
    let each = packet.max(1) * undecided::KEPT as u64;
    (assembly.candidate_bytes() / each).clamp(UNDECIDED_LEAST, STREAMS_MOST as u64) as usize
}

/// The sender of a packet of a look: the first one, if the transport does not know.
fn sender_of(senders: &[SenderId], at: usize) -> SenderId {
    senders.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod merging_tests;
#[cfg(test)]
mod tests;
