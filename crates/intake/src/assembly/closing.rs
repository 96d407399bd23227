//! When a block goes to the ring, and how its missing packets are filled or left out.

use std::ops::Range;

use nilometer_model::Nanos;
use nilometer_recording::{Gap, Missing, Packed};
use nilometer_ring::Frame;

use super::{Assembly, Block, CLOSED, HEADER, Header, Last};
use nilometer_wire::Near;

impl Assembly {
    /// Sends full blocks to the ring, in their order.
    pub(super) fn close_full(&mut self, now: Nanos) {
        while self.open.front().is_some_and(|block| block.count == self.shape.packets) {
            self.close_first(now, self.next());
        }
    }

    /// Ends a look that began now. The stream goes on elsewhere, if that is certain by now.
    ///
    /// After a while it gives up the missing packets of blocks that others follow, and of frames that are
    /// whole blocks.
    pub fn tick(&mut self, now: Nanos) {
        self.decide(now);
        while let Some(block) = self.open.front() {
            let begin = self.first * self.shape.packets;
            let over = begin + self.shape.packets <= self.next();
            let alone = self.shape.packets == self.shape.per_frame() && begin < self.next();
            if !(over || alone) || now.since(block.touched) <= self.limits.patience {
                return;
            }
            self.close_first(now, self.next());
        }
    }

    /// Sends the open blocks to the ring, since no packet arrives any more. Returns the number of all blocks.
    pub fn end(&mut self, now: Nanos) -> u64 {
        self.unpark_all(now);
        self.decide_all(now);
        if let Some(lost) = self.crowded.take() {
            // No packet arrived behind them. Packets missing in the current frame are counted when its block
            // is closed.
            let here = self.next().next_multiple_of(self.shape.per_frame());
            self.tally.lose_unfilled(lost.saturating_sub(here.cast_signed()).max(0).cast_unsigned());
        }
        while self.first * self.shape.packets < self.next() && !self.open.is_empty() {
            self.close_first(now, self.next());
        }
        self.open.clear();
        self.first
    }

    /// Closes the first block and sends it to the ring: no packet below this place arrives any more. Missing
    /// packets are filled or left out. If the block is no longer full after frames were left out, it stays
    /// open for the frames that follow.
    pub(super) fn close_first(&mut self, now: Nanos, below: u64) {
        let begin = self.first * self.shape.packets;
        let below = below.next_multiple_of(self.shape.per_frame());
        let end = below.saturating_sub(begin).min(self.shape.packets);
        if self.missing == Missing::LeftOut && self.leave_out(end as usize) {
            return;
        }
        if let Some(block) = self.finish_first(end as usize) {
            self.send(now, block, end as usize);
        }
    }

    /// Removes the first block, with its missing packets below `end` filled.
    pub(super) fn finish_first(&mut self, end: usize) -> Option<Block> {
        for range in self.open.front()?.missing(end) {
            self.fill(range);
        }
        self.remember();
        let block = self.open.pop_front()?;
        self.count_threads(&block, end);
        Some(block)
    }

    /// Describes a block as it is stored, up to this place.
    pub(super) fn packed(&self, block: &Block, end: usize) -> Packed {
        let length = end / self.shape.per_frame() as usize * self.shape.frame_size;
        let (packets, bytes) = block.came(&self.shape, end);
        let mut gaps = block.gaps.clone();
        gaps.sort_by_key(|gap| gap.at);
        Packed { length: length as u32, packets, bytes, gaps }
    }

    fn send(&mut self, now: Nanos, block: Block, end: usize) {
        let packed = self.packed(&block, end);
        let frame = Frame::new(self.first, now, now, block.data);
        let frame = Frame { packed: Some(Box::new(packed)), ..frame };
        self.lending.close(self.first, block.place);
        self.full.push(frame);
        self.ring.put(now, &mut self.full, &mut self.spares, false);
        if self.closed.len() == CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(block.present);
        self.first += 1;
        let begin = self.first * self.shape.packets;
        // The last start is that of the open blocks, wherever it was.
        while self.starts.get(1).is_some_and(|start| *start <= begin) {
            self.starts.pop_front();
        }
    }

    /// Fills in the packets of the first block that are missing.
    fn fill(&mut self, range: Range<usize>) {
        self.lose(range.start, range.len() as u64, true);
        let per_frame = self.shape.per_frame() as usize;
        for place in range {
            let frame = place / per_frame;
            let part = place % per_frame;
            // Frames may have been left out between any two.
            let near = self.near(frame).map(|(at, bytes)| (at - self.left_out(at, frame), bytes));
            let near =
                near.as_ref().map(|(at, bytes)| Near { bytes, ahead: frame.cast_signed() as i64 - at });
            let block = self.open.front_mut().expect("the block that is being closed");
            self.ports[0].format.fill(near, part, &mut block.data[self.shape.range(place)]);
        }
    }

    /// Number of frames left out between two of the first block. Negative if `frame` is behind `here`.
    fn left_out(&self, frame: i64, here: usize) -> i64 {
        let per_frame = self.shape.per_frame() as usize;
        let here = here.cast_signed() as i64;
        let between = frame.min(here) + 1..frame.max(here) + 1;
        let gaps = self.open.front().map_or(&[][..], |block| &block.gaps).iter().filter(|gap| !gap.filled);
        let frames = gaps.filter(|gap| between.contains(&i64::from(gap.at / per_frame as u32)));
        let count: u64 = frames.map(|gap| gap.count / per_frame as u64).sum();
        if frame <= here { count.cast_signed() } else { -count.cast_signed() }
    }

    /// Records that `count` packets are missing at this place of the first block.
    fn lose(&mut self, at: usize, count: u64, filled: bool) {
        self.tally.lose(count);
        if self.ports.len() > 1 {
            self.ports.iter_mut().for_each(|port| port.lose(at as u64, count));
        }
        let block = self.open.front_mut().expect("the block that is being closed");
        block.gaps.push(Gap { at: at as u32, count, filled, sender: None });
    }

    /// The nearest frame that arrived in the same part of the stream: its position in the first block
    /// (negative: before it), and its first bytes.
    fn near(&self, frame: usize) -> Option<(i64, Header)> {
        let per_frame = self.shape.per_frame();
        let begin = self.first * self.shape.packets;
        let block = self.open.front()?;
        let place = begin + frame as u64 * per_frame;
        let start = self.starts.iter().rev().find(|start| **start <= place).copied().unwrap_or(0);
        let end = self.starts.iter().find(|start| **start > place).copied().unwrap_or(u64::MAX);
        let came = |frame: &usize| {
            let place = begin + *frame as u64 * per_frame;
            (start..end).contains(&place) && block.has(*frame * per_frame as usize)
        };
        let frames = (self.shape.packets / per_frame) as usize;
        let here = |frame: usize| (frame.cast_signed() as i64, header(block, frame * self.shape.frame_size));
        let before = || (0..=frame).rev().find(came).map(here);
        let earlier = || {
            let Last { number, left_out, bytes } =
                self.last.filter(|last| last.number * per_frame >= start)?;
            Some((number.cast_signed() - left_out - (begin / per_frame).cast_signed(), bytes))
        };
        let after = || (frame + 1..frames).find(came).map(here);
        before().or_else(earlier).or_else(after)
    }

    /// Remembers the beginning of the last frame in the first block that arrived.
    fn remember(&mut self) {
        let per_frame = self.shape.per_frame() as usize;
        let frames = self.shape.packets as usize / per_frame;
        let Some(block) = self.open.front() else { return };
        if let Some(frame) = (0..frames).rev().find(|frame| block.has(frame * per_frame)) {
            let number = self.first * frames as u64 + frame as u64;
            let left_out = self.left_out(frame.cast_signed() as i64, frames);
            self.last = Some(Last { number, left_out, bytes: header(block, frame * self.shape.frame_size) });
            return;
        }
        let left_out = self.left_out(-1, frames);
        if let Some(last) = &mut self.last {
            last.left_out += left_out;
        }
    }

    /// Leaves out the frames of the first block that are missing completely, up to this place. Later frames
    /// move down. Returns true if it left out any, so that the block has room for more frames.
    pub(super) fn leave_out(&mut self, end: usize) -> bool {
        let per_frame = self.shape.per_frame() as usize;
        let came =
            |block: &Block, frame: usize| (0..per_frame).any(|part| block.has(frame * per_frame + part));
        let Some(block) = self.open.front() else { return false };
        let absent: Vec<usize> = (0..end / per_frame).filter(|frame| !came(block, *frame)).collect();
        let Some(&first) = absent.first() else { return false };
        let begin = self.first * self.shape.packets;
        let frames = (self.next().saturating_sub(begin)).div_ceil(per_frame as u64) as usize;
        let (mut to, mut run) = (first, 0);
        for from in first..frames.max(end / per_frame) {
            if absent.binary_search(&from).is_ok() {
                run += 1;
                continue;
            }
            if run > 0 {
                self.lose(to * per_frame, std::mem::take(&mut run) * per_frame as u64, false);
            }
            self.move_frame(from, to);
            to += 1;
        }
        if run > 0 {
            self.lose(to * per_frame, run * per_frame as u64, false);
        }
        self.moved_down(begin, (absent.len() * per_frame) as u64, frames.saturating_sub(to) as u64);
        true
    }

    /// Adjusts all places after `places` places were left out, and `frames` open frames ceased to be open.
    fn moved_down(&mut self, begin: u64, places: u64, frames: u64) {
        self.tally.left_out += places;
        for port in &mut self.ports {
            port.next = port.next.saturating_sub(frames * self.shape.per_frame());
            port.arrivals.move_down(places);
        }
        self.order.move_down(places);
        self.crowded = self.crowded.map(|lost| lost - places.cast_signed());
        for start in self.starts.iter_mut().filter(|start| **start > begin) {
            *start = start.saturating_sub(places).max(begin);
        }
    }

    /// Moves a frame down or up, with the packets of it that arrived. Frames are counted from the first open one.
    pub(super) fn move_frame(&mut self, from: usize, to: usize) {
        let per_frame = self.shape.per_frame() as usize;
        let frames = self.shape.packets as usize / per_frame;
        let size = self.shape.frame_size;
        let source = from % frames * size;
        let target = to % frames * size;
        let open = self.open.make_contiguous();
        if let Ok([of_source, of_target]) = open.get_disjoint_mut([from / frames, to / frames]) {
            of_target.data[target..target + size].copy_from_slice(&of_source.data[source..source + size]);
        } else {
            open[to / frames].data.copy_within(source..source + size, target);
        }
        for part in 0..per_frame {
            let was_there = open[from / frames].has(from % frames * per_frame + part);
            open[from / frames].unset(from % frames * per_frame + part);
            if was_there {
                open[to / frames].set(to % frames * per_frame + part);
            }
        }
    }
}

/// The first bytes of a frame, as many as fit.
fn header(block: &Block, begin: usize) -> Header {
    let mut header = [0; HEADER];
    let bytes = &block.data[begin..];
    let length = bytes.len().min(HEADER);
    header[..length].copy_from_slice(&bytes[..length]);
    header
}
