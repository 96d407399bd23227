//! Recordings on disks that err, wait or stand still.

use std::{fs, time::Duration};

use nilometer_tests::{Ended, FaultyDisk, may_have_faulty_disks};

use crate::recordings::camera::{LIMIT, Recording, assert_whole, missing, number};

#[test]
fn a_lane_on_a_disk_whose_writes_fail_leaves_its_frames_to_the_other() {
    if !may_have_faulty_disks() {
        return;
    }
    // The other disk is of the same kind: on a busy machine a faster one would take nearly all frames.
    let [mut failing, sound] = [(); 2].map(|()| FaultyDisk::ext4(900, Duration::ZERO));
    let recording = Recording::of_rows(&[&failing.path(), &sound.path()]);
    let running = recording.start(&["--frames", "400"]);
    // Two files are full and on the disk: what is lost of one that is just being synced the kernel may forget at once.
    recording.await_durable(0, 1);
    recording.await_file(0, 2);
    failing.fail_writes();
    let ended = running.end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 400), "{ended:?}");
    let lane = ended.stdout.lines().find(|line| line.contains("failed after") && line.contains("EIO"));
    let lane = lane.and_then(|line| line.split(": ").nth(1)?.split(' ').next()?.parse().ok());
    let acknowledged: u64 = lane.unwrap_or_else(|| panic!("which, when and how many: {ended:?}"));
    assert!(acknowledged >= 64 && ended.stderr.contains("1 of 2 directories dropped out"), "{ended:?}");
    // A file that was just being synced when the disk failed the kernel may have forgotten at once.
    let there = recording.verify(&[]);
    assert_eq!(
        (number(&there, "expected"), number(&there, "right") + missing(&there)),
        (400, 400),
        "{there:?}"
    );
    assert!(missing(&there) <= 32, "one file at the most: {there:?}");
    // What the disk never had is gone: the newest frames of this lane.
    failing.remount();
    let back = recording.verify(&["--durable"]);
    let gone = missing(&back);
    assert_eq!((number(&back, "expected"), number(&back, "right") + gone), (400, 400), "{back:?}");
    assert!(gone <= acknowledged - 32 && !back.stdout.contains("damaged"), "two files were synced: {back:?}");
    failing.remount();
    failing.fail_reads();
    let unreadable = recording.verify(&[]);
    assert_eq!((unreadable.code, missing(&unreadable)), (Some(1), acknowledged), "{unreadable:?}");
    assert_eq!(number(&unreadable, "right"), 400 - acknowledged, "{unreadable:?}");
    assert!(unreadable.stdout.contains("unreadable") && unreadable.stderr.contains("1 of 2 lanes"));
}

/// One lane to its end: which frames were not stored is counted, and verify names as many.
fn loses_what_it_counts(recording: &Recording, ended: &Ended) {
    let (due, stored) = (number(ended, "due"), number(ended, "stored"));
    assert!(stored > 0 && stored < due, "{ended:?}");
    assert!(ended.stdout.contains(&format!("lost        frames: {} found the buffer full", due - stored)));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let verified = recording.verify(&["--durable"]);
    assert_eq!((verified.code, number(&verified, "expected")), (Some(1), due), "{verified:?}");
    assert_eq!((number(&verified, "right"), missing(&verified)), (stored, due - stored), "{verified:?}");
    assert!(verified.stdout.contains("1 of 1, 1 ended in order"), "{verified:?}");
}

#[test]
fn a_disk_whose_every_write_waits_loses_what_the_buffer_does_not_hold() {
    if !may_have_faulty_disks() {
        return;
    }
    // A frame is several requests of 50 ms, and four frames at a time may take 20 ms each.
    let slow = FaultyDisk::ext4(600, Duration::from_millis(50));
    let recording = Recording::new(&[&slow.path()]);
    let ended = recording.start(&["--frames", "150", "--buffer", "20 MiB"]).end(LIMIT);
    loses_what_it_counts(&recording, &ended);
}

#[test]
fn a_disk_that_answers_nothing_for_a_while_costs_what_the_buffer_does_not_hold() {
    if !may_have_faulty_disks() {
        return;
    }
    let disk = FaultyDisk::ext4(900, Duration::ZERO);
    for (buffer, ample) in [("512 MiB", true), ("20 MiB", false)] {
        let recording = Recording::new(&[&disk.path()]);
        let running = recording.start(&["--frames", "150", "--buffer", buffer]);
        recording.await_file(0, 1);
        disk.pause();
        std::thread::sleep(Duration::from_secs(1));
        disk.resume();
        let ended = running.end(LIMIT);
        assert!(!ended.stdout.contains("stalls      none"), "{ended:?}");
        if ample {
            assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 150), "{ended:?}");
            // A frame every 20 ms of a second.
            assert!(number(&ended, "buffer") >= 45, "the stall is seen: {ended:?}");
            assert_whole(&recording.verify(&["--durable"]), 150);
        } else {
            loses_what_it_counts(&recording, &ended);
        }
        fs::remove_dir_all(&recording.lanes()[0]).expect("it is ours");
    }
}
