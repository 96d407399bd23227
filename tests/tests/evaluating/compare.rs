//! `nilometer compare` from outside: records of dates and machines, a baseline, a history, what is refused; and the check for
//! `ReFrame` that runs it.

use std::{fs, path::Path, process::Command, time::Duration};

use nilometer_model::{
    FlowEnd, FlowSample, FlowSettings, Nanos, NetworkCell, NetworkMachine, NetworkProtocol, NetworkResults,
    NetworkSample, NetworkStage, Phase, Sample, TrafficPattern,
};
use nilometer_plan::{Key, Results, TargetEntry};
use nilometer_record::Record;
use nilometer_tests::{Ended, nilometer, one_cell, python, root, start};
use serde_json::Value;
use tempfile::TempDir;

const PLAN: &str = r#"
title = "a test"
repeats = 3
reserve = "0 B"
[[stage]]
name = "large files"
[stage.workload.stream]
file_size = "16 MiB"
block_size = ["64 KiB", "1 MiB"]
access = "buffered"
"#;

fn home() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn nilometer_in(home: &Path, arguments: &[&str]) -> Ended {
    start(home, arguments).end(Duration::from_mins(2))
}

/// A record of one cell on `/data`, begun on a day of November, each of its six repeats of 128 MiB in about so long.
fn record(home: &Path, name: &str, day: u32, millis: u64) -> Record {
    let target = TargetEntry { path: "/data".into(), file_system: "ext4".into(), ..TargetEntry::default() };
    let head = Results {
        title: "A test".into(),
        started: format!("2026-11-{day}T03:00:00Z"),
        version: "0.1.0".into(),
        margin: 5.0,
        repeats: 6,
        targets: vec![target],
        cells: one_cell("large"),
        ..Results::default()
    };
    let mut record = Record::create(&home.join(name), &head, 0).expect("a new record");
    for repeat in 0..6 {
        let wall = Nanos::from_millis(millis + u64::from((repeat * 7 + day) % 5));
        let sample = Sample { bytes: 1 << 27, operations: 128, wall, ..Sample::new(Nanos(0)) };
        record.add(Key { target: 0, cell: 0, repeat, phase: Phase::Write }, &sample).expect("space");
    }
    record
}

/// Whether a busy machine left too few repeats for an interval.
fn is_spoilt(home: &Path, record: &str) -> bool {
    let results = nilometer_record::read(&home.join(record)).expect("a record");
    results.samples.iter().any(|measured| measured.sample.invalid.is_some())
}

/// A busy machine spoils repeats: that is no matter of this test.
fn evaluate(home: &Path, record: &str) {
    let ended = nilometer_in(home, &["evaluate", "data", "--plan", "plan.toml", "--record", record]);
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
}

#[test]
fn two_campaigns_of_one_directory_are_compared() {
    let home = home();
    let path = home.path();
    fs::write(path.join("plan.toml"), PLAN).expect("a file");
    fs::create_dir(path.join("data")).expect("a directory");
    for name in ["before.sqlite", "after.sqlite"] {
        evaluate(path, name);
    }
    let ended = nilometer_in(path, &["compare", "before.sqlite", "after.sqlite", "--html", "page.html"]);
    let spoilt = ["before.sqlite", "after.sqlite"].into_iter().any(|name| is_spoilt(path, name));
    assert!(ended.stdout.contains("2 targets of 2 records compared"), "{}", ended.stdout);
    if spoilt && ended.code == Some(4) {
        // A busy machine spoilt all repeats of one of them: the tables say so, and nothing is compared.
        assert!(ended.stdout.contains("INVALID in 3 of 3 repeats"), "{}", ended.stdout);
        assert!(ended.stderr.contains("with valid repeats in each"), "{}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(spoilt || ended.stdout.contains("by Welch's method between records"), "{}", ended.stdout);
    let page = fs::read_to_string(path.join("page.html")).expect("the page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("How they compare"));
    let markdown = ["compare", "before.sqlite", "after.sqlite", "--format", "markdown"];
    let text = nilometer_in(path, &markdown).stdout;
    assert!(text.starts_with("# 2 targets of 2 records compared") && text.contains("## Compared"), "{text}");
    let refused = nilometer_in(path, &[&markdown[..], &["--against", "before.sqlite"]].concat());
    assert!(refused.code == Some(2) && refused.stderr.contains("--format terminal or json"), "{refused:?}");
    let ended = nilometer_in(path, &["compare", "before.sqlite", "after.sqlite", "--json"]);
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let writes = &json["comparisons"][0];
    assert_eq!(
        (writes["phase"].as_str(), writes["cells"].as_array().map(Vec::len)),
        (Some("write"), Some(2))
    );
    assert!(spoilt || writes["pairs"][0]["basis"] == "repeats", "{writes}");
    assert_eq!(json["differing"], Value::Array(Vec::new()), "nothing was changed between them");
}

#[test]
fn several_baselines_hold_how_much_days_differ() {
    let home = home();
    let path = home.path();
    for (name, day, millis) in [("a", 10, 100), ("b", 11, 130), ("c", 12, 110), ("d", 13, 120)] {
        record(path, &format!("{name}.sqlite"), day, millis);
    }
    record(path, "now.sqlite", 14, 140);
    let one = nilometer_in(path, &["compare", "now.sqlite", "--against", "d.sqlite"]);
    assert_eq!(one.code, Some(3), "a single day shows no other: {one:?}");
    let mut arguments = vec!["compare", "now.sqlite"];
    for baseline in ["a.sqlite", "b.sqlite", "c.sqlite", "d.sqlite"] {
        arguments.extend(["--against", baseline]);
    }
    let several = nilometer_in(path, &arguments);
    assert_ne!(several.code, Some(3), "days differ by as much: {several:?}");
    assert!(several.stdout.contains("the spread between 4 baselines counts: they show a loss of more than "));
    arguments.extend(["--against", "a.sqlite"]);
    let twice = nilometer_in(path, &arguments);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.stderr.contains("a.sqlite: you named this record twice"), "{twice:?}");
}

#[test]
fn a_baseline_is_held_or_what_got_worse_is_told_line_by_line() {
    let home = home();
    let path = home.path();
    record(path, "before.sqlite", 10, 100);
    record(path, "same.sqlite", 11, 100);
    record(path, "slow.sqlite", 12, 150);
    let held = nilometer_in(path, &["compare", "same.sqlite", "--against", "before.sqlite"]);
    assert_eq!((held.code, held.stdout.lines().count()), (Some(0), 1), "{held:?}");
    assert!(
        held.stdout
            .starts_with("nothing got worse by more than 5 %: 1 of 1 figure of before.sqlite compared"),
        "{}",
        held.stdout
    );
    let quiet = nilometer_in(path, &["compare", "same.sqlite", "--against", "before.sqlite", "-q"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", ""), "{quiet:?}");
    let worse = nilometer_in(path, &["compare", "slow.sqlite", "--against", "before.sqlite"]);
    assert_eq!((worse.code, worse.stdout.lines().count()), (Some(3), 1), "{worse:?}");
    assert!(
        worse.stdout.starts_with("worse: /data 2026-11-12: large, write: 33 % slower ("),
        "{}",
        worse.stdout
    );
    let wide = ["compare", "slow.sqlite", "--against", "before.sqlite", "--threshold", "60 %"];
    assert_eq!(nilometer_in(path, &wide).code, Some(0), "less than what counts");
    let json = nilometer_in(path, &["compare", "slow.sqlite", "--against", "before.sqlite", "--json"]);
    assert_eq!(json.code, Some(3));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["against"]["worse"][0]["what"], "large, write");
}

/// Adds a network of two machines to a record: there and back, each of six repeats so many bytes in about a second.
fn with_network(record: &mut Record, back: u64) {
    let machine = |name: &str, rank| NetworkMachine {
        name: name.into(),
        ranks: vec![rank],
        addresses: vec!["10.1.0.1".into()],
        ..NetworkMachine::default()
    };
    let cell = |from, to| NetworkCell {
        pattern: TrafficPattern::Pair { from, to },
        protocol: NetworkProtocol::Tcp,
        flows: 1,
        settings: FlowSettings::default(),
    };
    let results = NetworkResults {
        machines: vec![machine("n1", 0), machine("n2", 1)],
        cells: vec![cell(0, 1), cell(1, 0)],
        samples: Vec::new(),
    };
    record.note_network_stage(0, &NetworkStage { stage: "between".into(), results }).expect("space");
    for repeat in 0..6 {
        for (cell, bytes) in [(0, 1_000_000_000), (1, back)] {
            let last = Nanos::from_millis(1000 + u64::from(repeat * 5 % 7));
            let received = FlowEnd { bytes, last, ..FlowEnd::default() };
            let flow =
                FlowSample { from: cell as u32, to: 1 - cell as u32, received, ..FlowSample::default() };
            let sample =
                NetworkSample { cell, repeat, asked: None, flows: vec![flow], intervals: Vec::new() };
            record.add_network_sample(0, &sample).expect("space");
        }
    }
}

#[test]
fn the_network_between_machines_is_compared_and_held_against_a_baseline() {
    let home = home();
    let path = home.path();
    for (name, day, back) in [("before.sqlite", 10, 1_000_000_000), ("after.sqlite", 11, 250_000_000)] {
        with_network(&mut record(path, name, day, 100), back);
    }
    let ended = nilometer_in(path, &["compare", "before.sqlite", "after.sqlite", "--html", "page.html"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in ["BETWEEN: THE NETWORK BETWEEN MACHINES", "n2 to n1, TCP, one flow"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let page = fs::read_to_string(path.join("page.html")).expect("the page");
    assert!(page.contains("between: the network between machines"));
    let worse = nilometer_in(path, &["compare", "after.sqlite", "--against", "before.sqlite"]);
    assert_eq!(worse.code, Some(3), "{worse:?}");
    let lines: Vec<&str> = worse.stdout.lines().collect();
    let said = "worse: /data 2026-11-11: between, n2 to n1, TCP, one flow: ";
    assert!(lines.len() == 2 && lines[1].starts_with(said), "{lines:?}");
    let csv = nilometer_in(path, &["report", "after.sqlite", "--format", "csv", "--output", "-"]);
    let trials = csv.stdout.lines().filter(|line| line.contains(",network,,,")).count();
    assert_eq!((csv.code, trials), (Some(0), 12), "{csv:?}");
}

#[test]
fn the_step_among_many_runs_is_named() {
    let home = home();
    let path = home.path();
    let names: Vec<String> = (1..=8).map(|day| format!("{day}.sqlite")).collect();
    for (day, name) in (10..).zip(&names) {
        record(path, name, day, if day < 15 { 100 } else { 130 });
    }
    let mut arguments = vec!["compare"];
    arguments.extend(names.iter().map(String::as_str));
    let ended = nilometer_in(path, &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("HISTORY of /data: 8 runs"), "{}", ended.stdout);
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, step) = words.split_once("STEP, ").unwrap_or_else(|| panic!("{words}"));
    let (change, rest) = step.split_once(" since ").expect("a day");
    assert!(change.contains(" % slower (") || change.contains(" % faster ("), "{change}");
    assert!(rest.starts_with("15 Nov, run F ("), "{rest}");
}

#[test]
fn what_can_not_be_compared_is_said() {
    let home = home();
    let path = home.path();
    record(path, "a.sqlite", 10, 100);
    record(path, "b.sqlite", 11, 100);
    fs::copy(path.join("a.sqlite"), path.join("short.sqlite")).expect("space");
    fs::File::options()
        .write(true)
        .open(path.join("short.sqlite"))
        .expect("a file")
        .set_len(9000)
        .expect("a file");
    fs::write(path.join("foreign"), "no record").expect("space");
    for (arguments, part) in [
        (vec!["a.sqlite"], "one record is no comparison"),
        (vec!["a.sqlite", "./a.sqlite"], "you named this record twice"),
        (vec!["a.sqlite", "none.sqlite"], "none.sqlite: no such record"),
        (vec!["a.sqlite", "foreign"], "foreign: not a record of nilometer"),
        (vec!["a.sqlite", "short.sqlite"], "short.sqlite: "),
        (vec!["a.sqlite", "b.sqlite", "--html", "b.sqlite"], "is the record itself"),
        (vec!["a.sqlite", "--against", "b.sqlite", "--threshold", "NaN"], "write a number of percent"),
    ] {
        let all: Vec<&str> = ["compare"].into_iter().chain(arguments).collect();
        let ended = nilometer_in(path, &all);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
    }
    let target = TargetEntry { path: "/other".into(), ..TargetEntry::default() };
    let head =
        Results { targets: vec![target.clone(), target], cells: one_cell("other"), ..Results::default() };
    drop(Record::create(&path.join("other.sqlite"), &head, 0).expect("a new record"));
    let nothing = nilometer_in(path, &["compare", "a.sqlite", "other.sqlite"]);
    assert_eq!(nothing.code, Some(4), "{nothing:?}");
    let foreign = nilometer_in(path, &["compare", "other.sqlite", "--against", "a.sqlite"]);
    assert_eq!(foreign.code, Some(2), "{foreign:?}");
    assert!(
        foreign.stderr.contains("none of its targets is in the other records: it has /data"),
        "{foreign:?}"
    );
}

/// Runs the check as `ReFrame` does, on this machine.
fn reframe(home: &Path, python: &Path, variables: &[&str]) -> String {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; from reframe.frontend.cli import main; sys.exit(main())"]);
    command
        .args(["--prefix", "reframe", "-c"])
        .arg(root().join("contrib/reframe/nilometer_check.py"))
        .arg("-r");
    let own = [
        format!("target={}", home.join("data").display()),
        format!("program={}", nilometer().display()),
        format!("plan={}", home.join("plan.toml").display()),
    ];
    for variable in own.iter().map(String::as_str).chain(variables.iter().copied()) {
        command.args(["-S", variable]);
    }
    let ended = command.current_dir(home).env("HOME", home).env("TMPDIR", home).output().expect("it starts");
    String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr)
}

#[test]
fn reframe_runs_the_check_and_fails_it_when_something_got_worse() {
    let Some(python) = python(&["reframe"]) else { return };
    let python = Path::new(python.get_program()).to_owned();
    let home = home();
    let path = home.path();
    fs::write(path.join("plan.toml"), PLAN).expect("a file");
    fs::create_dir(path.join("data")).expect("a directory");
    // On a busy machine all samples may be INVALID. The check then measures or compares nothing, and says so.
    let is_valid = |said: &String| {
        !["nothing could be compared", "measured nothing"].iter().any(|part| said.contains(part))
    };
    let alone = (0..50).map(|_| reframe(path, &python, &[])).find(is_valid).expect("one of 50 is valid");
    assert!(alone.contains("Ran 1/1 test case(s)") && alone.contains("PASSED"), "{alone}");
    assert!(alone.contains("P: large_files_16_MiB_by_"), "{alone}");
    let mut attempts = (0..50).map(|number| against_a_fast_baseline(path, &python, number));
    let failed = attempts.find(is_valid).expect("one of 50 attempts is valid");
    assert!(failed.contains("FAILED") && failed.contains("worse than the baseline: large files"), "{failed}");
}

/// Runs the check against a baseline that is a thousand times as fast as anything can be.
fn against_a_fast_baseline(home: &Path, python: &Path, number: u32) -> String {
    let name = format!("fast-{number}.sqlite");
    evaluate(home, &name);
    let fast = home.join(&name);
    let record = rusqlite::Connection::open(&fast).expect("a record");
    record.execute("UPDATE sample SET bytes = bytes * 1000", []).expect("a table");
    drop(record);
    reframe(home, python, &[&format!("baseline={}", fast.display())])
}
