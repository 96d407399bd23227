//! Frames that stand in a scan: h5py finds each at its place, in one file and in a file over several.

use crate::hdf5::lab::{Lab, assert_verified, found_in_scan};

#[test]
fn frames_stand_at_their_places_in_a_scan() {
    for (scan, frames, shape) in [
        ("5x6", "30", "[5,6,16,24]"),
        ("?x7", "28", "[4,7,16,24]"),
        ("2x3x4", "24", "[2,3,4,16,24]"),
        ("24", "24", "[24,16,24]"),
        // More than one page of HDF5's fixed array has.
        ("3000", "3000", "[3000,16,24]"),
        ("1", "1", "[1,16,24]"),
    ] {
        for more in [&[][..], &["--chunk", "7x10"]] {
            let rate = if frames.len() > 2 { "5 kHz" } else { "500 Hz" };
            let lab = Lab::new("16, 24", "uint16", rate, "");
            let frames_asked = ["--frames", frames];
            let arguments: Vec<_> = ["--scan", scan].into_iter().chain(more.iter().copied()).collect();
            let arguments =
                if scan.starts_with('?') { [&arguments, &frames_asked[..]].concat() } else { arguments };
            lab.record("bslz4", &arguments);
            let frames: u64 = frames.parse().expect("a number");
            assert_verified(&lab, frames);
            let dimensions = scan.split('x').count();
            let Some(found) = found_in_scan(&lab.truth(frames), dimensions, &lab.file()) else { return };
            assert_eq!(found.said("shape"), shape, "{scan}");
            let open = shape.replacen(|c: char| c.is_ascii_digit(), "null", 1);
            let most = if scan.starts_with('?') { &open } else { shape };
            assert_eq!(found.said("maxshape"), most, "{scan}");
            found.assert_whole(frames);
        }
    }
}

#[test]
fn a_file_over_several_has_the_whole_scan() {
    for (scan, per_file) in [("12x5", 20), ("6x2x5", 10)] {
        let lab =
            Lab::new("16, 24", "uint16", "500 Hz", &format!("recording.frames_per_file = {per_file}\n"));
        let to = ["a", "b"].map(|name| lab.made(name));
        let lab = lab.into(&[&to[0], &to[1]]);
        lab.record("bslz4", &["--scan", scan]);
        assert_verified(&lab, 60);
        let master = lab.lanes()[0].join("scan_master.h5");
        let Some(found) = found_in_scan(&lab.truth(60), scan.split('x').count(), &master) else { return };
        assert!(found.frames("right").into_iter().eq(0..60), "{scan}: {:?}", found.frames("wrong"));
        assert_eq!(found.said("shape"), format!("[{},16,24]", scan.replace('x', ",")));
        assert_eq!(found.column("flag"), vec![0; 60]);
    }
}

#[test]
fn files_have_whole_lines() {
    let lab = Lab::small("recording.frames_per_file = 32\n");
    let ended = lab.start("none", &["--scan", "?x5", "--frames", "20"]).end(crate::hdf5::lab::LIMIT);
    assert!(ended.code == Some(2) && ended.stderr.contains("write a multiple of 5"), "{ended:?}");
}
