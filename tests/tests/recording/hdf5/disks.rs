//! Disks that fill up or err, and a name that is taken: one message, and what was acknowledged can be read.

use std::time::Duration;

use nilometer_tests::{Ended, FaultyDisk, FileSystem, may_have_faulty_disks, may_mount};
use rustix::process::Signal;

use crate::hdf5::lab::{LIMIT, Lab, found_in, number};

/// Every acknowledged frame is in the file that h5py opens, and none is wrong.
fn is_read_as_far_as_it_got(lab: &Lab, ended: &Ended) {
    let stored = number(ended, "stored");
    let acknowledged = lab.acknowledged();
    assert_eq!(acknowledged.len() as u64, stored, "{ended:?}");
    let last = acknowledged.last().copied().expect("some were stored");
    let Some(found) = found_in(&lab.truth(last + 200), &lab.file()) else { return };
    assert_eq!(found.frames("wrong"), Vec::<u64>::new());
    let (right, flags) = (found.frames("right"), found.column("flag"));
    for frame in acknowledged {
        assert!(
            right.binary_search(&frame).is_ok() && flags[frame as usize] == 0,
            "frame {frame}: {ended:?}"
        );
    }
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_with_a_file_that_opens() {
    if !may_mount() {
        return;
    }
    // A file of frames is not begun where less than 256 MiB is free.
    for (compression, disk) in [("none", FileSystem::tmpfs("size=280m")), ("bslz4", FileSystem::ext4(400))] {
        let lab = Lab::new("200, 300", "uint16", "1 kHz", "").into(&[disk.path()]);
        // Frames for a minute: a busy machine fills the disk too.
        let ended = lab.start(compression, &["--frames", "60000"]).end(LIMIT);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("no directory was left, and the recording ended there"), "{ended:?}");
        is_read_as_far_as_it_got(&lab, &ended);
    }
}

#[test]
fn a_disk_whose_writes_fail_ends_the_recording_with_a_file_that_opens() {
    if !may_have_faulty_disks() {
        return;
    }
    for compression in ["none", "bslz4"] {
        let failing = FaultyDisk::ext4(600, Duration::ZERO);
        let lab = Lab::small("").into(&[&failing.path()]);
        let running = lab.start(compression, &["--frames", "20000"]);
        lab.await_file("scan.h5");
        nilometer_tests::await_some("some frames", || (lab.acknowledged().len() > 200).then_some(()));
        failing.fail_writes();
        let ended = running.end(LIMIT);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("failed after") && ended.stdout.contains("EIO"), "{ended:?}");
        failing.mend();
        is_read_as_far_as_it_got(&lab, &ended);
    }
}

#[test]
fn a_disk_of_two_that_fails_leaves_its_frames_to_the_other_and_the_file_over_both_has_all() {
    if !may_have_faulty_disks() {
        return;
    }
    let failing = FaultyDisk::ext4(600, Duration::ZERO);
    let sound = FileSystem::tmpfs("size=600m");
    let lab = Lab::small("recording.frames_per_file = 32\n").into(&[sound.path(), &failing.path()]);
    let running = lab.start("bslz4", &["--frames", "2000"]);
    nilometer_tests::await_some("some frames", || (lab.acknowledged().len() > 200).then_some(()));
    failing.fail_writes();
    let ended = running.end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 2000), "{ended:?}");
    assert!(ended.stderr.contains("1 of 2 directories dropped out"), "{ended:?}");
    let master = lab.lanes()[0].join("scan_master.h5");
    let Some(found) = found_in(&lab.truth(2000), &master) else { return };
    assert!(found.frames("right").into_iter().eq(0..2000), "{:?}", found.frames("wrong"));
    assert_eq!(found.column("flag"), vec![0; 2000]);
    failing.mend();
}

/// Waits until no frame was acknowledged at so many looks in a row; how many there are.
fn await_standstill(lab: &Lab, looks: u32) -> usize {
    let mut last = 0;
    let mut same = 0;
    nilometer_tests::await_some("a standstill", || {
        let now = lab.acknowledged().len();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same > looks).then_some(now)
    })
}

#[test]
fn a_disk_that_stands_still_for_a_while_costs_frames_that_are_blank_and_no_others() {
    if !may_have_faulty_disks() {
        return;
    }
    for compression in ["none", "bslz4"] {
        let disk = FaultyDisk::ext4(600, Duration::ZERO);
        let lab = Lab::small("").into(&[&disk.path()]);
        // Some 80 frames, which come in a sixth of a second.
        let small = ["--frames", "20000", "--buffer", "1 MiB", "--full", "drop-newest"];
        let running = lab.start(compression, &small);
        lab.await_file("scan.h5");
        nilometer_tests::await_some("some frames", || (lab.acknowledged().len() > 200).then_some(()));
        disk.pause();
        // At least 5 ms each: longer than the recorder waits for a processor.
        let there = await_standstill(&lab, 400);
        disk.resume();
        nilometer_tests::await_some("more", || (lab.acknowledged().len() > there + 200).then_some(()));
        running.signal(Signal::INT);
        let ended = running.end(LIMIT);
        assert!(ended.stdout.contains("found the buffer full"), "{compression}: {ended:?}");
        is_read_as_far_as_it_got(&lab, &ended);
    }
}

#[test]
fn a_name_that_is_being_recorded_is_refused() {
    let lab = Lab::small("");
    let running = lab.start("none", &["--duration", "1 min"]);
    lab.await_file("scan.h5");
    let second = lab.start("none", &["--frames", "10"]).end(LIMIT);
    assert_eq!(second.code, Some(2), "{second:?}");
    assert_eq!(second.stderr.lines().filter(|line| line.starts_with("nilometer: ")).count(), 1, "{second:?}");
    assert!(second.stderr.contains("exists: choose another --name"), "{second:?}");
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    is_read_as_far_as_it_got(&lab, &ended);
}
