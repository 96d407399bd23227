//! Parts of a recording of which only the latest stays, dumped over HTTP while it goes on.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{FileExt, symlink},
    path::{Path, PathBuf},
};

use nilometer_tests::{FileSystem, Running, address, ask, await_some, may_mount, run};
use serde_json::{Value, json};

use super::lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, Parts};

/// A recorder with a directory for dumps.
pub(super) struct DumpLab {
    pub(super) lab: Lab,
    pub(super) running: Running,
    pub(super) http: SocketAddr,
    pub(super) dumps: PathBuf,
    pub(super) parts: Parts,
}

impl DumpLab {
    /// Records this number of frames and keeps `keep` of them.
    pub(super) fn new(frames: u64, keep: &str, dumps: Option<PathBuf>) -> Self {
        let frames = frames.to_string();
        DumpLab::over(Lab::new(2000, 1), &["--packets", &frames, "--keep", keep], dumps)
    }

    /// Records with these options.
    pub(super) fn over(lab: Lab, options: &[&str], dumps: Option<PathBuf>) -> Self {
        let dumps = dumps.unwrap_or_else(|| lab.path().join("dumps"));
        fs::create_dir_all(&dumps).expect("space");
        let root = dumps.to_str().expect("plain names");
        let running = lab.record(&[options, &["--http", "127.0.0.1:0", "--dumps", root]].concat());
        let http = address(&running, "http");
        let parts = lab.in_parts();
        DumpLab { lab, running, http, dumps, parts }
    }

    pub(super) fn json(&self, status: u16, method: &str, path: &str, body: &Value) -> Value {
        let (found, text) = ask(self.http, method, path, &body.to_string());
        assert_eq!(found, status, "{method} {path} {body}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Begins a dump with these keys and `to`, and returns its number.
    pub(super) fn begin(&self, mut keys: Value) -> u64 {
        keys["to"] = json!(self.dumps);
        self.json(202, "POST", "/dump", &keys)["id"].as_u64().expect("a number")
    }

    pub(super) fn report(&self, id: u64) -> Value {
        let dumps = self.json(200, "GET", "/dumps", &json!(null));
        let all = dumps["dumps"].as_array().expect("a list");
        all.iter().find(|dump| dump["id"] == id).expect("the service remembers it").clone()
    }

    /// Waits for a report that fits.
    pub(super) fn await_report(&self, id: u64, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        await_some(what, || Some(self.report(id)).filter(|report| fits(report)))
    }

    /// Waits until a dump is complete, and returns its report and its bytes.
    pub(super) fn complete(&self, id: u64) -> (Value, Vec<u8>) {
        let report = self.await_report(id, "a complete dump", |report| report["state"] != "running");
        assert_eq!((&report["state"], &report["error"]), (&"complete".into(), &Value::Null), "{report}");
        let path = Path::new(report["path"].as_str().expect("a path"));
        let bytes = fs::read(path).expect("it is there");
        assert_eq!(report["bytes"], bytes.len(), "{report}");
        let summary = fs::read_to_string(format!("{}.dump.json", path.display())).expect("a summary");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        assert_eq!((&summary["frames"], &summary["state"]), (&report["frames"], &report["state"]));
        (report, bytes)
    }

    pub(super) fn status(&self) -> Value {
        self.json(200, "GET", "/status", &json!(null))
    }

    /// Waits until this number of packets is on storage.
    pub(super) fn await_stored(&self, packets: u64) {
        await_some("stored packets", || {
            let status = self.status();
            (status["recording"]["acknowledged_packets"].as_u64() >= Some(packets)).then_some(())
        });
    }
}

#[test]
fn parts_are_dumped_while_the_recording_goes_on() {
    let mut lab = DumpLab::new(3000, "32 MB", None);
    let sent = lab.lab.sent(3000);
    let part = |first: usize, end: usize| &sent[first * FRAME..end * FRAME];
    lab.parts.send_up_to(1000);
    lab.await_stored(7 * FRAMES_OF_BLOCK as u64);
    let by_number = lab.begin(json!({"begin": "130", "end": "packet:640", "name": "numbers"}));
    let by_time =
        lab.begin(json!({"begin": "2025-05-08T06:13:20.1", "end": "2025-05-08T06:13:20.2", "name": "times"}));
    let future = lab.begin(json!({"begin": "300", "end": "2025y128d06h13m20.75s"}));
    let (report, bytes) = lab.complete(by_number);
    assert!(bytes == part(130, 640), "{report}");
    assert_eq!((&report["first_frame"], &report["begins_late"]), (&130.into(), &false.into()), "{report}");
    assert!(lab.complete(by_time).1 == part(200, 400));
    assert!(lab.report(by_time)["path"].as_str().expect("a path").ends_with("/times.vdif"));
    let waits =
        lab.await_report(future, "a dump that waits for frames", |report| report["waits_for"] == "frames");
    assert_eq!((&waits["state"], &waits["overtaken_frames"]), (&"running".into(), &0.into()), "{waits}");
    // Four at once are enough: this one, and three that wait for frames yet to come.
    let others: Vec<u64> = (0..3).map(|_| lab.begin(json!({"begin": "2000", "end": "2100"}))).collect();
    let refused = lab.json(429, "POST", "/dump", &json!({"to": lab.dumps}));
    assert!(refused["error"].as_str().expect("a reason").contains("4 dumps are running"), "{refused}");
    lab.parts.send_up_to(2900);
    let (report, bytes) = lab.complete(future);
    assert!(bytes == part(300, 1500), "{report}");
    for other in others {
        assert!(lab.complete(other).1 == part(2000, 2100));
    }
    lab.parts.send_up_to(3000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
    let left = fs::read_dir(&lab.dumps).expect("it is there").count();
    assert_eq!(left, 2 * 6, "six files with their summaries, and nothing else");
}

#[test]
fn frames_that_were_overwritten_before_a_dump_read_them_are_named() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::ext4(64);
    let frames = 40 * FRAMES_OF_BLOCK;
    let mut lab = DumpLab::new(frames as u64, "4 MB", Some(disk.path().join("dumps")));
    lab.parts.send_up_to(3 * FRAMES_OF_BLOCK as u64);
    let end = 30 * FRAMES_OF_BLOCK;
    let id = lab.begin(json!({"begin": "0", "end": end.to_string()}));
    lab.await_report(id, "the first frames", |report| {
        report["frames"].as_u64() >= Some(2 * FRAMES_OF_BLOCK as u64) && report["waits_for"] == "frames"
    });
    // The disk of the dump stands still, and the recording goes on.
    disk.freeze();
    lab.parts.send_up_to(frames as u64 - 1);
    lab.await_stored(35 * FRAMES_OF_BLOCK as u64);
    disk.thaw();
    let (report, bytes) = lab.complete(id);
    assert_eq!(bytes.len(), end * FRAME, "{report}");
    let invalid = lab.lab.invalid(&bytes[..], end as u64);
    let named = report["overtaken"].as_array().expect("ranges").iter().flat_map(|range| {
        let first = range["first"].as_u64().expect("a number");
        first..first + range["frames"].as_u64().expect("a number")
    });
    let named: Vec<u64> = named.collect();
    assert_eq!(invalid, named, "{report}");
    assert!(named.len() > 10 * FRAMES_OF_BLOCK, "{report}");
    assert_eq!(report["overtaken_frames"], named.len(), "{report}");
    // The ring has lost its first frames by now.
    let late = lab.begin(json!({"begin": "0", "end": (frames - 2 * FRAMES_OF_BLOCK).to_string()}));
    let (report, bytes) = lab.complete(late);
    let first = report["first_frame"].as_u64().expect("a number") as usize;
    assert!(report["begins_late"] == true && first > 0, "{report}");
    let sent = lab.lab.sent(frames as u64);
    assert!(bytes == sent[first * FRAME..(frames - 2 * FRAMES_OF_BLOCK) * FRAME], "{report}");
    let gone = lab.begin(json!({"begin": "0", "end": "1"}));
    let report = lab.await_report(gone, "the end", |report| report["state"] == "failed");
    assert!(report["error"].as_str().expect("a reason").contains("no frame before frame 1"), "{report}");
    lab.parts.send_up_to(frames as u64);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
}

#[test]
fn blocks_that_differ_from_their_checksums_are_named() {
    let options = ["--packets", "2000", "--keep", "32 MB", "--checksums"];
    let mut lab = DumpLab::over(Lab::new(2000, 1), &options, None);
    lab.parts.send_up_to(1000);
    lab.await_stored(7 * FRAMES_OF_BLOCK as u64);
    let part = json!({"begin": "100", "end": "700"});
    let (report, _) = lab.complete(lab.begin(part.clone()));
    assert_eq!((&report["verified_frames"], &report["damaged_frames"]), (&600.into(), &0.into()), "{report}");
    // Two bytes on the disk become others: in the block in which the part begins, and in the third one behind it.
    let file =
        fs::OpenOptions::new().write(true).open(lab.lab.lanes()[0].join("scan.0.vdif")).expect("a file");
    for frame in [5, 3 * FRAMES_OF_BLOCK + 7] {
        file.write_all_at(&[1, 2], (frame * FRAME + 4000) as u64).expect("space");
    }
    let (report, bytes) = lab.complete(lab.begin(part));
    assert_eq!(
        report["damaged"],
        json!([{"first": 100, "frames": 28}, {"first": 3 * FRAMES_OF_BLOCK, "frames": FRAMES_OF_BLOCK}]),
        "{report}"
    );
    assert_eq!(
        (&report["verified_frames"], &report["damaged_frames"]),
        (&444.into(), &156.into()),
        "{report}"
    );
    assert!(bytes != lab.lab.sent(700)[100 * FRAME..], "the file has the bytes of the disk");
    let (_, metrics) = ask(lab.http, "GET", "/metrics", "");
    for line in [
        "dumps_running 0",
        "dumps_ended_total{state=\"complete\"} 2",
        "dump_frames_total 1200",
        "dump_damaged_frames_total 156",
    ] {
        assert!(metrics.contains(&format!("nilometer_{line}\n")), "{line}: {metrics}");
    }
    lab.parts.send_up_to(2000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
}

#[test]
fn a_dump_onto_a_full_disk_fails_alone() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::tmpfs("size=2m");
    let mut lab = DumpLab::new(2000, "32 MB", Some(disk.path().into()));
    lab.parts.send_up_to(1000);
    let id = lab.begin(json!({"begin": "0", "end": "1900", "name": "part"}));
    let report = lab.await_report(id, "a failure", |report| report["state"] != "running");
    let why = report["error"].as_str().expect("a reason");
    assert!(report["state"] == "failed" && why.contains("No space left"), "{report}");
    assert_eq!(fs::read_dir(disk.path()).expect("it is there").count(), 0, "nothing is left");
    lab.parts.send_up_to(2000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
    let scan = lab.lab.lanes()[0].display().to_string();
    assert_eq!(run(&["verify", &scan]).code, Some(0));
}

#[test]
fn a_dump_is_ended_on_request_and_goes_only_where_it_may() {
    let mut lab = DumpLab::new(1000, "16 MB", None);
    let outside = tempfile::tempdir().expect("a temporary directory");
    symlink(outside.path(), lab.dumps.join("link")).expect("space");
    for to in [outside.path(), &lab.dumps.join("link"), Path::new("/nowhere"), &lab.dumps.join("..")] {
        let refused = lab.json(400, "POST", "/dump", &json!({"to": to}));
        assert!(refused["error"].as_str().expect("a reason").contains("--dumps"), "{to:?}: {refused}");
    }
    lab.json(400, "POST", "/dump", &json!({"to": lab.dumps, "begin": "soon"}));
    lab.json(400, "POST", "/dump", &json!({"to": lab.dumps, "name": "../x"}));
    lab.parts.send_up_to(300);
    let [ended, left] =
        ["one", "two"].map(|name| lab.begin(json!({"begin": "3000", "end": "5000", "name": name})));
    lab.json(400, "POST", "/dump", &json!({"to": lab.dumps, "name": "one"}));
    lab.await_report(ended, "a dump that waits", |report| report["waits_for"] == "frames");
    lab.json(200, "DELETE", &format!("/dumps/{ended}"), &json!(null));
    let report = lab.await_report(ended, "the end", |report| report["state"] != "running");
    assert_eq!((&report["state"], &report["error"]), (&"cancelled".into(), &Value::Null), "{report}");
    for wrong in ["7", "x", "-1"] {
        lab.json(404, "DELETE", &format!("/dumps/{wrong}"), &json!(null));
    }
    lab.json(405, "GET", "/dump", &json!(null));
    lab.json(405, "POST", "/dumps/1", &json!(null));
    assert_eq!(lab.report(left)["state"], "running");
    lab.parts.send_up_to(1000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
    fs::remove_file(lab.dumps.join("link")).expect("it is there");
    assert_eq!(fs::read_dir(&lab.dumps).expect("it is there").count(), 0, "no partial files");
}
