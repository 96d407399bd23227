//! The engine that writes a recording: the user names it, and the recorder says which one it uses and why.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{Ended, Running, address, ask, await_some, run, start};
use rustix::process::Signal;
use serde_json::Value;

use crate::service::{instrument, sender::Sender};

const LIMIT: Duration = Duration::from_mins(1);

/// Frames of 1 MiB, in plain files.
const DETECTOR: &str = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [512, 1024]\n\
                        pixel = \"uint16\"\nframe_rate = \"20 Hz\"\ndata = \"diffraction\"\n";

/// Simulates the detector into the directory, written by this engine.
fn simulated(below: &Path, engine: &str) -> Ended {
    fs::write(below.join("detector.toml"), DETECTOR).expect("space");
    let options = ["--frames", "5", "--buffer", "16 MiB", "--reserve", "0 B", "--name", engine];
    let arguments = ["simulate", "detector.toml", "--to", ".", "--engine", engine];
    start(below, &[&arguments[..], &options].concat()).end(LIMIT)
}

#[test]
fn each_engine_writes_whole_recordings_and_the_end_names_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for engine in ["sync", "io_uring", "pool"] {
        let ended = simulated(directory.path(), engine);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = format!("engine      {engine}: as requested");
        assert!(ended.stdout.contains(&said), "{said}: {ended:?}");
        let verified = run(&["verify".as_ref(), directory.path().join(engine).as_os_str()]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
    let refused = simulated(directory.path(), "mpi_io");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let choices = ["sync", "io_uring", "pool"];
    assert!(choices.iter().all(|choice| refused.stderr.contains(choice)), "{}", refused.stderr);
    assert!(!directory.path().join("mpi_io").exists(), "nothing was begun");
}

/// The threads of the recorder, by name; it is the started process or its child.
fn threads(running: &Running) -> Vec<String> {
    let id = running.process();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
    let processes = std::iter::once(id.to_string()).chain(children.split_whitespace().map(str::to_owned));
    let tasks = processes.filter_map(|id| fs::read_dir(format!("/proc/{id}/task")).ok());
    let names = tasks.flatten().flatten().map(|task| fs::read_to_string(task.path().join("comm")));
    names.flatten().collect()
}

#[test]
fn a_recording_of_packets_tells_its_engine_while_it_runs_and_afterwards() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = instrument(below, sender.port());
    let to = below.to_str().expect("plain");
    let options = ["--name", "scan", "--buffer", "64 MiB", "--reserve", "0 B", "--http", "127.0.0.1:0"];
    let arguments = ["record", &raw, "--to", to, "--engine", "pool"];
    let mut running = start(below, &[&arguments[..], &options].concat());
    running.await_said("recording scan");
    let http = address(&running, "http");
    sender.send(0..200);
    let status = await_some("200 packets", || {
        let status: Value = serde_json::from_str(&ask(http, "GET", "/status", "").1).expect("JSON");
        (status["recording"]["received_packets"] == 200).then_some(status)
    });
    let told = |recording: &Value| {
        assert_eq!(recording["engine"], "pool", "{recording}");
        assert_eq!(recording["engine_reason"], "as requested", "{recording}");
    };
    told(&status["recording"]);
    let pool = threads(&running).iter().filter(|name| name.starts_with("pool ")).count();
    assert_eq!(pool, 4, "its threads are there");
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("engine      pool: as requested"), "{ended:?}");
    assert!(ended.stderr.contains("engine pool: as requested"), "{ended:?}");
    let summary = fs::read_to_string(below.join("scan/scan.summary.json")).expect("a summary");
    told(&serde_json::from_str::<Value>(&summary).expect("JSON")["recording"]);
}
