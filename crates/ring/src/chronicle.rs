//! The history of a ring: fullness and emptying rate over time, stalls, and the times at which frames became
//! readable. Pure: the caller passes the time.

use std::collections::VecDeque;

use nilometer_model::{Bin, Histogram, Levels, Nanos, Series, Stall};

/// The most stalls that are kept, the longest ones.
const STALLS_MOST: usize = 200;

/// The history of a ring.
#[derive(Debug, Clone)]
pub struct Chronicle {
    /// The longest that frames may wait without an acknowledgement before it is a stall, and how late a frame
    /// may be.
    pub allowance: Nanos,
    /// Bytes of acknowledged frames.
    pub work: Series,
    /// Slots in use, and frames lost.
    pub levels: Levels,
    /// The time from a frame's due time until it and all before it were settled. From then on it can be read.
    pub readable: Histogram,
    /// Frames acknowledged more than the allowance after their due time.
    pub late: u64,
    /// Times longer than the allowance in which frames waited and none was acknowledged. If there are many,
    /// only the longest.
    pub stalls: Vec<Stall>,
    /// The number of stalls, and their total length.
    pub stalled: (u64, Nanos),
    /// The longest time in which frames waited and none was acknowledged, however short. 0 if no frame ever
    /// waited.
    pub longest_stall: Nanos,
    /// Times longer than the allowance in which the thread that takes frames in did not run: their number and
    /// total length. The process was stopped, or had no processor.
    pub halted: (u64, Nanos),
    /// The longest such time.
    pub longest_halt: Nanos,
    /// The fewest bytes acknowledged in any whole second.
    pub slowest: Option<u64>,
    frame_size: u64,
    begun: Option<Nanos>,
    latest: Nanos,
    /// The time since which frames have waited without an acknowledgement; `None` while no frame waits.
    waits_since: Option<Nanos>,
    second: Second,
}

impl Chronicle {
    /// Creates the history of a recording of frames of this size. A frame may be late by the allowance.
    pub fn new(frame_size: u64, allowance: Nanos) -> Self {
        Chronicle {
            frame_size,
            allowance,
            work: Series::new(Nanos(0)),
            levels: Levels::new(Nanos(0)),
            readable: Histogram::default(),
            late: 0,
            stalls: Vec::new(),
            stalled: (0, Nanos(0)),
            longest_stall: Nanos(0),
            halted: (0, Nanos(0)),
            longest_halt: Nanos(0),
            slowest: None,
            begun: None,
            latest: Nanos(0),
            waits_since: None,
            second: Second::default(),
        }
    }

    /// Returns the time at which the first frame came, on the recording's clock. Times in here are relative
    /// to it.
    pub fn begun(&self) -> Option<Nanos> {
        self.begun
    }

    /// Returns the time since the first frame came. Lanes report in the order in which they lock the ring. An
    /// event slightly earlier than another lane's last report therefore counts as simultaneous.
    fn since_begun(&mut self, now: Nanos) -> Nanos {
        let at = now.since(*self.begun.get_or_insert(now));
        self.latest = self.latest.max(at);
        self.latest
    }

    /// Notes that frames came in, and that `in_use` slots are in use now.
    pub(crate) fn came(&mut self, now: Nanos, in_use: usize) {
        let at = self.since_begun(now);
        self.levels.set(at, in_use as u64);
        self.waits_since.get_or_insert(at);
    }

    /// Notes that a frame was lost.
    pub(crate) fn lost(&mut self, now: Nanos, in_use: usize) {
        let at = self.since_begun(now);
        self.levels.lose(at, in_use as u64);
    }

    /// Notes that frames with these due times were acknowledged, and that `in_use` slots are in use now.
    pub(crate) fn acknowledged(&mut self, now: Nanos, due: impl Iterator<Item = Nanos>, in_use: usize) {
        let mut operations = 0;
        for due in due {
            operations += 1;
            self.late += u64::from(now.since(due) > self.allowance);
        }
        let at = self.since_begun(now);
        let what = Bin { operations, bytes: operations * self.frame_size };
        self.work.join(at, what);
        self.levels.set(at, in_use as u64);
        if let Some(stall) = self.waits_since.map(|since| Stall { at: since, length: at.since(since) }) {
            self.stood(stall);
        }
        self.waits_since = (in_use > 0).then_some(at);
        if let Some(least) = self.second.add(at, what.bytes) {
            self.slowest = Some(self.slowest.map_or(least, |slowest| slowest.min(least)));
        }
    }

    /// Notes that the thread that takes frames in did not run for this long.
    pub(crate) fn halted(&mut self, length: Nanos) {
        if length > self.allowance {
            let (count, sum) = self.halted;
            self.halted = (count + 1, sum + length);
            self.longest_halt = self.longest_halt.max(length);
        }
    }

    /// Notes that a frame with this due time can be read now.
    pub(crate) fn readable(&mut self, now: Nanos, due: Nanos) {
        self.readable.add(now.since(due).0);
    }

    /// Returns the number and total length of stalls, and the longest time without an acknowledgement while
    /// frames waited. All include a stall that lasts until now.
    pub(crate) fn stalls_until(&self, now: Nanos) -> ((u64, Nanos), Nanos) {
        let since_begun = self.begun.map_or(Nanos(0), |begun| now.since(begun));
        let lasts = self.waits_since.map_or(Nanos(0), |since| since_begun.since(since));
        let (count, sum) = self.stalled;
        let stalled = if lasts > self.allowance { (count + 1, sum + lasts) } else { (count, sum) };
        (stalled, self.longest_stall.max(lasts))
    }

    fn stood(&mut self, stall: Stall) {
        self.longest_stall = self.longest_stall.max(stall.length);
        if stall.length <= self.allowance {
            return;
        }
        self.stalled = (self.stalled.0 + 1, self.stalled.1 + stall.length);
        if self.stalls.len() < STALLS_MOST {
            self.stalls.push(stall);
        } else if let Some(least) = self.stalls.iter_mut().min_by_key(|stall| stall.length)
            && least.length < stall.length
        {
            *least = stall;
        }
    }
}

/// The parts of a second over which sums are formed.
const PARTS: usize = 20;
const PART: Nanos = Nanos::from_millis(1000 / PARTS as u64);

/// The last second, in parts.
#[derive(Debug, Clone, Default)]
struct Second {
    parts: VecDeque<u64>,
    /// The number of the last part since the beginning.
    last: u64,
}

impl Second {
    /// Counts bytes. Returns the fewest in a second that ended since the last call, if one did.
    fn add(&mut self, at: Nanos, bytes: u64) -> Option<u64> {
        let part = at.0 / PART.0;
        let mut least = None;
        // After a second of nothing, more of nothing makes no difference.
        let new = (part - self.last).min(2 * PARTS as u64);
        for _ in 0..new {
            if self.parts.len() == PARTS {
                let sum = self.parts.iter().sum::<u64>();
                least = Some(least.map_or(sum, |least: u64| least.min(sum)));
                self.parts.pop_front();
            }
            self.parts.push_back(0);
        }
        self.last = part;
        if self.parts.is_empty() {
            self.parts.push_back(0);
        }
        *self.parts.back_mut().expect("it was filled just now") += bytes;
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once as one;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_stall_is_a_time_in_which_frames_wait_and_none_is_acknowledged() {
        let mut chronicle = Chronicle::new(10, Nanos(10 * MS));
        let start = Nanos(77 * MS);
        let at = |ms: u64| start + Nanos(ms * MS);
        chronicle.came(at(0), 1);
        chronicle.acknowledged(at(10), one(at(0)), 0);
        assert_eq!(
            (chronicle.stalls.len(), chronicle.longest_stall),
            (0, Nanos(10 * MS)),
            "within the allowance"
        );
        // No frame waits for a long time.
        chronicle.came(at(500), 1);
        chronicle.came(at(505), 2);
        chronicle.acknowledged(at(511), one(at(500)), 1);
        chronicle.acknowledged(at(542), one(at(505)), 0);
        let stall = |at: u64, length: u64| Stall { at: Nanos(at * MS), length: Nanos(length * MS) };
        assert_eq!(chronicle.stalls, [stall(500, 11), stall(511, 31)]);
        assert_eq!((chronicle.stalled, chronicle.late), ((2, Nanos(42 * MS)), 2));
        assert_eq!(chronicle.longest_stall, Nanos(31 * MS));
        assert_eq!(chronicle.begun(), Some(start));
    }

    #[test]
    fn of_many_stalls_the_longest_are_kept_and_all_are_counted() {
        let mut chronicle = Chronicle::new(10, Nanos(0));
        let mut now = Nanos(1);
        for length in 1..=1000 {
            chronicle.came(now, 1);
            now += Nanos(length);
            chronicle.acknowledged(now, one(now), 0);
        }
        assert_eq!((chronicle.stalls.len(), chronicle.stalled), (STALLS_MOST, (1000, Nanos(500_500))));
        assert!(chronicle.stalls.iter().all(|stall| stall.length.0 > 800));
    }

    #[test]
    fn lanes_may_tell_what_they_did_in_any_order() {
        let mut chronicle = Chronicle::new(10, Nanos(10 * MS));
        chronicle.came(Nanos(50 * MS), 3);
        for ms in [101, 99, 40, 160] {
            chronicle.acknowledged(Nanos(ms * MS), one(Nanos(50 * MS)), 1);
        }
        let lengths: Vec<u64> = chronicle.stalls.iter().map(|stall| stall.length.0 / MS).collect();
        assert_eq!(lengths, [51, 59], "before the first, and from 101 to 160");
        assert_eq!(chronicle.work.bins().iter().map(|bin| bin.operations).sum::<u64>(), 4);
    }

    #[test]
    fn the_slowest_second_is_any_second_to_a_twentieth() {
        let slowest = |pause: std::ops::Range<u64>, end: u64| {
            let mut chronicle = Chronicle::new(10, Nanos(10 * MS));
            for ms in (0..end).filter(|ms| !pause.contains(ms)) {
                chronicle.acknowledged(Nanos(ms * MS), one(Nanos(0)), 1);
            }
            chronicle.slowest
        };
        assert_eq!(slowest(0..0, 1000), None, "no whole second");
        assert_eq!(slowest(0..0, 3000), Some(10_000));
        assert_eq!(slowest(1200..1700, 3000), Some(5_000), "a pause across the full second counts whole");
        assert_eq!(slowest(1200..9000, 12_000), Some(0));
    }
}
