//! Attempts to make `nilometer clean` remove something foreign. It must remove what a killed run left, and nothing else.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use nilometer_tests::{
    Ended, FileSystem, MARKER, Running, await_let_go, may_mount, run, run_directories, start,
};
use rustix::{
    fs::{CWD, FileType, FlockOperation, Mode, RenameFlags},
    process::Signal,
};
use tempfile::TempDir;

/// Well formed, and never drawn by a run.
const NAME: &str = "nilometer-0123456789abcdef";

const PLAN: &str = r#"
title = "runs until it is killed"
repeats = 1000
reserve = "0 B"
[[stage]]
name = "s"
time_limit = "100 ms"
[stage.workload.walk]
levels = 1
branching = 2
files = 20
"#;

/// A directory in which a killed run left its own, and a foreign directory beside it.
struct Scene {
    /// Holds all of it.
    base: TempDir,
    /// What was evaluated.
    target: PathBuf,
    /// What the run left there.
    run: PathBuf,
    /// What must survive.
    foreign: PathBuf,
}

/// What the foreign directory holds; some of it is named as our files are.
const FOREIGN: [&str; 4] = ["data", "n_w0", "n_d/n_f0", "n_d/data"];

impl Scene {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("a temporary directory");
        let (target, foreign) = (base.path().join("target"), base.path().join("foreign"));
        fs::create_dir(&target).expect("a directory");
        fs::create_dir_all(foreign.join("n_d")).expect("a directory");
        for name in FOREIGN {
            fs::write(foreign.join(name), "precious").expect("a file");
        }
        let run = leave_behind(base.path(), &target);
        Scene { base, target, run, foreign }
    }

    fn assert_foreign_is_whole(&self) {
        for name in FOREIGN {
            assert_eq!(
                fs::read_to_string(self.foreign.join(name)).ok().as_deref(),
                Some("precious"),
                "{name}"
            );
        }
    }

    /// Cleans the target; whether all that was found is gone.
    fn clean(&self) -> Ended {
        let ended = clean(&self.target);
        self.assert_foreign_is_whole();
        ended
    }

    /// Cleans, and expects that the run directory stays because of one entry in it, which is named.
    fn assert_kept_for(&self, entry: &str) {
        let ended = self.clean();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{entry}: left where it is")), "{ended:?}");
        assert!(self.run.join(entry).symlink_metadata().is_ok(), "{entry} is gone");
        assert!(!self.run.join("n_w0").exists(), "what is ours goes all the same");
    }

    /// The run directory by its own means: all of ours is gone.
    fn assert_cleaned(&self) {
        let ended = self.clean();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(!self.run.exists(), "the run directory is still there");
    }
}

fn clean(path: &Path) -> Ended {
    run(&[Path::new("clean"), path])
}

/// A run that goes on at `target`, and its directory there.
fn running(base: &Path, target: &Path) -> (Running, PathBuf) {
    let plan = base.join("plan.toml");
    fs::write(&plan, PLAN).expect("a file");
    let record = base.join("run.sqlite");
    let arguments =
        [Path::new("evaluate"), target, Path::new("--plan"), &plan, Path::new("--record"), &record];
    let running = start(base, &arguments);
    let found = running.await_run_directory(target, &record);
    (running, found)
}

/// What a killed run leaves, with a tree of ours in it.
fn leave_behind(base: &Path, target: &Path) -> PathBuf {
    let (running, run) = running(base, target);
    running.signal(Signal::KILL);
    let ended = running.end(Duration::from_secs(10));
    assert_eq!(ended.code, None, "it was killed");
    await_let_go(&run);
    fs::remove_dir_all(run.join("n_w0")).ok();
    fs::create_dir_all(run.join("n_w0/n_d0")).expect("a directory");
    fs::write(run.join("n_w0/n_d0/n_f0"), "ours").expect("a file");
    run
}

fn assert_refused(ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert!(!ended.stdout.contains("removed"), "{ended:?}");
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let scene = Scene::new();
    scene.assert_cleaned();
    assert_eq!(scene.clean().stdout, "nothing to clean\n");
}

#[test]
fn a_run_directory_may_be_named_in_any_way() {
    for path in ["target/RUN", "target/RUN/", "target/./RUN/.", "target/RUN/n_w0/..", "foreign/../target/"] {
        let scene = Scene::new();
        let name = scene.run.file_name().expect("a name").to_string_lossy().into_owned();
        let ended =
            start(scene.base.path(), &["clean", &path.replace("RUN", &name)]).end(Duration::from_secs(20));
        assert_eq!(ended.code, Some(0), "{path}: {ended:?}");
        assert!(!scene.run.exists(), "{path}");
        scene.assert_foreign_is_whole();
    }
}

#[test]
fn only_a_path_that_exists_is_taken() {
    let scene = Scene::new();
    for path in [scene.target.join("missing"), scene.target.join(NAME), scene.foreign.join("data")] {
        let ended = clean(&path);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(&path.display().to_string()), "{ended:?}");
    }
    scene.assert_foreign_is_whole();
    assert!(scene.run.exists());
}

#[test]
fn a_symlink_that_is_named_like_a_run_directory_is_not_followed() {
    let scene = Scene::new();
    let marked = scene.base.path().join("elsewhere");
    fs::create_dir(&marked).expect("a directory");
    let real = marked.join(scene.run.file_name().expect("a name"));
    fs::rename(&scene.run, &real).expect("one file system");
    for leads_to in [&scene.foreign, &real, &marked] {
        let link = scene.target.join(NAME);
        symlink(leads_to, &link).expect("a symlink");
        assert_refused(&clean(&scene.target), NAME);
        assert_refused(&clean(&link), NAME);
        assert_refused(&clean(&scene.target.join(format!("{NAME}/"))), NAME);
        fs::remove_file(&link).expect("the link is still there");
    }
    assert!(real.exists(), "what a link leads to is not cleaned");
    scene.assert_foreign_is_whole();
}

#[test]
fn symlinks_in_a_run_directory_are_kept_and_lead_nowhere() {
    let scene = Scene::new();
    symlink(&scene.foreign, scene.run.join("n_link")).expect("a symlink");
    scene.assert_kept_for("n_link");
    fs::remove_file(scene.run.join("n_link")).expect("the link");
    symlink(scene.foreign.join("data"), scene.run.join("n_w1")).expect("a symlink");
    scene.assert_kept_for("n_w1");
    fs::remove_file(scene.run.join("n_w1")).expect("the link");
    fs::create_dir(scene.run.join("n_d")).expect("a directory");
    symlink("../../../foreign/n_d", scene.run.join("n_d/n_d0")).expect("a symlink");
    scene.assert_kept_for("n_d/n_d0");
}

#[test]
fn a_marker_proves_nothing_in_another_directory() {
    let scene = Scene::new();
    let named = scene.target.join(NAME);
    fs::rename(&scene.foreign, &named).expect("one file system");
    fs::copy(scene.run.join(MARKER), named.join(MARKER)).expect("a copy");
    let own = scene.run.file_name().expect("a name").to_string_lossy().into_owned();
    let ended = clean(&named);
    assert_refused(&ended, "the marker was made for another directory");
    fs::rename(&named, &scene.foreign).expect("one file system");
    fs::rename(&scene.run, scene.base.path().join("aside")).expect("one file system");
    // Under the very name of the run, too.
    let named = scene.target.join(own);
    fs::rename(&scene.foreign, &named).expect("one file system");
    assert_refused(&clean(&scene.target), "the marker was made for another directory");
    fs::rename(&named, &scene.foreign).expect("one file system");
    scene.assert_foreign_is_whole();
}

#[test]
fn a_copy_of_a_whole_run_directory_is_refused() {
    let scene = Scene::new();
    let copy = scene.base.path().join("copies");
    fs::create_dir(&copy).expect("a directory");
    let status = std::process::Command::new("cp").arg("-a").args([&scene.run, &copy]).status();
    assert!(status.is_ok_and(|status| status.success()), "cp");
    assert_refused(&clean(&copy), "the marker was made for another directory");
    assert!(copy.join(scene.run.file_name().expect("a name")).join("n_w0/n_d0/n_f0").exists());
}

#[test]
fn a_marker_that_is_a_link_is_refused() {
    let scene = Scene::new();
    fs::hard_link(scene.run.join(MARKER), scene.foreign.join("link")).expect("a hard link");
    assert_refused(&scene.clean(), "not a plain file of its own");
    fs::remove_file(scene.foreign.join("link")).expect("the link");
    fs::rename(scene.run.join(MARKER), scene.foreign.join("marker")).expect("one file system");
    symlink(scene.foreign.join("marker"), scene.run.join(MARKER)).expect("a symlink");
    assert_refused(&scene.clean(), "no marker");
    assert!(scene.run.join("n_w0/n_d0/n_f0").exists(), "nothing was removed");
}

#[test]
fn a_moved_run_directory_is_ours_under_a_valid_name_only() {
    let scene = Scene::new();
    for name in ["foreign-name", "nilometer-", "nilometer-0123456789ABCDEF", "nilometer-0123456789abcdef0"] {
        let moved = scene.foreign.join(name);
        fs::rename(&scene.run, &moved).expect("one file system");
        let ended = clean(&scene.foreign);
        assert!(moved.join("n_w0/n_d0/n_f0").exists(), "{name}: {ended:?}");
        let itself = clean(&moved);
        assert!(moved.join("n_w0/n_d0/n_f0").exists(), "{name}: {itself:?}");
        fs::rename(&moved, &scene.run).expect("one file system");
    }
    let moved = scene.foreign.join(NAME);
    fs::rename(&scene.run, &moved).expect("one file system");
    assert_eq!(clean(&scene.foreign).code, Some(0));
    assert!(!moved.exists());
    scene.assert_foreign_is_whole();
}

#[test]
fn foreign_entries_in_a_run_directory_are_kept() {
    let scene = Scene::new();
    fs::write(scene.run.join("results.txt"), "precious").expect("a file");
    scene.assert_kept_for("results.txt");
    fs::remove_file(scene.run.join("results.txt")).expect("still there");
    fs::create_dir_all(scene.run.join("n_w1/n_d0")).expect("a directory");
    fs::write(scene.run.join("n_w1/n_d0/n_f0"), "ours").expect("a file");
    fs::write(scene.run.join("n_w1/n_d0/notes"), "precious").expect("a file");
    scene.assert_kept_for("n_w1/n_d0/notes");
    assert!(!scene.run.join("n_w1/n_d0/n_f0").exists());
    fs::remove_file(scene.run.join("n_w1/n_d0/notes")).expect("still there");
    scene.assert_cleaned();
}

#[test]
fn a_foreign_tree_that_was_moved_into_a_run_directory_is_kept() {
    let scene = Scene::new();
    fs::rename(&scene.foreign, scene.run.join("data")).expect("one file system");
    let ended = clean(&scene.target);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    fs::rename(scene.run.join("data"), &scene.foreign).expect("one file system");
    scene.assert_foreign_is_whole();
}

#[test]
fn another_runs_marker_within_a_run_directory_is_foreign() {
    let scene = Scene::new();
    fs::create_dir(scene.run.join("n_other")).expect("a directory");
    fs::write(scene.run.join("n_other").join(MARKER), "of another").expect("a file");
    scene.assert_kept_for(&format!("n_other/{MARKER}"));
}

#[test]
fn of_a_hard_link_only_the_link_goes() {
    let scene = Scene::new();
    fs::hard_link(scene.foreign.join("data"), scene.run.join("n_w1")).expect("a hard link");
    scene.assert_cleaned();
    assert_eq!(fs::metadata(scene.foreign.join("data")).expect("a file").nlink(), 1);
}

#[test]
fn pipes_and_devices_are_kept() {
    let scene = Scene::new();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, scene.run.join("n_pipe"), FileType::Fifo, mode, 0).expect("a FIFO");
    scene.assert_kept_for("n_pipe");
    // A FIFO as the marker must not block, either.
    rustix::fs::mknodat(CWD, scene.foreign.join(NAME), FileType::Fifo, mode, 0).expect("a FIFO");
    assert_refused(&clean(&scene.foreign), "can't be opened as a directory");
    let named = scene.base.path().join(NAME);
    fs::create_dir(&named).expect("a directory");
    rustix::fs::mknodat(CWD, named.join(MARKER), FileType::Fifo, mode, 0).expect("a FIFO");
    assert_refused(&clean(&named), "no marker");
    if rustix::process::geteuid().is_root() {
        fs::remove_file(scene.run.join("n_pipe")).expect("still there");
        let null = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(CWD, scene.run.join("n_null"), FileType::CharacterDevice, mode, null)
            .expect("a device node");
        scene.assert_kept_for("n_null");
    }
}

#[test]
fn mount_points_in_a_run_directory_are_not_crossed() {
    if !may_mount() {
        return;
    }
    let scene = Scene::new();
    let point = scene.run.join("n_d");
    fs::create_dir(&point).expect("a mount point");
    let bound = FileSystem::bind(&scene.foreign, &point);
    scene.assert_kept_for("n_d");
    drop(bound);
    fs::create_dir(scene.run.join("n_w1")).expect("a directory");
    let below = scene.run.join("n_w1/n_d0");
    fs::create_dir(&below).expect("a mount point");
    let bound = FileSystem::bind(&scene.foreign.join("n_d"), &below);
    scene.assert_kept_for("n_w1/n_d0");
    drop(bound);
    let file = scene.run.join("n_w2");
    fs::write(&file, "").expect("a file");
    let bound = FileSystem::bind(&scene.foreign.join("data"), &file);
    scene.assert_kept_for("n_w2");
    drop(bound);
    scene.assert_cleaned();
}

#[test]
fn another_file_system_in_a_run_directory_is_not_crossed() {
    if !may_mount() {
        return;
    }
    let scene = Scene::new();
    let other = FileSystem::tmpfs("size=1m");
    fs::write(other.path().join("n_f0"), "precious").expect("a file");
    let point = scene.run.join("n_d");
    fs::create_dir(&point).expect("a mount point");
    let bound = FileSystem::bind(other.path(), &point);
    scene.assert_kept_for("n_d");
    drop(bound);
    assert!(other.path().join("n_f0").exists());
    scene.assert_cleaned();
}

#[test]
fn a_run_directory_is_known_again_after_a_new_mount() {
    if !may_mount() {
        return;
    }
    let base = tempfile::tempdir().expect("a directory");
    let device = |mounted: &FileSystem| fs::metadata(mounted.path()).expect("a directory").dev();
    let mut mounted = FileSystem::ext4(64);
    let before = device(&mounted);
    leave_behind(base.path(), mounted.path());
    // Others take the loop device that becomes free, until this one gets another number.
    let mut others = Vec::new();
    while device(&mounted) == before {
        assert!(others.len() < 8, "the device never changes");
        mounted.remount_after(|| others.push(FileSystem::ext4(64)));
    }
    let ended = clean(mounted.path());
    assert_eq!((ended.code, run_directories(mounted.path()).len()), (Some(0), 0), "{ended:?}");
    assert!(ended.stdout.starts_with("removed"), "{ended:?}");
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let scene = Scene::new();
    let nobody = Some(65534);
    for owned in [scene.run.clone(), scene.run.join(MARKER)] {
        std::os::unix::fs::chown(&owned, nobody, nobody).expect("root");
        assert_refused(&scene.clean(), "belongs to another user");
        std::os::unix::fs::chown(&owned, Some(0), Some(0)).expect("root");
    }
    let empty = scene.target.join(NAME);
    fs::create_dir(&empty).expect("a directory");
    std::os::unix::fs::chown(&empty, nobody, nobody).expect("root");
    assert_refused(&clean(&empty), "no marker");
    assert!(empty.exists());
}

#[test]
fn a_run_that_lives_is_left_alone() {
    let base = tempfile::tempdir().expect("a directory");
    let target = base.path().join("target");
    fs::create_dir(&target).expect("a directory");
    let (mut running, run) = running(base.path(), &target);
    running.await_said("[1/");
    let holder = format!("in use by a running campaign (process {})", running.worker().as_raw_nonzero());
    for refused in [clean(&target), clean(&run)] {
        assert_refused(&refused, &holder);
        assert!(!refused.stderr.contains("no proof that"), "{refused:?}");
    }
    assert!(run.join(MARKER).exists());
    let other = base.path().join("other.sqlite");
    let second = ["evaluate", "--plan", "quick", "--record"].map(Path::new);
    let second = start(base.path(), &[&second[..], &[&other, &target]].concat()).end(Duration::from_secs(30));
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.stderr.contains(&holder) && !other.exists(), "{second:?}");
    running.signal(Signal::INT);
    let ended = running.end(Duration::from_secs(30));
    // On a machine with much else to do, the tool may have waited for a processor.
    let said = ended.stderr.replace("INVALID: the tool itself waited for a processor", "");
    assert!(!said.contains("INVALID"), "it went on undisturbed: {ended:?}");
    assert!(run_directories(&target).is_empty());
}

#[test]
fn what_was_killed_before_its_marker_was_complete_is_removed() {
    let base = tempfile::tempdir().expect("a directory");
    let run = base.path().join(NAME);
    let begun = run.join(".nilometer-run.new");
    fs::create_dir(&run).expect("a directory");
    assert_eq!(clean(base.path()).code, Some(0));
    assert!(!run.exists(), "killed between mkdir and marker");
    fs::create_dir(&run).expect("a directory");
    fs::write(&begun, "my text").expect("a file");
    assert_refused(&clean(base.path()), "no marker");
    fs::write(&begun, "A run of nilo").expect("a file");
    let marker = fs::File::open(&begun).expect("a file");
    rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive).expect("a lock");
    assert_refused(&clean(base.path()), "in use");
    drop(marker);
    fs::write(run.join("n_f0"), "whose?").expect("a file");
    assert_refused(&clean(base.path()), "no marker");
    fs::remove_file(run.join("n_f0")).expect("still there");
    assert!(begun.exists());
    assert_eq!(clean(base.path()).code, Some(0));
    assert!(!run.exists(), "killed between marker and rename");
}

/// Exchanges two names until it is told to stop.
fn exchange(one: &Path, other: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // One of them may just have been removed.
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).ok();
    }
}

#[test]
fn a_directory_that_turns_into_a_symlink_leads_nowhere() {
    let scene = Scene::new();
    let (inside, aside) = (scene.run.join("n_d"), scene.base.path().join("aside"));
    symlink(&scene.foreign, &aside).expect("a symlink");
    fs::write(scene.run.join("keeps the run directory"), "").expect("a file");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&inside, &aside, &stop));
        for _ in 0..100 {
            fs::create_dir(&inside).ok();
            assert_eq!(clean(&scene.run).code, Some(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    scene.assert_foreign_is_whole();
}

#[test]
fn a_run_directory_that_turns_into_a_foreign_one_saves_it() {
    let scene = Scene::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&scene.run, &scene.foreign, &stop));
        for _ in 0..100 {
            clean(&scene.target);
        }
        stop.store(true, Ordering::Relaxed);
    });
    if !scene.foreign.join("data").exists() {
        fs::rename(&scene.foreign, scene.base.path().join("aside")).ok();
        fs::rename(&scene.run, &scene.foreign).expect("it is under one of the two names");
    }
    scene.assert_foreign_is_whole();
}
