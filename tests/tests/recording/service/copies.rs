//! Copies of recordings and files between two recorders, commanded as by m5copy, and all their bytes.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    time::Duration,
};

use nilometer_tests::{await_some, free_port, run};
use rustix::net::sockopt::set_socket_linger;

use crate::service::{
    commanded::Station,
    copier::{Copier, FRAME, MODE, Recorder, SCAN, copy_to_file, listener},
};

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_recording_is_copied_into_a_file_of_another_recorder_and_resumed() {
    let (from, to) = (Recorder::start(), Recorder::start());
    let bytes = from.record();
    let file = to.file("copy.vdif");
    assert_eq!(copy_to_file(&from, &to, &file, "n"), bytes.len() as u64);
    assert!(fs::read(&file).expect("it is there") == bytes);
    let mut sink = Copier::connect(to.service.mark5, "again", free_port());
    let refused = sink.ask(&format!("net2file=open:{},n", file.display()), &[4]);
    assert!(refused[0].contains("File exists"), "m5copy looks for these words: {refused:?}");
    // A copy that was cut goes on where it was.
    let cut = 100 * FRAME as u64 + 7;
    fs::File::options().write(true).open(&file).and_then(|file| file.set_len(cut)).expect("space");
    assert_eq!(copy_to_file(&from, &to, &file, "a"), bytes.len() as u64 - cut);
    assert!(fs::read(&file).expect("it is there") == bytes);
    assert_eq!(copy_to_file(&from, &to, &file, "a"), 0, "all of it is there");
    assert!(fs::read(&file).expect("it is there") == bytes);
    from.end();
    to.end();
}

#[test]
fn a_file_becomes_a_recording_of_another_recorder() {
    let (from, to) = (Recorder::start(), Recorder::start());
    let bytes = from.record();
    let file = from.file("plain.vdif");
    fs::write(&file, &bytes).expect("space");
    let port = free_port();
    let mut source = Copier::connect(from.service.mark5, "source", port);
    let mut sink = Copier::connect(to.service.mark5, "sink", port);
    for command in ["record=mk6:0", "net_protocol=::1M:8", "record=nthread:1:4"] {
        sink.ask(command, &[0]);
    }
    // m5copy makes the mode of the format, the tracks, the rate of a track and the bytes of a frame.
    let form = source.ask(&format!("file_check?::{}", file.display()), &[0]);
    assert_eq!([&form[0], &form[1], &form[4], &form[6]], ["VDIF", "2", "16Mbps", "4032"], "{form:?}");
    sink.ask("mode=VDIF_4000-32-2-1", &[0]);
    assert!(sink.ask("record=on:copied", &[0]).is_empty(), "the name is free");
    source.ask(&format!("file2net=connect:127.0.0.1:{}", file.display()), &[0]);
    assert!(source.turn_on("file2net", "", ""));
    assert_eq!(source.await_sent("file2net"), bytes.len() as u64);
    sink.await_received("record?", bytes.len() as u64);
    source.ask("file2net=disconnect", &[0]);
    sink.ask("record=off", &[0]);
    assert!(to.exported("copied") == bytes);
    let lanes = to.disks.each_ref().map(|disk| disk.join("copied"));
    assert!(lanes.iter().all(|lane| lane.is_dir()), "it lies on both disks");
    let verified = run(&[&["verify".into()][..], &lanes].concat());
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(sink.ask("record=on:copied", &[0]), ["copieda"], "m5copy skips a recording that is there");
    sink.ask("record=off", &[0]);
    assert!(!to.disks[0].join("copieda").exists(), "nothing came");
    // The copied recording is a source too.
    drop(sink);
    let mut again = Copier::connect(to.service.mark5, "again", port);
    again.ask("scan_set=copied", &[0]);
    assert_eq!(again.ask("scan_check?", &[0])[2..4], ["VDIF", "2"]);
    from.end();
    to.end();
}

#[test]
fn a_recording_becomes_a_file_of_the_same_recorder_and_its_settings_stay() {
    let recorder = Recorder::start();
    let bytes = recorder.record();
    let mut station = Station::connect(recorder.service.mark5);
    let settings = ["mode?", "net_port?", "net_protocol?", "mtu?"];
    let before = settings.map(|query| station.say(query));
    assert!(before[0].contains(MODE), "{before:?}");
    let recorder = recorder.restarted();
    let mut copier = Copier::connect(recorder.service.mark5, "copier", free_port());
    copier.ask("record=mk6:0", &[0]);
    // The recording of the service before.
    copier.ask(&format!("scan_set={SCAN}::"), &[0]);
    let checked = copier.ask("scan_check?", &[0]);
    assert_eq!([&checked[0], &checked[1], &checked[2], &checked[3]], ["?", SCAN, "VDIF", "2"], "{checked:?}");
    assert_eq!([&checked[6], &checked[7], &checked[8]], ["16Mbps", "0", "4032"], "{checked:?}");
    let file = recorder.file("copy.m5a");
    copier.ask(&format!("disk2file={}:::n", file.display()), &[1]);
    await_some("the copy", || (copier.ask("disk2file?", &[0])[0] == "inactive").then_some(()));
    assert!(fs::read(&file).expect("it is there") == bytes);
    let mut station = Station::connect(recorder.service.mark5);
    assert_eq!(settings.map(|query| station.say(query)), before, "a runtime has settings of its own");
    copier.ask("runtime=copier:delete", &[0]);
    assert_eq!(copier.ask("runtime?", &[0]), ["0", "1"]);
    for refused in ["net2file=open:x,n", "disk2net=connect:127.0.0.1"] {
        copier.ask(refused, &[6]);
    }
    recorder.end();
}

#[test]
fn a_copy_waits_while_the_recorder_records() {
    let (from, to) = (Recorder::start(), Recorder::start());
    let bytes = from.record();
    let port = free_port();
    let mut source = Copier::connect(from.service.mark5, "source", port);
    let mut sink = Copier::connect(to.service.mark5, "sink", port);
    let file = to.file("copy.vdif");
    sink.ask(&format!("net2file=open:{},n", file.display()), &[0]);
    source.ask(&format!("scan_set={SCAN}"), &[0]);
    source.ask("disk2net=connect:127.0.0.1", &[0, 1]);
    from.begin_recording("ex_st_no2");
    assert!(source.turn_on("disk2net", "", ""));
    for _ in 0..20 {
        let fields = source.ask("disk2net?", &[0]);
        assert_eq!([&fields[0], &fields[3]], ["active", "0"], "{fields:?}");
    }
    from.end_recording();
    assert_eq!(source.await_sent("disk2net"), bytes.len() as u64);
    sink.await_received("net2file?", bytes.len() as u64);
    sink.ask("net2file=close", &[0]);
    assert!(fs::read(&file).expect("it is there") == bytes);
    from.end();
    to.end();
}

#[test]
fn a_sender_that_is_cut_off_is_no_complete_copy() {
    let recorder = Recorder::start();
    let bytes = recorder.record();
    // A sender that fails in the middle.
    let port = free_port();
    let mut sink = Copier::connect(recorder.service.mark5, "sink", port);
    sink.ask("net2file=open:cut.vdif,n", &[0]);
    let mut sender = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    sender.write_all(&bytes[..FRAME]).expect("it reads");
    sink.await_received("net2file?", FRAME as u64);
    set_socket_linger(&sender, Some(Duration::ZERO)).expect("a socket");
    drop(sender);
    await_some("the failure", || {
        let reply = Station::connect(recorder.service.mark5).say("runtime=sink;net2file?;");
        reply.contains("!net2file? 4 : inactive : ").then_some(())
    });
    sink.ask("net2file=close", &[0]);
    assert_eq!(fs::read(recorder.file("cut.vdif")).expect("it is kept to be resumed"), &bytes[..FRAME]);
    // A command that ends a sender in the middle: the other recorder must see that.
    let long = recorder.file("long.vdif");
    fs::write(&long, bytes.repeat(10)).expect("space");
    let (listener, port) = listener();
    let mut source = Copier::connect(recorder.service.mark5, "source", port);
    source.ask(&format!("file2net=connect:127.0.0.1:{}", long.display()), &[0]);
    let (mut receiver, _) = listener.accept().expect("it connects");
    assert!(source.turn_on("file2net", "", ""));
    source.ask("file2net=disconnect", &[0]);
    receiver.set_read_timeout(Some(LIMIT)).expect("a time");
    let mut came = Vec::new();
    let end = receiver.read_to_end(&mut came).map_err(|error| error.kind());
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset), "{} bytes came", came.len());
    recorder.end();
}

#[test]
fn a_sender_that_is_killed_is_no_complete_copy() {
    let recorder = Recorder::start();
    let long = recorder.file("long.vdif");
    fs::write(&long, recorder.record().repeat(10)).expect("space");
    let (listener, port) = listener();
    let mut source = Copier::connect(recorder.service.mark5, "source", port);
    source.ask(&format!("file2net=connect:127.0.0.1:{}", long.display()), &[0]);
    let (mut receiver, _) = listener.accept().expect("it connects");
    assert!(source.turn_on("file2net", "", ""));
    receiver.read_exact(&mut [0; FRAME]).expect("it sends");
    recorder.service.killed();
    receiver.set_read_timeout(Some(LIMIT)).expect("a time");
    let end = receiver.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn copies_reach_no_other_files_and_no_other_machines() {
    let recorder = Recorder::start();
    let bytes = recorder.record();
    let secret = recorder.file("secret.toml");
    fs::write(&secret, "token = \"hunter2\"\n").expect("space");
    let outside = recorder.home.path().join("outside.vdif");
    fs::write(&outside, &bytes).expect("space");
    symlink(&outside, recorder.file("link.vdif")).expect("a link");
    let port = free_port();
    let mut copier = Copier::connect(recorder.service.mark5, "copier", port);
    for file in [&secret, &outside, &recorder.file("link.vdif"), &recorder.file("none.vdif")] {
        copier.ask(&format!("file2net=connect:127.0.0.1:{}", file.display()), &[4]);
        copier.ask(&format!("file_check?::{}", file.display()), &[4]);
    }
    copier.ask("mode=VDIF_4000-32-1-2", &[0]);
    for (command, code) in [
        (format!("net2file=open:{},w", secret.display()), 4),
        (format!("net2file=open:{},a", recorder.file("link.vdif").display()), 4),
        (format!("net2file=open:{},n", outside.with_extension("new").display()), 8),
        ("net2file=open:../new,n".into(), 8),
        ("record=on:../x".into(), 8),
        ("record=on:.x".into(), 8),
        ("disk2net=connect:192.0.2.1".into(), 8),
        ("disk2net=connect:host".into(), 8),
        (format!("vbs2net=connect:{SCAN}:192.0.2.1"), 8),
        ("vbs2net=connect:..:127.0.0.1".into(), 4),
        ("net_protocol=udt".into(), 8),
        ("set_disks=/tmp".into(), 8),
        ("record=mk6:1".into(), 8),
    ] {
        copier.ask(&command, &[code]);
    }
    assert_eq!(fs::read_to_string(&secret).expect("it is there"), "token = \"hunter2\"\n");
    // Another connection may neither take a runtime's name nor its port.
    let mut other = Station::connect(recorder.service.mark5);
    assert!(other.say("runtime=copier:transient;").starts_with("!runtime= 6 : "));
    copier.ask("net2file=open:one.vdif,n", &[0]);
    let refused = other.say(&format!(
        "runtime=other:new;net_protocol=tcp;net_port={port};net2file=open:two.vdif,n;runtime=other:delete;"
    ));
    assert!(refused.contains("!net2file= 4 : can't listen at TCP port "), "{refused}");
    // A transient runtime ends with its connection, and its port is free again.
    drop(copier);
    await_some("the end of the runtime", || {
        (other.say("runtime?;") == "!runtime? 0 : 0 : 1 ;").then_some(())
    });
    await_some("the end of its listener", || TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()));
    await_some("the end of an empty file", || (!recorder.file("one.vdif").exists()).then_some(()));
    recorder.end();
}
