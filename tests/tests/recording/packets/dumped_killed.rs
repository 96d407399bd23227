//! A recorder that is killed while a dump runs: the recording keeps all that was acknowledged, and nothing that looks
//! whole is left of the dump.

use std::{fs, net::UdpSocket, path::Path};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{await_some, run, undamaged};
use rustix::process::Signal;
use serde_json::json;

use super::{
    dumped::DumpLab,
    lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab},
};

const BLOCKS: u64 = 20;

/// The names in the directory for dumps.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("plain names")).collect()
}

/// The blocks that the recording's journal acknowledges.
fn acknowledged(directory: &Path) -> Vec<u64> {
    let recording = Recording::open(&[directory.to_owned()], Trust::Acknowledged).expect("it has blocks");
    recording.index.frames.numbers(0..u64::MAX).collect()
}

#[test]
fn a_recorder_that_is_killed_during_a_dump_leaves_nothing_that_looks_whole() {
    let mut lab = DumpLab::over(Lab::new(2000, 1), &["--keep", "64 MB"], None);
    let directory = lab.lab.lanes()[0].clone();
    lab.parts.send_up_to(BLOCKS * FRAMES_OF_BLOCK as u64);
    lab.await_stored((BLOCKS - 1) * FRAMES_OF_BLOCK as u64);
    let part = json!({"begin": "0", "end": "100000", "name": "part"});
    let id = lab.begin(part);
    lab.await_report(id, "frames of the dump", |report| report["frames"].as_u64() > Some(0));
    let partial = names(&lab.dumps);
    assert!(partial.len() == 1 && partial[0].ends_with(".partial"), "{partial:?}");
    let clean = |lab: &DumpLab| run(&["clean".as_ref(), lab.dumps.as_os_str()]);
    let early = clean(&lab);
    assert_eq!(names(&lab.dumps), partial, "a dump that runs stays: {early:?}");
    let before = acknowledged(&directory);
    lab.running.signal(Signal::KILL);
    await_some("the port", || UdpSocket::bind(("127.0.0.1", lab.lab.port)).ok());
    assert_eq!(names(&lab.dumps), partial, "no other name appears");
    let scanned = run(&["scan".as_ref(), lab.dumps.as_os_str()]);
    assert!(scanned.code != Some(0) && !scanned.stdout.contains("part.vdif\n"), "{scanned:?}");
    let after = acknowledged(&directory);
    assert!(
        before.len() as u64 >= BLOCKS - 1 && before.iter().all(|block| after.contains(block)),
        "{before:?}"
    );
    let verified = run(&["verify".as_ref(), directory.as_os_str()]);
    assert_eq!(verified.code, Some(1), "it did not end in order: {verified:?}");
    assert_eq!(undamaged(&verified), after.len() as u64, "{verified:?}");
    let copy = lab.dumps.join("copy");
    run(&["export".as_ref(), directory.as_os_str(), "--to".as_ref(), copy.as_os_str()]);
    let bytes = fs::read(&copy).expect("the export of the recording that did not end");
    let sent = lab.lab.sent(BLOCKS * FRAMES_OF_BLOCK as u64);
    assert!(bytes[..] == sent[..bytes.len()] && bytes.len() == after.len() * FRAMES_OF_BLOCK * FRAME);
    fs::remove_file(&copy).expect("it is there");
    let cleaned = clean(&lab);
    assert!(cleaned.code == Some(0) && cleaned.stdout.contains(&partial[0]), "{cleaned:?}");
    assert!(names(&lab.dumps).is_empty(), "{:?}", names(&lab.dumps));
    drop(lab.running.end(LIMIT));
}
