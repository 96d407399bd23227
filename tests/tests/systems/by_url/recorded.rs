//! Recordings onto storage that has no files to be written in places: objects, which are put whole, and files of Hadoop, which
//! grow at their ends. Nothing is called acknowledged before the server has it.

use std::{fs, path::Path, process::Command};

use nilometer_model::TargetUrl;
use nilometer_tests::{Ended, Running, Testbed, address, await_some, free_port, nilometer, run, status};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::by_url::{Server, again_inside, objects, program};

/// Small frames that can be made again, whose journal is longer than one object of it.
const SMALL: &str = "name = \"small\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [2048]\n\
                     pixel = \"uint16\"\nframe_rate = \"2 kHz\"\ndata = \"diffraction\"\n";
/// Frames of 1 MiB.
const LARGE: &str = "name = \"large\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [512, 512]\n\
                     pixel = \"int32\"\nframe_rate = \"20 Hz\"\ndata = \"diffraction\"\n";

/// An instrument in a file of its own.
fn written(place: &Path, name: &str, text: &str) -> String {
    let file = place.join(name);
    fs::write(&file, text).expect("room");
    file.to_str().expect("plain letters").to_owned()
}

/// A recording that was made there is read back in each way.
fn is_read_back(testbed: &Testbed, place: &Path, recording: &str, frames: u64) {
    // Servers take 5 ms of processor time for each read, of which a frame is one.
    if frames <= 100 {
        let verified = program(testbed, &["verify", recording]);
        let right = format!("right       {frames} frames");
        assert!(verified.code == Some(0) && verified.stdout.contains(&right), "{right}: {verified:?}");
    }
    let name = recording.rsplit('/').next().unwrap_or(recording);
    let file = place.join(format!("{name}.exported"));
    let file = file.to_str().expect("plain letters");
    let exported = program(testbed, &["export", recording, "--to", file, "--verify"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let scanned = program(testbed, &["scan", recording, "--json"]);
    assert!(scanned.code == Some(0) && scanned.stdout.contains("\"ended\""), "{scanned:?}");
}

/// A frame a file, some a file, chunks; a journal of several objects.
pub(crate) fn simulated_recordings_come_back(testbed: &Testbed, url: &str) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let [small, large] =
        [("small.toml", SMALL), ("large.toml", LARGE)].map(|(name, text)| written(place.path(), name, text));
    for (name, instrument, storing, frames) in [
        ("files", &large, &["--storing", "files"][..], 40),
        ("cbf", &large, &["--format", "cbf", "--writers", "3"], 40),
        ("chunks", &large, &["--storing", "scattered", "--writers", "2", "--buffer", "32 MiB"], 40),
        ("small", &small, &["--storing", "files", "--writers", "1"], 4000),
    ] {
        let to = ["simulate", instrument, "--to", url, "--duration", "2 s", "--name", name, "--checksums"];
        let recorded = program(testbed, &[&to[..], storing].concat());
        assert_eq!(recorded.code, Some(0), "{name}: {recorded:?}");
        let recording = url.parse::<TargetUrl>().expect("a URL").join(name).to_string();
        is_read_back(testbed, place.path(), &recording, frames);
        assert_eq!(program(testbed, &[&to[..], storing].concat()).code, Some(2), "{name} is there");
    }
}

/// Packets at their own pace, all of which stay, and as fast as they are taken, of which the latest do. For a short time only: a
/// store that removes what was deleted later, as `SeaweedFS` does, has to have room for all that was ever put into it.
pub(crate) fn packets_are_evaluated(testbed: &Testbed, url: &str) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let record = place.path().join("record.sqlite");
    let record = record.to_str().expect("plain letters");
    let asked = ["evaluate", url, "--for", "fila10g-1g", "--plan", "none", "--record", record];
    // A pass at full speed goes on until what fills the buffer is stored.
    let little = ["--duration", "1 s", "--buffer", "128 MiB"];
    let ended = program(testbed, &[&asked[..], &little].concat());
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(Path::new(record)).expect("a record");
    let faults: Vec<_> = results.samples.iter().filter(|sample| !sample.sample.errors.is_empty()).collect();
    assert!(faults.is_empty() && !results.samples.is_empty(), "{faults:?}: {ended:?}");
}

/// What storage of this kind can't take is refused before anything is made, with what it takes.
pub(crate) fn what_is_written_in_places_is_refused(testbed: &Testbed, url: &str) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let large = written(place.path(), "large.toml", LARGE);
    for (storing, part) in [
        (&["--storing", "shared"][..], "`files` or `scattered`"),
        (&["--storing", "growing"], "`files` or `scattered`"),
        (&["--format", "hdf5"], "or --format raw"),
    ] {
        let to = ["simulate", &large, "--to", url, "--duration", "1 s", "--name", "none"];
        let refused = program(testbed, &[&to[..], storing].concat());
        let lines = refused.stderr.lines().filter(|line| line.contains(part)).count();
        assert!(refused.code == Some(2) && lines == 1, "{storing:?}: {refused:?}");
    }
}

/// A VDIF frame and how many are sent a second.
const FRAME: u64 = 8032;
const RATE: &str = "128Mbps";

/// The recorder, in the namespace of the servers.
struct Recorder {
    running: Running,
    place: tempfile::TempDir,
    recording: String,
    port: u16,
}

impl Recorder {
    fn begun(server: &Server) -> Self {
        let recording = server.0.url().expect("a URL").join("killed").to_string();
        Recorder::onto(&server.0.to_string(), "killed", recording)
    }

    /// Onto a directory or a server, where the recording is then.
    fn onto(to: &str, name: &str, recording: String) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let listen = format!("udp://127.0.0.1:{port}");
        let mut command = Command::new(nilometer());
        command.current_dir(place.path()).args(["record", "fila10g-1g", "--listen", &listen, "--to", to]);
        command.args(["--name", name, "--buffer", "64 MiB", "--checksums"]);
        if to.starts_with("s3:") || to.starts_with("hdfs:") {
            // What is put whole is put soon.
            command.args(["--chunk-size", "4 MB"]);
        }
        command.args(["--http", "127.0.0.1:0"]);
        let mut running = Running::of(command);
        running.await_said(&format!("recording {name}"));
        Recorder { running, place, recording, port }
    }

    /// Ends it in order: all bytes of it.
    fn ended(self) -> Vec<u8> {
        let Recorder { mut running, place, recording, .. } = self;
        kill_process(running.worker(), Signal::INT).expect("it runs");
        await_some("its end", || running.is_over().then_some(()));
        let length = exported(&recording, place.path());
        let bytes = fs::read(place.path().join("exported")).expect("it was written");
        assert_eq!(bytes.len() as u64, length);
        bytes
    }

    fn told(&self) -> Value {
        status(address(&self.running, "http"))
    }

    fn acknowledged(&self) -> u64 {
        self.told()["recording"]["acknowledged_packets"].as_u64().unwrap_or(0)
    }

    /// Sends for longer than it is recorded.
    fn sending(&self) -> Running {
        let mut command = Command::new(nilometer());
        let to = format!("udp://127.0.0.1:{}", self.port);
        command.current_dir(self.place.path());
        command.args(["simulate", "fila10g-1g", "--to", &to, "--rate", RATE, "--duration", "60 s"]);
        Running::of(command)
    }
}

/// Bytes of the longest file that export makes of it, whatever else it says.
fn exported(recording: &str, place: &Path) -> u64 {
    let file = place.join("exported");
    run(&["export", recording, "--to", file.to_str().expect("plain letters")]);
    fs::metadata(&file).map_or(0, |file| file.len())
}

/// The process that records is killed while packets come. What it had called acknowledged before is there, and nothing that is
/// there is wrong; it is read while it is made, too.
fn killed_in_the_middle(server: &Server) {
    let recorder = Recorder::begun(server);
    let sending = recorder.sending();
    let early = await_some("packets on the server", || {
        Some(recorder.acknowledged()).filter(|packets| *packets > 1000)
    });
    let growing = run(&["verify", &recorder.recording]);
    assert!(!growing.stdout.contains("wrong"), "{growing:?}");
    let acknowledged = await_some("more of them", || {
        Some(recorder.acknowledged()).filter(|packets| *packets > early + 1000)
    });
    let Recorder { mut running, place, recording, .. } = recorder;
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    await_some("its end", || running.is_over().then_some(()));
    drop(sending);
    let bytes = exported(&recording, place.path());
    assert!(bytes >= acknowledged * FRAME, "{bytes} bytes of {acknowledged} packets that were acknowledged");
    let verified: Ended = run(&["verify", &recording]);
    assert!(!verified.stdout.contains("wrong") && verified.stdout.contains("right"), "{verified:?}");
}

/// What lies on a server is sent again, and what is recorded of that is the same.
fn packets_are_sent_again(server: &Server) {
    let recording = server.0.url().expect("a URL").join("first").to_string();
    let recorder = Recorder::onto(&server.0.to_string(), "first", recording.clone());
    let sending = recorder.sending();
    await_some("packets on the server", || (recorder.acknowledged() > 1000).then_some(()));
    drop(sending);
    let first = recorder.ended();
    let packets = first.len() as u64 / FRAME;
    let here = tempfile::tempdir().expect("a temporary directory");
    let to = here.path().to_str().expect("plain letters");
    let again = Recorder::onto(to, "again", format!("{to}/again"));
    let replayed = run(&["replay", &recording, "--to", &format!("udp://127.0.0.1:{}", again.port)]);
    assert!(
        replayed.code == Some(0) && replayed.stdout.contains(&format!("{packets} packets")),
        "{replayed:?}"
    );
    let received = || again.told()["recording"]["received_packets"].as_u64().unwrap_or(0);
    await_some("all of them", || (received() >= packets).then_some(()));
    assert!(again.ended() == first, "other packets came back than {packets} that were recorded");
}

#[test]
fn what_lies_on_a_server_of_nfs_is_sent_again() {
    if let Some(server) = Server::here() {
        return packets_are_sent_again(&server);
    }
    let Some(testbed) = Testbed::of_client("nfs", "nfs") else { return };
    again_inside(&testbed, "recorded::what_lies_on_a_server_of_nfs_is_sent_again", &testbed.url("nfs"));
}

/// The same, by a test of this name.
pub(crate) fn nothing_acknowledged_is_lost(testbed: Option<Testbed>, system: &str, test: &str) {
    if let Some(server) = Server::here() {
        return killed_in_the_middle(&server);
    }
    let Some(testbed) = testbed else { return };
    again_inside(&testbed, test, &testbed.url(system));
}

const S3: &str = "s3";

#[test]
fn s3_is_recorded_onto_and_read_back() {
    let Some(testbed) = Testbed::of_client(S3, S3) else { return };
    let url = format!("{}/data", testbed.url(S3));
    simulated_recordings_come_back(&testbed, &url);
    let keys = objects::keys_in_bucket(&testbed);
    let pieces = ["", ".00000001", ".00000002"].map(|piece| format!("small.0.journal{piece}"));
    for piece in pieces {
        assert!(keys.iter().any(|key| key.ends_with(&piece)), "{piece}: {keys:?}");
    }
    what_is_written_in_places_is_refused(&testbed, &url);
    packets_are_evaluated(&testbed, &url);
}

#[test]
fn nothing_acknowledged_is_lost_on_s3() {
    let testbed = if Server::here().is_some() { None } else { Testbed::of_client(S3, S3) };
    nothing_acknowledged_is_lost(testbed, S3, "recorded::nothing_acknowledged_is_lost_on_s3");
}
