//! A campaign of two targets, whole and with parts of it taken out.

use nilometer_model::{Bytes, Goal, Ingest, Invalid, Nanos, Phase, Sample};
use nilometer_plan::{
    Cell, Event, Key, Measured, PlannedCampaign, RecordingRun, ResolvedPlan, Results, TargetEntry, parse,
};

use nilometer_analysis::{
    MissingEvidence, Study,
    made_up::{camera, described, network_stage},
};

use crate::{Detail, TextLayout, html, json, markdown, terminal};

fn missing(results: &Results) -> MissingEvidence {
    Study::of(results).missing
}

const PLAN: &str = r#"
title = "a test"
repeats = 2
[[stage]]
name = "large files"
stripe_count = [1, 2, 4]
[stage.workload.stream]
file_size = "1 MiB"
block_size = "1 MiB"
access = "buffered"
[[stage]]
name = "small files"
[stage.workload.walk]
levels = 1
branching = 2
files = 10
"#;

fn recording(goal: Goal, repeats: u32) -> RecordingRun {
    RecordingRun {
        goal,
        duration: Nanos::from_millis(5000),
        buffer: Bytes(100 << 20),
        keep: Bytes(1 << 30),
        repeats,
        ..camera("camera")
    }
}

/// Two targets without stripes. The stages have three cells and one, in two rounds. A camera is recorded at its
/// pace, three times at the limit, and in a search.
fn campaign() -> Results {
    let mut plan = parse(PLAN, "t.toml", 1.0).expect("a valid plan");
    let runs = [recording(Goal::Pace, 1), recording(Goal::Limit, 3), recording(Goal::Search, 1)];
    plan.cells.extend(runs.map(|run| Cell::recording(run.label(), run)));
    let target =
        |path: &str| TargetEntry { path: path.into(), file_system: "xfs".into(), ..TargetEntry::default() };
    let targets = ["/a", "/b"].map(described).into();
    let resolved = PlannedCampaign::new(plan.clone(), targets);
    let results = Results {
        title: plan.title.clone(),
        campaign: Some(resolved),
        repeats: plan.repeats,
        targets: vec![target("/a"), target("/b")],
        cells: plan.cells.clone(),
        ..Results::default()
    };
    complete(results, &plan)
}

fn measured(cell: usize, target: usize, repeat: u32, phase: Phase) -> Measured {
    let sample =
        Sample { bytes: 1 << 30, operations: 1, wall: Nanos(1_000_000_000), ..Sample::new(Nanos(0)) };
    Measured { key: Key { target, cell, repeat, phase }, sample }
}

fn recorded_at(goal: Goal, cell: usize, target: usize, repeat: u32) -> Measured {
    let mut made = measured(cell, target, repeat, Phase::Ingest);
    let (period, frame_size) = (Nanos::from_millis(10), Bytes(1_000_000));
    made.sample.ingest =
        Some(Ingest { count: 1, goal, period, frame_size, due: 500, stored: 500, ..Ingest::default() });
    made
}

/// Adds all samples that the campaign should have.
fn complete(mut results: Results, plan: &ResolvedPlan) -> Results {
    for target in 0..2 {
        for cell in [0, 3] {
            for phase in plan.cells[cell].measured_phases() {
                results.samples.extend((0..2).map(|repeat| measured(cell, target, repeat, phase)));
            }
        }
        results.samples.push(recorded_at(Goal::Pace, 4, target, 0));
        results.samples.extend((0..3).map(|repeat| recorded_at(Goal::Limit, 5, target, repeat)));
        // A refusal to begin is a final result.
        let refused = Sample::invalid(Invalid::Refused("no memory".into()));
        let key = Key { target, cell: 6, repeat: 0, phase: Phase::Ingest };
        results.samples.push(Measured { key, sample: refused });
    }
    results
}

fn without(mut results: Results, gone: impl Fn(&Key) -> bool) -> Results {
    results.samples.retain(|measured| !gone(&measured.key));
    results
}

#[test]
fn what_does_not_apply_on_a_target_is_said_and_is_not_incomplete() {
    let results = campaign();
    let missing = missing(&results);
    // Two stages of one cell each in two rounds, and five recordings, on two targets.
    assert_eq!((missing.planned, missing.measured), (2 * (2 * 2 + 5), 2 * (2 * 2 + 5)));
    assert_eq!((missing.gaps.len(), missing.open.len(), missing.why.clone()), (0, 0, None));
    let unused: Vec<_> =
        missing.unused.iter().map(|unused| (unused.target, unused.cells, unused.of)).collect();
    assert_eq!(unused, [(0, 2, 3), (1, 2, 3)]);
    let text = terminal(&Study::of(&results), Detail::Full, TextLayout::plain());
    assert!(text.contains("NOT MEASURED\n  - large files: 2 of 3 cells are not measured on A"), "{text}");
}

#[test]
fn what_was_not_reached_is_counted_by_part_and_target() {
    let second_round = |key: &Key| key.repeat == 1 && key.cell < 4;
    let killed =
        without(campaign(), |key| second_round(key) || key.cell >= 4 || (key.cell == 3 && key.target == 1));
    let missing = missing(&killed);
    let sentences = missing.sentences();
    assert_eq!(
        sentences[..6],
        [
            "3 of 18 measurements are there: it was interrupted, or is not over yet; `nilometer evaluate --resume` goes on",
            "large files: A 1 of 2, B 1 of 2",
            "small files: A 1 of 2, B not begun (0 of 2)",
            "camera: at its own pace: A not begun (0 of 1), B not begun (0 of 1)",
            "camera: at full speed: A not begun (0 of 3), B not begun (0 of 3)",
            "camera: the search for the highest rate: A not begun (0 of 1), B not begun (0 of 1)",
        ]
    );
    let open: Vec<_> = missing.open.iter().map(|open| (open.target, open.instrument.to_string())).collect();
    assert_eq!(open, [(0, "camera".to_owned()), (1, "camera".to_owned())]);
    assert!(missing.open[0].to_string().contains("it was not recorded"));
}

#[test]
fn a_phase_that_failed_is_there_and_one_that_was_cut_is_not() {
    let last = |key: &Key| key.cell == 0 && key.target == 0 && key.repeat == 1 && key.phase == Phase::Read;
    let mut cut = without(campaign(), last);
    assert_eq!(missing(&cut).gaps[0].to_string(), "large files: A 1 of 2");
    let written = |measured: &&mut Measured| {
        let Key { target, cell, repeat, .. } = measured.key;
        (target, cell, repeat) == (0, 0, 1)
    };
    let written = cut.samples.iter_mut().find(written).expect("its other phase");
    written.sample.invalid = Some(Invalid::Errors);
    assert_eq!(missing(&cut).gaps, []);
}

#[test]
fn the_limit_that_was_recorded_is_the_answer_so_far() {
    let mut results = without(campaign(), |key| key.cell == 4 && key.target == 1);
    let limits =
        results.samples.iter_mut().filter(|measured| measured.key.cell == 5 && measured.key.target == 1);
    for (rate, measured) in [600, 400, 500].into_iter().zip(limits) {
        measured.sample.bytes = rate * 1_000_000;
    }
    let limit = "the time limit of 3 min was reached: 1 of 18 measurements are missing";
    results.events.push(Event { at: Nanos(0), what: limit.into() });
    let study = Study::of(&results);
    let [open] = &study.missing.open[..] else { panic!("one is open: {:?}", study.missing.open) };
    let expected = "not decided yet: recorded only at full speed, at 400 MB/s to 600 MB/s in 3 passes, 4.00 to 6.00 times \
                    the instrument's rate, and not at the instrument's own";
    assert_eq!((open.target, open.to_string().as_str()), (1, expected));
    let head = "17 of 18 measurements are there: the time limit of 3 min was reached; `nilometer evaluate --resume` goes on";
    assert_eq!(study.missing.sentences()[0], head);
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        terminal(&study, Detail::Full, TextLayout::plain()),
        html(&study),
        markdown(&study, Detail::Full).replace('\\', ""),
    ]
    .map(flat)
    {
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("`{part}` in {text}"));
        assert!(place("17 of 18 measurements") < place("large files: 2 of 3"), "{text}");
        assert!(place("17 of 18 measurements") < place("in 3 passes"), "above the answers: {text}");
        assert!(!text.contains("--for NAME"), "to one who wrote it: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json(&study)).expect("valid");
    let told = &json["incomplete"];
    assert_eq!((&told["planned"], &told["measured"]), (&18.into(), &17.into()));
    assert_eq!(told["parts"][0]["target"], "B");
    assert_eq!(told["undecided"][0]["sentence"], expected);
}

#[test]
fn a_limit_that_was_reached_before_the_campaign_was_resumed_says_nothing_now() {
    let mut results = without(campaign(), |key| key.cell == 4);
    for what in ["the time limit of 3 min was reached: 1", "resumed by nilometer 0.1.0"] {
        results.events.push(Event { at: Nanos(0), what: what.into() });
    }
    assert_eq!(missing(&results).why.as_deref(), Some("it was interrupted, or is not over yet"));
}

/// Two machines, each to the other alone, in three rounds; a trial is taken out.
#[test]
fn a_trial_of_the_network_that_is_missing_is_told() {
    let text = "title = \"a test\"\nrepeats = 3\n[[stage]]\nname = \"between\"\n[stage.network]\n\
                pattern = \"pairs\"\nflows = 1\n";
    let plan = parse(text, "t.toml", 1.0).expect("a valid plan");
    let plan = ResolvedPlan { ranks: 2, node_ranks: vec![1, 1], ..plan };
    let campaign = Some(PlannedCampaign::new(plan, Vec::new()));
    let mut results = Results { campaign, network: vec![network_stage(5)], repeats: 3, ..Results::default() };
    assert!(missing(&results).is_empty(), "{:?}", missing(&results));
    results.network[0].results.samples.pop();
    let found = missing(&results);
    assert_eq!((found.planned, found.measured, found.title()), (6, 5, "Incomplete"));
    assert!(found.sentences().contains(&"between: the network 5 of 6".to_owned()), "{:?}", found.sentences());
    results.network.clear();
    let study = Study::of(&results);
    assert!(terminal(&study, Detail::Full, TextLayout::plain()).contains("between: the network 0 of 6"));
    assert!(
        json(&study).contains("\"network\": [\n      {\n        \"stage\": \"between\""),
        "{}",
        json(&study)
    );
}
