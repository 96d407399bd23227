//! HTTP/1.1 for storage that is reached by it: as many requests under way as are begun, each on a connection of its own, which
//! the calling thread serves while it waits. By libcurl, so that proxies, TLS and its certificates are as on the rest of the
//! machine. Nothing is tried again, since what is measured is what the storage did; but where a connection that was kept turns
//! out to be closed before an answer begins, libcurl sends a request of which no body was sent yet on another.

use std::{
    io::SeekFrom,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use curl::{
    easy::{Easy2, Handler, HttpVersion, List, ReadError, SeekResult, WriteError},
    multi::{Easy2Handle, Multi, MultiWaker},
};
use nilometer_storage::{Errno, Wake};

use crate::client::Flight;

/// A connection is tried so long.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// So long a server may be silent in the middle of a request.
const SILENT_AT_MOST: Duration = Duration::from_mins(1);
/// What is read from a connection, and written to it, at once.
const PIECE: usize = 512 << 10;
/// Bytes of an error's text that are kept.
const SAID_AT_MOST: usize = 16 << 10;
/// Bytes of an answer that are kept: a longer one is a fault. A thousand names are less.
const TEXT_AT_MOST: usize = 16 << 20;
/// Connections that are kept for later requests.
const KEPT_CONNECTIONS: usize = 256;

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
    pub(crate) outcome: Result<HttpAnswer, HttpFault>,
}

/// One request and its answer, as far as they are.
#[derive(Debug, Default)]
struct Exchange {
    body: HttpBody,
    sent: usize,
    flight: Option<Flight>,
    into_buffer: usize,
    answer: HttpAnswer,
}

impl Exchange {
    fn body(&self) -> &[u8] {
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
        let left = &self.body()[self.sent..];
        let length = left.len().min(into.len());
        into[..length].copy_from_slice(&left[..length]);
        self.sent += length;
        Ok(length)
    }

    /// A connection that was kept and is gone: a body of which something was sent is not sent again on another.
    fn seek(&mut self, whence: SeekFrom) -> SeekResult {
        match whence {
            SeekFrom::Start(_) if self.sent > 0 => SeekResult::Fail,
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

/// Wakes a thread that waits for answers.
#[derive(Debug)]
struct HttpWaker {
    waker: MultiWaker,
    rung: AtomicBool,
}

impl Wake for HttpWaker {
    fn wake(&self) {
        self.rung.store(true, Ordering::Release);
        // It fails once the connections are gone, and then nobody waits.
        self.waker.wakeup().ok();
    }
}

/// Requests that are under way, of one thread.
pub(crate) struct HttpClient {
    running: Vec<Option<Easy2Handle<Exchange>>>,
    free: Vec<usize>,
    idle: Vec<Easy2<Exchange>>,
    /// What could not be begun.
    refused: Vec<HttpEnd>,
    waker: Arc<HttpWaker>,
    /// A file of certificates that are trusted, where it is not the machine's own.
    certificates: Option<String>,
    multi: Multi,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpClient({} under way)", self.under_way())
    }
}

impl HttpClient {
    pub(crate) fn new(certificates: Option<String>) -> Self {
        let mut multi = Multi::new();
        // Where this can't be chosen more connections are made than needed.
        multi.set_max_connects(KEPT_CONNECTIONS).ok();
        let waker = Arc::new(HttpWaker { waker: multi.waker(), rung: AtomicBool::new(false) });
        HttpClient {
            running: Vec::new(),
            free: Vec::new(),
            idle: Vec::new(),
            refused: Vec::new(),
            waker,
            certificates,
            multi,
        }
    }

    pub(crate) fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    /// Whether it was woken since this was asked last.
    pub(crate) fn was_rung(&self) -> bool {
        self.waker.rung.swap(false, Ordering::Acquire)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.running.len() - self.free.len()
    }

    /// Begins a request: by which number its end is known.
    pub(crate) fn begin(&mut self, request: HttpRequest) -> usize {
        let token = self.free.pop().unwrap_or_else(|| {
            self.running.push(None);
            self.running.len() - 1
        });
        let mut easy = self.idle.pop().unwrap_or_else(|| Easy2::new(Exchange::default()));
        easy.reset();
        match prepare(&mut easy, request, self.certificates.as_deref()) {
            Ok(()) => {
                let mut handle = self.multi.add2(easy).expect("a handle of its own is in no other set");
                handle.set_token(token).expect("it only keeps a number");
                self.running[token] = Some(handle);
            }
            Err(error) => {
                let flight = std::mem::take(easy.get_mut()).flight;
                self.refused.push(HttpEnd { token, flight, outcome: Err(fault(&error, None)) });
            }
        }
        token
    }

    /// Sends and receives what can be without waiting, and appends what is over.
    pub(crate) fn advance(&mut self, ended: &mut Vec<HttpEnd>) {
        for end in self.refused.drain(..) {
            self.free.push(end.token);
            ended.push(end);
        }
        // What fails here fails the requests too, which say so.
        self.multi.perform().ok();
        let mut over = Vec::new();
        self.multi.messages(|message| {
            let Ok(token) = message.token() else { return };
            let handle = self.running.get(token).and_then(Option::as_ref);
            over.extend(handle.and_then(|handle| Some((token, message.result_for2(handle)?))));
        });
        for (token, result) in over {
            let Some(handle) = self.running[token].take() else { continue };
            self.free.push(token);
            if let Ok(mut easy) = self.multi.remove2(handle) {
                let Exchange { flight, answer, .. } = std::mem::take(easy.get_mut());
                let errno = easy.os_errno().ok().filter(|errno| *errno > 0);
                let outcome = result.map(|()| answer).map_err(|error| fault(&error, errno));
                self.idle.push(easy);
                ended.push(HttpEnd { token, flight, outcome });
            }
        }
    }

    /// Waits until something can be sent or received, it is woken, or so long.
    pub(crate) fn wait(&self, limit: Duration) {
        // Whatever it fails at, the next turn looks again.
        self.multi.poll(&mut [], limit).ok();
    }
}

/// What libcurl is told of a request.
fn prepare(
    easy: &mut Easy2<Exchange>,
    request: HttpRequest,
    certificates: Option<&str>,
) -> Result<(), curl::Error> {
    let HttpRequest { method, url, headers, body, flight, into_buffer } = request;
    *easy.get_mut() = Exchange { body, flight, into_buffer, ..Exchange::default() };
    easy.url(&url)?;
    // Requests of HTTP/2 would share one connection, and one flow of data.
    easy.http_version(HttpVersion::V11)?;
    easy.connect_timeout(CONNECT_WITHIN)?;
    easy.low_speed_limit(1)?;
    easy.low_speed_time(SILENT_AT_MOST)?;
    if let Some(file) = certificates {
        easy.cainfo(file)?;
    }
    let mut list = List::new();
    for header in &headers {
        list.append(header)?;
    }
    match method {
        HttpMethod::Get => {
            easy.get(true)?;
            easy.buffer_size(PIECE)?;
        }
        HttpMethod::Head => easy.nobody(true)?,
        HttpMethod::Delete => easy.custom_request(method.name())?,
        HttpMethod::Put | HttpMethod::Post => {
            easy.upload(true)?;
            easy.upload_buffer_size(PIECE)?;
            easy.custom_request(method.name())?;
            easy.in_filesize(easy.get_ref().body().len() as u64)?;
            // Servers are not asked first whether they would take it: that would be a turn more for each object.
            list.append("Expect:")?;
        }
    }
    easy.http_headers(list)
}

/// What an error of libcurl is for who asks for files.
fn fault(error: &curl::Error, system: Option<i32>) -> HttpFault {
    let errno = if error.is_operation_timedout() {
        Errno::ETIMEDOUT
    } else if error.is_couldnt_resolve_host() {
        Errno(libc::EHOSTUNREACH)
    } else if error.is_couldnt_connect() {
        Errno(system.unwrap_or(libc::ECONNREFUSED))
    } else if error.is_got_nothing()
        || error.is_send_error()
        || error.is_send_fail_rewind()
        || error.is_recv_error()
        || error.is_partial_file()
    {
        Errno(libc::ECONNRESET)
    } else {
        Errno::EIO
    };
    let why = error.extra_description().filter(|why| !why.is_empty()).unwrap_or(error.description());
    HttpFault { errno, why: why.trim().to_owned() }
}
