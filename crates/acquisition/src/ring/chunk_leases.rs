//! Frames by leases of consecutive numbers, for storage in chunks: a writer claims the oldest frames that nobody has, and
//! gets those of that lease only until it is over. Frames of several leases wait in the ring at once, so that as many
//! writers write at the same time.
//!
//! What a writer took since its last claim is a chunk. Chunks have their frames in order and do not overlap: a chunk begins
//! with its first frame and ends where the next one begins, whatever was given back meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
};

use nilometer_model::Nanos;

use super::{Frame, Taken};

/// See the module.
#[derive(Debug)]
pub(super) struct ChunkLeases {
    /// Frame numbers of a lease.
    size: u64,
    /// By writer.
    claims: Vec<Option<Claim>>,
    /// Where chunks begin, as far as frames may still be given back.
    starts: BTreeSet<u64>,
    /// Frames that were taken and neither acknowledged nor given back, and by whom.
    hands: BTreeMap<u64, usize>,
    /// Frames below this came, or will not come.
    passed: u64,
    seats: Vec<Seat>,
}

/// What is known of a writer.
#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    /// When it took or acknowledged frames last.
    active: Nanos,
    /// It asked last and got nothing.
    idle: bool,
    /// Chunks that it began.
    chunks: u64,
    left: bool,
}

/// What a writer gets.
#[derive(Debug)]
struct Claim {
    /// Frames of these numbers, but for those that it got already.
    range: Range<u64>,
    waiting: VecDeque<Frame>,
    /// Since when some wait.
    since: Nanos,
}

/// What the ring is like when frames are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) now: Nanos,
    pub(super) writer: usize,
    /// How many frames at the most.
    pub(super) batch: usize,
    /// Frames below this are settled.
    pub(super) mark: u64,
    /// There is little room left.
    pub(super) pressed: bool,
    /// No frames come any more.
    pub(super) closed: bool,
}

/// A writer that did nothing for so long leaves what waits for it to one that has nothing to do.
const PATIENCE: Nanos = Nanos::from_millis(5000);

/// How long a frame waits for a writer that would be the better one.
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

    /// A frame came, was lost, or was given back: frames come in order.
    pub(super) fn pass(&mut self, number: u64) {
        self.passed = self.passed.max(number + 1);
    }

    /// No frame comes any more.
    pub(super) fn close(&mut self) {
        self.passed = u64::MAX;
    }

    /// To the writer that claimed it; back again if nobody did.
    pub(super) fn route(&mut self, now: Nanos, frame: Frame) -> Option<Frame> {
        self.hands.remove(&frame.number);
        let claims = self.claims.iter_mut().flatten();
        let Some(claim) = claims.into_iter().find(|claim| claim.range.contains(&frame.number)) else {
            return Some(frame);
        };
        if claim.waiting.is_empty() {
            claim.since = now;
        }
        let at = claim.waiting.partition_point(|waiting| waiting.number < frame.number);
        claim.waiting.insert(at, frame);
        None
    }

    /// The oldest frame that waits for the writer that claimed it.
    pub(super) fn oldest(&self) -> Option<u64> {
        let fronts = self.claims.iter().flatten().filter_map(|claim| claim.waiting.front());
        fronts.map(|frame| frame.number).min()
    }

    /// Takes the oldest one out.
    pub(super) fn pop_oldest(&mut self) -> Option<Frame> {
        let oldest = self.oldest()?;
        let claims = self.claims.iter_mut().flatten();
        claims.into_iter().find_map(|claim| claim.waiting.pop_front_if(|frame| frame.number == oldest))
    }

    /// A frame is acknowledged; whether it was the last in the hands of a writer that left.
    pub(super) fn settle(&mut self, now: Nanos, number: u64) -> bool {
        let Some(writer) = self.hands.remove(&number) else { return false };
        self.seats[writer].active = now;
        self.seats[writer].left && !self.hands.values().any(|holder| *holder == writer)
    }

    /// A writer takes no more frames: what waited for it.
    pub(super) fn leave(&mut self, writer: usize) -> VecDeque<Frame> {
        self.seats[writer].left = true;
        self.claims[writer].take().map(|claim| claim.waiting).unwrap_or_default()
    }

    /// Takes frames, claiming them if need be from those that nobody has.
    pub(super) fn take(
        &mut self,
        asked: Asked,
        free: &mut VecDeque<Frame>,
        frames: &mut VecDeque<Frame>,
    ) -> Taken {
        let Asked { now, writer, batch, .. } = asked;
        let has_some = self.claims[writer].as_ref().is_some_and(|claim| !claim.waiting.is_empty());
        let begins = !has_some && (self.claim(asked, free) || self.take_over(asked));
        let seat = &mut self.seats[writer];
        (seat.idle, seat.chunks) = (!has_some && !begins, seat.chunks + u64::from(begins));
        if has_some || begins {
            seat.active = now;
            self.hand_out(writer, batch, frames);
            return if begins { Taken::Chunk } else { Taken::Frames };
        }
        if self.claims[writer].take_if(|claim| claim.range.end <= self.passed).is_some() {
            return Taken::Over;
        }
        let others = self.claims.iter().flatten().any(|claim| !claim.waiting.is_empty());
        if asked.closed && others { Taken::Later(now + PATIENCE) } else { Taken::Nothing }
    }

    fn hand_out(&mut self, writer: usize, batch: usize, frames: &mut VecDeque<Frame>) {
        let Some(claim) = &mut self.claims[writer] else { return };
        let count = batch.min(claim.waiting.len());
        for frame in claim.waiting.drain(..count) {
            self.hands.insert(frame.number, writer);
            claim.range.start = frame.number + 1;
            frames.push_back(frame);
        }
    }

    /// Claims the oldest frames that nobody has, if there are some.
    fn claim(&mut self, asked: Asked, free: &mut VecDeque<Frame>) -> bool {
        let mut at = 0;
        if free.front().is_some_and(|frame| self.leaves_to_another(asked, frame.due)) {
            return false;
        }
        while let Some(frame) = free.get(at) {
            let (begin, end) = (frame.number, self.end(frame.number));
            let before = self.starts.range(..=begin).next_back().copied().unwrap_or(0);
            // Others between these will be given back: with them it is one chunk.
            if asked.pressed || asked.closed || self.in_hands_of_left(before..end).is_none() {
                let end = self.in_hands_of_left(begin + 1..end).unwrap_or(end);
                self.begin(asked, begin..end, at, free);
                return true;
            }
            at = free.partition_point(|frame| frame.number < end);
        }
        false
    }

    /// Of writers that have nothing to do the one with the fewest chunks gets the next, so that storage fills evenly; not
    /// if that takes long.
    fn leaves_to_another(&self, asked: Asked, due: Nanos) -> bool {
        let Asked { now, writer, pressed, closed, .. } = asked;
        let fewer = |seat: &Seat| !seat.left && seat.idle && seat.chunks < self.seats[writer].chunks;
        !pressed && !closed && now.since(due) < POLITE && self.seats.iter().any(fewer)
    }

    /// Where a chunk ends at the latest that begins here.
    fn end(&self, begin: u64) -> u64 {
        let end = (begin / self.size + 1) * self.size;
        self.starts.range(begin + 1..end).next().copied().unwrap_or(end)
    }

    /// The first frame of these that a writer holds who left.
    fn in_hands_of_left(&self, range: Range<u64>) -> Option<u64> {
        let mut held = self.hands.range(range);
        held.find(|(_, writer)| self.seats[**writer].left).map(|(number, _)| *number)
    }

    fn begin(&mut self, asked: Asked, range: Range<u64>, at: usize, free: &mut VecDeque<Frame>) {
        let behind = free.partition_point(|frame| frame.number < range.end);
        let waiting = free.drain(at..behind).collect();
        self.begin_with(asked, Claim { range, waiting, since: asked.now });
    }

    /// What the writer had before is over, though more of it may come: that will be another chunk.
    fn begin_with(&mut self, asked: Asked, claim: Claim) {
        self.starts = self.starts.split_off(&asked.mark);
        self.starts.insert(claim.range.start);
        if let Some(before) = self.claims[asked.writer].replace(claim) {
            self.starts.insert(before.range.start);
        }
    }

    /// Takes over what waits longest for a writer that does nothing, or most of what waits if there is little room left.
    fn take_over(&mut self, asked: Asked) -> bool {
        let Asked { now, writer, pressed, .. } = asked;
        let silent = |other: usize, since| now.since(self.seats[other].active.max(since)) >= PATIENCE;
        let others = self.claims.iter().enumerate().filter(|(other, _)| *other != writer);
        let claimed = others.filter_map(|(other, claim)| Some((other, claim.as_ref()?)));
        let most = claimed
            .filter(|(other, claim)| !claim.waiting.is_empty() && (pressed || silent(*other, claim.since)))
            .max_by_key(|(_, claim)| claim.waiting.len())
            .map(|(other, _)| other);
        let Some(mut claim) = most.and_then(|other| self.claims[other].take()) else { return false };
        let first = claim.waiting.front().map_or(claim.range.start, |frame| frame.number);
        claim.range.start = first;
        self.begin_with(asked, claim);
        true
    }
}
