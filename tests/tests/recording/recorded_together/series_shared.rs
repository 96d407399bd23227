//! A series of frames over TCP that several processes record: its sender gives each image to one of them.

use std::{path::PathBuf, time::Duration};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, Mpi, MpiKind, Running, Testbed, await_some, free_ports, nilometer, run, start};
use rustix::process::{Signal, kill_process};

use crate::series::lab::{Found, LIMIT, SIDES, SeriesLab, write_npy};

const IMAGES: u64 = 400;

/// A detector of a lab, the address at which it sends, and processes that record it.
struct SharedSeries {
    lab: SeriesLab,
    images: Vec<u8>,
    at: String,
}

impl SharedSeries {
    fn new() -> Self {
        let lab = SeriesLab::new();
        let images = lab.simulated_detector(IMAGES);
        SharedSeries { lab, images, at: format!("tcp://127.0.0.1:{}", free_ports(1)) }
    }

    /// The detector, which sends its images with these options.
    fn detector(&self, options: &[&str]) -> Running {
        let frames = IMAGES.to_string();
        let simulate = ["simulate", "detector.toml", "--to", &self.at, "--seed", "4711", "--frames", &frames];
        start(self.lab.home.path(), &[&simulate[..], options].concat())
    }

    /// Processes that record what the detector sends.
    fn recorders(&self, mpi: &Mpi, processes: u32, options: &[&str]) -> Running {
        let record = ["record", "--from", &self.at, "--to", "to", "--name", "scan", "--buffer", "64 MiB"];
        mpi.start(processes, self.lab.home.path(), &[&record[..], options].concat())
    }

    /// The directories of the recording, one for each process.
    fn parts(&self, processes: u32) -> Vec<PathBuf> {
        (0..processes).map(|rank| self.lab.home.path().join(format!("to/scan.{rank}"))).collect()
    }

    /// The number of frames that each process acknowledged.
    fn of_each(&self, processes: u32) -> Vec<usize> {
        let parts = self.parts(processes).into_iter();
        // A process that has not begun has none.
        let count = |part: PathBuf| {
            let recording = Recording::open(&[part], Trust::Acknowledged).ok();
            recording.map_or(0, |recording| recording.index.frames.numbers(0..u64::MAX).count())
        };
        parts.map(count).collect()
    }

    /// What h5py finds in the file over all parts. Nothing if it is not here.
    fn found(&self) -> Option<Found> {
        let [rows, columns] = SIDES;
        write_npy(&self.lab.arrays(), [IMAGES, rows, columns], &self.images);
        self.lab.found_in(&self.lab.home.path().join("to/scan.0/scan_master.h5"))
    }

    fn run_on_parts(&self, command: &str, processes: u32) -> Ended {
        let parts = self.parts(processes);
        let words = std::iter::once(command.as_ref()).chain(parts.iter().map(|part| part.as_os_str()));
        run(&words.collect::<Vec<_>>())
    }

    /// All images are in the recording, and in the file over its parts.
    fn assert_whole(&self, ended: &Ended, processes: u32) {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = format!("received    {IMAGES} frames of all parts, none is missing");
        assert!(ended.stdout.contains(&said), "{ended:?}");
        assert_eq!(self.of_each(processes).iter().sum::<usize>() as u64, IMAGES);
        let verified = self.run_on_parts("verify", processes);
        assert!(verified.code == Some(0) && verified.stdout.contains("missing     none"), "{verified:?}");
        let Some(found) = self.found() else { return };
        assert_eq!(found.numbers("right"), (0..IMAGES.cast_signed()).collect::<Vec<_>>());
        assert!(found.numbers("flags").iter().all(|flag| *flag == 0), "none is blank");
    }
}

#[test]
fn images_come_to_all_processes_and_are_one_recording() {
    for mpi in Mpi::all() {
        for version in ["1", "2"] {
            let shared = SharedSeries::new();
            // It waits already: the first process that connects gets the start.
            let detector = shared.detector(&["--wait", "--stream-version", version]);
            let ended = shared.recorders(&mpi, 3, &[]).end(LIMIT);
            shared.assert_whole(&ended, 3);
            let of_each = shared.of_each(3);
            assert!(of_each.iter().all(|frames| *frames > 0), "{of_each:?}");
            assert!(detector.end(LIMIT).has_sent_all());
        }
    }
}

/// The images are not in turn then, and the one that stood still is no process that ended.
#[test]
fn a_process_that_stands_still_for_a_while_gets_fewer_images_and_none_is_lost() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let shared = SharedSeries::new();
    let recording = shared.recorders(&mpi, 2, &[]);
    let detector = shared.detector(&["--wait"]);
    await_some("images in both processes", || {
        shared.of_each(2).iter().all(|frames| *frames > 5).then_some(())
    });
    let stopped = mpi.worker_of(1, shared.lab.home.path()).expect("it runs");
    for _ in 0..3 {
        kill_process(stopped, Signal::STOP).expect("it is there");
        std::thread::sleep(Duration::from_millis(300));
        kill_process(stopped, Signal::CONT).expect("it is there");
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = recording.end(LIMIT);
    shared.assert_whole(&ended, 2);
    assert!(detector.end(LIMIT).has_sent_all());
    // The file over all parts can be made again from the journals.
    let master = shared.lab.home.path().join("to/scan.0/scan_master.h5");
    std::fs::remove_file(&master).expect("it is there");
    let repaired = shared.run_on_parts("repair", 2);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let Some(found) = shared.found() else { return };
    assert_eq!(found.numbers("right").len() as u64, IMAGES, "{repaired:?}");
}

#[test]
fn images_that_no_process_got_are_missing_once_and_blank_in_the_file_over_all() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let shared = SharedSeries::new();
    let detector = shared.detector(&["--wait", "--loss", "10 %"]);
    let ended = shared.recorders(&mpi, 2, &[]).end(LIMIT);
    detector.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let stored = shared.of_each(2).iter().sum::<usize>() as u64;
    let missing = IMAGES - stored;
    assert!((1..IMAGES / 2).contains(&missing), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{missing} of {IMAGES} frames did not come")), "{ended:?}");
    let Some(found) = shared.found() else { return };
    let numbers = |what| found.numbers(what).len() as u64;
    // Blank ones behind the last that came have no place.
    assert_eq!((numbers("right"), numbers("wrong")), (stored, 0), "{ended:?}");
    assert!(numbers("blank") <= missing, "{ended:?}");
}

#[test]
fn what_needs_all_frames_in_one_process_is_refused_before_it_begins() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let shared = SharedSeries::new();
    for (options, said) in [
        (&["--scan", "20x20"][..], "--scan: a line of the scan would come to several processes"),
        (&["--frames-per-file", "10"], "--frames-per-file: each of several processes has one file"),
        (&["--series", "every"], "--series every: several processes record one series"),
        (&["--keep", "10 MB"], "--keep: several processes do not know"),
        (&["--layout", "dectris"], "--layout dectris: its files have consecutive frames"),
        (&["--from", "tcp://nowhere.invalid:9"], "nowhere.invalid"),
    ] {
        let ended = shared.recorders(&mpi, 2, options).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{said}: {ended:?}");
        assert_eq!(std::fs::read_dir(shared.lab.home.path().join("to")).expect("it is there").count(), 0);
    }
}

/// The detector is on the third node, and both others connect to it.
#[test]
fn two_nodes_record_the_series_of_a_third() {
    let Some(testbed) = Testbed::of(&["moosefs", "nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let shared = SharedSeries::new();
    let port = free_ports(1);
    let program = nilometer().to_str().expect("plain letters");
    let frames = IMAGES.to_string();
    let at = format!("tcp://*:{port}");
    let simulate =
        ["simulate", "detector.toml", "--to", &at, "--seed", "4711", "--wait", "--frames", &frames];
    let mut command = testbed.command("node", &[&["3", program][..], &simulate].concat());
    command.current_dir(shared.lab.home.path());
    let detector = Running::of(command);
    let mount = testbed.folder().join("nodes/mount/moosefs/goal-2");
    let from = format!("tcp://node-3:{port}");
    let to = mount.to_str().expect("plain letters");
    let record = ["record", "--from", &from, "--to", to, "--name", "scan", "--buffer", "64 MiB"];
    let ended = Running::of(mpi.command_on(&testbed, &[1, 2], shared.lab.home.path(), &record)).end(LIMIT);
    assert!(detector.end(LIMIT).has_sent_all());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("by 2 processes on 2 machines"), "{ended:?}");
    let said = format!("received    {IMAGES} frames of all parts, none is missing");
    assert!(ended.stdout.contains(&said) && ended.stdout.contains("scan_master.h5"), "{ended:?}");
    let here = testbed.folder().join("moosefs/mount/goal-2");
    let parts = ["scan.0", "scan.1"].map(|name| here.join(name));
    let verified = run(&["verify".as_ref(), parts[0].as_os_str(), parts[1].as_os_str()]);
    assert!(verified.code == Some(0) && verified.stdout.contains("missing     none"), "{verified:?}");
    for part in parts {
        std::fs::remove_dir_all(part).expect("it is the test's");
    }
}
