//! Series that become CBF files: fabio reads each image with its own angle, and the geometry that the detector stated.

use std::fs;

use nilometer_tests::{run, start};

use crate::series::{
    dectris::{AnnouncingDetector, script},
    lab::{LIMIT, SeriesLab},
};

#[test]
fn images_become_cbf_files_with_their_angles() {
    // Files of a counting detector, and of any in the layout of DECTRIS, are NXmx, which has the axes.
    for options in [&["eiger2-16m"][..], &["--layout", "dectris", "--frames-per-file", "4"]] {
        let lab = SeriesLab::new();
        let Some(mut detector) = AnnouncingDetector::new(10) else { return };
        let arguments =
            ["record", "--from", &detector.at, "--to", "to", "--name", "scan", "--buffer", "64 MiB"];
        let recorder = start(lab.home.path(), &[&arguments[..], options].concat());
        detector.send(10);
        detector.end();
        let ended = recorder.end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let pictures = lab.home.path().join("pictures");
        fs::create_dir(&pictures).expect("space");
        let recording = lab.recording();
        let export =
            ["export".as_ref(), recording.as_os_str(), "--format".as_ref(), "cbf".as_ref(), "--to".as_ref()];
        let exported = run(&[&export[..], &[pictures.as_os_str()]].concat());
        assert_eq!(exported.code, Some(0), "{exported:?}");
        assert!(exported.stdout.contains("omega from 90 degrees, 0.1 degrees a picture"), "{exported:?}");
        let mut command = script("pictures").expect("it sent the images");
        let output = command.arg(&pictures).arg("10").output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The files of an earlier export stay.
        let again = run(&[&export[..], &[pictures.as_os_str()]].concat());
        assert!(again.code == Some(1) && again.stderr.contains("scan_00001.cbf"), "{again:?}");
        assert_eq!(fs::read_dir(&pictures).expect("a directory").count(), 10);
    }
}

#[test]
fn an_export_into_cbf_files_that_can_not_be_is_refused() {
    let lab = SeriesLab::new();
    lab.simulated_detector(1);
    let arguments =
        ["simulate", "detector.toml", "--frames", "3", "--to", "to", "--name", "scan", "--format", "raw"];
    let ended = start(lab.home.path(), &[&arguments[..], &["--buffer", "64 MiB"]].concat()).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (options, said) in [
        (&["--to", "to"][..], "is not in HDF5"),
        (&["--to", "none"], "name a directory that exists"),
        (&["--to", "to", "--verify"], "--verify: not for --format cbf"),
        (&["--to", "to", "--journal"], "--journal: only for a file of HDF5"),
    ] {
        let arguments = [&["export", "to/scan", "--format", "cbf"][..], options].concat();
        let ended = start(lab.home.path(), &arguments).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{options:?}: {ended:?}");
    }
}
