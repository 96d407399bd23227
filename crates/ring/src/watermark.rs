//! The watermark: every frame below it is settled, which means acknowledged or known to be lost. Progress is
//! a watermark and not a file size, because preallocation and queue depth leave holes.
//!
//! Settled frames above it wait in a window, one entry each, until all before them are settled. If a frame
//! stays open until the window is full, the older frames in the window are folded into runs.
//!
//! For example, with a window of 8 frames (65536 outside tests) and frames due every 10 ns, frame 3 is lost
//! and 0 stays open:
//!
//! ```text
//! number               0    1    2    3    4    5    6    7    8
//! 1 to 7 are settled   .    s    s    L    s    s    s    s         watermark 0, 8 entries in the window
//! 8 is settled         .    s    s    L    s    s    s    s    s    9 entries: the older 5 are folded
//!                      |    |---- run -----|    |---- window ---|
//!                      open 1    settled 4, of which 3 stored, due from 10 ns to 40 ns
//! 0 is settled         the run is 5 settled, 4 stored, due from 0 to 40 ns: it is passed, then the window is
//!                      watermark 9; told are 0, 13, 26 and 40 ns, one lost, 50, 60, 70 and 80 ns
//! ```
//!
//! A run keeps the number of its stored and lost frames, but not their identity. Their due times are spread
//! evenly.

use std::collections::VecDeque;

use nilometer_model::Nanos;

/// The watermark, and the settled frames above it. Its memory is bounded, however long the first open frame
/// holds it: a window of frames, and two runs for each open frame that was folded.
#[derive(Debug, Clone, Default)]
pub struct Watermark {
    below: u64,
    /// The window: the states of frames from `below` on, or after the folded ones.
    above: VecDeque<Settled>,
    /// Frames from `below` on that left the window, because one of them has been open for too long. Usually
    /// `None`.
    folded: Option<Box<Folded>>,
}

/// The state of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Settled {
    /// Neither acknowledged nor known to be lost.
    #[default]
    Open,
    /// It is lost.
    Lost,
    /// It is acknowledged, and this was its due time.
    Stored(Nanos),
}

/// Consecutive frames.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// This many open frames.
    Open(u64),
    /// Settled frames.
    Settled {
        /// The number of frames.
        frames: u64,
        /// The number of stored frames; the others are lost.
        stored: u64,
        /// The due times of the first and the last stored frame; those between are assumed to be evenly
        /// spaced.
        due: (Nanos, Nanos),
    },
}

/// Runs of frames in order, each unlike its neighbours.
#[derive(Debug, Clone, Default)]
struct Folded {
    runs: VecDeque<Run>,
    /// The number of frames in all runs.
    frames: u64,
}

/// Frames in the window, each with its due time: 1 MiB of memory.
const WINDOW: usize = if cfg!(test) { 8 } else { 1 << 16 };

impl Watermark {
    /// Returns the watermark: frames with a smaller number are settled.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// Settles a frame. Frames may come in any order, each once. The function passes each frame that the mark
    /// moves past to `passed`: it can be read from now on, or is lost.
    #[inline]
    pub fn settle(&mut self, number: u64, settled: Settled, mut passed: impl FnMut(Settled)) {
        // The usual case: frames settle in order and nothing is kept. While frames are folded, the window is
        // never empty.
        if number == self.below && self.above.is_empty() {
            self.below += 1;
            return passed(settled);
        }
        let at = number.checked_sub(self.below).expect("a frame is settled once");
        // Out of line, so that the usual path stays short.
        if self.folded.is_some() || at > self.far() {
            return self.settle_folded(at, settled, &mut passed);
        }
        self.put(at as usize, settled);
        self.pass(passed);
        if self.above.len() > WINDOW {
            self.fold();
        }
    }

    /// Returns the largest distance from the window's first frame at which all frames in between still fit
    /// into the window.
    #[inline]
    fn far(&self) -> u64 {
        (self.above.len() + WINDOW) as u64
    }

    /// Sets the state of the frame `at` places after the first in the window.
    #[inline]
    fn put(&mut self, at: usize, settled: Settled) {
        if at >= self.above.len() {
            self.above.resize(at + 1, Settled::Open);
        }
        self.above[at] = settled;
    }

    /// Passes settled frames up to the next open frame.
    #[inline]
    fn pass(&mut self, mut passed: impl FnMut(Settled)) {
        while let Some(settled) = self.above.pop_front_if(|settled| *settled != Settled::Open) {
            self.below += 1;
            passed(settled);
        }
    }

    /// Folds all but the newer half of a window. Half of them keeps folding rare; the newer half contains the
    /// frames that are merely late.
    #[cold]
    fn fold(&mut self) {
        let folded = self.folded.get_or_insert_default();
        for settled in self.above.drain(..self.above.len() - WINDOW / 2) {
            folded.append(Run::of(settled));
        }
    }

    /// Does the same as `settle` if a frame has been open for long, or is far after all others: the frames
    /// between are a run.
    #[cold]
    fn settle_folded(&mut self, at: u64, settled: Settled, passed: &mut dyn FnMut(Settled)) {
        let far = self.far();
        let folded = self.folded.get_or_insert_default();
        if let Some(at) = at.checked_sub(folded.frames) {
            let jumped = if at > far { at - self.above.len() as u64 } else { 0 };
            if jumped > 0 {
                self.above.drain(..).for_each(|settled| folded.append(Run::of(settled)));
                folded.append(Run::Open(jumped));
                self.above.push_back(settled);
            } else {
                self.put(at as usize, settled);
            }
        } else {
            folded.settle(at, settled);
            // The first run is open, unless this was its first frame: then one settled run can be passed.
            self.below += folded.pass(passed);
            if folded.frames == 0 {
                // No frame holds the window any more.
                self.folded = None;
                self.pass(passed);
            }
        }
        if self.above.len() > WINDOW {
            self.fold();
        }
    }
}

impl Folded {
    /// Adds a run after all others, and joins it to the last if both are open or both settled.
    fn append(&mut self, run: Run) {
        self.frames += run.frames();
        match self.runs.back_mut().and_then(|last| Some((last.and(run)?, last))) {
            Some((both, last)) => *last = both,
            None => self.runs.push_back(run),
        }
    }

    /// Settles an open frame `at` places after the first. It rebuilds all runs, since the frame may join both
    /// neighbours; there are only a few.
    fn settle(&mut self, at: u64, settled: Settled) {
        let mut behind = at;
        let mut all = std::mem::take(self).runs.into_iter();
        for run in all.by_ref() {
            let (Run::Open(frames) | Run::Settled { frames, .. }) = run;
            if behind < frames {
                assert!(matches!(run, Run::Open(_)), "a frame is settled once");
                // The open run splits in three; `append` joins the middle to its neighbours if the others are
                // empty.
                let pieces = [Run::Open(behind), Run::of(settled), Run::Open(frames - behind - 1)];
                pieces.into_iter().filter(|piece| piece.frames() > 0).for_each(|piece| self.append(piece));
                break;
            }
            behind -= frames;
            self.append(run);
        }
        all.for_each(|run| self.append(run));
    }

    /// Passes settled frames up to the next open frame, and returns their number.
    fn pass(&mut self, passed: &mut dyn FnMut(Settled)) -> u64 {
        let Some(&Run::Settled { frames, stored, due: (first, last) }) = self.runs.front() else { return 0 };
        // 128 bits: nanoseconds of hours times millions of frames exceed 2^64.
        let steps = u128::from(stored.saturating_sub(1)).max(1);
        let time = u128::from(last.since(first).0);
        for step in 0..u128::from(stored) {
            passed(Settled::Stored(first + Nanos((time * step / steps) as u64)));
        }
        (stored..frames).for_each(|_| passed(Settled::Lost));
        self.runs.pop_front();
        self.frames -= frames;
        frames
    }
}

impl Run {
    fn of(settled: Settled) -> Self {
        match settled {
            Settled::Open => Run::Open(1),
            Settled::Lost => Run::Settled { frames: 1, stored: 0, due: (Nanos(0), Nanos(0)) },
            Settled::Stored(due) => Run::Settled { frames: 1, stored: 1, due: (due, due) },
        }
    }

    fn frames(&self) -> u64 {
        match *self {
            Run::Open(frames) | Run::Settled { frames, .. } => frames,
        }
    }

    /// Joins this run and the next; `None` if only one of them is settled.
    fn and(self, behind: Run) -> Option<Run> {
        match (self, behind) {
            (Run::Open(one), Run::Open(other)) => Some(Run::Open(one + other)),
            (
                Run::Settled { frames, stored, due },
                Run::Settled { frames: more, stored: more_stored, due: later },
            ) => {
                // A run without stored frames has no due times.
                let due = match (stored, more_stored) {
                    (0, _) => later,
                    (_, 0) => due,
                    _ => (due.0, later.1),
                };
                Some(Run::Settled { frames: frames + more, stored: stored + more_stored, due })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mark_waits_for_the_first_open_frame() {
        let (mut mark, mut passed) = (Watermark::default(), Vec::new());
        let below: Vec<u64> = [0, 2, 3, 1, 5, 4]
            .into_iter()
            .map(|number| {
                let settled = if number == 3 { Settled::Lost } else { Settled::Stored(Nanos(number)) };
                mark.settle(number, settled, |settled| passed.push(settled));
                mark.below()
            })
            .collect();
        assert_eq!(below, [1, 1, 1, 4, 4, 6]);
        let stored = |number| Settled::Stored(Nanos(number));
        assert_eq!(passed, [stored(0), stored(1), stored(2), Settled::Lost, stored(4), stored(5)]);
    }

    #[test]
    fn a_frame_that_stays_open_costs_no_memory_for_those_behind_it() {
        let (mut mark, mut passed) = (Watermark::default(), 0_u64);
        for number in (1..2_000_000).filter(|number| *number != 700) {
            // Every third is lost.
            let settled = if number % 3 == 0 { Settled::Lost } else { Settled::Stored(Nanos(number)) };
            mark.settle(number, settled, |_| passed += 1);
        }
        let runs = mark.folded.as_ref().expect("one has been open for long").runs.len();
        assert!(mark.above.len() <= WINDOW && runs <= 5, "{runs} runs");
        assert_eq!((mark.below(), passed), (0, 0));
        mark.settle(0, Settled::Stored(Nanos(0)), |_| passed += 1);
        assert_eq!((mark.below(), passed), (700, 700));
        mark.settle(700, Settled::Lost, |_| passed += 1);
        assert_eq!((mark.below(), passed), (2_000_000, 2_000_000));
    }

    #[test]
    fn a_frame_that_is_far_behind_all_others_costs_no_memory_for_those_between() {
        let (mut mark, mut passed) = (Watermark::default(), 0_u64);
        let stored = Settled::Stored(Nanos(1));
        for number in [1, 4_000_000_000, 4_000_000_001, 9_000_000_000_000, 2, 0] {
            mark.settle(number, stored, |_| passed += 1);
            assert!(mark.above.len() <= WINDOW, "{number}");
        }
        assert_eq!((mark.below(), passed), (3, 3));
        (3..100).for_each(|number| mark.settle(number, stored, |_| passed += 1));
        assert_eq!((mark.below(), passed), (100, 100));
    }

    proptest! {
        #[test]
        fn in_any_order_each_frame_is_passed_once_when_all_before_it_are_settled(
            order in Just((0..60_u64).collect::<Vec<_>>()).prop_shuffle(),
            lost in prop::collection::btree_set(0..60_u64, 0..10),
        ) {
            let (mut mark, mut passed) = (Watermark::default(), Vec::new());
            let mut open: std::collections::BTreeSet<u64> = order.iter().copied().collect();
            for number in order {
                let settled = if lost.contains(&number) { Settled::Lost } else { Settled::Stored(Nanos(10 * number)) };
                mark.settle(number, settled, |settled| passed.push(settled));
                open.remove(&number);
                let below = open.first().copied().unwrap_or(60);
                prop_assert_eq!((mark.below(), passed.len() as u64), (below, below));
                prop_assert!(mark.above.len() <= WINDOW);
            }
            let count = passed.iter().filter(|settled| **settled == Settled::Lost).count();
            prop_assert_eq!(count, lost.len());
            if lost.is_empty() {
                let due: Vec<_> = (0..60).map(|number| Settled::Stored(Nanos(10 * number))).collect();
                prop_assert_eq!(passed, due, "as they were due");
            }
        }
    }
}
