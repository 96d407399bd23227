//! A search as a campaign makes it: recordings of a cell, each of them a trial, in the order in which they were made.

use std::fmt;

use nilometer_model::{ByteRate, Bytes, Frequency, Goal, Nanos, Sample};

use super::{
    Advice, BufferLimit, BufferSearch, BufferTrial, GRID, RateLimit, RateSearch, RateTrial, SearchEnd, TRIALS,
};
use crate::{RecordingRun, RecordingSplit};

/// The data of a trial that a search uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// The rate of arrivals.
    pub rate: ByteRate,
    /// The most slots that were in use at once.
    pub high: u64,
    /// Its end.
    pub ended: SearchEnd,
    /// The time at which frames began to arrive, by the calendar.
    pub begun: Nanos,
    /// The number of processes that recorded it together.
    pub processes: u32,
}

/// The bound of a search. A search that reaches either end gives its result so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchBound {
    /// Trials in all.
    pub trials: u32,
    /// The time from the first trial until the last one begins.
    pub time: Nanos,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    /// The highest rate.
    Rate(RateLimit),
    /// The smallest buffer.
    Buffer(BufferLimit),
}

/// The range of rates to try, as multiples of the hint.
const RANGE: (f64, f64) = (1.0 / 50.0, 2.0);
/// No ring has fewer slots.
const LEAST: u64 = 2;
/// A slot begins at a multiple of this.
const PAGE: u64 = 4096;

/// Trials of a search for a buffer: three with the largest, and three for each of a few guesses.
const BUFFER_TRIALS: u32 = 30;
/// The time of a trial beside the arrival of frames: the machine settles, memory is prepared, files are
/// removed.
const BESIDES: Nanos = Nanos::from_millis(5000);
/// The most time between two trials that counts beyond their duration; a longer pause is an interruption of
/// the campaign.
const PAUSE: Nanos = Nanos::from_millis(60_000);

impl SearchBound {
    /// The bound for a searching cell, which depends on the duration of a trial.
    pub fn of(cell: &RecordingRun) -> Self {
        let trials = if cell.goal == Goal::Buffer { BUFFER_TRIALS } else { TRIALS };
        let each = cell.duration + BESIDES;
        SearchBound { trials, time: Nanos(u64::from(trials).saturating_mul(each.0)) }
    }

    fn is_reached(self, cell: &RecordingRun, trials: &[Trial]) -> bool {
        let pair = |pair: &[Trial]| pair[1].begun.since(pair[0].begun).min(cell.duration + PAUSE).0;
        let spent: u64 = trials.windows(2).map(pair).sum();
        trials.len() >= self.trials as usize || spent >= self.time.0
    }
}

impl fmt::Display for SearchBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at most {} trials, and none after {:.0} min",
            self.trials,
            (self.time.seconds() / 60.0).ceil()
        )
    }
}

impl fmt::Display for Found {
    /// The sentence, without its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Rate(limit) => limit.fmt(f),
            Found::Buffer(limit) => limit.fmt(f),
        }
    }
}

impl Trial {
    /// A recording as a trial; `None` if the sample is of something else.
    ///
    /// A trial also counts as lost if the ring was still filling at the last frame, because a longer trial
    /// would have lost. The ring is filling if more frames wait than half a step of the grid of rates
    /// delivers in the trial.
    pub fn of(sample: &Sample) -> Option<Trial> {
        let ingest = sample.ingest.as_ref()?;
        let ended = match &sample.invalid {
            Some(_) => SearchEnd::Invalid,
            None if ingest.losses() > 0 || ingest.is_filling() => SearchEnd::Lost,
            None => SearchEnd::Carried,
        };
        let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
        let processes = (sample.parts.len() as u32).max(1);
        Some(Trial { rate, high: ingest.slots_high, ended, begun: sample.started, processes })
    }
}

/// The next recording of a searching cell after these trials, with another rate or buffer, or the result. The
/// first trial follows from the hint, the storage's rate at full speed; the others from earlier ones.
pub fn advise(cell: &RecordingRun, hint: ByteRate, trials: &[Trial]) -> Advice<RecordingRun, Found> {
    match cell.goal {
        Goal::Buffer => advise_buffer(cell, trials),
        _ => advise_rate(cell, hint, trials),
    }
}

fn advise_rate(cell: &RecordingRun, hint: ByteRate, trials: &[Trial]) -> Advice<RecordingRun, Found> {
    // A rate of the grid that was rounded down must not become the one below.
    let hint = trials.first().map_or(hint, |first| ByteRate(first.rate.0 * (1.0 + GRID / 10.0)));
    let least = ByteRate(hint.0 * RANGE.0);
    let most = ByteRate(hint.0 * RANGE.1);
    let mut search = RateSearch::new(hint, least, most, cell.duration);
    if SearchBound::of(cell).is_reached(cell, trials) {
        search.trials = trials.len() as u32;
    }
    let trials: Vec<_> = trials.iter().map(|&Trial { rate, ended, .. }| RateTrial { rate, ended }).collect();
    match search.advise(&trials) {
        Advice::Found(limit) => Advice::Found(Found::Rate(limit)),
        Advice::Next(rate) => {
            let mut next = cell.clone();
            let times = rate.0 / cell.rate().0;
            next.instrument = cell.instrument.at_rate(Frequency(cell.instrument.frame_rate.0 * times));
            Advice::Next(next)
        }
    }
}

fn advise_buffer(cell: &RecordingRun, trials: &[Trial]) -> Advice<RecordingRun, Found> {
    let slot = cell.recorded().frame_size().0.next_multiple_of(PAGE);
    let search = BufferSearch { most: (cell.buffer.0 / slot).max(LEAST), parts: parts(cell, trials) };
    let mut made = Vec::new();
    // A ring may have a slot more than requested: the request counts.
    let is_over = SearchBound::of(cell).is_reached(cell, trials);
    for &Trial { high, ended, .. } in trials {
        match search.advise(&made) {
            Advice::Next(slots) => made.push(BufferTrial { slots, high: high.max(LEAST).min(slots), ended }),
            Advice::Found(_) => break,
        }
    }
    match search.advise(&made) {
        Advice::Found(limit) => Advice::Found(Found::Buffer(limit)),
        Advice::Next(_) if is_over => Advice::Found(Found::Buffer(search.so_far(&made))),
        Advice::Next(slots) => Advice::Next(RecordingRun { buffer: Bytes(slots * slot), ..cell.clone() }),
    }
}

/// The number of processes that share the buffer of a recording: those that take its frames in turn. The first trial
/// has the largest buffer, for any number of them.
fn parts(cell: &RecordingRun, trials: &[Trial]) -> u64 {
    let processes = trials.iter().map(|trial| trial.processes).max().unwrap_or(1);
    if cell.split(processes) == RecordingSplit::Frames { processes.into() } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;
    use nilometer_model::{Ingest, Instrument, Invalid};

    fn cell(goal: Goal) -> RecordingRun {
        let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                      frame_rate = \"100 Hz\"\n";
        RecordingRun {
            goal,
            duration: Nanos::from_millis(5000),
            buffer: Bytes(100 << 20),
            keep: Bytes(1 << 30),
            ..RecordingRun::new(Instrument::parse(camera, "camera").expect("valid"))
        }
    }

    /// Searches on a storage with rate `takes` that needs `needs` slots.
    fn carry_out(cell: &RecordingRun, hint: f64, takes: f64, needs: u64) -> (Found, Vec<Trial>) {
        let mut trials = Vec::new();
        loop {
            let next = match advise(cell, ByteRate(hint), &trials) {
                Advice::Found(found) => return (found, trials),
                Advice::Next(next) => next,
            };
            let slots = next.buffer.0 / 1_003_520;
            let lost = next.rate().0 > takes || slots < needs;
            let ended = if lost { SearchEnd::Lost } else { SearchEnd::Carried };
            trials.push(Trial {
                rate: next.rate(),
                high: needs.min(slots),
                ended,
                begun: Nanos(0),
                processes: 1,
            });
        }
    }

    #[test]
    fn the_limit_lies_between_neighbours_of_the_grid_wherever_the_hint_was() {
        for hint in [120e6, 200e6, 390e6] {
            let (found, _) = carry_out(&cell(Goal::Search), hint, 200e6, 0);
            let Found::Rate(limit) = found else { panic!("{found:?}") };
            let (carried, lost) = (limit.carried.expect("some").0, limit.lost.expect("some").0);
            assert!(carried <= 200e6 && lost > 200e6 && lost / carried < 1.06, "{limit} from {hint}");
        }
    }

    /// Searches if every trial takes `each` and every second one is invalid, as on a busy machine.
    fn on_a_busy_machine(cell: &RecordingRun, each: Nanos) -> (Found, Vec<Trial>) {
        let mut trials: Vec<Trial> = Vec::new();
        loop {
            let next = match advise(cell, ByteRate(200e6), &trials) {
                Advice::Found(found) => return (found, trials),
                Advice::Next(next) => next,
            };
            let number = trials.len() as u64;
            let ended = if number.is_multiple_of(2) { SearchEnd::Invalid } else { SearchEnd::Carried };
            let begun = Nanos(number * each.0);
            trials.push(Trial { rate: next.rate(), high: 1 + number, ended, begun, processes: 1 });
            assert!(trials.len() < 500, "no end");
        }
    }

    #[test]
    fn a_search_is_bounded_in_trials_and_in_time() {
        for goal in [Goal::Search, Goal::Buffer] {
            let cell = cell(goal);
            let bound = SearchBound::of(&cell);
            assert_eq!(bound.time.0, u64::from(bound.trials) * 10_000_000_000, "5 s of frames, 5 s besides");
            let (_, trials) = on_a_busy_machine(&cell, Nanos(0));
            assert!(trials.len() <= bound.trials as usize, "{}", trials.len());
            let (found, trials) = on_a_busy_machine(&cell, Nanos::from_millis(60_000));
            let minutes = trials.len() as u64 - 1;
            assert!(minutes * 60_000_000_000 <= bound.time.0, "{minutes} min, {found}");
            // A pause of a day is no time of the search.
            let mut resumed = trials[..2].to_vec();
            resumed[1].begun += Nanos::from_millis(86_400_000);
            assert!(matches!(advise(&cell, ByteRate(200e6), &resumed), Advice::Next(_)));
        }
    }

    #[test]
    fn a_search_that_ran_out_of_its_bound_gives_its_bracket_so_far() {
        let cell = cell(Goal::Search);
        let (_, all) = carry_out(&cell, 390e6, 200e6, 0);
        // Each takes a minute of the total of ten.
        let slow = |number: u64| Nanos::from_millis(60_000 * number);
        let begun = all.iter().zip(0..).map(|(trial, number)| Trial { begun: slow(number), ..*trial });
        let trials: Vec<Trial> = begun.take(11).collect();
        assert!(matches!(advise(&cell, ByteRate(1.0), &trials[..10]), Advice::Next(_)), "there is time left");
        let Advice::Found(Found::Rate(limit)) = advise(&cell, ByteRate(1.0), &trials) else {
            panic!("it goes on")
        };
        assert_eq!((limit.passes, limit.trials), (0, 11), "{limit}");
        assert!(limit.lost.is_some_and(|lost| lost.0 > 200e6), "{limit}");
        assert!(
            limit.to_string().contains("11 trials of 5 s, ended before its first pass was complete"),
            "{limit}"
        );
    }

    #[test]
    fn packets_are_searched_at_rates_that_they_can_have() {
        let telescope = "name = \"telescope\"\ntitle = \"t\"\nsource = \"s\"\nshape = [40_000_000]\npixel = \"uint2\"\n\
                         frame_rate = \"50.7 Hz\"\npackets.format.vdif = { payload = \"1000 B\", threads = [0] }\n";
        let instrument = Instrument::parse(telescope, "telescope").expect("valid");
        let cell = RecordingRun { instrument, route: Route::Loopback, ..cell(Goal::Search) };
        let mut trials = Vec::new();
        let limit = loop {
            match advise(&cell, ByteRate(900e6), &trials) {
                Advice::Found(Found::Rate(limit)) => break limit,
                Advice::Found(found) => panic!("{found:?}"),
                Advice::Next(next) => {
                    assert_eq!(next.instrument.check(), Ok(()), "{}", next.rate());
                    let ended = if next.rate().0 > 650e6 { SearchEnd::Lost } else { SearchEnd::Carried };
                    trials.push(Trial { rate: next.rate(), high: 3, ended, begun: Nanos(0), processes: 1 });
                }
            }
        };
        // With the headers of frames, which the recorder has to take too.
        let (carried, lost) = (limit.carried.expect("some").0, limit.lost.expect("some").0);
        assert!(carried <= 650e6 && lost > 650e6 && lost / carried < 1.06, "{limit}");
    }

    #[test]
    fn a_history_is_replayed_without_its_hint() {
        let cell = cell(Goal::Search);
        let (found, trials) = carry_out(&cell, 150e6, 200e6, 0);
        for known in 1..trials.len() {
            let Advice::Next(next) = advise(&cell, ByteRate(1.0), &trials[..known]) else {
                panic!("{known}")
            };
            assert!((next.rate().0 / trials[known].rate.0 - 1.0).abs() < 1e-9, "trial {known}");
        }
        assert_eq!(advise(&cell, ByteRate(1.0), &trials), Advice::Found(found));
    }

    #[test]
    fn the_buffer_is_what_was_used_at_the_most() {
        let (found, trials) = carry_out(&cell(Goal::Buffer), 1.0, 200e6, 17);
        let Found::Buffer(limit) = found else { panic!("{found:?}") };
        assert_eq!((limit.enough, limit.lost, trials.len()), (Some(17), None, 6));
        let (found, _) = carry_out(&cell(Goal::Buffer), 1.0, 200e6, 1);
        assert!(
            matches!(found, Found::Buffer(BufferLimit { enough: Some(2), .. })),
            "a ring has two: {found:?}"
        );
    }

    #[test]
    fn a_ring_that_still_fills_has_not_carried() {
        let trial = |in_use: u64, lost, invalid| {
            let mut ingest = Ingest {
                period: Nanos::from_millis(10),
                due: 500,
                lost,
                frame_size: Bytes(1_000_000),
                ..Ingest::default()
            };
            for at in 0..500 {
                ingest.levels.set(Nanos::from_millis(10 * at), in_use * at / 499);
            }
            let sample = Sample { ingest: Some(ingest), invalid, ..Sample::new(Nanos(0)) };
            Trial::of(&sample).expect("a recording").ended
        };
        assert_eq!(trial(10, 0, None), SearchEnd::Carried);
        // Half a step of 5 % of 500 frames are 12.5.
        assert_eq!(trial(20, 0, None), SearchEnd::Lost);
        assert_eq!(trial(0, 1, None), SearchEnd::Lost);
        assert_eq!(trial(20, 1, Some(Invalid::Starved(None))), SearchEnd::Invalid);
        assert_eq!(Trial::of(&Sample::new(Nanos(0))), None);
    }

    #[test]
    fn processes_that_take_frames_in_turn_have_equal_buffers() {
        let mut trials: Vec<Trial> = Vec::new();
        let mut asked = Vec::new();
        let found = loop {
            let next = match advise(&cell(Goal::Buffer), ByteRate(1.0), &trials) {
                Advice::Found(found) => break found,
                Advice::Next(next) => next,
            };
            let slots = next.buffer.0 / 1_003_520;
            asked.push(slots);
            // Each of three processes needs three slots, and two of them never at the same time.
            let ended = if slots / 3 < 3 { SearchEnd::Lost } else { SearchEnd::Carried };
            trials.push(Trial {
                rate: next.rate(),
                high: 7.min(slots),
                ended,
                begun: Nanos(0),
                processes: 3,
            });
        };
        let Found::Buffer(limit) = found else { panic!("{found:?}") };
        assert_eq!(limit.enough, Some(9), "{asked:?}");
        assert!(asked.iter().skip(3).all(|slots| slots.is_multiple_of(3)), "{asked:?}");
        let part = RecordingRun { buffer: Bytes(9 * 1_003_520), ..cell(Goal::Buffer) }.part(1, 3);
        assert_eq!(part.buffer, Bytes(3 * 1_003_520));
    }
}
