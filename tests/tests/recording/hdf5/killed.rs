//! A recorder that is killed at a random moment: its files open as any others do, with every acknowledged frame.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use nilometer_model::Seed;
use nilometer_tests::kills;
use rustix::process::{Signal, kill_process};

use crate::hdf5::lab::{LIMIT, Lab, found, undamaged};

/// Frames a file, where there are many.
const FRAMES_PER_FILE: u64 = 50;
/// In the index and not acknowledged, at the most.
const IN_FLIGHT: u64 = 1000;

/// 12 KiB each, at a rate at which there is always something to be written.
fn lab(many: bool) -> Lab {
    let more = if many { format!("recording.frames_per_file = {FRAMES_PER_FILE}\n") } else { String::new() };
    Lab::new("64, 96", "uint16", "4 kHz", &more)
}

/// Files that have a frame of these, with the first that each may have.
fn files(lab: &Lab, many: bool, frames: &[u64]) -> Vec<(PathBuf, u64)> {
    if !many {
        return vec![(lab.file(), 0)];
    }
    let numbers: BTreeSet<u64> = frames.iter().map(|frame| frame / FRAMES_PER_FILE).collect();
    let path = |file: u64| lab.lanes()[0].join(format!("scan.{file:08}.h5"));
    numbers.into_iter().map(|file| (path(file), file * FRAMES_PER_FILE)).collect()
}

/// Frames for a minute, in a dataset without a limit.
const ROW: [&str; 2] = ["--duration", "1 min"];
/// As many, in a dataset that never gets larger.
const FIXED: [&str; 2] = ["--scan", "240000"];

/// Records, kills it so long after the first file was begun, and reads what is there; how many frames were acknowledged.
/// Nothing without h5py.
fn killed(compression: &str, many: bool, options: &[&str], after: Duration) -> Option<usize> {
    let lab = lab(many);
    let running = lab.start(compression, options);
    lab.await_file(if many { "scan.00000000.h5" } else { "scan.h5" });
    std::thread::sleep(after);
    let before = lab.acknowledged();
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let acknowledged = lab.acknowledged();
    assert!(
        before.iter().all(|frame| acknowledged.binary_search(frame).is_ok()),
        "{before:?}, {acknowledged:?}"
    );
    let Some(last) = acknowledged.last() else { return Some(0) };
    let verified = lab.about("verify");
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    assert_eq!(undamaged(&verified), acknowledged.len() as u64, "{verified:?}");
    let mut there = Vec::new();
    let files = files(&lab, many, &acknowledged);
    for (file, (_, first)) in found(&lab.truth(last + IN_FLIGHT), &files)?.iter().zip(&files) {
        assert_eq!(file.frames("wrong"), Vec::<u64>::new(), "{compression}");
        let whole = file.column("flag").into_iter().zip(*first..).filter(|(flag, _)| *flag == 0);
        let whole: Vec<_> = whole.map(|(_, frame)| frame).collect();
        let right = file.frames("right");
        let said: Vec<_> = whole.iter().filter(|frame| right.binary_search(frame).is_err()).collect();
        assert!(said.is_empty(), "{compression}: {said:?} are said to be whole and are not there");
        there.extend(whole);
    }
    let gone: Vec<_> = acknowledged.iter().filter(|frame| there.binary_search(frame).is_err()).collect();
    assert!(gone.is_empty(), "{compression}: {gone:?} were acknowledged");
    Some(acknowledged.len())
}

fn is_killed_at_any_moment(compression: &str, many: bool, options: &[&str]) {
    let seed = u64::from(std::process::id());
    let (mut moments, mut acknowledged) = (Seed(seed).stream(), 0);
    for _ in 0..kills(5, 100) {
        let after = Duration::from_millis(moments.below(500));
        let Some(frames) = killed(compression, many, options, after) else { return };
        acknowledged += frames;
    }
    assert!(acknowledged > 0, "seed {seed}: nothing was ever acknowledged");
}

#[test]
fn one_file_of_a_recorder_that_was_killed_has_every_acknowledged_frame() {
    is_killed_at_any_moment("none", false, &ROW);
}

#[test]
fn one_file_of_compressed_frames_of_a_recorder_that_was_killed_has_every_acknowledged_frame() {
    is_killed_at_any_moment("bslz4", false, &ROW);
}

#[test]
fn many_files_of_a_recorder_that_was_killed_have_every_acknowledged_frame() {
    is_killed_at_any_moment("none", true, &ROW);
}

#[test]
fn many_files_of_compressed_frames_of_a_recorder_that_was_killed_have_every_acknowledged_frame() {
    is_killed_at_any_moment("bslz4", true, &ROW);
}

#[test]
fn a_fixed_dataset_of_a_recorder_that_was_killed_has_every_acknowledged_frame() {
    is_killed_at_any_moment("bslz4", false, &FIXED);
}
