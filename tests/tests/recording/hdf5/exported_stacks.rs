//! Exports into files of HDF5 with other chunks than the recording has, several frames in one too: h5py reads every frame bit
//! for bit, and what is said of each.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{pairs, run};

use crate::hdf5::{
    COMPRESSIONS,
    exported::{PIXELS, assert_whole, export, exported, place_of, recorded},
    lab::{LIMIT, Lab, found, found_in, number, undamaged},
};

#[test]
fn several_frames_of_each_type_of_pixel_are_a_chunk() {
    let chunks = [("7x33x50", "[7,33,50]"), ("30x20x33", "[30,20,33]"), ("4x33x17", "[4,33,17]")];
    for (at, ((pixel, said), (chunk, sides))) in pairs(&PIXELS, &chunks).into_iter().enumerate() {
        let lab = Lab::new("33, 50", pixel, "500 Hz", "data = \"diffraction\"\n");
        recorded(&lab, &["--format", "raw"], 30);
        let (compression, filters) = COMPRESSIONS[at % COMPRESSIONS.len()];
        let more = ["--compression", compression, "--chunk", chunk, "--verify"];
        let file = exported(&lab, &format!("{chunk}.h5"), &more);
        let Some(found) = found_in(&lab.truth(30), &file) else { return };
        assert_whole(&found, 30, said);
        let here = ["chunk", "shape", "filters"].map(|what| found.said(what));
        assert_eq!(here, [sides, "[30,33,50]", filters], "{pixel}");
    }
}

#[test]
fn frames_of_any_dimension_are_put_together_with_each_compression() {
    let shapes = [
        ("50", "8x50"),
        ("50", "20x7"),
        ("3, 17, 41", "5x3x17x41"),
        ("3, 17, 41", "40x2x9x41"),
        ("1", "3x1"),
    ];
    for ((compression, filters), (shape, chunk)) in pairs(&COMPRESSIONS, &shapes) {
        let lab = Lab::new(shape, "uint16", "500 Hz", "");
        recorded(&lab, &["--format", "hdf5", "--compression", compression, "--checksums"], 40);
        let wishes = [("plain.h5", "none"), ("made.h5", compression)];
        let files = wishes.map(|(name, wished)| {
            (exported(&lab, name, &["--compression", wished, "--chunk", chunk, "--verify"]), 0)
        });
        let Some(all) = found(&lab.truth(40), &files) else { return };
        for (found, (_, wished)) in all.iter().zip(wishes) {
            found.assert_whole(40);
            assert_eq!(found.said("chunk"), format!("[{}]", chunk.replace('x', ",")), "{shape}");
            let there = if wished == "none" { "[]" } else { filters };
            assert_eq!(found.said("filters"), there, "{shape} {chunk}");
        }
    }
}

#[test]
fn the_chunks_of_a_recording_are_cut_anew() {
    for there in [&[][..], &["--chunk", "20x33"], &["--chunk", "33x17"]] {
        let lab = Lab::new("33, 50", "uint16", "500 Hz", "data = \"diffraction\"\n");
        recorded(&lab, &[&["--format", "hdf5", "--compression", "bslz4"], there].concat(), 40);
        let chunks = [("33x50", "[1,33,50]"), ("1x11x25", "[1,11,25]"), ("16x20x33", "[16,20,33]")];
        let files = chunks
            .map(|(chunk, _)| (exported(&lab, &format!("{chunk}.h5"), &["--chunk", chunk, "--verify"]), 0));
        let Some(all) = found(&lab.truth(40), &files) else { return };
        for (found, (_, sides)) in all.iter().zip(chunks) {
            found.assert_whole(40);
            // The compression is that of the recording.
            let here = ["chunk", "filters"].map(|what| found.said(what));
            assert_eq!(here, [sides, "[32008]"], "{there:?}");
        }
    }
}

#[test]
fn a_file_with_other_tiles_and_its_journal_are_a_recording() {
    let lab = Lab::new("33, 50", "uint16", "500 Hz", "data = \"diffraction\"\n");
    recorded(&lab, &["--format", "raw"], 30);
    let copy = lab.made("copy");
    let to = copy.join("made.h5");
    let more = ["--format", "hdf5", "--chunk", "20x33", "--compression", "bslz4", "--journal", "--verify"];
    let ended = export(&lab.lanes(), &to, &more);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let verified = run(&["verify".as_ref(), copy.as_os_str()]);
    assert!(verified.code == Some(0) && undamaged(&verified) == 30, "{verified:?}");
}

#[test]
fn frames_that_are_missing_or_damaged_are_blank_among_others_of_their_chunk() {
    let lab = Lab::small("data = \"diffraction\"\n");
    let (one, two) = (lab.made("one"), lab.made("two"));
    let lab = lab.into(&[&one, &two]);
    recorded(&lab, &["--format", "raw", "--storing", "files", "--checksums"], 60);
    let recording = Recording::open(&lab.lanes(), Trust::Acknowledged).expect("it is there");
    let places = recording.index.frames.iter().filter(|(_, place)| place.lane == 0);
    let mut there: Vec<u64> = places.map(|(number, _)| number).collect();
    let damaged = there.remove(there.len() / 2);
    let (path, offset) = place_of(&lab, damaged);
    let file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.write_all_at(&[0x5a; 100], offset + 5000).expect("it can be written");
    for (compression, chunk) in [("none", "8x64x96"), ("bslz4", "7x64x96"), ("bszstd", "16x40x50")] {
        for more in [&[][..], &["--verify"]] {
            let to = lab.home.path().join(format!("{compression}{}.h5", more.len()));
            let asked = ["--format", "hdf5", "--compression", compression, "--chunk", chunk];
            let ended = export(&lab.lanes()[..1], &to, &[&asked, more].concat());
            assert_eq!(ended.code, Some(if more.is_empty() { 1 } else { 5 }), "{ended:?}");
            assert!(ended.stdout.contains(&format!("damaged     frame {damaged}: ")), "{ended:?}");
            assert_eq!(number(&ended, "frames"), there.len() as u64, "{ended:?}");
            let Some(found) = found_in(&lab.truth(60), &to) else { return };
            assert_eq!((found.frames("right"), found.frames("wrong")), (there.clone(), Vec::new()));
            assert_eq!(found.frames("blank").len(), 60 - there.len());
            let flags = found.column("flag");
            let is_there = |frame: u64| there.contains(&frame);
            assert!((0..).zip(&flags).all(|(frame, flag)| *flag == i64::from(!is_there(frame))), "{flags:?}");
            let due = found.column("due");
            assert!((0..).zip(&due).all(|(frame, due)| is_there(frame) == (*due >= 0)), "{due:?}");
            let totals = ["frames_whole", "frames_blank"].map(|name| found.total(name));
            assert_eq!(totals, [Some(there.len() as u64), Some(60 - there.len() as u64)]);
        }
    }
}

#[test]
fn what_can_not_be_put_together_is_refused_before_anything_is_made() {
    let lab = Lab::small("data = \"diffraction\"\n");
    recorded(&lab, &["--format", "raw"], 20);
    let to = lab.home.path().join("new.h5");
    let refused: [(&[&str], &str); 9] = [
        (&["--chunk", "21x64x96"], "it has 20 frames, and a chunk at most as many: write --chunk 20x64x96"),
        (&["--chunk", "0x64x96"], "at least 1"),
        (&["--chunk", "8x65x96"], "larger than a frame: write at most 64x96"),
        (&["--chunk", "8"], "frames have 2 dimensions"),
        (&["--chunk", "2x8x64x96"], "frames have 2 dimensions"),
        (&["--chunk", "4000000000x64x96"], "less than 4 GiB"),
        (&["--chunk", "8x64x96", "--journal"], "--journal: a journal has a record of each frame"),
        (&["--chunk", "8x64x96", "--compression", "gzip"], "bslz4"),
        (&["--chunk", "frames"], "slowest dimension first"),
    ];
    for (more, why) in refused {
        let ended = export(&lab.lanes(), &to, &[&["--format", "hdf5"], more].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{why}: {ended:?}");
    }
    let ended = export(&lab.lanes(), &to, &["--chunk", "8x64x96"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--chunk: only for a file of HDF5"), "{ended:?}");
    let live = lab.start("none", &["--chunk", "8x64x96", "--name", "live"]).end(LIMIT);
    let said = "nilometer export --format hdf5 --chunk 8x64x96";
    assert!(live.code == Some(2) && live.stderr.contains(said), "{live:?}");
    let names: Vec<_> = fs::read_dir(lab.home.path()).expect("it is there").flatten().collect();
    assert!(!names.iter().any(|entry| entry.file_name().to_string_lossy().contains("new")), "{names:?}");
}

#[test]
fn frames_of_a_scan_are_not_put_together_and_may_be_cut() {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--scan", "4x5"]);
    let to = lab.home.path().join("new.h5");
    let ended = export(&lab.lanes(), &to, &["--format", "hdf5", "--chunk", "5x64x96"]);
    let why = "its frames form a scan with lines of 5";
    assert!(ended.code == Some(2) && ended.stderr.contains(why) && !to.exists(), "{ended:?}");
    let file = exported(&lab, "cut.h5", &["--chunk", "32x96", "--verify"]);
    let Some(found) = crate::hdf5::lab::found_in_scan(&lab.truth(20), 2, &file) else { return };
    found.assert_whole(20);
    assert_eq!((found.said("chunk"), found.said("shape")), ("[1,1,32,96]".into(), "[4,5,64,96]".into()));
    // Of one row of a fixed length frames are put together.
    let row = Lab::small("data = \"diffraction\"\n");
    row.record("bslz4", &["--scan", "20"]);
    let file = exported(&row, "row.h5", &["--chunk", "8x64x96", "--verify"]);
    let Some(found) = found_in(&row.truth(20), &file) else { return };
    found.assert_whole(20);
    assert_eq!((found.said("chunk"), found.said("maxshape")), ("[8,64,96]".into(), "[20,64,96]".into()));
}
