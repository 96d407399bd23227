//! Requests of an engine to libnfs. The engine's own thread serves the connection while it waits, so no other
//! thread has to wake up, and answers arrive within that wait.

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

/// Answers that the engine has not taken yet.
type Answers = Rc<RefCell<Vec<Finished<NfsFile>>>>;

/// The connection of one engine.
#[derive(Debug)]
pub(super) struct NfsClient {
    context: Rc<NfsContext>,
    /// Length of the prefix of paths that names the mounted export.
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
        // This fails only if the counter is full of earlier wakes.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Bell {
    /// Clears earlier wakes.
    fn heard(&self) {
        rustix::io::read(&self.0, &mut [0_u8; 8]).ok();
    }
}

/// A wait until a given time polls during its last 80 us, because a sleeping thread wakes too late.
const AWAKE_BEFORE: Nanos = Nanos(80_000);
/// Pause between attempts to connect.
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

    /// Returns the path relative to the export.
    fn within<'a>(&self, path: &'a CStr) -> &'a CStr {
        let within = &path.to_bytes_with_nul()[self.export.min(path.count_bytes())..];
        match CStr::from_bytes_with_nul(within) {
            Ok(within) if !within.is_empty() => within,
            _ => c"/",
        }
    }

    /// Sends and receives, waiting at most `limit`. Returns true if another thread rang the bell.
    fn serve(&self, limit: Option<Nanos>, hears: bool) -> bool {
        let Some((descriptor, events)) = self.context.awaited() else {
            std::thread::sleep(limit.unwrap_or(RETRY).min(RETRY).duration());
            self.context.service(0);
            return hears && self.is_rung();
        };
        // SAFETY: the context keeps its socket open longer than this call, and nothing else uses it meanwhile.
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
        // The next turn polls again after an interruption.
        poll(&mut polled, longest.as_ref()).ok();
        let ready = polled[0].revents();
        let rung = polled.get(1).is_some_and(|bell| !bell.revents().is_empty());
        drop(polled);
        let is_lost = ready.intersects(PollFlags::ERR | PollFlags::HUP);
        if is_lost && !awaited.contains(PollFlags::IN) {
            // Without a server the library would reconnect in a loop without a pause.
            std::thread::sleep(limit.unwrap_or(RETRY).min(RETRY).duration());
        }
        // If the library hears of a lost connection from poll, it leaves pending requests without an answer. If
        // it finds out by reading, they fail.
        let told = if is_lost && awaited.contains(PollFlags::IN) { PollFlags::IN } else { ready };
        self.context.service(told.bits().cast_signed());
        rung
    }

    fn is_rung(&self) -> bool {
        let mut polled = [PollFd::new(&self.bell.0, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok();
        !polled[0].revents().is_empty()
    }

    /// Returns true if answers are ready.
    fn has_answers(&self) -> bool {
        !self.answers.borrow().is_empty()
    }

    /// Waits for an answer, a wake or the given time.
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
        // Send new requests and take ready answers, for any value of `wait`.
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

/// An operation that the library has begun, with everything that it uses.
#[derive(Debug)]
struct Pending {
    flight: Flight,
    kind: PendingKind,
    answers: Answers,
    context: Rc<NfsContext>,
    clock: Clock,
}

/// The meaning of an answer.
#[derive(Debug)]
enum PendingKind {
    /// Success, without a value.
    Plain,
    /// The number is the count of bytes moved.
    Moved,
    /// The status of an entry that is opened next unless it is a directory. A server would open a directory
    /// too, and refuse each write.
    Check {
        path: CString,
        how: i32,
    },
    /// The number is the file. If it could not be created because it exists, it is opened at this path.
    Open {
        again: Option<CString>,
    },
    Look,
    List,
}

/// Translates an error. The library has one number for all failed reads and writes, and only its text names the
/// error.
fn said_error(errno: Errno, said: &[u8]) -> Errno {
    if errno != Errno(libc::EFAULT) {
        return errno;
    }
    let said = String::from_utf8_lossy(said);
    let known = SAID.iter().find(|(name, _)| said.contains(name));
    known.map_or(Errno::EIO, |(_, errno)| *errno)
}

/// Names of RFC 1813 in the library's spelling.
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
            // SAFETY: the number comes from an open in this context, and is used only once.
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
