//! Data streams of which one has ended, is silent or hears only strangers, while others go on. The recorder counts
//! every packet that comes and is not kept, with its cause. And dumps of data streams, and their memory.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nilometer_tests::{Ended, Running, await_some, start};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service::{
    commanded::Service,
    instrument,
    sender::{Sender, recorded},
};

const LIMIT: Duration = Duration::from_mins(1);
const STREAMS: &str = "data_stream = [\"A=127.0.0.2\", \"B=127.0.0.3\"]\n";

/// A stranger, and the senders of the data streams A and B, all to one port.
fn stranger_and_boards() -> (Sender, [Sender; 2]) {
    let stranger = Sender::new();
    let boards = [2, 3].map(|host| stranger.beside(host));
    (stranger, boards)
}

fn status(service: &Service) -> Value {
    service.json(200, "GET", "/status", "")
}

/// Records both data streams with these options.
fn record(below: &Path, port: u16, options: &[&str]) -> Running {
    let raw = instrument(below, port);
    let streams = ["--data-stream", "A=127.0.0.2", "--data-stream", "B=127.0.0.3"];
    let words = ["record", &raw, "--to", ".", "--name", "scan", "--reserve", "0 B"];
    start(below, &[&words[..], &streams, options].concat())
}

fn await_listening(running: &Running) {
    await_some("two recorders", || (running.stderr().matches(": listening").count() == 2).then_some(()));
}

#[test]
fn packets_to_a_data_stream_that_has_ended_are_counted_and_its_state_is_true() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let (_, boards) = stranger_and_boards();
    let raw = instrument(below, boards[0].port());
    let service = Service::start(below, &format!("instrument = \"{raw}\"\npackets = 100\n{STREAMS}"));
    assert_eq!(status(&service)["configuration"]["data_stream"], json!(["A=127.0.0.2", "B=127.0.0.3"]));
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    let begun = service.json(200, "POST", "/start", "");
    let states = |status: &Value| {
        let streams = status["recording"]["data_streams"].as_array().expect("a list");
        streams.iter().map(|stream| stream["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(states(&begun), ["listening", "listening"], "{begun}");
    boards[0].send(0..100);
    boards[1].send(0..60);
    await_some("the end of A", || (states(&status(&service)) == ["ended", "recording"]).then_some(()));
    boards[0].send(100..150);
    let after = await_some("packets behind the end", || {
        Some(status(&service)).filter(|status| status["recording"]["packets_after_end"] == 50)
    });
    assert_eq!((&after["state"], &after["recording"]["ended_by"]), (&"recording".into(), &Value::Null));
    let streams = &after["recording"]["data_streams"];
    assert_eq!((&streams[0]["name"], &streams[0]["ended_by"]), (&"scan_dsA".into(), &"packets".into()));
    let late = [0, 1].map(|at| streams[at]["packets_after_end"].clone());
    assert_eq!(late, [50, 0], "{after}");
    let metrics = service.ask("GET", "/metrics", "").1;
    for line in [
        "packets_after_end_total 50",
        "data_stream_ended{stream=\"scan_dsA\"} 1",
        "data_stream_ended{stream=\"scan_dsB\"} 0",
        "data_stream_packets_after_end_total{stream=\"scan_dsA\"} 50",
    ] {
        assert!(metrics.contains(&format!("nilometer_{line}\n")), "{line}: {metrics}");
    }
    for line in ["scan_dsA has ENDED (packets)", "which has ended, and are NOT RECORDED"] {
        await_some(line, || service.stderr().contains(line).then_some(()));
    }
    let stopped = service.json(200, "POST", "/stop", "");
    assert_eq!(states(&stopped), ["ended", "ended"], "{stopped}");
    let file = &stopped["recording"]["file"];
    let frames = [
        &file["frames_acknowledged"],
        &file["frames_durable"],
        &stopped["recording"]["acknowledged_packets"],
    ];
    assert_eq!(frames, [100, 100, 160], "the file is that of A: {stopped}");
    assert_eq!(recorded(below, "scan_dsA"), (0..100).collect::<Vec<_>>());
    assert_eq!(recorded(below, "scan_dsB"), (0..60).collect::<Vec<_>>());
    let summary = fs::read_to_string(below.join("scan_dsA/scan_dsA.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let found =
        [&summary["recording"]["packets_after_end"], &summary["recording"]["ended_by"], &summary["fault"]];
    assert_eq!(found, [&json!(50), &json!("packets"), &Value::Null], "it has all that the user wanted");
    assert_eq!(service.end(), Some(0));
}

/// Sends from a board until `meanwhile` is over.
fn while_sent<T>(board: &Sender, meanwhile: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let begins = (0..).step_by(10).take_while(|_| !is_over.load(Ordering::Relaxed));
            begins.for_each(|begin| board.send(begin..begin + 10));
        });
        let done = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

#[test]
fn a_silent_data_stream_is_named_and_its_later_packets_are_a_loss() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let (_, boards) = stranger_and_boards();
    let running = record(below, boards[0].port(), &["--buffer", "64 MiB", "--silence", "3 s"]);
    await_listening(&running);
    let await_line = |line: &str| {
        await_some(line, || running.stderr().contains(line).then_some(()));
    };
    while_sent(&boards[1], || {
        boards[0].send(0..100);
        await_line("scan_dsA is SILENT");
        await_line("scan_dsA has ENDED (silence)");
        boards[0].send(100..140);
        await_line("packets still come to scan_dsA, which has ended, and are NOT RECORDED");
    });
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let fault = "scan_dsA: 40 packets came after this data stream had ended, and are not recorded: it had been silent";
    assert!(ended.stderr.contains(fault), "{ended:?}");
    assert!(ended.stdout.contains("discarded   packets: 40 after its end (silence)"), "{ended:?}");
    assert_eq!(recorded(below, "scan_dsA"), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_data_stream_without_packets_says_that_strangers_sent_some() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let (stranger, boards) = stranger_and_boards();
    let raw = instrument(below, stranger.port());
    let service = Service::start(below, &format!("instrument = \"{raw}\"\n{STREAMS}"));
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    service.json(200, "POST", "/start", "");
    boards[0].send(0..100);
    stranger.send(0..300);
    await_some("packets of the stranger, counted once", || {
        let now = status(&service);
        let ignored = now["recording"]["ignored_packets"].as_array().expect("a list");
        ignored.contains(&json!(["not-allowed", 300])).then_some(())
    });
    service.json(200, "POST", "/stop", "");
    let live = service.json(200, "GET", "/live", "");
    let faults: Vec<_> =
        live["ended"].as_array().expect("a list").iter().map(|scan| &scan["fault"]).collect();
    let said = faults[0].as_str().expect("B has none of its packets");
    let expected = "no packet of the stream came: 300 packets came from other senders, such as 127.0.0.1; ";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_memory_that_a_refusal_advises_suffices_for_all_data_streams() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let (_, boards) = stranger_and_boards();
    let refused =
        |memory: &str| -> Ended { record(below, boards[0].port(), &["--memory", memory]).end(LIMIT) };
    let ended = refused("20 MiB");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let advice = ended.stderr.split_once("write --memory \"").expect("it advises a size").1;
    let advice = advice.split('"').next().expect("a size");
    assert!(ended.stderr.contains("for each of 2 data streams"), "{ended:?}");
    let running = record(below, boards[0].port(), &["--memory", advice]);
    await_listening(&running);
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    assert!(ended.stderr.contains("scan_dsA: no packet came"), "{ended:?}");
}

#[test]
fn a_dump_is_of_all_data_streams_or_of_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let dumps = below.join("dumps");
    fs::create_dir(&dumps).expect("space");
    let (_, boards) = stranger_and_boards();
    let raw = instrument(below, boards[0].port());
    let roots = format!("dumps = [\"{}\"]\n", dumps.display());
    let service = Service::reached(below, &roots, &format!("instrument = \"{raw}\"\n{STREAMS}"));
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    service.json(200, "POST", "/start", "");
    boards[0].send(0..2500);
    boards[1].send(5000..7500);
    let dump = |status, mut keys: Value| {
        keys["to"] = json!(dumps);
        service.json(status, "POST", "/dump", &keys.to_string())
    };
    let ended = |id: &Value| {
        await_some("the end of a dump", || {
            let all = service.json(200, "GET", "/dumps", "");
            let own = all["dumps"].as_array().expect("a list").iter().find(|dump| dump["id"] == *id)?.clone();
            (own["state"] != "running").then_some(own)
        })
    };
    let numbers = |report: &Value| {
        assert_eq!((&report["state"], &report["error"]), (&"complete".into(), &Value::Null), "{report}");
        let bytes = fs::read(report["path"].as_str().expect("a path")).expect("it is there");
        let packets = bytes.chunks_exact(1000);
        packets.map(|packet| u64::from_le_bytes(packet[..8].try_into().expect("8 bytes"))).collect::<Vec<_>>()
    };
    let part = json!({"begin": "100", "end": "600", "name": "event", "rate": "100 MB/s"});
    let begun = dump(202, part);
    let both = begun["dumps"].as_array().expect("a dump for each").clone();
    assert_eq!(both.len(), 2, "{begun}");
    let [first, second] = [0, 1].map(|at| ended(&both[at]["id"]));
    assert_eq!(numbers(&first), (100..600).collect::<Vec<_>>());
    assert_eq!(numbers(&second), (5100..5600).collect::<Vec<_>>());
    for label in ["A", "B"] {
        let name = format!("event_ds{label}.raw.dump.json");
        assert!(dumps.join(&name).is_file(), "{name}");
    }
    let one = dump(202, json!({"begin": "0", "end": "10", "name": "one", "data_stream": "B"}));
    assert_eq!(one["recording"], "scan_dsB", "{one}");
    assert_eq!(numbers(&ended(&one["id"])), (5000..5010).collect::<Vec<_>>());
    let wrong = dump(400, json!({"data_stream": "C"}));
    assert_eq!(wrong["error"], "data_stream: write one of A, B");
    // The summary of a dump that somebody took away would describe another one.
    fs::remove_file(dumps.join("one.raw")).expect("it is there");
    let again = dump(202, json!({"begin": "0", "end": "20", "name": "one", "data_stream": "B"}));
    let again = ended(&again["id"]);
    let why = again["error"].as_str().expect("a reason");
    assert!(
        again["state"] == "failed" && why.contains("one.raw.dump.json exists: write another name"),
        "{again}"
    );
    service.json(200, "POST", "/stop", "");
    assert_eq!(service.end(), Some(0));
}
