//! The sample files of the package baseband, which others recorded.

use std::{fs, path::PathBuf, process::Command};

use nilometer_tests::python;

use super::{Station, about, json, text};

/// The directory of the samples. `None` if the package is not here.
fn samples() -> Option<PathBuf> {
    let print = "import pathlib, baseband.data; print(pathlib.Path(baseband.data.__file__).parent)";
    let python: &mut Command = &mut python(&["baseband"])?;
    let output = python.args(["-c", print]).output().expect("it can be run");
    Some(String::from_utf8(output.stdout).expect("a path").trim().into())
}

#[test]
fn every_sample_of_vdif_and_mark5b_is_read() {
    let Some(directory) = samples() else { return };
    let station = Station::new();
    // Format, bytes of a frame and threads, as baseband reads them in the headers.
    for (name, format, frame, threads) in [
        ("sample.vdif", "vdif", 5032, 8),
        ("sample_vlbi.vdif", "vdif", 5032, 8),
        ("sample_arochime.vdif", "vdif", 1056, 2),
        ("sample_bps1.vdif", "vdif", 8032, 1),
        ("sample_mwa.vdif", "vdif", 544, 1),
        ("sample_drao_corrupted.vdif", "vdif", 5032, 7),
        ("sample.m5b", "m5b", 10_016, 1),
    ] {
        let path = directory.join(name);
        let scanned = json("scan", std::slice::from_ref(&path), &["--all"]);
        assert_eq!(
            (&scanned["format"], &scanned["frame_bytes"]),
            (&format.into(), &frame.into()),
            "{name} {scanned}"
        );
        assert_eq!(scanned["threads"].as_array().map(Vec::len), Some(threads), "{name} {scanned}");
        let bytes = fs::read(&path).expect("a sample");
        let copy = station.path("copy");
        let exported = about("export", &[&path], &["--to", text(&copy)]);
        assert_eq!(exported.code, Some(0), "{name} {exported:?}");
        assert!(fs::read(&copy).expect("it was written") == bytes, "{name}");
        fs::remove_file(copy).expect("it is ours");
    }
    let whole = about("verify", &[directory.join("sample.vdif")], &[]);
    assert!(whole.code == Some(0) && whole.stdout.contains("gaps by numbering: none"), "{whole:?}");
}
