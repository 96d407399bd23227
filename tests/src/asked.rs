//! Requests to the program over HTTP.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use serde_json::Value;

use crate::{Running, await_some, patience::PATIENCE};

/// The address at which a program says that it listens.
pub fn address(running: &Running, what: &str) -> SocketAddr {
    let (said, beginning) = (running.stderr(), format!("{what} at "));
    let line = said.lines().find_map(|line| line.strip_prefix(&beginning)).expect("it says where");
    // The text behind the address describes how to reach it.
    line.split(',').next().unwrap_or(line).parse().expect("an address")
}

/// The status and the body of an answer.
pub fn ask(at: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).expect("it listens");
    let length = body.len();
    let text =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).expect("it reads");
    answer(&mut stream)
}

/// The status of a recorder that was started with `--http`.
pub fn status(at: SocketAddr) -> Value {
    let (code, text) = ask(at, "GET", "/status", "");
    assert_eq!(code, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Reads an answer: its status and body.
pub fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// Waits until the recorder at this address has counted `packets` packets: as received, or as dropped by the
/// kernel.
pub fn await_packets(at: SocketAddr, packets: u64) {
    await_some("all packets", || {
        let recording = &status(at)["recording"];
        let (came, lost) = (recording["came"]["packets"].as_u64()?, &recording["lost"]);
        let dropped = lost["kernel_dropped"].as_u64()? + lost["bad_checksums"].as_u64()?;
        (came + dropped >= packets).then_some(())
    });
}
