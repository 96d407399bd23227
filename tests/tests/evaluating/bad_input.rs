//! What can't be done is refused before anything starts: exit code 2, one message, nothing left on the storage and no
//! record. What goes wrong later is data: the record has it, and exit code 1 says so.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{Invalid, Sample};
use nilometer_plan::Results;
use nilometer_tests::{Ended, FileSystem, Filler, may_mount, run_directories, start};
use tempfile::TempDir;

const PLAN: &str = r#"
title = "a test"
repeats = 1
reserve = "0 B"

[[stage]]
name = "large files"
time_limit = "1 s"
[stage.workload.stream]
file_size = "8 MiB"
block_size = "64 KiB"
access = "buffered"

[[stage]]
name = "many files"
[stage.workload.walk]
levels = 1
branching = 2
files = 100
"#;

const ENOSPC: i32 = 28;

/// Results of a table.
const TABLE: &str = "source,table,system,test,params,metric,value,value_min,value_max,sem,n,unit,date\n\
                     s,t,A,write,,mean,100,,,,,MB/s,2026-11-01\n";

/// A place for plan and record, beside the targets.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Desk(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A directory to be evaluated.
    fn target(&self) -> PathBuf {
        let path = self.path("target");
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn arguments(&self, plan: &str, targets: &[&Path]) -> Vec<PathBuf> {
        let file = self.path("plan.toml");
        fs::write(&file, plan).expect("a file");
        let mut arguments = vec!["evaluate".into(), "--plan".into(), file];
        arguments.extend(["--record".into(), self.path("record.sqlite")]);
        arguments.extend(targets.iter().map(|target| target.to_path_buf()));
        arguments
    }

    fn evaluate(&self, plan: &str, targets: &[&Path]) -> Ended {
        start(self.0.path(), &self.arguments(plan, targets)).end(Duration::from_mins(1))
    }

    fn record(&self) -> Results {
        nilometer_record::read(&self.path("record.sqlite")).expect("a valid record")
    }

    /// Expects that nothing was started, and that the one message has all of these parts.
    fn assert_refused(&self, plan: &str, target: &Path, parts: &[&str]) {
        let ended = self.evaluate(plan, &[target]);
        assert_one_message(&ended, parts);
        assert!(!self.path("record.sqlite").exists(), "a record was written: {ended:?}");
        if target.is_dir() {
            assert!(run_directories(target).is_empty(), "something was left: {ended:?}");
        }
    }
}

fn assert_one_message(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(ended.stdout, "", "stdout is for results");
    assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "one message: {}", ended.stderr);
    assert!(ended.stderr.starts_with("nilometer: "), "nothing before it: {}", ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
    }
}

#[test]
fn one_directory_is_one_target_by_whatever_paths_it_is_named() {
    let desk = Desk::new();
    let target = desk.target();
    let link = desk.path("link");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    for other in [target.clone(), link, target.join("../target/.")] {
        let ended = desk.evaluate(PLAN, &[&target, &other]);
        assert_one_message(&ended, &["is the same directory as", "name each target once"]);
        assert!(!desk.path("record.sqlite").exists() && run_directories(&target).is_empty(), "{ended:?}");
    }
}

#[test]
fn a_typo_in_a_plan_is_shown_at_its_line_with_the_valid_names() {
    let desk = Desk::new();
    let typo = PLAN.replace("block_size", "blok_size");
    desk.assert_refused(&typo, &desk.target(), &["plan.toml", "line 11", "`blok_size`", "`block_size`"]);
    let typo = PLAN.replace("workload.walk", "workload.wakl");
    desk.assert_refused(&typo, &desk.target(), &["plan.toml", "line 16", "`wakl`", "`walk`", "`stream`"]);
    let typo = PLAN.replace("repeats", "repeat");
    desk.assert_refused(&typo, &desk.target(), &["plan.toml", "line 3", "`repeat`", "`repeats`"]);
}

#[test]
fn impossible_sizes_are_refused() {
    let desk = Desk::new();
    for (size, parts) in [
        ("-8 MiB", ["line 10", "negative"]),
        ("8 MB", ["plan.toml:7", "whole number of blocks"]),
        ("8", ["line 10", "MiB"]),
        ("0 B", ["plan.toml:7", "whole number of blocks"]),
        ("99999999999 TiB", ["line 10", "99999999999 TiB"]),
    ] {
        desk.assert_refused(&PLAN.replace("8 MiB", size), &desk.target(), &parts);
    }
}

#[test]
fn a_matrix_that_would_take_years_or_more_than_there_is_is_refused_before_it_starts() {
    let desk = Desk::new();
    let workers = (1..=1000).map(|count| count.to_string()).collect::<Vec<_>>().join(", ");
    let years = PLAN
        .replace("repeats = 1", "repeats = 1000")
        .replace("time_limit = \"1 s\"", &format!("workers = [{workers}]"));
    desk.assert_refused(&years, &desk.target(), &["the plan takes", "time_limit of 24 h", "--scale"]);
    let short = PLAN.replace("repeats = 1", "repeats = 100\ntime_limit = \"1 s\"");
    desk.assert_refused(&short, &desk.target(), &["the plan takes", "time_limit of 1 s"]);
    let wide = PLAN.replace("\"8 MiB\"", "\"8000 TiB\"");
    desk.assert_refused(&wide, &desk.target(), &["`large files` needs", "free", "write --scale 0.0"]);
    let limited = PLAN.replace("repeats = 1", "repeats = 1\nspace_limit = \"1 MiB\"");
    desk.assert_refused(&limited, &desk.target(), &["needs 8 MiB", "space_limit is 1 MiB", "--scale 0.1"]);
}

#[test]
fn a_copy_from_nowhere_is_refused() {
    let desk = Desk::new();
    let copies = PLAN.replace("access = \"buffered\"", "access = \"buffered\"\nsource = \"disk\"");
    desk.assert_refused(&copies, &desk.target(), &["`large files`", "--source DIRECTORY"]);
}

#[test]
fn a_scale_or_a_number_of_repeats_that_makes_no_sense_is_refused() {
    let desk = Desk::new();
    let target = desk.target();
    for (option, value) in [("--scale", "0"), ("--scale", "1/0"), ("--scale", "big"), ("--repeats", "0")] {
        let mut arguments = desk.arguments(PLAN, &[&target]);
        arguments.extend([option.into(), value.into()]);
        let ended = start(desk.0.path(), &arguments).end(Duration::from_secs(20));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{option} {value}: {ended:?}");
        assert!(ended.stderr.contains(option) && run_directories(&target).is_empty(), "{}", ended.stderr);
    }
}

#[test]
fn what_belongs_to_an_instrument_is_refused_without_one() {
    let desk = Desk::new();
    let target = desk.target();
    for (option, value) in [("--duration", "5 s"), ("--buffer", "1 GiB")] {
        let mut arguments = desk.arguments(PLAN, &[&target]);
        arguments.extend([option.into(), value.into()]);
        let ended = start(desk.0.path(), &arguments).end(Duration::from_mins(1));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{option} {value}: {ended:?}");
        assert!(ended.stderr.contains("--for <INSTRUMENT>"), "{}", ended.stderr);
    }
}

#[test]
fn impossible_recordings_of_an_instrument_are_refused_at_once() {
    let desk = Desk::new();
    let target = desk.target();
    for (options, part) in [
        (&["--readers", "1", "--reader-rate", "0 MB/s"][..], "a reader of no rate reads nothing"),
        (&["--buffer", "1 B"], "--buffer 1 B: write room for at least two frames of 9.91 MB"),
        (&["--keep", "0 B"], "--keep 0 B: write more than 0"),
        (&["--compressibility", "1e9"], "diffraction of this shape reaches 2."),
        (&["--plan", "quick"], "--plan none: leave out the other plans"),
    ] {
        let mut arguments = vec!["evaluate", target.to_str().expect("a text"), "--plan", "none"];
        arguments.extend(["--for", "pilatus-2m", "--duration", "2 s"]);
        arguments.extend(options);
        let ended = start(desk.0.path(), &arguments).end(Duration::from_mins(1));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(part) && run_directories(&target).is_empty(), "{}", ended.stderr);
    }
    for arguments in [
        &["simulate", "pilatus-2m", "--to", "target", "--to", "target"][..],
        &["record", "fila10g-512m", "--to", "target", "--to", "target"],
    ] {
        let ended = start(desk.0.path(), arguments).end(Duration::from_mins(1));
        assert_one_message(&ended, &["you named target twice"]);
    }
    assert_eq!(fs::read_dir(&target).expect("a directory").count(), 0);
}

#[test]
fn a_plan_that_is_not_there_is_refused_with_the_known_names() {
    let desk = Desk::new();
    let record = desk.path("record.sqlite");
    for (name, parts) in [("quik", ["`quik`", "quick"]), ("quik.toml", ["quik.toml", "No such file"])] {
        let arguments = [
            "evaluate".into(),
            desk.target(),
            "--plan".into(),
            name.into(),
            "--record".into(),
            record.clone(),
        ];
        let ended = start(desk.0.path(), &arguments).end(Duration::from_secs(20));
        assert_one_message(&ended, &parts);
        assert!(!record.exists() && run_directories(&desk.target()).is_empty());
    }
}

#[test]
fn a_path_that_is_missing_or_no_directory_is_refused() {
    let desk = Desk::new();
    let missing = desk.path("missing");
    desk.assert_refused(PLAN, &missing, &[&missing.display().to_string(), "No such file"]);
    for (name, meant) in [("server:/export", "nfs://SERVER/EXPORT"), ("one,two", "without a comma")] {
        desk.assert_refused(PLAN, Path::new(name), &[name, "No such file", meant]);
    }
    let file = desk.path("file");
    fs::write(&file, "precious").expect("a file");
    desk.assert_refused(PLAN, &file, &[&file.display().to_string(), "not a directory"]);
    assert_eq!(fs::read_to_string(&file).expect("still there"), "precious");
}

#[test]
fn one_bad_target_among_good_ones_stops_all() {
    let desk = Desk::new();
    let (good, missing) = (desk.target(), desk.path("missing"));
    let ended = desk.evaluate(PLAN, &[&good, &missing]);
    assert_one_message(&ended, &[&missing.display().to_string()]);
    assert!(run_directories(&good).is_empty() && !desk.path("record.sqlite").exists());
}

#[test]
fn a_record_that_exists_is_not_overwritten() {
    let desk = Desk::new();
    let record = desk.path("record.sqlite");
    fs::write(&record, "precious").expect("a file");
    let ended = desk.evaluate(PLAN, &[&desk.target()]);
    assert_one_message(&ended, &[&record.display().to_string(), "exists"]);
    assert_eq!(fs::read_to_string(&record).expect("still there"), "precious");
    assert!(run_directories(&desk.target()).is_empty());
}

#[test]
fn a_record_that_can_not_be_written_is_refused() {
    let desk = Desk::new();
    let arguments = ["evaluate", "target", "--plan", "quick", "--record", "missing/record.sqlite"];
    desk.target();
    let ended = start(desk.0.path(), &arguments).end(Duration::from_secs(20));
    assert_one_message(&ended, &["missing/record.sqlite"]);
    assert!(run_directories(&desk.target()).is_empty());
}

#[test]
fn blocks_that_are_not_aligned_are_refused() {
    if !may_mount() {
        return;
    }
    let desk = Desk::new();
    let volume = FileSystem::ext4(64);
    let odd = PLAN.replace("8 MiB", "1000 KiB").replace("64 KiB", "1000 B").replace("1000 KiB", "100 kB");
    let direct = odd.replace("buffered", "direct");
    desk.assert_refused(&direct, volume.path(), &["large files", "1 kB", "O_DIRECT", "multiple"]);
    let ended = desk.evaluate(&odd, &[volume.path()]);
    assert!(ended.has_answered(), "through the page cache any block will do: {ended:?}");
}

#[test]
fn a_read_only_file_system_is_refused() {
    if !may_mount() {
        return;
    }
    let (desk, volume) = (Desk::new(), FileSystem::tmpfs("size=32m"));
    volume.make_read_only();
    let place = volume.path().display().to_string();
    desk.assert_refused(
        PLAN,
        volume.path(),
        &[&place, "can't be written (", "Read-only file system", "name a directory"],
    );
}

#[test]
fn a_plan_that_does_not_fit_is_refused() {
    if !may_mount() {
        return;
    }
    let (desk, memory, volume) = (Desk::new(), FileSystem::tmpfs("size=16m"), FileSystem::ext4(32));
    for path in [memory.path(), volume.path()] {
        let name = path.display().to_string();
        desk.assert_refused(
            &PLAN.replace("8 MiB", "64 MiB"),
            path,
            &["large files", "64 MiB", &name, "free"],
        );
        desk.assert_refused(&PLAN.replace("\"0 B\"", "\"1 GiB\""), path, &["must stay free", "1 GiB"]);
        let _filler = Filler::begin(path);
        desk.assert_refused(PLAN, path, &["large files", "8 MiB", &name, "free"]);
    }
}

#[test]
fn too_few_inodes_are_refused() {
    if !may_mount() {
        return;
    }
    let (desk, few) = (Desk::new(), FileSystem::tmpfs("size=32m,nr_inodes=200"));
    desk.assert_refused(PLAN, few.path(), &["many files", "inodes"]);
    // Even with hardly any left, nothing stays behind: the directory takes the last one, the marker finds none.
    for left in 0..3 {
        let free = rustix::fs::statvfs(few.path()).expect("mounted").f_ffree;
        for number in left..free {
            fs::write(few.path().join(format!("{number}")), "").expect("an inode");
        }
        desk.assert_refused(PLAN, few.path(), &["inodes"]);
        assert_eq!(rustix::fs::statvfs(few.path()).expect("mounted").f_ffree, left);
        for entry in fs::read_dir(few.path()).expect("a directory") {
            fs::remove_file(entry.expect("an entry").path()).expect("a file");
        }
    }
}

#[test]
fn a_file_system_that_hangs_is_refused() {
    if !may_mount() {
        return;
    }
    let (desk, volume) = (Desk::new(), FileSystem::ext4(32));
    volume.freeze();
    let ended = desk.evaluate(PLAN, &[volume.path()]);
    volume.thaw();
    assert_one_message(&ended, &[&volume.path().display().to_string(), "no answer within 30 s"]);
    assert!(!desk.path("record.sqlite").exists());
}

/// The samples of a target, each with its cell's stage.
fn samples(results: &Results, target: usize) -> Vec<(&str, &Sample)> {
    let of = results.samples.iter().filter(|measured| measured.key.target == target);
    of.map(|measured| (results.cells[measured.key.cell].stage.as_str(), &measured.sample)).collect()
}

/// So often each cell is measured where a disk is filled in the middle, which a busy machine may be late with.
const REPEATS: usize = 12;

/// Runs on a disk that somebody else fills in the middle, and on one with space.
fn filled_in_the_middle(full: &FileSystem) {
    let (desk, roomy) = (Desk::new(), FileSystem::tmpfs("size=64m"));
    let plan = PLAN.replace("repeats = 1", &format!("repeats = {REPEATS}"));
    let running = start(desk.0.path(), &desk.arguments(&plan, &[full.path(), roomy.path()]));
    running.await_run_directory(full.path(), &desk.path("record.sqlite"));
    let filler = Filler::begin(full.path());
    let ended = running.end(Duration::from_mins(2));
    drop(filler);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("samples failed"), "{ended:?}");
    let results = desk.record();
    let failed: Vec<_> =
        samples(&results, 0).into_iter().filter(|(_, sample)| !sample.errors.is_empty()).collect();
    assert!(!failed.is_empty(), "the full disk shows in no sample");
    for (stage, sample) in failed {
        assert_eq!(sample.invalid, Some(Invalid::Errors), "{stage}");
        let kinds: Vec<_> = sample.errors.keys().collect();
        assert!(kinds.iter().all(|kind| [ENOSPC, Sample::SHORT].contains(*kind)), "{stage}: {kinds:?}");
    }
    let whole: Vec<_> =
        samples(&results, 1).into_iter().filter(|(_, sample)| sample.errors.is_empty()).collect();
    assert_eq!(whole.len(), REPEATS * 3, "the other target goes on: {ended:?}");
    assert_eq!(results.targets.iter().filter(|target| target.left_out.is_some()).count(), 0);
    for target in [full, &roomy] {
        assert!(run_directories(target.path()).is_empty());
    }
}

#[test]
fn a_memory_file_system_that_fills_up_in_the_middle_is_data() {
    if may_mount() {
        filled_in_the_middle(&FileSystem::tmpfs("size=32m"));
    }
}

#[test]
fn a_disk_that_fills_up_in_the_middle_is_data() {
    if may_mount() {
        filled_in_the_middle(&FileSystem::ext4(48));
    }
}

#[test]
fn a_full_disk_leaves_no_part_of_a_record_or_a_report() {
    if !may_mount() {
        return;
    }
    let (desk, full) = (Desk::new(), FileSystem::tmpfs("size=4m"));
    fs::write(desk.path("t.csv"), TABLE).expect("space");
    let table = desk.path("t.csv").into_os_string().into_string().expect("plain letters");
    let record = desk.path("r.sqlite").into_os_string().into_string().expect("plain letters");
    let imported = start(desk.0.path(), &["import", &table, "--record", &record]).end(Duration::from_mins(1));
    assert_eq!(imported.code, Some(0), "{imported:?}");
    fs::write(full.path().join("fill"), vec![0; 8 << 20]).expect_err("it is full");
    let no_record =
        start(full.path(), &["import", &table, "--record", "r.sqlite"]).end(Duration::from_mins(1));
    assert_one_message(&no_record, &["r.sqlite", "No space left on device"]);
    let no_page = start(full.path(), &["report", &record, "--format", "html"]).end(Duration::from_mins(1));
    assert!(no_page.code == Some(1) && no_page.stderr.contains("No space left on device"), "{no_page:?}");
    let names: Vec<_> =
        fs::read_dir(full.path()).expect("a directory").map(|of| of.expect("one").file_name()).collect();
    assert_eq!(names, ["fill"]);
}

/// Records are UTF-8, and so is what names a target; which one it is, is said as far as it can be.
#[test]
fn a_target_whose_name_is_no_text_is_named_when_it_is_refused() {
    let desk = Desk::new();
    let target = desk.0.path().join(OsStr::from_bytes(b"data-\xff-here"));
    fs::create_dir(&target).expect("space");
    for command in ["evaluate", "describe"] {
        let arguments = [OsStr::new(command), target.as_os_str()];
        let ended = start(desk.0.path(), &arguments).end(Duration::from_mins(1));
        let said = &ended.stderr;
        assert_eq!(ended.code, Some(2), "{command}: {said}");
        assert!(said.contains("data-") && said.contains("-here") && said.contains("not UTF-8"), "{said}");
    }
}
