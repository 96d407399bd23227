//! The cost of background loads for workloads, in reports.

use nilometer_model::Nanos;
use serde::Serialize;

use nilometer_analysis::{Interference, StageFigures, letter};

/// `write on A (block size 1 MiB)`, or without the target if there is only one.
pub(super) fn heading(stage: &StageFigures<'_>, of: &Interference) -> String {
    let mut heading = of.phase.name().to_owned();
    if stage.targets().len() > 1 {
        heading = format!("{heading} on {}", letter(of.target));
    }
    if of.workload.is_empty() { heading } else { format!("{heading} ({})", of.workload) }
}

/// The same for programs.
#[derive(Serialize)]
pub(super) struct BesideLoad<'a> {
    stage: &'a str,
    phase: &'static str,
    target: String,
    workload: &'a str,
    /// The first level at which it is significantly slower, or null.
    slower_from: Option<&'a str>,
    /// The first level at which an instrument that is the load loses frames, or null.
    instrument_loses_from: Option<&'a str>,
    levels: Vec<BesideLevel<'a>>,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct BesideLevel<'a> {
    load: &'a str,
    /// The rate with the load as a share of the rate without, with its interval.
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p99_s: Option<f64>,
    /// The rate of the load itself; null if no repeat is valid.
    load_bytes_per_second: Option<f64>,
    load_operations: u64,
    load_errors: u64,
    /// Frames due of an instrument that is the load; null for a workload.
    load_frames_due: Option<u64>,
    load_frames_lost: Option<u64>,
    load_longest_stall_s: Option<f64>,
}

pub(super) fn beside_loads<'a>(
    stage: &'a str,
    found: &'a [Interference],
    margin: f64,
) -> impl Iterator<Item = BesideLoad<'a>> {
    found.iter().map(move |of| beside_load(stage, of, margin))
}

fn beside_load<'a>(stage: &'a str, of: &'a Interference, margin: f64) -> BesideLoad<'a> {
    let levels = of.levels.iter().map(|level| {
        let ends = level.effect.map(|effect| [effect.log_ratio, effect.low, effect.high].map(f64::exp));
        let end = |index: usize| ends.map(|ends| ends[index]).filter(|ratio| ratio.is_finite());
        BesideLevel {
            load: &level.load,
            ratio: end(0),
            low: end(1),
            high: end(2),
            p99_s: level.p99.map(Nanos::seconds),
            load_bytes_per_second: (level.done.wall > Nanos(0)).then(|| level.done.rate().0),
            load_operations: level.done.operations,
            load_errors: level.done.errors,
            load_frames_due: level.done.frames.map(|frames| frames.due),
            load_frames_lost: level.done.frames.map(|frames| frames.lost),
            load_longest_stall_s: level.done.frames.map(|frames| frames.longest_stall.seconds()),
        }
    });
    BesideLoad {
        stage,
        phase: of.phase.name(),
        target: letter(of.target),
        workload: &of.workload,
        slower_from: of.slower_from(margin).map(|level| level.load.as_str()),
        instrument_loses_from: of.loses_from().map(|level| level.load.as_str()),
        levels: levels.collect(),
        sentences: of.sentences(margin),
    }
}
