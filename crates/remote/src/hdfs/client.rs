//! Requests of an engine to a name node, and to the data nodes that it leads to: each operation on data is a request to both.

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

/// So long an engine that is dropped waits for what is being written.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// Requests of one engine.
#[derive(Debug)]
pub(super) struct HdfsClient {
    http: HttpClient,
    server: Arc<HdfsServer>,
    jobs: Vec<Option<Job>>,
    ended: Vec<HttpEnd>,
    sent: Vec<Flight>,
    finished: Vec<Finished<HdfsFile>>,
    /// Files with a request to a data node that goes on.
    streams: Vec<SharedAppend>,
    left: LeftFiles,
    /// What waits until files are there that were left without being closed.
    held: Vec<(Job, HttpRequest)>,
    clock: Clock,
}

/// Files that were left without being closed, and of which something may be under way.
type LeftFiles = Rc<RefCell<Vec<SharedAppend>>>;

/// An open file.
#[derive(Debug)]
pub(super) struct HdfsFile {
    /// By its inode where the server tells that: its name may change.
    path: String,
    /// What is written; none of one that is read, or grows.
    append: Option<SharedAppend>,
    /// Where each write is an append of its own.
    growth: Option<SharedGrowth>,
    left: LeftFiles,
}

impl Drop for HdfsFile {
    fn drop(&mut self) {
        self.left.borrow_mut().extend(self.append.take());
    }
}

/// What an answer means.
#[derive(Debug)]
enum Job {
    /// Nothing but that it is done.
    Plain,
    /// A truth, and this error if it is none.
    Truth(Errno),
    /// The name node leads to where a file is made, at this path.
    Make(String, Open),
    /// It is made.
    Made(String, Open),
    /// What is there is opened.
    Open(String, Open),
    /// The name node leads to what is read.
    Find,
    Read,
    Look,
    List(String, NamesListing),
    /// What is there is removed if it is a directory.
    RemoveDir(String),
    /// From one path to another. Of two kinds, what was in the way says which error it is.
    Rename(String),
    InTheWay,
    /// The name node leads to where a file grows.
    Lead(SharedAppend),
    /// What is between two syncs of a file.
    Stream(SharedAppend),
    /// The name node leads to where a write is added to a file.
    LeadGrowth(SharedGrowth),
    /// It is added.
    Grown(SharedGrowth),
}

/// A path as it was asked for, from the root.
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

    /// Sends a request, and keeps what its answer means.
    fn send(&mut self, job: Job, request: HttpRequest) -> usize {
        let token = self.http.begin(request);
        if self.jobs.len() <= token {
            self.jobs.resize_with(token + 1, || None);
        }
        self.jobs[token] = Some(job);
        token
    }

    /// Asks the name node. What was written to a file that was left has to be there before.
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

    /// Ends what is written to files that were left, and goes on with what waited for that.
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

    /// A file, new if it has to be. What is there is not written over: it grows.
    fn open(&mut self, path: &str, open: Open, flight: Flight) {
        if open.must_be_new() {
            return self.make(path, open, flight);
        }
        if open.creates() {
            // A file that many open and write is written in places.
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
            // It has to be there.
            let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", from);
            return self.ask(Job::Plain, &asked, flight);
        }
        let more = [("destination", to), ("renameoptions", "OVERWRITE")];
        let asked = HdfsAsked { more: &more, ..HdfsAsked::of(HttpMethod::Put, "RENAME", from) };
        self.ask(Job::Rename(to.to_owned()), &asked, flight);
    }

    /// What a file that is written needs next.
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

    /// What has been answered, and what was handed over.
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

    /// The answer to a request that one operation waits for.
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
            // A server that knows no options answers with a truth, and has renamed over nothing.
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

    /// A new file.
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

    /// Asks where the name node leads to.
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
            // What is behind the end of a file is nothing.
            (Job::Find | Job::Read, _) if is_behind_the_end(&refused.why) => Ok(Reply::Done(0)),
            (Job::Rename(to), _) if is_of_two_kinds(&refused.why) => {
                let to = to.clone();
                let asked = HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", &to);
                return self.ask(Job::InTheWay, &asked, flight);
            }
            // Somebody makes it, or writes to it.
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

/// Appends an answer to a listing. The last name, if more follow.
fn listed(listing: &mut NamesListing, answer: &HttpAnswer, now: Nanos) -> Result<Option<String>, Errno> {
    let HdfsListing { entries, last } = HdfsListing::of(&answer.text)?;
    listing.add(now, answer.text.len(), entries)?;
    Ok(last)
}

/// An answer that is what was asked for.
fn accepted(outcome: Result<HttpAnswer, crate::http::HttpFault>) -> Result<HttpAnswer, HdfsRefusal> {
    let answer = outcome.map_err(|fault| HdfsRefusal { errno: fault.errno, why: fault.why })?;
    refusal(&answer).map_or(Ok(answer), Err)
}

/// Where the name node leads to.
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
                // It was not left without being closed.
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
    /// What was written is to be there, as it is of a file that a process leaves open when it ends.
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
