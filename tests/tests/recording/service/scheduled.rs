//! `nilometer record` by a file, at the times of a schedule.

use std::{fs, time::Duration};

use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;
use nilometer_tests::{nilometer, run, start};
use rustix::process::Signal;

use crate::service::{
    instrument,
    sender::{Sender, recorded},
};

const LIMIT: Duration = Duration::from_mins(1);

/// So long from now on, with the program built.
fn in_millis(millis: u64) -> Moment {
    nilometer();
    Moment(Calendar::now().time + Nanos::from_millis(millis))
}

#[test]
fn a_recording_begins_when_it_should_and_ends_well_on_a_signal() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let config = below.join("record.toml");
    let text = format!(
        "instrument = \"{}\"\nto = \"{}\"\nname = \"of-the-file\"\nbuffer = \"64 MiB\"\nreserve = \"0 B\"\nstart = \"{}\"\n",
        instrument(below, sender.port()),
        below.display(),
        in_millis(5000).vex()
    );
    fs::write(&config, text).expect("space");
    let options = ["record", "--config", config.to_str().expect("plain"), "--name", "scan"];
    let mut running = start(below, &options);
    running.await_said("scan is prepared, and begins at 20");
    sender.send(0..50);
    assert!(!running.stderr().contains("recording scan"), "{}", running.stderr());
    running.await_said("recording scan");
    sender.send(100..300);
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("recorded    200 packets"), "{}", ended.stdout);
    assert_eq!(recorded(below, "scan"), (100..300).collect::<Vec<_>>());
}

#[test]
fn a_recording_ends_at_its_time_and_one_that_never_began_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = instrument(below, sender.port());
    let to = below.to_str().expect("plain");
    let common = ["record", &raw, "--to", to, "--buffer", "64 MiB", "--reserve", "0 B", "--name"];
    let mut running =
        start(below, &[&common[..], &["ends", "--stop", &in_millis(4000).to_string()]].concat());
    running.await_said("recording ends");
    sender.send(0..10);
    assert_eq!(running.end(LIMIT).code, Some(0));
    assert_eq!(recorded(below, "ends"), (0..10).collect::<Vec<_>>());

    let tomorrow = in_millis(86_400_000).to_string();
    let mut running = start(below, &[&common[..], &["never", "--start", &tomorrow]].concat());
    running.await_said("never is prepared");
    assert!(below.join("never").exists());
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("nothing was recorded"), "{ended:?}");
    assert!(!below.join("never").exists(), "it left its directory");
}

#[test]
fn what_a_file_can_not_mean_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("record.toml");
    let path = config.to_str().expect("plain");
    for (text, words) in [
        ("bufer = \"1 GiB\"", ["bufer", "receive_buffer"]),
        ("start = \"soon\"", ["`soon`", "2026-11-22T18:00:00Z"]),
        ("buffer = 5", ["buffer", "unit"]),
        ("to = \"/tmp\"", ["instrument", "catalogue"]),
        ("instrument = \"fila10g-4g\"", ["--to", "directory"]),
        ("instrument = \"fila10g-4g\"\nto = \"/tmp\"\nstop = \"2001-01-01T00:00:00Z\"", ["--stop", "over"]),
    ] {
        fs::write(&config, text).expect("space");
        let ended = run(&["record", "--config", path]);
        assert_eq!(ended.code, Some(2), "{text}: {ended:?}");
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{text}: {}", ended.stderr);
    }
    let ended = run(&["record", "--config", "/nowhere.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("/nowhere.toml"), "{ended:?}");
}
