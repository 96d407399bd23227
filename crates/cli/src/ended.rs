//! The exit code of a campaign, so that a script has the answer without reading the report.

use std::path::Path;

use anyhow::anyhow;
use nilometer_analysis::{Decision, Study, Verdict};
use nilometer_model::{Invalid, NetworkSample};
use nilometer_plan::{Measured, Results};

use crate::{Failure, Outcome, acceptance, explained, tell};

/// The outcome of a campaign. A lost frame is an answer, whichever other faults there are. Without one, a
/// fault comes before an open question: without the fault there might be an answer. `missing` repeats were
/// not measured.
pub(crate) fn ended(study: &Study<'_>, missing: usize, record: &Path) -> Outcome {
    let why = not_carried(study).map(Failure::NotCarried);
    let why = why.or_else(|| fault(study.results, missing, record).map(Failure::Run));
    let why = why.or_else(|| not_decided(study).map(Failure::NotDecided));
    why.map_or(Ok(()), Err)
}

/// The outcome of a finished campaign. If its plan has criteria, they decide, and their page is written.
pub(crate) fn ended_whole(study: &Study<'_>, record: &Path) -> Outcome {
    if study.acceptance.is_empty() {
        return ended(study, 0, record);
    }
    match acceptance::write_page(study, record) {
        Ok(page) => tell::result_line(format_args!("Acceptance: {}", page.display())),
        Err(error) => {
            tell::note(format_args!("no page of the acceptance was written: {}", explained(&error)));
        }
    }
    acceptance::outcome(study).and_then(|()| ended_besides(study, record))
}

/// The outcome if all criteria are met: recordings besides the criteria, and faults, still count.
fn ended_besides(study: &Study<'_>, record: &Path) -> Outcome {
    let why = lost_of(study, |verdict| verdict.stages.is_empty()).map(Failure::NotCarried);
    let why = why.or_else(|| fault(study.results, 0, record).map(Failure::Run));
    why.map_or(Ok(()), Err)
}

/// The first instrument that lost frames, and its target.
fn not_carried(study: &Study<'_>) -> Option<anyhow::Error> {
    lost_of(study, |_| true)
}

fn lost_of(study: &Study<'_>, is_asked: impl Fn(&Verdict) -> bool) -> Option<anyhow::Error> {
    let is_lost = |verdict: &&Verdict| verdict.decision() == Decision::DoesNotCarry && is_asked(verdict);
    let verdict = study.verdicts.iter().find(is_lost)?;
    let path = &study.results.targets.get(verdict.target)?.path;
    Some(anyhow!("{path} does not carry {}: the report says why", verdict.who()))
}

/// The first fault of the storage or of the campaign.
fn fault(results: &Results, missing: usize, record: &Path) -> Option<anyhow::Error> {
    let failed = results.samples.iter().filter(|measured| has_failed(measured)).count();
    let all = results.samples.len();
    if failed > 0 {
        return Some(anyhow!("{failed} of {all} samples failed: the report says which"));
    }
    if let Some(target) = results.targets.iter().find(|target| target.left_out.is_some()) {
        return Some(anyhow!("{} was left out: the report says why", target.path));
    }
    let of_network = || results.network.iter().flat_map(|stage| &stage.results.samples);
    if let Some(why) = of_network().find_map(NetworkSample::failed) {
        let failed = of_network().filter(|sample| sample.failed().is_some()).count();
        let all = of_network().count();
        return Some(anyhow!("{failed} of {all} trials of the network failed: {why}"));
    }
    let record = record.display();
    (missing > 0).then(|| {
        anyhow!(
            "interrupted: {missing} measurements are missing; `nilometer evaluate --resume --record {record}` goes on"
        )
    })
}

fn has_failed(measured: &Measured) -> bool {
    let invalid = &measured.sample.invalid;
    matches!(invalid, Some(Invalid::Hung | Invalid::Errors | Invalid::Wrong | Invalid::Refused(_)))
}

/// The first question without an answer: an instrument. Without instruments, a stage in which every figure is
/// invalid.
fn not_decided(study: &Study<'_>) -> Option<anyhow::Error> {
    let open = study.verdicts.iter().find(|verdict| verdict.decision() == Decision::NotDecided);
    let open = open.map(|verdict| (verdict.target, verdict.who()));
    let open =
        open.or_else(|| study.missing.open.first().map(|open| (open.target, open.instrument.to_string())));
    if let Some((target, who)) = open {
        let path = study.results.targets.get(target).map_or("", |target| &target.path);
        return Some(anyhow!("it is not decided whether {path} carries {who}: the report says why"));
    }
    let is_invalid = |stage: &&nilometer_analysis::StudyStage<'_>| {
        stage.figures.outcomes.iter().all(|outcome| outcome.valid == 0)
    };
    let stage = study.stages.iter().filter(|_| study.verdicts.is_empty()).find(is_invalid)?;
    Some(anyhow!("every figure of {} is INVALID: the report says why", stage.figures.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Bytes, Goal, Ingest, Instrument, Nanos, Phase, Sample};
    use nilometer_plan::{Cell, Key, RecordingRun, TargetEntry, parse};

    /// Results with a recording at the pace of each of these instruments: the frames that it lost, and its
    /// fault if any.
    fn results(recordings: &[(&str, u64, Option<Invalid>)]) -> Results {
        let target = TargetEntry { path: "/data".into(), ..TargetEntry::default() };
        let mut results = Results { targets: vec![target], ..Results::default() };
        for (cell, (instrument, lost, invalid)) in recordings.iter().enumerate() {
            let camera = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                          frame_rate = \"100 Hz\"\n";
            let camera = Instrument::parse(camera, "camera").expect("valid");
            let run = RecordingRun::new(Instrument { name: (*instrument).into(), ..camera });
            results.cells.push(Cell::recording(*instrument, run));
            let period = Nanos::from_millis(10);
            let ingest = Ingest {
                count: 1,
                goal: Goal::Pace,
                period,
                frame_size: Bytes(1_000_000),
                due: 4000,
                stored: 4000 - lost,
                lost: *lost,
                duration: Nanos(4000 * period.0),
                ..Ingest::default()
            };
            let key = Key { target: 0, cell, repeat: 0, phase: Phase::Ingest };
            let sample = Sample {
                wall: ingest.duration,
                ingest: Some(ingest),
                invalid: invalid.clone(),
                ..Sample::new(Nanos(0))
            };
            results.samples.push(Measured { key, sample });
        }
        results
    }

    fn code(results: &Results, missing: usize) -> u8 {
        let study = Study::of(results);
        crate::code(ended(&study, missing, Path::new("evaluation.sqlite")))
    }

    #[test]
    fn a_lost_frame_is_an_answer_and_a_fault_leaves_the_question_open() {
        let [hung, starved] = [Invalid::Hung, Invalid::Starved(None)].map(Some);
        for (recordings, missing, expected) in [
            (&[("a", 0, starved.clone())][..], 0, 4),
            (&[("a", 0, None), ("b", 0, starved.clone())], 0, 4),
            (&[("a", 9, None)], 0, 3),
            (&[("a", 9, None), ("b", 0, starved.clone())], 0, 3),
            (&[("a", 9, None), ("b", 0, hung.clone())], 2, 3),
            (&[("a", 0, starved.clone()), ("b", 0, hung)], 0, 1),
            (&[("a", 0, starved)], 1, 1),
        ] {
            assert_eq!(code(&results(recordings), missing), expected, "{recordings:?}, {missing} missing");
        }
    }

    const WALK: &str = "[stage.workload.walk]\nlevels = 1\nbranching = 2\nfiles = 10\n";

    #[test]
    fn figures_without_a_question_are_enough_unless_a_stage_has_none() {
        let invalid = |all: bool| {
            let mut results = results(&[]);
            for (cell, name) in ["files", "trees"].into_iter().enumerate() {
                let plan = format!("title = \"t\"\n[[stage]]\nname = \"{name}\"\n{WALK}");
                results.cells.extend(parse(&plan, "t.toml", 1.0).expect("a valid plan").cells);
                let key = Key { target: 0, cell, repeat: 0, phase: Phase::Write };
                let invalid = (all && cell == 1).then_some(Invalid::Starved(None));
                let sample = Sample {
                    bytes: 1_000_000_000,
                    operations: 1000,
                    wall: Nanos::from_millis(1000),
                    invalid,
                    ..Sample::new(Nanos(0))
                };
                results.samples.push(Measured { key, sample });
            }
            results
        };
        assert_eq!([false, true].map(|all| code(&invalid(all), 0)), [0, 4]);
    }
}
