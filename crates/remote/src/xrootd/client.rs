//! Requests of an engine to the library of `XRootD`. The library's threads put answers into the engine's
//! mailbox.

use std::{
    ffi::{CStr, CString},
    sync::Arc,
};

use nilometer_storage::{Clock, Errno, Open, Wait, Wake, engine::Mailbox, listing::Stat};

use super::ffi::{XRootDFile, XRootDServer};
use crate::{
    answer::{Answered, LibraryAnswer, entries, how},
    client::{Client, Finished, Flight, Reply, Request},
};

/// A connection of the library, which all engines of this process with the same server share.
#[derive(Debug)]
pub(super) struct XRootDClient {
    server: XRootDServer,
    /// The prefix of a path, `root://server:1094/`.
    base: String,
    /// `?` and the parameters for the server after each path, or an empty text.
    query: String,
    mailbox: Arc<Mailbox<Finished<XRootDFile>>>,
    clock: Clock,
}

impl XRootDClient {
    pub(super) fn new(base: String, query: String, depth: u32, clock: Clock) -> Result<Self, Errno> {
        let server = XRootDServer::at(&CString::new(base.as_str()).map_err(|_| Errno::EINVAL)?);
        Ok(XRootDClient {
            server,
            base,
            query,
            mailbox: Arc::new(Mailbox::with_capacity(depth as usize)),
            clock,
        })
    }

    fn pending(&self, flight: Flight, kind: PendingKind) -> Box<Pending> {
        Box::new(Pending { flight, kind, mailbox: self.mailbox.clone(), clock: self.clock })
    }

    fn open(&self, path: &CStr, open: Open, flight: Flight) {
        let url = self.whole(path).and_then(|path| {
            let path = path.into_string().map_err(|_| Errno::EINVAL)?;
            CString::new(format!("{}{path}", self.base)).map_err(|_| Errno::EINVAL)
        });
        let url = match url {
            Ok(url) => url,
            Err(errno) => return self.pending(flight, PendingKind::Plain).end(Err(errno)),
        };
        let file = XRootDFile::new();
        let handle = file.handle();
        let again = (open.creates() && !open.must_be_new()).then(|| url.clone());
        let pending = self.pending(flight, PendingKind::Open { file, again });
        XRootDFile::open(handle, &url, how::of(open), pending);
    }

    /// Adds the parameters to a path. A `?` within a name would start parameters too.
    fn whole(&self, path: &CStr) -> Result<CString, Errno> {
        let text = path.to_str().ok().filter(|path| !path.contains(['?', '#'])).ok_or(Errno::EINVAL)?;
        CString::new(format!("{text}{}", self.query)).map_err(|_| Errno::EINVAL)
    }

    /// Begins a request by path.
    fn by_path(&self, path: &CStr, pending: Box<Pending>, begin: impl FnOnce(&CStr, Box<Pending>)) {
        match self.whole(path) {
            Ok(path) => begin(&path, pending),
            Err(errno) => pending.end(Err(errno)),
        }
    }
}

impl Client for XRootDClient {
    type File = XRootDFile;

    fn begin(&mut self, request: Request<'_, XRootDFile>, mut flight: Flight) {
        let server = &self.server;
        match request {
            Request::Open(path, open) => self.open(&path, open, flight),
            Request::Close(file) => {
                let handle = file.handle();
                XRootDFile::close(handle, self.pending(flight, PendingKind::Close { _file: file }));
            }
            Request::Read(file) => {
                let memory = flight.memory();
                file.read(memory, self.pending(flight, PendingKind::Moved));
            }
            Request::Write(file) => {
                let memory = flight.memory();
                file.write(memory, self.pending(flight, PendingKind::Written(memory.length)));
            }
            Request::Sync(file) => file.sync(self.pending(flight, PendingKind::Plain)),
            Request::Truncate(file) => {
                let size = flight.operation.offset;
                file.truncate(size, self.pending(flight, PendingKind::Plain));
            }
            Request::Look(path) => {
                let pending = self.pending(flight, PendingKind::Look);
                self.by_path(&path, pending, |path, pending| server.stat(path, 0, pending));
            }
            Request::List(path) => {
                let pending = self.pending(flight, PendingKind::List);
                self.by_path(&path, pending, |path, pending| server.list(path, pending));
            }
            Request::Unlink(path) => {
                let pending = self.pending(flight, PendingKind::Plain);
                self.by_path(&path, pending, |path, pending| server.unlink(path, pending));
            }
            Request::RemoveDir(path) => {
                let pending = self.pending(flight, PendingKind::Plain);
                self.by_path(&path, pending, |path, pending| server.remove_dir(path, pending));
            }
            Request::MakeDir(path) => {
                let pending = self.pending(flight, PendingKind::Plain);
                self.by_path(&path, pending, |path, pending| server.make_dir(path, pending));
            }
            Request::Rename(from, to) => {
                let pending = self.pending(flight, PendingKind::Plain);
                match self.whole(&to) {
                    Ok(to) => {
                        self.by_path(&from, pending, |from, pending| server.rename(from, &to, pending));
                    }
                    Err(errno) => pending.end(Err(errno)),
                }
            }
        }
    }

    fn take(&mut self, wait: Wait, clock: &Clock, finished: &mut Vec<Finished<XRootDFile>>) {
        self.mailbox.take(wait, clock, finished);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.mailbox.clone()
    }
}

/// An operation that the library has begun, with everything that it uses.
#[derive(Debug)]
struct Pending {
    flight: Flight,
    kind: PendingKind,
    mailbox: Arc<Mailbox<Finished<XRootDFile>>>,
    clock: Clock,
}

/// The meaning of an answer.
#[derive(Debug)]
enum PendingKind {
    /// Success, without a value.
    Plain,
    /// The number is the count of bytes read.
    Moved,
    /// This many bytes have been written.
    Written(u32),
    /// This file is open. If it could not be created because it exists, it is opened at this URL.
    Open {
        file: XRootDFile,
        again: Option<CString>,
    },
    /// This file is closed. The job owns it until then.
    Close {
        _file: XRootDFile,
    },
    Look,
    List,
}

impl Pending {
    fn end(self, outcome: Result<Reply<XRootDFile>, Errno>) {
        let Pending { flight, mailbox, clock, .. } = self;
        mailbox.post(Finished { flight, ended: clock.now(), outcome });
    }

    /// Opens a file that could not be created because it exists.
    fn open_again(mut self: Box<Self>, url: &CStr) {
        let file = XRootDFile::new();
        let handle = file.handle();
        self.kind = PendingKind::Open { file, again: None };
        XRootDFile::open(handle, url, how::WRITE, self);
    }
}

/// Translates an error. Servers use one number for everything that their file systems refuse. The end of the
/// text names the error as the C library does.
fn said_error(errno: Errno, said: &[u8]) -> Errno {
    if errno != Errno::EIO {
        return errno;
    }
    let said = String::from_utf8_lossy(said).to_lowercase();
    let is_said = |errno: &Errno| {
        let error = std::io::Error::from_raw_os_error(errno.0).to_string().to_lowercase();
        error.split(" (os error").next().is_some_and(|text| said.contains(&format!("; {text}")))
    };
    SAID.into_iter().find(is_said).unwrap_or(Errno::EIO)
}

/// Errors of file systems for which the protocol has no number.
const SAID: [Errno; 6] =
    [Errno::ENOTDIR, Errno::ENOTEMPTY, Errno::EINVAL, Errno::EISDIR, Errno::EROFS, Errno::ESTALE];

impl Answered for Pending {
    fn answered(mut self: Box<Self>, answer: LibraryAnswer<'_>) {
        let kind = std::mem::replace(&mut self.kind, PendingKind::Plain);
        let (number, text) = match answer {
            LibraryAnswer::Done(number, text) => (number, text),
            LibraryAnswer::Failed(Errno::EEXIST, _) => {
                if let PendingKind::Open { again: Some(url), .. } = &kind {
                    return self.open_again(url);
                }
                return self.end(Err(Errno::EEXIST));
            }
            LibraryAnswer::Failed(errno, said) => return self.end(Err(said_error(errno, said))),
        };
        let reply = match kind {
            PendingKind::Plain | PendingKind::Close { .. } => Reply::Done(0),
            PendingKind::Moved => Reply::Done(number as u32),
            PendingKind::Written(length) => Reply::Done(length),
            PendingKind::Open { file, .. } => Reply::Opened(file),
            PendingKind::Look => Reply::Entry(Stat { size: number, directory: text == b"d" }),
            PendingKind::List => Reply::Entries(entries(text)),
        };
        self.end(Ok(reply));
    }
}
