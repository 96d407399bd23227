//! HTTP/1.1 for storage. Each request in flight has its own connection, which the calling thread serves while
//! it waits. It uses libcurl, so proxies, TLS and certificates are those of the rest of the machine.
//!
//! No failed request is repeated, because the measurement is about the storage. There is one exception: the
//! server may close a kept connection before the answer begins. If no part of the request's body was sent,
//! libcurl then sends the request on another connection.

mod exchange;

pub(crate) use exchange::{HttpAnswer, HttpBody, HttpEnd, HttpFault, HttpMethod, HttpRequest};

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use curl::{
    easy::{Easy2, HttpVersion, List},
    multi::{Easy2Handle, Multi, MultiWaker},
};
use nilometer_model::Nanos;
use nilometer_storage::{Clock, Errno, Wait, Wake};

use crate::client::Flight;
use exchange::Exchange;

/// Longest time to set up a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longest silence of a server in the middle of a request.
const SILENT_AT_MOST: Duration = Duration::from_mins(1);
/// Size of libcurl's receive and send buffers.
const PIECE: usize = 512 << 10;
/// Number of connections kept for later requests.
const KEPT_CONNECTIONS: usize = 256;
/// A wait until a given time polls during its last millisecond, because a sleeping thread wakes too late.
const AWAKE_BEFORE: Nanos = Nanos::from_millis(1);
/// Longest wait of a single call.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Wakes a thread that waits for answers.
#[derive(Debug)]
struct HttpWaker {
    waker: MultiWaker,
    rung: AtomicBool,
}

impl Wake for HttpWaker {
    fn wake(&self) {
        self.rung.store(true, Ordering::Release);
        // This fails once the connections are gone, and then no thread waits.
        self.waker.wakeup().ok();
    }
}

/// The requests of one thread.
pub(crate) struct HttpClient {
    running: Vec<Option<Easy2Handle<Exchange>>>,
    free: Vec<usize>,
    /// Tokens of the ends returned last. A caller begins new requests while it handles those ends. A new
    /// request must not get the token of an end that the caller has not yet handled.
    given_out: Vec<usize>,
    idle: Vec<Easy2<Exchange>>,
    /// Requests that could not be begun.
    refused: Vec<HttpEnd>,
    /// Tokens of requests whose body is a stream.
    streams: Vec<usize>,
    /// Writes of streams that were handed to the connection.
    sent: Vec<Flight>,
    waker: Arc<HttpWaker>,
    /// A file of trusted certificates, or `None` for the machine's own.
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
        // If this fails, libcurl only makes more connections than needed.
        multi.set_max_connects(KEPT_CONNECTIONS).ok();
        let waker = Arc::new(HttpWaker { waker: multi.waker(), rung: AtomicBool::new(false) });
        HttpClient {
            running: Vec::new(),
            free: Vec::new(),
            given_out: Vec::new(),
            idle: Vec::new(),
            refused: Vec::new(),
            streams: Vec::new(),
            sent: Vec::new(),
            waker,
            certificates,
            multi,
        }
    }

    pub(crate) fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    /// Returns true if the client was woken since the last call.
    pub(crate) fn was_rung(&self) -> bool {
        self.waker.rung.swap(false, Ordering::Acquire)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.running.len() - self.free.len() - self.given_out.len()
    }

    /// Begins a request and returns the token that identifies its end.
    pub(crate) fn begin(&mut self, request: HttpRequest) -> usize {
        let token = self.free.pop().unwrap_or_else(|| {
            self.running.push(None);
            self.running.len() - 1
        });
        let mut easy = self.idle.pop().unwrap_or_else(|| Easy2::new(Exchange::default()));
        easy.reset();
        if matches!(request.body, HttpBody::Stream) {
            self.streams.push(token);
        }
        match prepare(&mut easy, request, self.certificates.as_deref()) {
            Ok(()) => {
                let mut handle = self.multi.add2(easy).expect("a handle of its own is in no other set");
                handle.set_token(token).expect("it only keeps a number");
                self.running[token] = Some(handle);
            }
            Err(error) => {
                let flight = std::mem::take(easy.get_mut()).flight;
                let unsent = VecDeque::new();
                self.refused.push(HttpEnd { token, flight, unsent, outcome: Err(fault(&error, None)) });
            }
        }
        token
    }

    /// Gives a stream its next write, which comes back [sent](Self::take_sent) or [unsent](HttpEnd::unsent).
    /// Returns the write if the request is over.
    pub(crate) fn feed(&mut self, token: usize, flight: Flight) -> Option<Flight> {
        let Some(handle) = self.running.get_mut(token).and_then(Option::as_mut) else { return Some(flight) };
        handle.get_mut().stream.waiting.push_back(flight);
        resume(handle);
        None
    }

    /// Marks the end of a stream.
    pub(crate) fn finish(&mut self, token: usize) {
        let Some(handle) = self.running.get_mut(token).and_then(Option::as_mut) else { return };
        handle.get_mut().stream.is_last = true;
        resume(handle);
    }

    /// Appends the writes of streams that were handed to the connection, like writes to a socket.
    pub(crate) fn take_sent(&mut self, sent: &mut Vec<Flight>) {
        sent.append(&mut self.sent);
    }

    /// Sends and receives without waiting, and appends finished requests.
    pub(crate) fn advance(&mut self, ended: &mut Vec<HttpEnd>) {
        self.free.append(&mut self.given_out);
        for end in self.refused.drain(..) {
            self.streams.retain(|stream| *stream != end.token);
            self.given_out.push(end.token);
            ended.push(end);
        }
        // An error here also fails the requests, and they report it.
        self.multi.perform().ok();
        for &token in &self.streams {
            if let Some(handle) = self.running[token].as_mut() {
                self.sent.append(&mut handle.get_mut().stream.sent);
            }
        }
        let mut over = Vec::new();
        self.multi.messages(|message| {
            let Ok(token) = message.token() else { return };
            let handle = self.running.get(token).and_then(Option::as_ref);
            over.extend(handle.and_then(|handle| Some((token, message.result_for2(handle)?))));
        });
        for (token, result) in over {
            let Some(handle) = self.running[token].take() else { continue };
            self.given_out.push(token);
            self.streams.retain(|stream| *stream != token);
            if let Ok(mut easy) = self.multi.remove2(handle) {
                let Exchange { flight, answer, stream, .. } = std::mem::take(easy.get_mut());
                let errno = easy.os_errno().ok().filter(|errno| *errno > 0);
                let outcome = result.map(|()| answer).map_err(|error| fault(&error, errno));
                self.idle.push(easy);
                ended.push(HttpEnd { token, flight, unsent: stream.waiting, outcome });
            }
        }
    }

    /// Waits until data can be sent or received, another thread wakes the client, or `limit` has passed.
    pub(crate) fn wait(&self, limit: Duration) {
        // After any error the next turn polls again.
        self.multi.poll(&mut [], limit).ok();
    }

    /// Sends a request and waits for its answer. The client must have no other request under way.
    pub(crate) fn ask(&mut self, request: HttpRequest, limit: Duration) -> Result<HttpAnswer, HttpFault> {
        self.begin(request);
        let mut ended = Vec::new();
        let waited = Clock::start();
        self.advance(&mut ended);
        while ended.is_empty() {
            if waited.now().duration() > limit {
                let why = format!("no answer within {limit:?}");
                return Err(HttpFault { errno: Errno::ETIMEDOUT, why });
            }
            self.wait(Duration::from_millis(100));
            self.advance(&mut ended);
        }
        ended.remove(0).outcome
    }
}

/// Returns how long one call may wait, or `None` if it must not.
pub(crate) fn left_of(wait: Wait, clock: &Clock) -> Option<Duration> {
    match wait {
        Wait::Poll => None,
        Wait::ForOne | Wait::News => Some(LONGEST_WAIT),
        Wait::Until(time) => {
            let left = time.since(clock.now());
            let asleep = left.0.saturating_sub(AWAKE_BEFORE.0);
            (left > Nanos(0)).then(|| Nanos(asleep).duration().min(LONGEST_WAIT))
        }
    }
}

/// Resumes a stream that paused because it had no data.
fn resume(handle: &Easy2Handle<Exchange>) {
    // This fails once the request is over, and the request's end reports that.
    handle.unpause_read().ok();
}

/// Sets libcurl's options for a request.
fn prepare(
    easy: &mut Easy2<Exchange>,
    request: HttpRequest,
    certificates: Option<&str>,
) -> Result<(), curl::Error> {
    let HttpRequest { method, url, headers, body, flight, into_buffer } = request;
    *easy.get_mut() = Exchange { body, flight, into_buffer, ..Exchange::default() };
    easy.url(&url)?;
    // HTTP/2 would put all requests on one connection with one flow of data.
    easy.http_version(HttpVersion::V11)?;
    easy.connect_timeout(CONNECT_WITHIN)?;
    let streams = matches!(easy.get_ref().body, HttpBody::Stream);
    if !streams {
        // A stream is silent while its file gets no writes.
        easy.low_speed_limit(1)?;
        easy.low_speed_time(SILENT_AT_MOST)?;
    }
    if let Some(file) = certificates.filter(|_| url.starts_with("https:")) {
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
            // A body of unknown length is sent in chunks.
            if !streams {
                easy.in_filesize(easy.get_ref().body().len() as u64)?;
            }
            // No `Expect: 100-continue`: it would add a round trip to each object.
            list.append("Expect:")?;
        }
    }
    easy.http_headers(list)
}

/// Translates an error of libcurl into the error of a file operation.
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
