//! Chunk leases: consecutive frame numbers that one writer claims from the ring, for storage in chunks. A
//! writer claims the oldest unclaimed frames and gets only frames of that lease until it is over. Frames of
//! several leases wait in the ring at once, so that as many writers write at the same time.
//!
//! The frames that a writer takes between two claims are a chunk. Chunks have their frames in order and do
//! not overlap. A chunk begins with its first frame and ends at the beginning of the next, even if frames are
//! given back meanwhile.
//!
//! For example, with leases of 4 frames, two writers A and B and frames 0 to 9 in the ring:
//!
//! ```text
//! number                 0  1  2  3 | 4  5  6  7 | 8  9     A, B: in a lease; a, b: taken; .: nobody's
//! each claims a lease    a  a  A  A | b  b  b  b | .  .     A took 0 and 1, and acknowledged 0
//! A fails                a  a  .  . | b  b  b  b | .  .     frame 1 is still in its hands
//! B asks for frames      a  a  .  . | b  b  b  b | b  b     it gets 8: 1 may come back, and goes before 2
//! A gives 1 back         a  .  .  . | b  b  b  b | b  b
//! B asks for frames      a  b  b  b | b  b  b  b | b  b     it gets 1, 2 and 3 as one chunk
//! chunks begin at        0  1         4            8        and at 10, when that comes
//! ```
//!
//! B gave up its lease of 8 to 11 when it claimed frame 1, since a writer has one chunk at a time. Frames 10
//! and 11 will therefore be a chunk of their own.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
};

use nilometer_model::Nanos;

use super::{Frame, Taken};

/// The leases of all writers of a ring, and the frames that wait for one writer each.
#[derive(Debug)]
pub(super) struct ChunkLeases {
    /// The number of frame numbers in a lease; leases begin at its multiples.
    size: u64,
    /// The lease of each writer, by its index.
    claims: Vec<Option<Claim>>,
    /// The first frames of chunks, down to the watermark. No frame below it is given back.
    starts: BTreeSet<u64>,
    /// Frames that a writer took and neither acknowledged nor gave back, with the index of that writer.
    hands: BTreeMap<u64, usize>,
    /// Frames below this number came, or will not come.
    passed: u64,
    seats: Vec<Seat>,
}

/// The activity of a writer.
#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    /// The last time it took or acknowledged frames.
    active: Nanos,
    /// Its last request got nothing: it has nothing to do.
    idle: bool,
    /// The number of chunks it began.
    chunks: u64,
    left: bool,
}

/// A lease of one writer.
#[derive(Debug)]
struct Claim {
    /// The numbers that the writer has not taken yet.
    range: Range<u64>,
    /// The frames with these numbers that are in the ring, in order.
    waiting: VecDeque<Frame>,
    /// The time since which some have waited.
    since: Nanos,
}

/// The state of the ring when a writer asks for frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) now: Nanos,
    pub(super) writer: usize,
    /// The most frames to take.
    pub(super) batch: usize,
    /// The watermark: frames below it are acknowledged or lost.
    pub(super) mark: u64,
    /// Three quarters of the slots or more are in use.
    pub(super) pressed: bool,
    /// No more frames come.
    pub(super) closed: bool,
}

/// If frames wait for a writer that neither took nor acknowledged one for this long, an idle writer may take
/// over its lease. The time is long, because a lease that changes hands costs an extra chunk.
const PATIENCE: Nanos = Nanos::from_millis(5000);

/// How long after its due time a frame is reserved for an idle writer with fewer chunks.
const POLITE: Nanos = Nanos::from_millis(20);

impl ChunkLeases {
    pub(super) fn new(size: u64, writers: usize) -> Self {
        ChunkLeases {
            size: size.max(1),
            claims: (0..writers).map(|_| None).collect(),
            starts: BTreeSet::new(),
            hands: BTreeMap::new(),
            passed: 0,
            seats: vec![Seat::default(); writers],
        }
    }

    /// Notes that a frame came, was lost, or was given back. Frames come in order, so all below it came
    /// before.
    pub(super) fn pass(&mut self, number: u64) {
        self.passed = self.passed.max(number + 1);
    }

    /// Notes that no more frames come.
    pub(super) fn close(&mut self) {
        self.passed = u64::MAX;
    }

    /// Queues a frame that came, or was given back, for the writer that claimed it. Returns the frame if
    /// nobody did.
    pub(super) fn route(&mut self, now: Nanos, frame: Frame) -> Option<Frame> {
        self.hands.remove(&frame.number);
        let claims = self.claims.iter_mut().flatten();
        let Some(claim) = claims.into_iter().find(|claim| claim.range.contains(&frame.number)) else {
            return Some(frame);
        };
        if claim.waiting.is_empty() {
            claim.since = now;
        }
        // Frames come in order, except those that are given back.
        let at = claim.waiting.partition_point(|waiting| waiting.number < frame.number);
        claim.waiting.insert(at, frame);
        None
    }

    /// Returns the number of the oldest frame that waits in a lease.
    pub(super) fn oldest(&self) -> Option<u64> {
        let fronts = self.claims.iter().flatten().filter_map(|claim| claim.waiting.front());
        fronts.map(|frame| frame.number).min()
    }

    /// Takes the oldest frame out of its lease.
    pub(super) fn pop_oldest(&mut self) -> Option<Frame> {
        let oldest = self.oldest()?;
        let claims = self.claims.iter_mut().flatten();
        claims.into_iter().find_map(|claim| claim.waiting.pop_front_if(|frame| frame.number == oldest))
    }

    /// Notes that a frame is acknowledged. Returns true if it was the last one held by a writer that left.
    /// Frames skipped because of it can then be claimed, and the ring must wake writers.
    pub(super) fn settle(&mut self, now: Nanos, number: u64) -> bool {
        let Some(writer) = self.hands.remove(&number) else { return false };
        self.seats[writer].active = now;
        self.seats[writer].left && !self.hands.values().any(|holder| *holder == writer)
    }

    /// Notes that a writer takes no more frames; returns the frames that waited for it.
    pub(super) fn leave(&mut self, writer: usize) -> VecDeque<Frame> {
        self.seats[writer].left = true;
        self.claims[writer].take().map(|claim| claim.waiting).unwrap_or_default()
    }

    /// Takes frames out of the writer's lease. If none wait there, it claims a new lease from the unclaimed
    /// frames in `free`.
    pub(super) fn take(
        &mut self,
        asked: Asked,
        free: &mut VecDeque<Frame>,
        frames: &mut VecDeque<Frame>,
    ) -> Taken {
        let Asked { now, writer, batch, .. } = asked;
        let has_some = self.claims[writer].as_ref().is_some_and(|claim| !claim.waiting.is_empty());
        // A lease is emptied before another is claimed: a chunk ends at its writer's next claim.
        let begins = !has_some && (self.claim(asked, free) || self.take_over(asked));
        let seat = &mut self.seats[writer];
        seat.idle = !has_some && !begins;
        seat.chunks += u64::from(begins);
        if has_some || begins {
            seat.active = now;
            self.hand_out(writer, batch, frames);
            return if begins { Taken::Chunk } else { Taken::Frames };
        }
        // No more frames of the lease will come, so the file of its chunk can be closed. Otherwise it stays
        // open.
        if self.claims[writer].take_if(|claim| claim.range.end <= self.passed).is_some() {
            return Taken::Over;
        }
        // No new frame will wake this writer: it asks again once the others have hung for long enough.
        let others = self.claims.iter().flatten().any(|claim| !claim.waiting.is_empty());
        if asked.closed && others {
            return Taken::Later(now + PATIENCE);
        }
        // The preferred writer of the oldest frame may never ask, and frames may be seconds apart.
        let left = free.front().filter(|frame| self.leaves_to_another(asked, frame.due));
        left.map_or(Taken::Nothing, |frame| Taken::Later(frame.due + POLITE))
    }

    fn hand_out(&mut self, writer: usize, batch: usize, frames: &mut VecDeque<Frame>) {
        let Some(claim) = &mut self.claims[writer] else { return };
        let count = batch.min(claim.waiting.len());
        for frame in claim.waiting.drain(..count) {
            self.hands.insert(frame.number, writer);
            // A frame given back from here on is not of this lease: it would follow later frames of the
            // chunk.
            claim.range.start = frame.number + 1;
            frames.push_back(frame);
        }
    }

    /// Claims the oldest unclaimed lease that may begin, if there is one.
    fn claim(&mut self, asked: Asked, free: &mut VecDeque<Frame>) -> bool {
        let mut at = 0;
        if free.front().is_some_and(|frame| self.leaves_to_another(asked, frame.due)) {
            return false;
        }
        while let Some(frame) = free.get(at) {
            let begin = frame.number;
            let end = self.end(frame.number);
            // The last chunk that begins here or earlier: a writer that left may still hold frames of it.
            let before = self.starts.range(..=begin).next_back().copied().unwrap_or(0);
            // Held frames will be given back, and with them the rest is one chunk instead of two. Waiting for
            // that is not worth a full ring: under pressure the chunk ends before the next frame that may
            // come back.
            if asked.pressed || asked.closed || self.in_hands_of_left(before..end).is_none() {
                let end = self.in_hands_of_left(begin + 1..end).unwrap_or(end);
                self.begin(asked, begin..end, at, free);
                return true;
            }
            at = free.partition_point(|frame| frame.number < end);
        }
        false
    }

    /// Returns true if the next lease is for another writer. Among idle writers the one with the fewest
    /// chunks gets it, so that storage fills evenly. A frame waits for that for at most 20 ms.
    fn leaves_to_another(&self, asked: Asked, due: Nanos) -> bool {
        let Asked { now, writer, pressed, closed, .. } = asked;
        let fewer = |seat: &Seat| !seat.left && seat.idle && seat.chunks < self.seats[writer].chunks;
        !pressed && !closed && now.since(due) < POLITE && self.seats.iter().any(fewer)
    }

    /// Returns the number after the last frame of a chunk that begins here: the end of the lease, or the
    /// first frame of an earlier chunk in the same lease.
    fn end(&self, begin: u64) -> u64 {
        let end = (begin / self.size + 1) * self.size;
        self.starts.range(begin + 1..end).next().copied().unwrap_or(end)
    }

    /// Returns the first of these frames that is still held by a writer that left.
    fn in_hands_of_left(&self, range: Range<u64>) -> Option<u64> {
        let mut held = self.hands.range(range);
        held.find(|(_, writer)| self.seats[**writer].left).map(|(number, _)| *number)
    }

    /// Gives the frames in this range to the writer; the first is at place `at` of `free`.
    fn begin(&mut self, asked: Asked, range: Range<u64>, at: usize, free: &mut VecDeque<Frame>) {
        let behind = free.partition_point(|frame| frame.number < range.end);
        let waiting = free.drain(at..behind).collect();
        self.begin_with(asked, Claim { range, waiting, since: asked.now });
    }

    /// Begins a chunk with this claim. The writer's previous lease is over. If more frames of it come, they
    /// will be another chunk.
    fn begin_with(&mut self, asked: Asked, claim: Claim) {
        // No frame below the watermark can come back, so no chunk begins there.
        self.starts = self.starts.split_off(&asked.mark);
        self.starts.insert(claim.range.start);
        if let Some(before) = self.claims[asked.writer].replace(claim) {
            // Another writer that takes frames before the rest of that lease has to stop there.
            self.starts.insert(before.range.start);
        }
    }

    /// Takes over the lease with the most waiting frames among those of silent writers, or among all if
    /// little room is left.
    fn take_over(&mut self, asked: Asked) -> bool {
        let Asked { now, writer, pressed, .. } = asked;
        // Silence counts only while its frames wait: before that the writer had nothing to do, and was no
        // slower for it.
        let silent = |other: usize, since| now.since(self.seats[other].active.max(since)) >= PATIENCE;
        let others = self.claims.iter().enumerate().filter(|(other, _)| *other != writer);
        let claimed = others.filter_map(|(other, claim)| Some((other, claim.as_ref()?)));
        let most = claimed
            .filter(|(other, claim)| !claim.waiting.is_empty() && (pressed || silent(*other, claim.since)))
            .max_by_key(|(_, claim)| claim.waiting.len())
            .map(|(other, _)| other);
        let Some(mut claim) = most.and_then(|other| self.claims[other].take()) else { return false };
        // The frames before it stay in the other's chunk, which ends here.
        let first = claim.waiting.front().map_or(claim.range.start, |frame| frame.number);
        claim.range.start = first;
        self.begin_with(asked, claim);
        true
    }
}
