//! Limits of a campaign's targets: from stages that wrote or made files, from recordings at full speed, and from
//! their packing costs. Or the reasons why there are none.
//!
//! # Which figures are used
//!
//! A rate that instruments are compared with must hold in the long run, so a stage counts only if
//!
//! - at least three of its repeats are valid, so that the interval of their mean is meaningful,
//! - it ran at its full size: at a scale below one it is another measurement,
//! - its data were durable within the measured time. This machine's memory, including its dirty limit, then holds
//!   none of the counted data, however large it is,
//! - each repeat wrote more than any cache of the storage that a recording of this campaign filled
//!   ([`nilometer_model::sustained::step`]). Without a recording, a cache of the storage is unknown, and the note
//!   beside the table gives the bytes written at a time.
//!
//! Files are made without a sync. If there are fewer than this machine's dirty limit holds, making them durable
//! may take far longer. A prediction from such a stage has a note and decides nothing.
//!
//! The rate of a recording at full speed is a lower bound of the same limit: the greater of both counts.

use std::fmt;

use nilometer_model::{
    ByteRate, Format, Instrument, Phase, RecordingLayout, statistics::Summary, sustained::RecorderWait,
};
use nilometer_plan::{
    DataSource, FileLayout, Results, ShownScale, StreamCell, SyncPolicy, TreeCell, Volumes, WorkloadCell,
    WorkloadRun,
};

use crate::{
    CellOutcome, StageFigures, Verdict,
    evidence::{Evidence, largest_cache},
    facts::dirty_limit,
};

/// Valid repeats that a stage must have.
pub(super) const REPEATS_LEAST: usize = 3;

/// The limit of a target for one kind of work.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredLimit {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The kind of limit.
    pub kind: LimitKind,
    /// A lower bound in bytes or files per second: the lower end of the mean's interval, of the cell with the
    /// highest; or the rate of a recording at full speed, if that is higher.
    pub value: f64,
    /// The upper end of the interval; `None` if there is only a lower bound.
    pub most: Option<f64>,
    /// The recorder's wait for a processor, if there is only a lower bound for that reason.
    pub held_back: Option<RecorderWait>,
    /// The origin of the limit.
    pub from: LimitSource,
    /// Bytes written at a time; `None` for recordings.
    pub data: Option<u64>,
    /// True if files were made in this machine's memory, and not made durable.
    pub unsynced: bool,
}

/// The origin of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSource {
    /// A stage of the plan, by its name.
    Stage(String),
    /// A recording, by the name and number of its instruments.
    Recording(String),
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitKind {
    /// Bytes per second, written in sequence and durable, each worker into its own files.
    Written,
    /// The same with one file for all workers.
    Shared,
    /// Files made per second.
    Files,
    /// Bytes of frames per second that a recorder's processors pack into files of a format.
    Packed,
}

/// Reasons for no prediction; later ones are closer to a prediction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withheld {
    /// The target was given up.
    TargetGivenUp,
    /// No such limit was measured there.
    NotMeasured(LimitKind),
    /// The instrument was not recorded there.
    NotRecorded,
    /// The stage did not make its data durable.
    NotDurable(String),
    /// No repeat of the stage is valid.
    Invalid(String),
    /// Fewer than three repeats are valid.
    FewRepeats(String, usize),
    /// The plan ran at a scale below one.
    Scaled(String),
    /// The stage wrote less at a time than a cache holds: both in bytes.
    Cached(String, u64, u64),
    /// The interval of its mean reaches zero.
    Spread(String),
    /// The only limit is a lower bound from a recording of this instrument, and it is less than needed.
    Bound(String),
    /// The same, because the recorder waited for a processor.
    HeldBack(String, RecorderWait),
}

/// The limits of a target.
#[derive(Debug, Clone)]
pub(super) struct OnTarget {
    /// The limits for writing, for a shared file, and for files, or the reasons for none.
    limits: [Result<MeasuredLimit, Withheld>; 3],
}

impl OnTarget {
    pub(super) fn limit(&self, kind: LimitKind) -> Result<&MeasuredLimit, Withheld> {
        let at = match kind {
            LimitKind::Written | LimitKind::Packed => 0,
            LimitKind::Shared => 1,
            LimitKind::Files => 2,
        };
        self.limits[at].as_ref().map_err(Clone::clone)
    }
}

/// The measurements of a campaign from which limits follow.
pub(super) struct Found<'a> {
    pub(super) results: &'a Results,
    pub(super) stages: &'a [&'a StageFigures<'a>],
    pub(super) verdicts: &'a [Verdict],
    pub(super) evidence: &'a [Evidence<'a>],
}

impl Found<'_> {
    /// The limits of a target.
    pub(super) fn on(&self, target: usize) -> OnTarget {
        let given_up = self.results.targets.get(target).is_some_and(|entry| entry.left_out.is_some());
        let limit = |kind| if given_up { Err(Withheld::TargetGivenUp) } else { self.limit(target, kind) };
        OnTarget { limits: [LimitKind::Written, LimitKind::Shared, LimitKind::Files].map(limit) }
    }

    /// The highest valid limit; else the reason that is closest to one.
    fn limit(&self, target: usize, kind: LimitKind) -> Result<MeasuredLimit, Withheld> {
        let here = self.verdicts.iter().filter(|verdict| verdict.target == target);
        let recorded = here.filter_map(|verdict| self.recorded(verdict, kind)).map(Ok);
        let all: Vec<Result<MeasuredLimit, Withheld>> = self.staged(target, kind).chain(recorded).collect();
        let usable = all.iter().filter_map(|limit| limit.as_ref().ok());
        let Some(best) = usable.clone().max_by(|a, b| a.value.total_cmp(&b.value)) else {
            let reasons = all.into_iter().filter_map(Result::err);
            return Err(reasons.max().unwrap_or(Withheld::NotMeasured(kind)));
        };
        let most = usable.filter_map(|limit| limit.most).fold(best.value, f64::max);
        Ok(MeasuredLimit { most: best.most.map(|_| most), ..best.clone() })
    }

    /// The result of each cell for this kind.
    fn staged(
        &self,
        target: usize,
        kind: LimitKind,
    ) -> impl Iterator<Item = Result<MeasuredLimit, Withheld>> {
        let outcomes = self.stages.iter().flat_map(move |stage| {
            stage
                .outcomes
                .iter()
                .filter(move |outcome| outcome.target == target)
                .map(move |of| (stage.name, of))
        });
        outcomes.filter_map(move |(stage, outcome)| {
            let cell = self.results.cells.get(outcome.cell)?;
            let run = cell.as_workload().filter(|run| run.is_undisturbed())?;
            let measures = Measures::of(run, outcome.phase).filter(|measures| measures.kind == kind)?;
            Some(self.judged(stage, outcome, &measures))
        })
    }

    /// The limit from an outcome that measures one, or the reason why it does not count.
    fn judged(
        &self,
        stage: &str,
        outcome: &CellOutcome<'_>,
        measures: &Measures,
    ) -> Result<MeasuredLimit, Withheld> {
        let name = || stage.to_owned();
        let data = outcome.usable().map(|measured| measured.sample.bytes).min().unwrap_or_default();
        let made = outcome.usable().map(|measured| measured.sample.operations).min().unwrap_or_default();
        let cache = largest_cache(self.evidence, outcome.target).unwrap_or_default();
        let scale = scale(self.results);
        let is_files = measures.kind == LimitKind::Files;
        let summary = if is_files { outcome.operations } else { outcome.rate };
        match summary {
            _ if !measures.durable => Err(Withheld::NotDurable(name())),
            _ if outcome.valid == 0 => Err(Withheld::Invalid(name())),
            _ if outcome.valid < REPEATS_LEAST => Err(Withheld::FewRepeats(name(), outcome.valid)),
            _ if scale < 1.0 => Err(Withheld::Scaled(ShownScale(scale).to_string())),
            _ if !is_files && data <= cache => Err(Withheld::Cached(name(), data, cache)),
            Some(summary) => {
                let (value, most) = ends(&summary).ok_or_else(|| Withheld::Spread(name()))?;
                let memory = dirty_limit(self.results);
                Ok(MeasuredLimit {
                    target: outcome.target,
                    kind: measures.kind,
                    value,
                    most: Some(most),
                    held_back: None,
                    from: LimitSource::Stage(name()),
                    data: (!is_files).then_some(data),
                    unsynced: is_files && memory.is_none_or(|memory| made * measures.file_size < memory),
                })
            }
            None => Err(Withheld::Invalid(name())),
        }
    }

    /// The limit from a recording at full speed.
    fn recorded(&self, verdict: &Verdict, kind: LimitKind) -> Option<MeasuredLimit> {
        let margin = verdict.margin()?;
        let at_limit = self.of_verdict(verdict).find(|of| of.is_limit())?;
        let files = files(&at_limit.stored);
        let is_shared = at_limit.stored.recording.storing.kind().one_for_all;
        let bytes = verdict.rate.0 / at_limit.packing().unwrap_or(1.0);
        let needed = match kind {
            LimitKind::Files => files? * f64::from(verdict.instrument.count),
            LimitKind::Shared if is_shared => bytes,
            LimitKind::Written if !is_shared => bytes,
            _ => return None,
        };
        let value = margin * needed;
        // It may have waited for files, the processor or a network rather than for bytes.
        let by_bytes = files.is_none() && !at_limit.is_bound_elsewhere();
        let waited = verdict.limit.map(|limit| limit.waited).unwrap_or_default();
        let most = waited.raised(ByteRate(value)).map(|most| most.0);
        Some(MeasuredLimit {
            target: verdict.target,
            kind,
            value,
            most: most.filter(|_| by_bytes),
            held_back: (waited.is_long() && files.is_none()).then_some(waited),
            from: LimitSource::Recording(verdict.who()),
            data: None,
            unsynced: false,
        })
    }

    /// The recordings behind a verdict.
    pub(super) fn of_verdict(&self, verdict: &Verdict) -> impl Iterator<Item = &Evidence<'_>> {
        let same = |of: &&Evidence<'_>| of.instrument == verdict.instrument && of.target == verdict.target;
        self.evidence.iter().filter(same)
    }

    /// The packing rate of a recorder's processors for frames of an instrument, if one with the same form and
    /// data was recorded. A lane packs on its own thread, so at least one processor does; at full speed, the
    /// number of busy processors counts.
    pub(super) fn packed(&self, instrument: &Instrument) -> Option<MeasuredLimit> {
        let alike = || self.evidence.iter().filter(|of| of.packs_like(instrument) && of.is_alone());
        let rate =
            |of: &Evidence<'_>| Some(of.cores().max(1.0) / of.cost().filter(|cost| *cost > 0.0)? * 1e9);
        let least = |all: &mut dyn Iterator<Item = &Evidence<'_>>| {
            let rates = all.filter_map(|of| Some((rate(of)?, of.instrument.label())));
            rates.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let is_undelayed = |of: &&Evidence<'_>| of.is_limit() && !of.sample.recorder_wait().is_long();
        let at_limit = least(&mut alike().filter(is_undelayed));
        let (value, who) = at_limit.or_else(|| least(&mut alike()))?;
        Some(MeasuredLimit {
            target: 0,
            kind: LimitKind::Packed,
            value,
            most: Some(value),
            held_back: None,
            from: LimitSource::Recording(who),
            data: None,
            unsynced: false,
        })
    }
}

/// The kind of limit that an outcome measures.
struct Measures {
    kind: LimitKind,
    durable: bool,
    /// Bytes of each file made.
    file_size: u64,
}

impl Measures {
    /// `None` if no limit follows, such as from copies, which their source may limit.
    fn of(run: &WorkloadRun, phase: Phase) -> Option<Self> {
        match &run.workload {
            _ if run.volumes != Volumes::Alone => None,
            WorkloadCell::Stream(stream) if phase == Phase::Write => Self::of_stream(stream),
            WorkloadCell::Tree(TreeCell { file_size, .. }) if phase == Phase::CreateFiles => {
                Some(Measures { kind: LimitKind::Files, durable: true, file_size: file_size.0 })
            }
            _ => None,
        }
    }

    fn of_stream(stream: &StreamCell) -> Option<Self> {
        let kind = if stream.layout == FileLayout::Own { LimitKind::Written } else { LimitKind::Shared };
        let durable = stream.sync != SyncPolicy::None;
        (stream.source == DataSource::Memory).then_some(Measures { kind, durable, file_size: 0 })
    }
}

/// The ends of the mean's interval; `None` if it reaches zero.
fn ends(summary: &Summary) -> Option<(f64, f64)> {
    let half = summary.half_width().unwrap_or(0.0);
    let low = summary.mean - half;
    (low > 0.0).then_some((low, summary.mean + half))
}

/// The scale of the plan's sizes; 1 if the record does not contain it.
fn scale(results: &Results) -> f64 {
    results.campaign.as_ref().map_or(1.0, |campaign| campaign.plan.scale)
}

/// Files per second that an instrument needs; `None` if the recorder chooses files that are large enough.
pub(super) fn files(instrument: &Instrument) -> Option<f64> {
    let RecordingLayout { format, storing, frames_per_file, .. } = instrument.recording;
    let frames = match (format, storing) {
        (Format::Cbf, _) => Some(1),
        (_, storing) if storing.is_many_files() => frames_per_file,
        _ => None,
    };
    frames.map(|frames| instrument.frame_rate.0 * instrument.streams as f64 / frames.max(1) as f64)
}

impl LimitKind {
    /// The missing measurement.
    const fn asked(self) -> &'static str {
        match self {
            LimitKind::Written => "no sequential write was measured",
            LimitKind::Shared => "no write into a shared file was measured",
            LimitKind::Files => "no rate of making files was measured",
            LimitKind::Packed => "no rate of packing frames was measured",
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: u64| nilometer_model::Bytes(bytes);
        match self {
            Withheld::TargetGivenUp => f.write_str("Nilometer gave up the target"),
            Withheld::NotMeasured(kind) => f.write_str(kind.asked()),
            Withheld::NotRecorded => f.write_str("it was not recorded there"),
            Withheld::NotDurable(stage) => write!(f, "the stage did not make its data durable ({stage})"),
            Withheld::Invalid(stage) => write!(f, "all repeats are INVALID ({stage})"),
            Withheld::FewRepeats(stage, 1) => {
                write!(f, "1 valid repeat, and {REPEATS_LEAST} are needed ({stage})")
            }
            Withheld::FewRepeats(stage, valid) => {
                write!(f, "{valid} valid repeats, and {REPEATS_LEAST} are needed ({stage})")
            }
            Withheld::Scaled(scale) => {
                write!(f, "the plan ran at scale {scale}, too small to show the sustained rate")
            }
            Withheld::Cached(stage, data, cache) => write!(
                f,
                "{} were written at a time, and a cache took {} before it was full ({stage})",
                bytes(*data),
                bytes(*cache)
            ),
            Withheld::Bound(who) => {
                write!(
                    f,
                    "it takes at least the rate of {who}, less than needed; its highest rate is unknown"
                )
            }
            Withheld::HeldBack(who, waited) => {
                write!(f, "it takes at least the rate of {who}, less than needed; {waited}: it may take more")
            }
            Withheld::Spread(stage) => {
                write!(f, "repeats differ too much to predict from ({stage})")
            }
        }
    }
}
