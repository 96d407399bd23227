//! `nilometer record` by a file, at the times of a schedule.

use std::{fs, time::Duration};

use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;
use nilometer_tests::{Running, address, await_packets, await_some, nilometer, run, start};
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

/// What is to come before such a time does, on a machine that is not too busy for the first of them.
const TIMES: [u64; 3] = [5000, 20_000, 80_000];

fn is_over(moment: Moment) -> bool {
    Calendar::now().time >= moment.0
}

/// Waits until one of these was said, or it has ended.
fn await_one(running: &mut Running, texts: &[&str]) {
    await_some("a word of it", || {
        let said = running.stderr();
        (texts.iter().any(|text| said.contains(text)) || running.is_over()).then_some(())
    });
}

#[test]
fn a_recording_begins_when_it_should_and_ends_well_on_a_signal() {
    assert!(TIMES.into_iter().any(begins_in), "none of these times was long enough");
}

/// Records from so many milliseconds from now on; whether that was long enough for what is to come before.
fn begins_in(millis: u64) -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let config = below.join("record.toml");
    let begins = in_millis(millis);
    let text = format!(
        "instrument = \"{}\"\nto = \"{}\"\nname = \"of-the-file\"\nbuffer = \"64 MiB\"\nreserve = \"0 B\"\nstart = \"{}\"\n",
        instrument(below, sender.port()),
        below.display(),
        begins.vex()
    );
    fs::write(&config, text).expect("space");
    let options = ["record", "--config", config.to_str().expect("plain"), "--name", "scan"];
    let mut running = start(below, &[&options[..], &["--http", "127.0.0.1:0"]].concat());
    await_one(&mut running, &["scan is prepared, and begins at 20", "recording scan"]);
    sender.send(0..50);
    let said = running.stderr();
    if is_over(begins) {
        return false;
    }
    assert!(
        said.contains("scan is prepared, and begins at 20") && !said.contains("recording scan"),
        "{said}"
    );
    running.await_said("recording scan");
    sender.send(100..300);
    await_packets(address(&running, "http"), 200);
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("recorded    200 packets"), "{}", ended.stdout);
    assert_eq!(recorded(below, "scan"), (100..300).collect::<Vec<_>>());
    true
}

/// What both recordings of the test below have in common.
const COMMON: [&str; 5] = ["--buffer", "64 MiB", "--reserve", "0 B", "--name"];

#[test]
fn a_recording_ends_at_its_time_and_one_that_never_began_leaves_nothing() {
    assert!(TIMES.into_iter().any(ends_in), "none of these times was long enough");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = instrument(below, sender.port());
    let common = [&["record", &raw, "--to", below.to_str().expect("plain")], &COMMON[..]].concat();
    let tomorrow = in_millis(86_400_000).to_string();
    let mut running = start(below, &[&common[..], &["never", "--start", &tomorrow]].concat());
    running.await_said("never is prepared");
    assert!(below.join("never").exists());
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("nothing was recorded"), "{ended:?}");
    assert!(!below.join("never").exists(), "it left its directory");
}

/// Records until so many milliseconds from now on; whether that was long enough for what is to come before.
fn ends_in(millis: u64) -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let raw = instrument(below, sender.port());
    let ends = in_millis(millis);
    let common = [&["record", &raw, "--to", below.to_str().expect("plain")], &COMMON[..]].concat();
    let mut running = start(below, &[&common[..], &["ends", "--stop", &ends.to_string()]].concat());
    await_one(&mut running, &["recording ends"]);
    sender.send(0..10);
    if is_over(ends) {
        return false;
    }
    assert_eq!(running.end(LIMIT).code, Some(0));
    assert_eq!(recorded(below, "ends"), (0..10).collect::<Vec<_>>());
    true
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
        (
            "instrument = \"fila10g-4g\"\nto = \"/tmp\"\nstop = \"2001-01-01T00:00:00Z\"",
            ["--stop", "is past"],
        ),
    ] {
        fs::write(&config, text).expect("space");
        let ended = run(&["record", "--config", path]);
        assert_eq!(ended.code, Some(2), "{text}: {ended:?}");
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{text}: {}", ended.stderr);
    }
    let ended = run(&["record", "--config", "/nowhere.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("/nowhere.toml"), "{ended:?}");
}
