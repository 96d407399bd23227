//! The findings of stages, for programs: a list for each kind of finding, over all stages.

use std::collections::BTreeMap;

use nilometer_model::{Coldness, Nanos, Phase};
use nilometer_plan::Results;
use serde::Serialize;
use serde_json::Value as Json;

use super::{
    Numbers, Ratio, Unusable,
    growth::{Growth, growths},
    numbers,
    processes::{Processes, SeenFiles, SeenLocks, processes, seen_files, seen_locks},
    ratio, unusable,
};
use crate::{
    interference::{BesideLoad, beside_loads},
    limiting::{StageLimit, stage_limits},
    optimum::{ParameterEffects, parameter_effects},
    siblings::{SiblingsTold, siblings_told},
    units_in_keys::{plain, with_unit},
};
use nilometer_analysis::{
    CellOutcome, Comparison, NearestCeiling, Quantity, Question, StageFigures, StudyStage, ceiling_of, letter,
};

/// The findings of all stages, a list each.
#[derive(Serialize, Default)]
pub(super) struct StageLists<'a> {
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
    /// One for each stage whose ceiling was measured: the figure that is closest to the tool's own rate.
    nearest_ceilings: Vec<CeilingFigure<'a>>,
}

/// A figure beside the tool's own rate.
#[derive(Serialize)]
struct CeilingFigure<'a> {
    stage: &'a str,
    cell: String,
    phase: &'static str,
    target: String,
    /// The tool's own rate as a multiple of the figure, the mean over repeats.
    times: f64,
    /// True if the tool was done so soon that with more work it would be faster.
    at_least: bool,
    /// True if the tool may limit the figure.
    is_near: bool,
    sentence: String,
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

impl<'a> StageLists<'a> {
    pub(super) fn of(results: &'a Results, stages: &'a [StudyStage<'_>]) -> Self {
        let mut lists = StageLists::default();
        for stage in stages {
            lists.add(results, stage);
        }
        lists
    }

    /// A finding of a stage without a list is an unused variable, and does not compile.
    #[deny(unused_variables)]
    fn add(&mut self, results: &'a Results, stage: &'a StudyStage<'_>) {
        let StudyStage { figures: of, ceiling, growths: by_count, optima, interferences, siblings, limits } =
            stage;
        // Each figure has its parameters.
        let StageFigures { name, common: _, varying: _, cells: _, outcomes, questions } = of;
        let margin = results.margin;
        self.figures.extend(outcomes.iter().map(|outcome| figure(results, of, outcome)));
        self.comparisons.extend(questions.iter().flat_map(|question| pairs(results, name, question)));
        self.elements.extend(growths(name, by_count, margin));
        self.parameters.extend(parameter_effects(name, optima));
        self.beside_loads.extend(beside_loads(name, interferences, margin));
        self.siblings.extend(siblings_told(name, siblings, margin));
        self.limits.extend(stage_limits(name, limits));
        self.nearest_ceilings.extend(ceiling.map(|ceiling| ceiling_figure(results, of, ceiling)));
    }
}

fn ceiling_figure<'a>(
    results: &Results,
    stage: &StageFigures<'a>,
    nearest: NearestCeiling,
) -> CeilingFigure<'a> {
    CeilingFigure {
        stage: stage.name,
        cell: results.cells[nearest.cell].to_string(),
        phase: nearest.phase.name(),
        target: letter(nearest.target),
        times: nearest.times,
        at_least: nearest.at_least,
        is_near: nearest.is_near(),
        sentence: nearest.words(stage),
    }
}

fn figure<'a>(results: &'a Results, stage: &'a StageFigures<'_>, outcome: &'a CellOutcome<'_>) -> Figure<'a> {
    let parameters = stage.cell(outcome.cell).map(|cell| &cell.parameters).into_iter().flatten();
    let cores = outcome.cores;
    let ceiling = ceiling_of(results, outcome);
    Figure {
        stage: stage.name,
        cell: results.cells[outcome.cell].to_string(),
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

fn pairs<'a>(results: &'a Results, stage: &'a str, question: &'a Question) -> impl Iterator<Item = Pair<'a>> {
    question.comparisons.iter().map(move |comparison| pair(results, stage, question.phase, comparison))
}

fn pair<'a>(results: &Results, stage: &'a str, phase: Phase, comparison: &Comparison) -> Pair<'a> {
    let margin = results.margin;
    let first = letter(comparison.first);
    let second = letter(comparison.second);
    let cells = comparison.cells.iter().map(|(cell, effect)| CellPair {
        cell: results.cells[*cell].to_string(),
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
