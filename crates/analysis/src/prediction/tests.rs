//! Predictions from figures made up for the purpose, with margins that are known.

use super::*;
use crate::Study;
use nilometer_model::{
    Bytes, CellEntry, Ingest, Invalid, Key, Measured, Nanos, Sample, Series, TargetEntry, plan, plan::Goal,
};

const SECOND: Nanos = Nanos(1_000_000_000);

/// An instrument of 100 frames of 1 MB a second.
fn camera(name: &str, more: &str) -> Instrument {
    let text = format!(
        "name = \"{name}\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\nframe_rate = \"100 Hz\"\n"
    );
    Instrument::parse(&(text + more), name).expect("valid")
}

fn catalogue() -> Vec<Instrument> {
    vec![
        camera("large", ""),
        camera("single", "frames_per_file = 1"),
        camera("tenths", "frames_per_file = 10"),
        camera("shared", "storing = \"shared\""),
    ]
}

const WRITES: &str = "[[stage]]\nname = \"writes\"\n[stage.workload.stream]\nfile_size = \"4 MiB\"\nblock_size = \"1 MiB\"\naccess = \"direct\"\n";
const TREE: &str =
    "[[stage]]\nname = \"many files\"\n[stage.workload.tree]\nlevels = 1\nbranching = 1\nitems = 10\n";

/// The cells of a plan on one target, and none of their samples.
fn planned(stages: &str) -> Results {
    let plan = plan::parse(&format!("title = \"t\"\n{stages}"), "t.toml", 1.0).expect("a valid plan");
    let entry = |cell: &Cell| CellEntry {
        stage: cell.stage.clone(),
        name: cell.to_string(),
        parameters: serde_json::to_string(cell).expect("JSON"),
    };
    Results {
        cells: plan.cells.iter().map(entry).collect(),
        targets: vec![TargetEntry { path: "/a".into(), ..TargetEntry::default() }],
        ..Results::default()
    }
}

/// One repeat after the other, with so many bytes and operations in a second each.
fn add(results: &mut Results, cell: usize, phase: Phase, repeats: &[(u64, u64)]) {
    for (repeat, &(bytes, operations)) in (0..).zip(repeats) {
        let sample = Sample { bytes, operations, wall: SECOND, ..Sample::new(Nanos(0)) };
        results.samples.push(Measured { key: Key { target: 0, cell, repeat, phase }, sample });
    }
}

/// A target that writes 250 MB/s and makes 50 files a second.
fn measured() -> Results {
    let mut results = planned(&format!("{WRITES}{TREE}"));
    add(&mut results, 0, Phase::Write, &[(250_000_000, 250)]);
    add(&mut results, 0, Phase::Read, &[(900_000_000, 900)]);
    add(&mut results, 1, Phase::CreateFiles, &[(0, 50)]);
    add(&mut results, 1, Phase::StatFiles, &[(0, 90_000)]);
    results
}

/// Carried or not, and the margin in hundredths, by instrument, on the first target.
fn table(results: &Results) -> Vec<(String, Option<bool>, f64)> {
    let study = Study::of(results).with_catalogue(&catalogue());
    let row = |row: &Prospects| {
        let prospect = row.on[0].expect("rows without any are left out");
        let margin = prospect.margin.expect("measured");
        (row.instrument.clone(), prospect.carried, (margin * 100.0).round() / 100.0)
    };
    study.predictions.rows.iter().map(row).collect()
}

fn says(name: &str, carried: bool, margin: f64) -> (String, Option<bool>, f64) {
    (name.into(), Some(carried), margin)
}

#[test]
fn bytes_or_files_limit_whichever_is_less() {
    assert_eq!(
        table(&measured()),
        [
            says("large", true, 2.5),
            says("single", false, 0.5),
            says("tenths", true, 2.5),
            says("shared", true, 2.5)
        ]
    );
    let results = measured();
    let study = Study::of(&results).with_catalogue(&catalogue());
    let stage = |row: usize| match study.predictions.rows[row].on[0].expect("known").basis {
        Basis::Predicted(limit) => study.predictions.limits[limit].stage.clone(),
        Basis::Recorded => "recorded".into(),
    };
    assert_eq!([0, 1, 2].map(stage), ["writes", "many files", "writes"]);
    assert_eq!(study.predictions.used().len(), 2);
}

#[test]
fn the_lower_end_of_the_interval_counts() {
    let mut results = planned(WRITES);
    add(&mut results, 0, Phase::Write, &[(240_000_000, 1), (250_000_000, 1), (260_000_000, 1)]);
    // 4.303 standard errors of 10 / sqrt 3 below the mean: 250 - 24.84.
    assert_eq!(table(&results)[0], says("large", true, 2.25));
    results.samples.truncate(2);
    results.samples[1].sample.bytes = 10_000_000;
    assert_eq!(table(&results), [], "an interval that reaches zero allows no prediction");
    results.samples[1].sample.invalid = Some(Invalid::Starved(None));
    assert_eq!(table(&results)[0], says("large", true, 2.4));
}

#[test]
fn what_is_not_measured_is_not_predicted() {
    let names = |stages: &str, cell, phase| {
        let mut results = planned(stages);
        add(&mut results, cell, phase, &[(200_000_000, 200)]);
        table(&results).into_iter().map(|(name, _, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(WRITES, 0, Phase::Write), ["large", "shared"]);
    assert_eq!(names(TREE, 0, Phase::CreateFiles), [""; 0]);
    assert_eq!(names(WRITES, 0, Phase::Read), [""; 0]);
    for not_durable_or_not_alone in ["sync = \"none\"", "source = \"disk\""] {
        assert_eq!(names(&format!("{WRITES}{not_durable_or_not_alone}\n"), 0, Phase::Write), [""; 0]);
    }
    let together = WRITES.replace("[stage.workload", "volumes = \"together\"\n[stage.workload");
    assert_eq!(names(&together, 0, Phase::Write), [""; 0]);
    let mut given_up = measured();
    given_up.targets[0].left_out = Some("it hung".into());
    assert_eq!(table(&given_up), []);
    assert_eq!(Study::of(&measured()).predictions.rows, [], "no catalogue, no rows");
}

#[test]
fn a_shared_file_is_predicted_from_shared_files_where_there_are_some() {
    let shared = WRITES.replace("writes", "N to 1") + "layout = \"strided\"\n";
    let mut results =
        planned(&format!("{WRITES}{}", shared.replace("[stage.workload", "workers = 2\n[stage.workload")));
    add(&mut results, 0, Phase::Write, &[(250_000_000, 250)]);
    add(&mut results, 1, Phase::Write, &[(60_000_000, 60)]);
    assert_eq!(table(&results), [says("large", true, 2.5), says("shared", false, 0.6)]);
}

fn recording(results: &mut Results, instrument: &str, goal: Goal, taken: u64, lost: u64) {
    let mut series = Series::new(Nanos(0));
    (0..1000).for_each(|hundredth| series.add(Nanos::from_millis(10 * hundredth), taken / 100));
    let ingest = Ingest {
        instrument: instrument.into(),
        count: 1,
        goal,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(10),
        due: 1000,
        lost,
        ..Ingest::default()
    };
    let sample = Sample { series, wall: SECOND, ingest: Some(ingest), ..Sample::new(Nanos(0)) };
    let key = Key { target: 0, cell: results.cells.len(), repeat: 0, phase: Phase::Ingest };
    results.cells.push(CellEntry::default());
    results.samples.push(Measured { key, sample });
}

#[test]
fn a_verdict_replaces_the_prediction() {
    let mut results = measured();
    recording(&mut results, "single", Goal::Limit, 400_000_000, 0);
    recording(&mut results, "single", Goal::Pace, 100_000_000, 0);
    recording(&mut results, "large", Goal::Pace, 90_000_000, 3);
    recording(&mut results, "mine", Goal::Pace, 100_000_000, 0);
    let study = Study::of(&results).with_catalogue(&catalogue());
    let of = |name: &str| {
        let row = study.predictions.rows.iter().find(|row| row.instrument == name).expect("a row");
        let prospect = row.on[0].expect("known");
        (prospect.carried, prospect.margin.map(f64::round), prospect.basis == Basis::Recorded)
    };
    assert_eq!(of("single"), (Some(true), Some(4.0), true));
    assert_eq!(of("large"), (Some(false), None, true));
    assert_eq!(of("mine"), (Some(true), None, true));
    assert_eq!(of("tenths"), (Some(true), Some(3.0), false));
    assert_eq!(study.predictions.rows.len(), 5);
    assert!(study.predictions.predicts() && study.predictions.records());
}

#[test]
fn another_rate_is_another_instrument() {
    let mut results = measured();
    recording(&mut results, "large", Goal::Pace, 100_000_000, 0);
    let ingest = results.samples.last_mut().expect("a sample").sample.ingest.as_mut().expect("a recording");
    ingest.period = Nanos::from_millis(20);
    let study = Study::of(&results).with_catalogue(&catalogue());
    let rows: Vec<_> =
        study.predictions.rows.iter().map(|row| (row.instrument.as_str(), row.rate.0)).collect();
    assert_eq!(rows[..2], [("large", 50e6), ("large", 100e6)]);
}
