//! `nilometer simulate --to tcp://` as those see it who write receivers: a receiver made of pyzmq and cbor2 finds what the sender
//! says that it sent, dropped, left out, put out of order and sent twice.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Child, Stdio},
};

use nilometer_tests::{Ended, Running, free_port, python, root, start};
use serde_json::Value;

use crate::series::lab::{LIMIT, SIDES, SeriesLab};

/// A receiver, and what it found when it has ended.
struct Receiver(Child);

impl Receiver {
    /// Of a detector there. It reads nothing before the file is there, if there is one. Nothing if Python is not here.
    fn start(at: &str, stalled_until: Option<&Path>) -> Option<Self> {
        let mut python = python(&["zmq", "cbor2"])?;
        python.arg(root().join("tests/tests/recording/series/receiver.py")).arg(at).args(stalled_until);
        Some(Receiver(python.stdout(Stdio::piped()).spawn().expect("it can be run")))
    }

    fn found(self) -> Value {
        let output = self.0.wait_with_output().expect("it ends");
        assert!(output.status.success(), "it says why");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// A simulated detector that waits for a receiver, and where.
fn detector(lab: &SeriesLab, options: &[&str]) -> (Running, String) {
    let at = format!("tcp://127.0.0.1:{}", free_port());
    let mut arguments = vec!["simulate", "detector.toml", "--seed", "4711", "--to", &at];
    arguments.extend(options);
    let mut running = start(lab.home.path(), &arguments);
    running.await_said("waiting for a receiver");
    (running, at)
}

fn images(found: &Value) -> Vec<u64> {
    let images = found["images"].as_array().expect("a list");
    images.iter().map(|image| image.as_u64().expect("a number")).collect()
}

/// The number behind a word of the summary.
fn counted(ended: &Ended, word: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(word));
    let number = line
        .and_then(|line| line.split_whitespace().next())
        .unwrap_or_else(|| panic!("no {word}: {ended:?}"));
    if number == "none" { 0 } else { number.parse().expect("a number") }
}

#[test]
fn a_receiver_that_stalls_loses_what_the_sender_says_and_is_not_cut_off() {
    let lab = SeriesLab::new();
    lab.simulated_detector(0);
    let go = lab.home.path().join("go");
    let shape = ["--shape", "1000 x 1000", "--compression", "none", "--rate", "100 Hz", "--frames", "100"];
    let (mut sender, at) = detector(&lab, &[&shape[..], &["--queue", "5"]].concat());
    let Some(receiver) = Receiver::start(&at, Some(&go)) else { return };
    sender.await_said("finds the queue full");
    std::fs::write(&go, "").expect("space");
    let found = receiver.found();
    let ended = sender.end(LIMIT);
    let [sent, dropped] = ["sent", "dropped"].map(|word| counted(&ended, word));
    assert_eq!((ended.code, sent + dropped), (Some(1), 100), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{dropped} of 100 images were dropped")), "{ended:?}");
    let came = images(&found);
    assert!(
        found["ended"] == true && came.is_sorted() && came.len() as u64 == sent && dropped > 0,
        "{found} {ended:?}"
    );
    assert!(!ended.stdout.contains("nobody was connected"), "{ended:?}");
}

#[test]
fn where_the_receiver_is_waited_for_nothing_is_lost() {
    let lab = SeriesLab::new();
    lab.simulated_detector(0);
    let go = lab.home.path().join("go");
    let shape = ["--shape", "1000 x 1000", "--compression", "none", "--rate", "500 Hz", "--frames", "100"];
    let (sender, at) = detector(&lab, &[&shape[..], &["--queue", "5", "--wait"]].concat());
    let Some(receiver) = Receiver::start(&at, Some(&go)) else { return };
    // All of it fits into no kernel, and no receiver takes it in this pace.
    std::fs::write(&go, "").expect("space");
    let found = receiver.found();
    let ended = sender.end(LIMIT);
    assert!(images(&found).into_iter().eq(0..100), "{found} {ended:?}");
    assert_eq!((counted(&ended, "sent"), counted(&ended, "dropped")), (100, 0), "{ended:?}");
}

const FAULTS: [&str; 8] =
    ["--loss", "10 %", "--reorder", "20 %", "--reorder-distance", "3", "--duplicate", "10 %"];

#[test]
fn faults_are_those_of_the_summary_and_the_same_again() {
    let lab = SeriesLab::new();
    lab.simulated_detector(0);
    let mut before = None;
    for version in ["2", "1"] {
        let options = ["--frames", "300", "--rate", "1 kHz", "--wait", "--stream-version", version];
        let (sender, at) = detector(&lab, &[&options[..], &FAULTS].concat());
        let Some(receiver) = Receiver::start(&at, None) else { return };
        let found = receiver.found();
        let ended = sender.end(LIMIT);
        let came = images(&found);
        let mut seen = BTreeSet::new();
        let first: Vec<_> = came.iter().copied().filter(|image| seen.insert(*image)).collect();
        let reordered = overtaken(&first);
        assert_eq!(counted(&ended, "lost"), 300 - seen.len() as u64, "{ended:?}");
        assert_eq!(counted(&ended, "sent"), seen.len() as u64, "{ended:?}");
        assert_eq!(counted(&ended, "duplicated"), (came.len() - first.len()) as u64, "{ended:?}");
        assert_eq!(counted(&ended, "reordered"), reordered, "{ended:?}");
        assert!(reordered > 0 && seen.len() < 300 && came.len() > first.len(), "{ended:?}");
        assert!(before.as_ref().is_none_or(|before| *before == came), "another order by the same seed");
        if version == "1" {
            assert_eq!(found["hashes"], came.len(), "{}", found["hashes"]);
            has_the_header_of_simplon(&found["start"]);
        }
        before = Some(came);
    }
}

/// How many came after one with a higher number.
fn overtaken(images: &[u64]) -> u64 {
    let mut above = 0;
    let mut count = 0;
    for image in images {
        count += u64::from(*image < above);
        above = above.max(*image);
    }
    count
}

/// Keys that receivers of others ask headers of version 1 for (SIMPLON API 1.8, `detector/config`).
fn has_the_header_of_simplon(start: &Value) {
    for key in [
        "auto_summation",
        "beam_center_x",
        "beam_center_y",
        "bit_depth_image",
        "bit_depth_readout",
        "compression",
        "count_time",
        "countrate_correction_applied",
        "data_collection_date",
        "description",
        "detector_distance",
        "detector_number",
        "flatfield_correction_applied",
        "frame_time",
        "nimages",
        "ntrigger",
        "number_of_excluded_pixels",
        "omega_increment",
        "omega_start",
        "photon_energy",
        "pixel_mask_applied",
        "sensor_material",
        "sensor_thickness",
        "software_version",
        "threshold_energy",
        "trigger_mode",
        "wavelength",
        "x_pixel_size",
        "x_pixels_in_detector",
        "y_pixel_size",
        "y_pixels_in_detector",
    ] {
        assert!(!start[key].is_null(), "{key} in {start}");
    }
    assert_eq!(
        (&start["nimages"], &start["x_pixels_in_detector"]),
        (&300.into(), &SIDES[1].into()),
        "{start}"
    );
    assert_eq!((&start["frame_time"], &start["bit_depth_image"]), (&0.001.into(), &16.into()), "{start}");
}

#[test]
fn what_the_sender_loses_is_blank_in_the_recording_and_second_copies_are_counted() {
    const IMAGES: u64 = 100;
    let lab = SeriesLab::new();
    let truth = lab.simulated_detector(IMAGES);
    let (sender, at) = detector(&lab, &[&["--frames", "100", "--wait"][..], &FAULTS].concat());
    let recorder = start(
        lab.home.path(),
        &["record", "--from", &at, "--to", "to", "--name", "scan", "--buffer", "64 MiB"],
    );
    let sent = sender.end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let ended = recorder.end(LIMIT);
    let [lost, twice] = ["lost", "duplicated"].map(|word| counted(&sent, word));
    assert!(lost > 0 && twice > 0, "{sent:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{lost} of {IMAGES} frames did not come")), "{ended:?}");
    assert!(ended.stdout.contains(&format!("{twice} duplicate")), "{ended:?}");
    let [rows, columns] = SIDES;
    let Some(found) = lab.found_beside(&truth, [IMAGES, rows, columns]) else { return };
    let blank = found.numbers("blank");
    assert_eq!((blank.len() as u64, found.numbers("wrong")), (lost, vec![]), "{found:?}");
    let flags = found.numbers("flags");
    let flagged: Vec<i64> = flags.iter().zip(0..).filter(|(flag, _)| **flag == 1).map(|(_, at)| at).collect();
    assert_eq!(blank, flagged, "{found:?}");
}

#[test]
fn images_while_nobody_is_connected_are_dropped_and_the_end_is_bounded() {
    let lab = SeriesLab::new();
    lab.simulated_detector(0);
    let (sender, at) = detector(&lab, &["--frames", "100", "--queue", "3"]);
    let port = at.rsplit_once(':').expect("a port").1;
    // It takes the start, and goes.
    let stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    takes(stream);
    let ended = sender.end(LIMIT);
    let [sent, dropped, given_up] = ["sent", "dropped", "not taken"].map(|word| counted(&ended, word));
    assert_eq!((ended.code, sent + dropped + given_up), (Some(1), 100), "{ended:?}");
    // The queue, one that nobody takes, and at most one that came back from the connection.
    assert!(
        (4..=5).contains(&given_up) && dropped > 0 && ended.stdout.contains("while nobody was connected"),
        "{ended:?}"
    );
}

/// Shakes hands as one that takes messages does, takes the first, and goes.
fn takes(mut stream: std::net::TcpStream) {
    use std::io::{Read, Write};
    stream.write_all(&nilometer_wire::zmtp::greeting()).expect("it is there");
    let pull = nilometer_wire::zmtp::ZmtpSocket::Pull;
    stream.write_all(&nilometer_wire::zmtp::ready(pull)).expect("it is there");
    let mut came = Vec::new();
    while !came.windows(5).any(|word| word == b"start") {
        let mut bytes = [0; 100];
        let length = stream.read(&mut bytes).expect("it sends");
        assert!(length > 0, "it ended");
        came.extend_from_slice(&bytes[..length]);
    }
}
