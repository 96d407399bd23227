//! Where the stream is: whether a packet belongs near the last ones, or elsewhere, and when it goes on from there.
//!
//! A packet goes to its place if that is near the end of what came, and no other packet loses its place by it. All others are
//! [`Candidates`], and move nothing. The stream goes on from a course of them when nothing of it came for a while where it was,
//! and several follow each other there; or when so many came that it can be nothing else. Then none of them is lost.

use nilometer_model::Nanos;

use super::{
    Assembly, Part, ReorderWindow,
    candidates::{Behind, Candidate, Held},
    progress::StreamProgress,
};
use crate::{Gap, RingSnapshot};

/// Where no slot was free, the stream goes on when one in so many is: not with one block at a time.
const ROOM: usize = 16;
/// Filling takes one in so many of the free slots at the most: packets need them.
const FILL_SHARE: u64 = 4;
/// Packets that may wait for a block are in it, or in so small a part of a window behind it.
const WINDOW_SHARE: u64 = 8;

/// Where a packet belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Near the end of what came.
    Here,
    /// Where the stream is by now, and the storage too slow for it.
    Lost,
    /// There, and there is room again.
    Resumes,
    Elsewhere,
}

impl Assembly {
    /// Puts a packet where it belongs, if that is open, or keeps it until it is known where the stream is.
    pub(super) fn insert(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        if !self.order.has_begun() {
            self.begin_at(now, part.frame);
        }
        match self.standing(part) {
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

    fn standing(&self, part: Part) -> Standing {
        let place = self.order.place(part);
        let open = (self.first * self.shape.packets).cast_signed();
        let end = open + (self.open.len() as u64 * self.shape.packets).cast_signed();
        match self.crowded {
            Some(lost) if place >= end => match place < lost.saturating_add(self.step()) {
                false => Standing::Elsewhere,
                true if self.has_room() => Standing::Resumes,
                true => Standing::Lost,
            },
            _ => {
                let most = self.next().cast_signed().saturating_add(self.step());
                let is_here = place >= open && place < most && self.is_reachable(place.cast_unsigned());
                if is_here { Standing::Here } else { Standing::Elsewhere }
            }
        }
    }

    /// How far ahead of all that came a packet may be at once: far enough for those that overtook others, and for those of a
    /// port that come before the others'.
    fn step(&self) -> i64 {
        let others = if self.ports.len() > 1 { self.shape.per_frame() } else { 0 };
        ((self.limits.window / 4).max(1) + others).cast_signed()
    }

    /// Whether there may be a block for this place without closing one that packets still come to.
    fn is_reachable(&self, place: u64) -> bool {
        let block = place / self.shape.packets - self.first;
        let Some(closed) = (block + 1).checked_sub(self.most_open() as u64) else { return true };
        closed == 0 || self.is_followed(closed as usize)
    }

    /// Whether packets came behind the first so many blocks: more than a few that anybody may send.
    pub(super) fn is_followed(&self, blocks: usize) -> bool {
        let came: u64 = self.open.iter().skip(blocks).map(|block| block.count).sum();
        came >= (self.limits.window / WINDOW_SHARE).max(1)
    }

    /// A packet came for which there is no slot.
    pub(super) fn refuse(&mut self, place: i64) {
        self.tally.refused += 1;
        let before = self.crowded.unwrap_or(self.next().cast_signed());
        if place >= before {
            self.progress.advance(1, (place + 1 - before).cast_unsigned());
        }
        self.crowded = Some(before.max(place + 1));
    }

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
        let ahead = self.order.place(part).saturating_sub(lost).max(0).cast_unsigned();
        let frame = part.frame.wrapping_sub(ahead.div_ceil(self.shape.per_frame()));
        self.skip_to(now, Part { frame, part: 0 });
    }

    /// The stream begins, or begins anew, with this frame.
    fn begin_at(&mut self, now: Nanos, frame: u64) {
        let place = self.next().next_multiple_of(self.shape.per_frame());
        self.order.begin(frame, place);
        self.starts.push_back(place);
        self.progress = StreamProgress::begin(now);
    }

    /// Keeps a packet that belongs elsewhere.
    fn hold(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        let counted = self.behind(part).or_else(|| self.is_there(part).then_some(Behind::Duplicate));
        match counted {
            Some(Behind::Late) => self.tally.late += 1,
            Some(Behind::Duplicate) => self.tally.duplicates += 1,
            None => {}
        }
        let held = Held { inlet, part, body: body.to_vec(), counted };
        let (at, given_up) =
            self.candidates.keep(&self.order, self.step_of_course(), held, self.progress.packets());
        self.give_up(&given_up);
        let candidate = self.candidates.get(at);
        if candidate.is_established(self.progress.packets())
            && (candidate.is_full() || self.progress.is_young())
        {
            let candidate = self.candidates.take_at(at);
            self.go_on(now, candidate);
        }
    }

    /// These are none of the stream, or came too late.
    pub(super) fn give_up(&mut self, packets: &[Held]) {
        self.tally.stray += packets.iter().filter(|held| held.counted.is_none()).count() as u64;
    }

    /// The stream went on: packets that it came to are put down, and those that it left behind given up.
    pub(super) fn settle(&mut self, now: Nanos) {
        if self.candidates.is_empty() || self.settled == self.progress.packets() {
            return;
        }
        self.settled = self.progress.packets();
        let mut candidates = std::mem::take(&mut self.candidates);
        let is_here = |part| self.standing(part) == Standing::Here && !self.is_there(part);
        let reached = candidates.reached(self.progress.packets(), is_here);
        let stale = candidates.stale(self.progress.packets(), |part| self.is_ahead(part));
        self.candidates = candidates;
        self.give_up(&stale);
        for held in reached {
            self.release(now, &held);
        }
    }

    /// Whether a packet goes on with a course of others though its number is one of the stream's last ones: they are those of
    /// a scan like the one before, and came while it was not known yet that one had begun.
    fn repeats(&self, part: Part) -> bool {
        let goes_on = || {
            self.candidates.goes_on(&self.order, self.step_of_course(), part.frame, self.progress.packets())
        };
        !self.candidates.is_empty() && self.is_there(part) && goes_on()
    }

    /// Frames from one packet of a course to the next, at the most.
    fn step_of_course(&self) -> u64 {
        self.limits.window.div_ceil(self.shape.per_frame()) + 1
    }

    /// Whether there is a packet already in the open place of this one.
    fn is_there(&self, part: Part) -> bool {
        let place = self.order.place(part).cast_unsigned();
        let block = (place / self.shape.packets).checked_sub(self.first);
        let block = block.and_then(|block| self.open.get(block as usize));
        block.is_some_and(|block| block.has((place % self.shape.packets) as usize))
    }

    /// Whether the stream will soon come to a packet.
    fn is_ahead(&self, part: Part) -> bool {
        let next = self.next().cast_signed();
        let far = next.saturating_add(self.step()).saturating_add(self.limits.window.cast_signed());
        (next..far).contains(&self.order.place(part))
    }

    /// Puts down a packet that was kept, wherever the stream is by now.
    fn release(&mut self, now: Nanos, held: &Held) {
        match held.counted {
            Some(Behind::Late) => self.tally.late -= 1,
            Some(Behind::Duplicate) => self.tally.duplicates -= 1,
            None => {}
        }
        self.put(now, held.inlet, held.part, &held.body);
    }

    /// A look is over that began now: the stream goes on elsewhere if nothing came where it was.
    pub(super) fn decide(&mut self, now: Nanos) {
        self.progress.look(now);
        if self.candidates.is_empty() {
            return;
        }
        let ReorderWindow { quiet, patience, .. } = self.limits;
        let has_ended = self.progress.is_silent(quiet, patience);
        let is_given_up = self.progress.is_silent(patience, patience);
        let moved = self.progress.packets();
        let is_stream = |candidate: &Candidate| {
            has_ended && candidate.is_established(moved) || is_given_up && candidate.is_course(moved)
        };
        if let Some(candidate) = self.candidates.take(is_stream) {
            self.go_on(now, candidate);
        }
    }

    /// Nothing comes any more: what follows the stream, as far as that can be known, is put down.
    pub(super) fn decide_all(&mut self, now: Nanos) {
        let moved = self.progress.packets();
        if let Some(candidate) = self.candidates.take(|candidate| candidate.is_established(moved)) {
            self.go_on(now, candidate);
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut ahead = candidates.reached(u64::MAX, |part| self.is_ahead(part));
        self.give_up(&candidates.all());
        ahead.sort_by_key(|held| self.order.place(held.part));
        for held in ahead {
            self.release(now, &held);
        }
    }

    /// The stream goes on with this course: over a gap, or anew.
    fn go_on(&mut self, now: Nanos, mut candidate: Candidate) {
        let first = Part { frame: candidate.first(&self.order), part: 0 };
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

    /// What lies between the end of what came and this frame is missing, as far as the time allows for so many packets: it is
    /// filled, or left out where that would take the slots that packets need, or where the storage was too slow for them. What
    /// is further ahead, or behind, are numbers that were set anew.
    fn move_to(&mut self, now: Nanos, first: Part) {
        let was_crowded = self.crowded.take();
        let ahead = self.order.place(first).saturating_sub(self.next().cast_signed());
        let is_young = self.progress.is_young();
        let ReorderWindow { window, gap, .. } = self.limits;
        let most = if is_young { window * 4 } else { gap.max(self.progress.possible(now)) };
        match u64::try_from(ahead) {
            Ok(count) if count <= most => {
                if was_crowded.is_some() || !self.may_fill(count) {
                    self.skip_to(now, first);
                }
            }
            Ok(count) if !is_young => {
                self.tally.jump(count);
                self.begin_at(now, first.frame);
            }
            _ => self.begin_anew(now, first),
        }
    }

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
        self.order.move_down(count);
        if count == 0 || !self.reach(now, part) {
            return self.tally.lose_unfilled(count);
        }
        let (block, at) = (here / self.shape.packets, (here % self.shape.packets) as u32);
        match block.checked_sub(self.first).and_then(|block| self.open.get_mut(block as usize)) {
            Some(block) => {
                block.gaps.push(Gap { at, count, filled: false });
                self.tally.lose(count);
            }
            // Reaching it closed it.
            None => self.tally.lose_unfilled(count),
        }
    }

    /// What a packet is whose place was closed a while ago: whether it had come before is known as long as its block is.
    fn behind(&self, part: Part) -> Option<Behind> {
        let packets = self.shape.packets;
        let behind = (self.first * packets).cast_signed().saturating_sub(self.order.place(part));
        let near = (self.limits.window * 4).max(packets).cast_signed();
        if !(1..=near).contains(&behind) {
            return None;
        }
        let behind = behind.unsigned_abs();
        let block = self.closed.len().checked_sub(behind.div_ceil(packets) as usize);
        let at = (packets - 1 - (behind - 1) % packets) as usize;
        let was_there = block.is_some_and(|block| self.closed[block][at / 64] >> (at % 64) & 1 == 1);
        Some(if was_there { Behind::Duplicate } else { Behind::Late })
    }
}
