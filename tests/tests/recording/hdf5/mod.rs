//! Recordings in HDF5 from outside: h5py reads every frame bit for bit, while they are made, after a kill, from a disk that
//! filled up or errs; what is lost is blank and says so.

mod advised;
mod broken_objects;
mod chunked;
mod damaged;
mod disks;
mod edited_journals;
mod eiger;
mod exported;
mod exported_ended;
mod exported_packets;
mod exported_stacks;
mod followed;
mod hostile;
mod killed;
pub(crate) mod lab;
mod module_image;
mod packed12;
mod placed;
mod plugins;
mod repaired;
mod rewritten;
mod scanned;
mod without_journal;
pub(crate) mod xds;

use nilometer_tests::{pairs, run};

use crate::hdf5::lab::{Lab, assert_verified, found_in};

/// As `--compression` names them, and the filter of HDF5 that h5py must find.
const COMPRESSIONS: [(&str, &str); 5] =
    [("none", "[]"), ("bslz4", "[32008]"), ("bszstd", "[32008]"), ("lz4", "[32004]"), ("zstd", "[32015]")];

/// As instruments name them, and `NumPy`.
const PIXELS: [(&str, &str); 4] = [("uint8", "|u1"), ("uint16", "<u2"), ("uint32", "<u4"), ("int32", "<i4")];

/// Frames of a recording that ended in order: h5py reads those that a raw recording of the same seed has.
fn is_read_as_raw_frames_are(lab: &Lab, compression: &str, said: [&str; 3]) {
    const FRAMES: u64 = 40;
    let frames = FRAMES.to_string();
    let ended = lab.record(compression, &["--frames", &frames]);
    assert!(ended.stdout.contains(&format!("stored      {frames} frames")), "{ended:?}");
    assert_verified(lab, FRAMES);
    let scan = lab.about("scan");
    assert!(scan.code == Some(0) && scan.stdout.contains("recording   scan, hdf5\n"), "{scan:?}");
    let raw = lab.simulate(&["--format", "raw"], &["--frames", &frames, "--name", "raw"]).end(lab::LIMIT);
    assert_eq!(raw.code, Some(0), "{raw:?}");
    let truth = lab.home.path().join("exported.raw");
    let exported =
        run(&["export".as_ref(), lab.to[0].join("raw").as_os_str(), "--to".as_ref(), truth.as_os_str()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let Some(found) = found_in(&truth, &lab.file()) else { return };
    found.assert_whole(FRAMES);
    assert_eq!(["shape", "type", "filters"].map(|what| found.said(what)), said);
    let [due, arrived, encoded, durable] =
        ["due", "arrived", "encoded", "durable"].map(|name| found.column(name));
    for frame in 0..FRAMES as usize {
        let compressed = if compression == "none" { arrived[frame] } else { encoded[frame] };
        let moments = [due[frame], arrived[frame], compressed, durable[frame]];
        assert!(due[frame] >= 0 && moments.is_sorted(), "{compression}: frame {frame}: {moments:?}");
        assert!(frame == 0 || due[frame] > due[frame - 1], "{compression}: {due:?}");
    }
    assert!(compression != "none" || encoded.iter().all(|moment| *moment == -1), "{encoded:?}");
    assert!(found.column("missing").iter().all(|missing| *missing == 0));
}

#[test]
fn h5py_reads_each_type_of_pixel_with_each_filter() {
    for ((compression, filters), (pixel, kind)) in pairs(&COMPRESSIONS, &PIXELS) {
        let lab = Lab::new("200, 300", pixel, "500 Hz", "");
        let kind = format!("\"{kind}\"");
        is_read_as_raw_frames_are(&lab, compression, ["[40,200,300]", &kind, filters]);
    }
}

#[test]
fn h5py_reads_frames_of_any_shape() {
    let shapes = [("1", "[40,1]"), ("7", "[40,7]"), ("13, 31", "[40,13,31]"), ("3, 17, 41", "[40,3,17,41]")];
    for ((compression, filters), (shape, said)) in pairs(&COMPRESSIONS, &shapes) {
        let lab = Lab::new(shape, "uint16", "500 Hz", "");
        is_read_as_raw_frames_are(&lab, compression, [said, "\"<u2\"", filters]);
    }
}

#[test]
fn h5py_reads_counted_photons() {
    let lab = Lab::new("128, 257", "uint32", "500 Hz", "data = \"diffraction\"\n");
    for compression in ["none", "bslz4"] {
        let filters = if compression == "none" { "[]" } else { "[32008]" };
        is_read_as_raw_frames_are(&lab, compression, ["[40,128,257]", "\"<u4\"", filters]);
        for name in ["scan", "raw"] {
            std::fs::remove_dir_all(lab.to[0].join(name)).expect("it is ours");
        }
        std::fs::remove_file(lab.home.path().join("exported.raw")).expect("it is ours");
    }
}
