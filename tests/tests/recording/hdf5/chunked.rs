//! Frames in tiles, each a chunk of its own: h5py reads every frame bit for bit, and what else knows recordings does too.

use std::{fs, os::unix::fs::FileExt, time::Duration};

use nilometer_model::Seed;
use nilometer_tests::run;
use rustix::process::{Signal, kill_process};

use crate::hdf5::{
    COMPRESSIONS,
    lab::{LIMIT, Lab, assert_verified, found_in, undamaged},
};

/// Some frame and some tile of it, as instruments and the command line write them.
struct Cut {
    frame: String,
    tile: String,
    pixel: &'static str,
}

const PIXELS: [&str; 6] = ["uint8", "int16", "uint16", "uint32", "float32", "uint64"];

/// A cut that follows from a seed: of one to three dimensions, few of which fit.
fn cut(seed: u64) -> Cut {
    let mut random = Seed(seed).stream();
    let dimensions = 1 + random.below(3);
    let frame: Vec<u64> = (0..dimensions).map(|_| 1 + random.below(90)).collect();
    let mut tile: Vec<u64> = frame.iter().map(|side| 1 + side / 3 + random.below(side - side / 3)).collect();
    // What would have more than four times the pixels of a frame is refused.
    let filled = frame.iter().zip(&tile).map(|(side, tile)| side.next_multiple_of(*tile)).product::<u64>();
    if filled > 4 * frame.iter().product::<u64>() {
        tile.clone_from(&frame);
    }
    let words =
        |sides: &[u64], between: &str| sides.iter().map(u64::to_string).collect::<Vec<_>>().join(between);
    Cut {
        frame: words(&frame, ", "),
        tile: words(&tile, "x"),
        pixel: PIXELS[random.below(PIXELS.len() as u64) as usize],
    }
}

#[test]
fn h5py_reads_frames_of_any_shape_in_tiles_of_any_shape_with_each_filter() {
    const FRAMES: u64 = 12;
    let seed = u64::from(std::process::id());
    for (at, (compression, filters)) in (0..).zip(COMPRESSIONS) {
        for more in 0..2 {
            let Cut { frame, tile, pixel } = cut(seed + 2 * at + more);
            let said = format!("seed {seed}: {compression}, {tile} of {frame}, {pixel}");
            let lab = Lab::new(&frame, pixel, "500 Hz", "");
            lab.record(compression, &["--frames", "12", "--chunk", &tile]);
            assert_verified(&lab, FRAMES);
            let exported = lab.home.path().join("exported.raw");
            let recorded = lab.lanes().remove(0);
            let arguments = ["export".as_ref(), recorded.as_os_str(), "--to".as_ref(), exported.as_os_str()];
            assert_eq!(run(&arguments).code, Some(0), "{said}");
            let truth = lab.truth(FRAMES);
            assert!(
                fs::read(&exported).expect("it is there") == fs::read(&truth).expect("it is there"),
                "{said}"
            );
            let Some(found) = found_in(&truth, &lab.file()) else { return };
            assert_eq!(found.frames("right").len() as u64, FRAMES, "{said}: {:?}", found.frames("wrong"));
            found.assert_whole(FRAMES);
            assert_eq!(found.said("chunk"), format!("[1,{}]", tile.replace('x', ",")), "{said}");
            assert_eq!(found.said("filters"), filters, "{said}");
        }
    }
}

#[test]
fn an_instrument_may_say_its_chunks_and_files_of_several_directories_have_them() {
    let lab = Lab::small(
        "recording = { format = \"hdf5\", compression = \"bslz4\", chunk = [16, 40], frames_per_file = 32 }\n",
    );
    let to = ["a", "b"].map(|name| lab.made(name));
    let lab = lab.into(&[&to[0], &to[1]]);
    let ended = lab.simulate(&[], &["--frames", "200"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_verified(&lab, 200);
    let scan = lab.about("scan");
    assert!(scan.code == Some(0) && scan.stdout.contains("recording   scan, hdf5\n"), "{scan:?}");
    let truth = lab.truth(200);
    let Some(found) = found_in(&truth, &lab.lanes()[0].join("scan_master.h5")) else { return };
    assert!(found.frames("right").into_iter().eq(0..200), "{:?}", found.frames("wrong"));
}

#[test]
fn tiles_of_which_the_index_is_lost_are_found_again_and_a_damaged_frame_is_named() {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--frames", "40", "--chunk", "20x33"]);
    let whole = fs::read(lab.file()).expect("it is there");
    let damaged = |bytes: &[u8], at: u64| {
        fs::write(lab.file(), &whole).expect("space");
        let file = fs::OpenOptions::new().write(true).open(lab.file()).expect("it is there");
        file.write_all_at(bytes, at).expect("space");
    };
    damaged(&[0; 96], 0);
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.contains("repaired"), "{repaired:?}");
    assert_verified(&lab, 40);
    let truth = lab.truth(40);
    if let Some(found) = found_in(&truth, &lab.file()) {
        found.assert_whole(40);
    }
    // The table in front of the tiles of some frame, and an index that is lost.
    let table = whole.windows(8).rposition(|bytes| bytes == b"nm-tiles").expect("a frame has one");
    damaged(&[0xff; 24], table as u64);
    let verified = lab.about("verify");
    assert!(verified.code == Some(1) && undamaged(&verified) == 39, "{verified:?}");
    let file = fs::OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&[0; 96], 0).expect("space");
    let repaired = lab.about("repair");
    assert_eq!(repaired.code, Some(1), "one frame is lost: {repaired:?}");
    if let Some(found) = found_in(&truth, &lab.file()) {
        assert_eq!((found.frames("right").len(), found.frames("blank").len()), (39, 1), "{repaired:?}");
    }
}

#[test]
fn a_recorder_of_tiles_that_is_killed_leaves_whole_frames() {
    let seed = u64::from(std::process::id());
    let mut random = Seed(seed).stream();
    let mut all = 0;
    for compression in ["none", "bslz4", "bszstd"] {
        let lab = Lab::new("64, 96", "uint16", "2 kHz", "");
        let running = lab.start(compression, &["--duration", "1 min", "--chunk", "30x50"]);
        lab.await_file("scan.h5");
        std::thread::sleep(Duration::from_millis(200 + random.below(500)));
        kill_process(running.worker(), Signal::KILL).expect("it runs");
        assert_eq!(running.end(LIMIT).code, Some(1));
        let acknowledged = lab.acknowledged();
        let Some(last) = acknowledged.last() else { continue };
        let verified = lab.about("verify");
        assert_eq!(undamaged(&verified), acknowledged.len() as u64, "{verified:?}");
        let Some(found) = found_in(&lab.truth(last + 1000), &lab.file()) else { return };
        let right = found.frames("right");
        let gone: Vec<_> = acknowledged.iter().filter(|frame| right.binary_search(frame).is_err()).collect();
        assert!(gone.is_empty(), "seed {seed}, {compression}: {gone:?} were acknowledged");
        let whole = found.column("flag").into_iter().zip(0..).filter(|(flag, _)| *flag == 0);
        let said: Vec<_> =
            whole.map(|(_, frame)| frame).filter(|frame| right.binary_search(frame).is_err()).collect();
        assert!(said.is_empty(), "seed {seed}, {compression}: {said:?} are said to be whole");
        all += acknowledged.len();
    }
    assert!(all > 0, "seed {seed}: nothing was ever acknowledged");
}

#[test]
fn larger_frames_begin_at_stripes_if_that_is_asked_for() {
    let lab = Lab::new("600, 1000", "uint16", "50 Hz", "");
    lab.record("none", &["--frames", "8", "--align", "1 MiB", "--buffer", "64 MiB"]);
    assert_verified(&lab, 8);
    let Some(found) = found_in(&lab.truth(8), &lab.file()) else { return };
    found.assert_whole(8);
    for frame in 0..8 {
        assert!(found.chunk(frame).0.is_multiple_of(1 << 20), "{:?}", found.chunk(frame));
    }
}

#[test]
fn what_can_not_be_a_chunk_is_refused_before_anything_is_made() {
    let lab = Lab::small("");
    for (arguments, part) in [
        (&["--chunk", "65x96"][..], "larger than a frame: write at most 64x96"),
        (&["--chunk", "0x96"], "at least 1"),
        (&["--chunk", "96"], "frames have 2 dimensions"),
        (&["--chunk", "1x2x3x4"], "frames have 2 dimensions"),
        (&["--chunk", "4000000000x64x96"], "less than 4 GiB"),
        (&["--align", "3 MiB"], "a power of 2"),
        (&["--scan", "20x0"], "?x30"),
        (&["--scan", "4x5", "--frames", "21"], "it has 20 frames, and 21 come"),
        (&["--scan", "?x5", "--frames", "21"], "multiple of 5 frames"),
        (&["--scan", "100x100", "--duration", "1 s"], "take 20 s"),
    ] {
        let ended = lab.start("none", arguments).end(LIMIT);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{arguments:?}: {ended:?}");
        assert!(!lab.lanes()[0].exists(), "{arguments:?}");
    }
    let raw = lab.simulate(&["--format", "raw"], &["--chunk", "8x8"]).end(LIMIT);
    assert!(raw.code == Some(2) && raw.stderr.contains("chunk: only HDF5 has one"), "{raw:?}");
    let raw = lab.simulate(&["--format", "raw"], &["--scan", "8x8"]).end(LIMIT);
    assert!(raw.code == Some(2) && raw.stderr.contains("scan: only HDF5 has one"), "{raw:?}");
}
