//! h5py reads a column of texts with `swmr=True` while it grows: each is that of its frame, also one that comes long after it.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdout, Stdio},
};

use nilometer_tests::{await_some, python, root};
use rustix::process::Signal;

use crate::layout::lab::{LIMIT, LayoutLab, free_address};

/// More than are recorded before the end: it is interrupted when the reader has found enough texts.
const FRAMES: u64 = 20_000;
/// So many texts of every other frame are right before those of the frames between them are said.
const LATE: u64 = 400;
/// So many are right before it is interrupted: several chunks of a column.
const ENOUGH: u64 = 2000;

/// What is said of a frame: as the reader expects it.
fn said(frame: u64) -> String {
    if frame.is_multiple_of(100) { "ä".repeat(128) } else { format!("Probe {frame} äöü €") }
}

fn lines(frames: impl Iterator<Item = u64>) -> String {
    let line = |frame| format!("{{\"frame\": {frame}, \"Sample\": \"{}\"}}\n", said(frame));
    frames.map(line).collect::<Vec<_>>().concat()
}

/// Begins to read the texts of a recording; nothing without h5py.
fn reader_of(lab: &LayoutLab) -> Option<Child> {
    let mut python = python(&["h5py", "hdf5plugin"])?;
    python.arg(root().join("tests/tests/recording/layout/follow_texts.py")).arg(lab.file());
    python.arg("/entry/instrument/NDAttributes/Sample").arg(lab.home.path().join("over"));
    let complaints = File::create(lab.home.path().join("complaints")).expect("space");
    Some(python.stdout(Stdio::piped()).stderr(complaints).spawn().expect("it starts"))
}

/// What the reader says while texts come: how many were right, until it has found so many.
fn await_texts(says: &mut Lines<BufReader<ChildStdout>>, enough: u64, complaints: &Path) {
    let found = says.by_ref().find(|line| {
        let right: u64 = line.as_ref().expect("text").parse().expect("a number");
        right >= enough
    });
    assert!(found.is_some(), "{}", fs::read_to_string(complaints).unwrap_or_default());
}

#[test]
fn texts_are_right_whenever_a_reader_looks_while_they_come() {
    if python(&["h5py", "hdf5plugin"]).is_none() {
        return;
    }
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    let samples = lab.home.path().join("samples.jsonl");
    fs::write(&samples, lines((0..FRAMES).step_by(2))).expect("space");
    let at = free_address();
    let detector = lab.send(&at, FRAMES);
    let recorder = lab.record_from(&at, &["--metadata", "samples.jsonl"]);
    await_some("the file", || fs::metadata(lab.file()).is_ok_and(|file| file.len() > 0).then_some(()));
    let mut reader = reader_of(&lab).expect("it was there");
    let complaints = lab.home.path().join("complaints");
    let mut says = BufReader::new(reader.stdout.take().expect("it is piped")).lines();
    await_texts(&mut says, LATE, &complaints);
    let mut file = fs::OpenOptions::new().append(true).open(&samples).expect("it is there");
    file.write_all(lines((1..FRAMES).step_by(2)).as_bytes()).expect("space");
    await_texts(&mut says, ENOUGH, &complaints);
    recorder.signal(Signal::INT);
    let ended = recorder.end(LIMIT);
    // Nobody takes the rest of what it has.
    detector.signal(Signal::INT);
    drop(detector.end(LIMIT));
    assert_eq!(ended.code, Some(0), "a series that is ended early is one: {ended:?}");
    let there = lab.acknowledged();
    lab.write("over", "");
    let last = says.find_map(|line| Some(line.expect("text").strip_prefix("end ")?.to_owned()));
    let status = reader.wait().expect("a child of ours");
    let complaints = fs::read_to_string(complaints).unwrap_or_default();
    assert!(status.success(), "{complaints}");
    let without: Vec<u64> = serde_json::from_str(&last.expect("it says so")).expect("numbers");
    assert!(there >= ENOUGH, "{there}");
    assert!(without.iter().all(|frame| *frame >= there), "of {there} frames {without:?} have no text");
}
