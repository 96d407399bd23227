//! Packets whose numbers are not where the stream is. Any sender may send a few of them, so they move
//! nothing. They are kept as courses of packets that follow each other, until it is certain that the stream
//! goes on from one of these.
//!
//! ```text
//! stream      1000 1001 1002 1003 ....  1004 1005        it goes on: what was elsewhere is none of it
//! elsewhere                       62000 62001
//!
//! stream      1000 1001 1002 1003 ............................    nothing comes of it for a while
//! elsewhere                       5 6 7 8 9 10 11 12 13 14 ..     it began anew
//! ```
//!
//! A course is established by 8 packets with no packet of the stream between them. A stream that goes on
//! interrupts the packets that another sender sends at the same time. In this example the stream has moved by
//! 104 packets, and packets at most 17 frames apart follow each other:
//!
//! ```text
//! arrives          5000  5001  1004  5002  62000  5003 .. 5009
//! stream moved     104   104   105   105   105    105  .. 105
//! course of 5000   1     2           1            2    .. 8      the run; 1004 ended it, and it began again
//! course of 62000                          1
//! ```
//!
//! With 5009 the first course is established. If the stream is silent for a while, it goes on with frame
//! 5000. The packets before the interruption are kept too, and none is lost.

use nilometer_model::Bytes;
use nilometer_wire::Part;

use super::{order::Order, progress::ESTABLISHED};

/// A packet that is kept.
#[derive(Debug)]
pub(super) struct Held {
    /// The port at which it arrived.
    pub(super) inlet: usize,
    pub(super) part: Part,
    /// Its bytes, as far as they are recorded.
    pub(super) body: Vec<u8>,
    /// How it was counted on arrival, if its place was closed or taken. If it gets a place after all, it is
    /// counted anew.
    pub(super) counted: Option<Behind>,
}

/// A packet of a place that is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// It had not arrived before.
    Late,
    /// It had, but is no longer available for comparison.
    Duplicate,
    /// The same packet is there.
    Copy,
    /// Another packet with its number is there.
    Conflict,
}

/// A course: packets that follow each other, away from the stream.
#[derive(Debug)]
pub(super) struct Candidate {
    /// In order of arrival.
    pub(super) held: Vec<Held>,
    /// Bytes of all of them.
    bytes: usize,
    /// The number of the frame furthest ahead.
    head: u64,
    /// The number of its earliest frame.
    tail: u64,
    /// Consecutive packets while the stream did not move.
    run: u64,
    /// Packets by which the stream had moved when the last of them arrived.
    moved: u64,
}

/// Maximum number of courses. This many packets with random numbers don't drive out a course in which packets
/// follow each other.
const CANDIDATES: usize = 64;
/// Maximum number of packets in all courses.
const KEPT: usize = 4096;
/// A course without a new packet is given up after this many packets of the stream.
const STALE: u64 = 64;
/// A packet that is among this many last ones does not count again.
const REPEATED: usize = 64;
/// A course of this many packets is another sender's if the stream moved during it.
const LONG: usize = 64;

/// The memory for packets of all courses together, in addition to the ring. It is an eighth of the ring's
/// bytes, at most 32 MiB, and at least 64 packets.
///
/// If it is full and no packet of the stream arrived since the first of a course, that course is the stream.
/// A recorder that is behind never empties its socket, and so never learns whether the stream was silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidateBound {
    bytes: u64,
}

impl CandidateBound {
    const SHARE: u64 = 8;
    const BYTES_MOST: u64 = 32 << 20;
    const PACKETS_LEAST: u64 = 64;

    /// The bound for a ring with this many bytes and packets of this size.
    pub fn of(ring: Bytes, packet: Bytes) -> Self {
        let share = (ring.0 / Self::SHARE).min(Self::BYTES_MOST);
        CandidateBound { bytes: share.max(packet.0 * Self::PACKETS_LEAST) }
    }

    /// Maximum bytes of packets kept at once.
    pub fn bytes(self) -> Bytes {
        Bytes(self.bytes)
    }
}

/// Courses of which each is ahead of the one before: a stream that loses packets again and again.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateChain {
    /// The index of the oldest among all courses.
    pub(super) oldest: usize,
    /// Packets of all of them.
    pub(super) packets: u64,
    /// The earliest frame of the last.
    pub(super) last: u64,
}

/// The courses that are kept, the oldest first.
#[derive(Debug)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    bound: CandidateBound,
}

impl Candidate {
    fn new(moved: u64) -> Self {
        Candidate { held: Vec::new(), bytes: 0, head: 0, tail: 0, run: 0, moved }
    }

    /// Returns true if as many packets arrived as make a stream, without one of the stream between them or
    /// since.
    ///
    /// `moved` is the number of packets by which the stream has moved.
    pub(super) fn is_established(&self, moved: u64) -> bool {
        self.moved == moved && self.run >= ESTABLISHED
    }

    /// Returns true if at least two follow each other, without one of the stream between them or since.
    pub(super) fn is_course(&self, moved: u64) -> bool {
        self.moved == moved && self.run >= 2
    }

    /// Returns true if the stream moved since the last packet of it.
    fn is_interrupted(&self, moved: u64) -> bool {
        self.moved != moved
    }

    /// The number of its earliest frame.
    pub(super) fn first(&self) -> u64 {
        self.tail
    }

    /// Removes packets. The rest begins with its earliest frame.
    pub(super) fn retain(&mut self, order: &Order, keeps: impl Fn(&Held) -> bool) {
        self.held.retain(keeps);
        let head = self.head;
        // By distances, since its numbers may wrap, and from the head, which is near all of its packets.
        let frames = self.held.iter().map(|held| held.part.frame);
        self.tail = frames.min_by_key(|frame| order.distance(head, *frame)).unwrap_or(head);
    }

    fn add(&mut self, order: &Order, held: Held, moved: u64) {
        // The stream goes on: earlier packets are no reason to leave it.
        if self.moved != moved {
            (self.moved, self.run) = (moved, 0);
        }
        // The same packet again and again is no course.
        let is_new = self.held.iter().rev().take(REPEATED).all(|before| before.part != held.part);
        self.run += u64::from(is_new);
        let frame = held.part.frame;
        if self.held.is_empty() || order.distance(self.head, frame) > 0 {
            self.head = frame;
        }
        if self.held.is_empty() || order.distance(self.tail, frame) < 0 {
            self.tail = frame;
        }
        self.bytes += held.body.len();
        self.held.push(held);
    }
}

impl Candidates {
    /// Makes an empty list that never exceeds the bound.
    pub(super) fn within(bound: CandidateBound) -> Self {
        Candidates { list: Vec::new(), bound }
    }

    /// The current bound.
    pub(super) fn bound(&self) -> CandidateBound {
        self.bound
    }

    /// Sets a new bound.
    pub(super) fn rebind(&mut self, bound: CandidateBound) {
        self.bound = bound;
    }

    /// Takes all courses and leaves none.
    pub(super) fn take_all(&mut self) -> Self {
        std::mem::replace(self, Candidates::within(self.bound))
    }

    /// Returns true if there is no course. This runs for every packet of an undisturbed stream.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of packets in the established courses.
    pub(super) fn waiting(&self, moved: u64) -> u64 {
        let established = self.list.iter().filter(|candidate| candidate.is_established(moved));
        established.map(|candidate| candidate.held.len() as u64).sum()
    }

    /// Returns true if no further course fits before another is given up or followed.
    pub(super) fn is_crowded(&self) -> bool {
        self.list.len() == CANDIDATES || self.is_full()
    }

    fn is_full(&self) -> bool {
        let packets: usize = self.list.iter().map(|candidate| candidate.held.len()).sum();
        let bytes: u64 = self.list.iter().map(|candidate| candidate.bytes as u64).sum();
        packets >= KEPT || bytes >= self.bound.bytes
    }

    /// The oldest course that is established.
    pub(super) fn oldest_established(&self, moved: u64) -> Option<usize> {
        self.list.iter().position(|candidate| candidate.is_established(moved))
    }

    /// The courses that arrived one after the other while the stream did not move. `None` unless each is
    /// ahead of the one before.
    pub(super) fn chain(&self, order: &Order, moved: u64) -> Option<CandidateChain> {
        let mut chain: Option<(CandidateChain, u64)> = None;
        for (at, one) in self.list.iter().enumerate().filter(|(_, one)| !one.is_interrupted(moved)) {
            chain = match chain {
                Some((_, head)) if order.distance(head, one.tail) <= 0 => return None,
                Some((chain, _)) => {
                    let packets = chain.packets + one.run;
                    Some((CandidateChain { packets, last: one.tail, ..chain }, one.head))
                }
                None => Some((CandidateChain { oldest: at, packets: one.run, last: one.tail }, one.head)),
            };
        }
        chain.map(|(chain, _)| chain)
    }

    /// Keeps a packet in the course that it follows, at most `near` frames away. `moved` is the number of
    /// packets by which the stream moved.
    ///
    /// Returns the index of the course, and the packets given up for it.
    pub(super) fn keep(&mut self, order: &Order, near: u64, held: Held, moved: u64) -> (usize, Vec<Held>) {
        let mut given_up = Vec::new();
        while self.is_full() {
            given_up.extend(self.least_likely(moved).held);
        }
        let frame = held.part.frame;
        // In both directions: packets of a course are reordered too.
        let follows = |one: &Candidate| order.distance(one.head, frame).unsigned_abs() <= near;
        if let Some(at) = self.list.iter().rposition(follows) {
            self.list[at].add(order, held, moved);
            return (at, given_up);
        }
        if self.list.len() == CANDIDATES {
            given_up.extend(self.least_likely(moved).held);
        }
        let mut candidate = Candidate::new(moved);
        candidate.add(order, held, moved);
        self.list.push(candidate);
        (self.list.len() - 1, given_up)
    }

    /// Returns true if a frame follows an established course, at most `near` frames away.
    pub(super) fn goes_on(&self, order: &Order, near: u64, frame: u64, moved: u64) -> bool {
        let mut established = self.list.iter().filter(|candidate| candidate.is_established(moved));
        established.any(|candidate| order.distance(candidate.head, frame).unsigned_abs() <= near)
    }

    /// Removes the course that is least likely to be the stream. A long one during which the stream moved
    /// belongs to another sender. Otherwise it is the shortest: a stream that goes on has more packets than
    /// random numbers have.
    fn least_likely(&mut self, moved: u64) -> Candidate {
        let length = |at: &usize| self.list[*at].held.len();
        let long = |at: &usize| self.list[*at].is_interrupted(moved) && length(at) >= LONG;
        let foreign = (0..self.list.len()).filter(long).max_by_key(length);
        let at = foreign.or_else(|| (0..self.list.len()).min_by_key(length));
        self.list.remove(at.expect("there is one if no more is kept"))
    }

    /// Removes and returns the first course that is the stream.
    pub(super) fn take(&mut self, is_stream: impl Fn(&Candidate) -> bool) -> Option<Candidate> {
        let at = self.list.iter().position(is_stream)?;
        Some(self.list.remove(at))
    }

    /// Removes the course at this index.
    pub(super) fn take_at(&mut self, at: usize) -> Candidate {
        self.list.remove(at)
    }

    /// The course at this index.
    pub(super) fn get(&self, at: usize) -> &Candidate {
        &self.list[at]
    }

    /// The stream went on from a course, and thereby moved from `before` to `moved` packets. This does not
    /// interrupt other courses that were not interrupted before, because its packets had arrived earlier.
    pub(super) fn stay(&mut self, before: u64, moved: u64) {
        for candidate in self.list.iter_mut().filter(|candidate| candidate.moved == before) {
            candidate.moved = moved;
        }
    }

    /// Removes packets that the stream has reached. An established course stays whole: it goes elsewhere,
    /// although the stream may reach some of its numbers.
    pub(super) fn reached(&mut self, moved: u64, is_here: impl Fn(Part) -> bool) -> Vec<Held> {
        let mut reached = Vec::new();
        for candidate in self.list.iter_mut().filter(|candidate| !candidate.is_established(moved)) {
            reached.extend(candidate.held.extract_if(.., |held| is_here(held.part)));
        }
        self.list.retain(|candidate| !candidate.held.is_empty());
        reached
    }

    /// Removes courses that do not belong to the stream: it moved by more than 64 packets without them, and
    /// does not reach them soon.
    pub(super) fn stale(&mut self, moved: u64, is_ahead: impl Fn(Part) -> bool) -> Vec<Held> {
        let is_stale = |candidate: &mut Candidate| {
            candidate.moved + STALE < moved && !candidate.held.iter().any(|held| is_ahead(held.part))
        };
        self.list.extract_if(.., is_stale).flat_map(|candidate| candidate.held).collect()
    }

    /// Takes out all packets.
    pub(super) fn all(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.list).into_iter().flat_map(|candidate| candidate.held).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_wire::Geometry;

    fn order() -> Order {
        Order::new(&Geometry { prefix: 8, parts: vec![1], number_bits: 32, behind: Vec::new() })
    }

    /// For a few thousand packets of ten bytes.
    fn candidates() -> Candidates {
        Candidates::within(CandidateBound::of(Bytes(400_000), Bytes(10)))
    }

    fn packet(frame: u64) -> Held {
        Held { inlet: 0, part: Part { frame, part: 0 }, body: vec![0; 10], counted: None }
    }

    #[test]
    fn packets_that_follow_each_other_stay_together_among_many_that_do_not() {
        let (order, mut candidates) = (order(), candidates());
        let mut given_up = 0;
        for at in 0..20 {
            given_up +=
                candidates.keep(&order, 8, packet((u64::from(u32::MAX) - 5 + at) & 0xffff_ffff), 0).1.len();
            for other in 0..10 {
                given_up += candidates.keep(&order, 8, packet(1000 + 100 * (10 * at + other)), 0).1.len();
            }
        }
        assert_eq!(given_up, 200 - 63);
        let course = candidates.take(|one| one.is_established(0)).expect("twenty follow each other");
        assert_eq!((course.held.len(), course.first()), (20, u64::from(u32::MAX) - 5));
        assert!(candidates.take(|one| one.is_course(0)).is_none());
    }

    #[test]
    fn what_comes_again_or_with_the_stream_between_makes_no_course() {
        let (order, mut candidates) = (order(), candidates());
        (0..100).for_each(|_| drop(candidates.keep(&order, 8, packet(7), 0)));
        assert!(candidates.take(|one| one.is_course(0)).is_none());
        for at in 0..100 {
            candidates.keep(&order, 8, packet(5000 + at), at);
        }
        assert!(candidates.take(|one| one.is_course(99)).is_none());
        candidates.keep(&order, 8, packet(5100), 99);
        assert!(candidates.take(|one| one.is_course(100)).is_none());
        assert!(candidates.take(|one| one.is_course(99)).is_some());
        assert_eq!(candidates.all().len(), 100);
    }

    #[test]
    fn no_more_is_kept_than_a_limit() {
        let (order, mut candidates) = (order(), candidates());
        let mut given_up = 0;
        for at in 0..3 * KEPT as u64 {
            given_up += candidates.keep(&order, 8, packet(at), at).1.len();
        }
        assert_eq!(given_up, 2 * KEPT);
    }

    #[test]
    fn the_limit_is_one_for_all_courses_together() {
        let (order, packet_size) = (order(), Bytes(10));
        for (ring, packets) in [(0, 64), (80_000, 1000), (1 << 40, KEPT)] {
            let mut candidates = Candidates::within(CandidateBound::of(Bytes(ring), packet_size));
            let mut given_up = 0;
            // Each jump begins a course, as under overload.
            for at in 0..10_000 {
                given_up += candidates.keep(&order, 8, packet(at + at / 200 * 5000), 0).1.len();
                let kept: usize = candidates.list.iter().map(|candidate| candidate.held.len()).sum();
                assert!(kept <= packets, "{kept}");
                assert_eq!(kept + given_up, at as usize + 1, "each is kept or given up");
            }
        }
    }

    #[test]
    fn what_somebody_else_sends_beside_the_stream_is_given_up_before_a_new_beginning() {
        let (order, mut candidates) =
            (order(), Candidates::within(CandidateBound::of(Bytes(8000), Bytes(10))));
        for at in 0..90 {
            candidates.keep(&order, 8, packet(5000 + at), at);
        }
        for at in 0..90 {
            candidates.keep(&order, 8, packet(70_000 + at), 100);
        }
        let course = candidates.take(|one| one.is_established(100)).expect("it is there");
        assert_eq!((course.first(), course.held.len()), (70_000, 90));
    }
}
