//! Frames by thread: received and missing ones.

use super::{Assembly, Block};

/// Received and missing frames of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTally {
    /// The station.
    pub station: u16,
    /// The thread.
    pub thread: u16,
    /// Received frames in the recording.
    pub placed: u64,
    /// Missing frames: filled with frames marked as invalid, or left out.
    pub missing: u64,
}

/// The tallies of a stream's threads, in the order of their first frames.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadTallies {
    list: Vec<ThreadTally>,
    /// Frames left out that no thread's tally has yet: fewer than there are threads.
    left_out: u64,
}

impl ThreadTallies {
    fn of(&mut self, station: u16, thread: u16) -> &mut ThreadTally {
        let at = self.list.iter().position(|tally| (tally.station, tally.thread) == (station, thread));
        let at = at.unwrap_or_else(|| {
            self.list.push(ThreadTally { station, thread, ..ThreadTally::default() });
            self.list.len() - 1
        });
        &mut self.list[at]
    }

    /// Counts frames that were left out. Threads take turns, so each lost the same number.
    fn leave_out(&mut self, frames: u64) {
        let Some(all) = self.left_out.checked_add(frames).filter(|_| !self.list.is_empty()) else { return };
        let count = self.list.len() as u64;
        self.list.iter_mut().for_each(|tally| tally.missing += all / count);
        self.left_out = all % count;
    }
}

impl Assembly {
    /// Frames by thread, of closed blocks. Empty if the format has no threads.
    pub(crate) fn threads(&self) -> &[ThreadTally] {
        &self.threads.list
    }

    /// Number of frames that open blocks have places for.
    pub(crate) fn open_frames(&self) -> u64 {
        self.open.len() as u64 * self.shape.packets / self.shape.per_frame()
    }

    /// Counts the frames of a closed block, up to this place.
    pub(super) fn count_threads(&mut self, block: &Block, end: usize) {
        let format = self.ports[0].format.as_ref();
        let per_frame = self.shape.per_frame() as usize;
        for place in (0..end).step_by(per_frame) {
            let Some((station, thread)) = format.thread_of(&block.data[self.shape.range(place)]) else {
                return;
            };
            let tally = self.threads.of(station, thread);
            if block.has(place) {
                tally.placed += 1;
            } else {
                tally.missing += 1;
            }
        }
        for gap in block.gaps.iter().filter(|gap| !gap.filled) {
            self.threads.leave_out(gap.count / per_frame as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_shared_by_threads_that_take_turns() {
        let mut tallies = ThreadTallies::default();
        tallies.leave_out(5);
        for thread in [3, 7] {
            tallies.of(1, thread).placed += 10;
        }
        tallies.leave_out(3);
        tallies.leave_out(2);
        let missing: Vec<_> = tallies.list.iter().map(|tally| (tally.thread, tally.missing)).collect();
        assert_eq!(missing, [(3, 2), (7, 2)], "five in all, and nobody knows whose the fifth is");
    }
}
