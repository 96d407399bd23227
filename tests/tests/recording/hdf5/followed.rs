//! h5py reads a file with `swmr=True` while it grows, and each frame is right when it comes.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{ChildStdout, Stdio},
};

use nilometer_tests::{Ended, Running};
use rustix::process::Signal;

use crate::hdf5::lab::{LIMIT, Lab, h5py, number};

/// More than are recorded before the end: it is interrupted when the reader has found more so often.
const FRAMES: u64 = 20_000;
const ENOUGH: usize = 200;

/// What a reader found until it was told that the recording is over.
struct Followed {
    ended: Ended,
    /// Frames that were right when they came.
    right: u64,
    /// What the recorder says of each frame.
    flags: Vec<u64>,
}

/// Interrupts the recording when a reader that says this has found more often enough. None if the reader gives up before.
fn followed(lab: &Lab, running: Running, says: ChildStdout) -> Option<Followed> {
    let mut right = 0;
    let mut running = Some(running);
    let mut ended = None;
    for (looks, line) in BufReader::new(says).lines().enumerate() {
        let line = line.expect("text");
        if let Some(flags) = line.strip_prefix("end ") {
            let flags = serde_json::from_str(flags).expect("numbers");
            return Some(Followed { ended: ended?, right, flags });
        }
        right = line.parse().expect("a number");
        if let Some(running) = running.take_if(|_| looks >= ENOUGH) {
            running.signal(Signal::INT);
            ended = Some(running.end(LIMIT));
            fs::write(over(lab), "").expect("space");
        }
    }
    None
}

/// When this is there the recording is over.
fn over(lab: &Lab) -> PathBuf {
    lab.home.path().join("over")
}

fn a_reader_gets_no_wrong_frame(compression: &str) {
    let lab = Lab::new("32, 64", "uint16", "100 Hz", "");
    let truth = lab.truth(FRAMES);
    let Some(mut follow) = h5py("follow") else { return };
    let running = lab.start(compression, &["--frames", &FRAMES.to_string()]);
    lab.await_file("scan.h5");
    let complaints = lab.home.path().join("complaints");
    follow.args([&truth, &lab.file(), &over(&lab)]).stdout(Stdio::piped());
    let mut reader = follow.stderr(File::create(&complaints).expect("space")).spawn().expect("it starts");
    let found = followed(&lab, running, reader.stdout.take().expect("it is piped"));
    let status = reader.wait().expect("a child of ours");
    let complaints = fs::read_to_string(complaints).unwrap_or_default();
    let Followed { ended, right, flags } = found.unwrap_or_else(|| panic!("{compression}: {complaints}"));
    assert!(status.success() && ended.stderr.contains("interrupted"), "{complaints}: {ended:?}");
    assert_eq!(right, number(&ended, "stored"), "{compression}: {ended:?}");
    assert_eq!(flags.iter().filter(|flag| **flag == 0).count() as u64, right, "{compression}: {flags:?}");
}

#[test]
fn a_reader_of_a_file_that_grows_gets_no_wrong_frame() {
    a_reader_gets_no_wrong_frame("none");
}

#[test]
fn a_reader_of_a_file_of_compressed_frames_that_grows_gets_no_wrong_frame() {
    a_reader_gets_no_wrong_frame("bslz4");
}
