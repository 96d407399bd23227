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

/// Turns whose times compare: they take about the same ratio of their planned times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnClass {
    /// A workload on a target.
    Workload,
    /// A workload on the target that keeps nothing.
    Ceiling,
    /// Recordings for a goal.
    Recording(Goal),
}

/// The expected time of a turn, before one like it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    class: TurnClass,
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
    /// The time of a workload that takes this time by the plan.
    pub(crate) fn workload(time: Nanos, is_ceiling: bool) -> Self {
        Planned { class: if is_ceiling { TurnClass::Ceiling } else { TurnClass::Workload }, time }
    }

    /// The time of a recording with all that it takes.
    pub(crate) fn recording(cell: &RecordingRun) -> Self {
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
        Planned { class: TurnClass::Recording(cell.goal), time: Nanos::from_seconds(seconds) }
    }
}

impl Seen {
    fn class(&self) -> Option<TurnClass> {
        self.planned.map(|planned| planned.class)
    }

    /// True if the campaign measures a spoilt turn of this kind again: a search goes on instead.
    fn may_repeat(&self) -> bool {
        !matches!(self.class(), Some(TurnClass::Recording(Goal::Search | Goal::Buffer)))
    }

    fn mean(&self) -> Option<f64> {
        (self.done > 0).then(|| self.took.seconds() / self.done as f64)
    }
}

/// The rest of a campaign.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remaining {
    kinds: BTreeMap<Kind, Seen>,
    /// The time that repetitions of spoilt turns took.
    again: Nanos,
}

impl Remaining {
    /// All these turns are left. `planned` returns the expected time of a turn, if there is one.
    pub(crate) fn new(
        turns: &[ScheduledRepeat],
        planned: impl Fn(&ScheduledRepeat) -> Option<Planned>,
    ) -> Self {
        let mut remaining = Remaining::default();
        for turn in turns {
            remaining.add(turn);
            remaining.seen(turn).planned = planned(turn);
        }
        remaining
    }

    /// Adds a turn that is left.
    pub(crate) fn add(&mut self, turn: &ScheduledRepeat) {
        self.seen(turn).left += 1;
    }

    fn seen(&mut self, turn: &ScheduledRepeat) -> &mut Seen {
        self.kinds.entry(kind(turn)).or_default()
    }

    /// Records that a turn is over; `took` is `None` if it was left out.
    pub(crate) fn done(&mut self, turn: &ScheduledRepeat, took: Option<Nanos>) {
        let seen = self.seen(turn);
        seen.left = seen.left.saturating_sub(1);
        if let Some(took) = took {
            seen.done += 1;
            seen.took += took;
        }
    }

    /// Records that a repetition of a spoilt turn took this time.
    pub(crate) fn repeated(&mut self, took: Nanos) {
        self.again += took;
    }

    /// The time that all remaining turns will take, the running one included, which has run for the time
    /// `passed`. If it takes longer than expected, the turns after it take no less. `running` is `None` between
    /// turns and in a repetition. The result is `None` if it knows nothing of a turn.
    pub(crate) fn time(&self, running: Option<&ScheduledRepeat>, passed: Nanos) -> Option<Nanos> {
        let running = running.map(kind);
        let share = self.repeated_share();
        let mut seconds = 0.0;
        let mut of_running = 0.0;
        for (of, seen) in self.kinds.iter().filter(|(_, seen)| seen.left > 0) {
            let each = self.each(of, seen)?;
            let repeats = if seen.may_repeat() { share } else { 0.0 };
            seconds += each * (1.0 + repeats) * seen.left as f64;
            if Some(of) == running.as_ref() {
                of_running = each;
            }
        }
        Some(Nanos::from_seconds(seconds - passed.seconds().min(of_running)))
    }

    /// The time of repetitions so far, as a share of the time of the turns that may be repeated.
    fn repeated_share(&self) -> f64 {
        let took: f64 =
            self.kinds.values().filter(|seen| seen.may_repeat()).map(|seen| seen.took.seconds()).sum();
        if took > 0.0 { self.again.seconds() / took } else { 0.0 }
    }

    /// The expected time of a turn of a kind. It is the mean of this cell on the same targets, else on others.
    /// Otherwise it is the planned time, scaled by the ratio that others of its class took; else the mean
    /// of all.
    fn each(&self, of: &Kind, seen: &Seen) -> Option<f64> {
        let is_alike = |kind: &Kind, other: &Seen| kind.cell == of.cell && other.class() == seen.class();
        let alike = self.kinds.iter().filter(|(kind, other)| is_alike(kind, other)).map(|(_, other)| other);
        let planned = || seen.planned.map(|planned| planned.time.seconds() * self.ratio(planned.class));
        seen.mean().or_else(|| mean(alike)).or_else(planned).or_else(|| mean(self.kinds.values()))
    }

    /// The ratio of the actual to the planned time of the turns of a class so far.
    fn ratio(&self, class: TurnClass) -> f64 {
        let mut planned = 0.0;
        let mut took = 0.0;
        for seen in self.kinds.values() {
            if let Some(plan) = seen.planned.filter(|plan| plan.class == class) {
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
    use proptest::prelude::*;

    use super::*;

    fn turn(cell: usize, target: usize) -> ScheduledRepeat {
        ScheduledRepeat { targets: vec![target], cell, repeat: 0 }
    }

    const SECOND: Nanos = Nanos::from_millis(1000);

    const fn seconds(count: u64) -> Nanos {
        Nanos(count * SECOND.0)
    }

    fn planned(class: TurnClass, time: u64) -> Planned {
        Planned { class, time: seconds(time) }
    }

    const PACE: TurnClass = TurnClass::Recording(Goal::Pace);

    #[test]
    fn what_is_known_best_counts() {
        let turns = [turn(0, 0), turn(0, 0), turn(0, 1), turn(1, 0), turn(2, 0)];
        let plan = |turn: &ScheduledRepeat| match turn.cell {
            0 => Some(planned(TurnClass::Workload, 1)),
            1 => Some(planned(TurnClass::Workload, 5)),
            _ => Some(planned(PACE, 40)),
        };
        let mut remaining = Remaining::new(&turns, plan);
        let left = |remaining: &Remaining| remaining.time(None, Nanos(0));
        assert_eq!(left(&remaining), Some(seconds(3 + 5 + 40)), "the plan alone");
        remaining.done(&turns[0], Some(seconds(2)));
        // The same cell on both targets, then a cell that takes twice its planned time, too, and the recording.
        assert_eq!(left(&remaining), Some(seconds(2 + 2 + 10 + 40)));
        remaining.done(&turns[3], Some(seconds(8)));
        assert_eq!(left(&remaining), Some(seconds(2 + 2 + 40)));
        remaining.done(&turns[1], None);
        remaining.done(&turns[2], Some(seconds(1)));
        remaining.done(&turns[4], Some(seconds(1)));
        assert_eq!(left(&remaining), Some(seconds(0)));
        remaining.add(&turns[2]);
        assert_eq!(left(&remaining), Some(seconds(1)), "one more, for precision");
    }

    #[test]
    fn a_ceiling_says_nothing_of_the_time_on_storage() {
        let turns = [turn(0, 1), turn(0, 0)];
        let plan = |turn: &ScheduledRepeat| Some(Planned::workload(seconds(10), turn.targets == [1]));
        let mut remaining = Remaining::new(&turns, plan);
        remaining.done(&turns[0], Some(SECOND));
        assert_eq!(remaining.time(None, Nanos(0)), Some(seconds(10)));
    }

    #[test]
    fn repetitions_so_far_are_expected_of_the_rest_but_not_of_searches() {
        let turns = [turn(0, 0), turn(0, 0), turn(1, 0)];
        let search = planned(TurnClass::Recording(Goal::Search), 100);
        let plan = |turn: &ScheduledRepeat| {
            Some(if turn.cell == 1 { search } else { planned(TurnClass::Workload, 10) })
        };
        let mut remaining = Remaining::new(&turns, plan);
        remaining.done(&turns[0], Some(seconds(20)));
        remaining.repeated(seconds(5));
        assert_eq!(remaining.time(None, Nanos(0)), Some(seconds(25 + 100)));
    }

    #[test]
    fn what_runs_longer_than_expected_takes_nothing_from_what_comes_behind() {
        let turns = [turn(0, 0), turn(1, 0)];
        let remaining = Remaining::new(&turns, |_| Some(planned(PACE, 40)));
        let left = |passed| remaining.time(Some(&turns[0]), seconds(passed));
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
            [Goal::Pace, Goal::Limit, Goal::Search].map(|goal| Planned::recording(&cell(goal)));
        // Settling, memory, frames, and 1 GB to read back; a pass at full speed may end before its time is up.
        assert_eq!([pace, limit].map(|planned| planned.time), [24, 23].map(seconds));
        assert_eq!(search.time, seconds(43 * 23), "a median search, trial by trial");
        let turns = [turn(0, 0), turn(1, 0), turn(2, 0)];
        let plan = |turn: &ScheduledRepeat| Some(if turn.cell == 2 { limit } else { pace });
        let mut remaining = Remaining::new(&turns, plan);
        remaining.done(&turns[0], Some(seconds(48)));
        assert_eq!(
            remaining.time(None, Nanos(0)),
            Some(seconds(48 + 23)),
            "twice as long as planned, at this goal"
        );
    }

    /// A campaign on unknown storage. Each cell takes its own multiple of the planned time, and every turn a little
    /// more or less. A busy machine spoils one turn in `spoilt`.
    #[derive(Debug, Clone)]
    struct StrangeStorage {
        /// Planned seconds of each cell, and the ratio of the actual time.
        cells: Vec<(u64, f64)>,
        rounds: u32,
        spoilt: usize,
    }

    impl StrangeStorage {
        /// The error of the estimate before this turn if chance repeated the longest turn once more or less than the
        /// others. The estimate expects as many repetitions of the rounds that are left.
        fn chance(&self, number: usize) -> f64 {
            let longest = self.cells.iter().map(|(time, ratio)| *time as f64 * ratio).fold(0.0, f64::max);
            let round = (number / self.cells.len()).max(1) as f64;
            longest * (f64::from(self.rounds) - round) / round
        }
    }

    fn storage() -> impl Strategy<Value = StrangeStorage> {
        let cells = prop::collection::vec((1..30_u64, 0.2..8.0_f64), 2..15);
        (cells, 4..7_u32, 3..9_usize).prop_map(|(cells, rounds, spoilt)| StrangeStorage {
            cells,
            rounds,
            spoilt,
        })
    }

    /// Runs all turns. Returns the estimate before each turn, with the time that was really left.
    fn campaign(storage: &StrangeStorage) -> Vec<(f64, f64)> {
        let StrangeStorage { cells, rounds, spoilt } = storage;
        let turns: Vec<_> = (0..*rounds).flat_map(|_| (0..cells.len()).map(|cell| turn(cell, 0))).collect();
        let plan = |turn: &ScheduledRepeat| Some(planned(TurnClass::Workload, cells[turn.cell].0));
        let mut remaining = Remaining::new(&turns, plan);
        let mut now = 0.0;
        let mut told = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            let left = remaining.time(Some(turn), Nanos(0)).expect("the plan knows all turns");
            told.push((now, left.seconds()));
            let (expected, ratio) = cells[turn.cell];
            let noise = 0.95 + 0.1 * ((number * 7) % 11) as f64 / 10.0;
            let took = expected as f64 * ratio * noise;
            remaining.done(turn, Some(Nanos::from_seconds(took)));
            now += took;
            if number % spoilt == 0 {
                remaining.repeated(Nanos::from_seconds(took));
                now += took;
            }
        }
        told.into_iter().map(|(at, left)| (left, now - at)).collect()
    }

    proptest! {
        /// After two rounds the estimate follows from the storage and not from the plan.
        #[test]
        fn the_time_left_is_right_after_two_rounds(storage in storage()) {
            let told = campaign(&storage);
            let all = told[0].1;
            for (number, (left, truth)) in told.iter().enumerate().skip(2 * storage.cells.len()) {
                let bound = 0.2 * all + storage.chance(number);
                prop_assert!((left - truth).abs() < bound, "turn {number}: {left} and not {truth} of {all}");
            }
            let half = told.iter().position(|(_, truth)| *truth < all / 2.0).expect("a campaign has an end");
            let left = told[half].0;
            prop_assert!(left < 0.7 * all + storage.chance(half), "half of it is over: {left} of {all}");
        }
    }
}
