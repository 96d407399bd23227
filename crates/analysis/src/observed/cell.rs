//! The use of machines while a phase of a cell was measured. It is the mean and maximum over spans between looks
//! that lie wholly within a repeat.

use nilometer_model::{Goal, Phase, observed::ObservedRange};
use nilometer_plan::{Measured, Results};

use super::{
    CellUse, MachineUse, MeasuredPhases, ObservedMachine,
    imbalance::{UnevenUse, uneven},
    limit::{ResourceAtLimit, resources},
};
use crate::{CellOutcome, StageFigures, StudyRecording, letter};

/// A measured phase of a cell on a target, over its repeats, with the observed machines.
#[derive(Debug, Clone)]
pub struct ObservedCell {
    /// Its name: stage, phase, parameters, target.
    pub what: String,
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The time of each repeat, by the clock of the machine that measured.
    pub repeats: Vec<ObservedRange>,
    /// The use by machine, without machines that have no look within a repeat.
    pub seen: Vec<MachineUse>,
    /// The resources with the highest use relative to their capacity, the fullest first.
    pub resources: Vec<ResourceAtLimit>,
    /// Uneven use among equals.
    pub uneven: Vec<UnevenUse>,
}

/// The time of a sample; `None` if unknown.
pub fn sample_range(measured: &Measured) -> Option<ObservedRange> {
    let sample = &measured.sample;
    let is_known = sample.started.0 > 0 && sample.wall.0 > 0;
    is_known.then(|| ObservedRange { from: sample.started, to: sample.started + sample.wall })
}

/// The time from the first sample of a campaign to the end of the last; `None` if no sample has a known time.
pub fn measured_range(results: &Results) -> Option<ObservedRange> {
    results.samples.iter().filter_map(sample_range).reduce(ObservedRange::and)
}

/// All measured phases, in the order of the report.
pub(super) fn cells(
    results: &Results,
    phases: &MeasuredPhases<'_>,
    machines: &[ObservedMachine],
) -> Vec<ObservedCell> {
    let of_stages = phases.stages.iter().flat_map(|stage| {
        let of = |outcome: &CellOutcome<'_>| of_outcome(results, stage, outcome);
        stage.outcomes.iter().filter_map(of).collect::<Vec<_>>()
    });
    let of_recordings = phases.recordings.iter().flat_map(|recording| recorded(results, recording));
    let found = of_stages.chain(of_recordings);
    found.map(|measured| observed(measured, results, machines)).collect()
}

/// A phase to be matched with the looks.
struct MeasuredRanges {
    what: String,
    target: usize,
    repeats: Vec<ObservedRange>,
}

fn of_outcome(
    results: &Results,
    stage: &StageFigures<'_>,
    outcome: &CellOutcome<'_>,
) -> Option<MeasuredRanges> {
    let usable: Vec<ObservedRange> = outcome.usable().filter_map(sample_range).collect();
    // The use of machines is valid even if the figures are not.
    let invalid = if usable.is_empty() { "INVALID" } else { "" };
    let all = outcome.samples.iter().filter_map(|measured| sample_range(measured));
    let repeats = if usable.is_empty() { all.collect() } else { usable };
    let label = stage.cell(outcome.cell).map_or("", |cell| cell.label.as_str());
    let parts =
        [stage.name, outcome.phase.name(), label, invalid].into_iter().filter(|part| !part.is_empty());
    let what = on_target(results, parts.collect::<Vec<_>>().join(", "), outcome.target);
    (!repeats.is_empty()).then_some(MeasuredRanges { what, target: outcome.target, repeats })
}

fn on_target(results: &Results, what: String, target: usize) -> String {
    if results.targets.len() > 1 { format!("{what}, on {}", letter(target)) } else { what }
}

/// A recording at its own rate, and at full speed; the trials of a search all have different rates.
fn recorded(results: &Results, recording: &StudyRecording<'_>) -> Vec<MeasuredRanges> {
    let mut targets: Vec<usize> = recording.samples.iter().map(|measured| measured.key.target).collect();
    targets.dedup();
    let goals = [(Goal::Pace, "at its own pace"), (Goal::Limit, "at full speed")];
    let mut found = Vec::new();
    for target in targets {
        for (goal, words) in goals {
            let repeats = ranges_of(recording, goal, target);
            let what = format!("{}, {}, {words}", Phase::Ingest.name(), recording.instrument);
            let what = on_target(results, what, target);
            found.extend((!repeats.is_empty()).then_some(MeasuredRanges { what, target, repeats }));
        }
    }
    found
}

fn ranges_of(recording: &StudyRecording<'_>, goal: Goal, target: usize) -> Vec<ObservedRange> {
    let is_meant = |measured: &&&Measured| {
        let is_goal = measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == goal);
        is_goal && measured.key.target == target && measured.sample.invalid.is_none()
    };
    recording.samples.iter().filter(is_meant).filter_map(|measured| sample_range(measured)).collect()
}

fn observed(measured: MeasuredRanges, results: &Results, machines: &[ObservedMachine]) -> ObservedCell {
    let MeasuredRanges { what, target, repeats } = measured;
    let seen: Vec<MachineUse> =
        machines.iter().enumerate().filter_map(|(number, machine)| used(number, machine, &repeats)).collect();
    let resources = resources(&seen, machines);
    let uneven = uneven(&seen, machines, results);
    ObservedCell { what, target, repeats, seen, resources, uneven }
}

/// The indices of the spans within a repeat.
fn spans_within(machine: &ObservedMachine, repeat: ObservedRange) -> Vec<usize> {
    let spans = machine.series.spans.iter().enumerate();
    spans.filter(|(_, span)| repeat.holds(**span)).map(|(number, _)| number).collect()
}

fn used(number: usize, machine: &ObservedMachine, repeats: &[ObservedRange]) -> Option<MachineUse> {
    let within: Vec<Vec<usize>> = repeats.iter().map(|repeat| spans_within(machine, *repeat)).collect();
    let within: Vec<Vec<usize>> = within.into_iter().filter(|spans| !spans.is_empty()).collect();
    if within.is_empty() {
        return None;
    }
    let uses = machine.series.uses.iter().filter_map(|of| {
        let means: Vec<f64> = within.iter().filter_map(|spans| mean(machine, &of.values, spans)).collect();
        let all = within.iter().flatten().map(|span| of.values[*span]).filter(|value| value.is_finite());
        Some(CellUse {
            key: of.key.clone(),
            mean: median(means)?,
            most: all.fold(f64::NEG_INFINITY, f64::max),
        })
    });
    let spans = within.iter().map(Vec::len).sum();
    Some(MachineUse { machine: number, spans, repeats: within.len(), uses: uses.collect() })
}

/// The mean over the time of these spans, as far as there are values.
fn mean(machine: &ObservedMachine, values: &[f64], spans: &[usize]) -> Option<f64> {
    let mut time = 0.0;
    let mut sum = 0.0;
    for &span in spans.iter().filter(|span| values[**span].is_finite()) {
        let seconds = machine.series.spans[span].length().seconds();
        time += seconds;
        sum += seconds * values[span];
    }
    (time > 0.0).then_some(sum / time)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
