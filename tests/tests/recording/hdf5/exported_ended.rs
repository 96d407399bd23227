//! Exports into HDF5 that are ended before they are done: nothing is left of them.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{FaultyDisk, Running, await_some, may_have_faulty_disks, start};
use rustix::process::Signal;

use crate::hdf5::lab::{LIMIT, Lab};

/// Begins to export the recording of a lab, so slowly that it is not done soon.
fn slowly(lab: &Lab, to: &Path, more: &[&str]) -> Running {
    let from = lab.lanes().remove(0);
    let from = from.to_str().expect("a plain name");
    let arguments = [&["export", from, "--format", "hdf5", "--to", "made.h5"], more].concat();
    let running = start(to, &arguments);
    await_some("the directory in which it is made", || {
        names(to).iter().find(|name| name.ends_with(".partial")).cloned()
    });
    running
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn who_is_asked_to_end_leaves_nothing() {
    let lab = Lab::small("data = \"diffraction\"\n");
    assert_eq!(lab.simulate(&["--format", "raw"], &["--frames", "60"]).end(LIMIT).code, Some(0));
    let to = tempfile::tempdir().expect("a temporary directory");
    let stacks = ["--chunk", "7x64x96", "--verify"];
    for (signal, more) in
        [(Signal::INT, &[][..]), (Signal::TERM, &[]), (Signal::HUP, &[]), (Signal::TERM, &stacks)]
    {
        let running = slowly(&lab, to.path(), &[&["--rate", "1 kB/s"], more].concat());
        running.signal(signal);
        let ended = running.end(LIMIT);
        assert!(ended.code == Some(1) && ended.stderr.contains("interrupted"), "{signal:?} {ended:?}");
        assert!(names(to.path()).is_empty(), "{signal:?} {:?}", names(to.path()));
    }
}

/// A thread of the process that reads the recording waits in the kernel for the disk.
fn waits_for_the_disk(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).any(|stat| {
        let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
        name.contains("(read ") && rest.starts_with('D')
    })
}

#[test]
fn a_recording_on_a_disk_that_hangs_is_not_waited_for() {
    if !may_have_faulty_disks() {
        return;
    }
    let mut disk = FaultyDisk::ext4(300, Duration::ZERO);
    let lab = Lab::small("data = \"diffraction\"\n").into(&[&disk.path()]);
    assert_eq!(lab.simulate(&["--format", "raw"], &["--frames", "2000"]).end(LIMIT).code, Some(0));
    // What is in the cache would be read without the disk.
    disk.remount();
    let to = tempfile::tempdir().expect("a temporary directory");
    let running = slowly(&lab, to.path(), &["--rate", "400 kB/s"]);
    disk.pause();
    let process = running.process();
    await_some("a thread that waits for the disk", || waits_for_the_disk(process).then_some(()));
    running.signal(Signal::TERM);
    await_some("an end that leaves nothing", || names(to.path()).is_empty().then_some(()));
    // A process whose thread waits in the kernel is there until that is answered.
    disk.resume();
    let ended = running.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("interrupted"), "{ended:?}");
}
