//! Whether time goes on evenly from frame to frame of each thread: pure, it is told what headers say, in order.

use std::collections::BTreeMap;

use nilometer_wire::Stamp;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Continuity {
    frames_per_second: Option<u64>,
    /// By station and thread: its last frame, and how many frames had been left out until then.
    lanes: BTreeMap<(u16, u16), (Stamp, u64)>,
    left_out: u64,
    /// Frames that were looked at, with a header or without.
    pub frames: u64,
    /// Of these, frames that are marked as invalid.
    pub invalid: u64,
    /// Frames without a header of the stream.
    pub unknown: u64,
    /// Times that a thread did not go on with its next frame, though nobody said that frames were left out there.
    pub jumps: u64,
    /// The first of these.
    pub first_jumps: Vec<Jump>,
}

/// A thread that did not go on with its next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The frame's number in the recording, from 0.
    pub frame: u64,
    /// The frame of the same thread before.
    pub before: Stamp,
    /// What it says of itself.
    pub stamp: Stamp,
}

/// As many jumps are kept.
const KEPT: usize = 100;

impl Continuity {
    /// Of a stream of so many frames a second in each thread, as far as that is known.
    pub fn new(frames_per_second: Option<u64>) -> Self {
        Continuity { frames_per_second, ..Continuity::default() }
    }

    /// So many frames are not in the recording, between the last one and the next.
    pub fn left_out(&mut self, frames: u64) {
        self.left_out = self.left_out.saturating_add(frames);
    }

    /// So many frames are in the recording and can't be looked at: they are marked as invalid, if that is said in their
    /// headers, and have none else.
    pub fn absent(&mut self, frames: u64, have_headers: bool) {
        self.frames += frames;
        self.left_out(frames);
        if have_headers {
            self.invalid += frames;
        } else {
            self.unknown += frames;
        }
    }

    /// The next frame of the recording, by its number there. Whether its header is one and goes on where it should.
    pub fn frame(&mut self, number: u64, stamp: Option<Stamp>) -> bool {
        self.frames += 1;
        let Some(stamp) = stamp else {
            self.unknown += 1;
            return false;
        };
        self.invalid += u64::from(stamp.invalid);
        let Some((before, left_out)) = self.lanes.insert(stamp.lane(), (stamp, self.left_out)) else {
            return true;
        };
        let allowed = self.left_out - left_out;
        let skipped = self.skipped(before, stamp);
        // Of several threads, nobody says which of them frames were left out of.
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

    /// How many frames lie between two of a thread; none if the later one is not later.
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

    /// Stations and threads that were seen.
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
        let at = |second, frame| Some(Stamp { second, frame, station: 0, thread: 0, invalid: true });
        assert!(
            continuity.frame(0, at(5, 8)) && continuity.frame(1, at(5, 9)) && continuity.frame(2, at(6, 0))
        );
        assert!(
            !continuity.frame(3, at(6, 2))
                && !continuity.frame(4, at(7, 1))
                && !continuity.frame(5, at(9, 0))
        );
        assert_eq!((continuity.invalid, continuity.jumps), (6, 3));
    }
}
