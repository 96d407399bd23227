//! Recorders and senders of series that are stopped in the middle and go on later (SIGSTOP, SIGCONT): nothing
//! acknowledged is lost, each lost image is counted with its reason, and the next series is whole.

use std::{path::PathBuf, slice::from_ref, time::Duration};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, Running, await_some, free_port, run, start};
use rustix::process::{Signal, kill_process};

use crate::series::lab::{LIMIT, SeriesLab};

const VERSIONS: [&str; 2] = ["2", "1"];
/// The images of a series, at a rate of 100 Hz.
const IMAGES: u64 = 600;
/// Images that are recorded before a halt: a busy machine must not deliver the rest of them meanwhile.
const BEFORE: usize = 20;
/// The images of a series that no detector sends to its end.
const ENDLESS: u64 = 1_000_000;
/// A halt that is longer than `--silence` and than all waits for images.
const HALT: Duration = Duration::from_secs(4);
const SILENCE: &str = "2500 ms";

/// A recorder of every series from a port, and the simulated detectors that send there.
struct HaltLab {
    lab: SeriesLab,
    at: String,
}

impl HaltLab {
    fn new() -> Self {
        let lab = SeriesLab::new();
        lab.simulated_detector(0);
        HaltLab { lab, at: format!("tcp://127.0.0.1:{}", free_port()) }
    }

    fn record(&self) -> Running {
        let to = ["record", "--to", "to", "--name", "scan", "--from", &self.at, "--series", "every"];
        let limits = ["--buffer", "64 MiB", "--reserve", "0 B", "--silence", SILENCE];
        start(self.lab.home.path(), &[&to[..], &limits].concat())
    }

    /// Starts a detector that sends a series by this version.
    fn send(&self, version: &str, options: &[&str]) -> Running {
        self.send_images(IMAGES, version, options)
    }

    fn send_images(&self, images: u64, version: &str, options: &[&str]) -> Running {
        let images = images.to_string();
        let pace = ["--rate", "100 Hz", "--frames", &images, "--stream-version", version];
        let detector = ["simulate", "detector.toml", "--to", &self.at];
        start(self.lab.home.path(), &[&detector[..], &pace, options].concat())
    }
}

/// A series that a recorder of every series has begun.
struct SeriesRecording {
    path: PathBuf,
    name: String,
}

impl SeriesRecording {
    /// The series with this number, of those that a recorder began: 0 is the first.
    fn begun(lab: &HaltLab, recorder: &Running, number: usize) -> Self {
        let name = await_some("a series that begins", || {
            let said = recorder.stderr();
            let mut begun = said.lines().filter_map(|line| line.strip_prefix("recording "));
            let (name, _) = begun.nth(number)?.split_once(" from ")?;
            Some(name.to_owned())
        });
        SeriesRecording { path: lab.lab.home.path().join("to").join(&name), name }
    }

    /// Numbers of its acknowledged images.
    fn acknowledged(&self) -> Vec<u64> {
        let recording = Recording::open(from_ref(&self.path), Trust::Acknowledged);
        recording.map(|recording| recording.index.frames.numbers(0..u64::MAX).collect()).unwrap_or_default()
    }

    /// Waits until a part of the series is recorded.
    fn await_middle(&self) -> Vec<u64> {
        await_some("the middle of a series", || {
            let acknowledged = self.acknowledged();
            (acknowledged.len() > BEFORE).then_some(acknowledged)
        })
    }

    fn await_end(&self) {
        let summary = self.path.join(format!("{}.summary.json", self.name));
        await_some("the end of a series", || summary.exists().then_some(()));
    }

    /// Asserts that all images are acknowledged and right.
    fn assert_whole(&self) {
        assert!(self.acknowledged().into_iter().eq(0..IMAGES), "{}", self.name);
        let verified = run(&["verify".as_ref(), self.path.as_os_str()]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

/// Ends a recorder of every series.
fn ended(recorder: Running) -> Ended {
    recorder.signal(Signal::INT);
    recorder.end(LIMIT)
}

/// The number behind a word of the sender's summary.
fn counted(ended: &Ended, word: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(word));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number = number.unwrap_or_else(|| panic!("no {word}: {ended:?}"));
    if number == "none" { 0 } else { number.parse().expect("a number") }
}

/// Stops the process that records or sends, for the time of a halt.
fn halt(running: &Running) {
    let worker = running.worker();
    kill_process(worker, Signal::STOP).expect("it runs");
    std::thread::sleep(HALT);
    kill_process(worker, Signal::CONT).expect("it is there");
}

#[test]
fn a_recorder_that_was_stopped_takes_all_that_waited_for_it() {
    for version in VERSIONS {
        let lab = HaltLab::new();
        let recorder = lab.record();
        let sender = lab.send(version, &["--wait"]);
        let first = SeriesRecording::begun(&lab, &recorder, 0);
        first.await_middle();
        halt(&recorder);
        assert_eq!(counted(&sender.end(LIMIT), "sent"), IMAGES, "version {version}");
        first.await_end();
        assert_eq!(counted(&lab.send(version, &["--wait"]).end(LIMIT), "sent"), IMAGES, "version {version}");
        let second = SeriesRecording::begun(&lab, &recorder, 1);
        second.await_end();
        let ended = ended(recorder);
        assert_eq!(ended.code, Some(0), "version {version}: {ended:?}");
        assert!(ended.stdout.contains("the recorder itself did not run"), "version {version}: {ended:?}");
        first.assert_whole();
        second.assert_whole();
    }
}

#[test]
fn images_that_a_detector_drops_while_the_recorder_is_stopped_are_counted() {
    for version in VERSIONS {
        let lab = HaltLab::new();
        let recorder = lab.record();
        // Images that nothing compresses, of which sockets take few, and a queue of three.
        let large = ["--queue", "3", "--shape", "500 x 500", "--compression", "none"];
        let sender = lab.send(version, &large);
        let first = SeriesRecording::begun(&lab, &recorder, 0);
        let before = first.await_middle();
        halt(&recorder);
        let sent = sender.end(LIMIT);
        first.await_end();
        let next = lab.send(version, &["--wait"]).end(LIMIT);
        assert_eq!(counted(&next, "sent"), IMAGES, "version {version}: {next:?}");
        let second = SeriesRecording::begun(&lab, &recorder, 1);
        second.await_end();
        let ended = ended(recorder);
        assert_eq!(ended.code, Some(1), "version {version}: {ended:?}");
        let dropped = counted(&sent, "dropped");
        assert!(dropped > 0, "version {version}: {sent:?}");
        let acknowledged = first.acknowledged();
        assert_eq!(acknowledged.len() as u64, IMAGES - dropped, "version {version}: {sent:?} {ended:?}");
        assert!(before.iter().all(|image| acknowledged.contains(image)), "version {version}: {ended:?}");
        let told = ended.stdout.contains(&format!("missing     {dropped} frames"));
        assert!(told && ended.stdout.contains("the recorder itself did not run"), "{version}: {ended:?}");
        second.assert_whole();
    }
}

#[test]
fn a_sender_that_was_stopped_in_a_series_goes_on_with_it() {
    for version in VERSIONS {
        let lab = HaltLab::new();
        let to = ["record", "--to", "to", "--name", "scan", "--from", &lab.at, "--silence", "20 s"];
        let recorder =
            start(lab.lab.home.path(), &[&to[..], &["--reserve", "0 B", "--buffer", "64 MiB"]].concat());
        let sender = lab.send(version, &["--wait"]);
        let series = SeriesRecording::begun(&lab, &recorder, 0);
        series.await_middle();
        halt(&sender);
        let ended = recorder.end(LIMIT);
        assert_eq!(ended.code, Some(0), "version {version}: {ended:?}");
        assert_eq!(counted(&sender.end(LIMIT), "sent"), IMAGES, "version {version}: {ended:?}");
        series.assert_whole();
    }
}

#[test]
fn a_series_whose_sender_never_goes_on_ends_by_its_silence_and_the_next_is_whole() {
    for version in VERSIONS {
        let lab = HaltLab::new();
        let recorder = lab.record();
        let sender = lab.send_images(ENDLESS, version, &["--wait"]);
        let first = SeriesRecording::begun(&lab, &recorder, 0);
        let before = first.await_middle();
        let worker = sender.worker();
        kill_process(worker, Signal::STOP).expect("it runs");
        first.await_end();
        kill_process(worker, Signal::KILL).expect("it is there");
        sender.end(LIMIT);
        let next = lab.send(version, &["--wait"]).end(LIMIT);
        assert_eq!(counted(&next, "sent"), IMAGES, "version {version}: {next:?}");
        let second = SeriesRecording::begun(&lab, &recorder, 1);
        second.await_end();
        let ended = ended(recorder);
        assert_eq!(ended.code, Some(1), "version {version}: {ended:?}");
        assert!(ended.stderr.contains("1 of 2 series are not whole"), "version {version}: {ended:?}");
        let acknowledged = first.acknowledged();
        assert!(before.iter().all(|image| acknowledged.contains(image)), "version {version}: {ended:?}");
        second.assert_whole();
    }
}
