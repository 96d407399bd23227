//! The cost of readers for the writer, and of the writer for readers.

use nilometer_model::{
    ByteRate, Goal, Ingest, Nanos, ReaderLoad, ReaderTotals, Sample, Series,
    sustained::{RateChange, SustainedRate, rate_change},
};

use super::{Finding, Made, Recorded, is_usual, passes::long_run, quantile, readers};

/// A recording that was read at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// The readers, with a limit of their rate if they had one.
    pub readers: ReaderLoad,
    /// The finding at the instrument's rate.
    pub finding: Finding,
    /// The rate at full speed, with these readers.
    pub limit: Option<SustainedRate>,
    /// The change of the rate at full speed by the readers, from passes with and without them in the same rounds.
    pub change: Option<RateChange>,
    /// The total rate of the readers at that time, at the instrument's rate.
    pub got: ByteRate,
    /// The rate of a single reader while nothing is recorded.
    pub alone: Option<ByteRate>,
    /// Time from due until read, for half of the frames and for 99 %; `None` if nothing was read.
    pub late: Option<(Nanos, Nanos)>,
    /// Frames that a reader did not reach: removed before, or unread some time after the recording. Over all repeats,
    /// as the other counts are.
    pub missed: u64,
    /// Failed reads and writes of the readers.
    pub failed: u64,
    /// True if a copy hung and was abandoned.
    pub hung: bool,
}

/// The findings by readers, those with the least load first.
pub(super) fn beside(recorded: &Recorded<'_>) -> Vec<Beside> {
    let mut levels: Vec<ReaderLoad> = recorded
        .of(Goal::Pace)
        .filter(|(_, ingest)| is_usual(ingest) && !readers(ingest).is_empty())
        .map(|(_, ingest)| ReaderLoad::of(ingest))
        .collect();
    levels.sort_unstable();
    levels.dedup();
    levels.into_iter().filter_map(|wanted| at_level(recorded, wanted)).collect()
}

fn at_level(recorded: &Recorded<'_>, wanted: ReaderLoad) -> Option<Beside> {
    let is_wanted = move |ingest: &Ingest| is_usual(ingest) && ReaderLoad::of(ingest) == wanted;
    let of = |goal: Goal| recorded.of(goal).filter(move |(_, ingest)| is_wanted(ingest));
    let made: Vec<Made<'_>> = of(Goal::Pace).collect();
    let (_, ingest) = *made.first()?;
    let limits = of(Goal::Limit).filter(|(sample, _)| sample.invalid.is_none());
    let rate = |reader: &ReaderTotals| ByteRate::of(reader.bytes, reader.wall).0;
    let all = || made.iter().flat_map(|(_, ingest)| readers(ingest));
    let after = ingest.readers.iter().find(|reader| reader.after && reader.frames > 0);
    Some(Beside {
        readers: wanted,
        finding: recorded.worst(made.clone()),
        limit: long_run(limits.map(|(sample, _)| sample)),
        change: change(recorded, wanted),
        got: ByteRate(readers(ingest).into_iter().map(rate).sum()),
        alone: after.map(|reader| ByteRate(rate(reader))),
        late: quantile(&ingest.read, 0.5).zip(quantile(&ingest.read, 0.99)),
        missed: all().map(|reader| reader.missed).sum(),
        failed: all().map(|reader| reader.failed).sum(),
        hung: all().any(|reader| reader.hung),
    })
}

/// Compares the passes without readers and with these, in pairs of the same round.
fn change(recorded: &Recorded<'_>, wanted: ReaderLoad) -> Option<RateChange> {
    let beside = passes(recorded, wanted);
    let alone = passes(recorded, ReaderLoad::NONE);
    let in_round = |round: u32| beside.iter().find(|(repeat, _)| *repeat == round).map(|(_, series)| *series);
    let pairs = alone.into_iter().filter_map(|(round, alone)| Some((alone, in_round(round)?)));
    rate_change(&pairs.collect::<Vec<_>>())
}

/// Valid passes at full speed with such readers, each with its round.
fn passes<'a>(recorded: &Recorded<'a>, wanted: ReaderLoad) -> Vec<(u32, &'a Series)> {
    let of = recorded.samples.iter().copied().filter(|measured| is_pass(&measured.sample, wanted));
    of.map(|measured| (measured.key.repeat, &measured.sample.series)).collect()
}

fn is_pass(sample: &Sample, wanted: ReaderLoad) -> bool {
    let Some(ingest) = &sample.ingest else { return false };
    ingest.goal == Goal::Limit
        && is_usual(ingest)
        && ReaderLoad::of(ingest) == wanted
        && sample.invalid.is_none()
        && !sample.recorder_wait().is_long()
}
