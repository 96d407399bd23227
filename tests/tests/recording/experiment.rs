//! An experiment as a whole: a simulated EIGER2 16M sends a series over TCP, which is recorded compressed, while an h5py reader
//! takes each frame as it comes, and a browser shows the page.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::Duration,
};

use nilometer_model::{Seed, catalogue};
use nilometer_recording::{
    instrument::Content,
    reader::{Recording, Trust},
};
use nilometer_tests::{Browser, Running, address, await_some, free_port, python, root, run, start, status};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

/// Frames that the reader sees while they come: 72 MB each, of which four are different.
const FRAMES: u64 = 8;
/// Frames of a series that is not over before the test ends it. On a busy machine many are due at once.
const ENDLESS: u64 = 1000;
/// Found by the reader before the recorder is killed.
const ENOUGH: usize = 4;
const LIMIT: Duration = Duration::from_mins(5);

/// Checksums by the number of a frame.
type FrameSums = BTreeMap<u64, u32>;

/// A detector that sends its series once a receiver is there, and the recorder of it.
struct Experiment {
    home: TempDir,
    detector_at: String,
    recorder: Running,
    http: SocketAddr,
}

impl Experiment {
    /// The recorder waits for a series.
    fn prepare() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let detector_at = format!("tcp://127.0.0.1:{}", free_port());
        let options =
            ["--buffer", "512 MiB", "--reserve", "0 B", "--http", "127.0.0.1:0", "--silence", "10 min"];
        let what = ["record", "eiger2-16m", "--from", &detector_at, "--to", ".", "--name", "scan"];
        let mut recorder = start(home.path(), &[&what[..], &options].concat());
        recorder.await_said("waiting for a series");
        let http = address(&recorder, "http");
        Experiment { home, detector_at, recorder, http }
    }

    fn detector(&self) -> Running {
        let frames = ENDLESS.to_string();
        let pace = ["--frames", &frames, "--rate", "1 Hz", "--wait", "--seed", "4711"];
        let what = ["simulate", "eiger2-16m", "--to", &self.detector_at];
        start(self.home.path(), &[&what[..], &pace].concat())
    }

    /// Stops the detector when this number of frames is recorded. Its series is then not over before readers and a
    /// browser, which may be slow, have seen a part of it.
    fn stop(&self, detector: &Running, frames: u64) {
        await_some("recorded frames", || {
            let recorded = &status(self.http)["recording"]["acknowledged_packets"];
            (recorded.as_u64() >= Some(frames)).then_some(())
        });
        kill_process(detector.worker(), Signal::STOP).expect("it runs");
    }

    fn directory(&self) -> PathBuf {
        self.home.path().join("scan")
    }

    fn file(&self) -> PathBuf {
        self.directory().join("scan.h5")
    }

    /// A reader of the file, once there is one.
    fn watched(&self) -> Option<Watcher> {
        await_some("the file", || self.file().exists().then_some(()));
        let mut command = h5py()?;
        command.arg("follow").arg(self.file()).arg(FRAMES.to_string());
        Some(Watcher::start(command))
    }
}

/// The other side, in Python; nothing if that is not here.
fn h5py() -> Option<Command> {
    let mut command = python(&["h5py", "hdf5plugin", "numpy"])?;
    command.arg(root().join("tests/tests/recording/experiment.py"));
    Some(command)
}

/// A reader, and what it says.
struct Watcher {
    child: Child,
    lines: Receiver<String>,
}

impl Watcher {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it can be run");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = sync_channel(ENDLESS as usize);
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Watcher { child, lines }
    }

    /// Checksums of so many frames, as they came.
    fn await_frames(&self, count: usize) -> FrameSums {
        let next = || sum(&self.lines.recv_timeout(LIMIT).expect("the reader gave up"));
        (0..count).map(|_| next().expect("a frame")).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

fn sum(line: &str) -> Option<(u64, u32)> {
    let (number, sum) = line.split_once(' ')?;
    Some((number.parse().ok()?, sum.parse().ok()?))
}

/// What anybody finds in a file: checksums of whole frames, and the length of the dataset.
fn read(file: &Path) -> Option<(FrameSums, u64)> {
    let output = h5py()?.arg("read").arg(file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    let length = said.lines().last().and_then(|line| line.strip_prefix("length ")).expect("a length");
    Some((said.lines().filter_map(sum).collect(), length.parse().expect("a number")))
}

/// Checksums of what the detector delivers by its seed.
fn truth(frames: u64) -> FrameSums {
    let detector = catalogue::instruments().into_iter().find(|instrument| instrument.name == "eiger2-16m");
    let detector = detector.expect("it is in the catalogue");
    let seed = Seed(4711).named("content");
    let content = Content::prepare(&detector.data, &detector.shape, detector.pixel, seed).expect("valid");
    let mut frame = vec![0; content.frame_size()];
    content.prepare_slot(&mut frame);
    let of_frame = |number| {
        content.fill(number, &mut frame);
        (number, crc32fast::hash(&frame))
    };
    (0..frames).map(of_frame).collect()
}

#[test]
fn a_series_is_recorded_while_it_is_watched() {
    let Some(mut browser) = Browser::start() else { return };
    let experiment = Experiment::prepare();
    let page = browser.open(&format!("http://{}/", experiment.http), 1280, false);
    browser.await_value(&page, "document.getElementById(\"state\").dataset.raw");
    let detector = experiment.detector();
    experiment.stop(&detector, 1);
    let Some(watcher) = experiment.watched() else { return };
    let mut seen = watcher.await_frames(1);
    browser.await_value(&page, "Number(document.getElementById(\"acknowledged\")?.dataset.raw) > 0");
    browser.await_value(&page, "!document.getElementById(\"shot\").hidden");
    assert_eq!(status(experiment.http)["recording"]["counted_in"], "frames");
    // It goes on when all was seen that is only there meanwhile.
    kill_process(detector.worker(), Signal::CONT).expect("it stands still");
    seen.extend(watcher.await_frames(FRAMES as usize - 1));
    let (file, directory) = (experiment.file(), experiment.directory());
    experiment.recorder.signal(Signal::INT);
    let ended = experiment.recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "a series that is ended early is one: {ended:?}");
    detector.signal(Signal::INT);
    let sent = detector.end(LIMIT);
    assert!(sent.stdout.contains("dropped     none"), "{sent:?}");
    let (found, length) = read(&file).expect("h5py was there before");
    let truth = truth(length);
    assert!(seen.len() >= FRAMES as usize && seen.iter().all(|(number, sum)| truth.get(number) == Some(sum)));
    assert_eq!(found, truth, "the closed file");
    let verified = run(&["verify".as_ref(), directory.as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    is_nxmx(&file);
}

/// Programs that no one here wrote find nothing to complain of.
fn is_nxmx(file: &Path) {
    let Some(mut nexus) = python(&["h5py", "nxmx", "pynxtools", "silx"]) else { return };
    let said = nexus.arg(root().join("tests/tests/recording/nexus.py")).arg("nxmx").arg(file).output();
    let said = said.expect("it can be run");
    assert!(said.status.success() && said.stdout.is_empty(), "{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn a_series_whose_recorder_is_killed_is_there_as_far_as_it_was_acknowledged() {
    let experiment = Experiment::prepare();
    let detector = experiment.detector();
    experiment.stop(&detector, ENOUGH as u64);
    let Some(watcher) = experiment.watched() else { return };
    let seen = watcher.await_frames(ENOUGH);
    kill_process(detector.worker(), Signal::CONT).expect("it stands still");
    let [directory, file] = [experiment.directory(), experiment.file()];
    let Experiment { home: _home, recorder, .. } = experiment;
    recorder.killed();
    drop(detector);
    let recording = Recording::open(&[directory], Trust::Acknowledged).expect("it opens");
    let acknowledged: Vec<u64> = recording.index.frames.numbers(0..u64::MAX).collect();
    let Some((found, _)) = read(&file) else { return };
    let truth = truth(found.keys().next_back().map_or(0, |last| last + 1));
    assert!(seen.keys().all(|number| found.contains_key(number)), "{:?}", found.keys());
    assert!(acknowledged.iter().all(|number| found.contains_key(number)), "{acknowledged:?}");
    assert!(found.iter().all(|(number, sum)| truth.get(number) == Some(sum)), "{:?}", found.keys());
}
