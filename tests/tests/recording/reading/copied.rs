//! `nilometer copy`: what has its names is whole, what was killed goes on, and damage is named.
//!
//! A limit on the rate keeps copies from waiting for recorders of other tests.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{ByteRate, Seed};
use nilometer_recording::{
    copy::{CopyError, CopySettings, copy},
    reader::{Recording, Trust},
};
use nilometer_tests::{FileSystem, Running, await_some, kills, may_mount, start};
use rustix::process::Signal;

use super::{LIMIT, about, frames_in, names, recorded, text};

const FAST: [&str; 2] = ["--rate", "10 GB/s"];
/// More than a copy writes at once, which is a frame.
const FRAMES: u32 = 60;
/// Bytes from one frame to the next: a frame begins at a page.
const STRIDE: u64 = 320_000_u64.next_multiple_of(4096);

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Starts a copy that is slow after its first bytes, and waits for these.
fn begun(lane: &Path, to: &Path) -> Running {
    let running = start(to, &["copy", text(lane), "--to", text(to), "--rate", "1 kB/s"]);
    await_some("the first bytes", || {
        let status = fs::metadata(partial(to)?).ok()?;
        (status.len() >= 320_000).then_some(())
    });
    running
}

/// The temporary file of the only file of frames, once it is there.
fn partial(to: &Path) -> Option<PathBuf> {
    let copy = to.join("scan");
    if !copy.join(".copying").exists() {
        return None;
    }
    let is_partial = |name: &String| name.ends_with(".raw.copying");
    names(&copy).into_iter().find(is_partial).map(|name| copy.join(name))
}

fn killed(lane: &Path, to: &Path) {
    let running = begun(lane, to);
    assert_eq!(running.killed().code, None);
}

/// Goes on with a copy, verifies it, and compares its files with those of the recording.
fn completed(lane: &Path, to: &Path) -> nilometer_tests::Ended {
    let ended = about("copy", &[lane], &[&["--to", text(to)], &FAST[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let copy = to.join("scan");
    let verified = about("verify", &[&copy], &[]);
    assert!(verified.code == Some(0) && verified.stdout.contains("right       60 frames"), "{verified:?}");
    assert_eq!(names(&copy), names(lane));
    for name in names(lane) {
        let [one, other] =
            [lane, &copy].map(|directory| fs::read(directory.join(&name)).expect("it is there"));
        assert!(one == other, "{name}");
    }
    ended
}

#[test]
fn a_killed_copy_looks_like_no_recording_and_goes_on_where_it_was() {
    let disk = temporary();
    let lanes = recorded(&[disk.path()], FRAMES, &["--storing", "growing", "--checksums"]);
    let to = temporary();
    killed(&lanes[0], to.path());
    let copy = to.path().join("scan");
    assert!(names(&copy).iter().all(|name| name.ends_with(".copying")), "{:?}", names(&copy));
    let ended = about("verify", &[&copy], &[]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no recording"), "{ended:?}");
    let ended = completed(&lanes[0], to.path());
    assert!(ended.stdout.contains("of it by an earlier copy"), "{ended:?}");
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("exists"), "{ended:?}");
}

#[test]
fn a_copy_that_is_killed_again_and_again_at_any_moment_ends_whole() {
    let disk = temporary();
    let lanes = recorded(&[disk.path()], FRAMES, &["--storing", "growing", "--checksums"]);
    let seed = u64::from(std::process::id());
    let mut moments = Seed(seed).named("copies").stream();
    let (mut killed, most) = (0, kills(5, 100));
    while killed < most {
        let to = temporary();
        // Two seconds for all frames.
        let asked = ["copy", text(&lanes[0]), "--to", text(to.path()), "--rate", "10 MB/s"];
        while killed < most {
            let mut running = start(to.path(), &asked);
            std::thread::sleep(Duration::from_millis(moments.below(600)));
            if running.is_over() {
                assert_eq!(running.end(LIMIT).code, Some(0), "seed {seed}, kill {killed}");
                break;
            }
            running.killed();
            killed += 1;
            let verified = about("verify", &[to.path().join("scan")], &[]);
            if verified.stdout.contains("right       60 frames") {
                // It was killed behind its last step.
                break;
            }
            assert_eq!(verified.code, Some(2), "seed {seed}, kill {killed}: {verified:?}");
        }
        let copy = to.path().join("scan");
        if !copy.exists() || names(&copy) != names(&lanes[0]) {
            completed(&lanes[0], to.path());
        }
    }
}

#[test]
fn wrong_bytes_of_a_killed_copy_are_copied_anew() {
    let disk = temporary();
    let lanes = recorded(&[disk.path()], FRAMES, &["--storing", "growing"]);
    let to = temporary();
    killed(&lanes[0], to.path());
    let partial = partial(to.path()).expect("it was begun");
    let partial = File::options().write(true).open(partial);
    // As after a loss of power.
    partial.expect("it is there").write_all_at(&[0; 4096], 100_000).expect("space");
    completed(&lanes[0], to.path());
}

#[test]
fn a_copy_that_is_asked_to_end_goes_on_too_and_two_never_write_the_same() {
    let disk = temporary();
    let lanes = recorded(&[disk.path()], FRAMES, &["--storing", "growing"]);
    let to = temporary();
    let running = begun(&lanes[0], to.path());
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("another copy of it is running"), "{ended:?}");
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("the same command goes on"), "{ended:?}");
    completed(&lanes[0], to.path());
}

#[test]
fn a_full_disk_ends_a_copy_with_the_way_on_and_the_same_command_goes_on_after_it() {
    if !may_mount() {
        return;
    }
    let disk = temporary();
    let lanes = recorded(&[disk.path()], FRAMES, &["--storing", "growing", "--checksums"]);
    // All frames take 19 MB.
    let small = FileSystem::tmpfs("size=8m");
    let ended = about("copy", &lanes, &[&["--to", text(small.path())], &FAST[..]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let hint = "that it has: make room there, then the same command goes on with it";
    assert!(ended.stderr.contains("No space left") && ended.stderr.contains(hint), "{ended:?}");
    small.resize(64);
    let ended = completed(&lanes[0], small.path());
    assert!(ended.stdout.contains("of it by an earlier copy"), "{ended:?}");
}

#[test]
fn lanes_become_one_directory_or_several() {
    let disks = [(); 2].map(|()| temporary());
    let lanes = recorded(&[disks[0].path(), disks[1].path()], FRAMES, &[]);
    let places = [(); 2].map(|()| temporary());
    for to in [&places[..1], &places[..]] {
        let mut options: Vec<&str> = FAST.to_vec();
        options.extend(to.iter().flat_map(|to| ["--to", text(to.path())]));
        let ended = about("copy", &lanes, &options);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let copies: Vec<PathBuf> = to.iter().map(|to| to.path().join("scan")).collect();
        let verified = about("verify", &copies, &[]);
        assert!(
            verified.code == Some(0) && verified.stdout.contains("right       60 frames"),
            "{verified:?}"
        );
        let exported = to[0].path().join("all");
        let ended = about("export", &copies, &["--to", text(&exported), "--verify"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for copy in copies {
            fs::remove_dir_all(copy).expect("it is ours");
        }
        fs::remove_file(exported).expect("it is ours");
    }
}

#[test]
fn damaged_blocks_are_named() {
    let disk = temporary();
    let lanes = recorded(&[disk.path()], 8, &["--storing", "growing"]);
    let file = File::options().write(true).open(frames_in(&lanes[0])).expect("it is ours");
    file.write_all_at(&[0x55; 8], 3 * STRIDE + 5000).expect("space");
    let to = temporary();
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(5) && ended.stdout.contains("damaged     block 3 in "), "{ended:?}");
    assert!(ended.stderr.contains("1 blocks are damaged"), "{ended:?}");
    let verified = about("verify", &[to.path().join("scan")], &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    file.set_len(5 * STRIDE + 7).expect("it is ours");
    let to = temporary();
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(5) && ended.stderr.contains("4 blocks are damaged"), "{ended:?}");
}

/// Copies the lanes into one directory until the first file has its own name.
fn interrupted(lanes: &[PathBuf], to: &Path) {
    let recording = Recording::open(lanes, Trust::Acknowledged).expect("a recording");
    let first = to.join("scan").join(frames_in(&lanes[0]).file_name().expect("a file"));
    let settings = CopySettings { to: vec![to.to_owned()], at_most: Some(ByteRate(1e10)) };
    let stopped = copy(&recording, &settings, &mut |_| !first.exists());
    assert!(matches!(stopped, Err(CopyError::Interrupted)), "{stopped:?}");
    assert!(first.exists(), "{}", first.display());
}

#[test]
fn damage_in_a_file_that_an_interrupted_copy_had_finished_is_named() {
    let disks = [(); 2].map(|()| temporary());
    let lanes = recorded(&[disks[0].path(), disks[1].path()], 8, &[]);
    let file = File::options().write(true).open(frames_in(&lanes[0])).expect("it is ours");
    // In its first frame: on a busy machine a lane may have no other.
    file.write_all_at(&[0x55; 8], 5000).expect("space");
    let to = temporary();
    interrupted(&lanes, to.path());
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(5) && ended.stderr.contains("1 blocks are damaged"), "{ended:?}");
    assert!(ended.stdout.contains("blocks      7 are right"), "{ended:?}");
    assert!(ended.stdout.contains("of it by an earlier copy"), "{ended:?}");
}

#[test]
fn a_finished_file_that_lost_bytes_is_copied_anew() {
    let disks = [(); 2].map(|()| temporary());
    let lanes = recorded(&[disks[0].path(), disks[1].path()], 8, &[]);
    let to = temporary();
    interrupted(&lanes, to.path());
    let finished = to.path().join("scan").join(frames_in(&lanes[0]).file_name().expect("a file"));
    let file = File::options().write(true).open(finished).expect("it is ours");
    // In its first frame: on a busy machine a lane may have no other.
    file.write_all_at(&[0x55; 8], 5000).expect("space");
    let ended = about("copy", &lanes, &[&["--to", text(to.path())], &FAST[..]].concat());
    assert!(ended.code == Some(0) && ended.stdout.contains("blocks      8 are right"), "{ended:?}");
    let verified = about("verify", &[to.path().join("scan")], &[]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn a_copy_waits_for_a_recorder_on_the_same_file_system() {
    // No other test records on this file system.
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        assert!(std::env::var_os("CI").is_none(), "this test needs /dev/shm");
        return;
    };
    let [one, to] = ["one", "to"].map(|name| memory.path().join(name));
    for directory in [&one, &to] {
        fs::create_dir(directory).expect("space");
    }
    let lanes = recorded(&[&one], 8, &[]);
    let simulate = ["simulate", "pco-edge", "--name", "live", "--duration", "10 min"];
    let small = ["--reserve", "0 B", "--buffer", "64 MiB", "--shape", "64 x 64", "--to", text(&one)];
    let recorder = start(&one, &[&simulate[..], &small].concat());
    let live = one.join("live");
    await_some("the recording", || {
        let is_begun = live.exists() && names(&live).iter().any(|name| name.ends_with(".journal"));
        is_begun.then_some(())
    });
    let mut copying = start(&to, &["copy", text(&lanes[0]), "--to", text(&to)]);
    copying.await_said("waiting: process");
    assert!(!to.join("scan/scan.0.journal").exists());
    let ended = about("copy", &[&live], &[&["--to", text(&to)], &FAST[..]].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("still being recorded"), "{ended:?}");
    recorder.signal(Signal::INT);
    recorder.end(LIMIT);
    let ended = copying.end(LIMIT);
    assert!(ended.code == Some(0) && ended.stdout.contains("waited "), "{ended:?}");
    assert!(ended.stderr.contains("going on"), "{ended:?}");
    let verified = about("verify", &[to.join("scan")], &[]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
