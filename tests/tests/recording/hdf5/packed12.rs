//! Samples of 12 bits, two in three bytes: the recorder stores them in HDF5 as compressed numbers of 16 bits. h5py reads
//! these, and every other way gives the packed bytes back.

use std::{fs, os::unix::fs::FileExt, path::PathBuf, time::Duration};

use nilometer_model::Seed;
use nilometer_tests::run;
use rustix::process::{Signal, kill_process};

use super::lab::{LIMIT, Lab, assert_verified, found_in, number};

const FRAMES: u64 = 40;

/// Wires of a liquid-argon detector, with noise of one count.
fn wires() -> Lab {
    Lab::new("64, 1000", "uint12", "500 Hz", "[data]\nkind = \"liquid_argon\"\nintensity = 1.0\n")
}

/// The frames as numbers of 16 bits, by arithmetic on pairs.
fn truth_as_numbers(lab: &Lab, frames: u64) -> PathBuf {
    let packed = fs::read(lab.truth(frames)).expect("it was just made");
    let pairs = packed.chunks_exact(3).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
    let samples = pairs.flat_map(|pair| [pair & 0xfff, pair >> 12]);
    let numbers: Vec<u8> = samples.flat_map(|sample| (sample as u16).to_le_bytes()).collect();
    let path = lab.home.path().join("numbers.raw");
    fs::write(&path, numbers).expect("space");
    path
}

#[test]
fn h5py_reads_samples_as_numbers_and_an_export_packs_them_again() {
    for compression in ["bslz4", "bszstd", "lz4", "zstd"] {
        let lab = wires();
        let ended = lab.record(compression, &["--frames", &FRAMES.to_string()]);
        assert_verified(&lab, FRAMES);
        let smaller = ended.stdout.split(", ").find_map(|part| part.split_once(" times smaller"));
        let ratio: f64 =
            smaller.and_then(|(ratio, _)| ratio.parse().ok()).expect("the summary has the ratio");
        // Noise of one count has about 2 bits of the 12, and the transposition finds them.
        assert!(ratio > 2.0 || !compression.starts_with("bs"), "{compression}: {ratio} times");
        let to = lab.home.path().join("exported.raw");
        let lane = lab.lanes().remove(0);
        let exported = run(&["export".as_ref(), lane.as_os_str(), "--to".as_ref(), to.as_os_str()]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        let packed = fs::read(lab.truth(FRAMES)).expect("it was just made");
        assert!(fs::read(&to).expect("it was exported") == packed, "{compression}: other bytes");
        let Some(found) = found_in(&truth_as_numbers(&lab, FRAMES), &lab.file()) else { return };
        found.assert_whole(FRAMES);
        assert_eq!(["shape", "type"].map(|what| found.said(what)), ["[40,64,1000]", "\"<u2\""]);
    }
}

#[test]
fn a_file_without_its_index_is_made_again_and_exported_into_another() {
    let lab = wires();
    lab.record("bslz4", &["--frames", &FRAMES.to_string()]);
    let file = fs::OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&[0; 96], 0).expect("space");
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.contains("repaired"), "{repaired:?}");
    assert_verified(&lab, FRAMES);
    let truth = truth_as_numbers(&lab, FRAMES);
    if let Some(found) = found_in(&truth, &lab.file()) {
        found.assert_whole(FRAMES);
    }
    let lane = lab.lanes().remove(0);
    for compression in ["bslz4", "bszstd"] {
        let to = lab.home.path().join(format!("{compression}.h5"));
        let export = ["export".as_ref(), lane.as_os_str(), "--format".as_ref(), "hdf5".as_ref()];
        let rest = ["--to".as_ref(), to.as_os_str(), "--compression".as_ref(), compression.as_ref()];
        let exported = run(&[&export[..], &rest, &["--verify".as_ref()]].concat());
        assert_eq!(exported.code, Some(0), "{exported:?}");
        if let Some(found) = found_in(&truth, &to) {
            assert_eq!(found.frames("right").len() as u64, FRAMES, "{found:?}");
        }
    }
}

#[test]
fn a_recorder_of_samples_that_is_killed_leaves_those_that_it_acknowledged() {
    let lab = wires();
    let running = lab.start("bszstd", &["--duration", "1 min"]);
    lab.await_file("scan.h5");
    let seed = u64::from(std::process::id());
    std::thread::sleep(Duration::from_millis(100 + Seed(seed).stream().below(400)));
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let acknowledged = lab.acknowledged();
    let Some(last) = acknowledged.last() else { return };
    let verified = lab.about("verify");
    assert_eq!(number(&verified, "right"), acknowledged.len() as u64, "{verified:?}");
    let Some(found) = found_in(&truth_as_numbers(&lab, last + 1000), &lab.file()) else { return };
    let right = found.frames("right");
    let gone: Vec<_> = acknowledged.iter().filter(|frame| right.binary_search(frame).is_err()).collect();
    assert!(gone.is_empty(), "seed {seed}: {gone:?} were acknowledged");
}

#[test]
fn samples_that_no_file_can_have_are_refused_before_anything_is_made() {
    let odd = Lab::new("64, 1001", "uint12", "500 Hz", "");
    let filter = "filter:32001,0,0,0,0,5";
    for (lab, compression, more, part) in [
        (&wires(), "none", &[][..], "need a compression there: write compression = \"bszstd\""),
        (&wires(), filter, &[], "need a compression there"),
        (&wires(), "bslz4", &["--chunk", "8x1000"], "frames of uint12 are a chunk each"),
        (&odd, "bslz4", &[], "an even last dimension"),
    ] {
        let ended = lab.start(compression, more).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{part}: {ended:?}");
        assert!(!lab.lanes()[0].exists(), "{part}");
    }
}
