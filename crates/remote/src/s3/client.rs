//! Requests of an engine to an object store: names are keys, an open file is an object or one that is being written.

mod rows;

use std::{ffi::CStr, rc::Rc, sync::Arc};

use nilometer_model::Nanos;
use nilometer_storage::{Clock, Errno, Open, Wait, Wake, listing::Stat};

use super::{
    bucket::{Asked, Bucket},
    row::{PieceRange, Row, SharedRow},
    upload::{PartUpload, SharedUpload, Upload, UploadStep},
    words::{ObjectListing, element, is_put_together, refusal},
};
use crate::{
    client::{Client, Finished, Flight, Reply, Request},
    http::{HttpAnswer, HttpBody, HttpClient, HttpEnd, HttpMethod, left_of},
    names_listing::NamesListing,
    percent,
};

/// So long an engine that is dropped tries to throw parts away.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// Requests of one engine.
#[derive(Debug)]
pub(super) struct S3Client {
    http: HttpClient,
    bucket: Arc<Bucket>,
    /// The path of the engine's directory, which needs no object.
    root: String,
    jobs: Vec<Option<Job>>,
    ended: Vec<HttpEnd>,
    finished: Vec<Finished<ObjectFile>>,
    uploads: Vec<SharedUpload>,
    clock: Clock,
}

/// An open file.
#[derive(Debug)]
pub(super) struct ObjectFile {
    key: String,
    access: ObjectAccess,
}

/// What a file was opened for.
#[derive(Debug)]
enum ObjectAccess {
    /// An object, to read.
    Read,
    /// A row of objects, to read.
    ReadRow,
    /// An object, to write.
    Write(SharedUpload),
    /// A row of objects, to write.
    Grow(SharedRow),
}

/// What an answer means.
#[derive(Debug)]
enum Job {
    /// Nothing but that it is done.
    Plain,
    Open {
        key: String,
        grows: bool,
    },
    Read,
    /// Of a piece: this one may not be there yet.
    ReadPiece(PieceRange),
    /// If there is no such object, it is a directory if something is below.
    Look {
        key: String,
    },
    LookBelow,
    List {
        prefix: String,
        listing: NamesListing,
        /// With what more was asked for.
        more: Option<String>,
    },
    /// It is removed if nothing is below.
    Empty {
        key: String,
    },
    /// The store gives a name to an upload.
    Name(SharedUpload),
    Part {
        upload: SharedUpload,
        number: usize,
    },
    /// The object is put at once.
    Whole(SharedUpload),
    /// It is put together of its parts.
    Together(SharedUpload),
    /// A piece of a row is put.
    Piece(SharedRow),
    /// Nobody waits for it.
    Abandon,
}

/// A key has no slash before it.
fn key_of(path: &CStr) -> Result<String, Errno> {
    let path = path.to_str().map_err(|_| Errno::EINVAL)?;
    Ok(path.trim_start_matches('/').to_owned())
}

/// What keys in a directory begin with.
fn prefix_of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}/") }
}

impl S3Client {
    pub(super) fn new(bucket: Arc<Bucket>, root: String, clock: Clock) -> Self {
        let http = HttpClient::new(bucket.certificates());
        S3Client {
            http,
            bucket,
            root,
            jobs: Vec::new(),
            ended: Vec::new(),
            finished: Vec::new(),
            uploads: Vec::new(),
            clock,
        }
    }

    /// Asks the store, and keeps what the answer means.
    fn ask(&mut self, job: Job, asked: Asked<'_>, flight: Option<Flight>) {
        let into_buffer = match (&job, &flight) {
            (Job::Read, Some(flight)) => flight.operation.length as usize,
            (Job::ReadPiece(range), _) => range.length as usize,
            _ => 0,
        };
        let mut request = self.bucket.request(asked);
        request.flight = flight;
        request.into_buffer = into_buffer;
        let token = self.http.begin(request);
        if self.jobs.len() <= token {
            self.jobs.resize_with(token + 1, || None);
        }
        self.jobs[token] = Some(job);
    }

    fn over(&mut self, flight: Flight, outcome: Result<Reply<ObjectFile>, Errno>) {
        let ended = self.clock.now();
        self.finished.push(Finished { flight, ended, outcome });
    }

    fn open(&mut self, key: String, open: Open, flight: Flight) {
        if open.must_be_new() && open.grows() {
            let access = ObjectAccess::Grow(Row::new(key.clone()));
            return self.over(flight, Ok(Reply::Opened(ObjectFile { key, access })));
        }
        if open.must_be_new() {
            let upload = Upload::new(key.clone());
            self.uploads.retain(|upload| Rc::strong_count(upload) > 1 || upload.borrow().has_parts_left());
            self.uploads.push(upload.clone());
            let access = ObjectAccess::Write(upload);
            return self.over(flight, Ok(Reply::Opened(ObjectFile { key, access })));
        }
        if open.writes() {
            // What is there can't be changed.
            return self.over(flight, Err(Errno::EOPNOTSUPP));
        }
        let job = Job::Open { key: key.clone(), grows: open.grows() };
        self.ask(job, Asked::object(HttpMethod::Head, &key), Some(flight));
    }

    fn list(&mut self, prefix: &str, limit: &str, job: Job, flight: Flight) {
        let asked = Asked::listing(&[("prefix", prefix), ("max-keys", limit)]);
        self.ask(job, asked, Some(flight));
    }

    fn list_names(&mut self, prefix: String, listing: NamesListing, more: Option<String>, flight: Flight) {
        let mut query = vec![("prefix", prefix.as_str()), ("delimiter", "/")];
        query.extend(more.as_deref().map(|more| ("continuation-token", more)));
        let asked = Asked::listing(&query);
        self.ask(Job::List { prefix, listing, more }, asked, Some(flight));
    }

    /// What an object that is written needs next.
    fn take_steps(&mut self, upload: &SharedUpload, steps: Vec<UploadStep>) {
        let key = upload.borrow().key.clone();
        for step in steps {
            match step {
                UploadStep::Over(flight, result) => self.over(flight, result.map(Reply::Done)),
                UploadStep::AskId => {
                    let mut asked = Asked::object(HttpMethod::Post, &key);
                    asked.query = percent::query(&[("uploads", "")]);
                    self.ask(Job::Name(upload.clone()), asked, None);
                }
                UploadStep::Send(PartUpload { number, flight, body }) => {
                    let id = upload.borrow().id().unwrap_or_default().to_owned();
                    let mut asked = Asked::object(HttpMethod::Put, &key);
                    asked.query = percent::query(&[("partNumber", &number.to_string()), ("uploadId", &id)]);
                    asked.body = body;
                    self.ask(Job::Part { upload: upload.clone(), number }, asked, flight);
                }
                UploadStep::Put(bytes) => {
                    let mut asked = Asked::object(HttpMethod::Put, &key);
                    asked.headers.push("If-None-Match: *".into());
                    asked.body = HttpBody::Bytes(bytes);
                    self.ask(Job::Whole(upload.clone()), asked, None);
                }
                UploadStep::PutTogether(parts) => {
                    let id = upload.borrow().id().unwrap_or_default().to_owned();
                    let mut asked = Asked::object(HttpMethod::Post, &key);
                    asked.query = percent::query(&[("uploadId", &id)]);
                    asked.headers.push("If-None-Match: *".into());
                    asked.body = HttpBody::Bytes(parts.into_bytes());
                    self.ask(Job::Together(upload.clone()), asked, None);
                }
                UploadStep::Abandon(id) => {
                    let mut asked = Asked::object(HttpMethod::Delete, &key);
                    asked.query = percent::query(&[("uploadId", &id)]);
                    self.ask(Job::Abandon, asked, None);
                }
            }
        }
    }

    /// What has been answered.
    fn advance(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        self.http.advance(&mut ended);
        for HttpEnd { token, flight, outcome, .. } in ended.drain(..) {
            let job = self.jobs.get_mut(token).and_then(Option::take);
            let outcome = outcome.map_err(|fault| fault.errno);
            match (job, flight) {
                (Some(Job::Name(upload)), _) => {
                    let name = accepted(outcome).and_then(|answer| {
                        element(&answer.text, "UploadId").filter(|id| !id.is_empty()).ok_or(Errno::EIO)
                    });
                    let steps = upload.borrow_mut().named(name);
                    self.take_steps(&upload, steps);
                }
                (Some(Job::Part { upload, number }), flight) => {
                    let tag = accepted(outcome)
                        .and_then(|answer| answer.header("etag").map(str::to_owned).ok_or(Errno::EIO));
                    let steps = upload.borrow_mut().sent(number, flight, tag);
                    self.take_steps(&upload, steps);
                }
                (Some(Job::Whole(upload)), _) => {
                    let steps = upload.borrow_mut().put(accepted(outcome).map(drop));
                    self.take_steps(&upload, steps);
                }
                (Some(Job::Together(upload)), _) => {
                    let steps =
                        upload.borrow_mut().put(accepted(outcome).and_then(|answer| together(&answer)));
                    self.take_steps(&upload, steps);
                }
                (Some(Job::Piece(row)), Some(flight)) => {
                    self.piece_put(&row, flight, accepted(outcome).map(drop));
                }
                (Some(job), Some(flight)) => self.answered(job, flight, outcome),
                _ => {}
            }
        }
        self.ended = ended;
    }

    /// The answer to a request that one operation waits for.
    fn answered(&mut self, job: Job, flight: Flight, outcome: Result<HttpAnswer, Errno>) {
        let accepted = match (&job, outcome) {
            // What is behind the end of an object is nothing.
            (Job::Read | Job::ReadPiece(_), Ok(answer)) if answer.status == 416 => {
                return self.over(flight, Ok(Reply::Done(0)));
            }
            (_, outcome) => accepted(outcome),
        };
        let reply = match (job, accepted) {
            (Job::Look { key }, Err(Errno::ENOENT)) => {
                return self.list(&prefix_of(&key), "1", Job::LookBelow, flight);
            }
            // The row ends with the piece before.
            (Job::ReadPiece(range), Err(Errno::ENOENT)) if range.number > 0 => Ok(Reply::Done(0)),
            (_, Err(errno)) => Err(errno),
            (Job::Open { key, grows }, Ok(_)) => {
                let access = if grows { ObjectAccess::ReadRow } else { ObjectAccess::Read };
                Ok(Reply::Opened(ObjectFile { key, access }))
            }
            (Job::ReadPiece(range), Ok(answer)) => rows::piece_of(&range, &answer),
            (Job::Read, Ok(answer)) if answer.status == 206 => {
                part_at(flight.operation.offset, &answer).map(|()| Reply::Done(answer.moved as u32))
            }
            // All of an object is no part of it.
            (Job::Read, Ok(answer)) if flight.operation.offset == 0 => Ok(Reply::Done(answer.moved as u32)),
            (Job::Read, Ok(_)) => Err(Errno::EIO),
            (Job::Look { .. }, Ok(answer)) => {
                let size = answer.header("content-length").and_then(|size| size.parse().ok());
                size.map(|size| Reply::Entry(Stat { size, directory: false })).ok_or(Errno::EIO)
            }
            (Job::LookBelow, Ok(answer)) => ObjectListing::of(&answer.text).and_then(|listing| {
                let directory = Stat { size: 0, directory: true };
                if listing.objects.is_empty() { Err(Errno::ENOENT) } else { Ok(Reply::Entry(directory)) }
            }),
            (Job::List { prefix, mut listing, more }, Ok(answer)) => {
                let now = self.clock.now();
                match listed(&prefix, &mut listing, &answer, now) {
                    // One that is followed by itself would have no end.
                    Ok(Some(next)) if more.as_ref() == Some(&next) => Err(Errno::EIO),
                    Ok(Some(more)) => return self.list_names(prefix, listing, Some(more), flight),
                    Ok(None) => Ok(Reply::Entries(listing.entries)),
                    Err(errno) => Err(errno),
                }
            }
            (Job::Empty { key }, Ok(answer)) => return self.remove_empty(&key, &answer, flight),
            (_, Ok(_)) => Ok(Reply::Done(0)),
        };
        self.over(flight, reply);
    }

    /// Removes what marks a directory, if nothing else is in it.
    fn remove_empty(&mut self, key: &str, answer: &HttpAnswer, flight: Flight) {
        let marker = prefix_of(key);
        match ObjectListing::of(&answer.text) {
            Err(errno) => self.over(flight, Err(errno)),
            Ok(listing) if listing.objects.iter().any(|object| object.key != marker) => {
                self.over(flight, Err(Errno::ENOTEMPTY));
            }
            Ok(_) => {
                self.ask(Job::Plain, Asked::object(HttpMethod::Delete, &marker), Some(flight));
            }
        }
    }

    fn named(&mut self, path: &CStr, flight: Flight, ask: impl FnOnce(&mut Self, String, Flight)) {
        match key_of(path) {
            Ok(key) => ask(self, key, flight),
            Err(errno) => self.over(flight, Err(errno)),
        }
    }

    /// What is at a path. The engine's own directory needs nothing in it.
    fn look(&mut self, key: &str, flight: Flight) {
        if key == self.root.trim_start_matches('/') {
            return self.over(flight, Ok(Reply::Entry(Stat { size: 0, directory: true })));
        }
        self.ask(Job::Look { key: key.to_owned() }, Asked::object(HttpMethod::Head, key), Some(flight));
    }
}

/// An answer that is what was asked for.
fn accepted(outcome: Result<HttpAnswer, Errno>) -> Result<HttpAnswer, Errno> {
    let answer = outcome?;
    refusal(&answer).map_or(Ok(answer), Err)
}

/// An object is put together only if the store says so: it begins its answer before it knows.
fn together(answer: &HttpAnswer) -> Result<(), Errno> {
    if is_put_together(&answer.text) { Ok(()) } else { Err(Errno::EIO) }
}

/// A part of an object has to begin where it was asked for.
fn part_at(offset: u64, answer: &HttpAnswer) -> Result<(), Errno> {
    let expected = format!("bytes {offset}-");
    let begins = answer.header("content-range").is_some_and(|range| range.starts_with(&expected));
    if begins { Ok(()) } else { Err(Errno::EIO) }
}

/// Appends an answer to a listing: with what to ask for the next one.
fn listed(
    prefix: &str,
    listing: &mut NamesListing,
    answer: &HttpAnswer,
    now: Nanos,
) -> Result<Option<String>, Errno> {
    let answered = ObjectListing::of(&answer.text)?;
    listing.add(now, answer.text.len(), answered.names(prefix))?;
    Ok(answered.next)
}

impl Client for S3Client {
    type File = ObjectFile;

    fn begin(&mut self, request: Request<'_, ObjectFile>, flight: Flight) {
        match request {
            Request::Open(path, open) => {
                self.named(&path, flight, |client, key, flight| client.open(key, open, flight));
            }
            Request::Close(ObjectFile { access, .. }) => self.end(&access, flight),
            Request::Sync(file) => self.end(&file.access, flight),
            Request::Read(file) => self.read(file, flight),
            Request::Write(file) => self.write(&file.access, flight),
            Request::Truncate(_) | Request::Rename(..) => self.over(flight, Err(Errno::EOPNOTSUPP)),
            Request::Look(path) => self.named(&path, flight, |client, key, flight| client.look(&key, flight)),
            Request::List(path) => self.named(&path, flight, |client, key, flight| {
                let listing = NamesListing::new(client.clock.now());
                client.list_names(prefix_of(&key), listing, None, flight);
            }),
            Request::Unlink(path) => self.named(&path, flight, |client, key, flight| {
                client.ask(Job::Plain, Asked::object(HttpMethod::Delete, &key), Some(flight));
            }),
            Request::MakeDir(path) => self.named(&path, flight, |client, key, flight| {
                client.ask(Job::Plain, Asked::object(HttpMethod::Put, &prefix_of(&key)), Some(flight));
            }),
            Request::RemoveDir(path) => self.named(&path, flight, |client, key, flight| {
                client.list(&prefix_of(&key), "2", Job::Empty { key: key.clone() }, flight);
            }),
        }
    }

    fn take(&mut self, wait: Wait, clock: &Clock, finished: &mut Vec<Finished<ObjectFile>>) {
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

impl Drop for S3Client {
    /// Parts of objects that nobody will put together are thrown away: they would be paid for, and seen by nobody.
    fn drop(&mut self) {
        let uploads = std::mem::take(&mut self.uploads);
        for upload in &uploads {
            let step = upload.borrow_mut().abandoned();
            self.take_steps(upload, step.into_iter().collect());
        }
        let limit = self.clock.now() + LAST_WAIT;
        while self.http.under_way() > 0 && self.clock.now() < limit {
            self.http.wait(LAST_WAIT.duration() / 10);
            self.advance();
        }
    }
}
