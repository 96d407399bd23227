//! What is said of a recording while it runs and when it has ended: what is received, what a kill leaves, what a loss of power
//! leaves, and that it is there at all.

use std::{
    fs,
    io::Read,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use nilometer_acquisition::{
    reader::{Recording, Trust},
    transport::{Course, faults::Faults},
};
use nilometer_tests::{FileSystem, Running, await_some, may_mount};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::{FRAME, LIMIT, Lab, faults::send_each};

/// What the recorder says of itself at this socket.
fn told(socket: &Path) -> Value {
    let mut text = String::new();
    UnixStream::connect(socket).and_then(|mut stream| stream.read_to_string(&mut text)).expect("it tells");
    serde_json::from_str(&text).expect("JSON")
}

fn packets(told: &Value, which: &str) -> u64 {
    told["recording"][format!("{which}_packets")].as_u64().unwrap_or(0)
}

/// Packets that a reader finds.
fn packets_there(directory: &Path, trust: Trust) -> u64 {
    let recording = Recording::open(&[directory.to_path_buf()], trust).expect("a recording");
    let head = recording.head();
    let frames = recording.index.frames.values();
    frames.map(|place| place.length.map_or(head.frame_size, u64::from) / FRAME as u64).sum()
}

fn record(lab: &Lab, more: &[&str]) -> (Running, PathBuf) {
    let socket = lab.directory.path().join("status.sock");
    let options = ["--socket", socket.to_str().expect("a plain name"), "--reserve", "1 MiB", "--checksums"];
    (lab.record(&[&options[..], more].concat()), socket)
}

#[test]
fn nothing_is_called_acknowledged_that_a_kill_takes_away() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::ext4(1024);
    let to = disk.path().join("to");
    fs::create_dir(&to).expect("space");
    let lab = Lab::onto_port(Lab::new(), to.clone());
    let (mut running, socket) = record(&lab, &[]);
    lab.send(4000, 20_000.0, Faults::default(), Course::default());
    await_some("packets on the disk", || (packets(&told(&socket), "acknowledged") > 1000).then_some(()));
    disk.freeze();
    let before = packets(&told(&socket), "received");
    send_each(&lab, 4000..8000, |_, _| {});
    await_some("packets in memory", || (packets(&told(&socket), "received") >= before + 1000).then_some(()));
    let said = await_some("a stall that lasts", || {
        let said = told(&socket);
        let stall = said["recording"]["ring"]["longest_stall_seconds"].as_f64().unwrap_or(0.0);
        (stall > 0.5).then_some(said)
    });
    let [received, acknowledged, durable] =
        ["received", "acknowledged", "durable"].map(|which| packets(&said, which));
    assert!(received > acknowledged && acknowledged >= durable, "{received}, {acknowledged}, {durable}");
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    disk.thaw();
    await_some("its end", || running.is_over().then_some(()));
    let there = packets_there(&to.join("scan"), Trust::Acknowledged);
    assert!(there >= acknowledged, "{there} of {acknowledged} that were acknowledged are there");
    assert!(packets_there(&to.join("scan"), Trust::Durable) >= durable);
}

#[test]
fn what_comes_slowly_is_durable_after_a_while() {
    let lab = Lab::new();
    let (running, socket) = record(&lab, &[]);
    // Some blocks of about a megabyte; a part that is synced when it is full has 256 of them.
    lab.send(1500, 20_000.0, Faults::default(), Course::default());
    let durable = await_some("a checkpoint", || {
        Some(packets(&told(&socket), "durable")).filter(|packets| *packets > 0)
    });
    assert!(packets_there(&lab.to.join("scan"), Trust::Durable) >= durable);
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("all survive a loss of power"), "{ended:?}");
    assert_eq!(packets_there(&lab.to.join("scan"), Trust::Durable), 1500);
}

#[test]
fn a_recording_whose_files_are_removed_under_it_does_not_end_well() {
    let lab = Lab::new();
    let (running, _) = record(&lab, &["--silence", "2 s"]);
    for entry in fs::read_dir(lab.to.join("scan")).expect("its directory").flatten() {
        fs::remove_file(entry.path()).expect("a file");
    }
    lab.send(2000, 20_000.0, Faults::default(), Course::default());
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("No such file"), "{ended:?}");
}
