//! Filters of plug-ins of HDF5, by their numbers: those that the package hdf5plugin brings. h5py reads what they make bit for
//! bit, and so does the program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use nilometer_tests::{Ended, nilometer};

use crate::hdf5::lab::{Found, Lab, found_in, h5py};

/// Where the package has its plug-ins; none if it is not there, which skips the test.
fn plugins() -> Option<PathBuf> {
    let mut python = h5py("plugins")?;
    let output = python.output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim()))
}

/// The program with plug-ins in this directory.
fn with_plugins(directory: &Path, lab: &Lab, arguments: &[&str]) -> Ended {
    let mut command = Command::new(nilometer());
    command.current_dir(lab.home.path()).env("HDF5_PLUGIN_PATH", directory).args(arguments);
    let output = command.output().expect("it can be run");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Simulates so many frames with a compression.
fn recorded(directory: &Path, lab: &Lab, compression: &str, name: &str) -> Ended {
    let to = lab.to[0].to_str().expect("a plain path");
    let arguments = [
        "simulate",
        "detector.toml",
        "--seed",
        "4711",
        "--name",
        name,
        "--reserve",
        "0 B",
        "--buffer",
        "64 MiB",
        "--format",
        "hdf5",
        "--compression",
        compression,
        "--frames",
        "25",
        "--to",
        to,
    ];
    with_plugins(directory, lab, &arguments)
}

/// Name, as it is written, and the number that h5py finds. Without loss, all of them.
const FILTERS: [(&str, &str, &str); 7] = [
    ("blosc", "filter:32001,0,0,0,0,5,1,1", "[32001]"),
    ("blosc2", "filter:32026,0,0,0,0,5,1,5", "[32026]"),
    ("bitshuffle", "filter:32008,0,2", "[32008]"),
    ("lz4", "filter:32004,0", "[32004]"),
    ("zstd", "filter:32015,3", "[32015]"),
    ("bzip2", "filter:307,9", "[307]"),
    ("zfp", "filter:32013,5", "[32013]"),
];

#[test]
fn h5py_reads_what_plug_ins_make_of_each_type_of_pixel() {
    let Some(directory) = plugins() else { return };
    for (pixel, kind) in [("uint16", "<u2"), ("int32", "<i4"), ("float32", "<f4"), ("uint8", "|u1")] {
        // What a filter makes no smaller is stored as it is.
        let lab = Lab::new("70, 90", pixel, "500 Hz", "data = \"diffraction\"\n");
        let truth = lab.truth(25);
        for (name, compression, filters) in FILTERS {
            // ZFP has no 8 and 16 bits.
            if name == "zfp" && !matches!(pixel, "int32" | "float32") {
                continue;
            }
            let ended = recorded(&directory, &lab, compression, name);
            assert_eq!(ended.code, Some(0), "{name} {pixel}: {ended:?}");
            let recording = lab.to[0].join(name);
            let recording_text = recording.to_str().expect("a plain path");
            let verified = with_plugins(&directory, &lab, &["verify", recording_text]);
            assert_eq!(verified.code, Some(0), "{name} {pixel}: {verified:?}");
            let back = lab.home.path().join("back.raw");
            let exported = with_plugins(
                &directory,
                &lab,
                &["export", recording_text, "--to", back.to_str().expect("a plain path")],
            );
            assert_eq!(exported.code, Some(0), "{name} {pixel}: {exported:?}");
            assert!(
                fs::read(&back).expect("it is there") == fs::read(&truth).expect("it is there"),
                "{name} {pixel}"
            );
            fs::remove_file(&back).expect("it is there");
            let Some(found) = found_in(&truth, &recording.join(format!("{name}.h5"))) else { return };
            assert_frames(&found, name, kind, filters);
        }
    }
}

fn assert_frames(found: &Found, name: &str, kind: &str, filters: &str) {
    found.assert_whole(25);
    assert_eq!(found.said("type"), format!("\"{kind}\""), "{name}");
    assert_eq!(found.said("filters"), filters, "{name}");
}

#[test]
fn one_filter_is_exchanged_for_another() {
    let Some(directory) = plugins() else { return };
    let lab = Lab::small("data = \"diffraction\"\n");
    let ended = recorded(&directory, &lab, "filter:32001,0,0,0,0,5,1,1", "scan");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let truth = lab.truth(25);
    let from = lab.lanes()[0].clone();
    let from = from.to_str().expect("a plain path");
    let cases: [(&str, &[&str], &str); 5] = [
        ("stacks.h5", &["--chunk", "8x64x96", "--compression", "filter:32001,0,0,0,0,5,1,1"], "[32001]"),
        ("same.h5", &[], "[32001]"),
        ("other.h5", &["--compression", "filter:32026,0,0,0,0,5,1,5"], "[32026]"),
        ("ours.h5", &["--compression", "bslz4"], "[32008]"),
        ("plain.h5", &["--compression", "none"], "[]"),
    ];
    for (file, more, filters) in cases {
        let to = lab.home.path().join(file);
        let to_text = to.to_str().expect("a plain path");
        let arguments = [&["export", from, "--format", "hdf5", "--verify", "--to", to_text], more].concat();
        let exported = with_plugins(&directory, &lab, &arguments);
        assert_eq!(exported.code, Some(0), "{file}: {exported:?}");
        let Some(found) = found_in(&truth, &to) else { return };
        assert_frames(&found, file, "<u2", filters);
    }
    for (more, why) in [
        (&["--chunk", "8x64x96"][..], "fits chunks of one frame: add --compression"),
        (&["--chunk", "8x32x96", "--compression", "filter:307,9"], "which makes chunks of whole frames"),
    ] {
        let to = lab.home.path().join("new.h5");
        let to = to.to_str().expect("a plain path");
        let arguments = [&["export", from, "--format", "hdf5", "--to", to], more].concat();
        let refused = with_plugins(&directory, &lab, &arguments);
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{why}: {refused:?}");
    }
}

#[test]
fn a_filter_that_is_not_there_is_refused_and_those_that_are_there_are_named() {
    let Some(directory) = plugins() else { return };
    let lab = Lab::small("data = \"diffraction\"\n");
    let place = directory.display().to_string();
    let ended = recorded(&directory, &lab, "filter:32099,1", "scan");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in ["no plug-in has filter 32099", "32001 (", "32008 (", &place, "HDF5_PLUGIN_PATH"] {
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
    }
    let nowhere = lab.made("nothing");
    let ended = recorded(&nowhere, &lab, "filter:32001", "scan");
    let said = format!("found none in {}", nowhere.display());
    assert!(ended.code == Some(2) && ended.stderr.contains(&said), "{ended:?}");
    let ended = recorded(&nowhere, &lab, "filter:1,6", "scan");
    assert!(ended.code == Some(2) && ended.stderr.contains("built into HDF5"), "{ended:?}");
    assert!(!lab.lanes()[0].exists(), "nothing is made");
    // A recording whose plug-in is gone can't be read, and says so.
    let ended = recorded(&directory, &lab, "filter:32015,3", "scan");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let scan = lab.lanes()[0].to_str().expect("a plain path").to_owned();
    let verified = with_plugins(&nowhere, &lab, &["verify", &scan]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains("no plug-in has filter 32015"), "{verified:?}");
}

#[test]
fn plug_ins_are_measured_beside_what_is_built_in() {
    let Some(directory) = plugins() else { return };
    let lab = Lab::small("data = \"diffraction\"\n");
    let filter = "filter:32001,0,0,0,0,5,1,1";
    let arguments = ["advise", "compression", "detector.toml", "--time", "10 ms", "--filter", filter];
    let ended = with_plugins(&directory, &lab, &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.lines().any(|line| line.starts_with("filter:32001,")), "{ended:?}");
}
