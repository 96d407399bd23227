//! Frames over TCP into HDF5, from outside: what a detector or a program of Python sends is in the file bit for bit, whoever
//! connects to whom; what does not come is blank and says so; what is wrong costs itself.

mod aborted;
mod dectris;
pub(crate) mod detector;
mod halted;
mod hashed;
pub(crate) mod lab;
mod library;
mod masked;
mod pictures;
mod sending;
mod strangers;

use std::{os::unix::fs::FileExt, process::Command, time::Duration};

use nilometer_tests::{Running, await_some, free_port, run, start};
use nilometer_wire::series::{MetadataField, MetadataValue};
use rustix::process::Signal;

use crate::series::{
    detector::{Detector, IMAGES},
    lab::{LIMIT, Sender, SeriesLab},
};

/// A buffer for the small images of these tests: memory that nobody uses costs processor time too.
const SMALL: [&str; 2] = ["--buffer", "64 MiB"];

/// Starts to record `scan` with these options.
fn recorder(lab: &SeriesLab, options: &[&str]) -> Running {
    let arguments = ["record", "--to", "to", "--name", "scan"];
    start(lab.home.path(), &[&arguments[..], &SMALL, options].concat())
}

/// A program of Python sends arrays of this type, compressed or not, and they are recorded with these options.
fn are_in_the_file(kind: &str, shape: &str, compressed: bool, options: &[&str]) {
    are_in_the_file_as(kind, shape, shape, compressed, options);
}

/// The same, where the file has them in other dimensions.
fn are_in_the_file_as(kind: &str, shape: &str, stored: &str, compressed: bool, options: &[&str]) {
    let lab = SeriesLab::new();
    let Some(sender) = Sender::start(&lab, kind, shape, compressed) else { return };
    let mut arguments =
        vec!["record", "--from", &sender.at, "--to", "to", "--name", "scan", "--reserve", "0 B"];
    arguments.extend(SMALL);
    arguments.extend(options);
    let ended = start(lab.home.path(), &arguments).end(LIMIT);
    let what = format!("{kind} {options:?}: {ended:?}");
    assert_eq!(ended.code, Some(0), "{what}");
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{what}: {verified:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(found.shape(), stored, "{what}");
    assert!(found.numbers("wrong").is_empty() && found.numbers("blank").is_empty(), "{what}: {found:?}");
    assert!(found.numbers("flags").iter().all(|flag| *flag == 0), "{what}");
    assert_eq!(found.metadata("user_data/sample"), "[\"lysozyme\"]");
}

#[test]
fn what_python_sends_is_in_the_file() {
    are_in_the_file("u2", "[20,131,117]", false, &[]);
    are_in_the_file("u4", "[20,131,117]", true, &[]);
    are_in_the_file("f4", "[12,64,64]", false, &["--compression", "none"]);
    are_in_the_file("i2", "[12,64,64]", false, &["--compression", "lz4"]);
    // It comes compressed otherwise than it is to be stored.
    are_in_the_file("u2", "[20,131,117]", true, &["--compression", "zstd"]);
    are_in_the_file("u2", "[20,131,117]", true, &["--compression", "none"]);
}

#[test]
fn channels_are_a_dimension_and_files_have_whole_images() {
    are_in_the_file("u2", "[10,2,131,117]", true, &[]);
    are_in_the_file("u2", "[10,3,64,64]", false, &["--frames-per-file", "4"]);
    are_in_the_file("f8", "[7,2,64,64]", false, &["--frames-per-file", "7"]);
}

#[test]
fn images_stand_in_a_scan_and_are_cut_into_chunks() {
    are_in_the_file_as("u2", "[10,64,64]", "[2,5,64,64]", true, &["--scan", "2x5", "--chunk", "30x40"]);
    are_in_the_file_as(
        "u4",
        "[12,2,64,64]",
        "[4,3,2,64,64]",
        false,
        &["--scan", "?x3", "--frames-per-file", "6"],
    );
    are_in_the_file("f4", "[6,64,50]", true, &["--chunk", "64x25", "--compression", "none"]);
}

#[test]
fn a_series_of_another_length_than_its_scan_is_not_recorded() {
    let lab = SeriesLab::new();
    let Some(sender) = Sender::start(&lab, "u2", "[10,64,64]", false) else { return };
    let arguments = ["record", "--from", &sender.at, "--to", "to", "--scan", "3x4"];
    let ended = start(lab.home.path(), &arguments).end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("it has 12 frames, and 10 come"), "{ended:?}");
    assert_eq!(std::fs::read_dir(lab.home.path().join("to")).expect("it is there").count(), 0);
}

#[test]
fn a_damaged_file_of_channels_is_repaired() {
    let lab = SeriesLab::new();
    let Some(sender) = Sender::start(&lab, "u2", "[10,2,131,117]", true) else { return };
    let ended = recorder(&lab, &["--from", &sender.at]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let file =
        std::fs::OpenOptions::new().write(true).open(lab.recording().join("scan.h5")).expect("it is there");
    file.write_all_at(&[0; 4096], 0).expect("it can be written");
    let damaged = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert!(damaged.code == Some(1) && damaged.stderr.contains("nilometer repair"), "{damaged:?}");
    let repaired = run(&["repair".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!((found.shape().as_str(), found.numbers("right").len()), ("[10,2,131,117]", 20), "{found:?}");
}

#[test]
fn a_recorder_that_listens_takes_a_sender_that_connects() {
    let lab = SeriesLab::new();
    let port = free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let recorder = recorder(&lab, &["--listen", &at]);
    let Some(_sender) = Sender::start_at(&lab, &at, "u2", "[10,50,60]", true) else { return };
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(found.numbers("right").len(), 10, "{found:?}");
}

#[test]
fn the_example_in_c_is_recorded_and_can_be_built_for_windows() {
    let lab = SeriesLab::new();
    let built = lab.compiled("cc", &["-D_GNU_SOURCE"]).expect("a compiler builds the tests too");
    let port = free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let mut recorder = recorder(&lab, &["--listen", &at]);
    recorder.await_said("waiting for a series");
    let sent = Command::new(built).args(["127.0.0.1", &port.to_string(), "12", "100", "120"]).status();
    assert!(sent.expect("it can be run").success());
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Some(found) = lab.found_beside(&(0..12).flat_map(of_c).collect::<Vec<u8>>(), [12, 100, 120]) else {
        return;
    };
    assert_eq!(found.numbers("right").len(), 12, "{found:?}");
    drop(lab.compiled("x86_64-w64-mingw32-gcc", &["-lws2_32"]));
}

/// An image as the example in C makes it.
fn of_c(image: u64) -> Vec<u8> {
    (0..12_000).flat_map(|at: u64| ((at * 7 + image + 1) as u16).to_le_bytes()).collect()
}

/// What a simulated detector sends with these options is what it delivers by its seed.
fn is_recorded(options: &[&str], channels: u64) {
    const IMAGES: u64 = 20;
    let lab = SeriesLab::new();
    let truth = lab.simulated_detector(IMAGES * channels);
    let at = format!("tcp://127.0.0.1:{}", free_port());
    let mut arguments =
        vec!["simulate", "detector.toml", "--seed", "4711", "--frames", "20", "--wait", "--to", &at];
    arguments.extend(options);
    let detector = start(lab.home.path(), &arguments);
    let recorder = start(
        lab.home.path(),
        &["record", "detector.toml", "--from", &at, "--to", "to", "--name", "scan", "--buffer", "64 MiB"],
    );
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{options:?}: {ended:?}");
    let sent = detector.end(LIMIT);
    assert!(sent.stdout.contains("sent        20 images"), "{options:?}: {sent:?}");
    let [rows, columns] = lab::SIDES;
    let Some(found) = lab.found_beside(&truth, [IMAGES * channels, rows, columns]) else { return };
    assert_eq!(found.numbers("right").len() as u64, IMAGES * channels, "{options:?}: {found:?}");
    assert_eq!(found.definition(), "\"NXmx\"");
}

#[test]
fn a_simulated_detector_is_recorded_as_it_delivers() {
    is_recorded(&[], 1);
    is_recorded(&["--compression", "none"], 1);
    is_recorded(&["--compression", "lz4", "--channels", "3", "--encoders", "3"], 3);
    is_recorded(&["--stream-version", "1"], 1);
}

#[test]
fn images_of_several_connections_get_to_their_places() {
    for options in [&[][..], &["--frames-per-file", "16"]] {
        let lab = SeriesLab::new();
        let (one, other) = (Detector::new(&lab), Detector::new(&lab));
        let mut arguments =
            vec!["record", "--to", "to", "--name", "scan", "--from", &one.at, "--from", &other.at];
        arguments.extend(SMALL);
        arguments.extend(options);
        let recorder = start(lab.home.path(), &arguments);
        let mut detectors = [one, other];
        detectors[0].begin(Vec::new());
        for image in 0..IMAGES {
            // Each sends every second one, in pairs the later one first.
            detectors[(image % 2) as usize].send(image ^ 2);
        }
        detectors[1].end();
        let ended = recorder.end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let Some(found) = lab.found() else { return };
        assert_eq!(found.numbers("right").len() as u64, IMAGES, "{options:?}: {found:?}");
        let files = std::fs::read_dir(lab.recording()).expect("it is there").count();
        let expected = if options.is_empty() { 3 } else { 3 + (IMAGES as usize).div_ceil(16) };
        assert_eq!(files, expected, "no file more than there must be, {options:?}");
    }
}

#[test]
fn what_does_not_come_is_blank_and_what_is_wrong_costs_itself() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let recorder = recorder_of(&lab, &detector);
    detector.begin(Vec::new());
    for image in (0..IMAGES).filter(|image| image % 10 != 3) {
        detector.send(image);
        if image % 7 == 0 {
            detector.send(image);
            detector.send_raw(b"no message of a detector");
        }
    }
    detector.end();
    let ended = recorder.end(LIMIT);
    let missing = IMAGES.div_ceil(10);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{missing} of {IMAGES} frames did not come")), "{ended:?}");
    assert!(ended.stdout.contains("malformed") && ended.stdout.contains("duplicate"), "{ended:?}");
    let Some(found) = lab.found() else { return };
    // The last image of all is one that did not come: the dataset ends in front of it.
    let blank: Vec<i64> = (0..IMAGES.cast_signed() - 1).filter(|image| image % 10 == 3).collect();
    assert_eq!((found.numbers("blank"), found.numbers("wrong")), (blank.clone(), vec![]), "{found:?}");
    let flagged: Vec<i64> =
        found.numbers("flags").iter().zip(0..).filter(|(flag, _)| **flag == 1).map(|(_, at)| at).collect();
    assert_eq!(blank, flagged);
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
}

/// Starts to record what a detector sends.
fn recorder_of(lab: &SeriesLab, detector: &Detector) -> Running {
    recorder(lab, &["--from", &detector.at])
}

#[test]
fn images_far_beyond_those_that_were_announced_are_told() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let recorder = recorder_of(&lab, &detector);
    detector.begin(Vec::new());
    (0..IMAGES).chain(1_000_000_000..1_000_000_003).for_each(|image| detector.send(image));
    detector.end();
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("3 frames or messages came and are not recorded"), "{ended:?}");
    assert!(
        ended.stdout.contains("3 beyond the series") && !ended.stdout.contains("missing     none"),
        "{ended:?}"
    );
    let Some(found) = lab.found() else { return };
    assert_eq!(found.numbers("right").len() as u64, IMAGES, "{found:?}");
}

#[test]
fn an_image_with_a_damaged_block_is_kept_and_not_called_whole() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let recorder = recorder_of(&lab, &detector);
    detector.begin(Vec::new());
    for image in 0..IMAGES {
        match image {
            // The first sequence of a block is longer than the block. Where the length of a block is wrong, the filter of
            // HDF5 reads beyond the chunk, and h5py may crash.
            11 | 33 => detector.send_changed(image, |bytes| bytes[16..36].fill(255)),
            _ => detector.send(image),
        }
    }
    detector.end();
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("2 frames have damaged blocks"), "{ended:?}");
    assert!(
        ended.stdout.contains("damaged     2 frames") && ended.stdout.contains("missing     none"),
        "{ended:?}"
    );
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let Some(found) = lab.found() else { return };
    let flagged: Vec<i64> =
        found.numbers("flags").iter().zip(0..).filter(|(flag, _)| **flag == 2).map(|(_, at)| at).collect();
    assert_eq!((flagged, found.numbers("broken")), (vec![11, 33], vec![11, 33]), "{found:?}");
    assert_eq!(found.numbers("right").len() as u64, IMAGES - 2, "{found:?}");
}

#[test]
fn a_detector_describes_itself_as_nxmx_wants_it() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let recorder = recorder_of(&lab, &detector);
    let text = |name: &str, text: &str| MetadataField::new(name, MetadataValue::Text(text.into()));
    let number = |name: &str, number| MetadataField::new(name, MetadataValue::Float(number));
    let angle = vec![number("start", 10.0), number("increment", 0.5)];
    detector.begin(vec![
        text("sensor_material", "Si"),
        number("sensor_thickness", 450e-6),
        number("pixel_size_x", 75e-6),
        number("pixel_size_y", 75e-6),
        number("count_time", 0.01),
        number("incident_wavelength", 1.0),
        number("beam_center_x", 55.5),
        number("beam_center_y", 44.5),
        MetadataField::new(
            "detector_translation",
            MetadataValue::List([0.0, 0.0, -0.15].map(MetadataValue::Float).into()),
        ),
        MetadataField::new(
            "goniometer",
            MetadataValue::Map(vec![MetadataField::new("omega", MetadataValue::Map(angle))]),
        ),
    ]);
    (0..IMAGES).for_each(|image| detector.send(image));
    detector.end();
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(found.definition(), "\"NXmx\"");
    assert_eq!(found.metadata("goniometer/omega/increment"), "[0.5]");
    assert_eq!(found.distance(), Some(0.15), "the detector counts against the beam");
    let angles: Vec<f64> = (0..IMAGES).map(|image| 10.0 + 0.5 * image as f64).collect();
    assert_eq!(found.omega(), angles);
}

#[test]
fn after_a_kill_all_acknowledged_frames_are_in_the_file() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let recorder = recorder_of(&lab, &detector);
    detector.begin(Vec::new());
    (0..IMAGES / 2).for_each(|image| detector.send(image));
    let acknowledged = await_some("acknowledged frames", || {
        let acknowledged = lab.acknowledged();
        (acknowledged.len() > 5).then_some(acknowledged)
    });
    recorder.killed();
    let Some(found) = lab.found() else { return };
    assert!(found.numbers("wrong").is_empty(), "{found:?}");
    let right = found.numbers("right");
    assert!(acknowledged.iter().all(|number| right.contains(&number.cast_signed())), "{found:?}");
}

#[test]
fn a_stop_before_a_series_begins_leaves_nothing() {
    let lab = SeriesLab::new();
    let mut recorder = start(lab.home.path(), &["record", "--to", "to", "--from", "tcp://127.0.0.1:9"]);
    recorder.await_said("waiting for a series");
    recorder.signal(Signal::INT);
    let ended = recorder.end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("stopped before a series began"), "{ended:?}");
    assert_eq!(std::fs::read_dir(lab.home.path().join("to")).expect("it is there").count(), 0);
}

#[test]
fn before_its_time_nothing_is_listened_to() {
    let lab = SeriesLab::new();
    let Some(sender) = Sender::start(&lab, "u2", "[10,50,60]", true) else { return };
    let mut waiting = recorder(&lab, &["--from", &sender.at, "--start", "2100-01-01T00:00:00Z"]);
    waiting.await_said("scan is prepared, and listens from 2100-01-01T00:00:00Z on");
    waiting.signal(Signal::INT);
    let ended = waiting.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("stopped before a series began"), "{ended:?}");
    // The series that waited meanwhile is whole.
    let ended = recorder(&lab, &["--from", &sender.at, "--start", "2020-01-01T00:00:00Z"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(found.numbers("right").len(), 10, "{found:?}");
}

#[test]
fn what_can_not_be_is_refused_with_one_message() {
    let lab = SeriesLab::new();
    let from = ["--from", "tcp://127.0.0.1:9"];
    for (options, said) in [
        (&["--from", "127.0.0.1:9"][..], "tcp://HOST:PORT"),
        (&[from[0], from[1], "--format", "raw"], "--format raw: frames that come over TCP go into HDF5"),
        (&[from[0], from[1], "--checksums"], "--checksums: frames over TCP"),
        (&[from[0], from[1], "--window", "5"], "--window: only for packets"),
        (&[from[0], from[1], "--listen", "udp://127.0.0.1:9"], "--listen udp://: only for packets"),
        (&[from[0], from[1], "--frames-per-file", "0"], "write at least 1"),
        (&["fila10g-4g", "--frames-per-file", "5"], "--frames-per-file 5: only of HDF5"),
        (&["fila10g-4g", "--scan", "2x5"], "scan: only HDF5 has one"),
        (&[from[0], from[1], "--scan", "2x5", "--keep", "1 GiB"], "leave --keep out"),
        (&[from[0], from[1], "--scan", "2x5", "--frames-per-file", "7"], "write a multiple of 5"),
        (&[from[0], from[1], "--align", "5 KiB"], "a power of 2"),
        (&["eiger2-16m"], "--from tcp://HOST:PORT"),
        (&["--listen", "tcp://192.0.2.1:9"], "name an address of this machine"),
    ] {
        refuses(&lab, &["record", "--to", "to"], options, said);
    }
    let to = ["--to", "tcp://127.0.0.1:9"];
    for (options, said) in [
        (&[to[0], to[1], "--odd", "1 %"][..], "--odd: only for packets"),
        (&[to[0], to[1], "--reorder", "1 %", "--reorder-distance", "1001"], "for images write at most 1000"),
        (&["--to", "to", "--loss", "1 %"], "--loss: only over a network"),
        (&["--to", "to", "--wait"], "--wait: only for frames over TCP"),
        (&[to[0], to[1], "--checksums"], "--checksums: only for recordings"),
        (&[to[0], to[1], "--compression", "zstd"], "--compression zstd: detectors send none, bslz4 or lz4"),
        (&[to[0], to[1], "--stream-version", "1", "--channels", "2"], "only version 2 has them"),
        (&["--to", "to", "--channels", "2"], "--channels: only for frames over TCP"),
        (&["--to", "tcp://192.0.2.1:9"], "--to tcp://192.0.2.1:9"),
    ] {
        refuses(&lab, &["simulate", "eiger-4m"], options, said);
    }
}

fn refuses(lab: &SeriesLab, command: &[&str], options: &[&str], said: &str) {
    let arguments: Vec<_> = command.iter().chain(options).collect();
    let ended = start(lab.home.path(), &arguments).end(LIMIT);
    assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
    assert!(ended.stderr.contains(said), "{options:?}: {ended:?}");
    assert_eq!(std::fs::read_dir(lab.home.path().join("to")).expect("it is there").count(), 0);
}
