//! Recordings of the same instrument in several records: whether it is carried, and what the storage takes in the long run.

use nilometer_model::sustained::SustainedRate;

use super::{NamedRecord, Subject};
use crate::{Verdict, effect::Effect, verdicts};

/// An instrument that was recorded, with all verdicts on it.
#[derive(Debug, Clone)]
pub struct AlignedRecording {
    /// The instrument, how many of it, and what all of them deliver.
    pub instrument: String,
    /// By subject; none where it was not recorded.
    pub verdicts: Vec<Option<Verdict>>,
    /// What the storage takes in the long run, each pair of at most three, else each with the one that takes the most.
    pub pairs: Vec<RecordingPair>,
}

/// Two subjects that both were recorded on at full speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordingPair {
    /// The one that takes more in the long run: index into the subjects.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// From the intervals of both rates.
    pub effect: Effect,
}

/// More are compared with the one that takes the most only.
const ALL_PAIRS_MOST: usize = 3;

/// In the order in which the records have them.
pub(super) fn aligned(
    records: &[NamedRecord<'_>],
    subjects: &[Subject],
    shown: &[usize],
) -> Vec<AlignedRecording> {
    let mut all: Vec<AlignedRecording> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let first = subjects.iter().position(|subject| subject.record == index).unwrap_or(0);
        for verdict in verdicts(record.results) {
            let instrument = format!("{}, {}", verdict.who(), verdict.rate);
            let subject = first + verdict.target;
            let known = all.iter().position(|recording| recording.instrument == instrument);
            let place = known.unwrap_or_else(|| {
                let verdicts = vec![None; subjects.len()];
                all.push(AlignedRecording { instrument, verdicts, pairs: Vec::new() });
                all.len() - 1
            });
            all[place].verdicts[subject] = Some(verdict);
        }
    }
    for recording in &mut all {
        recording.pairs = recording.compared(shown);
    }
    all
}

impl AlignedRecording {
    /// Whether two subjects or more were recorded on.
    pub fn is_shared(&self) -> bool {
        self.verdicts.iter().flatten().count() > 1
    }

    /// What a subject takes in the long run.
    pub fn limit(&self, subject: usize) -> Option<SustainedRate> {
        self.verdicts.get(subject)?.as_ref()?.limit
    }

    fn compared(&self, shown: &[usize]) -> Vec<RecordingPair> {
        let limit = |&subject: &usize| Some((subject, self.limit(subject)?));
        let mut limits: Vec<(usize, SustainedRate)> = shown.iter().filter_map(limit).collect();
        limits.sort_by(|one, other| other.1.rate.0.total_cmp(&one.1.rate.0));
        let mut pairs = Vec::new();
        for (place, (first, rate)) in limits.iter().enumerate() {
            if place == 0 || limits.len() <= ALL_PAIRS_MOST {
                let behind = limits[place + 1..].iter();
                let pair = |(second, other): &(usize, SustainedRate)| RecordingPair {
                    first: *first,
                    second: *second,
                    effect: ratio(rate, other),
                };
                pairs.extend(behind.map(pair));
            }
        }
        pairs
    }
}

/// Two rates that were measured apart: on the scale of logarithms the squares of the half widths add up.
pub(super) fn ratio(first: &SustainedRate, second: &SustainedRate) -> Effect {
    let half = |rate: &SustainedRate| (rate.high.0 / rate.low.0.max(f64::MIN_POSITIVE)).ln() / 2.0;
    let log_ratio = (first.rate.0 / second.rate.0).ln();
    let half = half(first).hypot(half(second));
    Effect {
        log_ratio,
        low: log_ratio - half,
        high: log_ratio + half,
        pairs: first.passes.min(second.passes),
    }
}
