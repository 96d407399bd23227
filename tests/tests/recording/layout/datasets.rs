//! A layout with several datasets of frames: each frame is in the one that its value names, bit for bit, and stands there behind
//! those before it; the columns say where each is. That is so while it grows, after a kill, a repair and an export.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_tests::{await_some, python, root, run};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::layout::lab::{FRAMES, LIMIT, LayoutLab, ValueSender, example};

const DATASETS: [&str; 3] = ["/exchange/data", "/exchange/data_white", "/exchange/data_dark"];

fn exchange() -> String {
    example("exchange.xml").to_str().expect("a plain name").to_owned()
}

/// Which of the datasets an image belongs into.
fn dataset_of(image: u64) -> usize {
    match image % 10 {
        3 | 4 => 1,
        8 => 2,
        _ => 0,
    }
}

/// The frames that each dataset is to have, of those that are there.
fn wanted(frames: impl Iterator<Item = u64>, channels: u64) -> Vec<Vec<i64>> {
    let mut wanted = vec![Vec::new(); DATASETS.len()];
    frames.for_each(|frame| wanted[dataset_of(frame / channels)].push(frame.cast_signed()));
    wanted
}

/// What h5py finds.
#[derive(Debug, PartialEq)]
struct FoundDatasets {
    frames: BTreeMap<String, Vec<i64>>,
    shapes: BTreeMap<String, Vec<i64>>,
    named: Vec<String>,
    columns: BTreeMap<String, Vec<i64>>,
}

impl FoundDatasets {
    /// Nothing without h5py.
    fn of(file: &Path, more: &[&str]) -> Option<Self> {
        let mut python = python(&["h5py", "hdf5plugin", "numpy"])?;
        let script = root().join("tests/tests/recording/layout/typed_reader.py");
        let output = python.arg(script).arg(file).args(more).output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let numbers = |name: &str| serde_json::from_value(found[name].clone()).expect("numbers by name");
        Some(FoundDatasets {
            frames: numbers("frames"),
            shapes: numbers("shapes"),
            columns: numbers("columns"),
            named: serde_json::from_value(found["named"].clone()).expect("texts"),
        })
    }

    fn frames(&self) -> Vec<Vec<i64>> {
        DATASETS.iter().map(|path| self.frames[*path].clone()).collect()
    }

    /// Each of the first so many frames is where it belongs, in the order of their numbers.
    fn assert_has(&self, frames: u64) {
        self.assert_columns(frames);
        for (there, wanted) in self.frames().iter().zip(wanted(0..frames, 1)) {
            assert!(there.starts_with(&wanted), "{there:?} {wanted:?}");
        }
    }

    /// The columns say of each of the first so many frames that is there where it is, and it is there.
    fn assert_columns(&self, upto: u64) {
        assert_eq!(self.named, DATASETS);
        let [flags, datasets, indices, ids] =
            ["flag", "frame_dataset", "frame_index", "NDArrayUniqueId"].map(|name| &self.columns[name]);
        for (frame, (number, flag)) in (0_i64..).zip(flags).enumerate().take(upto as usize) {
            if *flag == 1 {
                assert_eq!((datasets[frame], indices[frame]), (-1, -1), "frame {frame}");
                continue;
            }
            let dataset = &self.frames[DATASETS[usize::try_from(datasets[frame]).expect("a dataset")]];
            let there = dataset[usize::try_from(indices[frame]).expect("a place")];
            assert_eq!((there, ids[frame]), (number, number));
        }
    }
}

/// What is recorded of images that say where they belong, and what is told of it.
fn recorded(kind: &str, images: u64, more: &[&str]) -> Option<(LayoutLab, String)> {
    let lab = LayoutLab::new("");
    let sender = ValueSender::start_typed(kind, images)?;
    let layout = exchange();
    let ended = lab.record_from(&sender.at, &[&["--layout", &layout], more].concat()).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("left out"), "{ended:?}");
    Some((lab, ended.stdout))
}

#[test]
fn each_frame_is_in_the_dataset_that_its_image_names() {
    for more in [&["--compression", "none"][..], &["--compression", "bslz4"], &["--chunk", "16x40"]] {
        let Some((lab, told)) = recorded("with", 40, more) else { return };
        let line = "datasets    28 in /exchange/data, 8 in /exchange/data_white, 4 in /exchange/data_dark; in the default for \
                    want of `FrameType`: 1 without a value, 1 with the path of no dataset\n";
        assert!(told.contains(line), "{told}");
        lab.assert_verified(40);
        let found = FoundDatasets::of(&lab.file(), &[]).expect("h5py is there with zmq");
        assert_eq!(found.frames(), wanted(0..40, 1), "{more:?}");
        found.assert_columns(40);
        let summary = fs::read_to_string(lab.recording().join("scan.summary.json")).expect("it is there");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let datasets = &summary["datasets"];
        assert_eq!(datasets["datasets"][2]["frames"], 4, "{summary}");
        assert_eq!(
            (&datasets["unnamed"], &datasets["unknown"], &datasets["late"]),
            (&1.into(), &1.into(), &0.into())
        );
    }
}

#[test]
fn the_channels_of_an_image_are_together_in_its_dataset() {
    let Some((lab, _)) = recorded("channels", 20, &[]) else { return };
    lab.assert_verified(40);
    let found = FoundDatasets::of(&lab.file(), &[]).expect("h5py is there with zmq");
    assert_eq!(found.frames(), wanted(0..40, 2));
    assert_eq!(found.shapes[DATASETS[1]], [4, 2, 32, 40]);
    found.assert_columns(40);
}

#[test]
fn a_repair_and_an_export_put_each_frame_where_it_was() {
    let Some((lab, _)) = recorded("with", 40, &[]) else { return };
    let before = FoundDatasets::of(&lab.file(), &[]).expect("h5py is there with zmq");
    let whole = lab.about("repair");
    assert!(whole.code == Some(0) && whole.stdout.starts_with("whole"), "{whole:?}");
    for chunk in [None, Some("16x40")] {
        let made = lab.home.path().join(format!("made{}.h5", chunk.unwrap_or_default()));
        let chunk = chunk.map(|chunk| ["--chunk", chunk]);
        let mut arguments = vec![PathBuf::from("export"), lab.recording(), "--to".into(), made.clone()];
        let options = ["--format", "hdf5", "--verify"].into_iter().chain(chunk.into_iter().flatten());
        arguments.extend(options.map(PathBuf::from));
        let ended = run(&arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let exported = FoundDatasets::of(&made, &[]).expect("h5py was there before");
        assert_eq!(exported.frames(), before.frames());
        exported.assert_columns(40);
    }
    let stacked =
        [PathBuf::from("export"), lab.recording(), "--to".into(), lab.home.path().join("stacked.h5")];
    let options = ["--format", "hdf5", "--chunk", "4x32x40"].map(PathBuf::from);
    let ended = run(&[stacked, options].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("several datasets"), "{ended:?}");
    let file = OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&[0; 4096], 0).expect("space");
    assert_eq!(lab.about("verify").code, Some(1));
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    lab.assert_verified(40);
    let after = FoundDatasets::of(&lab.file(), &[]).expect("h5py was there before");
    assert_eq!(after, before);
}

/// A frame that says another place than the journal is found out.
#[test]
fn a_column_that_says_another_dataset_is_a_fault() {
    let Some((lab, _)) = recorded("with", 40, &[]) else { return };
    let bytes = fs::read(lab.file()).expect("it is there");
    let column: Vec<u8> = (0..40).flat_map(|image| [0_i16, 1, 2][dataset_of(image)].to_le_bytes()).collect();
    let at = bytes.windows(column.len()).position(|window| window == column).expect("the column");
    let file = OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&1_i16.to_le_bytes(), at as u64).expect("space");
    let verified = lab.about("verify");
    assert!(verified.code == Some(1), "{verified:?}");
    assert!(format!("{verified:?}").contains("`frame_dataset` says Some(1) of frame 0"), "{verified:?}");
    assert_eq!(lab.about("repair").code, Some(0));
    lab.assert_verified(40);
}

#[test]
fn values_that_come_too_late_are_counted_and_their_frames_are_in_the_default() {
    let lab = LayoutLab::new("");
    let Some(sender) = ValueSender::start_typed("without", FRAMES) else { return };
    let lines = |frames: std::ops::Range<u64>| -> String {
        let line =
            |frame| format!("{{\"frame\": {frame}, \"FrameType\": \"{}\"}}\n", DATASETS[dataset_of(frame)]);
        frames.map(line).collect()
    };
    lab.write("types.jsonl", &lines(0..10));
    let layout = exchange();
    let recorder = lab.record_from(&sender.at, &["--layout", &layout, "--metadata", "types.jsonl"]);
    await_some("all frames", || (lab.acknowledged() == FRAMES).then_some(()));
    let mut file =
        OpenOptions::new().append(true).open(lab.home.path().join("types.jsonl")).expect("it is there");
    file.write_all(lines(10..FRAMES - 2).as_bytes()).expect("space");
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let why = "in the default for want of `FrameType`: 2 without a value, 8 with a value that came too late";
    assert!(ended.stdout.contains(why), "{ended:?}");
    lab.assert_verified(FRAMES);
    let found = FoundDatasets::of(&lab.file(), &[]).expect("h5py is there with zmq");
    let mut there = wanted(0..10, 1);
    there[0].extend(10..FRAMES.cast_signed());
    assert_eq!(found.frames(), there);
    found.assert_columns(FRAMES);
}

#[test]
fn a_recorder_that_is_killed_leaves_every_acknowledged_frame_in_its_dataset() {
    let lab = LayoutLab::new("");
    let Some(sender) = ValueSender::start_typed("endless", 0) else { return };
    let layout = exchange();
    let running = lab.record_from(&sender.at, &["--layout", &layout]);
    await_some("some frames", || (lab.acknowledged() > 100).then_some(()));
    let before = lab.acknowledged();
    FoundDatasets::of(&lab.file(), &["swmr"]).expect("h5py is there with zmq").assert_has(before);
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let acknowledged = lab.acknowledged();
    assert!(acknowledged >= before, "{acknowledged} {before}");
    FoundDatasets::of(&lab.file(), &[]).expect("h5py was there before").assert_has(acknowledged);
    let file = OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&[0; 2048], 0).expect("space");
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    let repaired = FoundDatasets::of(&lab.file(), &[]).expect("h5py was there before");
    repaired.assert_has(acknowledged);
    assert_eq!(repaired.frames(), wanted(0..acknowledged, 1));
}

#[test]
fn a_simulated_detector_says_nothing_and_all_frames_are_in_the_default() {
    let lab = LayoutLab::new("");
    let layout = exchange();
    let ended = lab.simulate(&["--format", "hdf5", "--frames", "20", "--layout", &layout]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = "datasets    20 in /exchange/data, 0 in /exchange/data_white, 0 in /exchange/data_dark; in the default for want of \
                `FrameType`: 20 without a value\n";
    assert!(ended.stdout.contains(line), "{ended:?}");
    lab.assert_verified(FRAMES);
}

#[test]
fn what_several_datasets_can_not_be_had_with_is_refused_before_anything_is_made() {
    let layout = exchange();
    let refused = "a layout that puts frames into several datasets";
    for (more, why) in [
        (&["--frames-per-file", "6"][..], "--frames-per-file"),
        (&["--scan", "4x5"], "--scan"),
        (&["--to", "to2"], "name one --to"),
    ] {
        let lab = LayoutLab::new("");
        fs::create_dir(lab.home.path().join("to2")).expect("space");
        let ended = lab.record_from("tcp://127.0.0.1:9", &[&["--layout", &layout], more].concat()).end(LIMIT);
        assert!(ended.code == Some(2), "{more:?}: {ended:?}");
        assert!(ended.stderr.contains(refused) && ended.stderr.contains(why), "{more:?}: {ended:?}");
        lab.assert_nothing_made(why);
    }
    for (more, file) in [
        (&["--writers", "2"][..], ""),
        (&["--to", "to2"], ""),
        (&["--scan", "4x5"], ""),
        (&[], "recording.frames_per_file = 6\n"),
    ] {
        let lab = LayoutLab::new(file);
        fs::create_dir(lab.home.path().join("to2")).expect("space");
        let plain = ["--format", "hdf5", "--frames", "20", "--layout", &layout];
        let ended = lab.simulate(&[&plain, more].concat()).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(refused), "{more:?} {file}: {ended:?}");
        lab.assert_nothing_made(file);
    }
}
