//! Checks that time continues evenly from frame to frame of each thread. Pure: the caller passes the headers in
//! order.

use std::collections::BTreeMap;

use nilometer_wire::Stamp;

/// Checks the time stamps of frames, in order.
#[derive(Debug, Clone, Default)]
pub struct Continuity {
    frames_per_second: Option<u64>,
    /// By station and thread: its last valid frame, and the number of frames without a time up to that frame.
    lanes: BTreeMap<(u16, u16), Option<(Stamp, u64)>>,
    left_out: u64,
    /// Number of frames checked, with or without a header.
    pub frames: u64,
    /// Number of these that are marked as invalid.
    pub invalid: u64,
    /// Number of frames without a header of the stream.
    pub unknown: u64,
    /// Number of times that a thread skipped frames without the caller leaving them out.
    pub jumps: u64,
    /// The first jumps.
    pub first_jumps: Vec<Jump>,
}

/// A thread that did not continue with its next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The frame's number in the recording, from 0.
    pub frame: u64,
    /// Stamp of the previous frame of the same thread.
    pub before: Stamp,
    /// Stamp of this frame.
    pub stamp: Stamp,
}

/// Limit on the jumps kept.
const KEPT: usize = 100;

impl Continuity {
    /// Creates a check for a stream with this number of frames per second in each thread, if known.
    pub fn new(frames_per_second: Option<u64>) -> Self {
        Continuity { frames_per_second, ..Continuity::default() }
    }

    /// Skips `frames` frames that the recording leaves out at this position.
    pub fn left_out(&mut self, frames: u64) {
        self.left_out = self.left_out.saturating_add(frames);
    }

    /// Skips `frames` frames that the recording has but the reader can't check. If their headers can say so
    /// they count as invalid, otherwise as frames without a header.
    pub fn absent(&mut self, frames: u64, have_headers: bool) {
        self.frames += frames;
        self.left_out(frames);
        if have_headers {
            self.invalid += frames;
        } else {
            self.unknown += frames;
        }
    }

    /// Checks the next frame by its number in the recording. Returns true if it has a header that follows on
    /// from the one before. An invalid frame takes its place, and nothing is concluded from its time.
    pub fn frame(&mut self, number: u64, stamp: Option<Stamp>) -> bool {
        self.frames += 1;
        let Some(stamp) = stamp else {
            self.unknown += 1;
            return false;
        };
        if stamp.invalid {
            self.invalid += 1;
            self.left_out(1);
            self.lanes.entry(stamp.lane()).or_default();
            return true;
        }
        let Some(Some((before, left_out))) = self.lanes.insert(stamp.lane(), Some((stamp, self.left_out)))
        else {
            return true;
        };
        let allowed = self.left_out - left_out;
        let skipped = self.skipped(before, stamp);
        // With several threads, it is unknown which of them lacks the frames.
        let alone = self.lanes.len() == 1;
        let goes_on =
            skipped.is_some_and(|skipped| if alone { skipped == allowed } else { skipped <= allowed });
        if !goes_on {
            self.jumps += 1;
            if self.first_jumps.len() < KEPT {
                self.first_jumps.push(Jump { frame: number, before, stamp });
            }
        }
        goes_on
    }

    /// Returns the number of frames between two of a thread. `None` if `stamp` is not later than `before`.
    fn skipped(&self, before: Stamp, stamp: Stamp) -> Option<u64> {
        if let Some(rate) = self.frames_per_second.filter(|rate| before.frame.max(stamp.frame) < *rate) {
            return stamp.count(rate).checked_sub(before.count(rate) + 1);
        }
        // At an unknown rate, any frame may be the last of its second.
        match stamp.second.checked_sub(before.second)? {
            0 => stamp.frame.checked_sub(before.frame + 1),
            1 if stamp.frame == 0 => Some(0),
            _ => None,
        }
    }

    /// Stations and threads found so far.
    pub fn lanes(&self) -> impl Iterator<Item = (u16, u16)> {
        self.lanes.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp(count: u64, rate: u64, thread: u16) -> Stamp {
        Stamp { second: 1000 + count / rate, frame: count % rate, station: 1, thread, invalid: false }
    }

    proptest! {
        #[test]
        fn frames_that_are_gone_are_a_jump_of_each_thread_unless_somebody_said_so(
            rate in 1..20_u64, threads in 1..4_u16, gone in prop::collection::btree_set(1..60_u64, 0..6), said: bool,
        ) {
            let mut continuity = Continuity::new(Some(rate));
            for moment in 0..=60 {
                if gone.contains(&moment) {
                    continuity.left_out(if said { u64::from(threads) } else { 0 });
                    continue;
                }
                for thread in 0..threads {
                    continuity.frame(moment, Some(stamp(moment, rate, thread)));
                }
            }
            let runs = gone.iter().filter(|moment| !gone.contains(&(**moment + 1))).count() as u64;
            prop_assert_eq!(continuity.jumps, if said { 0 } else { runs * u64::from(threads) });
        }
    }

    #[test]
    fn only_what_was_left_out_may_be_skipped() {
        let mut continuity = Continuity::new(Some(10));
        let mut frame = |count, left_out| {
            continuity.left_out(left_out);
            continuity.frame(count, Some(stamp(count, 10, 0)))
        };
        assert!(frame(0, 3) && frame(1, 0) && frame(5, 3) && frame(6, 0));
        assert!(!frame(9, 1), "two are gone, and one was left out");
        assert!(!frame(10, 1), "none is gone");
        assert!(!frame(10, 0) && !frame(4, 0), "time goes back");
        assert!(!continuity.frame(9, None));
        assert_eq!((continuity.jumps, continuity.unknown, continuity.frames), (4, 1, 9));
        let Jump { before, stamp: after, .. } = continuity.first_jumps[0];
        assert_eq!((before.frame, after.frame), (6, 9));
    }

    #[test]
    fn at_an_unknown_rate_a_second_ends_where_it_ends() {
        let mut continuity = Continuity::new(None);
        let at = |second, frame| Some(Stamp { second, frame, station: 0, thread: 0, invalid: false });
        assert!(
            continuity.frame(0, at(5, 8)) && continuity.frame(1, at(5, 9)) && continuity.frame(2, at(6, 0))
        );
        assert!(
            !continuity.frame(3, at(6, 2))
                && !continuity.frame(4, at(7, 1))
                && !continuity.frame(5, at(9, 0))
        );
        assert_eq!((continuity.invalid, continuity.jumps), (0, 3));
    }

    #[test]
    fn the_time_of_an_invalid_frame_says_nothing_but_the_frame_has_its_place() {
        let mut continuity = Continuity::new(Some(10));
        let invalid = Stamp { second: 0, invalid: true, ..stamp(0, 10, 0) };
        assert!(continuity.frame(0, Some(invalid)));
        assert!(continuity.frame(1, Some(stamp(1, 10, 0))) && continuity.frame(2, Some(invalid)));
        assert!(continuity.frame(3, Some(stamp(3, 10, 0))));
        assert!(continuity.frame(4, Some(invalid)) && !continuity.frame(5, Some(stamp(6, 10, 0))));
        assert_eq!((continuity.invalid, continuity.jumps), (3, 1));
    }
}
