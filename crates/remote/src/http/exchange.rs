//! One HTTP request and its answer: supplies the body when libcurl asks for it, and collects the answer.

use std::{collections::VecDeque, io::SeekFrom};

use curl::easy::{Handler, ReadError, SeekResult, WriteError};
use nilometer_storage::Errno;

use crate::client::Flight;

/// Longest text of an error answer that is kept, in bytes.
const SAID_AT_MOST: usize = 16 << 10;
/// Longest text of an answer, in bytes; a longer one is a fault. A thousand names need less.
const TEXT_AT_MOST: usize = 16 << 20;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpMethod {
    Get,
    Head,
    Put,
    Post,
    Delete,
}

impl HttpMethod {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Head => "HEAD",
            HttpMethod::Put => "PUT",
            HttpMethod::Post => "POST",
            HttpMethod::Delete => "DELETE",
        }
    }
}

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) enum HttpBody {
    #[default]
    Empty,
    /// This number of bytes of the flight's buffer.
    Buffer(usize),
    Bytes(Vec<u8>),
    /// Writes of any total length, supplied later through [`super::HttpClient::feed`].
    Stream,
}

/// A request. The data of an operation stay in its buffer.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: HttpMethod,
    pub(crate) url: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: HttpBody,
    /// The operation behind the request, which comes back with the answer.
    pub(crate) flight: Option<Flight>,
    /// Number of bytes of the answer to store in the flight's buffer.
    pub(crate) into_buffer: usize,
}

/// A server's answer.
#[derive(Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u32,
    pub(crate) text: Vec<u8>,
    /// Bytes stored in the flight's buffer.
    pub(crate) moved: usize,
    headers: Vec<String>,
}

impl HttpAnswer {
    /// Makes an answer with this status and text.
    #[cfg(test)]
    pub(crate) fn said(status: u32, text: &str) -> Self {
        HttpAnswer { status, text: text.into(), ..HttpAnswer::default() }
    }

    /// Returns true for status 200 to 299.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns a header's value. The case of the name does not matter.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.headers.iter().filter_map(|line| line.split_once(':'));
        pairs.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// The reason why there is no answer.
#[derive(Debug, Clone)]
pub(crate) struct HttpFault {
    pub(crate) errno: Errno,
    pub(crate) why: String,
}

/// A finished request, identified by the token from [`super::HttpClient::begin`].
#[derive(Debug)]
pub(crate) struct HttpEnd {
    pub(crate) token: usize,
    pub(crate) flight: Option<Flight>,
    /// Writes of a stream that were not sent, or only in part.
    pub(crate) unsent: VecDeque<Flight>,
    pub(crate) outcome: Result<HttpAnswer, HttpFault>,
}

/// The current state of one request and its answer.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) body: HttpBody,
    pub(super) sent: usize,
    pub(super) flight: Option<Flight>,
    pub(super) into_buffer: usize,
    pub(super) answer: HttpAnswer,
    pub(super) stream: HttpStream,
}

/// A body made of writes, each of which supplies its whole buffer.
#[derive(Debug, Default)]
pub(super) struct HttpStream {
    pub(super) waiting: VecDeque<Flight>,
    /// Bytes already sent of the first waiting write.
    begun: usize,
    pub(super) sent: Vec<Flight>,
    /// True if no write follows the waiting ones.
    pub(super) is_last: bool,
}

impl HttpStream {
    /// Copies the next bytes of the body. The request pauses while there are none.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0;
        while let Some(flight) = self.waiting.front() {
            let length = (flight.operation.length as usize).min(flight.operation.buffer.len());
            let bytes = &flight.operation.buffer[self.begun..length];
            let taken = bytes.len().min(into.len() - filled);
            into[filled..filled + taken].copy_from_slice(&bytes[..taken]);
            filled += taken;
            self.begun += taken;
            if self.begun < length {
                return Ok(filled);
            }
            self.begun = 0;
            self.sent.extend(self.waiting.pop_front());
        }
        if filled == 0 && !self.is_last { Err(ReadError::Pause) } else { Ok(filled) }
    }
}

impl Exchange {
    pub(super) fn body(&self) -> &[u8] {
        match (&self.body, &self.flight) {
            (HttpBody::Bytes(bytes), _) => bytes,
            (HttpBody::Buffer(length), Some(flight)) => &flight.operation.buffer[..*length],
            _ => &[],
        }
    }
}

impl Handler for Exchange {
    fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        let answer = &mut self.answer;
        if let Some(flight) = self.flight.as_mut().filter(|_| self.into_buffer > 0 && answer.is_success()) {
            let room = self.into_buffer - answer.moved;
            let taken = data.len().min(room);
            flight.operation.buffer[answer.moved..answer.moved + taken].copy_from_slice(&data[..taken]);
            answer.moved += taken;
        } else if answer.is_success() {
            if answer.text.len() + data.len() > TEXT_AT_MOST {
                // A count below the length of the data makes libcurl end the request.
                return Ok(0);
            }
            answer.text.extend_from_slice(data);
        } else if answer.text.len() < SAID_AT_MOST {
            answer.text.extend_from_slice(data);
        }
        Ok(data.len())
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        if matches!(self.body, HttpBody::Stream) {
            return self.stream.read(into);
        }
        let left = &self.body()[self.sent..];
        let length = left.len().min(into.len());
        into[..length].copy_from_slice(&left[..length]);
        self.sent += length;
        Ok(length)
    }

    /// Rewinds the body when a kept connection turns out to be closed. It refuses if any of the body was sent,
    /// so that no data go out twice.
    fn seek(&mut self, whence: SeekFrom) -> SeekResult {
        match whence {
            SeekFrom::Start(_) if self.sent > 0 || matches!(self.body, HttpBody::Stream) => SeekResult::Fail,
            SeekFrom::Start(place) if place <= self.body().len() as u64 => {
                self.sent = place as usize;
                SeekResult::Ok
            }
            _ => SeekResult::CantSeek,
        }
    }

    fn header(&mut self, data: &[u8]) -> bool {
        let line = String::from_utf8_lossy(data).trim_end().to_owned();
        if let Some(rest) = line.strip_prefix("HTTP/") {
            let status = rest.split_whitespace().nth(1).and_then(|status| status.parse().ok());
            self.answer = HttpAnswer { status: status.unwrap_or(0), ..HttpAnswer::default() };
        } else if !line.is_empty() {
            self.answer.headers.push(line);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Nanos;
    use nilometer_storage::{Buffer, OpKind, Operation, Slot};

    /// A write of these bytes.
    fn flight(bytes: &[u8]) -> Flight {
        let mut buffer = Buffer::alone(bytes.len());
        buffer.copy_from_slice(bytes);
        let operation =
            Operation { length: bytes.len() as u32, ..Operation::on(OpKind::Write, Slot(1), buffer) };
        Flight { operation, due: Nanos(0), issued: Nanos(0) }
    }

    #[test]
    fn a_stream_sends_its_writes_in_order_whatever_a_call_takes() {
        for room in 1..=11 {
            let mut stream = HttpStream::default();
            let writes: [&[u8]; 3] = [b"abcd", b"efg", b"hijk"];
            stream.waiting.extend(writes.map(flight));
            stream.is_last = true;
            let mut body = Vec::new();
            loop {
                let mut into = vec![0; room];
                let Ok(filled) = stream.read(&mut into) else { panic!("no pause behind the last write") };
                if filled == 0 {
                    break;
                }
                body.extend_from_slice(&into[..filled]);
            }
            assert_eq!(body, b"abcdefghijk", "{room} bytes at a time");
            assert_eq!((stream.waiting.len(), stream.sent.len()), (0, 3));
        }
    }

    #[test]
    fn a_stream_pauses_until_another_write_comes() {
        let mut stream = HttpStream::default();
        assert!(matches!(stream.read(&mut [0; 4]), Err(ReadError::Pause)));
        stream.waiting.push_back(flight(b"ab"));
        let mut into = [0; 4];
        assert!(matches!(stream.read(&mut into), Ok(2)) && into == *b"ab\0\0");
        assert!(matches!(stream.read(&mut into), Err(ReadError::Pause)));
    }
}
