//! Recordings of the same instrument in several records: the verdicts, and the long-term rates of the storage.

use nilometer_model::sustained::SustainedRate;

use super::{NamedRecord, Subject};
use crate::{Verdict, effect::Effect, verdicts};

/// A recorded instrument, with all verdicts on it.
#[derive(Debug, Clone)]
pub struct AlignedRecording {
    /// The instrument, its number, and its total rate.
    pub instrument: String,
    /// Verdicts by subject; `None` if it was not recorded.
    pub verdicts: Vec<Option<Verdict>>,
    /// Comparisons of long-term rates: each pair of at most three, else each with the highest.
    pub pairs: Vec<RecordingPair>,
}

/// Two subjects with recordings at full speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordingPair {
    /// The one with the higher long-term rate: index into the subjects.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// The ratio, from the intervals of both rates.
    pub effect: Effect,
}

/// More subjects are compared with the one with the highest rate only.
const ALL_PAIRS_MOST: usize = 3;

/// The recordings in the order of the records.
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
    /// Returns true if two or more subjects have a verdict.
    pub fn is_shared(&self) -> bool {
        self.verdicts.iter().flatten().count() > 1
    }

    /// The long-term rate of a subject. `None` also for a lower bound, which is no rate to compare.
    pub fn limit(&self, subject: usize) -> Option<SustainedRate> {
        self.verdicts.get(subject)?.as_ref()?.limit.filter(|limit| !limit.is_lower_bound())
    }

    /// Returns true if the rate of a subject is a lower bound, because its recorder waited long for a processor.
    pub(super) fn is_lower_bound(&self, subject: usize) -> bool {
        let verdict = self.verdicts.get(subject).and_then(Option::as_ref);
        verdict.and_then(|verdict| verdict.limit).is_some_and(|limit| limit.is_lower_bound())
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

/// The ratio of two independent rates: on the logarithmic scale, the squares of the half widths add up. Beyond that
/// each may be higher by the recorder's wait for a processor.
pub(super) fn ratio(first: &SustainedRate, second: &SustainedRate) -> Effect {
    let half = |rate: &SustainedRate| (rate.high.0 / rate.low.0.max(f64::MIN_POSITIVE)).ln() / 2.0;
    let log_ratio = (first.rate.0 / second.rate.0).ln();
    let half = half(first).hypot(half(second));
    Effect {
        log_ratio,
        low: log_ratio - half - raised_by_wait(second),
        high: log_ratio + half + raised_by_wait(first),
        pairs: first.passes.min(second.passes),
    }
}

/// By how much a rate may be higher without the recorder's wait for a processor, on the logarithmic scale.
pub(super) fn raised_by_wait(rate: &SustainedRate) -> f64 {
    -(-rate.waited.share()).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{ByteRate, Nanos, sustained::RecorderWait};

    /// A rate of 100 MB/s times `level`, of a recorder that waited for `seconds` of 40 s.
    fn rate(level: f64, seconds: u64) -> SustainedRate {
        let of = Nanos::from_millis(40_000);
        let at = |share: f64| ByteRate(share * level * 1e8);
        SustainedRate {
            rate: at(1.0),
            low: at(0.99),
            high: at(1.01),
            over: of,
            passes: 3,
            trend: None,
            waited: RecorderWait::new(Nanos::from_millis(1000 * seconds), of),
        }
    }

    #[test]
    fn a_rate_that_the_recorder_s_wait_lowered_is_not_slower() {
        let slower = ratio(&rate(0.9, 0), &rate(1.0, 0));
        assert!(slower.high < 0.0, "{slower:?}");
        let waited = ratio(&rate(0.9, 6), &rate(1.0, 0));
        assert!(waited.high > 0.0 && waited.low < 0.0, "6 of 40 s are more than a tenth: {waited:?}");
        let before = ratio(&rate(1.0, 0), &rate(0.9, 6));
        assert!(before.low < 0.0, "the baseline may have been as fast: {before:?}");
    }
}
