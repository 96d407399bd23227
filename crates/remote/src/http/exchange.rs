//! One request of HTTP and its answer: what is sent, as libcurl asks for it, and what comes.

use std::{collections::VecDeque, io::SeekFrom};

use curl::easy::{Handler, ReadError, SeekResult, WriteError};
use nilometer_storage::Errno;

use crate::client::Flight;

/// Bytes of an error's text that are kept.
const SAID_AT_MOST: usize = 16 << 10;
/// Bytes of an answer that are kept: a longer one is a fault. A thousand names are less.
const TEXT_AT_MOST: usize = 16 << 20;

/// What a request does.
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

/// What is sent behind the headers.
#[derive(Debug, Default)]
pub(crate) enum HttpBody {
    #[default]
    Empty,
    /// So many bytes of the flight's buffer.
    Buffer(usize),
    Bytes(Vec<u8>),
    /// What comes later, of any length: see [`super::HttpClient::feed`].
    Stream,
}

/// A request; data of an operation stay in its buffer.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: HttpMethod,
    pub(crate) url: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: HttpBody,
    /// The operation that it is for, which comes back with the answer.
    pub(crate) flight: Option<Flight>,
    /// Of the answer, so many bytes go into the flight's buffer.
    pub(crate) into_buffer: usize,
}

/// What a server answered.
#[derive(Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u32,
    pub(crate) text: Vec<u8>,
    /// Bytes that went into the flight's buffer.
    pub(crate) moved: usize,
    headers: Vec<String>,
}

impl HttpAnswer {
    /// One of a text.
    #[cfg(test)]
    pub(crate) fn said(status: u32, text: &str) -> Self {
        HttpAnswer { status, text: text.into(), ..HttpAnswer::default() }
    }

    /// It did what it was asked.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A header's value; the name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.headers.iter().filter_map(|line| line.split_once(':'));
        pairs.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(crate) struct HttpFault {
    pub(crate) errno: Errno,
    pub(crate) why: String,
}

/// A request that is over, by the number that it was given.
#[derive(Debug)]
pub(crate) struct HttpEnd {
    pub(crate) token: usize,
    pub(crate) flight: Option<Flight>,
    /// Of a stream, what was not sent, or not whole.
    pub(crate) unsent: VecDeque<Flight>,
    pub(crate) outcome: Result<HttpAnswer, HttpFault>,
}

/// One request and its answer, as far as they are.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) body: HttpBody,
    pub(super) sent: usize,
    pub(super) flight: Option<Flight>,
    pub(super) into_buffer: usize,
    pub(super) answer: HttpAnswer,
    pub(super) stream: HttpStream,
}

/// A body that is given bit by bit, each the whole buffer of a write.
#[derive(Debug, Default)]
pub(super) struct HttpStream {
    pub(super) waiting: VecDeque<Flight>,
    /// Bytes of the first that are sent.
    begun: usize,
    pub(super) sent: Vec<Flight>,
    /// Nothing comes behind what waits.
    pub(super) is_last: bool,
}

impl HttpStream {
    /// What comes next; until there is something, the request pauses.
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
                // Less than there is ends the request.
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

    /// A connection that was kept and is gone: a body of which something was sent is not sent again on another.
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
