//! What a line of another program rests on, by the real program and the real other one.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{
    Ended, FileSystem, Mpi, Running, command_of, may_mount, nilometer, run_directories, start,
};
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
        "--thinktime=1",
        "--output-format=terse",
    ];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let itself = ended.stdout.lines().find(|line| line.starts_with("fio itself")).expect("its own figure");
    assert!(itself.contains("B/s"), "{itself}");
    assert!(ended.stdout.contains("  16 operations in flight"), "{}", ended.stdout);
    assert!(ended.stdout.contains("at most 60 s"), "{}", ended.stdout);
    let not_taken = "Not taken over from the line: --thinktime=1: it pauses between operations.";
    assert!(ended.stdout.contains(not_taken), "{}", ended.stdout);
    assert!(ended.stdout.contains("Without effect here: --output-format=terse."), "{}", ended.stdout);
}

#[test]
fn what_can_not_be_read_or_does_not_work_is_said_and_nothing_is_left() {
    let home = home();
    for (line, part) in [
        (&["--", "gdsio", "-a"][..], "write a line of fio, dd, ior, mdtest, elbencho, iozone"),
        (&["--", "dd", "of=data/file", "bs=1M"], "does not say how much"),
        (&["--", "fio", "--rw=write", "--size=1m", "--directory=gone"], "gone"),
        (&["--", "fio", "--filename=/dev/sda", "--size=1m"], "/dev/sda is a device"),
        (&["--", "mpirun", "--map-bye", "node", "ior"], "write --map-by"),
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

#[test]
fn a_line_is_not_run_on_anything_that_exists() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    fs::write(at("data/mine"), "precious").expect("space");
    fs::write(at("jobs.fio"), "[a]\nrw=write\nsize=1m\nfilename=data/new:data/mine\n").expect("space");
    std::os::unix::fs::symlink(at("data/mine"), at("link")).expect("space");
    let lines: [&[&str]; 8] = [
        &["dd", "if=/dev/zero", "of=data/mine", "bs=1M", "count=1"],
        &["dd", "if=/dev/zero", "of=link", "bs=1M", "count=1"],
        &["fio", "jobs.fio"],
        &["fio", "--name=a", "--rw=write", "--size=1m", "--directory=data", "--filename=mine"],
        &["ior", "-w", "-o", "data/mine"],
        &["mdtest", "-n", "10", "-d", "data"],
        &["elbencho", "-w", "-s", "1m", "-t", "1", "data/mine"],
        &["iozone", "-s", "1m", "-r", "4k", "-f", "data/mine"],
    ];
    for line in lines {
        let ended = explain(home.path(), &[&["--"], line].concat());
        assert_eq!(ended.code, Some(2), "{line:?}: {ended:?}");
        for part in ["only on files that it makes itself", "a path that does not exist yet", "--ours-only"] {
            assert!(ended.stderr.contains(part), "{line:?}: {part} in {}", ended.stderr);
        }
    }
    assert_eq!(fs::read_to_string(at("data/mine")).expect("it is there"), "precious");
    assert!(!at("data/new").exists() && run_directories(&at("data")).is_empty());
    let ours = explain(
        home.path(),
        &["--ours-only", "--", "dd", "if=/dev/zero", "of=data/mine", "bs=64K", "count=4"],
    );
    assert_eq!(ours.code, Some(0), "{ours:?}");
    assert_eq!(fs::read_to_string(at("data/mine")).expect("it is there"), "precious");
}

#[test]
fn where_there_is_no_room_that_is_said_before_anything_is_written() {
    if !may_mount() {
        return;
    }
    let system = FileSystem::tmpfs("size=16m");
    let home = home();
    let file = system.path().join("file");
    let of = format!("of={}", file.display());
    let ended = explain(home.path(), &["--", "dd", "if=/dev/zero", &of, "bs=1M", "count=24"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("nilometer: ")).collect();
    assert!(
        errors.len() == 1
            && ended.stderr.contains("16 MiB free")
            && ended.stderr.contains("a smaller size in the line"),
        "one message: {}",
        ended.stderr
    );
    assert!(ended.stdout.is_empty() && !file.exists(), "dd was not run: {}", ended.stdout);
    assert!(run_directories(system.path()).is_empty());
}

/// The line's own file leaves too little room for ours.
#[test]
fn a_disk_that_is_full_in_the_middle_ends_it_with_what_was_measured() {
    if !may_mount() {
        return;
    }
    let system = FileSystem::tmpfs("size=24m");
    let home = home();
    let file = system.path().join("file");
    let of = format!("of={}", file.display());
    let ended = explain(home.path(), &["--", "dd", "if=/dev/zero", &of, "bs=1M", "count=16"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("8 MiB free"), "{}", ended.stderr);
    assert_eq!(fs::metadata(&file).map(|file| file.len()).ok(), Some(16 << 20), "dd wrote it");
    assert!(run_directories(system.path()).is_empty());
}

#[test]
fn a_line_that_fails_later_loses_nothing_that_was_measured() {
    let home = home();
    // It works once.
    let script =
        "#!/bin/sh\ntest ! -e again || { echo it is broken >&2; exit 3; }\ntouch again\nexec dd \"$@\"\n";
    let tool = home.path().join("dd");
    fs::write(&tool, script).expect("space");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let line = ["--rounds", "4", "--", "./dd", "if=/dev/zero", "of=data/file", "bs=64K", "count=16"];
    let ended = start(home.path(), &[&["explain"], &line[..]].concat()).end(Duration::from_mins(10));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("2 rounds") && ended.stdout.contains("as the line says"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("ended after 2 of 4 rounds") && ended.stderr.contains("it is broken"),
        "{}",
        ended.stderr
    );
}

/// mdtest is in no package: `--ours-only` leaves it out.
#[test]
fn a_line_of_mdtest_has_a_table_for_each_of_its_figures() {
    let home = home();
    let line = ["--ours-only", "--", "mdtest", "-n", "40", "-F", "-u", "-d", "data/md", "-y"];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for part in [
        "File creation",
        "File stat",
        "File read",
        "File removal",
        "  4 KiB in each file",
        "  4 workers at once",
    ] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    assert!(ended.stdout.contains("/s") && !ended.stdout.contains("Directory creation"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Not taken over from the line: -y: it syncs"), "{}", ended.stdout);
    assert!(run_directories(&home.path().join("data")).is_empty());
}

#[test]
fn the_clock_is_turned_round_where_data_are_written() {
    let home = home();
    let line =
        ["--ours-only", "--", "dd", "if=/dev/zero", "of=data/file", "bs=64K", "count=64", "conv=fsync"];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("  the clock stops at the last write"), "{}", ended.stdout);
}

/// The rate holds the line and its cell alike: without it, the cell is many times as fast, and nothing else counts.
#[test]
fn a_limit_of_the_rate_is_taken_over_and_turned_round() {
    let home = home();
    let line = [
        "--ours-only",
        "--rounds",
        "6",
        "--",
        "fio",
        "-name=a",
        "-directory=data",
        "-rw=randwrite",
        "-bs=4k",
        "-size=1m",
        "-rate_iops=300",
        "-runtime=200ms",
        "-time_based",
    ];
    let ended = start(home.path(), &[&["explain"], &line[..]].concat()).end(Duration::from_mins(10));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let without = ended.stdout.lines().find(|line| line.starts_with("  without the limit")).expect("a row");
    assert!(without.contains("times as fast as the line's cell"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("rests most"), "its own figure is unknown: {}", ended.stdout);
    let expected = "Within the cell alone, \"without the limit of its rate\" changes the figure most.";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
}

/// A program that is slower than its cell for a reason that no option says.
#[test]
fn a_cell_that_misses_the_figure_explains_nothing_of_it() {
    let home = home();
    let tool = home.path().join("dd");
    let script = "#!/bin/sh\necho '65536 bytes (66 kB, 64 KiB) copied, 100 s, 655 B/s' >&2\n";
    fs::write(&tool, script).expect("space");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let line = ["--rounds", "6", "--", "./dd", "if=/dev/urandom", "of=data/file", "bs=64K", "count=1"];
    let ended = start(home.path(), &[&["explain"], &line[..]].concat()).end(Duration::from_mins(10));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for part in [
        "its source alone, /dev/urandom",
        "than its cell by a factor of",
        "Not taken over from the line: if=/dev/urandom: dd waits for this source",
    ] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("rests most"), "{}", ended.stdout);
}

#[test]
fn mixes_job_files_and_fronts_of_lines_are_measured() {
    let home = home();
    fs::write(
        home.path().join("jobs.fio"),
        "[global]\nbs=4k\nsize=1m\ndirectory=data\n[a]\nrw=randrw\nrwmixread=75\n",
    )
    .expect("space");
    let line = ["--ours-only", "--", "env", "A=1", "nice", "-n", "1", "fio", "jobs.fio"];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("nice -n 1 (our cells run in it too)"), "{}", ended.stdout);
    let line = [
        "--ours-only",
        "--",
        "mpirun",
        "--map-by",
        "node",
        "-np",
        "2",
        "ior",
        "-w",
        "-t",
        "64k",
        "-b",
        "1m",
        "-F",
        "-o",
        "data/f",
    ];
    let ended = explain(home.path(), &line);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("2 workers") && ended.stdout.contains("--map-by node"), "{}", ended.stdout);
    assert!(run_directories(&home.path().join("data")).is_empty());
}

/// Cells by MPI-IO are made by the processes that the line's launcher starts.
#[test]
fn lines_with_mpi_io_have_cells_by_the_same_launcher() {
    for mpi in Mpi::all() {
        let home = home();
        let launcher = mpi.command(2, home.path(), &["ior"]);
        let front = [launcher.get_program()].into_iter().chain(launcher.get_args());
        let options = ["-a", "MPIIO", "-c", "-w", "-t", "64k", "-b", "1m", "-o", "data/file"];
        let mut command = command_of(nilometer());
        command.current_dir(home.path()).env("NILOMETER_MPI", mpi.adapter());
        command.args(["explain", "--rounds", "1", "--ours-only", "--"]).args(front).args(options);
        let ended = Running::of(command).end(Duration::from_mins(5));
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("  by calls of POSIX"), "{}", ended.stdout);
        assert!(!ended.stdout.contains("Not taken over"), "{}", ended.stdout);
        assert!(!ended.stdout.contains("No figure"), "{}", ended.stdout);
        assert!(run_directories(&home.path().join("data")).is_empty());
    }
}
