//! The course of a stream: whether a packet belongs near the last ones, or elsewhere, and when the stream
//! goes on from there.
//!
//! A packet goes to its place if that is near the end of what came, and no other packet loses its place by
//! it. All others are [`Candidates`], and move nothing. The stream goes on from a course of them when nothing
//! of it came for a while where it was, and several follow each other there; when the kernel dropped as many
//! packets as are missing between; or when so many came that it can be nothing else. Then none of them is lost. For example, with a window of 16 packets (up to 16 / 4 = 4
//! places ahead are near), gaps of at most 100 and blocks of 8, packets 0 to 19 came: blocks 0 and 1 are in
//! the ring, block 2 is open, and 20 is the next place.
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

/// Where no slot was free, the stream goes on when one in so many is free again: with one block at a time
/// there would be a gap behind each.
const ROOM: usize = 16;
/// Filling takes one in so many of the free slots at the most: packets need them.
const FILL_SHARE: u64 = 4;
/// A block is known to be followed when this part of a window of packets came behind it: fewer may be
/// anybody's.
const WINDOW_SHARE: u64 = 8;

/// This many packets in courses that lie one behind the other are the stream, if no more are kept.
const CHAIN: u64 = 64;

/// The relation of a packet to the stream, as far as it is known when the packet comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Near the end of what came.
    Here,
    /// It belongs where the stream is by now, but no slot is free: the storage is too slow.
    Lost,
    /// It belongs there, and slots are free again: the stream is recorded from here on.
    Resumes,
    /// Not near: it may be a stray packet, or the stream goes on there.
    Elsewhere,
}

impl Assembly {
    /// Puts a packet where it belongs, if that is open, or keeps it until it is known where the stream is.
    pub(super) fn insert(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        if !self.order.has_begun() {
            self.begin_at(now, part.frame);
        }
        let is_near = self.standing(part) != Standing::Elsewhere;
        if !self.park(inlet, part, body, is_near) {
            self.insert_near(now, inlet, part, body);
        }
    }

    /// Puts down a packet that waits for no other port.
    pub(super) fn insert_near(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        match self.standing(part) {
            // By its number alone it is here. But it goes on with a course that may be the stream, and its
            // place is taken: put here, it would be a duplicate, and the course would have a hole.
            Standing::Here if self.repeats(part) => self.hold(now, inlet, part, body),
            Standing::Here => self.put(now, inlet, part, body),
            Standing::Lost => self.refuse(self.order.place(part)),
            Standing::Resumes => {
                self.resume(now, part);
                self.put(now, inlet, part, body);
            }
            Standing::Elsewhere => self.hold(now, inlet, part, body),
        }
    }

    /// The relation of a packet to the stream.
    fn standing(&self, part: Part) -> Standing {
        let place = self.order.place(part);
        let open = (self.first * self.shape.packets).cast_signed();
        let end = open + (self.open.len() as u64 * self.shape.packets).cast_signed();
        match self.crowded {
            // Without slots the end of what came stands still and the stream does not: what is near is
            // counted from the last packet that found none. Packets of open blocks go on to their places.
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

    /// How many places ahead of all that came a packet is still near: enough for those that overtook others,
    /// and for those of a port that come before the others'.
    fn step(&self) -> i64 {
        let others = if self.ports.len() > 1 { 2 * self.places_of_lead() } else { 0 };
        ((self.limits.window / 4).max(1) + others).cast_signed()
    }

    /// Whether there may be a block for this place without closing one that packets still come to.
    fn is_reachable(&self, place: u64) -> bool {
        let block = place / self.shape.packets - self.first;
        let Some(closed) = (block + 1).checked_sub(self.most_open() as u64) else { return true };
        closed == 0 || self.is_followed(closed as usize)
    }

    /// Whether packets came behind the first so many blocks: more than a few, which anybody may send.
    pub(super) fn is_followed(&self, blocks: usize) -> bool {
        let came: u64 = self.open.iter().skip(blocks).map(|block| block.count).sum();
        came >= (self.limits.window / WINDOW_SHARE).max(1)
    }

    /// Counts a packet for which there is no slot.
    pub(super) fn refuse(&mut self, place: i64) {
        self.tally.refused += 1;
        let before = self.crowded.unwrap_or(self.next().cast_signed());
        // The stream goes on, though nothing of it is stored: otherwise it would be taken to be silent.
        if place >= before {
            self.progress.advance(1, (place + 1 - before).cast_unsigned());
        }
        self.crowded = Some(before.max(place + 1));
    }

    /// Slots of the ring that neither a frame nor an open block has.
    fn free_slots(&self) -> usize {
        let RingSnapshot { books, in_use, .. } = self.ring.glance(Nanos(0));
        books.slots.saturating_sub(in_use + self.open.len())
    }

    /// Whether so many slots are free that the stream may go on where none was.
    fn has_room(&self) -> bool {
        self.free_slots() >= (self.ring.glance(Nanos(0)).books.slots / ROOM).max(1)
    }

    /// There is room again: the stream goes on with this packet, or where the last one was that found none.
    fn resume(&mut self, now: Nanos, part: Part) {
        let Some(lost) = self.crowded.take() else { return };
        // Packets up to `lost` are known to be lost. This one may have overtaken some that are still to come:
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

    /// The course from which the stream goes on at once, now that a packet came to the one at this place. Others wait until
    /// nothing came of the stream for a while.
    fn followed(&self, at: usize) -> Option<usize> {
        let moved = self.progress.packets();
        let candidate = self.candidates.get(at);
        // A stream of a few packets may itself have been what was stray.
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
        // If the recorder is behind, no time passes. A full memory without one packet of the stream between is the stream.
        let chain = || self.candidates.chain(&self.order, moved);
        let is_long = |chain: &CandidateChain| chain.packets >= CHAIN && self.drops.packets() > 0;
        self.candidates
            .oldest_established(moved)
            .or_else(|| chain().filter(is_long).map(|chain| chain.oldest))
    }

    /// The first of several courses that lie one behind the other, with as many packets at least, if the kernel dropped as
    /// many as are missing before the last of them: drops come again and again, so that no course is long.
    fn followed_chain(&self, packets: u64) -> Option<usize> {
        let chain = self.candidates.chain(&self.order, self.progress.packets())?;
        (chain.packets >= packets && self.explains(chain.last, chain.packets)).then_some(chain.oldest)
    }

    /// Whether the kernel dropped as many packets as are missing before this course.
    fn is_explained(&self, candidate: &Candidate) -> bool {
        self.explains(candidate.first(), 0)
    }

    /// Whether the kernel dropped as many packets as are missing before this frame, apart from `kept` ones that came and a
    /// window of others: a few may be lost elsewhere.
    fn explains(&self, frame: u64, kept: u64) -> bool {
        let dropped = self.drops.packets();
        let begin = self.crowded.unwrap_or(self.next().cast_signed());
        let missing = self.order.place(Part { frame, part: 0 }).saturating_sub(begin);
        let most = dropped.saturating_add(kept + self.limits.window);
        dropped > 0 && u64::try_from(missing).is_ok_and(|missing| missing > 0 && missing <= most)
    }

    /// Counts packets that will not be put down: they are none of the stream, or came too late.
    pub(super) fn give_up(&mut self, packets: &[Held]) {
        self.tally.stray += packets.iter().filter(|held| held.counted.is_none()).count() as u64;
    }

    /// Puts down packets that the stream came to since the last look, and gives up those that it left behind.
    pub(super) fn settle(&mut self, now: Nanos) {
        if self.candidates.is_empty() || self.settled == self.progress.packets() {
            return;
        }
        self.settled = self.progress.packets();
        // Taken out while `self` is asked where they belong.
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

    /// Whether a packet goes on with a course of others though its number is one of the stream's last ones:
    /// they are those of a scan like the one before, and came while it was not known yet that one had begun.
    fn repeats(&self, part: Part) -> bool {
        let goes_on = || {
            self.candidates.goes_on(&self.order, self.step_of_course(), part.frame, self.progress.packets())
        };
        !self.candidates.is_empty() && self.is_there(part) && goes_on()
    }

    /// How many frames one packet of a course may be away from the next: a window of packets.
    fn step_of_course(&self) -> u64 {
        self.limits.window.div_ceil(self.shape.per_frame()) + 1
    }

    /// Whether there is a packet already in the open place of this one.
    fn is_there(&self, part: Part) -> bool {
        self.there(part).is_some()
    }

    /// The open block, and the place in it, where there is a packet already with the number of this one.
    fn there(&self, part: Part) -> Option<(&Block, usize)> {
        let place = self.order.place(part).cast_unsigned();
        let block = (place / self.shape.packets).checked_sub(self.first)?;
        let block = self.open.get(block as usize)?;
        let at = (place % self.shape.packets) as usize;
        block.has(at).then_some((block, at))
    }

    /// How a packet repeats the one that is in its open place, if there is one.
    pub(super) fn repeated(&self, part: Part, body: &[u8]) -> Option<Behind> {
        let (block, at) = self.there(part)?;
        Some(block.repeated(self.shape.range(at), body))
    }

    /// Whether the stream will come to a packet soon: within a window behind what is near.
    fn is_ahead(&self, part: Part) -> bool {
        let next = self.next().cast_signed();
        let far = next.saturating_add(self.step()).saturating_add(self.limits.window.cast_signed());
        (next..far).contains(&self.order.place(part))
    }

    /// Puts down a packet that was kept, wherever the stream is by now.
    fn release(&mut self, now: Nanos, held: &Held) {
        // It is counted again where it is put.
        if let Some(behind) = held.counted {
            self.tally.uncount_behind(behind);
        }
        self.put(now, held.inlet, held.part, &held.body);
    }

    /// All ports were looked at, from this time on: the stream goes on elsewhere if nothing came where it
    /// was.
    pub(super) fn decide(&mut self, now: Nanos) {
        self.progress.look(now);
        if self.candidates.is_empty() {
            return;
        }
        let ReorderWindow { quiet, patience, .. } = self.limits;
        let has_ended = self.progress.is_silent(quiet, patience);
        // A few packets are no proof, but better than nothing when the stream has been silent for long.
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

    /// Puts down what follows the stream, as far as that can be known, when nothing comes any more.
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
        // Second copies of what came before, and late ones, are near a course that is a little ahead. It does not begin with them.
        let next = self.next().cast_signed();
        // As many of them as make a stream are one.
        let is_new = |held: &Held| held.counted.is_none();
        let counted = candidate.held.iter().filter(|held| !is_new(held)).count() as u64;
        let is_ahead = candidate.held.iter().any(|held| is_new(held) && self.order.place(held.part) >= next);
        if is_ahead && counted < ESTABLISHED {
            candidate.retain(&self.order, is_new);
        }
        // From the beginning of its earliest frame, whichever of its packets came first.
        let first = Part { frame: self.first_heard(candidate.first()), part: 0 };
        let before = self.progress.packets();
        self.move_to(now, first);
        let order = &self.order;
        candidate.held.sort_by_key(|held| order.place(held.part));
        for held in candidate.held {
            self.release(now, &held);
        }
        // Where several scans waited in the kernel, the next one came behind this one.
        self.candidates.stay(before, self.progress.packets());
        self.settle(now);
    }

    /// Moves the stream to this frame. The packets between are missing, as far as the time allows for so
    /// many: they are filled, or left out where filling would take the slots that packets need, or where the
    /// storage was too slow for them. Numbers further ahead, or behind, were set anew.
    fn move_to(&mut self, now: Nanos, first: Part) {
        let was_crowded = self.crowded.take();
        let ahead = self.order.place(first).saturating_sub(self.next().cast_signed());
        let is_young = self.progress.is_young();
        let ReorderWindow { window, gap, .. } = self.limits;
        // Of a young stream no rate is known, and its place may be wrong: it is worth a few windows and no
        // more.
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

    /// The stream goes on with this packet behind it. The kernel dropped all that is missing between.
    pub(super) fn skip_gap(&mut self, now: Nanos, first: Part) {
        let ahead = self.order.place(first).saturating_sub(self.next().cast_signed());
        if let Ok(count) = u64::try_from(ahead) {
            let was_crowded = self.crowded.take().is_some();
            self.leave_gap(now, first, count, was_crowded);
        }
    }

    /// So many packets are missing before this one: they are filled, or left out.
    fn leave_gap(&mut self, now: Nanos, first: Part, count: u64, was_crowded: bool) {
        if was_crowded || !self.may_fill(count) {
            self.drops.explain(count);
            self.skip_to(now, first);
        }
        // Otherwise nothing is to be done: blocks in between are opened, and filled when they are closed. The gap shows
        // with the first packet behind it.
    }

    /// Whether a packet is not near the stream.
    pub(super) fn is_elsewhere(&self, part: Part) -> bool {
        self.standing(part) == Standing::Elsewhere
    }

    /// Counts a new beginning: the numbers fell back, or those of a young stream jumped.
    fn begin_anew(&mut self, now: Nanos, first: Part) {
        self.tally.restarts += 1;
        self.begin_at(now, first.frame);
    }

    /// Whether so many packets in a row may be filled.
    fn may_fill(&self, packets: u64) -> bool {
        let blocks = packets.div_ceil(self.shape.packets);
        packets <= self.limits.gap && blocks <= self.free_slots() as u64 / FILL_SHARE
    }

    /// The frames from where the stream is to this one are left out.
    fn skip_to(&mut self, now: Nanos, part: Part) {
        let here = self.next().next_multiple_of(self.shape.per_frame());
        let Ok(count) = u64::try_from(self.order.place(part) - here.cast_signed()) else { return };
        // The frame gets the place where the stream is, and the gap stands before it. With no slot for it
        // there is no block that could have the gap.
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
            // Reaching it closed it.
            None => self.tally.lose_unfilled(count),
        }
    }

    /// Whether a packet whose place is closed is late or a duplicate; none if that was so long ago that it is
    /// neither. Which packets came is known of the last few blocks: before those, one counts as late.
    fn behind(&self, part: Part) -> Option<Behind> {
        let packets = self.shape.packets;
        let behind = (self.first * packets).cast_signed().saturating_sub(self.order.place(part));
        let near = (self.limits.window * 4).max(packets).cast_signed();
        if !(1..=near).contains(&behind) {
            return None;
        }
        let behind = behind.unsigned_abs();
        // From the end of the last block backwards: 1 is its last packet.
        let block = self.closed.len().checked_sub(behind.div_ceil(packets) as usize);
        let at = (packets - 1 - (behind - 1) % packets) as usize;
        let was_there = block.is_some_and(|block| self.closed[block][at / 64] >> (at % 64) & 1 == 1);
        Some(if was_there { Behind::Duplicate } else { Behind::Late })
    }
}
