//! Modules of a detector that sends each by itself: h5py sees one image with gaps, a mask of them, and the place of each
//! module by NXmx. That holds while the recording grows, over several files, after a repair, and for packets.

use std::{fs, fs::OpenOptions, os::unix::fs::FileExt, path::Path};

use nilometer_tests::{await_some, free_ports, python, root, run, start};
use rustix::process::Signal;
use serde_json::Value;

use crate::hdf5::lab::{LIMIT, Lab, assert_verified};

/// Four modules of 64 x 96 pixels, of 2 x 3 chips, one column apart. The last ones are shifted.
const MODULES: &str = "\
    [cbf]\npixel_size = \"75 um\"\ndetector_distance = \"200 mm\"\nbeam_center = [100.0, 70.0]\n\
    [modules]\norigins = [[0, 0], [0, 100], [70, 4], [70, 104]]\nchip = [32, 32]\nchip_gap = 1\n";
/// Rows and columns of the image that they make up.
const IMAGE: [u64; 2] = [135, 202];
const CHIP: [u64; 2] = [32, 32];

fn lab(rate: &str) -> Lab {
    Lab::new("4, 64, 96", "uint16", rate, MODULES)
}

/// The findings of h5py in a file; `None` if Python is not here.
fn found(path: &Path, chip: [u64; 2]) -> Option<Value> {
    found_turned(path, chip, &[])
}

/// The same, if these modules are upside down.
pub(super) fn found_turned(path: &Path, chip: [u64; 2], upside_down: &[u64]) -> Option<Value> {
    let mut python = python(&["h5py", "hdf5plugin", "numpy"])?;
    python.arg(root().join("tests/tests/recording/hdf5/module_image.py")).arg(path);
    python.args(chip.iter().chain(upside_down).map(ToString::to_string));
    let output = python.output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Checks that a file has this number of frames as images.
fn has_images(path: &Path, frames: u64) {
    has_images_of(path, &(0..frames).collect::<Vec<_>>());
}

/// Checks that a file has these frames as images.
fn has_images_of(path: &Path, numbers: &[u64]) {
    let Some(found) = found(path, CHIP) else { return };
    let [rows, columns] = IMAGE;
    let frames = numbers.last().map_or(0, |last| last + 1);
    assert_eq!(found["definition"], "NXmx");
    assert_eq!(found["shape"], serde_json::json!([frames, rows, columns]));
    let right = found["right"].as_array().expect("a list");
    let is_right = |number: &u64| right.contains(&(*number).into());
    assert!(numbers.iter().all(is_right), "{found}");
    assert_eq!(found["gaps"], rows * columns - 4 * 64 * 96);
    assert_eq!((&found["signal"], &found["whole"]), (&"data".into(), &serde_json::json!(IMAGE)));
    assert_eq!(found["linked"], true);
    for place in found["offsets"].as_array().expect("a list") {
        let by_chain: Vec<f64> = serde_json::from_value(place[0].clone()).expect("numbers");
        let by_origin: Vec<f64> = serde_json::from_value(place[1].clone()).expect("numbers");
        assert_eq!(by_chain, by_origin, "{found}");
    }
}

#[test]
fn modules_are_one_image_with_gaps_and_a_mask() {
    for (compression, chunk) in
        [("none", &[][..]), ("bslz4", &[][..]), ("bszstd", &["--chunk", "1x64x96"][..])]
    {
        let lab = lab("500 Hz");
        lab.record(compression, &[&["--frames", "12"], chunk].concat());
        has_images(&lab.file(), 12);
        assert_verified(&lab, 12);
        let alone = run(&["verify".as_ref(), lab.file().as_os_str()]);
        assert_eq!(alone.code, Some(0), "{alone:?}");
    }
}

#[test]
fn modules_that_are_upside_down_are_turned() {
    let turned = format!("{MODULES}upside_down = [1, 2, 3]\n");
    let lab = Lab::new("4, 64, 96", "uint16", "500 Hz", &turned);
    lab.record("bslz4", &["--frames", "12", "--chunk", "1x64x96"]);
    let home = &lab.lanes()[0];
    let Some(found) = found_turned(&lab.file(), CHIP, &[1, 2, 3]) else { return };
    assert_eq!(found["right"], serde_json::json!((0..12).collect::<Vec<_>>()), "{found}");
    let file = OpenOptions::new().write(true).open(lab.file()).expect("a file");
    file.write_all_at(&[0; 96], 0).expect("space");
    let repaired = lab.about("repair");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let again = found_turned(&home.join("scan.h5"), CHIP, &[1, 2, 3]);
    assert_eq!(again, Some(found), "as before the damage");
}

#[test]
fn the_master_file_of_several_has_all_images() {
    let lab = lab("500 Hz");
    lab.record("bslz4", &["--frames", "25", "--frames-per-file", "10"]);
    let home = &lab.lanes()[0];
    has_images(&home.join("scan_master.h5"), 25);
    has_images(&home.join("scan.00000001.h5"), 10);
    let lab = self::lab("500 Hz");
    lab.record("bslz4", &["--frames", "25", "--layout", "dectris", "--frames-per-file", "10"]);
    let home = &lab.lanes()[0];
    has_images(&home.join("scan_master.h5"), 25);
    has_images(&home.join("scan_data_000003.h5"), 5);
}

#[test]
fn images_are_there_while_the_file_grows_and_after_a_kill_and_a_repair() {
    let lab = lab("200 Hz");
    let recorder = lab.start("none", &["--duration", "10 min"]);
    await_some("frames", || (lab.acknowledged().len() >= 20).then_some(()));
    let seen = await_some("a file that opens", || {
        // A file that grows between two looks of the library is refused: try again.
        let mut python = python(&["h5py"])?;
        python.args([
            "-c",
            "import h5py, sys; f = h5py.File(sys.argv[1], swmr=True); print(f['entry/data/data'].shape)",
        ]);
        let output = python.arg(lab.file()).output().expect("it can be run");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    assert!(seen.trim().ends_with("135, 202)") && !seen.starts_with("(0,"), "{seen}");
    recorder.killed();
    let file = OpenOptions::new().write(true).open(lab.file()).expect("a file");
    file.write_all_at(&[0; 96], 0).expect("space");
    let repaired = lab.about("repair");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    // On a busy machine the buffer may have been full for a frame, whose place stays empty.
    has_images_of(&lab.file(), &lab.acknowledged());
}

#[test]
fn exports_have_the_image_too() {
    let lab = lab("500 Hz");
    lab.record("bslz4", &["--frames", "9"]);
    let to = lab.home.path().join("exported.h5");
    let recording = lab.lanes()[0].clone();
    let arguments = ["--format", "hdf5", "--verify", "--to"].map(AsRef::as_ref);
    let exported =
        run(&[&["export".as_ref(), recording.as_os_str()][..], &arguments, &[to.as_os_str()]].concat());
    assert_eq!(exported.code, Some(0), "{exported:?}");
    has_images(&to, 9);
    let again = lab.home.path().join("again.h5");
    let arguments = ["--format", "hdf5", "--chunk", "3x64x96", "--verify", "--to"].map(AsRef::as_ref);
    let exported =
        run(&[&["export".as_ref(), to.as_os_str()][..], &arguments, &[again.as_os_str()]].concat());
    assert_eq!(exported.code, Some(0), "{exported:?}");
    has_images(&again, 9);
}

#[test]
fn modules_of_a_jungfrau_by_packets_are_an_image() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let port = free_ports(2);
    let text = format!(
        "name = \"jf\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [2, 512, 1024]\npixel = \"uint16\"\n\
         frame_rate = \"20 Hz\"\npackets = {{ port = {port}, format = {{ jungfrau = {{ modules = 2 }} }} }}\n\
         [cbf]\npixel_size = \"75 um\"\n\
         [modules]\norigins = [[0, 0], [550, 0]]\nchip = [256, 256]\nchip_gap = 2\n"
    );
    fs::write(home.path().join("jf.toml"), text).expect("space");
    fs::create_dir(home.path().join("to")).expect("space");
    let record =
        ["record", "jf.toml", "--to", "to", "--name", "scan", "--format", "hdf5", "--reserve", "0 B"];
    let mut recording = start(home.path(), &[&record[..], &["--buffer", "64 MiB"]].concat());
    recording.await_said("recording scan");
    let to = format!("udp://127.0.0.1:{port}");
    let sent = start(home.path(), &["simulate", "jf.toml", "--to", &to, "--frames", "10"]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    recording.signal(Signal::TERM);
    let recorded = recording.end(LIMIT);
    let Some(found) = found(&home.path().join("to/scan/scan.h5"), [256, 256]) else { return };
    let frames = found["flags"].as_array().expect("a list").len() as u64;
    assert_eq!(found["shape"], serde_json::json!([frames, 1064, 1030]), "{recorded:?}");
    assert_eq!(found["right"].as_array().expect("a list").len() as u64, frames, "{found} of {recorded:?}");
    assert_eq!(found["gaps"], 1064 * 1030 - 2 * 512 * 1024);
}
