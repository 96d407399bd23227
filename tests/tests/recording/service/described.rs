//! A control system sees a detector: the recorder says where frames go, tells each change, and describes its requests.
//! The files that it names are opened, and jsonschema checks its answers against its description.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Stdio,
    time::Duration,
};

use nilometer_hdf5::ReadFile;
use nilometer_tests::{ask, await_packets, await_some, free_port, python, start};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service::{WatchedRecording, commanded::Service, sender::Sender};

const LIMIT: Duration = Duration::from_mins(1);
const DETECTOR: &str = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [64, 80]\n\
                        pixel = \"uint32\"\nframe_rate = \"200 Hz\"\ndata = \"diffraction\"\n";

/// The events of a recorder.
struct Events(BufReader<TcpStream>);

impl Events {
    fn follow(at: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time");
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut events = Events(BufReader::new(stream));
        let head: Vec<_> =
            std::iter::from_fn(|| Some(events.line()).filter(|line| !line.is_empty())).collect();
        assert_eq!(head[0], "HTTP/1.1 200 OK");
        assert!(head.contains(&"Content-Type: text/event-stream".to_owned()), "{head:?}");
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        assert!(line.ends_with('\n'), "it ended: {line:?}");
        line.trim_end().to_owned()
    }

    /// Reads to the end of the events, and returns the names of those that were left.
    fn read_to_end(mut self) -> Vec<String> {
        let mut text = String::new();
        self.0.read_to_string(&mut text).expect("an end in time");
        text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect()
    }

    /// The next event with its data, after any comments.
    fn next(&mut self) -> (String, Value) {
        loop {
            let line = self.line();
            let Some(name) = line.strip_prefix("event: ") else { continue };
            let data = self.line();
            let data = data.strip_prefix("data: ").expect("an event has data");
            return (name.to_owned(), serde_json::from_str(data).expect("JSON"));
        }
    }

    /// The first event for which this holds.
    fn until(&mut self, holds: impl Fn(&str, &Value) -> bool) -> Value {
        loop {
            let (name, data) = self.next();
            if holds(&name, &data) {
                return data;
            }
        }
    }
}

fn free_address() -> String {
    format!("tcp://127.0.0.1:{}", free_port())
}

/// Sends a series of 40 frames with 64 x 80 pixels.
fn send_series(below: &Path, to: &str, options: &[&str]) {
    fs::write(below.join("detector.toml"), DETECTOR).expect("space");
    let arguments = ["simulate", "detector.toml", "--frames", "40", "--wait", "--seed", "5", "--to", to];
    let sent = start(below, &[&arguments[..], options].concat()).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
}

/// The dimensions of the dataset in a file that the recorder names.
fn dimensions(file: &Value, dataset: &Value) -> Vec<u64> {
    let path = Path::new(file.as_str().expect("a path"));
    let file = ReadFile::open(path).expect("a file of HDF5");
    file.dataset(dataset.as_str().expect("a path")).expect("it is there").dimensions().to_vec()
}

#[test]
fn a_series_is_followed_by_events_and_its_file_is_where_they_say() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let from = free_address();
    let service = Service::start(below, &format!("from = \"{from}\"\n"));
    let mut events = Events::follow(service.http);
    let (name, first) = events.next();
    assert_eq!((name.as_str(), &first["state"]), ("status", &"configured".into()), "{first}");
    service.json(200, "POST", "/arm", "{\"name\": \"one\"}");
    let waiting = events.until(|_, data| data["state"] == "waiting");
    assert_eq!(waiting["recording"], Value::Null, "{waiting}");
    send_series(below, &from, &["--channels", "2", "--rate", "20 Hz"]);
    let running = events.until(|name, data| name == "status" && data["state"] == "recording");
    let file = &running["recording"]["file"];
    let path = below.join("one/one.h5");
    assert_eq!(
        (&file["path"], &file["dataset"], &file["master"]),
        (&json!(path), &json!("/entry/data/data"), &Value::Null),
        "{running}"
    );
    assert_eq!((&file["shape"], &file["dtype"]), (&json!([64, 80]), &json!("<u4")), "{file}");
    assert_eq!((&file["scan"], &file["chunk"]), (&json!([2]), &json!([1, 1, 64, 80])), "{file}");
    assert!(file["series_id"].is_u64(), "{file}");
    assert_eq!((&file["files"], &file["file_count"]), (&json!([path]), &Value::Null), "{file}");
    let ended = events.until(|name, _| name == "recording_ended");
    assert_eq!((&ended["name"], &ended["packets"]), (&"one".into(), &80.into()), "{ended}");
    let file = &ended["file"];
    assert_eq!((&file["frames_acknowledged"], &file["frames_durable"]), (&80.into(), &80.into()), "{file}");
    assert_eq!((&file["files"], &file["file_count"]), (&json!([path]), &1.into()), "{file}");
    assert_eq!(dimensions(&file["path"], &file["dataset"]), [40, 2, 64, 80]);
    let last = events.until(|name, data| name == "status" && data["state"] == "configured");
    assert_eq!(last["last"], ended, "{last}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn several_files_have_a_pattern_and_then_a_list_and_a_master_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let from = free_address();
    let service = Service::start(below, &format!("from = \"{from}\"\nframes_per_file = 16\n"));
    let mut events = Events::follow(service.http);
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    send_series(below, &from, &["--rate", "20 Hz"]);
    let own = below.join("scan");
    let running = events.until(|name, data| name == "status" && data["state"] == "recording");
    let file = &running["recording"]["file"];
    assert_eq!((&file["path"], &file["files"]), (&json!(own), &json!([])), "{file}");
    assert_eq!(file["patterns"], json!([own.join("scan.%08d.h5")]), "{file}");
    let ended = events.until(|name, _| name == "recording_ended");
    let file = &ended["file"];
    let files: Vec<_> = (0..3).map(|number| own.join(format!("scan.{number:08}.h5"))).collect();
    assert_eq!((&file["files"], &file["file_count"]), (&json!(files), &3.into()), "{file}");
    assert_eq!(file["master"], json!(own.join("scan_master.h5")), "{file}");
    assert_eq!(dimensions(&file["master"], &file["dataset"]), [40, 64, 80]);
    assert_eq!(dimensions(&file["files"][2], &file["dataset"]), [8, 64, 80]);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_recorder_that_takes_no_commands_sends_the_end_of_its_recording_before_it_goes() {
    let watched = WatchedRecording::begin();
    let mut events = Events::follow(watched.http);
    events.until(|name, data| name == "status" && data["state"] == "recording");
    watched.sender.send(0..90);
    watched.sender.send(100..300);
    await_packets(watched.http, 290);
    watched.running.signal(Signal::TERM);
    let ended = events.until(|name, _| name == "recording_ended");
    assert_eq!(
        (&ended["name"], &ended["packets"], &ended["missing_packets"]),
        (&"scan".into(), &290.into(), &10.into())
    );
    assert_eq!(ended["fault"], "10 packets are missing");
    let file = watched.below().join("scan/scan.raw");
    assert_eq!(
        (&ended["file"]["files"], &ended["file"]["file_count"]),
        (&json!([file]), &1.into()),
        "{ended}"
    );
    assert_eq!(fs::metadata(file).expect("it is complete").len(), 300_000);
    let last = events.until(|name, data| name == "status" && data["state"] == "configured");
    assert_eq!((&last["last"], &last["recordings"], &last["name"]), (&ended, &1.into(), &Value::Null));
    assert!(events.read_to_end().iter().all(|name| name == "status"));
    assert_eq!(watched.running.end(LIMIT).code, Some(1), "ten packets are missing");
}

/// Sends frames of two packets each.
fn send_frames(sender: &Sender, frames: u64) {
    for frame in 0..frames {
        for packet in 0..2_u32 {
            let header = [&frame.to_le_bytes()[..], &packet.to_le_bytes(), &[0; 4]].concat();
            sender.send_one(&[&header[..], &[7; 500]].concat());
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn packets_go_into_files_that_are_named_when_the_recorder_is_armed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let detector = below.join("camera.toml");
    let text = format!(
        "name = \"camera\"\ntitle = \"t\"\nsource = \"t\"\nshape = [20, 25]\npixel = \"uint16\"\n\
         frame_rate = \"1 kHz\"\ndata = \"diffraction\"\n[packets]\nport = {}\n[packets.format.described]\n\
         header = \"16 B\"\nframe = {{ offset = 0, bytes = 8 }}\npacket = {{ offset = 8, bytes = 4 }}\n\
         modules = 1\npackets = 2\npayload = \"500 B\"\n",
        sender.port()
    );
    fs::write(&detector, text).expect("space");
    let service = Service::start(below, &format!("instrument = \"{}\"\n", detector.display()));
    for (name, format, dataset, path) in
        [("hdf5", "hdf5", json!("/entry/data/data"), "hdf5/hdf5.h5"), ("plain", "raw", Value::Null, "plain")]
    {
        let order = format!("{{\"name\": \"{name}\", \"format\": \"{format}\"}}");
        let armed = service.json(200, "POST", "/arm", &order);
        let file = &armed["recording"]["file"];
        assert_eq!((&file["path"], &file["dataset"]), (&json!(below.join(path)), &dataset), "{armed}");
        assert_eq!((&file["shape"], &file["dtype"]), (&json!([20, 25]), &json!("<u2")), "{file}");
        assert_eq!((&file["series_id"], &file["frames_acknowledged"]), (&Value::Null, &0.into()), "{file}");
        service.json(200, "POST", "/start", "");
        send_frames(&sender, 300);
        service.await_packets(600);
        let stopped = service.json(200, "POST", "/stop", "");
        let file = &stopped["last"]["file"];
        assert_eq!(
            (&file["frames_acknowledged"], &file["file_count"]),
            (&300.into(), &1.into()),
            "{stopped}"
        );
        assert!(Path::new(file["files"][0].as_str().expect("a path")).is_file(), "{file}");
    }
    let file = below.join("hdf5/hdf5.h5");
    assert_eq!(dimensions(&json!(file), &json!("/entry/data/data")), [300, 20, 25]);
    assert_eq!(service.end(), Some(0));
}

#[test]
fn every_request_is_described_and_every_answer_has_its_schema() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let from = free_address();
    let service = Service::start(below, &format!("from = \"{from}\"\n"));
    let document = service.json(200, "GET", "/openapi.json", "");
    let paths = document["paths"].as_object().expect("an object");
    // The service knows each path of the description, and no other method there.
    for (path, operations) in paths {
        let methods: Vec<_> = operations.as_object().expect("an object").keys().collect();
        let (asked, expected) = match methods[0].as_str() {
            "get" => ("DELETE", "use GET"),
            "delete" => ("POST", "use DELETE"),
            _ => ("DELETE", "use POST"),
        };
        let (code, text) = service.ask(asked, path, "");
        assert!(code == 405 && text.contains(expected), "{path}: {code} {text}");
    }
    // Its own list of paths is that of the description.
    let (code, text) = service.ask("GET", "/nowhere", "");
    let said: Value = serde_json::from_str(&text).expect("JSON");
    let said = said["error"].as_str().expect("a text");
    let words = said.split([' ', ',', ';']).filter(|word| word.starts_with('/'));
    let mut listed: Vec<_> = words.map(|word| word.replace("/ID", "/{id}")).collect();
    listed.sort_unstable();
    assert_eq!((code, &listed), (404, &paths.keys().cloned().collect()), "{said}");
    let mut seen = vec![document.clone()];
    let mut see = |method: &str, path: &str, body: &Value| {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = service.ask(method, path, &text);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        seen.push(json!({"method": method, "path": path, "status": status, "answer": answer, "body": body}));
    };
    see("GET", "/status", &Value::Null);
    see("POST", "/start", &Value::Null);
    see("POST", "/configure", &json!({"from": [from], "silence": "20 s", "compression": "bslz4"}));
    see("POST", "/arm", &json!({"name": "one", "metadata": {"sample": ["a", 5]}}));
    see("GET", "/latest-frame", &Value::Null);
    send_series(below, &from, &[]);
    await_some("the end", || {
        let status = service.json(200, "GET", "/status", "");
        (status["recordings"] == 1).then_some(())
    });
    for path in ["/status", "/live", "/dumps"] {
        see("GET", path, &Value::Null);
    }
    see("POST", "/dump", &json!({"to": below}));
    see("DELETE", "/dumps/{id}", &Value::Null);
    let (code, answer) = service.ask("POST", "/arm", "{\"name\": 5}");
    seen.push(json!({"method": "POST", "path": "/arm", "status": code, "answer": serde_json::from_str::<Value>(&answer).expect("JSON")}));
    let (name, data) = Events::follow(service.http).next();
    seen.push(json!({"method": "GET", "path": "/events", "status": 200, "event": name, "answer": data}));
    let ended = data["last"].clone();
    seen.push(json!({"method": "GET", "path": "/events", "status": 200, "event": "recording_ended", "answer": ended}));
    let Some(mut python) = python(&["jsonschema"]) else { return };
    let script = nilometer_tests::root().join("tests/tests/recording/service/described.py");
    let mut child =
        python.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be run");
    let lines: Vec<_> = seen.iter().map(|line| line.to_string() + "\n").collect();
    child.stdin.take().expect("piped").write_all(lines.concat().as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && said.lines().count() == seen.len() - 1, "{said}");
    assert!(said.lines().all(|line| line.ends_with(" right")), "{said}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn who_follows_and_never_reads_disturbs_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let service = Service::start(directory.path(), "");
    let followed: Vec<_> = (0..32).map(|_| Events::follow(service.http)).collect();
    let (code, text) = ask(service.http, "GET", "/events", "");
    assert!(code == 503 && text.contains("too many clients"), "{code} {text}");
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "idle");
    drop(followed);
    // Their places are free when the service has told them something.
    await_some("a place", || (first_line(service.http) == "HTTP/1.1 200 OK").then_some(()));
    assert_eq!(service.end(), Some(0));
}

/// The first line of an answer to `GET /events`.
fn first_line(at: SocketAddr) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    line.trim_end().to_owned()
}
