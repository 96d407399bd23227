//! A search as a campaign makes it: recordings of a cell, each of them a trial, in the order in which they were made.

use super::{Advice, BufferLimit, BufferSearch, BufferTrial, Ended, GRID, RateLimit, RateSearch, RateTrial};
use crate::{
    ByteRate, Bytes, Frequency, Sample,
    plan::{Goal, IngestCell},
};

/// What is to be known of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// What came.
    pub rate: ByteRate,
    /// The most slots that were in use at once.
    pub high: u64,
    /// How it ended.
    pub ended: Ended,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    /// The highest rate.
    Rate(RateLimit),
    /// The smallest buffer.
    Buffer(BufferLimit),
}

/// Rates are tried from this share of the hint up to so many times of it.
const RANGE: (f64, f64) = (1.0 / 50.0, 2.0);
/// No ring has fewer slots.
const LEAST: u64 = 2;
/// A slot begins at a multiple of this.
const PAGE: u64 = 4096;

impl Trial {
    /// A recording as a trial; none if the sample is of something else. It counts as lost as well if the ring was still
    /// filling: what waited when the last frame came is more than half a step of the rates' grid brings in that time. A
    /// longer trial would have lost.
    pub fn of(sample: &Sample) -> Option<Trial> {
        let ingest = sample.ingest.as_ref()?;
        let ended = match &sample.invalid {
            Some(_) => Ended::Invalid,
            None if ingest.losses() > 0 || ingest.is_filling() => Ended::Lost,
            None => Ended::Carried,
        };
        let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
        Some(Trial { rate, high: ingest.slots_high, ended })
    }
}

/// What to record after these trials of a cell that searches: the cell with another rate or buffer, or what was found. The
/// first trial follows from the hint, the rate that the storage took by itself; the others from those before.
pub fn advise(cell: &IngestCell, hint: ByteRate, trials: &[Trial]) -> Advice<IngestCell, Found> {
    match cell.goal {
        Goal::Buffer => advise_buffer(cell, trials),
        _ => advise_rate(cell, hint, trials),
    }
}

fn advise_rate(cell: &IngestCell, hint: ByteRate, trials: &[Trial]) -> Advice<IngestCell, Found> {
    // A rate of the grid that was rounded down must not become the one below.
    let hint = trials.first().map_or(hint, |first| ByteRate(first.rate.0 * (1.0 + GRID / 10.0)));
    let bounds = (ByteRate(hint.0 * RANGE.0), ByteRate(hint.0 * RANGE.1));
    let search = RateSearch::new(hint, bounds, cell.duration);
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

fn advise_buffer(cell: &IngestCell, trials: &[Trial]) -> Advice<IngestCell, Found> {
    let slot = cell.recorded().frame_size().0.next_multiple_of(PAGE);
    let search = BufferSearch { most: (cell.buffer.0 / slot).max(LEAST) };
    let mut made = Vec::new();
    // A ring may have got a slot more than was asked for: what was asked counts.
    for &Trial { high, ended, .. } in trials {
        match search.advise(&made) {
            Advice::Next(slots) => made.push(BufferTrial { slots, high: high.max(LEAST).min(slots), ended }),
            Advice::Found(_) => break,
        }
    }
    match search.advise(&made) {
        Advice::Found(limit) => Advice::Found(Found::Buffer(limit)),
        Advice::Next(slots) => Advice::Next(IngestCell { buffer: Bytes(slots * slot), ..cell.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Ingest, Instrument, Invalid, Nanos, Readers,
        plan::{Onto, Route},
    };

    fn cell(goal: Goal) -> IngestCell {
        let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                      frame_rate = \"100 Hz\"\n";
        IngestCell {
            instrument: Instrument::parse(camera, "camera").expect("valid"),
            count: 1,
            goal,
            duration: Nanos::from_millis(5000),
            buffer: Bytes(100 << 20),
            keep: Bytes(1 << 30),
            repeats: 1,
            readers: Readers::default(),
            company: None,
            condition: None,
            route: Route::default(),
            onto: Onto::default(),
            fill: None,
        }
    }

    /// Searches on a storage that takes so much and needs so many slots.
    fn carry_out(cell: &IngestCell, hint: f64, takes: f64, needs: u64) -> (Found, Vec<Trial>) {
        let mut trials = Vec::new();
        loop {
            let next = match advise(cell, ByteRate(hint), &trials) {
                Advice::Found(found) => return (found, trials),
                Advice::Next(next) => next,
            };
            let slots = next.buffer.0 / 1_003_520;
            let lost = next.rate().0 > takes || slots < needs;
            let ended = if lost { Ended::Lost } else { Ended::Carried };
            trials.push(Trial { rate: next.rate(), high: needs.min(slots), ended });
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

    #[test]
    fn packets_are_searched_at_rates_that_they_can_have() {
        let telescope = "name = \"telescope\"\ntitle = \"t\"\nsource = \"s\"\nshape = [40_000_000]\npixel = \"uint2\"\n\
                         frame_rate = \"50.7 Hz\"\npackets.format.vdif = { payload = \"1000 B\", threads = [0] }\n";
        let instrument = Instrument::parse(telescope, "telescope").expect("valid");
        let cell = IngestCell { instrument, route: Route::Loopback, ..cell(Goal::Search) };
        let mut trials = Vec::new();
        let limit = loop {
            match advise(&cell, ByteRate(900e6), &trials) {
                Advice::Found(Found::Rate(limit)) => break limit,
                Advice::Found(found) => panic!("{found:?}"),
                Advice::Next(next) => {
                    assert_eq!(next.instrument.check(), Ok(()), "{}", next.rate());
                    let ended = if next.rate().0 > 650e6 { Ended::Lost } else { Ended::Carried };
                    trials.push(Trial { rate: next.rate(), high: 3, ended });
                }
            }
        };
        // With the headers of frames: what the recorder has to take.
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
        assert_eq!(trial(10, 0, None), Ended::Carried);
        // Half a step of 5 % of 500 frames are 12.5.
        assert_eq!(trial(20, 0, None), Ended::Lost);
        assert_eq!(trial(0, 1, None), Ended::Lost);
        assert_eq!(trial(20, 1, Some(Invalid::Starved(None))), Ended::Invalid);
        assert_eq!(Trial::of(&Sample::new(Nanos(0))), None);
    }
}
