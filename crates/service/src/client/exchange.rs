//! One request and its answer over a connection: HTTP/1.1, plain or by TLS. Every part of it has a deadline.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
};

use nilometer_model::Nanos;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use super::address::RecorderAddress;
use crate::client_stream::TimedSocket;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecorderQuestion<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
}

/// An answer, read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecorderAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A connection to a recorder.
#[derive(Debug)]
pub(super) enum RecorderConnection {
    Plain(TimedSocket),
    Tls(Box<StreamOwned<ClientConnection, TimedSocket>>),
}

/// The time to connect to one of the recorder's addresses.
const CONNECT: Nanos = Nanos::from_millis(5_000);
/// The time for an answer. An order may take a service ten seconds before it answers.
const ANSWER: Nanos = Nanos::from_millis(15_000);
/// The longest answer. 64 dumps with 200 ranges each have less than a tenth of it.
const LONGEST: usize = 16 << 20;
/// The most headers of an answer.
const HEADERS: usize = 32;

impl RecorderConnection {
    /// Connects, within a limit for each address of the host.
    pub(super) fn to(address: &RecorderAddress, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for at in (address.host(), address.port()).to_socket_addrs()? {
            match TcpStream::connect_timeout(&at, CONNECT.duration()) {
                Ok(stream) => return RecorderConnection::over(stream, address, tls),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn over(
        stream: TcpStream,
        address: &RecorderAddress,
        tls: Option<&Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        stream.set_write_timeout(Some(CONNECT.duration()))?;
        let mut socket = TimedSocket::new(stream);
        socket.give_up_after(ANSWER);
        let Some(config) = tls else { return Ok(RecorderConnection::Plain(socket)) };
        let name = ServerName::try_from(address.host().to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        Ok(RecorderConnection::Tls(Box::new(StreamOwned::new(session, socket))))
    }

    /// Sends the request and reads its answer.
    pub(super) fn ask(
        &mut self,
        address: &RecorderAddress,
        token: Option<&str>,
        question: &RecorderQuestion<'_>,
    ) -> io::Result<RecorderAnswer> {
        let mut text = head(address, token, question).into_bytes();
        text.extend_from_slice(question.body);
        match self {
            RecorderConnection::Plain(socket) => exchange(socket, &text),
            RecorderConnection::Tls(stream) => exchange(stream, &text),
        }
    }
}

fn head(address: &RecorderAddress, token: Option<&str>, question: &RecorderQuestion<'_>) -> String {
    let RecorderQuestion { method, path, body } = question;
    let host = address.authority();
    let length = body.len();
    let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{token}Content-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> io::Result<RecorderAnswer> {
    stream.write_all(request)?;
    stream.flush()?;
    read_answer(stream)
}

/// Reads an answer up to the length that its header states, or up to the end of the connection.
fn read_answer(stream: &mut impl Read) -> io::Result<RecorderAnswer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let count = match stream.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        bytes.extend_from_slice(&piece[..count]);
        if let Some(answer) = answer_in(&bytes, count == 0)? {
            return Ok(answer);
        }
        if count == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "its answer breaks off"));
        }
        if bytes.len() > LONGEST {
            return Err(invalid("its answer has no end"));
        }
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Returns the answer in these bytes. `None` if more must come.
fn answer_in(bytes: &[u8], is_end: bool) -> io::Result<Option<RecorderAnswer>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let parsed = answer.parse(bytes).map_err(|_| invalid("its answer is not HTTP"))?;
    let (httparse::Status::Complete(begin), Some(status)) = (parsed, answer.code) else { return Ok(None) };
    let mut headers = answer.headers.iter();
    let length = headers.find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.map(|header| std::str::from_utf8(header.value).ok()?.trim().parse::<usize>().ok());
    let body = &bytes[begin..];
    let body = match length {
        Some(None) => return Err(invalid("the length of its answer is no number")),
        Some(Some(length)) if length > LONGEST => return Err(invalid("its answer is too long")),
        Some(Some(length)) => body.get(..length),
        None => Some(body).filter(|_| is_end),
    };
    Ok(body.map(|body| RecorderAnswer { status, body: body.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RecorderAnswer, ErrorKind> {
        read_answer(&mut text.as_bytes()).map_err(|error| error.kind())
    }

    fn body(text: &str) -> Result<String, ErrorKind> {
        read(text).map(|answer| String::from_utf8(answer.body).expect("text"))
    }

    #[test]
    fn an_answer_ends_where_its_length_says_or_the_connection() {
        assert_eq!(body("HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}more"), Ok("{}".into()));
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\n{}more"), Ok("{}more".into()));
        assert_eq!(read("HTTP/1.1 404 No\r\n\r\n").map(|answer| answer.status), Ok(404));
    }

    #[test]
    fn answers_that_break_off_or_are_none_are_errors() {
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"), Err(ErrorKind::UnexpectedEof));
        assert_eq!(body("HTTP/1.1 200"), Err(ErrorKind::UnexpectedEof));
        assert_eq!(body(""), Err(ErrorKind::UnexpectedEof));
        assert_eq!(body("SSH-2.0-OpenSSH\r\n"), Err(ErrorKind::InvalidData));
        for length in ["-1", "x", "99999999999"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{{}}");
            assert_eq!(body(&text), Err(ErrorKind::InvalidData), "{length}");
        }
    }

    #[test]
    fn answers_of_strangers_are_read_or_refused() {
        let valid = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".to_vec();
        nilometer_fuzz::fuzz("answer", vec![valid], |mut input| {
            drop(read_answer(&mut input));
        });
    }

    #[test]
    fn a_request_has_its_token_and_its_length() {
        let address: RecorderAddress = "[::1]:9620".parse().expect("an address");
        let question = RecorderQuestion { method: "POST", path: "/dump", body: b"{}" };
        let text = head(&address, Some("secret"), &question);
        assert!(text.starts_with("POST /dump HTTP/1.1\r\nHost: [::1]:9620\r\n"), "{text}");
        assert!(text.contains("Authorization: Bearer secret\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 2\r\nConnection: close\r\n\r\n"), "{text}");
    }
}
