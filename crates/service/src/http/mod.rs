//! The recorder's HTTP server: it takes orders and reports the state. Each connection carries one request, which
//! takes at most a few seconds.

mod live;
mod page;
mod request;

use std::{
    io::{self, Read, Write},
    net::IpAddr,
    time::Duration,
};

use nilometer_model::Nanos;
use serde_json::{Map, Value, json};

use crate::{
    access::{AccessSecrets, TokenHolder},
    connections::{Connection, Connections},
    console::{Console, OrderOutcome},
    listener::ServiceListener,
    metrics::metrics,
    recording::options::RecordOptions,
    state::{RecorderOrder, RefusedOrder, ServiceReport},
};
use request::{BODY_MAX, BadRequest, HEAD_MAX, HttpRequest};

/// The most connections at once.
const MOST: usize = 64;
/// How long a client may take to send its request.
const PATIENCE: Nanos = Nanos::from_millis(5_000);
/// How long an answer waits for the outcome of an order.
const ORDER: Duration = Duration::from_secs(10);

/// Serves requests forever.
pub(super) fn serve(listener: &ServiceListener, console: &Console) {
    let console = console.clone();
    let local = listener.local_addr().is_ok_and(|at| at.ip().is_loopback());
    let secrets = listener.secrets().clone();
    let served = move |connection: &mut Connection| answer(connection, &console, local, &secrets);
    Connections::new(MOST).receive("http", listener, served);
}

/// An answer: status, type of the content, content.
#[derive(Debug, PartialEq, Eq)]
struct HttpResponse(u16, &'static str, Vec<u8>);

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn answer(
    connection: &mut Connection,
    console: &Console,
    local: bool,
    secrets: &AccessSecrets,
) -> io::Result<()> {
    let nonce = page::nonce();
    let HttpResponse(status, content, body) = match read(connection)? {
        Ok(request) => {
            let refused = refuse_without_token(connection, &request, secrets);
            connection.heard(refused.is_none());
            let asked = Asked { local, nonce: &nonce };
            let response = refused.unwrap_or_else(|| respond(&request, console, &asked));
            if request.method != "GET" {
                let body = String::from_utf8_lossy(&request.body);
                let command = format!("{} {} {body}", request.method, request.path);
                connection.note_command(&command, &format!("{} {}", response.0, reason(response.0)));
            }
            response
        }
        Err(BadRequest(status, why)) => refusal(status, why),
    };
    let reason = reason(status);
    let length = body.len();
    let policy = page::policy(&nonce);
    let challenge = if status == 401 { CHALLENGE } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\n{challenge}{policy}Connection: close\r\n\r\n"
    );
    connection.stream.write_all(&[head.as_bytes(), &body].concat())?;
    connection.stream.finish()
}

/// The header that makes browsers prompt for a name and a password, which is the token.
const CHALLENGE: &str = "WWW-Authenticate: Basic realm=\"nilometer\", charset=\"UTF-8\"\r\n";

/// Refuses a request whose client needs a token and has none that suffices. It also stores the holder's name in
/// the connection.
fn refuse_without_token(
    connection: &mut Connection,
    request: &HttpRequest,
    secrets: &AccessSecrets,
) -> Option<HttpResponse> {
    let tokens = secrets.tokens()?;
    let holder = request.authorization.as_deref().and_then(|header| tokens.holder(header));
    connection.client = holder.map(|holder| holder.name.clone());
    refusal_of(holder, &request.method)
}

fn refusal_of(holder: Option<&TokenHolder>, method: &str) -> Option<HttpResponse> {
    match holder {
        None => Some(refusal(401, "it needs a token: Authorization: Bearer TOKEN")),
        Some(holder) if method != "GET" && !holder.may_command => {
            Some(refusal(403, "this token is to read only, and commands nothing"))
        }
        Some(_) => None,
    }
}

/// Facts about a request that are not part of it.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    /// True if the service listens to this machine only.
    local: bool,
    /// The nonce that marks the page's own script and style.
    nonce: &'a str,
}

/// Reads a whole request. A client that is too slow gets status 408.
fn read(connection: &mut Connection) -> io::Result<Result<HttpRequest, BadRequest>> {
    const LATE: BadRequest = BadRequest(408, "the request did not arrive in time");
    connection.stream.give_up_after(PATIENCE);
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match request::parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Err(bad) => return Ok(Err(bad)),
            Ok(None) => {}
        }
        if bytes.len() > HEAD_MAX + BODY_MAX + 4 {
            return Ok(Err(LATE));
        }
        match connection.stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Err(LATE)),
            // The read timed out without data. The next read reports the deadline.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn respond(request: &HttpRequest, console: &Console, asked: &Asked<'_>) -> HttpResponse {
    if let Err(BadRequest(status, why)) = is_trusted(request, asked.local) {
        return refusal(status, why);
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/") => HttpResponse(200, page::CONTENT, page::page(asked.nonce).into()),
        ("GET", "/live") => HttpResponse(200, JSON, live::live(&console.live()).into()),
        ("GET", "/latest-frame") => live::latest_frame(console.latest_frame()),
        ("GET", "/status") => report(200, &console.report()),
        ("GET", "/metrics") => HttpResponse(200, TEXT, metrics(&console.report()).into()),
        ("POST", "/configure") => ordered(console, wishes(&request.body).map(RecorderOrder::Configure)),
        ("POST", "/arm") => ordered(console, arm(&request.body)),
        ("POST", "/start") => ordered(console, Ok(RecorderOrder::Start)),
        ("POST", "/stop") => ordered(console, Ok(RecorderOrder::Stop)),
        (_, "/" | "/live" | "/latest-frame" | "/status" | "/metrics") => refusal(405, "use GET"),
        (_, "/configure" | "/arm" | "/start" | "/stop") => refusal(405, "use POST"),
        _ => refusal(404, "there is GET /, /status, /metrics; POST /configure, /arm, /start, /stop (JSON)"),
    }
}

/// Refuses requests by which a page in a browser on this machine could command the recorder. Browsers name the
/// page that sends a request. The check of the host refuses names that their owners point to this machine.
fn is_trusted(request: &HttpRequest, local: bool) -> Result<(), BadRequest> {
    if request.method != "GET" && request.origin.is_some() {
        return Err(BadRequest(403, "pages in browsers may not command it"));
    }
    let host = request.host.as_deref().unwrap_or("localhost");
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    if local && !name.eq_ignore_ascii_case("localhost") && name.parse::<IpAddr>().is_err() {
        return Err(BadRequest(403, "name it by its address, or localhost"));
    }
    Ok(())
}

/// A JSON object. An empty body is an empty object.
fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|error| format!("write a JSON object: {error}"))
}

/// The options in a request, with the keys of the configuration.
fn wishes(body: &[u8]) -> Result<RecordOptions, String> {
    let keys = Value::Object(object(body)?);
    serde_json::from_value(keys).map_err(|error| error.to_string())
}

/// The options in a request, and its `metadata`.
fn arm(body: &[u8]) -> Result<RecorderOrder, String> {
    let mut keys = object(body)?;
    let metadata = keys.remove("metadata").map(serde_json::from_value).transpose();
    let metadata = metadata.map_err(|error| format!("metadata: {error}"))?.unwrap_or_default();
    let wishes = serde_json::from_value(Value::Object(keys)).map_err(|error| error.to_string())?;
    Ok(RecorderOrder::Arm(wishes, metadata))
}

fn ordered(console: &Console, order: Result<RecorderOrder, String>) -> HttpResponse {
    let order = match order {
        Ok(order) => order,
        Err(why) => return refusal(400, &why),
    };
    match console.order(order, ORDER) {
        Ok(OrderOutcome::Done(now)) => report(200, &now),
        Ok(OrderOutcome::UnderWay(now)) => report(202, &now),
        Err(RefusedOrder::WrongState(why)) => refused(409, &why, &console.report()),
        Err(RefusedOrder::AskedWrongly(why)) => refused(400, &why, &console.report()),
        Err(RefusedOrder::Failed(why)) => refused(500, &why, &console.report()),
        Err(RefusedOrder::Busy) => refused(503, "the service is busy: ask again", &console.report()),
    }
}

fn report(status: u16, report: &ServiceReport) -> HttpResponse {
    HttpResponse(status, JSON, (json!(report).to_string() + "\n").into())
}

fn refusal(status: u16, why: &str) -> HttpResponse {
    HttpResponse(status, JSON, (json!({ "error": why }).to_string() + "\n").into())
}

fn refused(status: u16, why: &str, now: &ServiceReport) -> HttpResponse {
    let body = json!({ "error": why, "state": now.state }).to_string() + "\n";
    HttpResponse(status, JSON, body.into())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::settings::RecordingSettings;

    fn request(method: &str, host: &str, origin: Option<&str>) -> HttpRequest {
        HttpRequest {
            method: method.into(),
            path: "/stop".into(),
            host: Some(host.into()),
            origin: origin.map(str::to_owned),
            authorization: None,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_page_in_a_browser_can_not_command_the_recorder() {
        for host in ["127.0.0.1:9620", "localhost", "LOCALHOST:9620", "[::1]:9620", "[::1]"] {
            assert_eq!(is_trusted(&request("POST", host, None), true), Ok(()), "{host}");
        }
        assert!(is_trusted(&request("POST", "localhost", Some("http://evil.example")), true).is_err());
        assert!(is_trusted(&request("POST", "localhost", Some("null")), false).is_err());
        assert!(is_trusted(&request("GET", "evil.example:9620", None), true).is_err(), "a name pointed here");
        assert!(
            is_trusted(&request("GET", "recorder.site", None), false).is_ok(),
            "beyond loopback it has a name"
        );
    }

    #[test]
    fn wishes_that_are_almost_valid_are_read_or_refused() {
        let all = "{\"instrument\": \"x\", \"mode\": \"VDIF_8000-4096-16-2\", \"to\": [\"/a\", \"/b\"], \"listen\": \"udp://h:5\", \
                   \"start\": \"2026y326d18h00m00s\", \"stop\": \"2026-11-22T19:00:00Z\", \"duration\": \"5 s\", \"packets\": 7, \
                   \"window\": 8, \"buffer\": \"1 MiB\", \"cpus\": [0, 1], \"missing\": \"fill\", \"metadata\": {\"PI\": [1, null]}}";
        nilometer_fuzz::fuzz("wishes", vec![all.into(), b"{}".to_vec()], |input| {
            drop(arm(input));
            drop(wishes(input).map(RecordingSettings::of));
        });
    }

    #[test]
    fn what_is_wished_has_the_keys_of_the_configuration() {
        assert_eq!(wishes(b" \r\n"), Ok(RecordOptions::default()));
        let wished =
            wishes(b"{\"instrument\": \"x\", \"packets\": 5, \"duration\": \"3 s\"}").expect("valid");
        assert_eq!((wished.packets, wished.duration), (Some(5), Some(Nanos::from_millis(3000))));
        assert!(wishes(b"{\"paket\": 5}").expect_err("a typo").contains("`packets`"));
        let Ok(RecorderOrder::Arm(wished, metadata)) =
            arm(b"{\"name\": \"n\", \"metadata\": {\"PI\": \"A. B.\"}}")
        else {
            panic!("valid")
        };
        assert_eq!((wished.name.as_deref(), &metadata["PI"]), (Some("n"), &json!("A. B.")));
        for wrong in [&b"[]"[..], b"{", b"{\"metadata\": 5}", b"5", b"{\"name\": 5}"] {
            assert!(arm(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
