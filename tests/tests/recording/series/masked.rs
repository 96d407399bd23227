//! A series whose start message has the mask of a detector of four megapixels. The journals have the mask too. A file
//! that lost its metadata therefore gets it back, and exports need no instrument.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
};

use nilometer_tests::{await_some, python, root, run, start};
use serde_json::Value;

use crate::series::lab::SeriesLab;

const MODULES: [&str; 5] = ["zmq", "cbor2", "numpy", "h5py", "hdf5plugin"];

fn script(command: &str) -> Option<Command> {
    let mut python = python(&MODULES)?;
    python.arg(root().join("tests/tests/recording/series/masked.py")).arg(command);
    Some(python)
}

fn is_whole(file: &Path) {
    let Some(mut command) = script("found") else { return };
    let output = command.arg(file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let wanted = serde_json::json!({"images": 2, "mask": true, "right": true});
    assert_eq!(found, wanted, "{}", file.display());
}

#[test]
fn a_mask_of_four_megapixels_is_in_the_journals() {
    let lab = SeriesLab::new();
    let Some(mut command) = script("send") else { return };
    command.arg("2").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut detector = command.spawn().expect("it can be run");
    let mut at = String::new();
    let said = detector.stdout.take().expect("it is piped");
    BufReader::new(said).read_line(&mut at).expect("it says its address");
    let arguments = ["record", "--from", at.trim(), "--to", "to", "--name", "scan", "--buffer", "128 MiB"];
    let recorder = start(lab.home.path(), &[&arguments[..], &["--reserve", "0 B"]].concat());
    await_some("two frames", || (lab.acknowledged() == [0, 1]).then_some(()));
    recorder.killed();
    detector.kill().expect("it runs");
    detector.wait().expect("it ends");
    let scan = lab.recording().join("scan.h5");
    let file = OpenOptions::new().write(true).open(&scan).expect("a file");
    file.write_all_at(&[0; 96], 0).expect("space");
    let repaired = run(&["repair".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    is_whole(&scan);
    let exported = lab.home.path().join("exported.h5");
    let arguments = ["--format", "hdf5", "--to"].map(AsRef::as_ref);
    let recording = lab.recording();
    let export = [&["export".as_ref(), recording.as_os_str()][..], &arguments, &[exported.as_os_str()]];
    let ended = run(&export.concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_whole(&exported);
}
