//! What is odd about names and what becomes of files in the meantime, by the real program on real file systems: a quota that is used
//! up in the middle, files of a tree that others remove and add, file systems without hard links and with case folding. It is
//! data in the record, and the campaign goes on.
//!
//! This kernel may lack file systems that fold case (vfat, ext4 with `casefold`): they are those of the guest in User-Mode Linux.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nilometer_model::{Invalid, Phase, Sample};
use nilometer_plan::Results;
use nilometer_tests::{FileSystem, may_mount, run, run_directories, start};
use rustix::fs::{Mode, OFlags, mkdirat, openat};

const LIMIT: Duration = Duration::from_mins(5);

/// Of Linux.
const ENOENT: i32 = 2;
const EDQUOT: i32 = 122;
const PATH_MAX: usize = 4096;

fn plan_in(home: &Path, plan: &str) {
    fs::write(home.join("plan.toml"), plan).expect("room");
}

fn arguments(targets: &[&Path]) -> Vec<PathBuf> {
    let fixed = ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"].map(PathBuf::from);
    fixed.into_iter().chain(targets.iter().map(|target| target.to_path_buf())).collect()
}

fn samples(results: &Results, target: usize, phase: Phase) -> Vec<&Sample> {
    let of = results.samples.iter().filter(|measured| measured.key.target == target);
    of.filter(|measured| measured.key.phase == phase).map(|measured| &measured.sample).collect()
}

const UNPACKED: &str = r#"
title = "more bytes than the quota has"
repeats = 2
reserve = "0 B"
[[stage]]
name = "untar"
[stage.workload.unpack]
directories = 50
files = 2000
size = "120 MB"
durable = true
"#;

#[test]
fn a_quota_that_is_used_up_in_the_middle_of_an_unpack_is_data() {
    if !may_mount() {
        return;
    }
    let (few, enough) = (FileSystem::btrfs_with_quota(1000, 60), FileSystem::btrfs(1000));
    let home = tempfile::tempdir().expect("a temporary directory");
    plan_in(home.path(), UNPACKED);
    let ended = start(home.path(), &arguments(&[few.path(), enough.path()])).end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    for sample in samples(&results, 0, Phase::Unpack) {
        assert_eq!(sample.invalid, Some(Invalid::Errors));
        // A write that was not taken whole counts as one without a number; the next one says why.
        let numbers: Vec<i32> = sample.errors.keys().copied().filter(|errno| *errno != 0).collect();
        assert_eq!(numbers, [EDQUOT], "{:?}", sample.errors);
        assert!((1..120_000_000).contains(&sample.bytes), "in the middle: {}", sample.bytes);
    }
    let whole = samples(&results, 1, Phase::Unpack);
    assert_eq!(whole.iter().map(|sample| sample.bytes).collect::<Vec<_>>(), [120_000_000; 2]);
    assert!(results.targets.iter().all(|target| target.left_out.is_none()), "{ended:?}");
    assert!(ended.stdout.contains("operations failed"), "the report says why: {}", ended.stdout);
    for system in [&few, &enough] {
        assert!(run_directories(system.path()).is_empty(), "something is left behind");
    }
}

const WALKED: &str = r#"
title = "walked while others work on it"
repeats = 4
reserve = "0 B"
[[stage]]
name = "walk"
[stage.workload.walk]
directories = 100
total_files = 20000
total_size = "20 kB"
command = ["ls", "du"]
cold = false
"#;

/// Somebody else who removes files of a run's trees, and makes some whose names are no text, and directories deeper than the
/// longest path.
struct Outsider<'a> {
    target: &'a Path,
    over: AtomicBool,
}

impl Outsider<'_> {
    /// Until it is over. How many files it removed.
    fn works(&self) -> usize {
        let mut removed = 0;
        while !self.over.load(Ordering::Relaxed) {
            for tree in run_directories(self.target).iter().map(|run| run.join("n_w0")) {
                add_odd_names(&tree);
                removed += remove_files(&tree);
            }
        }
        removed
    }
}

/// What is there already stays.
fn add_odd_names(tree: &Path) {
    let no_text = tree.join(OsStr::from_bytes(b"n_\xff\xfe"));
    if fs::create_dir(&no_text).is_ok() {
        File::create(no_text.join(OsStr::from_bytes(b"n_\xc3("))).ok();
        add_deep_names(&no_text).ok();
    }
}

fn add_deep_names(below: &Path) -> rustix::io::Result<()> {
    const NAME: &str = "n_deeper_and_deeper";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory: OwnedFd = rustix::fs::open(below, flags, Mode::empty())?;
    for _ in 0..=PATH_MAX / NAME.len() {
        mkdirat(&directory, NAME, Mode::RWXU)?;
        directory = openat(&directory, NAME, flags, Mode::empty())?;
    }
    Ok(())
}

/// Every third file of each directory of the tree.
fn remove_files(tree: &Path) -> usize {
    let in_it = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = in_it(tree).map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = directories.flat_map(|path| in_it(&path).collect::<Vec<_>>()).step_by(3);
    files.filter(|file| fs::remove_file(file.path()).is_ok()).count()
}

#[test]
fn a_tree_on_which_others_work_while_it_is_walked_is_data() {
    if !may_mount() {
        return;
    }
    let (busy, quiet) = (FileSystem::tmpfs("size=500m"), FileSystem::tmpfs("size=500m"));
    let home = tempfile::tempdir().expect("a temporary directory");
    plan_in(home.path(), WALKED);
    let outsider = Outsider { target: busy.path(), over: AtomicBool::new(false) };
    let (ended, removed) = thread::scope(|scope| {
        let works = scope.spawn(|| outsider.works());
        let ended = start(home.path(), &arguments(&[busy.path(), quiet.path()])).end(LIMIT);
        outsider.over.store(true, Ordering::Relaxed);
        (ended, works.join().expect("it does not panic"))
    });
    assert!(matches!(ended.code, Some(0 | 1 | 4)), "{ended:?}");
    assert!(removed > 0, "nothing was removed: {ended:?}");
    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    let mut walked = 0;
    for phase in [Phase::Walk, Phase::DiskUsage] {
        // Where something was made while a tree was removed the target is left out from then on.
        let disturbed = samples(&results, 0, phase);
        walked += disturbed.len();
        for sample in disturbed {
            // Whatever was listed and is gone; nothing else went wrong, and nobody gave up.
            assert!(sample.errors.keys().all(|errno| *errno == ENOENT), "{:?}", sample.errors);
            assert_eq!(
                sample.invalid == Some(Invalid::Errors),
                !sample.errors.is_empty(),
                "{:?}",
                sample.invalid
            );
        }
        let alone = samples(&results, 1, phase);
        assert!(alone.len() == 4 && alone.iter().all(|sample| sample.errors.is_empty()), "{phase:?}");
    }
    assert!(walked > 0, "{ended:?}");
    // What was made while it was removed may be left, and is removed when nobody makes more.
    let cleaned = run(&["clean".as_ref(), busy.path().as_os_str()]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    for system in [&busy, &quiet] {
        assert!(run_directories(system.path()).is_empty(), "{}: {cleaned:?}", system.path().display());
    }
}
