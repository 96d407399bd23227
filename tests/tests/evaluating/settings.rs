//! Settings outside of the program: applied, read back and taken back around each repeat, by commands of the plan's; also
//! after ctrl-C and after a kill.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{Running, await_some, camera, start};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PLAN: &str = r#"
title = "settings"
repeats = 2
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "1 MiB"
block_size = "1 MiB"
access = "buffered"
[stage.setting.mode]
values = ["slow", "fast"]
apply = "APPLY"
read_back = "cat HOME/mode"
undo = "echo undone >> HOME/log; rm HOME/mode"
"#;

const APPLY: &str = "echo $NILOMETER_VALUE >> HOME/log; echo $NILOMETER_VALUE > HOME/mode";
/// Waits where it is applied for the first time.
const WAITS: &str = "echo $NILOMETER_VALUE > HOME/mode; if [ ! -e HOME/again ]; then touch HOME/again; while [ -d HOME ] && [ ! -e \
                     HOME/go ]; do sleep 0.1; done; fi";

fn home(apply: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().to_str().expect("a plain name");
    let plan = PLAN
        .replace("APPLY", apply)
        .replace("HOME", path)
        .replace("undo = ", "time_limit = \"2 h\"\nundo = ");
    fs::write(home.path().join("plan.toml"), plan).expect("space");
    fs::create_dir(home.path().join("target")).expect("space");
    home
}

fn evaluate(home: &Path, more: &[&str]) -> Running {
    let arguments = ["evaluate", "target", "--plan", "./plan.toml", "--record", "r.sqlite"];
    start(home, &[&arguments[..], more].concat())
}

fn log(home: &Path) -> Vec<String> {
    let text = fs::read_to_string(home.join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_repeat_has_its_setting_which_is_taken_back_behind_it() {
    let home = home(APPLY);
    let ended = evaluate(home.path(), &[]).end(Duration::from_mins(5));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    let log = log(home.path());
    let count = |word: &str| log.iter().filter(|line| *line == word).count();
    // On a busy machine a repeat that was spoilt is made again.
    let repeats = count("slow").min(count("fast"));
    assert!(repeats >= 2 && count("undone") == count("slow") + count("fast"), "{log:?}");
    assert!(log.chunks(2).all(|pair| pair[1] == "undone"), "one after the other: {log:?}");
    assert!(!home.path().join("mode").exists());
    let report = start(home.path(), &["report", "r.sqlite", "--format", "json"]).end(Duration::from_mins(1));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let figures = report["figures"].as_array().expect("figures");
    let modes: Vec<&str> =
        figures.iter().filter_map(|figure| figure["parameters"]["mode"].as_str()).collect();
    assert!(modes.contains(&"slow") && modes.contains(&"fast"), "{figures:?}");
}

#[test]
fn what_is_not_in_force_is_not_measured() {
    let home = home("echo other > HOME/mode");
    let ended = evaluate(home.path(), &[]).end(Duration::from_mins(5));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("setting `mode`") && said.contains("\"other\""), "{said}");
    assert_eq!(log(home.path()).len(), 4, "each was taken back");
}

#[test]
fn it_is_taken_back_when_the_campaign_is_ended_and_what_a_killed_one_left_when_it_goes_on() {
    let home = home(WAITS);
    let applied = || home.path().join("again").exists().then_some(());
    let running = evaluate(home.path(), &[]);
    await_some("the setting", applied);
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    let ended = running.end(Duration::from_mins(1));
    // The command outlives who started it.
    fs::write(home.path().join("go"), "").expect("space");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(home.path().join("mode").exists() && log(home.path()).is_empty(), "nobody could take it back");

    let resume = ["evaluate", "--resume", "--record", "r.sqlite"];
    let refused = start(home.path(), &resume).end(Duration::from_mins(1));
    assert!(refused.code == Some(2) && refused.stderr.contains("echo undone"), "{}", refused.stderr);
    assert!(log(home.path()).is_empty(), "commands that were not named again are not run");
    let went_on =
        start(home.path(), &[&resume[..], &["--plan", "./plan.toml"]].concat()).end(Duration::from_mins(5));
    assert!(went_on.has_answered(), "{}{}", went_on.stdout, went_on.stderr);
    assert!(log(home.path()).len() >= 5, "the one that was left, and four repeats: {:?}", log(home.path()));
    assert!(!home.path().join("mode").exists());
}

#[test]
fn a_dry_run_names_every_command_and_runs_none() {
    let home = home(APPLY);
    let ended = evaluate(home.path(), &["--dry-run"]).end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in ["echo undone", "cat ", "NILOMETER_VALUE", "mode fast"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    assert!(log(home.path()).is_empty() && !home.path().join("r.sqlite").exists());
}

#[test]
fn clean_takes_back_what_a_killed_campaign_left_in_force() {
    let home = home(WAITS);
    let running = evaluate(home.path(), &[]);
    await_some("the setting", || home.path().join("again").exists().then_some(()));
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    let ended = running.end(Duration::from_mins(1));
    fs::write(home.path().join("go"), "").expect("space");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(home.path().join("mode").exists(), "nobody could take it back");

    let clean = ["clean", "--record", "r.sqlite"];
    let refused = start(home.path(), &clean).end(Duration::from_mins(1));
    assert!(refused.code == Some(2) && refused.stderr.contains("echo undone"), "{}", refused.stderr);
    assert!(log(home.path()).is_empty(), "commands that were not named again are not run");
    let named = [&clean[..], &["--plan", "./plan.toml", "target"]].concat();
    let cleaned = start(home.path(), &named).end(Duration::from_mins(1));
    assert_eq!(cleaned.code, Some(0), "{}{}", cleaned.stdout, cleaned.stderr);
    assert_eq!(log(home.path()), ["undone"]);
    assert!(!home.path().join("mode").exists() && cleaned.stdout.contains("removed "), "{}", cleaned.stdout);
    let again = start(home.path(), &[&clean[..], &["--trust-record"]].concat()).end(Duration::from_mins(1));
    assert!(again.code == Some(0) && again.stdout.contains("nothing to take back"), "{again:?}");
    assert_eq!(log(home.path()), ["undone"], "it was in force no more");
}

#[test]
fn what_can_not_be_taken_back_is_an_error_that_says_so() {
    let home = home(WAITS);
    let plan = fs::read_to_string(home.path().join("plan.toml")).expect("a plan");
    fs::write(
        home.path().join("plan.toml"),
        plan.replace("echo undone", "test -e HOME/mode || exit 7; exit 5; echo"),
    )
    .expect("space");
    let running = evaluate(home.path(), &[]);
    await_some("the setting", || home.path().join("again").exists().then_some(()));
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    running.end(Duration::from_mins(1));
    fs::write(home.path().join("go"), "").expect("space");
    let clean = ["clean", "--record", "r.sqlite", "--trust-record"];
    let ended = start(home.path(), &clean).end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("setting `mode`") && ended.stderr.contains("undone not: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_recording_has_its_settings_too_and_a_finding_under_each() {
    let home = home(APPLY);
    let plan = fs::read_to_string(home.path().join("plan.toml")).expect("a plan");
    let (_, setting) = plan.split_once("[stage.setting.mode]").expect("it has one");
    let ingest = "[stage.ingest]\ninstrument = \"./camera.toml\"\nduration = \"500 ms\"\nbuffer = \"64 MB\"\nkeep = \"64 MB\"\n";
    let head = "title = \"settings\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"images\"\n";
    let plan = format!("{head}{ingest}[stage.setting.mode]{setting}");
    fs::write(home.path().join("plan.toml"), plan).expect("space");
    fs::write(home.path().join("camera.toml"), camera(50)).expect("space");
    let ended = evaluate(home.path(), &[]).end(Duration::from_mins(5));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    let log = log(home.path());
    assert!(log.iter().any(|line| line == "slow") && log.iter().any(|line| line == "fast"), "{log:?}");
    assert!(log.chunks(2).all(|pair| pair[1] == "undone"), "one after the other: {log:?}");
    for part in ["mode slow: ", "mode fast: "] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}
