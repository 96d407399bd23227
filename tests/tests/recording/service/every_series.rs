//! Series over TCP that are aborted and start again, recorded by the service: one for each `arm`, or every one.

use std::{path::Path, time::Duration};

use nilometer_intake::{
    conformance::{SenderScenario, SentKind},
    transport::zeromq::{PushSocket, ZmqEndpoint},
};
use nilometer_model::Seed;
use nilometer_tests::{await_some, run};
use nilometer_wire::series::{MetadataField, MetadataValue, SeriesName};
use serde_json::Value;

use crate::{
    series::{
        detector::{Detector, start_of},
        lab::SeriesLab,
    },
    service::commanded::Service,
};

/// Looks of 50 ms until somebody takes a message.
const WAITS: u32 = 1200;

fn series(number: u64) -> SeriesName {
    SeriesName { number, unique: format!("series {number}") }
}

fn named(name: &str) -> Vec<MetadataField> {
    let name = MetadataField::new("name", MetadataValue::Text(name.into()));
    vec![MetadataField::new("user_data", MetadataValue::Map(vec![name]))]
}

/// The status, once this recording has ended.
fn last(service: &Service, name: &str) -> Value {
    await_some(name, || {
        let status = service.json(200, "GET", "/status", "");
        (status["last"]["name"] == name).then_some(status)
    })
}

fn is_whole(below: &Path, name: &str) {
    let verified = run(&["verify".as_ref(), below.join(name).as_os_str()]);
    assert_eq!(verified.code, Some(0), "{name}: {verified:?}");
}

#[test]
fn a_series_that_is_armed_again_without_an_end_is_recorded_by_the_next_arm() {
    let lab = SeriesLab::new();
    let below = lab.home.path();
    let mut detector = Detector::new(&lab);
    let service = Service::start(below, &format!("from = \"{}\"\n", detector.at));
    service.json(200, "POST", "/arm", "{\"name\": \"one\"}");
    detector.begin_series(&series(1), 100, Vec::new());
    (0..5).for_each(|image| detector.send_of(&series(1), image));
    detector.begin_series(&series(2), 8, Vec::new());
    (0..8).for_each(|image| detector.send_of(&series(2), image));
    detector.end_of(&series(2));
    let status = last(&service, "one");
    assert_eq!(
        (&status["last"]["packets"], &status["pending_series"]),
        (&5.into(), &true.into()),
        "{status}"
    );
    service.json(200, "POST", "/arm", "{\"name\": \"two\"}");
    let status = last(&service, "two");
    assert_eq!((&status["last"]["packets"], &status["last"]["fault"]), (&8.into(), &Value::Null), "{status}");
    assert_eq!(status["pending_series"], false, "{status}");
    assert_eq!(service.end(), Some(0));
    is_whole(below, "two");
}

#[test]
fn every_series_becomes_a_recording_with_the_name_that_the_stream_gives() {
    let lab = SeriesLab::new();
    let below = lab.home.path();
    let mut detector = Detector::new(&lab);
    let service = Service::start(below, &format!("from = \"{}\"\n", detector.at));
    let armed =
        service.json(200, "POST", "/arm", "{\"series\": \"every\", \"metadata\": {\"PI\": \"A. B.\"}}");
    assert_eq!(armed["state"], "waiting");
    let mut whole = |number, fields| {
        detector.begin_series(&series(number), 4, fields);
        (0..4).for_each(|image| detector.send_of(&series(number), image));
        detector.end_of(&series(number));
    };
    whole(1, named("lysozyme"));
    whole(2, named("lysozyme"));
    whole(3, named("../../etc/passwd"));
    whole(4, Vec::new());
    last(&service, "detector-4");
    // One that can't be recorded is told, and its images with it; the next is recorded.
    detector.begin_series(&series(5), 1 << 33, Vec::new());
    (0..4).for_each(|image| detector.send_of(&series(5), image));
    let status = await_some("the fault", || {
        let status = service.json(200, "GET", "/status", "");
        status["fault"].as_str().is_some_and(|fault| fault.contains("at most 4294967295")).then_some(status)
    });
    assert_eq!((&status["state"], &status["unrecorded_series"]), (&"waiting".into(), &1.into()), "{status}");
    // And one that is aborted, and followed by another.
    detector.begin_series(&series(6), 4, named("six"));
    detector.send_of(&series(6), 0);
    let mut whole = |number, fields| {
        detector.begin_series(&series(number), 4, fields);
        (0..4).for_each(|image| detector.send_of(&series(number), image));
        detector.end_of(&series(number));
    };
    whole(7, named("seven"));
    let status = last(&service, "seven");
    assert_eq!((&status["last"]["packets"], &status["recordings"]), (&4.into(), &6.into()), "{status}");
    let stopped = await_some("the stop", || {
        let (code, _) = service.ask("POST", "/stop", "");
        (code == 200).then(|| service.json(200, "GET", "/status", ""))
    });
    assert_eq!(stopped["state"], "configured", "{stopped}");
    assert_eq!(service.end(), Some(0));
    for name in ["lysozyme", "lysozyme-2", "_.._etc_passwd", "detector-4", "six", "seven"] {
        is_whole(below, name);
    }
    let summary = std::fs::read_to_string(below.join("seven/seven.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["metadata"]["PI"], "A. B.", "{summary}");
}

#[test]
fn a_start_that_can_not_be_recorded_is_a_fault_of_the_service() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let service = Service::start(lab.home.path(), &format!("from = \"{}\"\n", detector.at));
    service.json(200, "POST", "/arm", "{\"name\": \"one\"}");
    detector.send_raw(&start_of(&series(1), 1 << 33, Vec::new()));
    let status = await_some("the fault", || {
        let status = service.json(200, "GET", "/status", "");
        (status["state"] == "failed").then_some(status)
    });
    assert!(
        status["fault"].as_str().is_some_and(|fault| fault.contains("series 1 can't be recorded")),
        "{status}"
    );
    assert_eq!(service.end(), Some(0));
}

/// A sender that misbehaves, by seed, and the real recorder: the good series at the end is whole.
#[test]
fn behind_a_sender_that_misbehaves_the_good_series_is_whole() {
    let seeds = if std::env::var_os("NILOMETER_LONG").is_some() { 40 } else { 4 };
    for seed in 0..seeds {
        let scenario = SenderScenario::on_one_connection(Seed(seed));
        let lab = SeriesLab::new();
        let below = lab.home.path();
        let endpoint = ZmqEndpoint::bind("tcp://127.0.0.1:0").expect("an address");
        let mut push = PushSocket::open(endpoint).expect("a free port");
        let at = push.address().expect("it is bound");
        let record = format!("from = \"tcp://{at}\"\nsilence = \"2 s\"\nseries = \"every\"\n");
        let service = Service::start(below, &record);
        service.json(200, "POST", "/arm", "");
        for message in scenario.messages.iter().filter(|message| !message.is_cut) {
            std::thread::sleep(Duration::from_millis(message.pause_ms / 10));
            let pieces: Vec<[&[u8]; 1]> = message.parts.iter().map(|part| [part.as_slice()]).collect();
            let parts: Vec<&[&[u8]]> = pieces.iter().map(|part| &part[..]).collect();
            let sent = push.send(&parts, WAITS).expect("the network is there");
            assert!(sent, "seed {seed}: nobody takes {:?}", message.kind);
        }
        let status = last(&service, "detector-1000");
        let images = scenario.messages.iter().filter(|message| match message.kind {
            SentKind::Image(series, _) => series == scenario.good(),
            _ => false,
        });
        assert_eq!(status["last"]["packets"], images.count(), "seed {seed}: {status}");
        assert_eq!(status["last"]["missing_packets"], 0, "seed {seed}: {status}");
        assert_eq!(service.end(), Some(0));
        is_whole(below, "detector-1000");
    }
}
