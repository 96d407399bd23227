//! The report for programs. [`FORMAT_VERSION`] fixes field names and units. Fields without a value are null.

mod compared;
mod compared_cells;
mod compared_network;
mod growth;
mod incomplete;
mod packets;
mod papers;
mod processes;
mod recordings;
mod stages;
mod told;
mod verdicts;

use std::collections::BTreeMap;

use nilometer_model::statistics::Summary;
use nilometer_plan::Results;
use serde::Serialize;
use serde_json::Value as Json;

use super::{
    acceptance::{AcceptedTarget, accepted},
    migration::{MigrationTold, migration_told},
    network::{machines_json, network_stages, shares_json},
    observed::observed_json,
    units_in_keys::units_in_keys,
    verdicts::{FullSpeedTold, full_speeds_told},
};
pub use compared::{COMPARISON_VERSION, compared_json};
use incomplete::{Incomplete, incomplete};
use nilometer_analysis::{
    Basis, LimitKind, LimitSource, MeasuredLimit, Predictions, Prospect, Prospects, Reason, Study, Withheld,
    Without, effect::Answer, effect::Effect, letter,
};
use packets::{PacketCurve, Packets, packet_curve, packets};
use papers::{StudyTables, study_tables};
use recordings::{InstrumentRecordings, instrument_recordings};
use stages::StageLists;
use told::{Told, told};
use verdicts::{Answered, answered};

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
    #[serde(flatten)]
    stages: StageLists<'a>,
    /// One for each target; empty if the plan has no criteria.
    acceptance: Vec<AcceptedTarget<'a>>,
    verdicts: Vec<Answered>,
    /// One for each instrument that was recorded, or several together.
    recordings: Vec<InstrumentRecordings>,
    /// One for each instrument and target that was recorded at full speed only.
    full_speeds: Vec<FullSpeedTold>,
    /// One for each recording of packets that came over loopback.
    packets: Vec<Packets>,
    /// One for each size of packets at several rates, on each target.
    packet_curves: Vec<PacketCurve>,
    /// One for each instrument and target.
    instruments: Vec<Expected<'a>>,
    /// One for each stage that measured the network between machines, as `nilometer network --json` has it.
    network: Vec<Json>,
    /// One for each target behind a network with results.
    network_shares: Vec<Json>,
    warnings: Vec<Told>,
    /// Machines observed during the campaign; null if there were none.
    observed: Json,
    /// One for each stage in which a load copied from a target to other storage.
    migrations: Vec<MigrationTold<'a>>,
    /// One for each published study that the campaign measured again or was imported from.
    papers: Vec<StudyTables<'a>>,
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

/// The report as one JSON document; its fields are those above. A finding of a study without a field is an unused
/// variable, and does not compile.
#[deny(unused_variables)]
pub fn json(study: &Study<'_>) -> String {
    let Study {
        results,
        stages,
        recordings,
        curves,
        acceptance,
        verdicts,
        full_speeds,
        predictions,
        network_shares,
        missing,
        warnings,
        observed,
        migrations,
        papers,
    } = study;
    let document = Document {
        format: "nilometer-report",
        format_version: FORMAT_VERSION,
        title: &results.title,
        started: &results.started,
        nilometer: &results.version,
        repeats_planned: results.repeats,
        margin_percent: results.margin,
        incomplete: incomplete(missing),
        environment: results.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
        machines: machines_json(results),
        targets: targets(results),
        stages: StageLists::of(results, stages),
        acceptance: accepted(acceptance),
        verdicts: verdicts.iter().map(answered).collect(),
        recordings: recordings.iter().map(|recording| instrument_recordings(results, recording)).collect(),
        full_speeds: full_speeds_told(full_speeds),
        packets: packets(results),
        packet_curves: curves.iter().map(packet_curve).collect(),
        instruments: instruments(predictions),
        network: network_stages(results),
        network_shares: shares_json(network_shares),
        warnings: told(warnings),
        observed: observed_json(observed.as_ref()),
        migrations: migrations.iter().map(migration_told).collect(),
        papers: papers.iter().map(study_tables).collect(),
    };
    serde_json::to_string_pretty(&document).expect("all keys are texts") + "\n"
}

fn targets(results: &Results) -> Vec<Target<'_>> {
    let targets = results.targets.iter().enumerate();
    let targets = targets.map(|(index, target)| Target {
        letter: letter(index),
        path: &target.path,
        file_system: &target.file_system,
        left_out: target.left_out.as_deref(),
        description: units_in_keys(serde_json::to_value(&target.description).unwrap_or(Json::Null)),
    });
    targets.collect()
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
