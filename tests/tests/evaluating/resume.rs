//! A campaign that was killed goes on where it stopped: nothing is measured twice, nothing is missing, nothing is left on
//! the targets. Whatever is not the record of this campaign is refused.

use std::{
    collections::BTreeSet,
    fs,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{Phase, Seed};
use nilometer_plan::{Key, Results};
use nilometer_record::{OLDEST_SCHEMA, SCHEMA_VERSION};
use nilometer_tests::{
    Ended, FileSystem, Filler, Running, await_let_go, await_some, command_of, kills, may_mount, nilometer,
    run_directories, start,
};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

/// Four cells on each of three targets, and one on all at once, in three rounds.
const PLAN: &str = r#"
title = "small cells"
repeats = 2
warm_up = 1
seed = 5
reserve = "0 B"
hang_after = "20 s"
[[stage]]
name = "files"
volumes = ["alone", "together"]
[stage.workload.stream]
file_size = "1 MiB"
block_size = "256 KiB"
access = "buffered"
[[stage]]
name = "reads"
time_limit = "100 ms"
[stage.workload.random]
file_size = "1 MiB"
block_size = "4 KiB"
access = "buffered"
operations = 1000000000
[[stage]]
name = "tree"
[stage.workload.walk]
levels = 1
branching = 2
files = [10, 20]
"#;

/// A hang is known after this time. On a busy machine a target of memory may wait for a processor for some of it.
const SOON: &str = "\"6 s\"";

/// All that a whole campaign on so many targets measures, warm-up apart.
fn all_keys(targets: usize) -> BTreeSet<Key> {
    let phases: [&[Phase]; 5] = [
        &[Phase::Write, Phase::Read],
        &[Phase::Write, Phase::Read],
        &[Phase::Read],
        &[Phase::Walk],
        &[Phase::Walk],
    ];
    let mut keys = BTreeSet::new();
    for (cell, phases) in phases.into_iter().enumerate() {
        for target in 0..targets {
            for repeat in 1..3 {
                keys.extend(phases.iter().map(|&phase| Key { target, cell, repeat, phase }));
            }
        }
    }
    keys
}

/// A directory with a plan in it, in which a campaign is begun and goes on.
struct Home {
    directory: TempDir,
    targets: Vec<PathBuf>,
}

/// Long enough for a machine that is busy with other things, which every phase waits for.
const LIMIT: Duration = Duration::from_mins(5);

impl Home {
    fn new(plan: &str, targets: &[&Path]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("plan.toml"), plan).expect("a file");
        Home { directory, targets: targets.iter().map(|path| path.to_path_buf()).collect() }
    }

    fn record(&self) -> PathBuf {
        self.directory.path().join("r.sqlite")
    }

    fn begin(&self) -> Running {
        let mut arguments: Vec<PathBuf> =
            ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"].map(PathBuf::from).to_vec();
        arguments.extend(self.targets.iter().cloned());
        start(self.directory.path(), &arguments)
    }

    fn resume(&self, more: &[&str]) -> Running {
        let mut arguments = vec!["evaluate", "--resume", "--record", "r.sqlite"];
        arguments.extend(more);
        start(self.directory.path(), &arguments)
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.record()).expect("a record is valid whenever it is read")
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        self.targets.iter().flat_map(|target| run_directories(target)).collect()
    }
}

/// Directories to be evaluated that need no mount: two on a disk, one in memory.
fn plain() -> [TempDir; 3] {
    let on_disk = || tempfile::tempdir().expect("a temporary directory");
    [on_disk(), on_disk(), tempfile::tempdir_in("/dev/shm").expect("a temporary directory")]
}

fn paths(directories: &[TempDir]) -> Vec<&Path> {
    directories.iter().map(TempDir::path).collect()
}

/// No sample is there twice: the record itself would refuse that. None is missing.
fn assert_complete(results: &Results, expected: &BTreeSet<Key>) {
    let found: Vec<Key> = results.samples.iter().map(|measured| measured.key).collect();
    let distinct: BTreeSet<Key> = found.iter().copied().collect();
    assert_eq!((found.len(), &distinct), (expected.len(), expected));
}

#[test]
fn after_any_number_of_kills_at_any_moment_all_is_measured_once() {
    let directories = plain();
    let seed = u64::from(std::process::id());
    let mut moments = Seed(seed).stream();
    let (mut killed, most) = (0, kills(20, 300));
    while killed < most {
        let home = Home::new(PLAN, &paths(&directories));
        let mut running = home.begin();
        loop {
            // Half a second of it passes before anything is measured.
            std::thread::sleep(Duration::from_millis(moments.below(1500)));
            if killed == most || running.is_over() {
                break;
            }
            running.signal(Signal::KILL);
            killed += 1;
            drop(running.end(LIMIT));
            // A record is whole or absent, and readable at any moment.
            let begun = home.record().exists();
            assert!(!begun || home.results().samples.len() <= all_keys(3).len());
            running = if begun { home.resume(&[]) } else { home.begin() };
        }
        let ended = running.end(LIMIT);
        assert!(ended.has_answered(), "seed {seed}, {killed} kills: {ended:?}");
        assert_complete(&home.results(), &all_keys(3));
        assert_eq!(home.left_behind(), Vec::<PathBuf>::new(), "seed {seed}, {killed} kills");
        let files = fs::read_dir(home.directory.path()).expect("a directory").flatten();
        let names: Vec<_> = files.map(|file| file.file_name()).collect();
        assert_eq!(names.len(), 3, "the plan, the record and its page: no lock, no journal: {names:?}");
    }
}

/// The cell that hangs counts as measured; the rest is measured when the target answers again.
#[test]
fn a_target_that_was_left_out_gets_another_chance() {
    if !may_mount() {
        return;
    }
    let (frozen, sound) = (FileSystem::ext4(64), FileSystem::tmpfs("size=64m"));
    let home = Home::new(&PLAN.replace("\"20 s\"", SOON), &[frozen.path(), sound.path()]);
    let mut running = home.begin();
    running.await_said("[3/");
    frozen.freeze();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let results = home.results();
    assert!(results.targets[0].left_out.is_some() && results.targets[1].left_out.is_none(), "{ended:?}");
    let on_sound = |keys: &BTreeSet<Key>| keys.iter().filter(|key| key.target == 1).count();
    let measured: BTreeSet<Key> = results.samples.iter().map(|measured| measured.key).collect();
    assert_eq!(on_sound(&measured), on_sound(&all_keys(2)), "the other one went on");

    let run = run_directories(frozen.path()).remove(0);
    frozen.thaw();
    await_let_go(&run);
    let ended = home.resume(&[]).end(LIMIT);
    let results = home.results();
    assert!(results.targets.iter().all(|target| target.left_out.is_none()), "{ended:?}");
    assert!(results.events.iter().any(|event| event.what.starts_with("resumed by ")));
    assert!(results.events.iter().any(|event| event.what.contains("used again, after it was left out: ")));
    let found: BTreeSet<Key> = results.samples.iter().map(|measured| measured.key).collect();
    let missing: Vec<Key> = all_keys(2).difference(&found).copied().collect();
    // The cell that hung has one sample, which may be of a phase before its last.
    assert!(missing.len() <= 1, "{missing:?}");
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
}

/// A process in a system call that hangs keeps its files, and so the lock of the record, until the call returns.
#[test]
fn a_killed_campaign_that_storage_keeps_from_ending_is_waited_for() {
    if !may_mount() {
        return;
    }
    let (frozen, sound) = (FileSystem::ext4(64), FileSystem::tmpfs("size=64m"));
    let home = Home::new(PLAN, &[frozen.path(), sound.path()]);
    let mut running = home.begin();
    running.await_said("[3/");
    frozen.freeze();
    let worker = running.worker();
    await_some("a call that hangs", || waits_for_storage(worker).then_some(()));
    running.signal(Signal::KILL);
    let mut resumed = home.resume(&[]);
    // Longer than it tries to get a lock that another process holds.
    std::thread::sleep(Duration::from_secs(3));
    assert!(!resumed.is_over(), "{:?}", resumed.end(LIMIT));
    frozen.thaw();
    let ended = resumed.end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    assert_complete(&home.results(), &all_keys(2));
    drop(running.end(LIMIT));
}

/// A kill may come between the start of the process that does the work and its word to the kernel that it is to die with the
/// other: nobody would ever hear of it.
#[test]
fn a_worker_whose_parent_is_gone_does_nothing() {
    let [target, ..] = plain();
    let home = Home::new(PLAN, &[target.path()]);
    let (parents_end, stdin) = UnixStream::pair().expect("sockets");
    drop(parents_end);
    let mut worker = command_of(nilometer());
    worker.args(["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"]).arg(target.path());
    worker.current_dir(home.directory.path()).env("NILOMETER_WATCHED", "1").stdin(OwnedFd::from(stdin));
    let ended = worker.output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("the process that started this one has ended"), "{said}");
    assert!(!ended.status.success() && !home.record().exists() && home.left_behind().is_empty(), "{said}");
}

/// Whether a thread of this process is in a call that no signal ends.
fn waits_for_storage(process: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    threads.into_iter().flatten().flatten().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('D'))
    })
}

/// One hangs, one fills up, one is gone; the fourth is measured to the end.
#[test]
fn whatever_happens_to_some_targets_the_others_go_on() {
    if !may_mount() {
        return;
    }
    let (frozen, full, gone) = (FileSystem::ext4(64), FileSystem::tmpfs("size=24m"), FileSystem::xfs(320));
    let sound = FileSystem::tmpfs("size=64m");
    let plan = PLAN.replace("\"20 s\"", SOON);
    let home = Home::new(&plan, &[frozen.path(), full.path(), gone.path(), sound.path()]);
    let mut running = home.begin();
    running.await_said("[3/");
    let filler = Filler::begin(full.path());
    gone.shut_down();
    frozen.freeze();
    let ended = running.end(LIMIT);
    drop(filler);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let results = home.results();
    let left_out = [0, 1, 2, 3].map(|target: usize| results.targets[target].left_out.is_some());
    assert_eq!(left_out, [true, false, true, false], "{ended:?}");
    let errors: BTreeSet<i32> = results
        .samples
        .iter()
        .filter(|measured| measured.key.target == 1)
        .flat_map(|measured| measured.sample.errors.keys().copied())
        .collect();
    assert!(errors.contains(&no_space()), "{errors:?}: {ended:?}");
    let of_sound =
        |keys: BTreeSet<Key>| keys.into_iter().filter(|key| key.target == 3).collect::<BTreeSet<_>>();
    let found = of_sound(results.samples.iter().map(|measured| measured.key).collect());
    assert_eq!(found, of_sound(all_keys(4)));
    frozen.thaw();
}

fn no_space() -> i32 {
    rustix::io::Errno::NOSPC.raw_os_error()
}

/// Ended after its first cell.
fn interrupted(home: &Home) {
    let mut running = home.begin();
    running.await_said("[2/");
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

fn assert_refused(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "`{part}` is missing: {ended:?}");
    }
}

#[test]
fn only_the_same_campaign_goes_on() {
    let directories = plain();
    let home = Home::new(PLAN, &paths(&directories));
    interrupted(&home);
    let before = home.results().samples.len();
    let refused = |more: &[&str], parts: &[&str]| {
        let mut parts = parts.to_vec();
        parts.push("r.sqlite: the record is of another campaign: ");
        assert_refused(&home.resume(more).end(LIMIT), &parts);
    };
    refused(&["/tmp"], &["its targets are ", ", not /tmp"]);
    refused(&["--seed", "6"], &["seed is 5 there and 6 here"]);
    refused(&["--plan", "quick"], &["the length of cells is 5 there and "]);
    refused(&["--scale", "1/4"], &["scale is 1.0 there and 0.25 here"]);
    refused(&["--for", "pilatus-6m"], &["the length of cells is 5 there and 7 here"]);
    let changed = PLAN.replace("files = [10, 20]", "files = [10, 30]");
    fs::write(home.directory.path().join("other.toml"), changed).expect("a file");
    refused(&["--plan", "other.toml"], &["cells[4].workload.walk.files is 20 there and 30 here"]);
    assert_eq!(home.results().samples.len(), before, "nothing was measured");

    let ended = home.resume(&["--plan", "plan.toml", "--seed", "5"]).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    assert_complete(&home.results(), &all_keys(3));
    let ended = home.resume(&[]).end(LIMIT);
    assert!(ended.has_answered(), "nothing is left to do: {ended:?}");
}

#[test]
fn what_is_no_record_of_this_program_is_refused_and_left_alone() {
    let [target, ..] = plain();
    let home = Home::new(PLAN, &[target.path()]);
    assert_refused(&home.resume(&[]).end(LIMIT), &["r.sqlite: no such record"]);
    fs::write(home.record(), "a letter, and not a short one, which is no database at all").expect("a file");
    assert_refused(&home.resume(&[]).end(LIMIT), &["r.sqlite: not a record of nilometer"]);
    fs::remove_file(home.record()).expect("a file");
    sqlite(&home, "CREATE TABLE t (x); PRAGMA user_version = 1");
    assert_refused(&home.resume(&[]).end(LIMIT), &["r.sqlite: not a record of nilometer"]);
    fs::remove_file(home.record()).expect("a file");
    interrupted(&home);
    sqlite(&home, "PRAGMA user_version = 77; UPDATE campaign SET nilometer = '8.9'");
    let read = format!("schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION}");
    let schema = format!("r.sqlite has schema 77; this program reads {read}");
    let parts = [schema.as_str(), "use the program that wrote it (nilometer 8.9)"];
    assert_refused(&home.resume(&[]).end(LIMIT), &parts);
}

/// Changes a file with the tool that anybody has.
fn sqlite(home: &Home, what: &str) {
    let status = std::process::Command::new("sqlite3").arg(home.record()).arg(what).status();
    assert!(status.expect("sqlite3 is installed").success());
}

#[test]
fn a_record_that_is_written_is_not_resumed() {
    let [target, ..] = plain();
    let home = Home::new(&PLAN.replace("\"100 ms\"", "\"10 s\""), &[target.path()]);
    let mut running = home.begin();
    running.await_said("[1/");
    let lock =
        fs::read_to_string(home.directory.path().join(".r.sqlite.nilometer-lock")).expect("it is held");
    let process = lock.trim().strip_prefix("nilometer ").expect("it names its process");
    let ended = home.resume(&[]).end(LIMIT);
    assert_refused(&ended, &[&format!("in use by a running nilometer (process {process})")]);
    running.signal(Signal::INT);
    running.end(LIMIT);
}

/// A mount of another kind at the same path is not what was measured before.
#[test]
fn another_file_system_at_the_path_is_refused() {
    if !may_mount() {
        return;
    }
    let [place, ..] = plain();
    let first = FileSystem::ext4(64);
    let mounted = FileSystem::bind(first.path(), place.path());
    let home = Home::new(PLAN, &[place.path()]);
    interrupted(&home);
    drop(mounted);
    let other = FileSystem::tmpfs("size=64m");
    let _mounted = FileSystem::bind(other.path(), place.path());
    assert_refused(
        &home.resume(&[]).end(LIMIT),
        &["not the same storage as before: ext4 of ", " then, tmpfs of tmpfs now"],
    );
}

/// What there is at the end of the time is the result, and says that it is not all.
#[test]
fn a_campaign_ends_in_time() {
    let [target, ..] = plain();
    // At ten million a second four million reads would fit into the time, and the plan is not refused.
    let plan = PLAN.replace("seed = 5", "time_limit = \"3 s\"").replace("100 ms", "10 min");
    let home = Home::new(&plan.replace("1000000000", "4000000"), &[target.path()]);
    let ended = home.begin().end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the time limit of 3 s was reached: "), "{ended:?}");
    let results = home.results();
    assert!(results.events.iter().any(|event| event.what.starts_with("the time limit of 3 s was reached")));
    assert!(
        results.samples.iter().all(|measured| measured.key.cell != 2),
        "a phase that is cut short is no sample"
    );
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
}
