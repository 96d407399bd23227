//! Series of frames over TCP, recorded on command: awaited, recorded when they begin, one after the other, and given up.

use std::{fs, net::TcpListener, path::Path, time::Duration};

use nilometer_hdf5::ReadFile;
use nilometer_intake::transport::zeromq::{PushSocket, ZmqEndpoint};
use nilometer_tests::{Browser, Running, address, ask, await_some, free_port, run, start, status};
use rustix::process::Signal;
use serde_json::Value;

use crate::service::{commanded::Service, page::fits};

const LIMIT: Duration = Duration::from_mins(1);
const DETECTOR: &str = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [128, 150]\n\
                        pixel = \"uint16\"\nframe_rate = \"200 Hz\"\ndata = \"diffraction\"\n";

/// A directory with a detector in it, and an address at which nobody listens.
fn lab() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("detector.toml"), DETECTOR).expect("space");
    (directory, free_address())
}

fn free_address() -> String {
    format!("tcp://127.0.0.1:{}", free_port())
}

/// A detector that sends 40 images to there.
fn detector(below: &Path, to: &str, options: &[&str]) -> Running {
    let arguments = ["simulate", "detector.toml", "--frames", "40", "--wait", "--seed", "5", "--to", to];
    start(below, &[&arguments[..], options].concat())
}

/// Waits until so many recordings have ended; what is said then.
fn ended(service: &Service, count: u64) -> Value {
    await_some("the end of a recording", || {
        let status = service.json(200, "GET", "/status", "");
        (status["recordings"] == count).then_some(status)
    })
}

#[test]
fn series_are_awaited_and_recorded_one_after_the_other() {
    let (directory, from) = lab();
    let below = directory.path();
    let service = Service::start(below, "");
    let wished = format!("{{\"from\": \"{from}\"}}");
    let status = service.json(200, "POST", "/configure", &wished);
    assert_eq!(
        (&status["state"], &status["configuration"]["listen"]),
        (&"configured".into(), &from.clone().into())
    );
    let armed =
        service.json(200, "POST", "/arm", "{\"name\": \"one\", \"metadata\": {\"sample\": \"lysozyme\"}}");
    assert_eq!(
        (&armed["state"], &armed["name"], &armed["awaits"]),
        (&"waiting".into(), &"one".into(), &from.clone().into())
    );
    // Whoever asks is answered, and nothing else is begun.
    let told = service.json(200, "GET", "/status", "");
    assert_eq!((&told["state"], &told["recording"]), (&"waiting".into(), &Value::Null), "{told}");
    let (_, page) = service.ask("GET", "/metrics", "");
    assert!(page.contains("nilometer_state{state=\"waiting\"} 1"), "{page}");
    for (order, why) in
        [("/start", "begins by itself"), ("/arm", "stop it first"), ("/configure", "stop it first")]
    {
        let refused = service.json(409, "POST", order, "{}");
        assert!(refused["error"].as_str().is_some_and(|error| error.contains(why)), "{order}: {refused}");
    }
    let sent = detector(below, &from, &[]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let status = ended(&service, 1);
    let last = &status["last"];
    assert_eq!(
        (&last["name"], &last["counted_in"], &last["packets"]),
        (&"one".into(), &"frames".into(), &40.into())
    );
    assert_eq!((&last["missing_packets"], &last["fault"]), (&0.into(), &Value::Null), "{status}");
    assert_eq!((&status["state"], &status["awaits"]), (&"configured".into(), &Value::Null), "{status}");
    let (_, page) = service.ask("GET", "/metrics", "");
    assert!(page.contains("nilometer_durable_frames_total 40\n") && !page.contains("_packets"), "{page}");
    // The next, from a sender that connects here.
    let at = free_address();
    let wished = format!("{{\"name\": \"two\", \"from\": [], \"listen\": \"{at}\"}}");
    service.json(200, "POST", "/configure", &wished);
    service.json(200, "POST", "/arm", "{\"name\": \"two\"}");
    let sent = detector(below, &at, &["--connect", "--loss", "10 %"]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let status = ended(&service, 2);
    let missing = status["last"]["missing_packets"].as_u64().expect("a number");
    assert_eq!(
        (&status["last"]["name"], status["last"]["packets"].as_u64()),
        (&"two".into(), Some(40 - missing))
    );
    assert!(sent.stdout.contains(&format!("lost        {missing} images")), "{status} {sent:?}");
    assert_eq!(service.end(), Some(0));
    for (name, code) in [("one", 0), ("two", 1)] {
        let verified = run(&["verify".as_ref(), below.join(name).as_os_str()]);
        assert_eq!(verified.code, Some(code), "{name}: {verified:?}");
    }
    let summary = fs::read_to_string(below.join("one/one.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (&summary["metadata"]["sample"], &summary["came_from"]),
        (&"lysozyme".into(), &from.into()),
        "{summary}"
    );
}

#[test]
fn a_stop_ends_the_wait_for_a_series_and_leaves_nothing() {
    let (directory, from) = lab();
    let below = directory.path();
    let service = Service::start(below, &format!("from = \"{from}\"\n"));
    for _ in 0..2 {
        assert_eq!(service.json(200, "POST", "/arm", "{\"name\": \"none\"}")["state"], "waiting");
        let stopped = service.json(200, "POST", "/stop", "");
        assert_eq!(
            (&stopped["state"], &stopped["fault"], &stopped["name"]),
            (&"configured".into(), &Value::Null, &Value::Null)
        );
    }
    assert!(!below.join("none").exists());
    // A signal ends it too.
    service.json(200, "POST", "/arm", "{\"name\": \"none\"}");
    assert_eq!(service.end(), Some(0));
    assert!(!below.join("none").exists());
}

#[test]
fn a_series_from_beyond_needs_the_flag_and_what_can_not_be_had_is_told_at_once() {
    let (directory, from) = lab();
    let service = Service::start(directory.path(), "");
    for (wished, why) in [
        ("{\"from\": \"tcp://192.0.2.1:31001\"}", "--listen-beyond-loopback"),
        ("{\"listen\": \"tcp://*:31001\"}", "--listen-beyond-loopback"),
        ("{\"from\": \"tcp://127.0.0.1\"}", "tcp://HOST:PORT"),
    ] {
        let refused = service.json(400, "POST", "/configure", wished);
        assert!(refused["error"].as_str().is_some_and(|error| error.contains(why)), "{wished}: {refused}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("it is bound");
    service.json(200, "POST", "/configure", &format!("{{\"from\": \"{from}\", \"listen\": \"tcp://{at}\"}}"));
    let refused = service.json(400, "POST", "/arm", "{}");
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("a free port")), "{refused}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_page_says_that_a_series_is_awaited_and_counts_frames() {
    let Some(mut browser) = Browser::start() else { return };
    let (directory, from) = lab();
    let below = directory.path();
    let service = Service::start(below, &format!("from = \"{from}\"\n"));
    let page = browser.open(&format!("http://{}/", service.http), 390, false);
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    browser.await_value(&page, "document.getElementById(\"state\").dataset.raw === \"waiting\"");
    let what = browser.evaluate(&page, "document.getElementById(\"what\").textContent");
    assert!(
        what.as_str().is_some_and(|what| what.contains(&format!("waits for a series from {from}"))),
        "{what}"
    );
    fits(&mut browser, &page, 390);
    let sent = detector(below, &from, &[]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    browser.await_value(&page, "document.getElementById(\"last\").rows.length === 1");
    let text = browser.evaluate(&page, "document.body.innerText");
    let text = text.as_str().expect("a text").replace('\u{202f}', " ");
    for part in ["40 frames", "Frames missing", "since the first frame"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(browser.complaints(&page), [""; 0]);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn who_looks_at_a_recording_is_told_that_it_waits() {
    let (directory, from) = lab();
    let below = directory.path();
    let options = ["--to", ".", "--name", "scan", "--reserve", "0 B", "--http", "127.0.0.1:0"];
    let arguments = ["record", "--from", &from, "--buffer", "64 MiB"];
    let mut running = start(below, &[&arguments[..], &options].concat());
    running.await_said("waiting for a series");
    let http = address(&running, "http");
    let waiting = status(http);
    assert_eq!(
        (&waiting["state"], &waiting["awaits"]),
        (&"waiting".into(), &from.clone().into()),
        "{waiting}"
    );
    assert!(ask(http, "GET", "/live", "").1.contains("\"state\":\"waiting\""));
    let sender = detector(below, &from, &["--rate", "10 Hz"]);
    await_some("the recording", || {
        let status = status(http);
        (status["state"] == "recording" && status["awaits"].is_null()).then_some(())
    });
    running.signal(Signal::INT);
    running.end(LIMIT);
    drop(sender);
}

#[test]
fn values_of_the_users_are_joined_to_the_frames_of_each_series() {
    let (directory, from) = lab();
    let below = directory.path();
    let at = ZmqEndpoint::bind("tcp://127.0.0.1:0").expect("an address");
    let mut motors = PushSocket::open(at).expect("a free port");
    let motors_at = motors.address().expect("it is bound");
    let record = format!("from = \"{from}\"\nmetadata = [\"tcp://{motors_at}\"]\n");
    let service = Service::start(below, &record);
    for (number, name) in (1_u32..).zip(["one", "two"]) {
        service.json(200, "POST", "/arm", &format!("{{\"name\": \"{name}\"}}"));
        for frame in 0..40 {
            let value = f64::from(frame) + f64::from(number) / 4.0;
            let said = format!("{{\"frame\": {frame}, \"Angle\": {value}}}");
            assert!(motors.send(&[&[said.as_bytes()]], 600).expect("the network is there"), "{frame}");
        }
        let sent = detector(below, &from, &[]).end(LIMIT);
        assert!(sent.has_sent_all(), "{sent:?}");
        let status = ended(&service, number.into());
        assert_eq!(status["last"]["joined"], "40 values of Angle", "{status}");
        let file = ReadFile::open(&below.join(format!("{name}/{name}.h5"))).expect("a file of HDF5");
        let dataset = file.dataset("/entry/instrument/NDAttributes/Angle").expect("it is there");
        let expected: Vec<_> = (0..40).map(|frame| f64::from(frame) + f64::from(number) / 4.0).collect();
        assert_eq!(dataset.floats().expect("numbers"), expected);
    }
    for (metadata, why) in
        [("tcp://127.0.0.1:9", "in its configuration"), ("a.jsonl", "in its configuration")]
    {
        let refused = service.json(400, "POST", "/configure", &format!("{{\"metadata\": [\"{metadata}\"]}}"));
        assert!(refused["error"].as_str().is_some_and(|error| error.contains(why)), "{refused}");
    }
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_series_is_recorded_in_the_layout_of_dectris() {
    let (directory, from) = lab();
    let below = directory.path();
    let service = Service::start(below, "");
    let wished = format!("{{\"from\": \"{from}\", \"layout\": \"dectris\", \"frames_per_file\": 16}}");
    service.json(200, "POST", "/configure", &wished);
    let armed = service.json(200, "POST", "/arm", "{\"name\": \"one\"}");
    assert_eq!(armed["state"], "waiting", "{armed}");
    let sent = detector(below, &from, &[]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let status = ended(&service, 1);
    assert_eq!(
        (&status["last"]["packets"], &status["last"]["fault"]),
        (&40.into(), &Value::Null),
        "{status}"
    );
    let recording = Path::new(status["last"]["paths"][0].as_str().expect("a path")).to_owned();
    let master = ReadFile::open(&recording.join("one_master.h5")).expect("it is there");
    let frames = |path: &str| master.dataset(path).expect("it is there").dimensions()[0];
    assert_eq!(frames("/entry/data/data"), 40);
    for (file, count) in [("000001", 16), ("000002", 16), ("000003", 8)] {
        assert_eq!(frames(&format!("/entry/data/data_{file}")), count);
        assert!(recording.join(format!("one_data_{file}.h5")).exists());
    }
    let layout = service.json(400, "POST", "/configure", "{\"layout\": \"/etc/passwd\"}");
    assert!(layout["error"].as_str().is_some_and(|error| error.starts_with("layout: ")), "{layout}");
}
