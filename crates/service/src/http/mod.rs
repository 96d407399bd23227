//! The recorder's HTTP server: it takes orders and reports the state. Each connection carries one request, which
//! takes at most a few seconds.

mod answers;
mod dumps;
mod events;
mod live;
mod openapi;
mod orders;
mod page;
mod request;
mod route;
mod routes;

use std::{
    io::{self, Read, Write},
    net::IpAddr,
};

use nilometer_model::Nanos;

use crate::{
    access::{AccessSecrets, TokenHolder},
    connections::{Connection, Connections},
    console::Console,
    listener::ServiceListener,
};
use answers::{EVENTS, HttpResponse, reason, refusal};
use events::{EventQueue, EventStreams, StreamPlace};
use request::{BODY_MAX, BadRequest, HEAD_MAX, HttpRequest};
use route::{RouteAnswer, RoutedRequest};

use routes::FoundRoute;
pub use routes::openapi_document;

/// The most connections at once.
const MOST: usize = 64;
/// How long a client may take to send its request.
const PATIENCE: Nanos = Nanos::from_millis(5_000);

/// Serves requests forever.
pub(super) fn serve(listener: &ServiceListener, console: &Console) {
    let parts = ServedParts {
        console: console.clone(),
        local: listener.local_addr().is_ok_and(|at| at.ip().is_loopback()),
        secrets: listener.secrets().clone(),
        streams: EventStreams::default(),
    };
    let served = move |connection: &mut Connection| answer(connection, &parts);
    Connections::new(MOST).receive("http", listener, served);
}

/// The parts that all connections share.
#[derive(Debug, Clone)]
struct ServedParts {
    console: Console,
    /// True if the service listens to this machine only.
    local: bool,
    secrets: AccessSecrets,
    streams: EventStreams,
}

fn answer(connection: &mut Connection, parts: &ServedParts) -> io::Result<()> {
    let nonce = page::nonce();
    let response = match read(connection)? {
        Ok(request) => {
            let refused = refuse_without_token(connection, &request, &parts.secrets);
            connection.heard(refused.is_none());
            let answer = refused.map_or_else(|| respond(&request, parts, &nonce), ServedAnswer::Whole);
            let response = match answer {
                ServedAnswer::Whole(response) => response,
                ServedAnswer::Events(place) => {
                    let sent = send_events(connection, &request, parts, &nonce);
                    drop(place);
                    return sent;
                }
            };
            if request.method != "GET" {
                let body = String::from_utf8_lossy(&request.body);
                let command = format!("{} {} {body}", request.method, request.path);
                connection.note_command(&command, &format!("{} {}", response.0, reason(response.0)));
            }
            response
        }
        Err(BadRequest(status, why)) => refusal(status, why),
    };
    let HttpResponse(status, content, body) = response;
    let head = head(status, content, Some(body.len()), &nonce);
    connection.stream.write_all(&[head.as_bytes(), &body].concat())?;
    connection.stream.finish()
}

/// The head of an answer. A stream of events has no length: it ends with the connection.
fn head(status: u16, content: &str, length: Option<usize>, nonce: &str) -> String {
    let reason = reason(status);
    let policy = page::policy(nonce);
    let challenge = if status == 401 { CHALLENGE } else { "" };
    let length = length.map_or_else(String::new, |length| format!("Content-Length: {length}\r\n"));
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content}\r\n{length}\
         Cache-Control: no-store\r\n{challenge}{policy}Connection: close\r\n\r\n"
    )
}

/// Sends events until the client leaves, its token is no longer valid, or the recorder ends.
fn send_events(
    connection: &mut Connection,
    request: &HttpRequest,
    parts: &ServedParts,
    nonce: &str,
) -> io::Result<()> {
    connection.stream.write_all(head(200, EVENTS, None, nonce).as_bytes())?;
    let mut events = EventQueue::new(&parts.console);
    loop {
        let text = events.next();
        let is_refused = refuse_without_token(connection, request, &parts.secrets).is_some();
        let Some(text) = text.filter(|_| !is_refused) else { return connection.stream.finish() };
        connection.stream.write_all(text.as_bytes())?;
        connection.stream.flush()?;
        // A client that reads events is not silent.
        connection.heard(true);
    }
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

/// An answer as a whole, or events one after the other.
#[derive(Debug)]
enum ServedAnswer {
    Whole(HttpResponse),
    Events(StreamPlace),
}

fn respond(request: &HttpRequest, parts: &ServedParts, nonce: &str) -> ServedAnswer {
    if let Err(BadRequest(status, why)) = is_trusted(request, parts.local) {
        return ServedAnswer::Whole(refusal(status, why));
    }
    let FoundRoute { route, id } = match routes::find(&request.method, &request.path) {
        Ok(found) => found,
        Err(BadRequest(status, why)) => return ServedAnswer::Whole(refusal(status, why)),
    };
    let asked = RoutedRequest { body: &request.body, id, console: &parts.console, nonce };
    match route.answer {
        RouteAnswer::Whole(answer) => ServedAnswer::Whole(answer(&asked)),
        RouteAnswer::Events => parts.streams.enter().map_or_else(
            || ServedAnswer::Whole(refusal(503, "too many clients follow the events: ask GET /status")),
            ServedAnswer::Events,
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
