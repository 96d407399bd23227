//! Servers that list for ever: whoever asks them goes on, and says which bound was reached.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use nilometer_tests::{Ended, Running, clients, command_of, nilometer};

const LIMIT: Duration = Duration::from_mins(2);

/// What a server that lies answers to a request, which is counted.
type Answer = fn(request: &str, count: u64) -> (u16, String);

/// Serves on a port of this machine until the test ends: that port.
fn serve(answer: Answer) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let count = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = count.clone();
            thread::spawn(move || converse(&stream, answer, &count));
        }
    });
    port
}

/// Answers the requests of a connection, until the other end leaves.
fn converse(stream: &TcpStream, answer: Answer, count: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        reader.read_line(&mut request).ok().filter(|length| *length > 0)?;
        let mut body = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                body = value.trim().parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; body]).ok()?;
        let (status, text) = answer(&request, count.fetch_add(1, Ordering::Relaxed));
        let text = if request.starts_with("HEAD") { String::new() } else { text };
        let length = text.len();
        let said = format!("HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n\r\n{text}");
        (&*stream).write_all(said.as_bytes()).ok()?;
    }
}

/// A name node that has one more file, whatever it has listed.
fn name_node(request: &str, count: u64) -> (u16, String) {
    if request.contains("LISTSTATUS") {
        let file = format!("{{\"type\":\"FILE\",\"length\":1,\"pathSuffix\":\"x{count}\"}}");
        let listing = format!(
            "{{\"DirectoryListing\":{{\"partialListing\":{{\"FileStatuses\":{{\"FileStatus\":[{file}]}}}},\
             \"remainingEntries\":1000000}}}}"
        );
        return (200, listing);
    }
    if request.contains("GETFILESTATUS") {
        return (200, "{\"FileStatus\":{\"type\":\"DIRECTORY\",\"length\":0,\"fileId\":5}}".into());
    }
    (200, "{\"boolean\":true,\"beans\":[{}]}".into())
}

/// A store that has one more object, whatever it has listed.
fn store(request: &str, count: u64) -> (u16, String) {
    if request.starts_with("HEAD") {
        return (404, String::new());
    }
    let prefix =
        request.split("prefix=").nth(1).unwrap_or_default().split(['&', ' ']).next().unwrap_or_default();
    let prefix = prefix.replace("%2F", "/");
    let listing = format!(
        "<ListBucketResult><Contents><Key>{prefix}x{count}</Key><Size>1</Size></Contents>\
         <NextContinuationToken>{count}</NextContinuationToken></ListBucketResult>"
    );
    (200, listing)
}

/// Runs the program with keys for the store at this port.
fn ask(arguments: &[&str], port: u16) -> Ended {
    let mut command = command_of(nilometer());
    let endpoint = format!("http://127.0.0.1:{port}");
    command.args(arguments).current_dir(std::env::temp_dir()).env_remove("AWS_CA_BUNDLE");
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_REGION", "us-east-1"),
    ] {
        command.env(name, value);
    }
    Running::of(command).end(LIMIT)
}

#[test]
fn a_listing_without_end_is_given_up_at_a_bound_that_is_named() {
    let there = clients();
    if there.contains(&"hdfs") {
        let port = serve(name_node);
        let [above, below] = ["", "/r"].map(|path| format!("hdfs://127.0.0.1:{port}/x{path}"));
        for arguments in [["scan", &above], ["verify", &below], ["clean", &above]] {
            let ended = ask(&arguments, port);
            let is_said = ended.stderr.contains("the server's listing has no end: more than 1000 answers");
            assert!(is_said && ended.code.is_some_and(|code| code > 0), "{arguments:?}: {ended:?}");
        }
    }
    if there.contains(&"s3") {
        let port = serve(store);
        for arguments in [["scan", "s3://b/x"], ["verify", "s3://b/x/r"], ["clean", "s3://b/x"]] {
            let ended = ask(&arguments, port);
            let is_said = ended.stderr.contains("the server's listing has no end: more than 1000 answers");
            assert!(is_said && ended.code.is_some_and(|code| code > 0), "{arguments:?}: {ended:?}");
        }
    }
}
