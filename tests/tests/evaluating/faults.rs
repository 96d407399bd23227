//! What can happen in the middle: the storage hangs or is gone, the user interrupts, somebody kills. The rest goes on, the
//! record has what happened, the program ends, and what it left can be removed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{Invalid, Phase};
use nilometer_plan::{Measured, Results};
use nilometer_tests::{
    Ended, FileSystem, Running, await_let_go, await_some, may_mount, run, run_directories, start,
};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

/// Each cell takes a second on each target, whatever the target.
const READS: &str = r#"
title = "reads for a second"
repeats = 3
reserve = "0 B"
hang_after = "6 s"
[[stage]]
name = "small reads"
time_limit = "1 s"
[stage.workload.random]
file_size = "4 MiB"
block_size = "4 KiB"
access = "best"
operations = 1000000000
"#;

/// Repeats of a campaign that does not come to its end before somebody ends it.
const MANY: usize = 100;

fn many_reads() -> String {
    READS.replace("repeats = 3", &format!("repeats = {MANY}"))
}

/// Each walk takes a second and more, so that something can happen in the middle of it.
const TREE: &str = r#"
title = "makes files"
repeats = 2
reserve = "0 B"
hang_after = "11 s"
[[stage]]
name = "many files"
rate_iops = 100
[stage.workload.walk]
levels = 1
branching = 2
files = 50
"#;

/// A campaign that runs, on targets in this order.
struct Campaign {
    directory: TempDir,
    running: Running,
}

fn begin(plan: &str, targets: &[&Path]) -> Campaign {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("plan.toml"), plan).expect("a file");
    let mut arguments =
        ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"].map(PathBuf::from).to_vec();
    arguments.extend(targets.iter().map(|target| target.to_path_buf()));
    let running = start(directory.path(), &arguments);
    Campaign { directory, running }
}

impl Campaign {
    fn await_run_directory(&self, target: &Path) -> PathBuf {
        self.running.await_run_directory(target, &self.directory.path().join("r.sqlite"))
    }

    /// How it ended, and its record.
    fn end(self, limit: Duration) -> (Ended, Results) {
        let ended = self.running.end(limit);
        let results = nilometer_record::read(&self.directory.path().join("r.sqlite"));
        (ended, results.expect("a record is valid whenever it is read"))
    }
}

/// Long enough for a busy machine, too short for a hang.
const LIMIT: Duration = Duration::from_mins(2);

/// Samples of a target that are good, but for a processor that was busy. What is only laid out does not count.
fn valid(results: &Results, target: usize) -> usize {
    let good = |measured: &&Measured| {
        let Measured { key, sample } = measured;
        let read = matches!(key.phase, Phase::Read | Phase::Walk);
        read && key.target == target && matches!(sample.invalid, None | Some(Invalid::Starved(_)))
    };
    results.samples.iter().filter(good).count()
}

/// The first target was given up for this reason, the second was measured to the end.
fn assert_left_out(ended: &Ended, results: &Results, why: &str, all: usize) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let [broken, sound] = &results.targets[..] else { panic!("two targets") };
    assert!(broken.left_out.as_ref().is_some_and(|text| text.contains(why)), "{broken:?}: {ended:?}");
    assert_eq!((&sound.left_out, valid(results, 1)), (&None, all), "{ended:?}");
    assert!(ended.stdout.contains("left out"), "the report says so: {ended:?}");
    assert!(ended.stderr.contains("`nilometer clean "), "and what to do: {ended:?}");
}

fn clean(path: &Path) -> Ended {
    run(&[Path::new("clean"), path])
}

fn assert_cleaned(target: &Path) {
    let ended = clean(target);
    assert!(ended.has_answered() && run_directories(target).is_empty(), "{ended:?}");
    assert!(ended.stdout.starts_with("removed "), "{ended:?}");
}

/// Nothing ends a thread that waits for a frozen file system, but the program ends.
fn hangs(plan: &str, all: usize, freeze_when: impl FnOnce(&mut Campaign)) -> Results {
    let (frozen, sound) = (FileSystem::ext4(64), FileSystem::tmpfs("size=64m"));
    let mut campaign = begin(plan, &[frozen.path(), sound.path()]);
    let run = campaign.await_run_directory(frozen.path());
    freeze_when(&mut campaign);
    frozen.freeze();
    let (ended, results) = campaign.end(LIMIT);
    assert_left_out(&ended, &results, "hung", all);
    assert!(ended.stderr.contains("hangs in the kernel and is left there"), "{ended:?}");
    let refused = clean(frozen.path());
    assert!(refused.code == Some(1) && refused.stderr.contains("in use"), "{refused:?}");
    assert!(run_directories(sound.path()).is_empty());
    frozen.thaw();
    await_let_go(&run);
    assert_cleaned(frozen.path());
    results
}

#[test]
fn a_target_that_hangs_from_the_start_is_left_out() {
    if may_mount() {
        let results = hangs(TREE, 2, |_| {});
        let hung = results.samples.iter().find(|measured| measured.sample.invalid == Some(Invalid::Hung));
        assert_eq!(hung.map(|measured| measured.key.target), Some(0), "the sample says so");
    }
}

#[test]
fn a_target_that_hangs_in_the_middle_is_left_out() {
    if may_mount() {
        hangs(READS, 3, |campaign| campaign.running.await_said("[1/"));
    }
}

#[test]
fn a_target_that_disappears_is_left_out() {
    if !may_mount() {
        return;
    }
    let (mut lost, sound) = (FileSystem::xfs(320), FileSystem::tmpfs("size=64m"));
    let mut campaign = begin(READS, &[lost.path(), sound.path()]);
    campaign.running.await_said("[1/");
    lost.shut_down();
    let (ended, results) = campaign.end(LIMIT);
    assert_left_out(&ended, &results, "Input/output error", 3);
    assert!(run_directories(sound.path()).is_empty());
    lost.remount_after(|| {});
    assert_cleaned(lost.path());
}

/// A directory to be evaluated that needs no mount.
fn plain() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_path_buf();
    (directory, path)
}

#[test]
fn an_interrupt_ends_with_a_report_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let (_kept, target) = plain();
        let mut campaign = begin(&many_reads(), &[&target]);
        campaign.running.await_said("[1/");
        campaign.running.signal(signal);
        let (ended, results) = campaign.end(LIMIT);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("interrupted"), "{ended:?}");
        assert!(ended.stdout.contains("small reads") && ended.stdout.contains("Record: "), "{ended:?}");
        assert!((1..MANY).contains(&valid(&results, 0)), "{} samples", results.samples.len());
        assert!(run_directories(&target).is_empty());
    }
}

/// A phase of minutes is broken off, and counts for nothing.
#[test]
fn an_interrupt_does_not_wait_for_the_phase() {
    let (_kept, target) = plain();
    let campaign = begin(&READS.replace("\"1 s\"", "\"10 min\""), &[&target]);
    let run = campaign.await_run_directory(&target);
    await_some("the phase", || run.join("n_w0").exists().then_some(()));
    campaign.running.signal(Signal::INT);
    let (ended, results) = campaign.end(Duration::from_secs(20));
    assert_eq!((ended.code, results.samples.len()), (Some(1), 0), "{ended:?}");
    assert!(ended.stderr.contains("interrupted: 3 measurements are missing"), "{ended:?}");
    assert!(ended.stderr.contains("`nilometer evaluate --resume --record r.sqlite`"), "{ended:?}");
    assert!(run_directories(&target).is_empty());
}

/// The first one waits for a storage system that hangs, the second does not.
#[test]
fn a_second_interrupt_ends_at_once() {
    if !may_mount() {
        return;
    }
    let target = FileSystem::ext4(256);
    // So many that they are still being made when the file system is frozen.
    let plan = TREE.replace("\"11 s\"", "\"10 min\"").replace("files = 50", "files = 18000");
    let campaign = begin(&plan, &[target.path()]);
    let run = campaign.await_run_directory(target.path());
    await_some("the phase", || run.join("n_w0").exists().then_some(()));
    target.freeze();
    campaign.running.signal(Signal::INT);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!campaign.running.stderr().contains("interrupted"), "the hang is waited for");
    campaign.running.signal(Signal::INT);
    let (ended, _) = campaign.end(Duration::from_secs(20));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    target.thaw();
    await_let_go(&run);
    assert_cleaned(target.path());
}

#[test]
fn after_a_kill_the_record_is_valid_and_the_rest_can_be_removed() {
    let (_kept, target) = plain();
    let mut campaign = begin(&many_reads(), &[&target]);
    let run = campaign.await_run_directory(&target);
    campaign.running.await_said("[1/");
    campaign.running.signal(Signal::KILL);
    let (ended, results) = campaign.end(Duration::from_secs(20));
    assert_eq!((ended.code, results.samples.is_empty()), (None, false), "{ended:?}");
    await_let_go(&run);
    assert_cleaned(&target);
}

#[test]
fn if_only_the_worker_is_killed_the_program_says_so() {
    let (_kept, target) = plain();
    let campaign = begin(&many_reads(), &[&target]);
    let run = campaign.await_run_directory(&target);
    kill_process(campaign.running.worker(), Signal::KILL).expect("it runs");
    let (ended, _) = campaign.end(Duration::from_secs(20));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("was ended: signal: 9"), "{ended:?}");
    await_let_go(&run);
    assert_cleaned(&target);
}

#[test]
fn a_pause_stops_the_load_too() {
    let (_kept, target) = plain();
    let campaign = begin(TREE, &[&target]);
    campaign.await_run_directory(&target);
    campaign.running.signal(Signal::TSTP);
    await_some("the pause", || campaign.running.is_stopped().then_some(()));
    campaign.running.signal(Signal::CONT);
    let (ended, results) = campaign.end(LIMIT);
    assert!(ended.has_answered() && valid(&results, 0) == 2, "{ended:?}");
}
