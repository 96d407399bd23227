//! `nilometer serve`, commanded from outside: over HTTP, and as Mark 5 recorders are.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_tests::{Running, address, answer, ask, await_some, nilometer, run, start_copy};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service::{
    instrument,
    sender::{Sender, recorded},
};

const LIMIT: Duration = Duration::from_mins(1);

/// A service that runs, and where it is reached.
pub(crate) struct Service {
    running: Running,
    pub(crate) http: SocketAddr,
    pub(crate) mark5: SocketAddr,
}

impl Service {
    /// With this `[record]`.
    pub(crate) fn start(below: &Path, record: &str) -> Self {
        Service::of(nilometer(), below, record)
    }

    /// The same, with files of instruments that may be named.
    pub(crate) fn allowing(instruments: &Path, below: &Path, record: &str) -> Self {
        Service::with(nilometer(), below, &format!("instruments = [\"{}\"]\n", instruments.display()), record)
    }

    /// The same of a copy of the program.
    pub(crate) fn of(program: &Path, below: &Path, record: &str) -> Self {
        Service::with(program, below, "", record)
    }

    /// The same, into these directories.
    pub(crate) fn onto(to: &[PathBuf], below: &Path, record: &str) -> Self {
        let to: Vec<_> = to.iter().map(|path| format!("\"{}\"", path.display())).collect();
        Service::configured(nilometer(), below, "", &format!("to = [{}]\n{record}", to.join(", ")))
    }

    /// The same, with these lines of `[service]`.
    pub(crate) fn reached(below: &Path, service: &str, record: &str) -> Self {
        Service::with(nilometer(), below, service, record)
    }

    /// What it has said.
    pub(crate) fn stderr(&self) -> String {
        self.running.stderr()
    }

    /// The process.
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    fn with(program: &Path, below: &Path, service: &str, record: &str) -> Self {
        Service::configured(program, below, service, &format!("to = \"{}\"\n{record}", below.display()))
    }

    fn configured(program: &Path, below: &Path, service: &str, record: &str) -> Self {
        let config = below.join("service.toml");
        let text = format!(
            "[service]\nhttp = \"127.0.0.1:0\"\nmark5 = \"127.0.0.1:0\"\n{service}[record]\n\
             buffer = \"64 MiB\"\nreserve = \"0 B\"\n{record}"
        );
        fs::write(&config, text).expect("space");
        let options = ["serve", "--config", config.to_str().expect("plain")];
        let mut running = start_copy(program, below, &options);
        running.await_said("ready");
        Service { http: address(&running, "http"), mark5: address(&running, "mark5"), running }
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(self.http, method, path, body)
    }

    /// The same with JSON, which must have this status.
    pub(crate) fn json(&self, status: u16, method: &str, path: &str, body: &str) -> Value {
        let (found, text) = self.ask(method, path, body);
        assert_eq!(found, status, "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Waits until so many packets are recorded.
    pub(crate) fn await_packets(&self, count: u64) {
        await_some("packets", || {
            let status = self.json(200, "GET", "/status", "");
            (status["recording"]["received_packets"].as_u64() >= Some(count)).then_some(())
        });
    }

    /// Kills it, with no chance to end in order.
    pub(crate) fn killed(self) {
        self.running.killed();
    }

    /// Ended by a signal: the exit code.
    pub(crate) fn end(self) -> Option<i32> {
        self.running.signal(Signal::TERM);
        self.running.end(LIMIT).code
    }
}

/// A connection of a station.
pub(crate) struct Station(BufReader<TcpStream>);

impl Station {
    pub(crate) fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time");
        Station(BufReader::new(stream))
    }

    /// What a line of commands is answered. An order to record that the recorder only began to carry out, as on a
    /// busy machine, counts as answered when it is done.
    pub(crate) fn say(&mut self, line: &str) -> String {
        let answer = self.exchange(line);
        if answer != "!record= 1 ;" {
            return answer;
        }
        let state = if line.starts_with("record=on") { " : on" } else { " : off" };
        await_some("the order", || {
            self.exchange("record?;").contains(state).then(|| "!record= 0 ;".to_owned())
        })
    }

    fn exchange(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("it reads");
        let mut text = String::new();
        self.0.read_line(&mut text).expect("an answer");
        text.trim_end().to_owned()
    }
}

fn raw(below: &Path, sender: &Sender) -> String {
    format!("instrument = \"{}\"\n", instrument(below, sender.port()))
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_when_it_is_configured() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let absent = below.join("disk9");
    let service = Service::onto(std::slice::from_ref(&absent), below, &raw(below, &sender));
    let why = format!("{}: can't write there: No such file or directory", absent.display());
    let status = service.json(200, "GET", "/status", "");
    let missing = status["configuration"]["missing"].as_str().unwrap_or_default();
    assert!(status["state"] == "idle" && missing.starts_with(&why), "{status}");
    let refused = service.json(400, "POST", "/configure", "{}");
    assert!(refused["error"].as_str().is_some_and(|error| error.starts_with(&why)), "{refused}");
    let refused = service.json(409, "POST", "/arm", "");
    assert!(refused["error"].as_str().is_some_and(|error| error.contains(&why)), "{refused}");
    fs::create_dir(&absent).expect("space");
    assert_eq!(service.json(200, "POST", "/arm", "")["state"], "armed", "the disk is mounted now");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_recording_is_commanded_over_http() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::allowing(below, below, "");
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "idle");
    assert_eq!(service.json(409, "POST", "/arm", "")["state"], "idle");
    let body = format!("{{\"instrument\": \"{}\"}}", instrument(below, sender.port()));
    assert_eq!(service.json(200, "POST", "/configure", &body)["state"], "configured");
    assert_eq!(service.json(409, "POST", "/start", "")["error"], "it is configured: arm it first");
    let armed = service.json(200, "POST", "/arm", "{\"name\": \"scan\", \"metadata\": {\"PI\": \"A. B.\"}}");
    assert_eq!((&armed["state"], &armed["name"]), (&"armed".into(), &"scan".into()));
    sender.send(0..20);
    assert_eq!(service.json(409, "POST", "/configure", &body)["state"], "armed");
    assert_eq!(service.json(200, "POST", "/start", "")["state"], "recording");
    sender.send(100..400);
    service.await_packets(300);
    assert_eq!(service.json(409, "POST", "/start", "")["state"], "recording");
    metrics_are_those_of(&service.ask("GET", "/metrics", "").1, 300.0);
    let stopped = service.json(200, "POST", "/stop", "");
    assert_eq!(stopped["state"], "configured", "{stopped}");
    assert_eq!((&stopped["last"]["packets"], &stopped["last"]["fault"]), (&300.into(), &Value::Null));
    assert_eq!(recorded(below, "scan"), (100..400).collect::<Vec<_>>());
    let summary = fs::read_to_string(below.join("scan/scan.summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (&summary["metadata"]["PI"], &summary["recording"]["durable_packets"]),
        (&"A. B.".into(), &300.into())
    );
    let directories = json!([{ "path": below, "ended": "ended in order" }]);
    assert_eq!(summary["directories"], directories, "{summary}");
    assert_eq!(summary["recording"]["lanes"][0]["state"], "ended", "{summary}");
    assert!(service.ask("GET", "/metrics", "").1.contains("nilometer_written_bytes_total{"));
    assert!(
        summary["network"]["meanwhile"]["interfaces"]["lo"]["rx_packets"].as_u64() >= Some(300),
        "{summary}"
    );
    let verified = run(&["verify", below.join("scan").to_str().expect("plain")]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(service.end(), Some(0));
}

/// Asserts that promtool reads a page of metrics and has nothing to say against the names.
fn promtool_reads(page: &str) {
    let Some(mut promtool) = nilometer_tests::tool("promtool") else { return };
    let piped = std::process::Stdio::piped;
    let mut child =
        promtool.args(["check", "metrics"]).stdin(piped()).stderr(piped()).spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(page.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}{page}");
}

/// Read by the client library of Prometheus where it is there, otherwise by the form of the lines.
pub(crate) fn metrics_are_those_of(page: &str, packets: f64) {
    promtool_reads(page);
    let script = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
                  for family in read(sys.stdin.read()):\n for sample in family.samples: print(sample.name, sample.value)";
    let read = nilometer_tests::python(&["prometheus_client.parser"]).map(|mut python| {
        let stdio = std::process::Stdio::piped;
        let mut child =
            python.args(["-c", script]).stdin(stdio()).stdout(stdio()).spawn().expect("it can be run");
        child.stdin.take().expect("piped").write_all(page.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{page}");
        String::from_utf8(output.stdout).expect("text")
    });
    let read = read.unwrap_or_else(|| page.to_owned());
    let value = read.lines().find_map(|line| line.strip_prefix("nilometer_received_packets_total "));
    assert_eq!(value.and_then(|value| value.parse().ok()), Some(packets), "{read}");
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(name.starts_with("nilometer_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn stations_command_it_as_they_do_mark_5_recorders() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::start(below, &raw(below, &Sender::new()));
    // Somebody who only listens disturbs nobody.
    let _idle = TcpStream::connect(service.mark5).expect("it listens");
    let mut station = Station::connect(service.mark5);
    assert_eq!(station.say("status?"), "!status? 0 : 0x00300001 ;");
    assert_eq!(station.say("net_port = 70000;"), "!net_port= 8 : write a port from 1 to 65535 ;");
    let port = sender.port();
    assert_eq!(
        station.say(&format!("net_port={port};net_port?;")),
        format!("!net_port= 0 ;!net_port? 0 : {port} ;")
    );
    assert!(station.say(&format!("net_port=0.0.0.0@{port};")).starts_with("!net_port= 8 :"));
    assert_eq!(station.say("mode?;"), "!mode? 0 : none ;");
    assert_eq!(station.say("record=off;"), "!record= 6 : it is configured, there is nothing to stop ;");
    assert_eq!(station.say("scan_check?;"), "!scan_check? 6 : nothing was recorded yet ;");
    assert_eq!(station.say("record?;"), "!record? 0 : off ;");
    assert_eq!(station.say("record=on:ex_st_no1;"), "!record= 0 ;");
    assert_eq!(station.say("record=on:again;"), "!record= 6 : it is recording, stop it first ;");
    assert_eq!(station.say("net_port=5;"), "!net_port= 6 : it is recording, stop it first ;");
    sender.send(0..60);
    sender.send(70..100);
    service.await_packets(90);
    let in_memory = "!record? 0 : on : 1 : ex_st_no1 : 0 : 90000 : 0 ;";
    assert_eq!(station.say("record?;"), in_memory, "less than a block came");
    assert_eq!(station.say("status?;"), "!status? 0 : 0x00300059 ;");
    assert_eq!(station.say("record=off;"), "!record= 0 ;");
    let statistics =
        "!evlbi? 0 : total : 90 : loss : 10 (10.00%) : out-of-order : 0 ( 0.00%) : extent : 0seqnr/pkt ;";
    assert_eq!(station.say("evlbi?;"), statistics);
    assert_eq!(station.say("record=on:ex_st_no1;record=off;"), "!record= 0 ;!record= 0 ;");
    assert!(below.join("ex_st_no1a").is_dir(), "a name that is taken gets a letter");
    assert_eq!(
        station.say("scan_set=1;scan_set?;"),
        "!scan_set= 0 ;!scan_set? 0 : 1 : ex_st_no1 : 0 : 90000 ;"
    );
    assert_eq!(station.say("scan_check?;"), "!scan_check? 0 : 1 : ex_st_no1 : ? ;");
    assert!(station.say("DTS_id?;").starts_with("!dts_id? 0 : - : "));
    assert!(station.say("version?;").starts_with("!version? 0 : jive5ab-compatible nilometer : "));
    assert_eq!(station.say("play=on;"), "!play= 7 : no such keyword ;");
    assert_eq!(station.say("version=5;"), "!version= 2 : only available as query ;");
    assert_eq!(station.say("what"), "!syntax= 3 : not a command or query ;");
    assert_eq!(service.end(), Some(0));
}

/// This many frames, 1000 a second, of 4000 bytes of samples each.
pub(crate) fn send_vdif(below: &Path, port: u16, frames: u64) {
    let (to, vdif) = (format!("udp://127.0.0.1:{port}"), below.join("vdif.toml"));
    let text = "name = \"vdif\"\ntitle = \"t\"\nsource = \"t\"\nshape = [4000]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
                data = \"vlbi\"\n[packets.format.vdif]\npayload = \"4000 B\"\nthreads = [0]\n";
    fs::write(&vdif, text).expect("space");
    let frames = frames.to_string();
    let sent = run(&["simulate", vdif.to_str().expect("plain"), "--to", &to, "--frames", &frames]);
    assert!(sent.has_sent_all(), "{sent:?}");
}

#[test]
fn a_recording_onto_several_disks_is_one_recording() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::start(below, "");
    let disks = ["a", "b"].map(|name| below.join(name));
    for disk in &disks {
        fs::create_dir(disk).expect("space");
    }
    let configured = json!({
        "mode": "VDIF_4000-32-1-2", "to": disks, "chunk_size": "1100 kB",
        "listen": format!("udp://127.0.0.1:{}", sender.port()),
    });
    let configured = service.json(200, "POST", "/configure", &configured.to_string());
    assert_eq!(configured["configuration"]["to"], json!(disks), "{configured}");
    service.json(200, "POST", "/arm", "{\"name\": \"scan\"}");
    service.json(200, "POST", "/start", "");
    send_vdif(below, sender.port(), 500);
    service.await_packets(500);
    let stopped = service.json(200, "POST", "/stop", "");
    let lanes = disks.each_ref().map(|disk| disk.join("scan"));
    assert_eq!((&stopped["last"]["paths"], &stopped["last"]["fault"]), (&json!(lanes), &Value::Null));
    let checked = Station::connect(service.mark5).say("scan_check?;");
    assert!(checked.contains(" : scan : VDIF : 2 : 20") && checked.contains(" : 0.5000s : "), "{checked}");
    for lane in &lanes {
        assert!(lane.join("scan.summary.json").exists(), "{}", lane.display());
    }
    let verified = run(&[&["verify".into()][..], &lanes].concat());
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_recording_of_vdif_tells_its_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::start(below, "");
    let mut station = Station::connect(service.mark5);
    let say = |station: &mut Station, text: &str| station.say(text);
    // 4000 bytes of samples, 32 Mbit/s: 1000 frames a second.
    assert_eq!(say(&mut station, "mode=VDIF_4000-32-1-2;"), "!mode= 0 ;");
    let port = sender.port();
    assert_eq!(say(&mut station, &format!("net_port={port};")), "!net_port= 0 ;");
    assert_eq!(say(&mut station, "mode?;"), "!mode? 0 : VDIF_4000-32-1-2 : VDIF : 2 : 16000000.000 : 4032 ;");
    assert_eq!(say(&mut station, "record=on:vdif;"), "!record= 0 ;");
    send_vdif(below, port, 500);
    service.await_packets(500);
    assert_eq!(say(&mut station, "record=off;"), "!record= 0 ;");
    let checked = say(&mut station, "scan_check?;");
    let fields: Vec<&str> = checked.trim_end_matches(" ;").split(" : ").collect();
    assert_eq!(fields[..5], ["!scan_check? 0", "1", "vdif", "VDIF", "2"], "{checked}");
    assert!(fields[5].starts_with("20") && fields[5].ends_with('s'), "{checked}");
    assert_eq!(fields[6..], ["0.5000s", "16Mbps", "0", "4032"], "{checked}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn floods_garbage_and_slow_clients_keep_nobody_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::start(below, &raw(below, &sender));
    let connect = |at| TcpStream::connect((Ipv4Addr::LOCALHOST, at)).expect("it listens");
    let mut station = Station::connect(service.mark5);
    assert_eq!(station.say("record=on:scan;"), "!record= 0 ;");
    let mut silent = Vec::new();
    for number in 0..150_u32 {
        let (mut http, mut mark5) = (connect(service.http.port()), connect(service.mark5.port()));
        match number % 3 {
            0 => {}
            1 => {
                drop(http.write_all(b"POST /arm HTTP/1.1\r\nContent-Length: 9\r\n"));
                drop(mark5.write_all(b"record=o"));
            }
            _ => {
                let garbage: Vec<u8> = (0..3000).map(|at: u32| (at * 31 + number) as u8).collect();
                drop(http.write_all(&garbage));
                drop(mark5.write_all(&garbage));
            }
        }
        silent.extend([http, mark5]);
    }
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "recording");
    assert!(station.say("record?;").starts_with("!record? 0 : on : 1 : scan"), "who spoke sensibly stays");
    assert_eq!(Station::connect(service.mark5).say("version?;").get(..12), Some("!version? 0 "));
    sender.send(0..50);
    service.await_packets(50);
    for (status, request) in [
        (404, "GET /secret HTTP/1.1\r\n\r\n"),
        (405, "GET /stop HTTP/1.1\r\n\r\n"),
        (405, "POST /status HTTP/1.1\r\n\r\n"),
        (403, "POST /stop HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page.example\r\n\r\n"),
        (403, "GET /status HTTP/1.1\r\nHost: page.example\r\n\r\n"),
        (413, "POST /arm HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"),
        (501, "POST /arm HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "nonsense\r\n\r\n"),
    ] {
        let mut stream = connect(service.http.port());
        stream.write_all(request.as_bytes()).expect("it reads");
        let (found, body) = answer(&mut stream);
        assert!(found == status && body.contains("error"), "{request}: {found} {body}");
    }
    // The first that was silent was told so, or made room.
    let mut first = String::new();
    drop(silent[0].read_to_string(&mut first));
    assert!(first.is_empty() || first.starts_with("HTTP/1.1 408"), "{first}");
    drop(silent);
    let stopped = service.json(200, "POST", "/stop", "");
    assert_eq!(stopped["last"]["packets"], 50);
    assert_eq!(service.json(400, "POST", "/arm", "{\"nam\": 5}")["state"], Value::Null);
    assert_eq!(service.json(400, "POST", "/arm", "{\"name\": \"a/b\"}")["state"], "configured");
    assert_eq!(service.json(400, "POST", "/arm", "{\"name\": \"scan\"}")["state"], "configured");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn what_was_armed_or_recorded_ends_in_order_with_the_service() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (directory.path(), Sender::new());
    let service = Service::start(below, &raw(below, &sender));
    service.json(200, "POST", "/arm", "{\"name\": \"armed\"}");
    assert!(below.join("armed").is_dir());
    assert_eq!(service.json(200, "POST", "/stop", "")["state"], "configured");
    assert!(!below.join("armed").exists(), "nothing was recorded");
    // It ends by itself after so many packets, and the next one can be armed.
    service.json(200, "POST", "/arm", "{\"name\": \"counted\", \"packets\": 10}");
    service.json(200, "POST", "/start", "");
    sender.send(0..10);
    await_some("the end", || {
        (service.json(200, "GET", "/status", "")["state"] == "configured").then_some(())
    });
    assert_eq!(recorded(below, "counted"), (0..10).collect::<Vec<_>>());
    service.json(200, "POST", "/arm", "{\"name\": \"signalled\"}");
    service.json(200, "POST", "/start", "");
    sender.send(0..30);
    service.await_packets(30);
    assert_eq!(service.end(), Some(0));
    assert_eq!(recorded(below, "signalled"), (0..30).collect::<Vec<_>>());
}

#[test]
fn what_can_not_be_served_is_refused_at_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("service.toml");
    let path = config.to_str().expect("plain");
    for (text, options, words) in [
        ("", &["--http", "0.0.0.0:0"][..], ["--listen-beyond-loopback", "0.0.0.0:0"]),
        ("[service]\nmark5 = \"[::]:0\"\n", &["--http", "off"], ["mark5", "--listen-beyond-loopback"]),
        ("[service]\nhttps = \"x\"\n", &[], ["https", "mark5"]),
        ("[record]\nbufer = \"1 GiB\"\n", &[], ["bufer", "receive_buffer"]),
        ("", &["--http", "nowhere"], ["nowhere", "127.0.0.1:9620"]),
    ] {
        fs::write(&config, text).expect("space");
        let ended = run(&[&["serve", "--config", path][..], options].concat());
        assert_eq!(ended.code, Some(2), "{text}{options:?}: {ended:?}");
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{text}{options:?}: {}", ended.stderr);
    }
}
