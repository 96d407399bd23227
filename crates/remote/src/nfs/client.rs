//! Requests of an engine to libnfs, whose connection the engine's own thread serves while it waits: no other thread is woken,
//! and answers come within.

use std::{
    cell::RefCell,
    ffi::{CStr, CString},
    os::fd::{BorrowedFd, OwnedFd},
    rc::Rc,
    sync::Arc,
};

use nilometer_model::Nanos;
use nilometer_storage::{Clock, Errno, Wait, Wake, listing::Stat};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno as KernelErrno,
};

use super::ffi::{NfsContext, NfsFile};
use crate::{
    answer::{Answered, LibraryAnswer, entries, how},
    client::{Client, Finished, Flight, Reply, Request},
};

/// Answers that the engine has not taken.
type Answers = Rc<RefCell<Vec<Finished<NfsFile>>>>;

/// One connection, of one engine.
#[derive(Debug)]
pub(super) struct NfsClient {
    context: Rc<NfsContext>,
    /// Of paths this much names the export that is mounted.
    export: usize,
    answers: Answers,
    bell: Arc<Bell>,
    clock: Clock,
}

/// Wakes an engine that waits for its connection.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Wake for Bell {
    fn wake(&self) {
        // It can only be full of wakes that were not heard.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Bell {
    /// Forgets what was rung.
    fn heard(&self) {
        rustix::io::read(&self.0, &mut [0_u8; 8]).ok();
    }
}

/// The last stretch of a wait for a time is spent awake: a thread that sleeps wakes too late.
const AWAKE_BEFORE: Nanos = Nanos(80_000);
/// Without a connection it is looked for one so often.
const RETRY: Nanos = Nanos::from_millis(10);

impl NfsClient {
    pub(super) fn new(context: Rc<NfsContext>, export: usize, clock: Clock) -> Result<Self, KernelErrno> {
        let bell = Arc::new(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        Ok(NfsClient { context, export, answers: Answers::default(), bell, clock })
    }

    fn pending(&self, flight: Flight, kind: PendingKind) -> Box<Pending> {
        let context = self.context.clone();
        Box::new(Pending { flight, kind, answers: self.answers.clone(), context, clock: self.clock })
    }

    /// The path within the export.
    fn within<'a>(&self, path: &'a CStr) -> &'a CStr {
        let within = &path.to_bytes_with_nul()[self.export.min(path.count_bytes())..];
        match CStr::from_bytes_with_nul(within) {
            Ok(within) if !within.is_empty() => within,
            _ => c"/",
        }
    }

    /// Sends and receives what can be, waiting for that so long; whether the bell was rung.
    fn serve(&self, limit: Option<Nanos>, hears: bool) -> bool {
        let Some((descriptor, events)) = self.context.awaited() else {
            std::thread::sleep(limit.unwrap_or(RETRY).min(RETRY).duration());
            self.context.service(0);
            return hears && self.is_rung();
        };
        // SAFETY: the context keeps its socket open for longer than this call, in which nothing else is done with it.
        let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let awaited = PollFlags::from_bits_truncate(events.cast_unsigned());
        let mut polled = vec![PollFd::from_borrowed_fd(socket, awaited)];
        if hears {
            polled.push(PollFd::new(&self.bell.0, PollFlags::IN));
        }
        let longest = limit.map(|limit| Timespec {
            tv_sec: (limit.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (limit.0 % 1_000_000_000).cast_signed(),
        });
        // What is not ready, or was interrupted, is asked again.
        poll(&mut polled, longest.as_ref()).ok();
        let ready = polled[0].revents();
        let rung = polled.get(1).is_some_and(|bell| !bell.revents().is_empty());
        drop(polled);
        let is_lost = ready.intersects(PollFlags::ERR | PollFlags::HUP);
        if is_lost && !awaited.contains(PollFlags::IN) {
            // The server is not there: the library would connect again and again without a pause.
            std::thread::sleep(limit.unwrap_or(RETRY).min(RETRY).duration());
        }
        // Told of a connection that is lost, the library leaves what waits for an answer waiting; if it finds out by reading,
        // that fails.
        let told = if is_lost && awaited.contains(PollFlags::IN) { PollFlags::IN } else { ready };
        self.context.service(told.bits().cast_signed());
        rung
    }

    fn is_rung(&self) -> bool {
        let mut polled = [PollFd::new(&self.bell.0, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok();
        !polled[0].revents().is_empty()
    }

    /// Whether there is something to take.
    fn has_answers(&self) -> bool {
        !self.answers.borrow().is_empty()
    }

    /// Until something came, it was woken, or the time has come.
    fn wait(&self, wait: Wait) {
        loop {
            let limit = match wait {
                Wait::Poll => return,
                Wait::ForOne | Wait::News => None,
                Wait::Until(time) => {
                    let left = time.since(self.clock.now());
                    if left == Nanos(0) {
                        break;
                    }
                    Some(Nanos(left.0.saturating_sub(AWAKE_BEFORE.0)))
                }
            };
            let rung = self.serve(limit, wait != Wait::ForOne);
            if self.has_answers() || rung {
                break;
            }
        }
        if wait != Wait::ForOne {
            self.bell.heard();
        }
    }
}

impl Client for NfsClient {
    type File = NfsFile;

    fn begin(&mut self, request: Request<'_, NfsFile>, mut flight: Flight) {
        let nfs = &self.context;
        match request {
            Request::Open(path, open) => {
                let may_exist = open.creates() && !open.must_be_new();
                let path = self.within(&path).to_owned();
                if open.writes() && !open.creates() {
                    let how = how::of(open);
                    let kind = PendingKind::Check { path: path.clone(), how };
                    return nfs.stat(&path, self.pending(flight, kind));
                }
                let again = may_exist.then(|| path.clone());
                nfs.open(&path, how::of(open), self.pending(flight, PendingKind::Open { again }));
            }
            Request::Close(file) => file.close(self.pending(flight, PendingKind::Plain)),
            Request::Read(file) => {
                let memory = flight.memory();
                file.read(memory, self.pending(flight, PendingKind::Moved));
            }
            Request::Write(file) => {
                let memory = flight.memory();
                file.write(memory, self.pending(flight, PendingKind::Moved));
            }
            Request::Sync(file) => file.sync(self.pending(flight, PendingKind::Plain)),
            Request::Truncate(file) => {
                let size = flight.operation.offset;
                file.truncate(size, self.pending(flight, PendingKind::Plain));
            }
            Request::Look(path) => nfs.stat(self.within(&path), self.pending(flight, PendingKind::Look)),
            Request::List(path) => nfs.list(self.within(&path), self.pending(flight, PendingKind::List)),
            Request::Unlink(path) => nfs.unlink(self.within(&path), self.pending(flight, PendingKind::Plain)),
            Request::RemoveDir(path) => {
                nfs.remove_dir(self.within(&path), self.pending(flight, PendingKind::Plain));
            }
            Request::MakeDir(path) => {
                nfs.make_dir(self.within(&path), self.pending(flight, PendingKind::Plain));
            }
            Request::Rename(from, to) => {
                let pending = self.pending(flight, PendingKind::Plain);
                nfs.rename(self.within(&from), self.within(&to), pending);
            }
        }
    }

    fn take(&mut self, wait: Wait, _clock: &Clock, finished: &mut Vec<Finished<NfsFile>>) {
        // What was begun is sent, and what came is looked at, whatever is waited for.
        self.serve(Some(Nanos(0)), false);
        if self.has_answers() || wait == Wait::Poll {
            finished.append(&mut self.answers.borrow_mut());
            return;
        }
        self.wait(wait);
        finished.append(&mut self.answers.borrow_mut());
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.bell.clone()
    }
}

/// An operation that the library has begun, with all that it uses.
#[derive(Debug)]
struct Pending {
    flight: Flight,
    kind: PendingKind,
    answers: Answers,
    context: Rc<NfsContext>,
    clock: Clock,
}

/// What an answer means.
#[derive(Debug)]
enum PendingKind {
    /// Nothing but that it is done.
    Plain,
    /// Its number is how many bytes were moved.
    Moved,
    /// What is there is opened so, unless it is a directory: a server would open that too, and refuse each write.
    Check {
        path: CString,
        how: i32,
    },
    /// Its number is the file. Where it could not be made because it is there, it is opened by this path.
    Open {
        again: Option<CString>,
    },
    Look,
    List,
}

/// What the library says with one number for all that fails in reading and writing: which error that was stands in its text.
fn said_error(errno: Errno, said: &[u8]) -> Errno {
    if errno != Errno(libc::EFAULT) {
        return errno;
    }
    let said = String::from_utf8_lossy(said);
    let known = SAID.iter().find(|(name, _)| said.contains(name));
    known.map_or(Errno::EIO, |(_, errno)| *errno)
}

/// Names of RFC 1813 as the library writes them.
const SAID: [(&str, Errno); 8] = [
    ("NFS3ERR_STALE", Errno::ESTALE),
    ("NFS3ERR_BADHANDLE", Errno::ESTALE),
    ("NFS3ERR_NOSPC", Errno::ENOSPC),
    ("NFS3ERR_DQUOT", Errno::EDQUOT),
    ("NFS3ERR_ROFS", Errno::EROFS),
    ("NFS3ERR_ACCES", Errno::EACCES),
    ("NFS3ERR_ISDIR", Errno::EISDIR),
    ("NFS3ERR_INVAL", Errno::EINVAL),
];

impl Pending {
    fn end(self, outcome: Result<Reply<NfsFile>, Errno>) {
        let Pending { flight, answers, clock, .. } = self;
        answers.borrow_mut().push(Finished { flight, ended: clock.now(), outcome });
    }
}

impl Answered for Pending {
    fn answered(mut self: Box<Self>, answer: LibraryAnswer<'_>) {
        let kind = std::mem::replace(&mut self.kind, PendingKind::Plain);
        let (number, text) = match answer {
            LibraryAnswer::Done(number, text) => (number, text),
            LibraryAnswer::Failed(errno, said) => {
                let errno = said_error(errno, said);
                if let (Errno::EEXIST, PendingKind::Open { again: Some(path) }) = (errno, &kind) {
                    self.kind = PendingKind::Check { path: path.clone(), how: how::WRITE };
                    let context = self.context.clone();
                    return context.stat(path, self);
                }
                return self.end(Err(errno));
            }
        };
        let reply = match kind {
            PendingKind::Plain => Reply::Done(0),
            PendingKind::Moved => Reply::Done(number as u32),
            PendingKind::Check { .. } if text == b"d" => return self.end(Err(Errno::EISDIR)),
            PendingKind::Check { path, how } => {
                self.kind = PendingKind::Open { again: None };
                let context = self.context.clone();
                return context.open(&path, how, self);
            }
            // SAFETY: the number is that of an open of this context, and was given once.
            PendingKind::Open { .. } => match unsafe { NfsFile::of_number(number, self.context.clone()) } {
                Some(file) => Reply::Opened(file),
                None => return self.end(Err(Errno::EIO)),
            },
            PendingKind::Look => Reply::Entry(Stat { size: number, directory: text == b"d" }),
            PendingKind::List => Reply::Entries(entries(text)),
        };
        self.end(Ok(reply));
    }
}
