//! Faults while several processes record what comes to their ports: each part is a recording that keeps what it has.

use std::{path::Path, time::Duration};

use nilometer_tests::{
    FileSystem, Mpi, MpiKind, Running, await_some, may_mount, nilometer, run, start, undamaged,
};
use rustix::process::{Signal, kill_process};

use super::{
    by_ports::{Lab, RECORD, telescope},
    journals,
};

const LIMIT: Duration = Duration::from_mins(2);

/// How many blocks of a recording are right; none is damaged.
fn right_of(directory: &Path) -> u64 {
    let verified = run(&["verify".as_ref(), directory.as_os_str()]);
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    undamaged(&verified)
}

/// Sends both streams for a while.
fn sending(lab: &Lab, seconds: u64) -> Running {
    let frames = (512 * 2 * seconds).to_string();
    start(lab.at(), &["simulate", "it.toml", "--to", &lab.to(), "--frames", &frames, "--seed", "5"])
}

#[test]
fn a_process_that_is_killed_ends_all_and_each_part_keeps_what_it_had() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new(telescope);
    let mut recording = mpi.start(2, lab.at(), &RECORD);
    recording.await_said("recording run by 2 processes: all of them listen");
    let sent = sending(&lab, 600);
    let parts = ["run_0", "run_1"].map(|name| lab.at().join(name));
    await_some("blocks of both", || parts.iter().all(|part| journals(part) > 1500).then_some(()));
    let worker = await_some("the process", || mpi.worker_of(1, lab.at()));
    kill_process(worker, Signal::KILL).expect("it runs");
    let ended = recording.end(LIMIT);
    assert!(ended.code != Some(0), "{ended:?}");
    drop(sent);
    for part in &parts {
        assert!(right_of(part) > 5, "{}", part.display());
    }
}

#[test]
fn a_disk_that_is_full_costs_the_part_of_its_process_only() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    if !may_mount() {
        return;
    }
    let lab = Lab::new(telescope);
    let small = FileSystem::ext4(32);
    let to = small.path().to_str().expect("plain letters");
    let program = nilometer().to_str().expect("plain letters");
    let packets = ["--packets", "6144", "--reserve", "0 B"];
    let first = [&[program], &RECORD[..], &packets].concat();
    let mut second = first.clone();
    *second.iter_mut().find(|word| **word == ".").expect("where it goes") = to;
    let both = [&first[..], &[":", "-n", "1"], &second].concat();
    let mut recording = Running::of(mpi.command(1, lab.at(), &both));
    recording.await_said("recording run by 2 processes: all of them listen");
    // 49 MB of each stream.
    let sent = sending(&lab, 12).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let ended = recording.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("process 1 on ") && !ended.stderr.contains("process 0 on "), "{ended:?}");
    lab.assert_right("run_0", "headers     6144 frames, none marked as invalid");
    assert!(right_of(&small.path().join("run_1")) > 10, "{ended:?}");
}
