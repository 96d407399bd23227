//! The report for programs. [`FORMAT_VERSION`] fixes field names and units. Fields without a value are null.

mod compared;
mod compared_cells;
mod compared_network;
mod growth;
mod incomplete;
mod packets;
mod processes;
mod told;
mod verdicts;

use std::collections::BTreeMap;

use nilometer_model::{Coldness, Nanos, Phase, statistics::Summary};
use serde::Serialize;
use serde_json::Value as Json;

use super::{
    acceptance::{AcceptedTarget, accepted},
    interference::{BesideLoad, beside_loads},
    limiting::{StageLimit, stage_limits},
    network::{machines_json, network_stages, shares_json},
    observed::observed_json,
    optimum::{ParameterEffects, parameter_effects},
    siblings::{SiblingsTold, siblings_told},
    units_in_keys::{plain, units_in_keys, with_unit},
    verdicts::{FullSpeedTold, full_speeds_told},
};
pub use compared::{COMPARISON_VERSION, compared_json};
use growth::{Growth, growths};
use incomplete::{Incomplete, incomplete};
use nilometer_analysis::{
    Basis, CellOutcome, Comparison, LimitKind, LimitSource, MeasuredLimit, Predictions, Prospect, Prospects,
    Quantity, Reason, Study, StudyStage, Withheld, Without, ceiling_of, effect::Answer, effect::Effect,
    letter,
};
use packets::{Packets, packets};
use processes::{Processes, SeenFiles, SeenLocks, processes, seen_files, seen_locks};
use told::{Told, warnings};
use verdicts::{Answered, verdicts};

/// Increase it when a field is renamed, removed or changes its meaning; not when one is added.
pub const FORMAT_VERSION: u32 = 2;

/// The document. Every number has its unit in its name: `_bytes`, `_s`, `_per_second`, `_percent`; a count has none.
/// Intervals are at 95 %.
#[derive(Serialize)]
struct Document<'a> {
    /// `nilometer-report`.
    format: &'static str,
    format_version: u32,
    title: &'a str,
    /// UTC, ISO 8601.
    started: &'a str,
    /// The version of the program that measured.
    nilometer: &'a str,
    repeats_planned: u32,
    /// No difference smaller than this counts as one.
    margin_percent: f64,
    /// The missing parts of the plan; null if there are none.
    incomplete: Option<Incomplete<'a>>,
    environment: BTreeMap<&'a str, &'a str>,
    /// Machines of the processes, the first process's machine first. The facts about that one are in
    /// `environment`.
    machines: Json,
    targets: Vec<Target<'a>>,
    /// One for each phase of each cell on each target.
    figures: Vec<Figure<'a>>,
    /// One for each phase of each stage and pair of targets.
    comparisons: Vec<Pair<'a>>,
    /// One for each phase of a workload that several targets do at once.
    elements: Vec<Growth<'a>>,
    /// One for each phase and target of a stage with several cells.
    parameters: Vec<ParameterEffects<'a>>,
    /// One for each phase, target and workload that was measured beside a load.
    beside_loads: Vec<BesideLoad<'a>>,
    /// One for each phase of a stage whose targets or workers are declared siblings.
    siblings: Vec<SiblingsTold<'a>>,
    /// One for each phase and target with known limits.
    limits: Vec<StageLimit<'a>>,
    /// One for each target; empty if the plan has no criteria.
    acceptance: Vec<AcceptedTarget<'a>>,
    verdicts: Vec<Answered>,
    /// One for each instrument and target that was recorded at full speed only.
    full_speeds: Vec<FullSpeedTold>,
    /// One for each recording of packets that came over loopback.
    packets: Vec<Packets>,
    /// One for each instrument and target.
    instruments: Vec<Expected<'a>>,
    /// One for each stage that measured the network between machines, as `nilometer network --json` has it.
    network: Vec<Json>,
    /// One for each target behind a network with results.
    network_shares: Vec<Json>,
    warnings: Vec<Told>,
    /// Machines observed during the campaign; null if there were none.
    observed: Json,
}

#[derive(Serialize)]
struct Target<'a> {
    /// The letter by which other parts of the document refer to it.
    letter: String,
    path: &'a str,
    file_system: &'a str,
    left_out: Option<&'a str>,
    /// The target's description before the campaign.
    description: Json,
}

#[derive(Serialize)]
struct Figure<'a> {
    stage: &'a str,
    cell: String,
    /// Sizes in bytes, times in seconds: their names end so.
    parameters: BTreeMap<String, Json>,
    phase: &'static str,
    target: String,
    repeats: usize,
    valid: usize,
    /// Reasons why the other repeats can't be used.
    invalid: Vec<Unusable>,
    bytes_per_second: Option<Numbers>,
    operations_per_second: Option<Numbers>,
    /// Lower bounds, if no repeat is valid because the tool itself waited for a processor.
    bytes_per_second_at_least: Option<f64>,
    operations_per_second_at_least: Option<f64>,
    /// The tool's own rate with a target that keeps nothing.
    bytes_per_second_ceiling: Option<f64>,
    operations_per_second_ceiling: Option<f64>,
    latency: Option<Latency>,
    /// Processors kept busy by this process, by the file system's own work on this machine, and by the whole
    /// machine above idle.
    cores_process: Option<f64>,
    cores_client: Option<f64>,
    cores_machine: Option<f64>,
    machine_cpu_s_per_gigabyte: Option<f64>,
    /// The mean times of a repeat: of the clock, and of this process.
    real_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
    /// `real x workers - user - system`.
    wait_s: Option<f64>,
    /// Share of the workers' time.
    wait_share: f64,
    first_worker_done_s: Option<f64>,
    last_worker_done_s: Option<f64>,
    coldness: Option<&'static str>,
    /// Visibility of files that another process wrote, in all repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<SeenFiles>,
    /// Results for a lock that processes took in turn, in all repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<SeenLocks>,
    /// Present if several processes contributed.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Processes>,
}

/// Repeats that can't be used, of one kind.
#[derive(Serialize)]
struct Unusable {
    /// Stays the same even if a later version changes the words: docs/invalid.md.
    code: &'static str,
    repeats: usize,
    /// The worst of them in words, with its figure and the limit.
    why: String,
}

/// A quantity over the valid repeats.
#[derive(Serialize)]
struct Numbers {
    mean: f64,
    /// Half the width of the mean's interval.
    half_width: Option<f64>,
    standard_error: Option<f64>,
    median: f64,
    least: f64,
    greatest: f64,
}

/// In seconds, of all valid repeats together; each is the lower end of a bucket that is at most 1.6 % wide.
#[derive(Serialize)]
struct Latency {
    #[serde(rename = "p50_s")]
    p50: f64,
    #[serde(rename = "p90_s")]
    p90: f64,
    #[serde(rename = "p99_s")]
    p99: f64,
    #[serde(rename = "p999_s")]
    p999: f64,
    #[serde(rename = "p9999_s")]
    p9999: f64,
    #[serde(rename = "max_s")]
    max: f64,
}

#[derive(Serialize)]
struct Pair<'a> {
    stage: &'a str,
    phase: &'static str,
    first: String,
    second: String,
    #[serde(flatten)]
    ratio: Ratio,
    /// Two-sided p of Student's t, for no difference between the means of rounds.
    p: f64,
    words: String,
    cells: Vec<CellPair>,
}

#[derive(Serialize)]
struct CellPair {
    cell: String,
    #[serde(flatten)]
    ratio: Ratio,
}

/// The first rate divided by the second. An end of the interval is null if too few repeats leave it open.
#[derive(Serialize)]
struct Ratio {
    #[serde(rename = "ratio")]
    mean: f64,
    low: Option<f64>,
    high: Option<f64>,
    pairs: usize,
    /// `faster`, `slower`, `alike` or `undecided`, of the first.
    answer: &'static str,
}

/// The answer for an instrument on a target: recorded, or predicted from measurements.
#[derive(Serialize)]
struct Expected<'a> {
    instrument: &'a str,
    target: String,
    bytes_per_second: f64,
    /// Keys of the instrument's file that affect this rate and have no published source.
    assumed: &'a [String],
    /// `recorded`, `predicted` or `none`.
    basis: &'static str,
    /// Null if the data do not decide.
    carried: Option<bool>,
    /// The target's rate divided by the instrument's rate.
    margin: Option<f64>,
    /// The limit behind a prediction.
    limit: Option<Limit<'a>>,
    /// Unmeasured factors that may reduce the margin: `packing`, `file_sync`, `stalls`.
    without: Vec<&'static str>,
    /// The reason why there is no prediction.
    why_not: Option<String>,
}

/// The lower end of a measured interval. One of the two rates is null, and one of stage and recording.
#[derive(Serialize)]
struct Limit<'a> {
    bytes_per_second: Option<f64>,
    files_per_second: Option<f64>,
    stage: Option<&'a str>,
    /// The instrument that was recorded.
    recording: Option<&'a str>,
    /// `written`, `shared`, `files` or `packed`: the last is of frames before they are packed.
    kind: &'static str,
}

/// The report as one JSON document; its fields are those above.
pub fn json(study: &Study<'_>) -> String {
    let results = study.results;
    let document = Document {
        format: "nilometer-report",
        format_version: FORMAT_VERSION,
        title: &results.title,
        started: &results.started,
        nilometer: &results.version,
        repeats_planned: results.repeats,
        margin_percent: results.margin,
        incomplete: incomplete(&study.missing),
        environment: results.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
        machines: machines_json(study),
        targets: targets(study),
        figures: study.stages.iter().flat_map(|stage| figures(study, stage)).collect(),
        comparisons: study.stages.iter().flat_map(|stage| pairs(study, stage)).collect(),
        elements: study.stages.iter().flat_map(|stage| growths(study, stage)).collect(),
        parameters: parameter_effects(study),
        beside_loads: beside_loads(study),
        siblings: siblings_told(study),
        limits: stage_limits(study),
        acceptance: accepted(study),
        verdicts: verdicts(study),
        full_speeds: full_speeds_told(study),
        packets: packets(study),
        instruments: instruments(&study.predictions),
        network: network_stages(study),
        network_shares: shares_json(study),
        warnings: warnings(study),
        observed: observed_json(study),
    };
    serde_json::to_string_pretty(&document).expect("all keys are texts") + "\n"
}

fn targets<'a>(study: &Study<'a>) -> Vec<Target<'a>> {
    let targets = study.results.targets.iter().enumerate();
    let targets = targets.map(|(index, target)| Target {
        letter: letter(index),
        path: &target.path,
        file_system: &target.file_system,
        left_out: target.left_out.as_deref(),
        description: units_in_keys(serde_json::to_value(&target.description).unwrap_or(Json::Null)),
    });
    targets.collect()
}

fn figures<'a>(study: &'a Study<'_>, stage: &'a StudyStage<'_>) -> Vec<Figure<'a>> {
    stage.outcomes.iter().map(|outcome| figure(study, stage, outcome)).collect()
}

fn figure<'a>(study: &'a Study<'_>, stage: &'a StudyStage<'_>, outcome: &'a CellOutcome<'_>) -> Figure<'a> {
    let parameters = stage.cell(outcome.cell).map(|cell| &cell.parameters).into_iter().flatten();
    let cores = outcome.cores;
    let ceiling = ceiling_of(study.results, outcome);
    Figure {
        stage: stage.name,
        cell: study.results.cells[outcome.cell].to_string(),
        parameters: parameters.map(|(name, value)| (with_unit(name, value), plain(value))).collect(),
        phase: outcome.phase.name(),
        target: letter(outcome.target),
        repeats: outcome.samples.len(),
        valid: outcome.valid,
        invalid: outcome.invalid.iter().map(unusable).collect(),
        bytes_per_second: outcome.rate.as_ref().map(numbers),
        operations_per_second: outcome.operations.as_ref().map(numbers),
        bytes_per_second_at_least: outcome.lower_bound(Quantity::Bytes),
        operations_per_second_at_least: outcome.lower_bound(Quantity::Operations),
        bytes_per_second_ceiling: ceiling.map(|sample| Quantity::Bytes.of(sample)),
        operations_per_second_ceiling: ceiling.map(|sample| Quantity::Operations.of(sample)),
        latency: latency(outcome),
        cores_process: cores.map(|cores| cores.own),
        cores_client: cores.map(|cores| cores.client),
        cores_machine: cores.map(|cores| cores.machine),
        machine_cpu_s_per_gigabyte: cores.and_then(|cores| cores.for_gigabyte),
        real_s: outcome.times.map(|times| times.real.seconds()),
        user_s: outcome.times.map(|times| times.user.seconds()),
        system_s: outcome.times.map(|times| times.system.seconds()),
        wait_s: outcome.times.map(|times| times.wait.seconds()),
        wait_share: outcome.wait,
        first_worker_done_s: outcome.finished.map(|(first, _)| first.seconds()),
        last_worker_done_s: outcome.finished.map(|(_, last)| last.seconds()),
        coldness: outcome.coldness.map(Coldness::name),
        seen: seen_files(outcome),
        locks: seen_locks(outcome),
        processes: processes(outcome, stage.quantity(outcome)),
    }
}

fn unusable(reason: &Reason) -> Unusable {
    Unusable { code: reason.worst.code(), repeats: reason.count, why: reason.to_string() }
}

fn numbers(summary: &Summary) -> Numbers {
    Numbers {
        mean: summary.mean,
        half_width: summary.half_width(),
        standard_error: summary.sem,
        median: summary.median,
        least: summary.range.0,
        greatest: summary.range.1,
    }
}

fn latency(outcome: &CellOutcome<'_>) -> Option<Latency> {
    let quantile = |fraction| outcome.quantile(fraction).map(Nanos::seconds);
    Some(Latency {
        p50: quantile(0.5)?,
        p90: quantile(0.9)?,
        p99: quantile(0.99)?,
        p999: quantile(0.999)?,
        p9999: quantile(0.9999)?,
        max: quantile(1.0)?,
    })
}

fn pairs<'a>(study: &'a Study<'_>, stage: &'a StudyStage<'_>) -> Vec<Pair<'a>> {
    let all = stage
        .questions
        .iter()
        .flat_map(|question| question.comparisons.iter().map(move |comparison| (question.phase, comparison)));
    all.map(|(phase, comparison)| pair(study, stage.name, phase, comparison)).collect()
}

fn pair<'a>(study: &Study<'_>, stage: &'a str, phase: Phase, comparison: &Comparison) -> Pair<'a> {
    let margin = study.results.margin;
    let first = letter(comparison.first);
    let second = letter(comparison.second);
    let cells = comparison.cells.iter().map(|(cell, effect)| CellPair {
        cell: study.results.cells[*cell].to_string(),
        ratio: ratio(effect, margin),
    });
    Pair {
        stage,
        phase: phase.name(),
        ratio: ratio(&comparison.effect, margin),
        p: comparison.p,
        words: comparison.words(margin, &first, &second),
        cells: cells.collect(),
        first,
        second,
    }
}

fn ratio(effect: &Effect, margin: f64) -> Ratio {
    let end = |log: f64| log.is_finite().then(|| log.exp());
    Ratio {
        mean: effect.log_ratio.exp(),
        low: end(effect.low),
        high: end(effect.high),
        pairs: effect.pairs,
        answer: match effect.answer(margin) {
            Answer::Faster => "faster",
            Answer::Slower => "slower",
            Answer::Alike => "alike",
            Answer::Undecided => "undecided",
        },
    }
}

fn instruments(predictions: &Predictions) -> Vec<Expected<'_>> {
    let all = predictions.rows.iter().flat_map(|row| {
        let on = row.on.iter().enumerate();
        on.map(move |(target, prospect)| (row, target, prospect))
    });
    all.map(|(row, target, prospect)| expected(predictions, row, target, prospect)).collect()
}

fn expected<'a>(
    predictions: &'a Predictions,
    row: &'a Prospects,
    target: usize,
    prospect: &'a Result<Prospect, Withheld>,
) -> Expected<'a> {
    let known = prospect.as_ref().ok();
    let why_not = prospect.as_ref().err();
    let (basis, limit) = match known.map(|prospect| prospect.basis) {
        Some(Basis::Recorded) => ("recorded", None),
        Some(Basis::Predicted(limit)) => ("predicted", predictions.limits.get(limit).map(Limit::of)),
        None => ("none", None),
    };
    let without = |without: &Without| match without {
        Without::Packing => "packing",
        Without::FileSync => "file_sync",
        Without::Stalls => "stalls",
    };
    Expected {
        instrument: &row.instrument,
        target: letter(target),
        bytes_per_second: row.rate.0,
        assumed: &row.assumed,
        basis,
        carried: known.and_then(|prospect| prospect.carried),
        margin: known.and_then(|prospect| prospect.margin),
        limit,
        without: known.map(|prospect| prospect.without.iter().map(without).collect()).unwrap_or_default(),
        why_not: why_not.map(ToString::to_string),
    }
}

impl<'a> Limit<'a> {
    fn of(limit: &'a MeasuredLimit) -> Self {
        let is_files = limit.kind == LimitKind::Files;
        Limit {
            bytes_per_second: (!is_files).then_some(limit.value),
            files_per_second: is_files.then_some(limit.value),
            stage: if let LimitSource::Stage(stage) = &limit.from { Some(stage) } else { None },
            recording: if let LimitSource::Recording(who) = &limit.from { Some(who) } else { None },
            kind: match limit.kind {
                LimitKind::Written => "written",
                LimitKind::Shared => "shared",
                LimitKind::Files => "files",
                LimitKind::Packed => "packed",
            },
        }
    }
}
