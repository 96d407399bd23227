//! Elements by themselves and several at once: on disks of which the rate is known, and that of the link that they share.

use std::{fs, path::Path, time::Duration};

use nilometer_plan::{Key, Volumes};
use nilometer_tests::{FaultyDisk, FileSystem, SharedLink, may_have_faulty_disks, may_mount, start};
use serde_json::Value;

const LIMIT: Duration = Duration::from_mins(5);

fn plan(volumes: &str, mebibytes: u64) -> String {
    format!(
        "title = \"a test\"\nrepeats = 3\nreserve = \"0 B\"\n[[stage]]\nname = \"elements\"\n\
         volumes = [{volumes}]\n[stage.workload.stream]\nfile_size = \"{mebibytes} MiB\"\nblock_size = \"1 MiB\"\n\
         access = \"best\"\nread_back = false\n"
    )
}

/// What the report says of the only stage.
fn growth(home: &Path) -> Value {
    let ended = start(home, &["report", "evaluation.sqlite", "--format", "json"]).end(LIMIT);
    let report: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    report["elements"][0].clone()
}

/// Each takes 20 MB/s, and the link 50 MB/s: three fill it.
#[test]
fn the_knee_is_where_the_link_is_full() {
    if !may_have_faulty_disks() {
        return;
    }
    let link = SharedLink::ext4(4, 64, 20_000_000, 50_000_000);
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("plan.toml"), plan("\"alone\", 2, 3, 4, \"together\"", 24)).expect("space");
    let paths = link.paths();
    let mut arguments: Vec<&str> = ["evaluate", "--plan", "./plan.toml"].to_vec();
    arguments.extend(paths.iter().map(|path| path.to_str().expect("plain letters")));
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    let growth = growth(home.path());
    let counts = growth["counts"].as_array().expect("counts");
    let rates: Vec<f64> = counts.iter().filter_map(|at| at["rate"]["mean"].as_f64()).collect();
    // On a busy machine figures are INVALID, and disks slower than they may be: none is faster.
    for (at, most) in counts.iter().zip([20e6, 40e6, 50e6, 50e6]) {
        let rate = at["rate"]["mean"].as_f64().unwrap_or(0.0);
        assert!(rate < 1.25 * most, "{growth}");
    }
    let decided = growth["knee_is_decided"] == true;
    let is_full_by_three = rates.len() == 4 && rates[2] > 0.9 * 50e6;
    assert!(!is_full_by_three || !decided || growth["knee"] == 3, "{growth}");
    assert!(ended.stdout.contains("ELEMENTS AT ONCE: write"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("the knee is at 3") == (decided && growth["knee"] == 3),
        "{}",
        ended.stdout
    );
}

#[test]
fn the_first_so_many_are_measured_at_once_and_a_campaign_goes_on_with_them() {
    if !may_mount() {
        return;
    }
    let systems = [(); 3].map(|()| FileSystem::tmpfs("size=64m"));
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("plan.toml"), plan("\"alone\", 2, 3, 4", 1)).expect("space");
    let mut arguments: Vec<&str> = ["evaluate", "--plan", "./plan.toml"].to_vec();
    arguments.extend(systems.iter().map(|system| system.path().to_str().expect("plain letters")));
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    assert!(!ended.stdout.contains("NOT MEASURED"), "four of three are no gap: {}", ended.stdout);
    let results = nilometer_record::read(&home.path().join("evaluation.sqlite")).expect("a record");
    for (index, cell) in results.cells.iter().enumerate() {
        let volumes = cell.as_workload().expect("a workload").volumes;
        let of_cell = results.samples.iter().filter(|measured| measured.key.cell == index);
        let mut on: Vec<usize> =
            of_cell.map(|measured| measured.key).map(|Key { target, .. }| target).collect();
        on.sort_unstable();
        on.dedup();
        let expected = match volumes {
            Volumes::First(2) => vec![0, 1],
            Volumes::First(4) => Vec::new(),
            _ => vec![0, 1, 2],
        };
        assert_eq!(on, expected, "{cell}");
    }
    let resumed = start(home.path(), &["evaluate", "--resume"]).end(LIMIT);
    assert!(resumed.has_answered(), "nothing is missing: {resumed:?}");
}

#[test]
fn a_number_of_elements_that_can_not_be_is_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let target = home.path().join("target");
    fs::create_dir(&target).expect("space");
    for (volumes, said) in [
        ("1", "a whole number of targets from 2 on"),
        ("\"all\"", "`alone`, `together`, or a whole number"),
        ("2", "name as many as a volume needs"),
    ] {
        fs::write(home.path().join("plan.toml"), plan(volumes, 1)).expect("space");
        let ended = start(home.path(), &["evaluate", "--plan", "./plan.toml", "target"]).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{volumes}: {ended:?}");
        assert!(!home.path().join("evaluation.sqlite").exists(), "nothing is started: {volumes}");
    }
}

/// Each worker does its own part while the others rest, and all do theirs together.
#[test]
fn siblings_that_are_workers_are_measured_one_by_one_and_together() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("target")).expect("space");
    let stage = plan("\"alone\"", 1).replace("volumes = [\"alone\"]", "siblings = \"workers\"\nworkers = 3");
    fs::write(home.path().join("plan.toml"), &stage).expect("space");
    let evaluate = ["evaluate", "--plan", "./plan.toml", "target"];
    let ended = start(home.path(), &evaluate).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    assert!(ended.stdout.contains("SIBLINGS: write, workers alone"), "{}", ended.stdout);
    let results = nilometer_record::read(&home.path().join("evaluation.sqlite")).expect("a record");
    for measured in results.samples.iter().filter(|measured| measured.key.target == 0) {
        let run = results.cells[measured.key.cell].as_workload().expect("a workload");
        let workers = if run.lone_worker.is_some() { 1 } else { 3 };
        assert_eq!((measured.sample.workers.len(), measured.sample.bytes), (workers, (workers as u64) << 20));
    }
    let lone = results.cells.iter().filter_map(|cell| cell.as_workload()?.lone_worker).collect::<Vec<_>>();
    assert_eq!(lone, [0, 1, 2]);
    let report = start(home.path(), &["report", "evaluation.sqlite", "--format", "json"]).end(LIMIT);
    let report: Value =
        serde_json::from_str(&report.stdout).unwrap_or_else(|error| panic!("{error}: {report:?}"));
    let all = ["worker 1", "worker 2", "worker 3"];
    for group in report["siblings"].as_array().into_iter().flatten() {
        let members = group["members"].as_array().into_iter().flatten();
        let names: Vec<&str> = members.filter_map(|member| member["name"].as_str()).collect();
        assert_eq!(names, all, "{group}");
    }
    fs::write(home.path().join("plan.toml"), stage + "layout = \"segmented\"\n").expect("space");
    let refused = start(home.path(), &[&evaluate[..], &["--record", "no.sqlite"]].concat()).end(LIMIT);
    assert!(refused.code == Some(2) && refused.stderr.contains("share something"), "{refused:?}");
}

/// Of three disks the last takes a third of what the others take.
#[test]
fn the_odd_one_of_siblings_is_named_alone_and_together() {
    if !may_have_faulty_disks() {
        return;
    }
    let disks = [30_000_000, 30_000_000, 10_000_000].map(|rate| FaultyDisk::ext4_at_rate(64, rate));
    let home = tempfile::tempdir().expect("a temporary directory");
    let plan = plan("\"alone\"", 16).replace("volumes = [\"alone\"]", "siblings = \"targets\"");
    fs::write(home.path().join("plan.toml"), plan).expect("space");
    let paths = disks.each_ref().map(FaultyDisk::path);
    let mut arguments: Vec<&str> = ["evaluate", "--plan", "./plan.toml"].to_vec();
    arguments.extend(paths.iter().map(|path| path.to_str().expect("plain letters")));
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    for heading in ["SIBLINGS: write, targets alone", "SIBLINGS: write, targets together"] {
        assert!(ended.stdout.contains(heading), "{heading}: {}", ended.stdout);
    }
    let report = start(home.path(), &["report", "evaluation.sqlite", "--format", "json"]).end(LIMIT);
    let report: Value =
        serde_json::from_str(&report.stdout).unwrap_or_else(|error| panic!("{error}: {report:?}"));
    let groups = report["siblings"].as_array().expect("a list");
    assert_eq!(groups.len(), 2, "{groups:?}");
    let odd = |group: &Value| {
        let names = group["odd"].as_array().into_iter().flatten();
        names.filter_map(|odd| odd["name"].as_str()).map(str::to_owned).collect::<Vec<_>>()
    };
    // On a busy machine figures are INVALID, and then nothing is named; no other is in any case.
    for group in groups {
        let [slow, fast] = [2, 0].map(|index: usize| group["members"][index]["rate"].as_f64());
        let words = group["sentences"].to_string();
        assert!(odd(group).is_empty() || odd(group) == ["C"], "{group}");
        let is_seen = slow.zip(fast).is_some_and(|(slow, fast)| slow < 0.6 * fast);
        let few = words.contains("not decided") || words.contains("significantly");
        assert!(!is_seen || odd(group) == ["C"] || few, "{group}");
    }
    let one = start(
        home.path(),
        &["evaluate", "--plan", "./plan.toml", paths[0].to_str().expect("plain"), "--record", "one.sqlite"],
    );
    let one = one.end(LIMIT);
    assert!(one.code == Some(2) && one.stderr.contains("name two targets or more"), "{one:?}");
}
