//! `nilometer report` from outside: every format, where it goes, and what is refused.

use std::{fs, path::Path, time::Duration};

use nilometer_model::{Nanos, Phase, Sample};
use nilometer_plan::{Key, Results, TargetEntry};
use nilometer_record::Record;
use nilometer_tests::{Ended, one_cell, start};
use tempfile::TempDir;

const RECORD: &str = "my study.sqlite";

/// A directory with a record of two targets and six rounds.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let target =
        |path: &str| TargetEntry { path: path.into(), file_system: "ext4".into(), ..TargetEntry::default() };
    let head = Results {
        title: "A test".into(),
        margin: 5.0,
        repeats: 6,
        targets: vec![target("/fast"), target("/slow")],
        cells: one_cell("large"),
        ..Results::default()
    };
    let mut record = Record::create(&home.path().join(RECORD), &head, 0).expect("a new record");
    for repeat in 0..6 {
        for target in 0..2 {
            let wall = Nanos::from_millis(100 * (target as u64 + 1) + u64::from(repeat));
            let sample = Sample { bytes: 1 << 27, operations: 128, wall, ..Sample::new(Nanos(0)) };
            let key = Key { target, cell: 0, repeat, phase: Phase::Write };
            record.add(key, &sample).expect("space");
        }
    }
    home
}

fn report(home: &Path, arguments: &[&str]) -> Ended {
    let all: Vec<&str> = ["report", RECORD].into_iter().chain(arguments.iter().copied()).collect();
    start(home, &all).end(Duration::from_mins(1))
}

#[test]
fn every_format_says_which_target_is_faster() {
    let home = home();
    for (format, part) in [
        ("terminal", "write  A is 2.0 times as fast as B (2.0 to 2.0)"),
        ("markdown", "| large | write | A is 2.0 times as fast as B (2.0 to 2.0) |"),
        ("json", "\"answer\": \"faster\""),
        ("csv", "large,\"10 files in 1 directories, 1 worker\",write,/fast,ext4,5,"),
    ] {
        let ended = report(home.path(), &["--format", format]);
        assert_eq!(ended.code, Some(0), "{format}: {}", ended.stderr);
        assert!(ended.stdout.contains(part), "{format}: {part} is missing in: {}", ended.stdout);
        assert!(!ended.stdout.contains('\u{1b}'), "{format}: colours go to terminals only");
    }
    assert!(report(home.path(), &[]).stdout.contains("COMPARED"), "the terminal's is the default");
}

#[test]
fn a_page_goes_beside_where_one_works_and_is_written_again() {
    let home = home();
    for _ in 0..2 {
        let ended = report(home.path(), &["--format", "html"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
        assert!(ended.stderr.contains("my study.html"), "{}", ended.stderr);
    }
    let page = fs::read_to_string(home.path().join("my study.html")).expect("the page");
    assert!(page.contains("A is 2.0 times as fast as B") && page.ends_with("</html>\n"));
    let ended = report(home.path(), &["--format", "csv", "--output", "table.csv"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(home.path().join("table.csv")).expect("a table").lines().count(), 13);
}

#[test]
fn a_record_is_never_overwritten_and_unknown_formats_are_refused() {
    let home = home();
    std::os::unix::fs::symlink(RECORD, home.path().join("other")).expect("a link");
    let before = fs::read(home.path().join(RECORD)).expect("the record");
    for output in [RECORD, "./my study.sqlite", "other"] {
        let ended = report(home.path(), &["--format", "html", "--output", output]);
        assert_eq!(ended.code, Some(2), "{output}: {}", ended.stderr);
        assert!(ended.stderr.contains("is the record itself"), "{}", ended.stderr);
    }
    assert!(fs::read(home.path().join(RECORD)).expect("the record") == before);
    let ended = report(home.path(), &["--format", "pdf"]);
    assert_eq!(ended.code, Some(2));
    for choice in ["terminal", "html", "markdown", "csv", "json"] {
        assert!(ended.stderr.contains(choice), "{choice} is missing in: {}", ended.stderr);
    }
    assert_eq!(report(home.path(), &["--format", "csv", "--output", "no/such/place"]).code, Some(1));
}

#[test]
fn a_page_that_nobody_named_takes_the_place_of_a_report_only() {
    let home = home();
    let page = home.path().join("my study.html");
    fs::write(&page, "<!DOCTYPE html><title>my thesis</title>").expect("space");
    let refused = report(home.path(), &["--format", "html"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is no report of nilometer"), "{refused:?}");
    assert!(fs::read_to_string(&page).expect("it is there").contains("my thesis"));
    fs::remove_file(&page).expect("a file");
    for again in ["the first", "in place of the first"] {
        let written = report(home.path(), &["--format", "html"]);
        assert_eq!(written.code, Some(0), "{again}: {written:?}");
    }
}
