//! Data streams: a recording for each label among the addresses, with the names of jive5ab. And a recording that is
//! stopped while the service still prepares it.

use std::{fs, path::Path, time::Duration};

use nilometer_tests::{Ended, await_some, start};
use serde_json::Value;

use crate::service::{
    commanded::{Service, Station},
    instrument,
    sender::{Sender, recorded},
};

/// A command in a directory, to its end.
fn run_in(directory: &Path, arguments: &[&str]) -> Ended {
    start(directory, arguments).end(Duration::from_mins(1))
}

/// The bytes of an exported recording.
fn exported(directory: &Path, name: &str) -> Vec<u8> {
    let ended = run_in(directory, &["export", name, "--to", "copy.raw"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let bytes = fs::read(directory.join("copy.raw")).expect("the copy");
    fs::remove_file(directory.join("copy.raw")).expect("it is there");
    bytes
}

/// Two senders, which send to a port each.
fn senders() -> [Sender; 2] {
    [Sender::new(), Sender::new()]
}

#[test]
fn stations_give_each_port_a_recording_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let boards = senders();
    let raw = instrument(below, boards[0].port());
    let service = Service::start(below, &format!("instrument = \"{raw}\"\n"));
    let mut station = Station::connect(service.mark5);
    let [first, second] = boards.each_ref().map(Sender::port);
    for wrong in [format!("{first}=A"), format!("{first}=A : {second}"), format!("{first}=a_b : {second}=B")]
    {
        let reply = station.say(&format!("net_port = {wrong};"));
        assert!(reply.starts_with("!net_port= 8 : "), "{reply}");
    }
    assert_eq!(station.say(&format!("net_port = {first}=A : {second}=B;")), "!net_port= 0 ;");
    assert_eq!(station.say("net_port?"), format!("!net_port? 0 : {first}=A : {second}=B ;"));
    assert_eq!(station.say("record=on:scan;"), "!record= 0 ;");
    boards[0].send(0..300);
    boards[1].send(70_000..70_200);
    service.await_packets(500);
    let during = service.json(200, "GET", "/status", "");
    assert_eq!((&during["name"], &during["recording"]["came"]["packets"]), (&"scan".into(), &500.into()));
    assert_eq!(during["recording"]["lanes"].as_array().map(Vec::len), Some(1), "one directory: {during}");
    assert!(station.say("evlbi?").starts_with("!evlbi? 0 : total : 500 : loss : 0 "));
    assert!(station.say("record?").starts_with("!record? 0 : on : 1 : scan : "));
    assert_eq!(station.say("record=off;"), "!record= 0 ;");
    assert_eq!(recorded(below, "scan_dsA"), (0..300).collect::<Vec<_>>());
    assert_eq!(recorded(below, "scan_dsB"), (70_000..70_200).collect::<Vec<_>>());
    assert_eq!(exported(below, "scan_dsB").len(), 200_000);
    let scans = run_in(below, &["scan", "."]);
    assert!(scans.stdout.contains("scan_dsA") && scans.stdout.contains("scan_dsB"), "{scans:?}");
    let status = service.json(200, "GET", "/status", "");
    assert_eq!((&status["state"], &status["recordings"]), (&"configured".into(), &2.into()));
    assert_eq!(station.say("record=on:scan;record=off;"), "!record= 0 ;!record= 0 ;");
    assert!(below.join("scana_dsA").is_dir() && below.join("scana_dsB").is_dir(), "another letter for both");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn stations_give_each_sender_to_one_port_a_recording_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let stranger = Sender::new();
    let boards = [2, 3].map(|host| stranger.beside(host));
    let raw = instrument(below, stranger.port());
    let service = Service::start(below, &format!("instrument = \"{raw}\"\n"));
    let mut station = Station::connect(service.mark5);
    for (said, reply) in [
        ("datastream = add : A : 127.0.0.2/*;", "!datastream= 0 ;"),
        ("datastream = add : B : 127.0.0.3/*.*;", "!datastream= 0 ;"),
        ("datastream = reset;", "!datastream= 0 ;"),
        ("datastream?", "!datastream? 0 : 2 : A : B ;"),
        ("datastream? B", "!datastream? 0 : B : 127.0.0.3/*.* ;"),
        ("record=on:scan;", "!record= 0 ;"),
        ("datastream = clear;", "!datastream= 6 : not while it records ;"),
    ] {
        assert_eq!(station.say(said), reply, "{said}");
    }
    // Both boards begin with the same serial number.
    for part in [0..150, 150..300] {
        boards[0].send(part.clone());
        stranger.send(part.clone());
        boards[1].send(part);
    }
    service.await_packets(600);
    await_some("packets of the stranger", || {
        let status = service.json(200, "GET", "/status", "");
        (status["recording"]["ignored_packets"].to_string().contains("300")).then_some(())
    });
    assert_eq!(station.say("record=off;"), "!record= 0 ;");
    for name in ["scan_dsA", "scan_dsB"] {
        assert_eq!(recorded(below, name), (0..300).collect::<Vec<_>>(), "{name}");
    }
    assert_eq!(station.say("datastream = clear; datastream?"), "!datastream= 0 ;!datastream? 0 : 0 ;");
    assert_eq!(station.say("record=on:scan;"), "!record= 0 ;");
    boards[0].send(0..100);
    service.await_packets(100);
    assert_eq!(station.say("record=off;"), "!record= 0 ;");
    assert_eq!(recorded(below, "scan").len(), 100, "one recording again");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_command_records_each_sender_for_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let sender = Sender::new();
    let boards = [2, 3].map(|host| sender.beside(host));
    let raw = instrument(below, sender.port());
    fs::write(
        below.join("record.toml"),
        "to = \".\"\nname = \"scan\"\nbuffer = \"64 MiB\"\nreserve = \"0 B\"\npackets = 200\n\
         data_stream = [\"A=127.0.0.2\", \"B=127.0.0.3\"]\n",
    )
    .expect("space");
    let running = start(below, &["record", &raw, "--config", "record.toml"]);
    await_some("two recorders", || (running.stderr().matches(": listening").count() == 2).then_some(()));
    boards[0].send(0..200);
    boards[1].send(100..300);
    let ended = running.end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(recorded(below, "scan_dsA"), (0..200).collect::<Vec<_>>());
    assert_eq!(recorded(below, "scan_dsB"), (100..300).collect::<Vec<_>>());
}

#[test]
fn the_command_records_each_label_for_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let boards = senders();
    let raw = instrument(below, boards[0].port());
    let [first, second] = boards.each_ref().map(|board| format!("udp://127.0.0.1:{}", board.port()));
    let command = |first: &str, second: &str| {
        let words = ["record", &raw, "--to", ".", "--name", "scan", "--listen", first, "--listen", second];
        let limits = ["--buffer", "64 MiB", "--reserve", "0 B", "--packets", "200"];
        words.into_iter().chain(limits).map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = command(&format!("{first}=A"), &second);
    let refused = run_in(below, &refused.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("other addresses have a label"), "{refused:?}");
    assert!(!below.join("scan_dsA").exists());
    let words = command(&format!("{first}=A"), &format!("{second}=B"));
    let running = start(below, &words.iter().map(String::as_str).collect::<Vec<_>>());
    await_some("two recorders", || (running.stderr().matches(": listening").count() == 2).then_some(()));
    boards[0].send(0..200);
    boards[1].send(5_000..5_200);
    let ended = running.end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(recorded(below, "scan_dsA"), (0..200).collect::<Vec<_>>());
    assert_eq!(recorded(below, "scan_dsB"), (5_000..5_200).collect::<Vec<_>>());
    for name in ["scan_dsA", "scan_dsB"] {
        let verified = run_in(below, &["verify", name]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

/// Each recorder has one sender, and can't compare it with others.
#[test]
fn a_data_stream_that_brought_less_than_another_is_named_at_the_end() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let boards = senders();
    let raw = instrument(below, boards[0].port());
    let [first, second] = boards.each_ref().map(Sender::port);
    let [first, second] =
        [(first, "A"), (second, "B")].map(|(port, label)| format!("udp://127.0.0.1:{port}={label}"));
    let words = ["record", &raw, "--to", ".", "--name", "scan", "--listen", &first, "--listen", &second];
    let limits = ["--buffer", "64 MiB", "--reserve", "0 B", "--packets", "2500", "--silence", "2s"];
    let running = start(below, &[&words[..], &limits].concat());
    await_some("two recorders", || (running.stderr().matches(": listening").count() == 2).then_some(()));
    boards[0].send(0..200);
    boards[1].send(0..2500);
    let ended = running.end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let named = "scan_dsA: 200 kB came, and 2.5 MB of scan_dsB: its sender was silent for a part of the time";
    assert!(
        ended.stderr.contains(named) && ended.stderr.contains("1 of 2 data streams are not whole"),
        "{ended:?}"
    );
    assert_eq!(recorded(below, "scan_dsA"), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_recording_that_is_stopped_while_it_is_prepared_does_not_begin() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let sender = Sender::new();
    let raw = instrument(below, sender.port());
    let service = Service::start(below, &format!("instrument = \"{raw}\"\n"));
    let mut withdrawn = 0;
    await_some("an order to stop that came in time", || {
        let at = service.mark5;
        let on = std::thread::spawn(move || Station::connect(at).say("record=on:scan;"));
        let mut station = Station::connect(at);
        let off = await_some("the order to record", || {
            let reply = station.say("record=off;");
            assert!(!reply.starts_with("!record= 5"), "{reply}");
            reply.starts_with("!record= 0").then_some(reply)
        });
        let on = on.join().expect("no panic");
        let status = service.json(200, "GET", "/status", "");
        assert_eq!((&status["state"], &status["name"]), (&"configured".into(), &Value::Null), "{on} {off}");
        if on.starts_with("!record= 6 : it was stopped before it began") {
            withdrawn += 1;
        }
        (withdrawn > 0).then_some(())
    });
    sender.send(0..10);
    let status = service.json(200, "GET", "/status", "");
    let begun = status["recordings"].as_u64().expect("a number");
    let directories =
        fs::read_dir(below).expect("it is there").flatten().filter(|one| one.path().is_dir()).count();
    assert_eq!(directories as u64, begun, "nothing is left of those that never began");
    assert_eq!(station_records(&service), "!record= 0 ;");
    sender.send(0..10);
    service.await_packets(10);
    assert_eq!(service.end(), Some(0));
}

fn station_records(service: &Service) -> String {
    Station::connect(service.mark5).say("record=on:later;")
}
