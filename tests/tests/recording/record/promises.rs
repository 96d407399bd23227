//! What is said of a recording while it runs and when it has ended: what is received, what a kill leaves, what a loss of power
//! leaves, and that it is there at all.

use std::{fs, net::SocketAddr, os::unix::fs::MetadataExt, path::Path};

use nilometer_intake::transport::{StreamCourse, faults::Faults};
use nilometer_recording::{
    journal::{Entry, RECORD, prefix},
    reader::{Recording, Trust},
};
use nilometer_storage::process::BootId;
use nilometer_tests::{FileSystem, Running, address, await_some, may_mount, run, status};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::record::{FRAME, LIMIT, Lab, faults::send_each};

fn packets(told: &Value, which: &str) -> u64 {
    told["recording"][format!("{which}_packets")].as_u64().unwrap_or(0)
}

/// Packets that a reader finds.
fn packets_there(directory: &Path, trust: Trust) -> u64 {
    let recording = Recording::open(&[directory.to_path_buf()], trust).expect("a recording");
    recording.index.frames.iter().map(|(_, place)| u64::from(place.extent.size) / FRAME as u64).sum()
}

/// A recording, and where it is asked.
fn record(lab: &Lab, more: &[&str]) -> (Running, SocketAddr) {
    let options = ["--reserve", "1 MiB", "--checksums"];
    let running = lab.record(&[&options[..], more].concat());
    let http = address(&running, "http");
    (running, http)
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
    let (mut running, http) = record(&lab, &[]);
    lab.send(4000, 20_000.0, Faults::default(), StreamCourse::default());
    await_some("packets on the disk", || (packets(&status(http), "acknowledged") > 1000).then_some(()));
    disk.freeze();
    let before = packets(&status(http), "received");
    send_each(&lab, 4000..8000, |_, _| {});
    await_some("packets in memory", || (packets(&status(http), "received") >= before + 1000).then_some(()));
    let said = await_some("a stall that lasts", || {
        let said = status(http);
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
    let (running, http) = record(&lab, &[]);
    // Some blocks of about a megabyte; a part that is synced when it is full has 256 of them.
    lab.send(1500, 20_000.0, Faults::default(), StreamCourse::default());
    let durable =
        await_some("a checkpoint", || Some(packets(&status(http), "durable")).filter(|packets| *packets > 0));
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
    let (running, _) = record(&lab, &["--packets", "2000", "--silence", "60 s"]);
    for entry in fs::read_dir(lab.to.join("scan")).expect("its directory").flatten() {
        fs::remove_file(entry.path()).expect("a file");
    }
    lab.send(2000, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("No such file"), "{ended:?}");
}

#[test]
fn what_a_killed_recorder_had_reserved_is_freed_and_what_it_recorded_stays() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::xfs(1200);
    let to = disk.path().join("to");
    fs::create_dir(&to).expect("space");
    let lab = Lab::onto_port(Lab::new(), to.clone());
    let (mut running, http) = record(&lab, &[]);
    lab.send(1000, 20_000.0, Faults::default(), StreamCourse::default());
    await_some("packets on the disk", || (packets(&status(http), "acknowledged") > 500).then_some(()));
    let file = to.join("scan/scan.vdif");
    let behind = || {
        let file = fs::metadata(&file).expect("the recording");
        (file.blocks() * 512).saturating_sub(file.len())
    };
    await_some("reserved space", || (behind() > 16 << 20).then_some(()));
    let cleaned = run(&[Path::new("clean"), &to]);
    assert!(
        cleaned.code == Some(0) && cleaned.stdout.contains("nothing to clean"),
        "it records: {cleaned:?}"
    );
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    await_some("its end", || running.is_over().then_some(()));
    let (reserved, there) = (behind(), packets_there(&to.join("scan"), Trust::Acknowledged));
    let before = fs::read(&file).expect("the recording");
    assert!(reserved > 16 << 20, "{reserved}");
    let cleaned = run(&[Path::new("clean"), &to]);
    assert!(cleaned.code == Some(0) && cleaned.stdout.contains("scan.vdif"), "{cleaned:?}");
    assert!(behind() < 1 << 20, "{} of {reserved} are left", behind());
    assert!(fs::read(&file).expect("the recording") == before, "not a byte of it has changed");
    assert_eq!(packets_there(&to.join("scan"), Trust::Acknowledged), there);
}

/// Puts another start of the machine into a journal, as if it had gone down while this was recorded.
fn as_of_another_start(journal: &Path) {
    let mut bytes = fs::read(journal).expect("a journal");
    let entries = prefix(&bytes).into_iter();
    for ((sequence, record), entry) in (0..).zip(bytes.chunks_exact_mut(RECORD)).zip(entries) {
        if let Entry::Boot { id: BootId(id), clock } = entry {
            Entry::Boot { id: BootId(id ^ 1), clock }.put(sequence, record);
        }
    }
    fs::write(journal, bytes).expect("space");
}

#[test]
fn what_was_in_the_cache_when_the_machine_went_down_is_not_called_right() {
    let lab = Lab::new();
    let mut running = lab.record(&["--reserve", "1 MiB"]);
    let http = address(&running, "http");
    lab.send(2000, 20_000.0, Faults::default(), StreamCourse::default());
    await_some("a checkpoint", || (packets(&status(http), "durable") > 0).then_some(()));
    send_each(&lab, 2000..3000, |_, _| {});
    await_some("more", || {
        let said = status(http);
        (packets(&said, "acknowledged") > packets(&said, "durable")).then_some(())
    });
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    await_some("its end", || running.is_over().then_some(()));
    let killed = lab.verify();
    assert!(!killed.stdout.contains("unproved"), "a kill leaves what was acknowledged: {killed:?}");
    as_of_another_start(&lab.to.join("scan/scan.0.journal"));
    let after = lab.verify();
    assert_eq!(after.code, Some(1), "{after:?}");
    assert!(after.stdout.contains("unproved") && after.stderr.contains("may be damaged"), "{after:?}");
}
