//! Requests of an engine to a name node and to data nodes. Each operation on data needs one request to each of
//! the two.

mod growth;

use std::{
    cell::RefCell,
    ffi::{CStr, CString},
    rc::Rc,
    sync::Arc,
};

use nilometer_model::{Nanos, StripeLayout};
use nilometer_storage::{Clock, Errno, Open, Wait, Wake, listing::Stat};

use super::{
    append::{AppendStep, Appending, SharedAppend},
    server::{HdfsAsked, HdfsServer, plain},
    words::{HdfsListing, HdfsRefusal, HdfsStatus, is_behind_the_end, is_done, is_of_two_kinds, refusal},
};
use crate::{
    client::{Client, Finished, Flight, Reply, Request},
    http::{HttpAnswer, HttpBody, HttpClient, HttpEnd, HttpMethod, HttpRequest, left_of},
    names_listing::NamesListing,
};
use growth::{Growth, SharedGrowth};

/// Longest time that a dropped engine waits for files that are being written.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// The requests of one engine.
#[derive(Debug)]
pub(super) struct HdfsClient {
    http: HttpClient,
    server: Arc<HdfsServer>,
    jobs: Vec<Option<Job>>,
    ended: Vec<HttpEnd>,
    sent: Vec<Flight>,
    finished: Vec<Finished<HdfsFile>>,
    /// Files with an open request to a data node.
    streams: Vec<SharedAppend>,
    left: LeftFiles,
    /// Requests that wait until files dropped without a close are complete.
    held: Vec<(Job, HttpRequest)>,
    clock: Clock,
}

/// Files dropped without a close that may have requests under way.
type LeftFiles = Rc<RefCell<Vec<SharedAppend>>>;

/// An open file.
#[derive(Debug)]
pub(super) struct HdfsFile {
    /// The path, by inode if the server reports it, because the name may change.
    path: String,
    /// The stream of a file that is written; `None` if the file is only read, or grows.
    append: Option<SharedAppend>,
    /// The state of a growing file, in which each write is its own append.
    growth: Option<SharedGrowth>,
    left: LeftFiles,
}

impl Drop for HdfsFile {
    fn drop(&mut self) {
        self.left.borrow_mut().extend(self.append.take());
    }
}

/// The meaning of the answer to a request.
#[derive(Debug)]
enum Job {
    /// Success, without a value.
    Plain,
    /// A boolean. `false` stands for this error.
    Truth(Errno),
    /// The address at which to create the file at this path.
    Make(String, Open),
    /// The file has been created.
    Made(String, Open),
    /// The status of an existing file to open.
    Open(String, Open),
    /// The address at which to read.
    Find,
    Read,
    Look,
    List(String, NamesListing),
    /// The status of a path, which is removed if it is a directory.
    RemoveDir(String),
    /// The result of a rename. If one path is a file and the other a directory, the status of the second path
    /// decides which error it is.
    Rename(String),
    InTheWay,
    /// The address at which to append a stream.
    Lead(SharedAppend),
    /// The answer to a stream: all appends between two syncs of a file.
    Stream(SharedAppend),
    /// The address at which to append one write to a growing file.
    LeadGrowth(SharedGrowth),
    /// The write has been appended.
    Grown(SharedGrowth),
}

/// Returns a path of a request as text.
fn text_of(path: &CStr) -> Result<String, Errno> {
    path.to_str().map(str::to_owned).map_err(|_| Errno::EINVAL)
}

impl HdfsClient {
    pub(super) fn new(server: Arc<HdfsServer>, clock: Clock) -> Self {
        HdfsClient {
            http: HttpClient::new(None),
            server,
            jobs: Vec::new(),
            ended: Vec::new(),
            sent: Vec::new(),
            finished: Vec::new(),
            streams: Vec::new(),
            left: LeftFiles::default(),
            held: Vec::new(),
            clock,
        }
    }

    /// Sends a request and remembers the meaning of its answer.
    fn send(&mut self, job: Job, request: HttpRequest) -> usize {
        let token = self.http.begin(request);
        if self.jobs.len() <= token {
            self.jobs.resize_with(token + 1, || None);
        }
        self.jobs[token] = Some(job);
        token
    }

    /// Asks the name node. The request waits until files dropped without a close are complete.
    fn ask(&mut self, job: Job, asked: &HdfsAsked<'_>, flight: Flight) {
        self.let_go();
        let request = HttpRequest { flight: Some(flight), ..self.server.request(asked) };
        if self.left.borrow().is_empty() {
            self.send(job, request);
        } else {
            self.held.push((job, request));
        }
    }

    fn over(&mut self, flight: Flight, outcome: Result<Reply<HdfsFile>, Errno>) {
        let ended = self.clock.now();
        self.finished.push(Finished { flight, ended, outcome });
    }

    /// Ends the streams of dropped files. Once all are complete it sends the requests that waited for them.
    fn let_go(&mut self) {
        if self.left.borrow().is_empty() {
            return;
        }
        let left = self.left.borrow().clone();
        for append in left {
            let steps = append.borrow_mut().leave();
            self.take_steps(&append, steps);
        }
        self.left.borrow_mut().retain(|append| append.borrow().is_active());
        if self.left.borrow().is_empty() {
            for (job, request) in std::mem::take(&mut self.held) {
                self.send(job, request);
            }
        }
    }

    /// Opens a file, or makes a new one if it must be new. An existing file is never overwritten: it grows.
    fn open(&mut self, path: &str, open: Open, flight: Flight) {
        if open.must_be_new() {
            return self.make(path, open, flight);
        }
        if open.creates() {
            // Writers open a shared file like this to write at any place, which HDFS cannot do.
            return self.over(flight, Err(Errno::EOPNOTSUPP));
        }
        let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", path);
        self.ask(Job::Open(path.to_owned(), open), &asked, flight);
    }

    fn make(&mut self, path: &str, open: Open, flight: Flight) {
        let layout = self.server.layout.lock().map(|layout| layout.clone()).unwrap_or_default();
        let StripeLayout { replicas, stripe_size, .. } = layout;
        let copies = replicas.map(|replicas| replicas.to_string());
        let block = stripe_size.map(|size| size.0.to_string());
        let mut more = vec![("overwrite", "false"), ("permission", "644")];
        more.extend(copies.as_deref().map(|copies| ("replication", copies)));
        more.extend(block.as_deref().map(|block| ("blocksize", block)));
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Put, "CREATE", path) };
        self.ask(Job::Make(path.to_owned(), open), &asked, flight);
    }

    fn read(&mut self, path: &str, flight: Flight) {
        let length = flight.operation.length.to_string();
        let offset = flight.operation.offset.to_string();
        if flight.operation.length == 0 {
            return self.over(flight, Ok(Reply::Done(0)));
        }
        let more = [("offset", offset.as_str()), ("length", length.as_str())];
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Get, "OPEN", path) };
        self.ask(Job::Find, &asked, flight);
    }

    fn list(&mut self, path: &str, listing: NamesListing, last: Option<&str>, flight: Flight) {
        let more: Vec<_> = last.map(|last| ("startAfter", last)).into_iter().collect();
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Get, "LISTSTATUS_BATCH", path) };
        self.ask(Job::List(path.to_owned(), listing), &asked, flight);
    }

    fn remove(&mut self, path: &str, flight: Flight) {
        let more = [("recursive", "false")];
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Delete, "DELETE", path) };
        self.ask(Job::Truth(Errno::ENOENT), &asked, flight);
    }

    fn rename(&mut self, from: &str, to: &str, flight: Flight) {
        if from == to {
            // The file must exist.
            let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", from);
            return self.ask(Job::Plain, &asked, flight);
        }
        let more = [("destination", to), ("renameoptions", "OVERWRITE")];
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Put, "RENAME", from) };
        self.ask(Job::Rename(to.to_owned()), &asked, flight);
    }

    /// Carries out the next steps of a file that is being written.
    fn take_steps(&mut self, append: &SharedAppend, steps: Vec<AppendStep>) {
        for step in steps {
            match step {
                AppendStep::Over(flight, result) => self.over(flight, result.map(Reply::Done)),
                AppendStep::Ask => {
                    let path = append.borrow().path.clone();
                    let asked = HdfsAsked::of(HttpMethod::Post, "APPEND", &path);
                    let request = self.server.request(&asked);
                    self.streams.push(append.clone());
                    self.send(Job::Lead(append.clone()), request);
                }
                AppendStep::Feed(token, flight) => {
                    if let Some(flight) = self.http.feed(token, flight) {
                        self.over(flight, Err(Errno::EIO));
                    }
                }
                AppendStep::Finish(token) => self.http.finish(token),
            }
        }
    }

    /// Takes answers and the writes that connections have accepted.
    fn advance(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        self.http.advance(&mut ended);
        let mut sent = std::mem::take(&mut self.sent);
        self.http.take_sent(&mut sent);
        for flight in sent.drain(..) {
            let length = flight.operation.length;
            self.over(flight, Ok(Reply::Done(length)));
        }
        self.sent = sent;
        for end in ended.drain(..) {
            self.ended(end);
        }
        self.ended = ended;
        self.streams.retain(|append| append.borrow().is_active());
        self.let_go();
    }

    fn ended(&mut self, end: HttpEnd) {
        let HttpEnd { token, flight, unsent, outcome } = end;
        let accepted = accepted(outcome);
        match (self.jobs.get_mut(token).and_then(Option::take), flight) {
            (Some(Job::Lead(append)), _) => {
                let steps = match accepted.and_then(|answer| led_to(&answer)) {
                    Ok(url) => {
                        let body = HttpBody::Stream;
                        let request = HttpRequest { body, ..plain(HttpMethod::Post, url) };
                        let token = self.send(Job::Stream(append.clone()), request);
                        append.borrow_mut().led(Ok(token))
                    }
                    Err(refused) => append.borrow_mut().led(Err(refused.errno)),
                };
                self.take_steps(&append, steps);
            }
            (Some(Job::Stream(append)), _) => {
                let outcome = accepted.map(drop).map_err(|refused| refused.errno);
                for flight in unsent {
                    self.over(flight, Err(outcome.err().unwrap_or(Errno::EIO)));
                }
                let steps = append.borrow_mut().answered(outcome);
                self.take_steps(&append, steps);
            }
            (Some(Job::LeadGrowth(growth)), Some(flight)) => {
                self.lead_growth(growth, flight, accepted.and_then(|answer| led_to(&answer)));
            }
            (Some(Job::Grown(growth)), Some(flight)) => {
                self.grown(&growth, flight, accepted.map(drop).map_err(|refused| refused.errno));
            }
            (Some(job), Some(flight)) => self.answered(job, flight, accepted),
            _ => {}
        }
    }

    /// Handles the answer to a request on behalf of one operation.
    fn answered(&mut self, job: Job, flight: Flight, accepted: Result<HttpAnswer, HdfsRefusal>) {
        let answer = match accepted {
            Ok(answer) => answer,
            Err(refused) => return self.refused(&job, flight, &refused),
        };
        let outcome = match job {
            Job::Make(path, open) => {
                return self.follow(Job::Made(path, open), HttpMethod::Put, &answer, flight);
            }
            Job::Find => return self.follow(Job::Read, HttpMethod::Get, &answer, flight),
            Job::Made(path, open) => Ok(Reply::Opened(self.made(path, open))),
            Job::Open(path, open) => {
                HdfsStatus::of(&answer.text).and_then(|status| self.opened(path, open, &status))
            }
            Job::Read => Ok(Reply::Done(answer.moved as u32)),
            Job::Look => HdfsStatus::of(&answer.text).map(|status| Reply::Entry(status.stat)),
            Job::List(path, mut listing) => match listed(&mut listing, &answer, self.clock.now()) {
                Ok(Some(last)) => return self.list(&path, listing, Some(&last), flight),
                Ok(None) => Ok(Reply::Entries(listing.entries)),
                Err(errno) => Err(errno),
            },
            Job::RemoveDir(path) => match HdfsStatus::of(&answer.text) {
                Ok(status) if status.stat.directory => return self.remove(&path, flight),
                Ok(_) => Err(Errno::ENOTDIR),
                Err(errno) => Err(errno),
            },
            Job::InTheWay => HdfsStatus::of(&answer.text)
                .and_then(|status| Err(if status.stat.directory { Errno::EISDIR } else { Errno::ENOTDIR })),
            Job::Truth(errno) => {
                is_done(&answer.text).and_then(|done| if done { Ok(Reply::Done(0)) } else { Err(errno) })
            }
            // A server that ignores the options answers with a boolean, and does not replace existing files.
            Job::Rename(_) if is_done(&answer.text) == Ok(false) => Err(Errno::EOPNOTSUPP),
            Job::Plain
            | Job::Rename(_)
            | Job::Lead(_)
            | Job::Stream(_)
            | Job::LeadGrowth(_)
            | Job::Grown(_) => Ok(Reply::Done(0)),
        };
        self.over(flight, outcome);
    }

    /// Makes the state of a newly created file.
    fn made(&self, path: String, open: Open) -> HdfsFile {
        let growth = open.grows().then(|| Growth::of(path.clone()));
        let append = growth.is_none().then(|| Appending::new(path.clone(), 0));
        HdfsFile { path, append, growth, left: self.left.clone() }
    }

    fn opened(&self, path: String, open: Open, status: &HdfsStatus) -> Result<Reply<HdfsFile>, Errno> {
        let HdfsStatus { stat: Stat { size, directory }, inode, .. } = *status;
        if directory {
            return Err(Errno::EISDIR);
        }
        let append = open.writes().then(|| Appending::new(path.clone(), size));
        let path = if inode == 0 { path } else { format!("/.reserved/.inodes/{inode}") };
        Ok(Reply::Opened(HdfsFile { path, append, growth: None, left: self.left.clone() }))
    }

    /// Repeats a request at the address that the name node gave.
    fn follow(&mut self, job: Job, method: HttpMethod, answer: &HttpAnswer, flight: Flight) {
        match led_to(answer) {
            Ok(url) => {
                let into_buffer = if matches!(job, Job::Read) { flight.operation.length as usize } else { 0 };
                self.send(job, HttpRequest { flight: Some(flight), into_buffer, ..plain(method, url) });
            }
            Err(refused) => self.over(flight, Err(refused.errno)),
        }
    }

    fn refused(&mut self, job: &Job, flight: Flight, refused: &HdfsRefusal) {
        let outcome = match (job, refused.errno) {
            // A read beyond the end of a file returns no bytes.
            (Job::Find | Job::Read, _) if is_behind_the_end(&refused.why) => Ok(Reply::Done(0)),
            (Job::Rename(to), _) if is_of_two_kinds(&refused.why) => {
                let to = to.clone();
                let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", &to);
                return self.ask(Job::InTheWay, &asked, flight);
            }
            // Another client is making the file or writing to it.
            (Job::Make(..) | Job::Made(..), Errno(libc::EBUSY)) => Err(Errno::EEXIST),
            (_, errno) => Err(errno),
        };
        self.over(flight, outcome);
    }

    fn named(&mut self, path: &CString, flight: Flight, ask: impl FnOnce(&mut Self, String, Flight)) {
        match text_of(path) {
            Ok(path) => ask(self, path, flight),
            Err(errno) => self.over(flight, Err(errno)),
        }
    }
}

/// Adds an answer to a listing. Returns the last name if more names follow.
fn listed(listing: &mut NamesListing, answer: &HttpAnswer, now: Nanos) -> Result<Option<String>, Errno> {
    let HdfsListing { entries, last } = HdfsListing::of(&answer.text)?;
    listing.add(now, answer.text.len(), entries)?;
    Ok(last)
}

/// Returns an answer that succeeded, or the server's refusal.
fn accepted(outcome: Result<HttpAnswer, crate::http::HttpFault>) -> Result<HttpAnswer, HdfsRefusal> {
    let answer = outcome.map_err(|fault| HdfsRefusal { errno: fault.errno, why: fault.why })?;
    refusal(&answer).map_or(Ok(answer), Err)
}

/// Returns the address that the name node leads to.
fn led_to(answer: &HttpAnswer) -> Result<String, HdfsRefusal> {
    let url = answer.header("location").filter(|url| url.starts_with("http"));
    let why = || HdfsRefusal { errno: Errno::EIO, why: "the name node leads nowhere".into() };
    url.map(str::to_owned).ok_or_else(why)
}

impl Client for HdfsClient {
    type File = HdfsFile;

    fn begin(&mut self, request: Request<'_, HdfsFile>, flight: Flight) {
        match request {
            Request::Open(path, open) => {
                self.named(&path, flight, |client, path, flight| client.open(&path, open, flight));
            }
            Request::Close(mut file) => {
                self.end(&file, flight);
                // This close ends the stream, so `drop` must not do it again.
                file.append = None;
            }
            Request::Sync(file) => self.end(file, flight),
            Request::Read(file) => self.read(&file.path, flight),
            Request::Write(file) => self.write(file, flight),
            Request::Truncate(_) => self.over(flight, Err(Errno::EOPNOTSUPP)),
            Request::Look(path) => self.named(&path, flight, |client, path, flight| {
                client.ask(Job::Look, &HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", &path), flight);
            }),
            Request::List(path) => self.named(&path, flight, |client, path, flight| {
                let listing = NamesListing::new(client.clock.now());
                client.list(&path, listing, None, flight);
            }),
            Request::Unlink(path) => {
                self.named(&path, flight, |client, path, flight| client.remove(&path, flight));
            }
            Request::MakeDir(path) => self.named(&path, flight, |client, path, flight| {
                client.ask(Job::Truth(Errno::EIO), &HdfsAsked::of(HttpMethod::Put, "MKDIRS", &path), flight);
            }),
            Request::RemoveDir(path) => self.named(&path, flight, |client, path, flight| {
                let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", &path);
                client.ask(Job::RemoveDir(path.clone()), &asked, flight);
            }),
            Request::Rename(from, to) => {
                self.named(&from, flight, |client, from, flight| match text_of(&to) {
                    Ok(to) => client.rename(&from, &to, flight),
                    Err(errno) => client.over(flight, Err(errno)),
                });
            }
        }
    }

    fn take(&mut self, wait: Wait, clock: &Clock, finished: &mut Vec<Finished<HdfsFile>>) {
        self.clock = *clock;
        loop {
            self.advance();
            let was_rung = matches!(wait, Wait::News | Wait::Until(_)) && self.http.was_rung();
            if !self.finished.is_empty() || was_rung {
                break;
            }
            let Some(left) = left_of(wait, &self.clock) else { break };
            self.http.wait(left);
        }
        finished.append(&mut self.finished);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.http.waker()
    }
}

impl Drop for HdfsClient {
    /// Finishes the open streams. Written data must survive, as in a file that a process leaves open when it
    /// ends.
    fn drop(&mut self) {
        for append in std::mem::take(&mut self.streams) {
            let steps = append.borrow_mut().leave();
            self.take_steps(&append, steps);
        }
        let limit = self.clock.now() + LAST_WAIT;
        while self.http.under_way() > 0 && self.clock.now() < limit {
            self.http.wait(LAST_WAIT.duration() / 10);
            self.advance();
        }
    }
}
