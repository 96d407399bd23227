//! Chunks that two recorders exchange: all of them once, and later only those that one of them does not have. And a
//! sender that behaves as jive5ab, byte by byte, or worse.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    time::Duration,
};

use nilometer_tests::{await_some, free_port, run};

use crate::service::{
    commanded::Station,
    copier::{Copier, Recorder, SCAN},
};

const LIMIT: Duration = Duration::from_mins(1);

/// Copies the chunks of [`SCAN`] from one recorder to another. Returns the bytes that were sent.
fn copy_chunks(from: &Recorder, to: &Recorder) -> u64 {
    let port = free_port();
    let mut source = Copier::connect(from.service.mark5, "source", port);
    let mut sink = Copier::connect(to.service.mark5, "sink", port);
    source.ask("vbs2net=nthread:2:1", &[0]);
    sink.ask("net2vbs=nthread:1:8", &[0]);
    sink.ask("net2vbs=open", &[0]);
    source.ask(&format!("vbs2net=connect:{SCAN}:127.0.0.1"), &[0]);
    await_some("all chunks", || {
        let fields = source.ask("tstat=", &[0]);
        (fields[1] != "vbs2net").then_some(())
    });
    let sent = source.ask("vbs2net?", &[0]);
    assert_eq!(sent[0], "inactive", "{sent:?}");
    let received = sink.ask("net2vbs?", &[0]);
    assert_eq!(sent.last(), received.last());
    source.ask("vbs2net=disconnect", &[0]);
    sink.ask("net2vbs=close", &[0]);
    received[1].parse().expect("bytes")
}

/// The chunks of [`SCAN`] on both disks of a recorder, with their lengths.
fn chunks(recorder: &Recorder) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for disk in &recorder.disks {
        let entries = fs::read_dir(disk.join(SCAN)).into_iter().flatten();
        for entry in entries.map(|entry| entry.expect("readable")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_chunk = name.rsplit('.').next().is_some_and(|end| end.parse::<u64>().is_ok());
            if is_chunk {
                found.push((name, entry.metadata().expect("there").len()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn only_missing_chunks_are_sent() {
    let (from, to) = (Recorder::start(), Recorder::start());
    let bytes = from.record();
    let sent = chunks(&from);
    assert!(sent.len() > 1, "{sent:?}");
    let all: u64 = sent.iter().map(|(_, length)| length).sum();
    assert_eq!(copy_chunks(&from, &to), all);
    assert_eq!(chunks(&to), sent);
    assert!(to.exported(SCAN) == bytes);
    let lanes = to.disks.each_ref().map(|disk| disk.join(SCAN));
    let verified = run(&[&["verify".into()][..], &lanes].concat());
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(copy_chunks(&from, &to), 0);
    let (lost, length) = &sent[1];
    for lane in &lanes {
        drop(fs::remove_file(lane.join(lost)));
    }
    assert_eq!(copy_chunks(&from, &to), *length);
    assert!(to.exported(SCAN) == bytes);
    from.end();
    to.end();
}

/// Connects to a receiver of chunks.
fn line_to(port: u16) -> TcpStream {
    let line = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    line.set_read_timeout(Some(LIMIT)).expect("a time");
    line
}

/// Sends a chunk of which only `sent` bytes come, and waits until the receiver closes the connection.
fn send_chunk(port: u16, name: &str, bytes: u64, sent: &[u8]) {
    let mut line = line_to(port);
    // A receiver that refuses the name closes the connection early.
    drop(line.write_all(format!("fileName: {name}\0fileSize: {bytes}\0\0").as_bytes()));
    drop(line.write_all(sent));
    if (sent.len() as u64) < bytes {
        drop(line.shutdown(Shutdown::Write));
    }
    drop(line.read_to_end(&mut Vec::new()));
}

/// Offers two chunks of `x`, and returns the reply.
fn offer(port: u16) -> String {
    let mut line = line_to(port);
    line.write_all(b"payloadSize: 26\0requestRsync: x\0\0x/x.00000000\0x/x.00000001\0").expect("it reads");
    line.shutdown(Shutdown::Write).expect("connected");
    let mut reply = String::new();
    line.read_to_string(&mut reply).expect("a reply");
    reply
}

fn names_below(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_chunk_is_there_when_all_of_it_is() {
    let recorder = Recorder::start();
    let port = free_port();
    let mut sink = Copier::connect(recorder.service.mark5, "sink", port);
    sink.ask(&format!("set_disks={}", recorder.disks[1].display()), &[0]);
    sink.ask("net2vbs=open", &[0]);
    let have_none = "listType: have\0rsyncReplySz: 0\0\0";
    assert_eq!(offer(port), have_none, "the shorter one of two lists");
    send_chunk(port, "x/x.00000000", 5, b"cut");
    await_some("the end of the chunk", || names_below(&recorder.disks[1].join("x")).is_empty().then_some(()));
    assert_eq!(offer(port), have_none, "a part is no chunk");
    send_chunk(port, "x/x.00000000", 5, b"whole");
    let chunk = recorder.disks[1].join("x/x.00000000");
    assert_eq!(fs::read(&chunk).expect("it was closed when it was there"), b"whole");
    assert_eq!(offer(port), "listType: need\0rsyncReplySz: 13\0\0x/x.00000001\0");
    assert!(names_below(&recorder.disks[0]).is_empty(), "the other disk was not selected");
    line_to(port).write_all(b"GET / HTTP/1.1\r\n\r\n\0\0").expect("the kernel takes it");
    assert_eq!(sink.ask("net2vbs?", &[0])[0], "active", "that disturbs nobody");
    sink.ask("net2vbs=close", &[0]);
    recorder.end();
}

#[test]
fn chunks_go_nowhere_else() {
    let recorder = Recorder::start();
    recorder.record();
    for name in ["../x.00000000", "x/../../y.00000000", "/etc/x.00000000", &format!("{SCAN}/{SCAN}.00000099")]
    {
        let port = free_port();
        let mut sink = Copier::connect(recorder.service.mark5, "sink", port);
        sink.ask("net2vbs=open", &[0]);
        let before = chunks(&recorder);
        send_chunk(port, name, 5, b"chunk");
        await_some("the refusal", || {
            let reply = Station::connect(recorder.service.mark5).say("runtime=sink;net2vbs?;");
            reply.contains("!net2vbs? 4 : inactive : ").then_some(())
        });
        assert_eq!(chunks(&recorder), before, "{name}");
        assert!(!recorder.home.path().join("x.00000000").exists());
        let log = recorder.service.stderr();
        assert!(log.contains("net2vbs: "), "{log}");
    }
    recorder.end();
}
