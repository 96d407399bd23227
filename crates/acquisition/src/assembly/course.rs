//! Where the stream is: whether a packet belongs near the last ones, is too late, goes astray, or begins the stream anew.

use nilometer_model::Nanos;

use super::{Assembly, Part};
use crate::{Gap, Glance};

/// After so many packets in a row that are all too late, it is the stream that began anew a little earlier.
const LATE: u64 = 64;
/// Where no slot was free, the stream goes on when one in so many is: not with one block at a time.
const ROOM: usize = 16;

impl Assembly {
    /// Puts a packet where it belongs, if that is open.
    pub(super) fn insert(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        if !self.order.has_begun() {
            self.begin_at(part.frame);
        }
        let place = self.order.place(part);
        let open = (self.first * self.shape.packets).cast_signed();
        let near = (self.limits.window * 4).max(self.shape.packets).cast_signed();
        let is_beyond = place >= open + (self.open.len() as u64 * self.shape.packets).cast_signed();
        let is_lost = self.crowded.is_some() && is_beyond;
        if is_lost && !self.has_room() {
            self.refuse(place);
        } else if !is_lost && place >= open && place < self.next().cast_signed().saturating_add(near) {
            self.alone();
            self.put(now, inlet, part, body);
        } else if place < open && place >= open - near && self.late < LATE {
            self.too_late(place - open);
        } else if self.order.strays(part) {
            self.go_on(now, inlet, part, body);
        } else {
            self.alone();
            self.order.stray(part);
            self.stray = Some((inlet, part, body.to_vec()));
        }
    }

    /// A packet came for which there is no slot.
    pub(super) fn refuse(&mut self, place: i64) {
        self.tally.refused += 1;
        let before = self.crowded.unwrap_or(self.next().cast_signed());
        // A number that is far from all others says nothing.
        let is_near = place.saturating_sub(before) <= self.limits.gap.cast_signed();
        self.crowded = Some(if is_near { before.max(place + 1) } else { before });
    }

    /// Whether so many slots are free that the stream may go on where none was.
    fn has_room(&self) -> bool {
        let Glance { books, in_use, .. } = self.ring.glance();
        books.slots.saturating_sub(in_use + self.open.len()) >= (books.slots / ROOM).max(1)
    }

    /// What strayed before was a packet that says something wrong of itself.
    pub(super) fn alone(&mut self) {
        if self.stray.take().is_some() {
            self.tally.stray += 1;
            self.order.forget();
        }
    }

    /// The stream begins, or begins anew, with this frame.
    fn begin_at(&mut self, frame: u64) {
        let place = self.next().next_multiple_of(self.shape.per_frame());
        self.order.begin(frame, place);
        self.starts.push_back(place);
        self.late = 0;
    }

    /// Two packets are together far from where the stream was: it goes on there, over a gap that is filled, or anew. What
    /// was lost because the storage is too slow is left out: to fill it would cost as much as the packets did.
    fn go_on(&mut self, now: Nanos, inlet: usize, part: Part, body: &[u8]) {
        let Some((first, before, kept)) = self.stray.take() else { return };
        self.order.forget();
        let begin = before.frame.min(part.frame);
        let was_crowded = self.crowded.take().is_some();
        let ahead = self.order.place(before).saturating_sub(self.next().cast_signed());
        let is_far = !(0..=self.limits.gap.cast_signed()).contains(&ahead);
        if was_crowded && ahead >= 0 {
            self.skip_to(now, Part { frame: begin, part: 0 });
        } else if is_far {
            self.begin_at(begin);
            self.tally.restarts += u64::from(ahead < 0);
            self.tally.jump(ahead.max(0).cast_unsigned());
        }
        self.put(now, first, before, &kept);
        self.put(now, inlet, part, body);
    }

    /// The frames from where the stream is to this one are left out.
    fn skip_to(&mut self, now: Nanos, part: Part) {
        let here = self.next().next_multiple_of(self.shape.per_frame());
        let Ok(count) = u64::try_from(self.order.place(part) - here.cast_signed()) else { return };
        self.order.move_down(count);
        if count == 0 || !self.reach(now, part) {
            return self.tally.jump(count);
        }
        let (block, at) = (here / self.shape.packets, (here % self.shape.packets) as u32);
        match block.checked_sub(self.first).and_then(|block| self.open.get_mut(block as usize)) {
            Some(block) => {
                block.gaps.push(Gap { at, count, filled: false });
                self.tally.lose(count);
            }
            // Reaching it closed it.
            None => self.tally.jump(count),
        }
    }

    /// A packet came for a block that is closed, so many places before the first open one: whether it had come before is
    /// known for a while.
    fn too_late(&mut self, behind: i64) {
        let (packets, behind) = (self.shape.packets, behind.unsigned_abs());
        let block = self.closed.len().checked_sub(behind.div_ceil(packets) as usize);
        let at = (packets - 1 - (behind - 1) % packets) as usize;
        let was_there = block.is_some_and(|block| self.closed[block][at / 64] >> (at % 64) & 1 == 1);
        self.tally.duplicates += u64::from(was_there);
        self.tally.late += u64::from(!was_there);
        self.late += 1;
    }
}
