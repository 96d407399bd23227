//! A loss of power on a disk whose cache is lost with it, in any part and order, torn between sectors: what was said to be
//! durable before is there, and nothing else is taken for a frame.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::Seed;
use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{
    Ended, PowerLost, Running, TornDisk, address, await_some, free_port, kills, may_have_faulty_disks, run,
    start, status, undamaged,
};

use crate::hdf5::lab::{Lab, found};

/// Files of 74 MB, as the detector delivers them: smaller ones are not synced.
const FRAMES_PER_FILE: &str = "6000";

/// A detector of 12 KiB a frame, some 100 of which come in a second.
fn detector() -> Lab {
    Lab::new("64, 96", "uint16", "100 Hz", "data = \"diffraction\"\n")
}

/// Records a series of the detector onto a disk, for longer than any machine looks at it; the detector, the recorder, and where
/// it is asked.
fn recorded_series(lab: &Lab, disk: &TornDisk, more: &[&str]) -> (Running, Running, SocketAddr) {
    let from = format!("tcp://127.0.0.1:{}", free_port());
    let to = disk.path();
    let to = to.to_str().expect("plain letters");
    let series = ["simulate", "detector.toml", "--to", &from, "--seed", "4711", "--duration", "1 h"];
    let detector = start(lab.home.path(), &series);
    let record = ["record", "detector.toml", "--from", &from, "--to", to, "--name", "scan"];
    let options = ["--http", "127.0.0.1:0", "--buffer", "64 MiB", "--reserve", "0 B", "--silence", "10 min"];
    let mut recorder = start(lab.home.path(), &[&record[..], &options, more].concat());
    recorder.await_said("recording scan");
    let http = address(&recorder, "http");
    (detector, recorder, http)
}

fn durable(http: SocketAddr) -> u64 {
    status(http)["recording"]["durable_packets"].as_u64().unwrap_or_default()
}

/// The disk loses its power at random moments after more was said to be durable. Each time the disk is looked at, with
/// what was said before; in all, sectors were lost.
fn loses_power(disk: &TornDisk, http: SocketAddr, look: impl Fn(&PowerLost, u64)) {
    let seed = u64::from(std::process::id());
    let mut moments = Seed(seed).stream();
    let (mut said, mut lost) = (0, 0);
    for loss in 0..kills(4, 40) {
        said = await_some("more that is durable", || Some(durable(http)).filter(|now| *now > said));
        std::thread::sleep(Duration::from_millis(moments.below(500)));
        let after = disk.after_power_loss(1000 * seed + loss);
        lost += after.lost_sectors;
        look(&after, said);
    }
    assert!(lost > 0, "seed {seed}: the disk lost nothing");
}

fn about(command: &[&str], directory: &Path) -> Ended {
    let arguments: Vec<PathBuf> = command.iter().map(PathBuf::from).chain([directory.to_owned()]).collect();
    run(&arguments)
}

/// Journals and frames agree, and so many are right at least.
fn is_right(directory: &Path, said: u64) {
    let verified = about(&["verify", "--durable"], directory);
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    assert!(undamaged(&verified) >= said, "{said} were durable: {verified:?}");
}

/// Files that have frames that are durable, with the number of the first that each may have.
fn files_of(directory: &Path, frames_per_file: Option<u64>) -> Vec<(PathBuf, u64)> {
    let recording = Recording::open(&[directory.to_owned()], Trust::Durable).expect("it is readable");
    let mut files: Vec<_> = recording
        .index
        .frames
        .iter()
        .map(|(frame, place)| {
            let first = frames_per_file.map_or(0, |each| frame - frame % each);
            (recording.path(place), first)
        })
        .collect();
    files.dedup();
    files
}

/// Frames up to the last one that is found: more may have become durable since somebody asked.
fn recorded(directory: &Path) -> u64 {
    let recording = Recording::open(&[directory.to_owned()], Trust::Acknowledged).expect("it is readable");
    recording.index.frames.iter().map(|(frame, _)| frame + 1).max().unwrap_or_default()
}

/// h5py opens the repaired files, and each frame that they say is whole is the detector's.
fn h5py_reads(lab: &Lab, directory: &Path, said: u64, frames_per_file: Option<u64>) {
    let repaired = about(&["repair"], directory);
    assert!(matches!(repaired.code, Some(0 | 1)), "{repaired:?}");
    is_right(directory, said);
    let files = files_of(directory, frames_per_file);
    let Some(found) = found(&lab.truth(recorded(directory)), &files) else { return };
    let mut whole = 0;
    for (file, (path, first)) in found.iter().zip(&files) {
        assert_eq!(file.frames("wrong"), Vec::<u64>::new(), "{}: {repaired:?}", path.display());
        let right = file.frames("right");
        let flags = file.column("flag").into_iter().zip(*first..).filter(|(flag, _)| *flag == 0);
        let said_whole: Vec<_> = flags.map(|(_, frame)| frame).collect();
        assert!(said_whole.iter().all(|frame| right.binary_search(frame).is_ok()), "{}", path.display());
        whole += said_whole.len() as u64;
    }
    assert!(whole >= said, "{whole} of {said} that were durable: {repaired:?}");
}

#[test]
fn one_hdf5_file_has_what_was_durable() {
    if !may_have_faulty_disks() {
        return;
    }
    let (lab, disk) = (detector(), TornDisk::ext4(1500));
    let (_detector, _recorder, http) = recorded_series(&lab, &disk, &[]);
    loses_power(&disk, http, |after, said| h5py_reads(&lab, &after.path().join("scan"), said, None));
}

#[test]
fn many_hdf5_files_have_what_was_durable() {
    if !may_have_faulty_disks() {
        return;
    }
    let (lab, disk) = (detector(), TornDisk::xfs(1500));
    let (_detector, _recorder, http) = recorded_series(&lab, &disk, &["--frames-per-file", FRAMES_PER_FILE]);
    loses_power(&disk, http, |after, said| h5py_reads(&lab, &after.path().join("scan"), said, Some(6000)));
}

#[test]
fn packets_that_were_durable_are_there() {
    if !may_have_faulty_disks() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let disk = TornDisk::ext4(3000);
    let listen = format!("udp://127.0.0.1:{}", free_port());
    let to = disk.path();
    let to = to.to_str().expect("plain letters");
    let record = ["record", "fila10g-512m", "--listen", &listen, "--to", to, "--name", "scan", "--checksums"];
    let options = ["--http", "127.0.0.1:0", "--buffer", "64 MiB", "--reserve", "0 B", "--silence", "10 min"];
    let mut recorder = start(home.path(), &[&record[..], &options].concat());
    recorder.await_said("recording scan");
    let send = ["simulate", "fila10g-512m", "--to", &listen, "--rate", "4 MB/s", "--duration", "1 h"];
    let _sender = start(home.path(), &send);
    // Blocks are counted by `verify`, of 128 packets each; the last one may have fewer.
    loses_power(&disk, address(&recorder, "http"), |after, said| {
        is_right(&after.path().join("scan"), said / 128);
    });
}
