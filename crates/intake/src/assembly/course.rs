//! The course of a stream: whether a packet belongs near the last ones or elsewhere, and when the stream goes
//! on from there.
//!
//! A packet goes to its place if that is near the end of the stream and no other packet loses its place by
//! it. All others are [`Candidates`] and move nothing.
//!
//! The stream goes on from a course of candidates in one of three cases. Either nothing arrived at its
//! current place for a while, and several candidates follow each other elsewhere. Or the kernel dropped as
//! many packets as are missing in between. Or the candidates are too many to be anything else.
//!
//! None of these candidates is lost. For example, with a window of 16 packets, up to 16 / 4 = 4 places ahead
//! are near. Gaps are of at most 100 packets, and blocks have 8. Packets 0 to 19 arrived: blocks 0 and 1 are
//! in the ring, block 2 is open, and 20 is the next place.
//!
//! ```text
//! packet 22          place 22 is near (20 to 23)        it is put there; 20 and 21 may still come
//! packet 24          was not near while 20 was next     it is kept until 22 has come, which makes 26 near
//! packet 5           is in a block that is closed       it is kept, and counted as a duplicate, or as late
//!
//! nothing comes at 20 for a while, but eight packets that follow each other, numbered ..
//! .. 114 to 121      94 ahead: no more than a gap       20 to 113 are filled, or left out if slots are few
//! .. 220 to 227      200 ahead: more than a gap, and    the numbers were set anew: 220 has place 20
//!                    than the rate allows in the time
//! .. 0 to 7          behind                             the stream began anew: 0 has place 20
//! ```

use nilometer_model::Nanos;
use nilometer_recording::Gap;
use nilometer_ring::RingSnapshot;

use super::{
    Assembly, Block, Part, ReorderWindow,
    candidates::{Behind, Candidate, CandidateChain, Held},
    progress::{ESTABLISHED, StreamProgress},
};

/// After a shortage of slots the stream goes on when one of `ROOM` slots is free again. With one block at a
/// time there would be a gap behind each.
const ROOM: usize = 16;
/// Filling takes at most one of this many free slots, because packets need them.
const FILL_SHARE: u64 = 4;
/// A block counts as followed when this part of a window of packets arrived behind it. Any sender might send
/// fewer.
const WINDOW_SHARE: u64 = 8;

/// This many packets in courses that lie one behind the other are the stream, if no more can be kept.
const CHAIN: u64 = 64;

/// The relation of a packet to the stream, as far as it is clear on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Near the end of the stream.
    Here,
    /// It belongs where the stream is by now, but no slot is free: the storage is too slow.
    Lost,
    /// It belongs there, and slots are free again: the stream is recorded from here on.
    Resumes,
    /// Not near: it may be a stray packet, or the stream goes on there.
    Elsewhere,
}

impl Assembly {
    /// Puts a packet where it belongs, if that is open, or keeps it until the stream's place is certain.
    pub(super) fn insert(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        if !self.order.has_begun() {
            self.begin_at(now, part.frame);
        }
        let waits = self.ports.len() > 1 && self.park(inlet, part, body);
        if !waits {
            self.insert_near(now, inlet, part, body);
        }
    }

    /// Puts down a packet that waits for no other port.
    pub(super) fn insert_near(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        match self.standing(part) {
            // By its number alone it is here. But it continues a course that may be the stream, and its place
            // is taken. Put here, it would be a duplicate, and the course would have a hole.
            Standing::Here if self.repeats(part) => self.hold(now, inlet, part, body),
            Standing::Here => self.put(now, inlet, part, body),
            Standing::Lost => self.refuse(self.order.place(part)),
            Standing::Resumes => {
                self.resume(now, part);
                self.put(now, inlet, part, body);
            }
            Standing::Elsewhere => match self.begun_earlier(part) {
                Some(frames) => {
                    self.begin_earlier(frames, part.frame);
                    self.put(now, inlet, part, body);
                }
                None => self.hold(now, inlet, part, body),
            },
        }
    }

    /// The relation of a packet to the stream.
    fn standing(&self, part: Part) -> Standing {
        let place = self.order.place(part);
        let open = (self.first * self.shape.packets).cast_signed();
        let end = open + (self.open.len() as u64 * self.shape.packets).cast_signed();
        match self.crowded {
            // Without slots the last place stands still and the stream does not. Near then means near the
            // last packet that found no slot. Packets of open blocks still go to their places.
            Some(lost) if place >= end => match place < lost.saturating_add(self.step()) {
                false => Standing::Elsewhere,
                true if self.has_room() && self.may_skip() => Standing::Resumes,
                true => Standing::Lost,
            },
            _ => {
                let most = self.next().cast_signed().saturating_add(self.step());
                let is_here = place >= open && place < most && self.is_reachable(place.cast_unsigned());
                if is_here { Standing::Here } else { Standing::Elsewhere }
            }
        }
    }

    /// How many places ahead of all others a packet is still near. It is enough for packets that overtook
    /// others, and for those of a port that arrive before the others'.
    pub(super) fn step(&self) -> i64 {
        let others = if self.ports.len() > 1 { 2 * self.places_of_lead() } else { 0 };
        ((self.limits.window / 4).max(1) + others).cast_signed()
    }

    /// Returns true if there may be a block for this place without closing one for which packets still
    /// arrive.
    fn is_reachable(&self, place: u64) -> bool {
        let block = place / self.shape.packets - self.first;
        let Some(closed) = (block + 1).checked_sub(self.most_open() as u64) else { return true };
        closed == 0 || self.is_followed(closed as usize)
    }

    /// Returns true if packets arrived behind the first `blocks` blocks: more than a few, which any sender
    /// might send.
    pub(super) fn is_followed(&self, blocks: usize) -> bool {
        let came: u64 = self.open.iter().skip(blocks).map(|block| block.count).sum();
        came >= (self.limits.window / WINDOW_SHARE).max(1)
    }

    /// Counts a packet for which there is no slot.
    pub(super) fn refuse(&mut self, place: i64) {
        self.tally.refused += 1;
        let before = self.crowded.unwrap_or(self.next().cast_signed());
        // The stream goes on, although nothing of it is stored. Otherwise it would count as silent.
        if place >= before {
            self.progress.advance(1, (place + 1 - before).cast_unsigned());
        }
        self.crowded = Some(before.max(place + 1));
    }

    /// Slots of the ring that hold neither a frame nor an open block.
    fn free_slots(&self) -> usize {
        let RingSnapshot { books, in_use, .. } = self.ring.glance(Nanos(0));
        books.slots.saturating_sub(in_use + self.open.len())
    }

    /// Returns true if enough slots are free for the stream to go on after a shortage.
    fn has_room(&self) -> bool {
        self.free_slots() >= (self.ring.glance(Nanos(0)).books.slots / ROOM).max(1)
    }

    /// Resumes after a shortage, with this packet or at the last one that found no slot.
    fn resume(&mut self, now: Nanos, part: Part) {
        let Some(lost) = self.crowded.take() else { return };
        // Packets up to `lost` are certainly lost. This one may have overtaken some that are still to arrive:
        // only frames before the first of those are left out.
        let ahead = self.order.place(part).saturating_sub(lost).max(0).cast_unsigned();
        let frame = part.frame.wrapping_sub(ahead.div_ceil(self.shape.per_frame()));
        let first = self.first_heard(frame);
        self.skip_to(now, Part { frame: first, part: 0 });
    }

    /// The stream begins, or begins anew, with this frame.
    fn begin_at(&mut self, now: Nanos, frame: u64) {
        let place = self.next().next_multiple_of(self.shape.per_frame());
        if place == 0 {
            self.tally.first_frame.get_or_insert(frame);
        }
        self.order.begin(frame, place);
        self.starts.push_back(place);
        self.progress = StreamProgress::begin(now);
        self.drops.begin();
        self.ports.iter_mut().for_each(|port| port.course.begin());
    }

    /// Keeps a packet that belongs elsewhere, with the course that it follows.
    fn hold(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        let counted = self.behind(part).or_else(|| self.repeated(part, body));
        if let Some(behind) = counted {
            self.tally.count_behind(behind);
        }
        let held = Held { inlet, part, body: body.to_vec(), counted };
        let (at, given_up) =
            self.candidates.keep(&self.order, self.step_of_course(), held, self.progress.packets());
        self.give_up(&given_up);
        let mut followed = self.followed(at);
        while let Some(at) = followed.filter(|_| self.may_skip()) {
            let candidate = self.candidates.take_at(at);
            self.go_on(now, candidate);
            followed = self.followed_chain(ESTABLISHED);
        }
    }

    /// The course from which the stream goes on at once, after a packet was added to the course at this
    /// index. Other courses wait until the stream was silent for a while.
    fn followed(&self, at: usize) -> Option<usize> {
        let moved = self.progress.packets();
        let candidate = self.candidates.get(at);
        // A stream of a few packets may itself have consisted of stray ones.
        let is_known = || self.progress.is_young() || self.is_explained(candidate);
        if candidate.is_established(moved) && is_known() {
            return Some(at);
        }
        if let Some(at) = self.followed_chain(ESTABLISHED) {
            return Some(at);
        }
        if !self.candidates.is_crowded() {
            return None;
        }
        // If the recorder is behind, no time passes. Candidates that fill the memory without one packet of
        // the stream between are the stream.
        let chain = || self.candidates.chain(&self.order, moved);
        let is_long = |chain: &CandidateChain| chain.packets >= CHAIN && self.drops.packets() > 0;
        self.candidates
            .oldest_established(moved)
            .or_else(|| chain().filter(is_long).map(|chain| chain.oldest))
    }

    /// The first of several courses that lie one behind the other, if they have at least this many packets.
    /// The kernel must have dropped as many as are missing before the last of them. Repeated drops keep each
    /// single course short.
    fn followed_chain(&self, packets: u64) -> Option<usize> {
        let chain = self.candidates.chain(&self.order, self.progress.packets())?;
        (chain.packets >= packets && self.explains(chain.last, chain.packets)).then_some(chain.oldest)
    }

    /// Returns true if the kernel dropped as many packets as are missing before this course.
    fn is_explained(&self, candidate: &Candidate) -> bool {
        self.explains(candidate.first(), 0)
    }

    /// Returns true if the kernel dropped as many packets as are missing before this frame.
    ///
    /// It allows for `kept` packets that arrived, and for a window of others, since a few may be lost
    /// elsewhere.
    fn explains(&self, frame: u64, kept: u64) -> bool {
        let dropped = self.drops.packets();
        let begin = self.crowded.unwrap_or(self.next().cast_signed());
        let missing = self.order.place(Part { frame, part: 0 }).saturating_sub(begin);
        let most = dropped.saturating_add(kept + self.limits.window);
        dropped > 0 && u64::try_from(missing).is_ok_and(|missing| missing > 0 && missing <= most)
    }

    /// Counts packets that get no place: they do not belong to the stream, or arrived too late.
    pub(super) fn give_up(&mut self, packets: &[Held]) {
        self.tally.stray += packets.iter().filter(|held| held.counted.is_none()).count() as u64;
    }

    /// Puts down packets that the stream has reached since the last look, and gives up those that it left
    /// behind.
    pub(super) fn settle(&mut self, now: Nanos) {
        if self.candidates.is_empty() || self.settled == self.progress.packets() {
            return;
        }
        self.settled = self.progress.packets();
        // Taken out while `self` looks for their places.
        let mut candidates = self.candidates.take_all();
        let is_here = |part| self.standing(part) == Standing::Here && !self.is_there(part);
        let reached = candidates.reached(self.progress.packets(), is_here);
        let stale = candidates.stale(self.progress.packets(), |part| self.is_ahead(part));
        self.candidates = candidates;
        self.give_up(&stale);
        for held in reached {
            self.release(now, &held);
        }
    }

    /// Returns true if a packet continues a course of others although its number is one of the stream's last
    /// ones.
    ///
    /// Such packets belong to a scan like the one before. They arrived before it was clear that a new scan
    /// had begun.
    fn repeats(&self, part: Part) -> bool {
        let goes_on = || {
            self.candidates.goes_on(&self.order, self.step_of_course(), part.frame, self.progress.packets())
        };
        !self.candidates.is_empty() && self.is_there(part) && goes_on()
    }

    /// The largest distance in frames from one packet of a course to the next: a window of packets.
    fn step_of_course(&self) -> u64 {
        self.limits.window.div_ceil(self.shape.per_frame()) + 1
    }

    /// Returns true if the open place of this packet is already taken.
    fn is_there(&self, part: Part) -> bool {
        self.there(part).is_some()
    }

    /// The open block and the place in it, if a packet with the number of this one is already there.
    fn there(&self, part: Part) -> Option<(&Block, usize)> {
        let place = self.order.place(part).cast_unsigned();
        let block = (place / self.shape.packets).checked_sub(self.first)?;
        let block = self.open.get(block as usize)?;
        let at = (place % self.shape.packets) as usize;
        block.has(at).then_some((block, at))
    }

    /// How a packet repeats the one in its open place, if there is one.
    pub(super) fn repeated(&self, part: Part, body: &[u8]) -> Option<Behind> {
        let (block, at) = self.there(part)?;
        Some(block.repeated(self.shape.range(at), body))
    }

    /// Returns true if the stream will reach a packet soon: it is within a window behind the near places.
    fn is_ahead(&self, part: Part) -> bool {
        let next = self.next().cast_signed();
        let far = next.saturating_add(self.step()).saturating_add(self.limits.window.cast_signed());
        (next..far).contains(&self.order.place(part))
    }

    /// Puts down a packet that was kept, wherever the stream is now.
    fn release(&mut self, now: Nanos, held: &Held) {
        // It is counted again when it is put down.
        if let Some(behind) = held.counted {
            self.tally.uncount_behind(behind);
        }
        self.put(now, held.inlet, held.part, &held.body);
    }

    /// Called after a look at all ports that began now. The stream goes on elsewhere if nothing arrived at
    /// its place.
    pub(super) fn decide(&mut self, now: Nanos) {
        self.progress.look(now);
        if self.candidates.is_empty() {
            return;
        }
        let ReorderWindow { quiet, patience, .. } = self.limits;
        let has_ended = self.progress.is_silent(quiet, patience);
        // A few packets are no proof, but better than nothing after a long silence.
        let is_given_up = self.progress.is_silent(patience, patience);
        let moved = self.progress.packets();
        let is_stream = |candidate: &Candidate| {
            has_ended && candidate.is_established(moved) || is_given_up && candidate.is_course(moved)
        };
        if let Some(candidate) = self.candidates.take(is_stream) {
            self.go_on(now, candidate);
        }
        while let Some(at) = self.followed_chain(1).filter(|_| has_ended) {
            let candidate = self.candidates.take_at(at);
            self.go_on(now, candidate);
        }
    }

    /// Puts down the packets that follow the stream, as far as that is certain, when no more can arrive.
    pub(super) fn decide_all(&mut self, now: Nanos) {
        let moved = self.progress.packets();
        if let Some(candidate) = self.candidates.take(|candidate| candidate.is_established(moved)) {
            self.go_on(now, candidate);
        }
        while let Some(at) = self.followed_chain(1) {
            let candidate = self.candidates.take_at(at);
            self.go_on(now, candidate);
        }
        let mut candidates = self.candidates.take_all();
        let mut ahead = candidates.reached(u64::MAX, |part| self.is_ahead(part));
        self.give_up(&candidates.all());
        ahead.sort_by_key(|held| self.order.place(held.part));
        for held in ahead {
            self.release(now, &held);
        }
    }

    /// The stream goes on with this course: over a gap, or anew.
    fn go_on(&mut self, now: Nanos, mut candidate: Candidate) {
        // Second copies of earlier packets, and late ones, are near a course that is a little ahead. It does
        // not begin with them.
        let next = self.next().cast_signed();
        // But as many of them as make a stream are one.
        let is_new = |held: &Held| held.counted.is_none();
        let counted = candidate.held.iter().filter(|held| !is_new(held)).count() as u64;
        let is_ahead = candidate.held.iter().any(|held| is_new(held) && self.order.place(held.part) >= next);
        if is_ahead && counted < ESTABLISHED {
            candidate.retain(&self.order, is_new);
        }
        // Start at the beginning of its earliest frame, whichever of its packets arrived first.
        let first = Part { frame: self.first_heard(candidate.first()), part: 0 };
        let before = self.progress.packets();
        self.move_to(now, first);
        let order = &self.order;
        candidate.held.sort_by_key(|held| order.place(held.part));
        for held in candidate.held {
            self.release(now, &held);
        }
        // If several scans waited in the kernel, the next one arrived behind this one.
        self.candidates.stay(before, self.progress.packets());
        self.settle(now);
    }

    /// Moves the stream to this frame. The packets in between are missing, up to as many as the elapsed time
    /// allows.
    ///
    /// They are filled. They are left out if filling would take the slots that packets need, or if the
    /// storage was too slow for them. Numbers further ahead, or behind, were set anew.
    fn move_to(&mut self, now: Nanos, first: Part) {
        let was_crowded = self.crowded.take();
        let ahead = self.order.place(first).saturating_sub(self.next().cast_signed());
        let is_young = self.progress.is_young();
        let ReorderWindow { window, gap, .. } = self.limits;
        // A young stream has no known rate, and its place may be wrong: it gets a few windows and no more.
        let most = if is_young { window * 4 } else { gap.max(self.progress.possible(now)) };
        let most = if self.drops.packets() > 0 { most.max(self.drops.packets() + window) } else { most };
        match u64::try_from(ahead) {
            Ok(count) if count <= most => self.leave_gap(now, first, count, was_crowded.is_some()),
            Ok(count) if !is_young => {
                self.tally.jump(count);
                self.begin_at(now, first.frame);
            }
            _ => self.begin_anew(now, first),
        }
    }

    /// The stream goes on with this packet behind it. The kernel dropped all packets in between.
    pub(super) fn skip_gap(&mut self, now: Nanos, first: Part) {
        let ahead = self.order.place(first).saturating_sub(self.next().cast_signed());
        if let Ok(count) = u64::try_from(ahead) {
            let was_crowded = self.crowded.take().is_some();
            self.leave_gap(now, first, count, was_crowded);
        }
    }

    /// Fills or leaves out the `count` packets missing before this one.
    fn leave_gap(&mut self, now: Nanos, first: Part, count: u64, was_crowded: bool) {
        if was_crowded || !self.may_fill(count) {
            self.drops.explain(count);
            self.skip_to(now, first);
        }
        // Otherwise there is nothing to do: blocks in between are opened now, and filled when they are
        // closed. The gap appears with the first packet behind it.
    }

    /// Returns true if a packet is not near the stream.
    pub(super) fn is_elsewhere(&self, part: Part) -> bool {
        self.standing(part) == Standing::Elsewhere
    }

    /// Counts a new beginning: the numbers fell back, or those of a young stream jumped.
    fn begin_anew(&mut self, now: Nanos, first: Part) {
        self.tally.restarts += 1;
        self.begin_at(now, first.frame);
    }

    /// Returns true if this many consecutive packets may be filled.
    fn may_fill(&self, packets: u64) -> bool {
        let blocks = packets.div_ceil(self.shape.packets);
        packets <= self.limits.gap && blocks <= self.free_slots() as u64 / FILL_SHARE
    }

    /// Leaves out the frames from the stream's current place to this one.
    fn skip_to(&mut self, now: Nanos, part: Part) {
        let here = self.next().next_multiple_of(self.shape.per_frame());
        let Ok(count) = u64::try_from(self.order.place(part) - here.cast_signed()) else { return };
        // The frame gets the current place of the stream, and the gap stands before it. Without a slot for it
        // there is no block that could hold the gap.
        self.order.move_down(count);
        self.tally.left_out += count;
        if count == 0 || !self.reach(now, part) {
            return self.tally.lose_unfilled(count);
        }
        let block = here / self.shape.packets;
        let at = (here % self.shape.packets) as u32;
        match block.checked_sub(self.first).and_then(|block| self.open.get_mut(block as usize)) {
            Some(block) => {
                block.gaps.push(Gap { at, count, filled: false, sender: None });
                self.tally.lose(count);
            }
            // Opening the block of the frame closed this one.
            None => self.tally.lose_unfilled(count),
        }
    }

    /// Decides whether a packet whose place is closed is late or a duplicate. `None`: it is too far behind to
    /// be either.
    ///
    /// The assembly remembers the packets of the last few blocks. A packet before those counts as late.
    fn behind(&self, part: Part) -> Option<Behind> {
        let packets = self.shape.packets;
        let behind = (self.first * packets).cast_signed().saturating_sub(self.order.place(part));
        let near = (self.limits.window * 4).max(packets).cast_signed();
        if !(1..=near).contains(&behind) {
            return None;
        }
        let behind = behind.unsigned_abs();
        // Counted from the end of the last block backwards: 1 is its last packet.
        let block = self.closed.len().checked_sub(behind.div_ceil(packets) as usize);
        let at = (packets - 1 - (behind - 1) % packets) as usize;
        let was_there = block.is_some_and(|block| self.closed[block][at / 64] >> (at % 64) & 1 == 1);
        Some(if was_there { Behind::Duplicate } else { Behind::Late })
    }
}
