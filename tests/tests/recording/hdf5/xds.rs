//! The plug-ins of XDS, durin and neggia, as rules from their sources: paths, types, lengths of texts, chunks and filters of
//! the files that a recording leaves.

use std::path::Path;

use nilometer_tests::{python, root};
use serde_json::Value;

use crate::hdf5::lab::Lab;

const GEOMETRY: &str =
    "[cbf]\npixel_size = \"75 um\"\ndetector_distance = \"200 mm\"\nbeam_center = [48.0, 32.0]\n";
/// Two modules of 64 x 96 pixels, of 2 x 3 chips; the second is upside down.
const MODULES: &str =
    "[modules]\norigins = [[0, 0], [70, 0]]\nchip = [32, 32]\nchip_gap = 1\nupside_down = [1]\n";

/// The header that a plug-in would hand to XDS; `None` if Python is not here.
pub(crate) fn header(plug_in: &str, file: &Path) -> Option<Value> {
    let mut python = python(&["h5py", "hdf5plugin", "numpy"])?;
    python.arg(root().join("tests/tests/recording/hdf5/xds.py")).arg(plug_in).arg(file);
    let output = python.output().expect("it can be run");
    assert!(output.status.success(), "{plug_in}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Checks a header of 64 x 96 pixels of 16 bits, or of more rows and columns.
fn assert_header(header: &Value, [rows, columns]: [u64; 2], frames: usize) {
    assert_eq!((&header["rows"], &header["columns"]), (&rows.into(), &columns.into()), "{header}");
    assert_eq!((&header["bytes"], &header["frames"]), (&2.into(), &frames.into()), "{header}");
    assert_eq!(header["pixel"], serde_json::json!([75e-6, 75e-6]), "{header}");
    let sums: Vec<u64> = serde_json::from_value(header["sums"].clone()).expect("numbers");
    assert!(sums.len() == frames && sums.iter().all(|sum| *sum > 0), "{header}");
}

#[test]
fn durin_reads_files_of_every_layout() {
    for (compression, more) in [
        ("none", &[][..]),
        ("bslz4", &[][..]),
        ("bslz4", &["--layout", "dectris", "--frames-per-file", "10"][..]),
        ("none", &["--layout", "dectris", "--frames-per-file", "10"][..]),
    ] {
        let lab = Lab::small(GEOMETRY);
        lab.record(compression, &[&["--frames", "25"], more].concat());
        let file = if more.is_empty() { lab.file() } else { lab.lanes()[0].join("scan_master.h5") };
        let Some(header) = header("durin", &file) else { return };
        assert_header(&header, [64, 96], 25);
    }
}

#[test]
fn durin_reads_the_file_over_several() {
    let lab = Lab::small(GEOMETRY);
    lab.record("bslz4", &["--frames", "25", "--frames-per-file", "10"]);
    let home = &lab.lanes()[0];
    for (file, frames) in [("scan_master.h5", 25), ("scan.00000000.h5", 10), ("scan.00000002.h5", 5)] {
        let Some(header) = header("durin", &home.join(file)) else { return };
        assert_header(&header, [64, 96], frames);
    }
}

#[test]
fn durin_reads_modules_as_an_image_with_their_gaps() {
    let lab = Lab::new("2, 64, 96", "uint16", "500 Hz", &format!("{GEOMETRY}{MODULES}"));
    lab.record("bslz4", &["--frames", "12"]);
    let Some(header) = header("durin", &lab.file()) else { return };
    assert_header(&header, [135, 98], 12);
    assert_eq!(header["gaps"], 135 * 98 - 2 * 64 * 96);
}
