//! Requests of an engine to an object store. Names are keys; an open file is an existing object or one being
//! written.

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

/// Longest time that a dropped engine spends on deleting parts.
const LAST_WAIT: Nanos = Nanos::from_millis(1000);

/// The requests of one engine.
#[derive(Debug)]
pub(super) struct S3Client {
    http: HttpClient,
    bucket: Arc<Bucket>,
    /// The path of the engine's directory, which exists without an object.
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

/// The access mode of an open file.
#[derive(Debug)]
enum ObjectAccess {
    /// Reads an object.
    Read,
    /// Reads a row of objects.
    ReadRow,
    /// Writes an object.
    Write(SharedUpload),
    /// Writes a row of objects.
    Grow(SharedRow),
}

/// The meaning of the answer to a request.
#[derive(Debug)]
enum Job {
    /// Success, without a value.
    Plain,
    Open {
        key: String,
        grows: bool,
    },
    Read,
    /// Bytes of a piece, which may not exist yet.
    ReadPiece(PieceRange),
    /// The status of an object. If there is none, the key may be a directory with entries below it.
    Look {
        key: String,
    },
    LookBelow,
    List {
        prefix: String,
        listing: NamesListing,
        /// The token with which this page was requested.
        more: Option<String>,
    },
    /// The entries below a directory, which is removed if there are none.
    Empty {
        key: String,
    },
    /// The store's id for an upload.
    Name(SharedUpload),
    Part {
        upload: SharedUpload,
        number: usize,
    },
    /// The whole object has been put at once.
    Whole(SharedUpload),
    /// The object has been put together from its parts.
    Together(SharedUpload),
    /// A piece of a row has been put.
    Piece(SharedRow),
    /// The answer is ignored.
    Abandon,
}

/// Converts a path to a key, which has no leading slash.
fn key_of(path: &CStr) -> Result<String, Errno> {
    let path = path.to_str().map_err(|_| Errno::EINVAL)?;
    Ok(path.trim_start_matches('/').to_owned())
}

/// Returns the common prefix of keys in a directory.
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

    /// Sends a request and remembers the meaning of its answer.
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
            // Existing objects can't be changed.
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

    /// Carries out the next steps of an object that is being written.
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

    /// Takes the answers that have arrived.
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

    /// Handles the answer to a request on behalf of one operation.
    fn answered(&mut self, job: Job, flight: Flight, outcome: Result<HttpAnswer, Errno>) {
        let accepted = match (&job, outcome) {
            // A read beyond the end of an object returns no bytes.
            (Job::Read | Job::ReadPiece(_), Ok(answer)) if answer.status == 416 => {
                return self.over(flight, Ok(Reply::Done(0)));
            }
            (_, outcome) => accepted(outcome),
        };
        let reply = match (job, accepted) {
            (Job::Look { key }, Err(Errno::ENOENT)) => {
                return self.list(&prefix_of(&key), "1", Job::LookBelow, flight);
            }
            // The row ends with the previous piece.
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
            // The store has ignored the range and sent the whole object.
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
                    // A token that repeats would make the listing endless.
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

    /// Removes the marker of a directory, if the directory is empty.
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

    /// Gets the status of a path. The engine's own directory exists without entries.
    fn look(&mut self, key: &str, flight: Flight) {
        if key == self.root.trim_start_matches('/') {
            return self.over(flight, Ok(Reply::Entry(Stat { size: 0, directory: true })));
        }
        self.ask(Job::Look { key: key.to_owned() }, Asked::object(HttpMethod::Head, key), Some(flight));
    }
}

/// Returns an answer that succeeded, or the store's refusal.
fn accepted(outcome: Result<HttpAnswer, Errno>) -> Result<HttpAnswer, Errno> {
    let answer = outcome?;
    refusal(&answer).map_or(Ok(answer), Err)
}

/// Checks that the store confirms the combined object, because it starts its answer before it knows the
/// outcome.
fn together(answer: &HttpAnswer) -> Result<(), Errno> {
    if is_put_together(&answer.text) { Ok(()) } else { Err(Errno::EIO) }
}

/// Checks that a partial answer begins at the requested offset.
fn part_at(offset: u64, answer: &HttpAnswer) -> Result<(), Errno> {
    let expected = format!("bytes {offset}-");
    let begins = answer.header("content-range").is_some_and(|range| range.starts_with(&expected));
    if begins { Ok(()) } else { Err(Errno::EIO) }
}

/// Adds an answer to a listing. Returns the token for the next page, if there is one.
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
    /// Discards the parts of unfinished objects. Otherwise the store would charge for them, and no listing
    /// shows them.
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
