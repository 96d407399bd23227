//! Stacks of frames for HDF5 files with several frames per chunk. Frames may arrive in any order, and each is
//! copied to its position in its stack. A stack goes into the ring when no more of its frames can arrive.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use nilometer_ring::{Frame, StackedFrame};
use nilometer_storage::Buffer;

/// Stacks in progress.
#[derive(Debug)]
pub(super) struct FrameStacks {
    /// Frames per stack.
    frames: u64,
    frame_size: usize,
    /// Slots without a stack.
    pub(super) free: Vec<Buffer>,
    open: BTreeMap<u64, OpenStack>,
    /// Blocks that threads are reading, by first frame.
    reading: BTreeSet<u64>,
}

/// A stack that may receive more frames. Missing frames are 0.
#[derive(Debug)]
struct OpenStack {
    data: Buffer,
    there: Vec<StackedFrame>,
}

impl FrameStacks {
    /// Creates stacks of `frames` frames of `frame_size` bytes each.
    pub(super) fn new(frames: u64, frame_size: usize) -> Self {
        FrameStacks { frames, frame_size, free: Vec::new(), open: BTreeMap::new(), reading: BTreeSet::new() }
    }

    /// Upper bound on the stacks that `frames` consecutive frames belong to.
    pub(super) fn most_of(frames: u64, of_stack: u64) -> u64 {
        frames.saturating_add(of_stack - 1).div_ceil(of_stack)
    }

    /// Starts reading these frames. Returns false if slots for their stacks are missing.
    pub(super) fn begin(&mut self, frames: Range<u64>) -> bool {
        let stacks = frames.start / self.frames..frames.end.div_ceil(self.frames);
        let new: Vec<u64> = stacks.filter(|number| !self.open.contains_key(number)).collect();
        if new.len() > self.free.len() {
            return false;
        }
        let size = self.frames as usize * self.frame_size;
        for number in new {
            let Some(mut data) = self.free.pop() else { break };
            data[..size].fill(0);
            self.open.insert(number, OpenStack { data, there: Vec::new() });
        }
        self.reading.insert(frames.start);
        true
    }

    /// Ends the block that begins with this frame. No more frames of it arrive.
    pub(super) fn end(&mut self, first: u64) {
        self.reading.remove(&first);
    }

    /// Copies a frame that was read into its stack.
    pub(super) fn add(&mut self, frame: &Frame) {
        let Some(stack) = self.open.get_mut(&(frame.number / self.frames)) else { return };
        let begin = (frame.number % self.frames) as usize * self.frame_size;
        stack.data[begin..begin + self.frame_size].copy_from_slice(&frame.data[..self.frame_size]);
        stack.there.push(StackedFrame { number: frame.number, due: frame.due, missing: frame.missing() });
    }

    /// Takes out the stacks that can't receive more frames, given that `next` is the next frame to be read in
    /// order.
    pub(super) fn complete(&mut self, next: u64) -> Vec<Frame> {
        let next = self.reading.first().map_or(next, |first| next.min(*first));
        let later = self.open.split_off(&(next / self.frames));
        let complete = std::mem::replace(&mut self.open, later);
        let mut full = Vec::new();
        for (number, OpenStack { data, mut there }) in complete {
            there.sort_unstable_by_key(|frame| frame.number);
            let Some(due) = there.iter().map(|frame| frame.due).min() else {
                self.free.push(data);
                continue;
            };
            full.push(Frame { stack: Some(there.into()), ..Frame::new(number, due, due, data) });
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;

    use super::*;

    fn frame(number: u64) -> Frame {
        let mut data = Buffer::alone(4);
        data.fill(number as u8);
        Frame::new(number, Nanos(number), Nanos(number), data)
    }

    fn stacks(slots: usize) -> FrameStacks {
        let mut stacks = FrameStacks::new(3, 2);
        stacks.free = (0..slots).map(|_| Buffer::alone(8)).collect();
        for slot in &mut stacks.free {
            slot.fill(0xee);
        }
        stacks
    }

    #[test]
    fn frames_have_their_places_and_those_that_do_not_come_are_0() {
        let mut stacks = stacks(2);
        for number in [0, 1, 2, 4] {
            assert!(stacks.begin(number..number + 1));
        }
        assert!(!stacks.begin(6..7), "all slots are taken");
        for number in [4, 2] {
            stacks.add(&frame(number));
            stacks.end(number);
        }
        assert!(stacks.complete(u64::MAX).is_empty(), "frames 0 and 1 are being read");
        stacks.add(&frame(0));
        stacks.end(0);
        // Frame 1 is damaged.
        stacks.end(1);
        let full = stacks.complete(5);
        let [whole] = &full[..] else { panic!("frame 5 may come: {full:?}") };
        let there: Vec<u64> = whole.stack.iter().flatten().map(|frame| frame.number).collect();
        assert_eq!((whole.number, &whole.data[..6], &there[..]), (0, &[0, 0, 0, 0, 2, 2][..], &[0, 2][..]));
        let full = stacks.complete(6);
        assert_eq!((full[0].number, &full[0].data[..6]), (1, &[0, 0, 4, 4, 0, 0][..]));
    }

    #[test]
    fn blocks_are_in_as_many_stacks_as_they_have_something_of() {
        assert_eq!(
            [(1, 5), (5, 5), (6, 5), (7, 5), (9, 1)].map(|(frames, of)| FrameStacks::most_of(frames, of)),
            [1, 2, 2, 3, 9]
        );
        let mut stacks = stacks(2);
        assert!(stacks.begin(2..4));
        (2..4).for_each(|number| stacks.add(&frame(number)));
        stacks.end(2);
        assert_eq!(stacks.complete(4).len(), 1);
        assert_eq!(stacks.complete(6).len(), 1);
    }

    #[test]
    fn a_stack_of_which_nothing_is_right_gives_its_slot_back() {
        let mut stacks = stacks(1);
        assert!(stacks.begin(0..1) && stacks.free.is_empty());
        stacks.end(0);
        assert!(stacks.complete(3).is_empty() && stacks.free.len() == 1);
    }
}
