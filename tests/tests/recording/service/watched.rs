//! `nilometer record` while it runs, seen by programs; and what it leaves beside the recording.

use std::{fs, time::Duration};

use nilometer_tests::{ask, await_some, run};
use rustix::process::Signal;
use serde_json::Value;

use crate::service::{WatchedRecording, commanded::metrics_are_those_of, instrument, sender::Sender};

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_recording_tells_how_it_is_and_takes_no_commands() {
    let watched = WatchedRecording::begin();
    let WatchedRecording { running, sender, http, .. } = &watched;
    let below = watched.below();
    let http = *http;
    sender.send(0..200);
    sender.send(210..300);
    let status = await_some("290 packets", || {
        let (code, text) = ask(http, "GET", "/status", "");
        let status: Value = serde_json::from_str(&text).expect("JSON");
        (code == 200 && status["recording"]["received_packets"] == 290).then_some(status)
    });
    assert_eq!((&status["state"], &status["name"]), (&"recording".into(), &"scan".into()), "{status}");
    assert_eq!(status["configuration"]["to"], Value::from(vec![below.to_str()]), "{status}");
    metrics_are_those_of(&ask(http, "GET", "/metrics", "").1, 290.0);
    for order in ["/stop", "/arm", "/configure"] {
        let (code, text) = ask(http, "POST", order, "");
        assert!(code == 409 && text.contains("takes no commands"), "{order}: {code} {text}");
    }
    running.signal(Signal::TERM);
    let WatchedRecording { running, directory, .. } = watched;
    let ended = running.end(LIMIT);
    let below = directory.path();
    assert_eq!(ended.code, Some(1), "ten packets are missing: {ended:?}");
    assert_eq!(fs::metadata(below.join("scan/scan.raw")).expect("a recording").len(), 300_000);
    assert!(ended.stdout.contains("socket buffer; system-wide drops meanwhile: "), "{}", ended.stdout);
    let summary = fs::read_to_string(below.join("scan/scan.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["recording"]["lost"]["packets"], 10, "{summary}");
    assert_eq!(summary["fault"], "10 packets are missing");
    assert!(summary["recording"]["socket_buffer_bytes"].as_u64() > Some(0), "{summary}");
    assert!(summary["recording"]["lost"]["kernel_dropped"].is_u64(), "{summary}");
    let count = |when: &str| summary["network"][when]["interfaces"]["lo"]["rx_packets"].as_u64().expect(when);
    assert_eq!(count("before") + count("meanwhile"), count("after"), "{summary}");
    assert!(count("meanwhile") >= 290, "{summary}");
}

#[test]
fn what_can_not_be_shown_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = instrument(below, sender.port());
    let to = below.to_str().expect("plain");
    let here = ["--preview", "127.0.0.1:0"];
    for (options, word) in [
        (&["--http", "0.0.0.0:0"][..], "--listen-beyond-loopback"),
        (&["--http", "here"], "127.0.0.1:9620"),
        (&["--preview", "0.0.0.0:0"], "--listen-beyond-loopback"),
        (&["--preview-rate", "5 Hz"], "name the address for viewers with --preview"),
        (&[here, ["--preview-rate", "60 Hz"]].concat(), "write more than 0 Hz, at most 50 Hz"),
        (&["--allow-clients", "10.0.0.2"], "--allow-clients is for --http and --preview"),
    ] {
        let ended = run(&[&["record", &raw, "--to", to, "--name", "scan"][..], options].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains(word), "{options:?}: {ended:?}");
        assert!(!below.join("scan").exists(), "{options:?}");
    }
}
