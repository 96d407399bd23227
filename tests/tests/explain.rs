//! What a line of another program rests on, by the real program and the real other one.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{Ended, run_directories, start};
use tempfile::TempDir;

fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("data")).expect("space");
    home
}

fn explain(home: &Path, line: &[&str]) -> Ended {
    start(home, &[&["explain", "--rounds", "2"], line].concat()).end(Duration::from_mins(10))
}

#[test]
fn a_line_of_dd_is_measured_beside_the_same_with_one_assumption_turned_round() {
    let home = home();
    let line = ["--keep", "kept", "--", "dd", "if=/dev/zero", "of=data/file", "bs=64K", "count=32"];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for part in [
        "dd itself",
        "as the line says",
        "  synced when it is closed",
        "  data that do not compress",
        "all of these",
    ] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    assert!(
        ended.stdout.contains("2.1 MB by 65.5 kB") || ended.stdout.contains("2 MiB by 64 KiB"),
        "{}",
        ended.stdout
    );
    assert!(home.path().join("kept/round-2.sqlite").is_file());
    assert_eq!(
        fs::metadata(home.path().join("data/file")).map(|file| file.len()).ok(),
        Some(2 << 20),
        "dd wrote it"
    );
    assert!(run_directories(&home.path().join("data")).is_empty());
}

#[test]
fn a_line_of_fio_is_run_with_its_own_figure_read() {
    let home = home();
    let line = [
        "--",
        "fio",
        "--name=a",
        "--rw=randread",
        "--bs=4k",
        "--size=2m",
        "--directory=data",
        "--runtime=60",
    ];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let itself = ended.stdout.lines().find(|line| line.starts_with("fio itself")).expect("its own figure");
    assert!(itself.contains("B/s"), "{itself}");
    assert!(ended.stdout.contains("  16 operations in flight"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Not taken over from the line: --runtime=60."), "{}", ended.stdout);
}

#[test]
fn what_can_not_be_read_or_does_not_work_is_said_and_nothing_is_left() {
    let home = home();
    for (line, part) in [
        (&["--", "iozone", "-a"][..], "write a line of fio, dd or ior"),
        (&["--", "dd", "of=data/file", "bs=1M"], "does not say how much"),
        (&["--", "fio", "--rw=write", "--size=1m", "--directory=gone"], "gone"),
        (&[], "LINE"),
    ] {
        let ended = explain(home.path(), line);
        assert_eq!(ended.code, Some(2), "{line:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(part), "{part} in {}", ended.stderr);
    }
    let wrong = ["--", "dd", "if=/dev/zero", "of=data/file", "bs=4096", "count=1", "iflag=nonsense"];
    let ended = explain(home.path(), &wrong);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("nonsense"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(home.path().join("data")).expect("a directory").count(), 0);
}
