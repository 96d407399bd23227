//! Images of version 1 with an MD5: the recorder keeps an image that differs from it, and does not call it whole.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use nilometer_tests::{python, root, start};
use serde_json::{Value, json};

use crate::series::lab::{LIMIT, SeriesLab};

fn script(command: &str) -> Option<Command> {
    let mut python = python(&["zmq", "numpy", "h5py", "hdf5plugin"])?;
    python.arg(root().join("tests/tests/recording/series/hashed.py")).arg(command);
    Some(python)
}

/// Records images with this encoding, some of which have a wrong hash. The recorder stores them in `compression`.
fn are_compared(encoding: &str, compression: &str) {
    let lab = SeriesLab::new();
    let Some(mut command) = script("send") else { return };
    command.arg(encoding).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut detector = command.spawn().expect("it can be run");
    let mut at = String::new();
    let said = detector.stdout.take().expect("it is piped");
    BufReader::new(said).read_line(&mut at).expect("it says its address");
    let arguments = ["record", "--from", at.trim(), "--to", "to", "--name", "scan", "--buffer", "64 MiB"];
    let more = ["--reserve", "0 B", "--compression", compression];
    let ended = start(lab.home.path(), &[&arguments[..], &more].concat()).end(LIMIT);
    drop(detector.stdin.take());
    detector.wait().expect("it ends");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("damaged     2 frames differ from the MD5"), "{ended:?}");
    assert!(ended.stderr.contains("2 frames differ from the MD5"), "{ended:?}");
    assert!(ended.stdout.contains("unread      1 values"), "a hash that is none is counted: {ended:?}");
    let Some(mut command) = script("found") else { return };
    let output = command.arg(lab.recording().join("scan.h5")).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["flags"], json!([0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0]), "{ended:?}");
    assert_eq!(found["right"], json!((0..12).collect::<Vec<_>>()));
    let applied = json!({
        "countrate_correction_applied": true, "flatfield_applied": true, "pixel_mask_applied": false
    });
    assert_eq!(found["applied"], applied);
}

#[test]
fn images_that_differ_from_their_hash_are_kept_and_not_called_whole() {
    are_compared("bs16-lz4<", "bslz4");
}

#[test]
fn the_hash_of_images_that_are_packed_otherwise_is_compared_too() {
    are_compared("<", "bslz4");
    are_compared("bs16-lz4<", "bszstd");
}
