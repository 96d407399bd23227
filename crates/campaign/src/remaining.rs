//! Estimates the rest of a campaign's time from the measurements so far.

use std::collections::BTreeMap;

use nilometer_model::{Goal, Nanos};
use nilometer_plan::RecordingRun;

use crate::turns::ScheduledRepeat;

/// A kind of turns that take about the same time: a cell on the same targets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    cell: usize,
    targets: Vec<usize>,
}

/// The turns of a kind.
#[derive(Debug, Clone, Default)]
struct Seen {
    left: u64,
    done: u64,
    took: Nanos,
    planned: Option<Planned>,
}

/// The expected time of a recording, before one like it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    goal: Goal,
    pub(crate) time: Nanos,
}

/// The time to let the machine settle, and to make and remove files.
const BESIDES: f64 = 2.0;
/// Memory is touched at this rate, and kept frames are read back at the next one, in bytes a second.
const PREPARED: f64 = 1e9;
const READ: f64 = 1e9;
/// Reading back takes at most this time.
const READ_BACK: f64 = 30.0;
/// The time that readers have at the end.
const READ_ON: f64 = 2.0;
/// The mean time of three passes at full speed: the first takes its 40 s, and most others end soon after 15 s.
const PASS: f64 = 23.0;
/// The number of trials in the median search for a rate, and for a buffer.
const RATE_TRIALS: f64 = 43.0;
const BUFFER_TRIALS: f64 = 8.0;

impl Planned {
    pub(crate) fn of(cell: &RecordingRun) -> Self {
        let duration = cell.duration.seconds();
        let prepared = cell.buffer.0 as f64 * f64::from(cell.count) / PREPARED;
        let read_on = if cell.readers.none() { 0.0 } else { READ_ON };
        let once = BESIDES + prepared + read_on;
        let came = cell.rate().0 * duration;
        let kept =
            if cell.fill.is_some() { came } else { came.min(cell.keep.0 as f64 * f64::from(cell.count)) };
        let seconds = match cell.goal {
            Goal::Pace => once + duration + (kept / READ).min(READ_BACK),
            Goal::Limit => once + duration.min(PASS),
            Goal::Search => RATE_TRIALS * (once + duration),
            Goal::Buffer => BUFFER_TRIALS * (once + duration),
        };
        Planned { goal: cell.goal, time: Nanos::from_seconds(seconds) }
    }
}

impl Seen {
    fn mean(&self) -> Option<f64> {
        (self.done > 0).then(|| self.took.seconds() / self.done as f64)
    }
}

/// The rest of a campaign.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remaining(BTreeMap<Kind, Seen>);

impl Remaining {
    /// All these turns are left. `planned` returns the expected time of a turn, if there is one.
    pub(crate) fn new(
        turns: &[ScheduledRepeat],
        planned: impl Fn(&ScheduledRepeat) -> Option<Planned>,
    ) -> Self {
        let mut remaining = Remaining::default();
        for turn in turns {
            let seen = remaining.0.entry(kind(turn)).or_default();
            seen.left += 1;
            seen.planned = planned(turn);
        }
        remaining
    }

    /// Records that a turn is over; `took` is `None` if it was left out.
    pub(crate) fn done(&mut self, turn: &ScheduledRepeat, took: Option<Nanos>) {
        let seen = self.0.entry(kind(turn)).or_default();
        seen.left = seen.left.saturating_sub(1);
        if let Some(took) = took {
            seen.done += 1;
            seen.took += took;
        }
    }

    /// The time that all remaining turns will take, the running one included, which has run for the time
    /// `passed`. If it takes longer than expected, the turns after it take no less. `None` before anything was
    /// measured.
    pub(crate) fn time(&self, running: &ScheduledRepeat, passed: Nanos) -> Option<Nanos> {
        let (mut seconds, mut of_running) = (0.0, 0.0);
        for (of, seen) in self.0.iter().filter(|(_, seen)| seen.left > 0) {
            let each = self.each(of, seen)?;
            seconds += each * seen.left as f64;
            if *of == kind(running) {
                of_running = each;
            }
        }
        Some(Nanos::from_seconds(seconds - passed.seconds().min(of_running)))
    }

    /// The expected time of a turn of a kind. It is the mean of this cell on the same targets, else on others.
    /// Otherwise it is the planned time, scaled by the ratio that others for the same goal took; else the mean
    /// of all.
    fn each(&self, of: &Kind, seen: &Seen) -> Option<f64> {
        let elsewhere = || mean(self.0.iter().filter(|(kind, _)| kind.cell == of.cell).map(|(_, seen)| seen));
        let planned = || seen.planned.map(|planned| planned.time.seconds() * self.times(planned.goal));
        let others = || mean(self.0.values().filter(|seen| seen.planned.is_none()));
        seen.mean().or_else(elsewhere).or_else(planned).or_else(others)
    }

    /// The ratio of the actual to the planned time of the recordings for a goal so far.
    fn times(&self, goal: Goal) -> f64 {
        let (mut planned, mut took) = (0.0, 0.0);
        for seen in self.0.values() {
            if let Some(plan) = seen.planned.filter(|plan| plan.goal == goal) {
                planned += plan.time.seconds() * seen.done as f64;
                took += seen.took.seconds();
            }
        }
        if planned > 0.0 { took / planned } else { 1.0 }
    }
}

/// The mean time of all turns of these kinds.
fn mean<'a>(kinds: impl Iterator<Item = &'a Seen>) -> Option<f64> {
    let (done, took) =
        kinds.fold((0, 0.0), |(done, took), seen| (done + seen.done, took + seen.took.seconds()));
    (done > 0).then(|| took / done as f64)
}

fn kind(turn: &ScheduledRepeat) -> Kind {
    Kind { cell: turn.cell, targets: turn.targets.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(cell: usize, target: usize) -> ScheduledRepeat {
        ScheduledRepeat { targets: vec![target], cell, repeat: 0 }
    }

    const SECOND: Nanos = Nanos::from_millis(1000);

    const fn seconds(count: u64) -> Nanos {
        Nanos(count * SECOND.0)
    }

    #[test]
    fn what_is_known_best_counts() {
        let turns = [turn(0, 0), turn(0, 0), turn(0, 1), turn(1, 0), turn(2, 0)];
        let planned = Planned { goal: Goal::Pace, time: seconds(40) };
        let mut remaining = Remaining::new(&turns, |turn| (turn.cell == 2).then_some(planned));
        let left = |remaining: &Remaining| remaining.time(&turn(9, 9), Nanos(0));
        assert_eq!(left(&remaining), None, "nothing is known of two cells");
        remaining.done(&turns[0], Some(seconds(2)));
        // The same cell on both targets, then a cell that has only the mean, and the recording.
        assert_eq!(left(&remaining), Some(seconds(2 + 2 + 2 + 40)));
        remaining.done(&turns[3], Some(seconds(8)));
        assert_eq!(left(&remaining), Some(seconds(2 + 2 + 40)));
        remaining.done(&turns[1], None);
        remaining.done(&turns[2], Some(seconds(1)));
        remaining.done(&turns[4], Some(seconds(1)));
        assert_eq!(left(&remaining), Some(seconds(0)));
    }

    #[test]
    fn what_runs_longer_than_expected_takes_nothing_from_what_comes_behind() {
        let turns = [turn(0, 0), turn(1, 0)];
        let planned = Planned { goal: Goal::Pace, time: seconds(40) };
        let remaining = Remaining::new(&turns, |_| Some(planned));
        let left = |passed| remaining.time(&turns[0], seconds(passed));
        assert_eq!([left(0), left(30), left(500)], [80, 50, 40].map(|count| Some(seconds(count))));
    }

    #[test]
    fn a_recording_is_planned_with_all_it_takes_and_corrected_by_what_others_took() {
        let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                      frame_rate = \"100 Hz\"\n";
        let cell = |goal| RecordingRun {
            goal,
            duration: seconds(20),
            buffer: nilometer_model::Bytes(1_000_000_000),
            keep: nilometer_model::Bytes(1_000_000_000),
            ..RecordingRun::new(nilometer_model::Instrument::parse(camera, "camera").expect("valid"))
        };
        let [pace, limit, search] =
            [Goal::Pace, Goal::Limit, Goal::Search].map(|goal| Planned::of(&cell(goal)));
        // Settling, memory, frames, and 1 GB to read back; a pass at full speed may end before its time is up.
        assert_eq!([pace, limit].map(|planned| planned.time), [24, 23].map(seconds));
        assert_eq!(search.time, seconds(43 * 23), "a median search, trial by trial");
        let turns = [turn(0, 0), turn(1, 0), turn(2, 0)];
        let plan = |turn: &ScheduledRepeat| Some(if turn.cell == 2 { limit } else { pace });
        let mut remaining = Remaining::new(&turns, plan);
        remaining.done(&turns[0], Some(seconds(48)));
        assert_eq!(
            remaining.time(&turn(9, 9), Nanos(0)),
            Some(seconds(48 + 23)),
            "twice as long as planned, at this goal"
        );
    }
}
