//! What files alone say of frames is in those that are made of them: by `export`, and by `repair`.

use std::{fs::OpenOptions, io::Write, path::PathBuf};

use nilometer_tests::run;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::layout::{
    joined::{lines, tomography},
    lab::{FRAMES, FoundTree, LIMIT, LayoutLab, ValueSender, tree_of},
};

const ATTRIBUTES: &str = "/entry/instrument/NDAttributes";

/// The files that are made of the recording: with its chunks, and with chunks of several frames.
fn exported(lab: &LayoutLab, chunk: &str) -> [PathBuf; 2] {
    let made = |name: &str, more: &[&str]| {
        let to = lab.home.path().join(name);
        let mut arguments = vec![PathBuf::from("export"), lab.recording(), "--to".into(), to.clone()];
        arguments.extend([&["--format", "hdf5", "--verify"], more].concat().iter().map(PathBuf::from));
        let ended = run(&arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains("left out"), "{ended:?}");
        to
    };
    [made("made.h5", &["--journal"]), made("stacks.h5", &["--chunk", chunk])]
}

fn assert_same(made: &FoundTree, of: &FoundTree, paths: &[&str]) {
    for path in paths {
        assert_eq!(made.numbers(path), of.numbers(path), "{path}");
        assert_eq!(made.kind(path), of.kind(path), "{path}");
        assert!(made.numbers(path).iter().any(Option::is_some), "{path}: something is said");
    }
}

#[test]
fn values_of_several_files_are_in_the_one_that_is_made_of_them() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    // Those behind come of no frame, and those of some frames never.
    lab.write("motors.jsonl", &(lines(0..8) + &lines(11..FRAMES)));
    let options = ["--layout", &tomography(), "--metadata", "motors.jsonl", "--frames-per-file", "6"];
    let ended = lab.record(FRAMES, &options).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = exported(&lab, "8x64x96");
    let Some(there) = tree_of(&lab.recording().join("scan_master.h5")) else { return };
    let times = format!("{ATTRIBUTES}/start_time");
    let said = ["/entry/sample/rotation_angle", "/entry/instrument/detector/image_key", &times];
    for made in all {
        assert_same(&tree_of(&made).expect("h5py was there before"), &there, &said);
    }
}

#[test]
fn times_that_a_detector_said_are_in_it_with_what_they_are_counted_from() {
    let lab = LayoutLab::new("");
    let Some(sender) = ValueSender::start_images("2", FRAMES) else { return };
    let ended = lab.record_from(&sender.at, &[]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = exported(&lab, "7x30x40");
    let there = tree_of(&lab.file()).expect("h5py is there with zmq");
    let [start, real] = ["start_time", "real_time"].map(|name| format!("/entry/instrument/detector/{name}"));
    let [angle, step] = ["angle", "step"].map(|name| format!("{ATTRIBUTES}/{name}"));
    for made in all {
        let made = tree_of(&made).expect("h5py is there with zmq");
        assert_same(&made, &there, &[&start, &real, &angle, &step]);
        assert_eq!(made.attribute(&start, "start"), "2026-11-25T10:00:00Z");
    }
}

#[test]
fn values_that_nobody_announced_are_in_it_and_in_what_is_repaired() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    let pipe = lab.home.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let recorder = lab.record(FRAMES, &["--metadata", "pipe"]);
    let mut writer = OpenOptions::new().write(true).open(&pipe).expect("the recorder reads it");
    writer.write_all(lines(0..FRAMES - 3).as_bytes()).expect("it is read");
    drop(writer);
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = exported(&lab, "3x32x96");
    let Some(there) = tree_of(&lab.file()) else { return };
    let said = [format!("{ATTRIBUTES}/SampleAngle"), format!("{ATTRIBUTES}/ImageKey")];
    let said = said.each_ref().map(String::as_str);
    for made in all {
        let made = tree_of(&made).expect("h5py was there before");
        assert_same(&made, &there, &said);
        assert_eq!(made.attribute(ATTRIBUTES, "NX_class"), "NXcollection");
    }
    lab.change_flag();
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    let repaired = tree_of(&lab.file()).expect("h5py was there before");
    assert_same(&repaired, &there, &said);
    assert_eq!(repaired.attribute(ATTRIBUTES, "NX_class"), "NXcollection");
}
