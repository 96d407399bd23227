//! Packets whose numbers are not where the stream is. Anybody can send a few of them, so they move nothing:
//! they are kept, as courses of packets that follow each other, until the stream is known to go on from one
//! of these.
//!
//! ```text
//! stream      1000 1001 1002 1003 ....  1004 1005        it goes on: what was elsewhere is none of it
//! elsewhere                       62000 62001
//!
//! stream      1000 1001 1002 1003 ............................    nothing comes of it for a while
//! elsewhere                       5 6 7 8 9 10 11 12 13 14 ..     it began anew
//! ```
//!
//! A course is established by 8 packets between which none of the stream came: packets that somebody sends
//! beside a stream that goes on are interrupted by it. For example, with a stream that has moved by 104
//! packets, and where packets at most 17 frames apart follow each other:
//!
//! ```text
//! arrives          5000  5001  1004  5002  62000  5003 .. 5009
//! stream moved     104   104   105   105   105    105  .. 105
//! course of 5000   1     2           1            2    .. 8      the run; 1004 ended it, and it began again
//! course of 62000                          1
//! ```
//!
//! With 5009 the first course is established. If nothing comes of the stream for a while, it goes on with
//! frame 5000: the packets before the interruption are kept too, and none is lost.

use super::{order::Order, progress::ESTABLISHED};
use nilometer_wire::Part;

/// A packet that is kept.
#[derive(Debug)]
pub(super) struct Held {
    /// The port by which it came.
    pub(super) inlet: usize,
    pub(super) part: Part,
    /// Its bytes, as far as they are recorded.
    pub(super) body: Vec<u8>,
    /// As what it was counted when it came, if its place was closed or taken. Put down after all, it is
    /// counted anew.
    pub(super) counted: Option<Behind>,
}

/// A packet of a place that is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// It had not come before.
    Late,
    /// It had, and is not there any more to be compared.
    Duplicate,
    /// The same packet is there.
    Copy,
    /// Another packet with its number is there.
    Conflict,
}

/// A course: packets that follow each other, not where the stream is.
#[derive(Debug)]
pub(super) struct Candidate {
    /// In the order in which they came.
    pub(super) held: Vec<Held>,
    /// Bytes of all of them.
    bytes: usize,
    /// The number of the frame furthest ahead.
    head: u64,
    /// Packets that came one after the other while the stream did not move.
    run: u64,
    /// Packets by which the stream had moved when the last of them came.
    moved: u64,
}

/// Courses that are kept at once: as many packets with random numbers don't drive out one in which they
/// follow each other.
const CANDIDATES: usize = 64;
/// Packets of one that are kept, and bytes of them: as many without one of the stream between them are the
/// stream, whatever the time. While the recorder is behind, that stands still.
const KEPT: usize = 4096;
const KEPT_BYTES: usize = 32 << 20;
const KEPT_LEAST: usize = 64;
/// Packets of the stream after which a course of which nothing came is none of it.
const STALE: u64 = 64;
/// A packet that was among the last so many is no further one.
const REPEATED: usize = 64;

/// The courses that are kept, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
}

impl Candidate {
    fn new(moved: u64) -> Self {
        Candidate { held: Vec::new(), bytes: 0, head: 0, run: 0, moved }
    }

    /// Whether as many packets came as make a stream, without one of the stream between them or since.
    /// `moved` counts the packets by which the stream has moved.
    pub(super) fn is_established(&self, moved: u64) -> bool {
        self.moved == moved && self.run >= ESTABLISHED
    }

    /// Whether two at least follow each other, without one of the stream between them or since.
    pub(super) fn is_course(&self, moved: u64) -> bool {
        self.moved == moved && self.run >= 2
    }

    /// Whether no more of it is kept.
    pub(super) fn is_full(&self) -> bool {
        let count = self.held.len();
        count >= KEPT || count >= KEPT_LEAST && self.bytes >= KEPT_BYTES
    }

    /// The number of its earliest frame.
    pub(super) fn first(&self, order: &Order) -> u64 {
        let head = self.head;
        // By distances, since its numbers may wrap; from the head, which no packet of it is far from.
        let first =
            self.held.iter().map(|held| held.part.frame).min_by_key(|frame| order.distance(head, *frame));
        first.unwrap_or(head)
    }

    fn add(&mut self, order: &Order, held: Held, moved: u64) {
        // The stream goes on: what came before is no reason to leave it.
        if self.moved != moved {
            (self.moved, self.run) = (moved, 0);
        }
        // The same packet again and again is no course.
        let is_new = self.held.iter().rev().take(REPEATED).all(|before| before.part != held.part);
        self.run += u64::from(is_new);
        if self.held.is_empty() || order.distance(self.head, held.part.frame) > 0 {
            self.head = held.part.frame;
        }
        self.bytes += held.body.len();
        self.held.push(held);
    }
}

impl Candidates {
    /// Whether there is no course. Every packet of an undisturbed stream asks this.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many packets the established courses have.
    pub(super) fn waiting(&self, moved: u64) -> u64 {
        let established = self.list.iter().filter(|candidate| candidate.is_established(moved));
        established.map(|candidate| candidate.held.len() as u64).sum()
    }

    /// Keeps a packet with those that it follows, at most so many frames away: which one that is, and packets
    /// that are given up for it. `moved` counts the packets by which the stream moved.
    pub(super) fn keep(&mut self, order: &Order, near: u64, held: Held, moved: u64) -> (usize, Vec<Held>) {
        let frame = held.part.frame;
        // To both sides: packets of a course are reordered too.
        let follows = |one: &Candidate| order.distance(one.head, frame).unsigned_abs() <= near;
        if let Some(at) = self.list.iter().rposition(follows) {
            let mut given_up = Vec::new();
            // It was full and the stream still moved: it is somebody else's, and does not take more memory.
            if self.list[at].is_full() {
                let full = std::mem::replace(&mut self.list[at], Candidate::new(moved));
                given_up = full.held;
            }
            self.list[at].add(order, held, moved);
            return (at, given_up);
        }
        let given_up = if self.list.len() == CANDIDATES { self.shortest().held } else { Vec::new() };
        let mut candidate = Candidate::new(moved);
        candidate.add(order, held, moved);
        self.list.push(candidate);
        (self.list.len() - 1, given_up)
    }

    /// Whether a frame follows an established course, at most so many frames away.
    pub(super) fn goes_on(&self, order: &Order, near: u64, frame: u64, moved: u64) -> bool {
        let mut established = self.list.iter().filter(|candidate| candidate.is_established(moved));
        established.any(|candidate| order.distance(candidate.head, frame).unsigned_abs() <= near)
    }

    /// Takes out the course with the fewest packets, of those the oldest: a stream that goes on has more than
    /// numbers that are drawn at random.
    fn shortest(&mut self) -> Candidate {
        let fewest = (0..self.list.len()).min_by_key(|at| self.list[*at].held.len());
        self.list.remove(fewest.expect("it is full"))
    }

    /// Takes out the first course that is taken to be the stream.
    pub(super) fn take(&mut self, is_stream: impl Fn(&Candidate) -> bool) -> Option<Candidate> {
        let at = self.list.iter().position(is_stream)?;
        Some(self.list.remove(at))
    }

    /// Takes out the course at this place.
    pub(super) fn take_at(&mut self, at: usize) -> Candidate {
        self.list.remove(at)
    }

    /// The course at this place.
    pub(super) fn get(&self, at: usize) -> &Candidate {
        &self.list[at]
    }

    /// The stream went on from a course, by which it moved from `before` to `moved` packets. Other courses
    /// that were not interrupted until then are not interrupted by that: its packets had come earlier.
    pub(super) fn stay(&mut self, before: u64, moved: u64) {
        for candidate in self.list.iter_mut().filter(|candidate| candidate.moved == before) {
            candidate.moved = moved;
        }
    }

    /// Takes out packets that the stream has come to. An established course goes elsewhere, though some of
    /// its numbers may be those that the stream comes to: it stays whole.
    pub(super) fn reached(&mut self, moved: u64, is_here: impl Fn(Part) -> bool) -> Vec<Held> {
        let mut reached = Vec::new();
        for candidate in self.list.iter_mut().filter(|candidate| !candidate.is_established(moved)) {
            reached.extend(candidate.held.extract_if(.., |held| is_here(held.part)));
        }
        self.list.retain(|candidate| !candidate.held.is_empty());
        reached
    }

    /// Takes out courses that are none of the stream: it moved by more than 64 packets without them, and does
    /// not come to them soon.
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

    fn packet(frame: u64) -> Held {
        Held { inlet: 0, part: Part { frame, part: 0 }, body: vec![0; 10], counted: None }
    }

    #[test]
    fn packets_that_follow_each_other_stay_together_among_many_that_do_not() {
        let (order, mut candidates) = (order(), Candidates::default());
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
        assert_eq!((course.held.len(), course.first(&order)), (20, u64::from(u32::MAX) - 5));
        assert!(candidates.take(|one| one.is_course(0)).is_none());
    }

    #[test]
    fn what_comes_again_or_with_the_stream_between_makes_no_course() {
        let (order, mut candidates) = (order(), Candidates::default());
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
        let (order, mut candidates) = (order(), Candidates::default());
        let mut given_up = 0;
        for at in 0..3 * KEPT as u64 {
            given_up += candidates.keep(&order, 8, packet(at), at).1.len();
        }
        assert_eq!(given_up, 2 * KEPT);
    }
}
