//! Who may reach a service: those who command it, those who send to it; and what its log says of commands.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use nilometer_tests::{await_some, free_port, start};
use nilometer_wire::zmtp;
use rustix::net::{AddressFamily, SocketType};

use crate::service::commanded::{Service, Station};

const LIMIT: Duration = Duration::from_mins(1);

/// A connection from another loopback address.
fn from_stranger(to: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let from = SocketAddr::new(IpAddr::from([127, 0, 0, 9]), 0);
    rustix::net::bind(&socket, &from).expect("an address of this machine");
    rustix::net::connect(&socket, &to).expect("somebody waits there");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).expect("a time");
    stream
}

/// Nothing is answered, and the connection ends.
fn is_refused(mut stream: TcpStream, said: &[u8]) -> bool {
    stream.write_all(said).unwrap_or_default();
    let mut answer = Vec::new();
    // It may be reset, as it was not read.
    drop(stream.read_to_end(&mut answer));
    answer.is_empty()
}

#[test]
fn only_named_clients_command_it_and_commands_stand_in_its_log() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let service = Service::reached(below, "allow_clients = [\"127.0.0.1\", \"10.0.0.0/24\"]\n", "");
    for _ in 0..2 {
        let request = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(is_refused(from_stranger(service.http), request));
    }
    assert!(is_refused(from_stranger(service.mark5), b"status?;\n"));
    assert_eq!(service.json(200, "GET", "/status", "")["state"], "idle");
    service.json(409, "POST", "/arm", "{\"name\": \"one\\u001b\"}");
    let mut station = Station::connect(service.mark5);
    station.say("status?;");
    station.say("record = on : one;");
    let said = service.stderr();
    let lines = |part: &str| said.lines().filter(|line| line.contains(part)).count();
    assert_eq!(lines("http: 127.0.0.9 is refused: --allow-clients names others"), 1, "{said}");
    assert_eq!(lines("mark5: 127.0.0.9 is refused"), 1, "{said}");
    let commands: Vec<_> = said.lines().filter(|line| line.starts_with("command at 20")).collect();
    assert_eq!(commands.len(), 2, "{said}");
    assert!(commands[0].contains("Z from 127.0.0.1:") && commands[0].contains(": POST /arm {"), "{said}");
    assert!(commands[0].ends_with(" -> 409 Conflict"), "{said}");
    assert!(commands[1].contains(": record = on : one -> !record= "), "{said}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn only_named_senders_send_to_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let below = directory.path();
    let port = free_port();
    let text = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [64, 64]\npixel = \"uint16\"\n\
                frame_rate = \"200 Hz\"\ndata = \"diffraction\"\n";
    std::fs::write(below.join("detector.toml"), text).expect("space");
    let record = format!("listen = \"tcp://127.0.0.1:{port}\"\nallow = [\"127.0.0.1\", \"127.0.0.2\"]\n");
    let service = Service::start(below, &record);
    assert_eq!(service.json(200, "POST", "/arm", "{\"name\": \"one\"}")["state"], "waiting");
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stranger = from_stranger(at);
    stranger.write_all(&zmtp::greeting()).expect("the kernel takes it");
    let to = format!("tcp://127.0.0.1:{port}");
    let arguments = ["simulate", "detector.toml", "--frames", "40", "--wait", "--connect", "--to", &to];
    let sent = start(below, &arguments).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let status = await_some("the end of the recording", || {
        let status = service.json(200, "GET", "/status", "");
        (status["recordings"] == 1).then_some(status)
    });
    assert_eq!(
        (&status["last"]["packets"], &status["last"]["fault"]),
        (&40.into(), &serde_json::Value::Null)
    );
    assert_eq!(
        status["recording"]["refused_connections"][0],
        serde_json::json!(["not allowed", 1]),
        "{status}"
    );
    assert_eq!(status["recording"]["refused_peers"], serde_json::json!(["127.0.0.9"]), "{status}");
    assert!(service.stderr().contains("refused sender 127.0.0.9: "));
    assert_eq!(service.end(), Some(0));
}
