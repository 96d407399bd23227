//! What is said to be on the disk is there after a loss of power: samples of a record, a recording, its summary, an export.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{
    Ended, FileSystem, PowerLoss, address, await_some, free_port, may_mount, run, start, status,
};
use serde_json::Value;

const PLAN: &str = "title = \"t\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"w\"\n[stage.workload.stream]\n\
                    file_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";
const LIMIT: Duration = Duration::from_mins(2);

fn samples(record: &Path) -> usize {
    nilometer_record::read(record).expect("it is valid").samples.len()
}

#[test]
fn a_sample_is_on_the_disk_when_the_next_is_taken() {
    if !may_mount() {
        return;
    }
    let disk = PowerLoss::ext4(300);
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("target")).expect("a directory");
    fs::write(home.path().join("plan.toml"), PLAN).expect("space");
    let record = disk.path().join("r.sqlite");
    let arguments =
        ["evaluate", "target", "--plan", "plan.toml", "--record", record.to_str().expect("a plain name")];
    let ended = start(home.path(), &arguments).end(LIMIT);
    assert!(ended.has_answered(), "{}", ended.stderr);
    let after = disk.after_power_loss("after");
    assert_eq!(samples(&after.path().join("r.sqlite")), samples(&record));
    assert!(samples(&record) >= 4, "a write and a read, twice");
}

/// A recording of packets of 8 kB on this disk.
fn recorded(disk: &Path, meanwhile: impl FnOnce(SocketAddr)) -> Ended {
    let home = tempfile::tempdir().expect("a temporary directory");
    let listen = format!("udp://127.0.0.1:{}", free_port());
    let to = disk.to_str().expect("a plain name");
    let options = ["--buffer", "64 MiB", "--reserve", "1 MiB", "--packets", "4000", "--http", "127.0.0.1:0"];
    let arguments =
        [&["record", "fila10g-512m", "--to", to, "--name", "scan", "--listen", &listen][..], &options];
    let mut recorder = start(home.path(), &arguments.concat());
    recorder.await_said("recording scan");
    let send = |packets: &str| {
        let sent =
            run(&["simulate", "fila10g-512m", "--to", &listen, "--rate", "16 MB/s", "--packets", packets]);
        assert!(sent.has_sent_all(), "{}", sent.stderr);
    };
    send("2000");
    meanwhile(address(&recorder, "http"));
    send("2000");
    recorder.end(LIMIT)
}

fn durable_packets(http: SocketAddr) -> u64 {
    status(http)["recording"]["durable_packets"].as_u64().unwrap_or(0)
}

/// Frames of 8032 B that a reader finds after the loss of power.
fn frames_there(disk: &FileSystem) -> u64 {
    let recording = Recording::open(&[disk.path().join("scan")], Trust::Durable).expect("a recording");
    recording.index.frames.iter().map(|(_, place)| u64::from(place.extent.size) / 8032).sum()
}

#[test]
fn what_is_called_durable_is_there_after_a_loss_of_power() {
    if !may_mount() {
        return;
    }
    let disk = PowerLoss::ext4(600);
    let ended = recorded(disk.path(), |http| {
        // Less than a part of the file: without checkpoints nothing would be.
        let said = await_some("a checkpoint", || Some(durable_packets(http)).filter(|packets| *packets > 0));
        let after = disk.after_power_loss("during");
        assert!(frames_there(&after) >= said, "{} of {said}", frames_there(&after));
        let verified = run(&[Path::new("verify"), Path::new("--durable"), &after.path().join("scan")]);
        assert!(
            verified.stdout.contains("missing     none") && !verified.stdout.contains("damaged"),
            "{verified:?}"
        );
    });
    assert!(ended.stdout.contains("all survive a loss of power"), "{ended:?}");
    let after = disk.after_power_loss("after");
    assert_eq!(frames_there(&after), 4000);
    let summary =
        fs::read_to_string(after.path().join("scan/scan.summary.json")).expect("it is there, whole");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["recording"]["durable_packets"], 4000);
    let exported = disk.path().join("scan.vdif");
    let arguments = ["export", "--verify", "--to"].map(Path::new);
    let export = run(&[&arguments[..], &[&exported, &disk.path().join("scan")]].concat());
    assert_eq!(export.code, Some(0), "{export:?}");
    let copied = disk.after_power_loss("copied");
    let there = fs::read(copied.path().join("scan.vdif")).expect("the copy has its name");
    assert!(there == fs::read(&exported).expect("the copy"), "and its bytes");
}
