//! Recordings from outside: on file systems that vanish, fill up or stand still, and after a kill. What was acknowledged is
//! there, and what is missing is named.

mod camera;
mod faulty_disks;
mod forms;
mod scattered;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_recording::reader;
use nilometer_tests::{FileSystem, await_some, awaited, may_mount, python, root, run, start};
use rustix::process::{Signal, kill_process};

use crate::recordings::camera::{CAMERA, LIMIT, Recording, assert_whole, missing, number};

/// One of two lanes loses its file system while it records.
fn loses_a_lane(mut lost: FileSystem) {
    let sound = FileSystem::tmpfs("size=900m");
    let recording = Recording::of_rows(&[lost.path(), sound.path()]);
    let running = recording.start(&["--frames", "250"]);
    recording.await_file(0, 1);
    lost.shut_down();
    let ended = running.end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 250), "{ended:?}");
    assert!(ended.stdout.contains("lost        nothing"), "{ended:?}");
    assert!(
        ended.stdout.contains("failed after") && ended.stdout.contains("EIO"),
        "which and when: {ended:?}"
    );
    assert!(ended.stderr.contains("1 of 2 directories dropped out"), "{ended:?}");
    let gone = recording.verify(&[]);
    assert_eq!((gone.code, number(&gone, "expected")), (Some(1), 250), "{gone:?}");
    assert!(gone.stdout.contains("unreadable") && gone.stderr.contains("1 of 2 lanes"), "{gone:?}");
    let elsewhere = number(&gone, "right");
    assert_eq!(elsewhere + missing(&gone), 250, "every frame is there or named: {gone:?}");
    lost.remount_after(|| {});
    let back = recording.verify(&["--durable"]);
    assert!(!back.stdout.contains("damaged") && !back.stdout.contains("unreadable"), "{back:?}");
    let durable = number(&back, "right");
    assert_eq!(durable + missing(&back), 250, "{back:?}");
    assert!(durable > elsewhere, "the first file of the lost lane was durable: {back:?}");
}

#[test]
fn a_lane_on_xfs_that_vanishes_leaves_its_frames_to_the_other() {
    if may_mount() {
        loses_a_lane(FileSystem::xfs(600));
    }
}

#[test]
fn a_lane_on_ext4_that_vanishes_leaves_its_frames_to_the_other() {
    if may_mount() {
        loses_a_lane(FileSystem::ext4(600));
    }
}

#[test]
fn a_disk_that_fills_ends_in_order_and_leaves_the_rest_to_the_other() {
    if !may_mount() {
        return;
    }
    let (small, large) = (FileSystem::ext4(200), FileSystem::tmpfs("size=900m"));
    let recording = Recording::of_rows(&[small.path(), large.path()]);
    // A busy machine may leave the small disk one frame in seven: it has room for one in twelve.
    let ended = recording.start(&["--frames", "400", "--reserve", "110 MiB"]).end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 400), "{ended:?}");
    assert!(ended.stdout.contains("full up to the reserve after"), "{ended:?}");
    assert_whole(&recording.verify(&["--durable"]), 400);
    let stat = rustix::fs::statvfs(small.path()).expect("it is mounted");
    assert!(stat.f_bavail * stat.f_frsize >= 110 << 20, "the reserve is there");
}

#[test]
fn with_the_only_disk_full_the_recording_ends_and_says_so() {
    if !may_mount() {
        return;
    }
    let small = FileSystem::tmpfs("size=150m");
    let recording = Recording::new(&[small.path()]);
    let ended = recording.start(&["--frames", "100"]).end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 64), "{ended:?}");
    assert!(ended.stderr.contains("no directory was left, and the recording ended there"), "{ended:?}");
    let verified = recording.verify(&[]);
    assert_eq!((verified.code, number(&verified, "right"), missing(&verified)), (Some(1), 64, 0));
    assert!(verified.stderr.contains("do not say how many frames were due"), "{verified:?}");
}

#[test]
fn storage_that_stands_still_for_a_while_costs_buffer_and_no_frame() {
    if !may_mount() {
        return;
    }
    let frozen = FileSystem::ext4(900);
    let recording = Recording::new(&[frozen.path()]);
    let running = recording.start(&["--frames", "150", "--buffer", "512 MiB"]);
    recording.await_file(0, 1);
    frozen.freeze();
    std::thread::sleep(Duration::from_secs(1));
    frozen.thaw();
    let ended = running.end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 150), "{ended:?}");
    // A frame every 20 ms of a second.
    assert!(number(&ended, "buffer") >= 45, "the stall is seen: {ended:?}");
    assert_whole(&recording.verify(&["--durable"]), 150);
}

#[test]
fn a_full_buffer_stops_the_recording_where_that_is_asked_for() {
    if !may_mount() {
        return;
    }
    let frozen = FileSystem::ext4(900);
    let recording = Recording::new(&[frozen.path()]);
    let mut running = recording.start(&["--frames", "5000", "--buffer", "64 MiB", "--full", "stop"]);
    recording.await_file(0, 1);
    // On a busy machine the instrument may be too late to fill the buffer in the first of these times.
    for seconds in [2, 8, 32] {
        frozen.freeze();
        std::thread::sleep(Duration::from_secs(seconds));
        frozen.thaw();
        if awaited(Duration::from_secs(5), || running.is_over().then_some(())).is_some() {
            break;
        }
    }
    let ended = running.end(LIMIT);
    let (due, stored) = (number(&ended, "due"), number(&ended, "stored"));
    assert_eq!((ended.code, stored), (Some(1), due - 1), "{ended:?}");
    assert!(due < 5000 && ended.stderr.contains("stopped by a full buffer"), "{ended:?}");
    let verified = recording.verify(&[]);
    assert_eq!((verified.code, number(&verified, "right"), missing(&verified)), (Some(1), stored, 1));
    assert!(verified.stdout.contains(&format!("missing     1 frames: {stored}\n")), "{verified:?}");
}

#[test]
fn after_a_kill_every_acknowledged_frame_is_there() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    for lanes in [1, 2] {
        let to = ["a", "b"].map(|name| kept.path().join(format!("{name}{lanes}")));
        for path in &to {
            fs::create_dir(path).expect("space");
        }
        let to: Vec<_> = to.iter().take(lanes).map(PathBuf::as_path).collect();
        let recording = Recording::new(&to);
        let running = recording.start(&["--duration", "1 min"]);
        recording.await_file(0, 3);
        kill_process(running.worker(), Signal::KILL).expect("it runs");
        assert_eq!(running.end(LIMIT).code, Some(1));
        let verified = recording.verify(&[]);
        assert_eq!(verified.code, Some(1), "{verified:?}");
        assert!(verified.stderr.contains("did not end in order"), "{verified:?}");
        assert!(!verified.stdout.contains("damaged"), "{verified:?}");
        let (expected, right) = (number(&verified, "expected"), number(&verified, "right"));
        assert_eq!(right + missing(&verified), expected, "{verified:?}");
        // A lane at depth four may have acknowledged a few frames before one that was due earlier.
        assert!(right > 32 && missing(&verified) < 16, "{verified:?}");
    }
}

#[test]
fn an_interrupted_recording_is_whole_up_to_there() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    let running = recording.start(&["--duration", "1 min"]);
    recording.await_file(0, 1);
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("interrupted"), "{ended:?}");
    assert_whole(&recording.verify(&["--durable"]), number(&ended, "due"));
}

#[test]
fn damage_is_named_frame_by_frame() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    let ended = recording.start(&["--frames", "70", "--rate", "200 Hz"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_whole(&recording.verify(&[]), 70);
    let file = |number: u64| recording.lanes()[0].join(format!("scan.0.{number:08}.raw"));
    forms::turn_bits(&file(1), (3 << 21) + 12_345);
    fs::remove_file(file(2)).expect("it is there");
    let verified = recording.verify(&[]);
    assert_eq!((verified.code, number(&verified, "right")), (Some(1), 63), "{verified:?}");
    let damaged: Vec<_> = verified.stdout.lines().filter(|line| line.starts_with("damaged")).collect();
    assert_eq!(damaged.len(), 7, "one byte, and a file of six frames: {verified:?}");
    assert!(
        damaged[0].contains("frame 35 differs from byte 12288 on: it begins at byte 6291456 of "),
        "{verified:?}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_made() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    fs::create_dir(kept.path().join("old")).expect("space");
    fs::write(
        recording.directory.path().join("odd.toml"),
        CAMERA.replace("1024, 1024", "3").replace("uint16", "uint12"),
    )
    .expect("a file");
    for (arguments, part) in [
        (&["--name", "a/b"][..], "without a slash"),
        (&["--name", "old"], "exists: choose another --name"),
        (&["--buffer", "1 MiB"], "two frames of 2 MiB need 4 MiB"),
        (&["--buffer", "100 TiB"], "at most half of the"),
        (&["--reserve", "900 TiB"], "no file of 64 MiB fits"),
        (&["--rate", "0 Hz"], "more than 0 Hz"),
        (&["--rate", "5 fps"], "the unit `fps`"),
        (&["--full", "wait"], "drop-oldest"),
        (&["--storing", "one"], "files, growing, shared, scattered"),
        (&["--format", "tiff"], "raw, cbf"),
        (&["--format", "cbf"], "a picture of int32"),
        (&["--writers", "0"], "1..=64"),
        (&["--frames", "0"], "write at least 1"),
    ] {
        let name = if arguments[0] == "--name" { arguments[1] } else { "new" };
        let rest = if arguments[0] == "--name" { &[] } else { arguments };
        let to = kept.path().to_str().expect("plain names");
        let arguments = [&["simulate", "./camera.toml", "--to", to, "--name", name][..], rest].concat();
        let ended = start(recording.directory.path(), &arguments).end(LIMIT);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{arguments:?}: {ended:?}");
    }
    let odd = start(recording.directory.path(), &["instrument", "show", "odd.toml"]).end(LIMIT);
    assert!(odd.code == Some(2) && odd.stderr.contains("36 bits: a frame must be a whole number"), "{odd:?}");
    let none = run(&[Path::new("verify"), kept.path()]);
    assert!(none.code == Some(2) && none.stderr.contains("no recording in"), "{none:?}");
    assert_eq!(fs::read_dir(kept.path()).expect("listed").count(), 1, "nothing was made");
}
