//! Values that come apart from the frames, joined by their numbers.

use std::{fs, io::Write};

use nilometer_tests::await_some;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::layout::lab::{FRAMES, LIMIT, LayoutLab, ValueSender, example, tree_of};

const ANGLE: &str = "/entry/sample/rotation_angle";
const KEY: &str = "/entry/instrument/detector/image_key";

pub(crate) fn tomography() -> String {
    example("tomography.xml").to_str().expect("a plain name").to_owned()
}

fn angles(frames: u64) -> Vec<Option<f64>> {
    (0..frames).map(|frame| Some(frame as f64 * 0.5)).collect()
}

fn keys(frames: u64) -> Vec<Option<f64>> {
    (0..frames).map(|frame| Some((frame % 3) as f64)).collect()
}

pub(crate) fn lines(frames: std::ops::Range<u64>) -> String {
    let line = |frame: u64| {
        format!(
            "{{\"frame\": {frame}, \"SampleAngle\": {}, \"ImageKey\": {}}}\n",
            frame as f64 * 0.5,
            frame % 3
        )
    };
    frames.map(line).collect()
}

#[test]
fn a_tomography_scan_has_its_angles_from_a_file_that_was_there() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    let text = lines(0..FRAMES)
        + "angle 5\n{\"frame\": 99, \"SampleAngle\": 1}\n{\"frame\": 3, \"Name\": [\"x\"]}\n";
    lab.write("motors.jsonl", &text);
    let ended = lab.record(FRAMES, &["--layout", &tomography(), "--metadata", "motors.jsonl"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The names, and the times of the images.
    let refused =
        "refused: 1 no JSON object with a `frame`, 1 no numbers or texts, 1 for frames that are not there";
    assert!(ended.stdout.contains("\nmetadata    ") && ended.stdout.contains(refused), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.file()) else { return };
    assert_eq!((tree.numbers(ANGLE), tree.numbers(KEY)), (angles(FRAMES), keys(FRAMES)));
    assert_eq!((tree.kind(ANGLE), tree.kind(KEY)), ("[20] <f8".to_owned(), "[20] <i8".to_owned()));
    assert!(tree.is_same("/entry/data/rotation_angle", ANGLE));
    let start = tree.numbers("/entry/instrument/NDAttributes/start_time");
    assert!(start.iter().flatten().is_sorted() && start.len() as u64 == FRAMES, "{start:?}");
}

#[test]
fn values_come_from_senders_of_zeromq_of_either_kind() {
    for kind in ["push", "pub"] {
        let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
        let Some(sender) = ValueSender::start(kind, FRAMES) else { return };
        let ended = lab.record(FRAMES, &["--layout", &tomography(), "--metadata", &sender.at]).end(LIMIT);
        assert_eq!(ended.code, Some(0), "{kind}: {ended:?}");
        let refused = "refused: 1 no JSON object with a `frame`, 1 no numbers or texts, 1 for frames that are not there";
        assert!(kind == "pub" || ended.stdout.contains(refused), "{ended:?}");
        let tree = tree_of(&lab.file()).expect("h5py is there with zmq");
        assert_eq!((tree.numbers(ANGLE), tree.numbers(KEY)), (angles(FRAMES), keys(FRAMES)), "{kind}");
    }
}

#[test]
fn what_images_say_beside_their_pixels_is_in_the_file() {
    for version in ["2", "1"] {
        let lab = LayoutLab::new("");
        let Some(sender) = ValueSender::start_images(version, FRAMES) else { return };
        let ended = lab.record_from(&sender.at, &[]).end(LIMIT);
        assert_eq!(ended.code, Some(0), "{version}: {ended:?}");
        assert!(ended.stdout.contains("metadata    60 values of "), "{version}: {ended:?}");
        let tree = tree_of(&lab.file()).expect("h5py is there with zmq");
        let each = |scale: f64| (0..FRAMES).map(|frame| Some(frame as f64 * scale)).collect::<Vec<_>>();
        assert_eq!(tree.numbers("/entry/instrument/NDAttributes/angle"), each(0.25), "{version}");
        assert_eq!(tree.numbers("/entry/instrument/NDAttributes/step"), each(1.0), "{version}");
        assert_eq!(tree.kind("/entry/instrument/NDAttributes/step"), "[20] <i8");
        let sample = "/entry/instrument/NDAttributes/sample";
        assert_eq!(tree.texts(sample), vec!["lysozyme"; FRAMES as usize], "{version}");
        assert_eq!(tree.text_type(sample), "utf-8 256", "{version}");
        let start = tree.numbers("/entry/instrument/detector/start_time");
        let is_near = |(one, other): (&Option<f64>, &Option<f64>)| {
            one.zip(*other).is_some_and(|(one, other)| (one - other).abs() < 1e-9)
        };
        assert!(start.iter().zip(&each(0.01)).all(is_near), "{version}: {start:?}");
        let real = tree.numbers("/entry/instrument/detector/real_time");
        assert!(real.iter().all(|real| *real == Some(0.009)), "{version}: {real:?}");
        let begun = tree.attribute("/entry/instrument/detector/start_time", "start");
        assert!(version == "1" || begun == "2026-11-25T10:00:00Z", "{begun}");
    }
}

#[test]
fn values_that_come_when_files_are_closed_are_written_into_them() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    lab.write("motors.jsonl", &lines(0..3));
    let options = ["--layout", &tomography(), "--metadata", "motors.jsonl", "--frames-per-file", "6"];
    let recorder = lab.record(FRAMES, &options);
    await_some("all frames", || (lab.acknowledged() == FRAMES).then_some(()));
    let path = lab.home.path().join("motors.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("it is there");
    file.write_all(lines(3..FRAMES).as_bytes()).expect("space");
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.recording().join("scan_master.h5")) else { return };
    assert_eq!((tree.numbers(ANGLE), tree.numbers(KEY)), (angles(FRAMES), keys(FRAMES)));
}

#[test]
fn values_through_a_pipe_get_a_place_without_a_layout() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    let pipe = lab.home.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let recorder = lab.record(FRAMES, &["--metadata", "pipe"]);
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("the recorder reads it");
    writer.write_all(lines(0..FRAMES).as_bytes()).expect("it is read");
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.file()) else { return };
    assert_eq!(tree.numbers("/entry/instrument/NDAttributes/SampleAngle"), angles(FRAMES));
    assert_eq!(tree.numbers("/entry/instrument/NDAttributes/ImageKey"), keys(FRAMES));
    assert_eq!(tree.attribute("/entry/instrument/NDAttributes", "NX_class"), "NXcollection");
    let detector = |name: &str| tree.numbers(&format!("/entry/instrument/detector/{name}"));
    let [start, stop, real] = ["start_time", "stop_time", "real_time"].map(detector);
    assert!(start.iter().flatten().is_sorted() && start.len() as u64 == FRAMES, "{start:?}");
    assert!(start.iter().zip(&stop).all(|(start, stop)| start < stop), "{start:?} {stop:?}");
    assert!(real.iter().all(|real| real.is_some_and(|real| real > 0.0)), "{real:?}");
}

#[test]
fn what_never_came_is_no_number_and_repair_keeps_what_came() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    lab.write("motors.jsonl", &lines(0..15));
    let ended = lab.record(FRAMES, &["--layout", &tomography(), "--metadata", "motors.jsonl"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut wanted = angles(15);
    wanted.resize(FRAMES as usize, None);
    let Some(tree) = tree_of(&lab.file()) else { return };
    assert_eq!(tree.numbers(ANGLE), wanted);
    let mut keys = keys(15);
    keys.resize(FRAMES as usize, Some(-1.0));
    assert_eq!(tree.numbers(KEY), keys);
    lab.change_flag();
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    let tree = tree_of(&lab.file()).expect("h5py was there before");
    assert_eq!((tree.numbers(ANGLE), tree.numbers(KEY)), (wanted, keys));
    assert!(tree.numbers("/entry/instrument/NDAttributes/flag").iter().all(|flag| *flag == Some(0.0)));
}
