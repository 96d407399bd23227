//! `null:`, which takes everything and keeps nothing: as a target that is named, and as the ceiling beside those that are.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{Ended, start};
use serde_json::Value;

const LIMIT: Duration = Duration::from_mins(3);

const FILES: &str = r#"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "64 MiB"
block_size = "64 KiB"
access = "buffered"
"#;

const WALK: &str = r#"
[[stage]]
name = "walk"
[stage.workload.walk]
levels = 1
branching = 2
files = 10
"#;

fn evaluate(home: &Path, stages: &[&str], arguments: &[&str]) -> Ended {
    let plan = format!("title = \"a test\"\nrepeats = 2\nreserve = \"0 B\"\n{}", stages.concat());
    fs::write(home.join("plan.toml"), plan).expect("space");
    let all: Vec<&str> = ["evaluate", "--plan", "plan.toml"].iter().chain(arguments).copied().collect();
    start(home, &all).end(LIMIT)
}

fn json(home: &Path) -> Value {
    let ended = start(home, &["report", "evaluation.sqlite", "--format", "json"]).end(LIMIT);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn every_figure_has_the_ceiling_of_the_tool_beside_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("target")).expect("space");
    let ended = evaluate(home.path(), &[FILES, WALK], &["target"]);
    // On a busy machine samples may be INVALID.
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
    let report = json(home.path());
    let targets = report["targets"].as_array().expect("targets");
    assert_eq!(targets.len(), 1, "the ceiling is no target: {targets:?}");
    let figures = report["figures"].as_array().expect("figures");
    let ceilings = |phase: &str| {
        let of_phase = figures.iter().filter(move |figure| figure["phase"] == phase);
        of_phase.map(|figure| figure["bytes_per_second_ceiling"].as_f64()).collect::<Vec<_>>()
    };
    for phase in ["write", "read"] {
        let [ceiling] = ceilings(phase)[..] else { panic!("one cell: {figures:?}") };
        // None where the tool waited for a processor, which is no fault of the program.
        assert!(ceiling.is_none_or(|ceiling| ceiling > 1e9), "{phase}: {ceiling:?}");
    }
    assert_eq!(ceilings("ls -lR"), [None], "what is not there can't be walked");
    // The sentence needs a figure that is valid, and took longer than its threads to start.
    let all = start(home.path(), &["report", "evaluation.sqlite", "--all"]).end(LIMIT);
    let told = all.stdout.contains("ceiling: the tool alone does");
    let known = ["write", "read"].iter().any(|phase| ceilings(phase)[0].is_some());
    assert!(known || !told, "{all:?}");
}

#[test]
fn what_keeps_nothing_is_measured_as_far_as_that_goes() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let ended = evaluate(home.path(), &[FILES, WALK], &["null:"]);
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
    let report = json(home.path());
    assert_eq!(report["targets"][0]["path"], "null:", "{report}");
    let phases: Vec<_> =
        report["figures"].as_array().expect("figures").iter().map(|one| &one["phase"]).collect();
    assert_eq!(phases, ["write", "read"]);
    assert!(
        ended.stdout.contains("walk: 1 of 1 cells are not measured on A: it lacks keeping written data"),
        "{ended:?}"
    );
}

#[test]
fn where_nothing_can_be_measured_nothing_is_started() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let ended = evaluate(home.path(), &[WALK], &["null:"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("null:: nothing of the plan can be measured there"), "{ended:?}");
    for (arguments, part) in [
        (&["null:/data"][..], "`./null:/data`"),
        (&["nulls:"], "nulls:"),
        (&["null:", "null:"], "you named null: twice"),
    ] {
        let ended = evaluate(home.path(), &[FILES], arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    assert!(!home.path().join("evaluation.sqlite").exists(), "nothing was started");
}

#[test]
fn the_recorder_can_be_measured_without_storage() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let arguments = ["evaluate", "null:", "--for", "pilatus-2m", "--duration", "1 s", "--plan", "plan.toml"];
    fs::write(home.path().join("plan.toml"), format!("title = \"t\"\nrepeats = 1\n{FILES}")).expect("space");
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(matches!(ended.code, Some(0 | 3 | 4)), "{ended:?}");
    assert!(ended.stdout.contains("pilatus-2m"), "{ended:?}");
}
