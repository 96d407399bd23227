//! Acceptance of made-up recordings and workloads.

use super::*;
use nilometer_model::{Bytes, DeviceTraffic, Goal, Histogram, Ingest, Nanos, Phase};
use nilometer_plan::{Group, Key, PlannedCampaign, TargetEntry, parse_with};

use crate::{
    Study, conclusions,
    made_up::{camera, described},
};

const PLAN: &str = r#"
title = "an offer"
repeats = 4
[[stage]]
name = "files"
workers = [1, 2]
[stage.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "best"
[accept]
price = ["184 000 EUR"]
[[accept.stage]]
name = "files"
phase = "write"
rate = "200 MB/s"
p99 = "20 ms"
cores = { client = 0.5 }
[[accept.instrument]]
name = "camera"
duration = "10 s"
longest_stall = "500 ms"
durable = "2 s"
cores = { process = 1 }
sync_flushes = true
"#;

/// A recording that met all criteria, and cells with 250 MB/s.
fn results(plan: &str) -> Results {
    let plan = parse_with(plan, "t.toml", 1.0, &|_| Ok(camera("camera").instrument)).expect("a valid plan");
    let target = TargetEntry { path: "/offer".into(), ..TargetEntry::default() };
    let mut results = Results {
        cells: plan.cells.clone(),
        repeats: plan.repeats,
        campaign: Some(PlannedCampaign::new(plan, vec![described("/offer")])),
        targets: vec![target],
        ..Results::default()
    };
    for cell in 0..results.cells.len() {
        let Some(run) = results.cells[cell].as_recording().cloned() else {
            for repeat in 0..4 {
                let sample = workload(250_000_000 + 1_000_000 * u64::from(repeat));
                results.samples.push(measured(cell, repeat, Phase::Write, sample));
            }
            let mut latency = Histogram::default();
            (0..1000).for_each(|_| latency.add(3_000_000));
            results.latencies.insert(Group { cell, phase: Phase::Write, target: 0 }, latency);
            continue;
        };
        for repeat in 0..run.repeats {
            results.samples.push(measured(cell, repeat, Phase::Ingest, recording(run.goal)));
        }
    }
    results
}

fn measured(cell: usize, repeat: u32, phase: Phase, sample: Sample) -> Measured {
    Measured { key: Key { target: 0, cell, repeat, phase }, sample }
}

fn workload(bytes: u64) -> Sample {
    let wall = Nanos::from_millis(1000);
    Sample { bytes, operations: 250, wall, client: Nanos::from_millis(200), ..Sample::new(Nanos(0)) }
}

fn recording(goal: Goal) -> Sample {
    let mut ingest = Ingest {
        count: 1,
        goal,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(10),
        due: 1000,
        stored: 1000,
        longest_stall: Nanos::from_millis(80),
        duration: Nanos::from_millis(10_000),
        ..Ingest::default()
    };
    (0..1000).for_each(|_| ingest.durable.add(1_000_000_000));
    let mut sample = Sample {
        bytes: 1_000_000_000,
        wall: Nanos::from_millis(10_000),
        user: Nanos::from_millis(3000),
        device: Some(DeviceTraffic { written: 1_000_000_000, flushes: Some(12), ..DeviceTraffic::default() }),
        ingest: Some(ingest),
        ..Sample::new(Nanos(0))
    };
    for piece in 0..1000 {
        sample.series.add(Nanos::from_millis(10 * piece), 3_000_000);
    }
    sample
}

/// The answer, and the reason of the first criterion that is not met.
fn judged(results: &Results) -> (AcceptanceAnswer, String) {
    let verdicts = acceptance(results);
    let [verdict] = verdicts.as_slice() else { panic!("one target: {verdicts:?}") };
    (verdict.answer(), verdict.reason().map(|reason| reason.found.clone()).unwrap_or_default())
}

fn changed(change: impl Fn(&mut Sample)) -> Results {
    let mut results = results(PLAN);
    let recording = results.samples.iter_mut().find(|measured| measured.sample.ingest.is_some());
    change(&mut recording.expect("one was made").sample);
    results
}

fn changed_ingest(change: impl Fn(&mut Ingest)) -> Results {
    changed(|sample| change(sample.ingest.as_mut().expect("a recording")))
}

#[test]
fn all_criteria_that_are_met_are_a_pass_with_what_was_found() {
    let results = results(PLAN);
    assert_eq!(judged(&results), (AcceptanceAnswer::Pass, String::new()));
    let verdicts = acceptance(&results);
    assert_eq!(verdicts[0].price.as_deref(), Some("184 000 EUR"));
    let told: Vec<String> = verdicts[0].criteria.iter().map(ToString::to_string).collect();
    let recorded = "met: camera for 10 s: ";
    assert_eq!(told[3], format!("{recorded}nothing is lost: none of 1000 frames in 10 s"));
    assert_eq!(told[4], format!("{recorded}no stall longer than 500 ms: the longest was 80 ms"));
    assert!(told[6].ends_with("at most 1 core of this program: 0.30 cores"), "{}", told[6]);
    assert!(told[7].ends_with("at least 12 flushes at the device"), "{}", told[7]);
    assert!(acceptance(&Results::default()).is_empty(), "nothing is demanded of other records");
}

#[test]
fn one_criterion_that_is_not_met_is_a_fail_with_its_reason() {
    for (results, part) in [
        (changed_ingest(|ingest| (ingest.lost, ingest.stored) = (3, 997)), "3 of 1000 frames in 10 s"),
        (changed_ingest(|ingest| ingest.longest_stall = Nanos::from_millis(700)), "the longest was 700 ms"),
        (
            changed_ingest(|ingest| (0..500).for_each(|_| ingest.durable.add(3_000_000_000))),
            "66.67 % within it",
        ),
        (changed(|sample| sample.system = Nanos::from_millis(9000)), "1.20 cores"),
        (
            changed(|sample| {
                sample.device = Some(DeviceTraffic { flushes: Some(0), ..DeviceTraffic::default() });
            }),
            "got no flush of its cache",
        ),
        (
            changed(|sample| sample.invalid = Some(Invalid::Wrong)),
            "did not find the frames that were written",
        ),
        (changed(|sample| sample.invalid = Some(Invalid::Hung)), "hung"),
    ] {
        let (answer, found) = judged(&results);
        assert!(answer == AcceptanceAnswer::Fail && found.contains(part), "{answer:?}: {found}");
    }
    let mut left_out = results(PLAN);
    left_out.targets[0].left_out = Some("it hung".into());
    let (answer, found) = judged(&left_out);
    assert!(answer == AcceptanceAnswer::Fail && found.contains("/offer was left out: it hung"), "{found}");
    left_out.targets[0].left_out = Some("setting `mode` on /offer: undone not: `x` failed".into());
    assert_eq!(judged(&left_out).0, AcceptanceAnswer::NotDecided, "that was the user's own command");
}

#[test]
fn where_nothing_follows_it_is_invalid_unless_something_else_fails() {
    let starved = Some(Invalid::Starved(None));
    for (results, part) in [
        (changed(|sample| sample.invalid.clone_from(&starved)), "INVALID: the tool itself waited"),
        (
            changed_ingest(|ingest| ingest.durable = Histogram::default()),
            "the record does not show when frames became durable",
        ),
        (changed(|sample| sample.device = None), "does not see the device's flushes"),
        (
            changed_ingest(|ingest| (ingest.due, ingest.stored) = (500, 500)),
            "of 10 s that were to be recorded",
        ),
    ] {
        let (answer, found) = judged(&results);
        assert!(answer == AcceptanceAnswer::NotDecided && found.contains(part), "{answer:?}: {found}");
    }
    let mut unfinished = results(PLAN);
    unfinished.samples.retain(|measured| measured.sample.ingest.is_none());
    assert_eq!(
        judged(&unfinished),
        (AcceptanceAnswer::NotDecided, "1 of 1 repeats were not measured".into())
    );
    let mut slow = changed(|sample| sample.device = None);
    let (slow_one, rest) = (Phase::Write, 100_000_000);
    for measured in
        slow.samples.iter_mut().filter(|measured| measured.key.phase == slow_one && measured.key.cell == 1)
    {
        measured.sample.bytes = rest + u64::from(measured.key.repeat);
    }
    let (answer, found) = judged(&slow);
    assert_eq!(answer, AcceptanceAnswer::Fail);
    assert!(found.contains("2 workers: 100 MB/s"), "the worst cell of the stage is named: {found}");
}

#[test]
fn an_interval_on_both_sides_of_what_is_demanded_decides_nothing() {
    let mut results = results(PLAN);
    for measured in results.samples.iter_mut().filter(|measured| measured.key.phase == Phase::Write) {
        measured.sample.bytes = if measured.key.repeat % 2 == 0 { 150_000_000 } else { 260_000_000 };
    }
    let (answer, found) = judged(&results);
    assert!(answer == AcceptanceAnswer::NotDecided && found.contains("205 MB/s ("), "{found}");
    // A repeat disturbed by the tool does not count, but the others do.
    let mut spoilt = self::results(PLAN);
    spoilt.samples[0].sample.invalid = Some(Invalid::Starved(None));
    assert_eq!(judged(&spoilt).0, AcceptanceAnswer::Pass);
}

#[test]
fn a_rate_in_the_long_run_and_losses_in_a_time_have_intervals() {
    let with = |more: &str| PLAN.replace("sync_flushes = true", more);
    for (more, expected) in [
        ("rate = \"200 MB/s\"", AcceptanceAnswer::Pass),
        ("rate = \"400 MB/s\"", AcceptanceAnswer::Fail),
        ("lost = \"20 in 1 min\"", AcceptanceAnswer::Pass),
    ] {
        assert_eq!(judged(&results(&with(more))).0, expected, "{more}");
    }
    let mut lossy = results(&with("lost = \"20 in 1 min\""));
    let lose = |results: &mut Results, lost: u64| {
        let recording = results.samples.iter_mut().find_map(|measured| measured.sample.ingest.as_mut());
        recording.expect("one was made").lost = lost;
    };
    // None in 10 s means at most 3.0, or 18 per minute; one means at most 4.7, or 28; nine mean at least 4.7, or 28.
    for (lost, expected) in [(1, AcceptanceAnswer::NotDecided), (9, AcceptanceAnswer::Fail)] {
        lose(&mut lossy, lost);
        assert_eq!(judged(&lossy).0, expected, "{lost}");
    }
}

/// The pass at full speed took 300 MB/s for 10 s.
#[test]
fn a_pass_whose_recorder_waited_for_a_processor_never_fails_a_criterion() {
    let waited = Nanos::from_millis(3000);
    let expected = [("200 MB/s", AcceptanceAnswer::Pass), ("400 MB/s", AcceptanceAnswer::NotDecided)];
    for (least, expected) in expected {
        let mut results = results(&PLAN.replace("sync_flushes = true", &format!("rate = \"{least}\"")));
        let is_pass = |ingest: &Ingest| ingest.goal == Goal::Limit;
        for Measured { sample, .. } in &mut results.samples {
            if sample.ingest.as_ref().is_some_and(is_pass) {
                sample.run_delay = waited;
            }
        }
        let (answer, found) = judged(&results);
        assert_eq!(answer, expected, "{least}: {found}");
        let told = expected == AcceptanceAnswer::Pass
            || found.contains(", but the recorder waited ")
                && found.ends_with(" for a processor: it may be more");
        assert!(told, "{found}");
    }
}

#[test]
fn conclusions_are_the_words_of_every_answer() {
    let results = results(PLAN);
    let told = conclusions(&Study::of(&results));
    assert_eq!((told[0].subject.as_str(), told[0].words.as_str()), ("acceptance of /offer", "PASS"));
    assert_eq!(told.iter().filter(|told| told.subject == "acceptance of /offer").count(), 9);
    assert!(told.iter().any(|told| told.subject == "camera on /offer"), "{told:?}");
}
