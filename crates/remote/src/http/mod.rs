//! HTTP/1.1 for storage that is reached by it: as many requests under way as are begun, each on a connection of its own, which
//! the calling thread serves while it waits. By libcurl, so that proxies, TLS and its certificates are as on the rest of the
//! machine. Nothing is tried again, since what is measured is what the storage did; but where a connection that was kept turns
//! out to be closed before an answer begins, libcurl sends a request of which no body was sent yet on another.

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

/// A connection is tried so long.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// So long a server may be silent in the middle of a request.
const SILENT_AT_MOST: Duration = Duration::from_mins(1);
/// What is read from a connection, and written to it, at once.
const PIECE: usize = 512 << 10;
/// Connections that are kept for later requests.
const KEPT_CONNECTIONS: usize = 256;
/// The last stretch of a wait for a time is spent awake: a thread that sleeps wakes too late.
const AWAKE_BEFORE: Nanos = Nanos::from_millis(1);
/// So long at most a wait is one call.
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
        // It fails once the connections are gone, and then nobody waits.
        self.waker.wakeup().ok();
    }
}

/// Requests that are under way, of one thread.
pub(crate) struct HttpClient {
    running: Vec<Option<Easy2Handle<Exchange>>>,
    free: Vec<usize>,
    /// Numbers of ends that were given out last: whoever takes one after the other begins new requests between, and must not get
    /// the number of an end that is still to come.
    given_out: Vec<usize>,
    idle: Vec<Easy2<Exchange>>,
    /// What could not be begun.
    refused: Vec<HttpEnd>,
    /// Those of which the body is a stream.
    streams: Vec<usize>,
    /// Of these, what has been handed over.
    sent: Vec<Flight>,
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

    /// Whether it was woken since this was asked last.
    pub(crate) fn was_rung(&self) -> bool {
        self.waker.rung.swap(false, Ordering::Acquire)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.running.len() - self.free.len() - self.given_out.len()
    }

    /// Begins a request: by which number its end is known.
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

    /// Gives a stream what comes next in it: a write, which is [sent](Self::take_sent), or [left](HttpEnd::unsent). It comes back
    /// where the request is over.
    pub(crate) fn feed(&mut self, token: usize, flight: Flight) -> Option<Flight> {
        let Some(handle) = self.running.get_mut(token).and_then(Option::as_mut) else { return Some(flight) };
        handle.get_mut().stream.waiting.push_back(flight);
        resume(handle);
        None
    }

    /// Nothing more comes in a stream.
    pub(crate) fn finish(&mut self, token: usize) {
        let Some(handle) = self.running.get_mut(token).and_then(Option::as_mut) else { return };
        handle.get_mut().stream.is_last = true;
        resume(handle);
    }

    /// Appends what of streams has been handed over to the connection, as a write to a socket is.
    pub(crate) fn take_sent(&mut self, sent: &mut Vec<Flight>) {
        sent.append(&mut self.sent);
    }

    /// Sends and receives what can be without waiting, and appends what is over.
    pub(crate) fn advance(&mut self, ended: &mut Vec<HttpEnd>) {
        self.free.append(&mut self.given_out);
        for end in self.refused.drain(..) {
            self.streams.retain(|stream| *stream != end.token);
            self.given_out.push(end.token);
            ended.push(end);
        }
        // What fails here fails the requests too, which say so.
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

    /// Waits until something can be sent or received, it is woken, or so long.
    pub(crate) fn wait(&self, limit: Duration) {
        // Whatever it fails at, the next turn looks again.
        self.multi.poll(&mut [], limit).ok();
    }

    /// Asks, and waits for the answer: of a client that has nothing else under way.
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

/// How long one call may wait; none if it is time.
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

/// A stream that paused for want of something goes on.
fn resume(handle: &Easy2Handle<Exchange>) {
    // It fails once the request is over, which is found out by its end.
    handle.unpause_read().ok();
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
    let streams = matches!(easy.get_ref().body, HttpBody::Stream);
    if !streams {
        // A stream is silent for as long as nothing is written.
        easy.low_speed_limit(1)?;
        easy.low_speed_time(SILENT_AT_MOST)?;
    }
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
            // A body of unknown length goes in chunks.
            if !streams {
                easy.in_filesize(easy.get_ref().body().len() as u64)?;
            }
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
