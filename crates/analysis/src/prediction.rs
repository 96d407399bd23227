//! Which instruments the targets carry: recorded where there is a verdict, else predicted from what this campaign measured.
//!
//! A prediction is the measured limit over what the instrument delivers: bytes, and files where it writes some of its own.
//! The lower end of the limit's interval counts, so that no prediction is rosier than the data. Stalls are not in it.

use nilometer_model::{
    ByteRate, Format, Instrument, Results, Storing,
    plan::{Cell, DataSource, FileLayout, Phase, StreamCell, SyncPolicy, Volumes, WorkloadCell},
    statistics::Summary,
};

use crate::{Finding, Outcome, Stage, Verdict};

/// The table of instruments and targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predictions {
    /// The instruments of which something is known, those that deliver least first.
    pub rows: Vec<Prospects>,
    /// What predictions rest on, in the order of targets.
    pub limits: Vec<MeasuredLimit>,
}

/// What is known of one instrument.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospects {
    /// Its name, and how many of it.
    pub instrument: String,
    /// What all of them deliver.
    pub rate: ByteRate,
    /// One for each target; none where nothing that was measured tells.
    pub on: Vec<Option<Prospect>>,
}

/// Whether a target carries an instrument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prospect {
    /// None if the recording did not decide.
    pub carried: Option<bool>,
    /// The limit over what the instrument delivers; none if no limit was measured.
    pub margin: Option<f64>,
    /// Where that is from.
    pub basis: Basis,
}

/// What a prospect rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The instrument was recorded: there is a verdict.
    Recorded,
    /// An index into [`Predictions::limits`]: the limit that leaves the least margin.
    Predicted(usize),
}

/// What a target takes of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredLimit {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// What is limited.
    pub kind: Kind,
    /// Bytes or files a second: the lower end of the interval of the mean, of the cell where that is highest; the mean
    /// itself from a single repeat.
    pub value: f64,
    /// The stage in which it was measured.
    pub stage: String,
}

/// What a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes a second, written in sequence and durable, each worker into files of its own.
    Written,
    /// The same into one file for all.
    Shared,
    /// Files a second that are made.
    Files,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Written, Kind::Shared, Kind::Files];

    /// What an outcome says about limits of this kind, if it is of this kind.
    fn value(self, cell: &Cell, outcome: &Outcome<'_>) -> Option<f64> {
        let measures = match &cell.workload {
            _ if cell.volumes == Volumes::Together => None,
            WorkloadCell::Stream(stream) if outcome.phase == Phase::Write => written(stream),
            WorkloadCell::Tree(_) if outcome.phase == Phase::CreateFiles => Some(Kind::Files),
            _ => None,
        };
        let summary = if self == Kind::Files { outcome.operations } else { outcome.rate };
        low(&summary.filter(|_| measures == Some(self))?)
    }
}

/// What a stream measures when it writes; none where it is not durable, or limited by where its data come from.
fn written(stream: &StreamCell) -> Option<Kind> {
    let counts = stream.sync != SyncPolicy::None && stream.source == DataSource::Memory;
    counts.then_some(if stream.layout == FileLayout::Own { Kind::Written } else { Kind::Shared })
}

/// The lower end of the mean's interval; none if that reaches zero.
fn low(summary: &Summary) -> Option<f64> {
    let low = summary.mean - summary.half_width().unwrap_or(0.0);
    (low > 0.0).then_some(low)
}

/// The table: a row for each instrument of the catalogue, and for each that was recorded.
pub(crate) fn predictions(
    results: &Results,
    stages: &[Stage<'_>],
    verdicts: &[Verdict],
    catalogue: &[Instrument],
) -> Predictions {
    let limits = limits(results, stages);
    let targets = results.targets.len();
    let mut rows: Vec<Prospects> = catalogue
        .iter()
        .map(|instrument| Prospects {
            instrument: instrument.name.clone(),
            rate: instrument.rate(),
            on: (0..targets).map(|target| predicted(instrument, target, &limits)).collect(),
        })
        .collect();
    for verdict in verdicts.iter().filter(|verdict| verdict.target < targets) {
        let known = rows.iter().position(|row| row.is_of(verdict));
        let row = known.unwrap_or_else(|| {
            let (instrument, on) = (verdict.who(), vec![None; targets]);
            rows.push(Prospects { instrument, rate: verdict.rate, on });
            rows.len() - 1
        });
        rows[row].on[verdict.target] = Some(recorded(verdict));
    }
    rows.retain(|row| row.on.iter().any(Option::is_some));
    rows.sort_by(|a, b| a.rate.0.total_cmp(&b.rate.0));
    Predictions { rows, limits }
}

/// By target and kind, what was measured.
fn limits(results: &Results, stages: &[Stage<'_>]) -> Vec<MeasuredLimit> {
    let mut limits = Vec::new();
    for (target, entry) in results.targets.iter().enumerate() {
        if entry.left_out.is_none() {
            limits.extend(Kind::ALL.iter().filter_map(|kind| limit(results, stages, target, *kind)));
        }
    }
    limits
}

fn limit(results: &Results, stages: &[Stage<'_>], target: usize, kind: Kind) -> Option<MeasuredLimit> {
    let here = stages.iter().flat_map(|stage| stage.outcomes.iter().map(move |outcome| (stage, outcome)));
    let values = here.filter(|(_, outcome)| outcome.target == target).filter_map(|(stage, outcome)| {
        let cell: Cell = serde_json::from_str(&results.cells.get(outcome.cell)?.parameters).ok()?;
        Some((stage.name, kind.value(&cell, outcome)?))
    });
    let (stage, value) = values.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(MeasuredLimit { target, kind, value, stage: stage.into() })
}

/// What the limits of a target say of an instrument: the one that leaves the least margin. None unless there is one for
/// all that the instrument needs.
fn predicted(instrument: &Instrument, target: usize, limits: &[MeasuredLimit]) -> Option<Prospect> {
    let of = |kind: Kind| limits.iter().position(|limit| limit.target == target && limit.kind == kind);
    let own = of(Kind::Written);
    let bytes = if instrument.storing == Storing::Shared { of(Kind::Shared).or(own) } else { own };
    let mut needs = vec![(bytes?, instrument.rate().0)];
    if let Some(files) = files(instrument) {
        needs.push((of(Kind::Files)?, files));
    }
    let margins = needs.into_iter().map(|(limit, needed)| (limit, limits[limit].value / needed));
    let (limit, margin) = margins.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (carried, basis) = (Some(margin >= 1.0), Basis::Predicted(limit));
    Some(Prospect { carried, margin: Some(margin), basis })
}

/// Files a second that an instrument asks for; none where the recorder chooses files that are large enough.
fn files(instrument: &Instrument) -> Option<f64> {
    let frames = match (instrument.format, instrument.storing) {
        (Format::Cbf, _) => Some(1),
        (_, Storing::Files | Storing::Scattered) => instrument.frames_per_file,
        (_, Storing::Growing | Storing::Shared | Storing::Ring) => None,
    };
    frames.map(|frames| instrument.frame_rate.0 * instrument.streams as f64 / frames.max(1) as f64)
}

fn recorded(verdict: &Verdict) -> Prospect {
    let carried = match verdict.finding {
        Finding::Lost(_) => Some(false),
        _ => verdict.is_carried().then_some(true),
    };
    Prospect { carried, margin: verdict.margin(), basis: Basis::Recorded }
}

/// A period is a whole number of nanoseconds: rates that differ by less are one.
const SAME_RATE: f64 = 0.001;

impl Prospects {
    /// Of the same instrument at the same rate.
    fn is_of(&self, verdict: &Verdict) -> bool {
        let same_rate = (verdict.rate.0 / self.rate.0 - 1.0).abs() < SAME_RATE;
        self.instrument == verdict.who() && same_rate
    }
}

impl Predictions {
    /// Something in the table was not recorded.
    pub fn predicts(&self) -> bool {
        let mut all = self.rows.iter().flat_map(|row| &row.on).flatten();
        all.any(|prospect| prospect.basis != Basis::Recorded)
    }

    /// Something in the table was recorded.
    pub fn records(&self) -> bool {
        let mut all = self.rows.iter().flat_map(|row| &row.on).flatten();
        all.any(|prospect| prospect.basis == Basis::Recorded)
    }

    /// The limits that predictions rest on; others were measured and limit nothing.
    pub fn used(&self) -> Vec<&MeasuredLimit> {
        let uses = |index: usize| {
            let mut all = self.rows.iter().flat_map(|row| &row.on).flatten();
            all.any(|prospect| prospect.basis == Basis::Predicted(index))
        };
        self.limits.iter().enumerate().filter(|(index, _)| uses(*index)).map(|(_, limit)| limit).collect()
    }
}

#[cfg(test)]
mod tests;
