//! Storage of recordings, for readers that may wait: mounted directories, or targets behind engines.
//!
//! ```text
//! Recording, RecordingView -> RecordingStorage -> MountedDirectories -> files, by the rules of `recording_file`
//!                                              -> TargetDirectories  -> engine -> target
//! ```

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use nilometer_model::EngineKind;
use nilometer_storage::{
    Buffer, Clock, Completion, Engine, OpKind, Open, Operation, ROOT, Slot, Target, Wait,
    engine::{EngineError, Options},
    listing,
    pieces::piece_name,
};
use rustix::{
    fs::FileType,
    process::{getegid, geteuid},
};

use crate::recording_file::{self, PageCache, ReadAccess, RecordingFile};
pub use crate::stored_file::StoredFile;

/// Opens files by path, which is a directory as in the recording's name and a name in it. Every call may block
/// as long as the storage takes.
pub trait RecordingStorage: std::fmt::Debug + Send + Sync {
    /// Opens a journal, or another file that depends on no journal.
    fn open(&self, path: &Path) -> io::Result<RecordingFile>;
    /// Opens a file that belongs to a journal of this user.
    fn open_of(&self, path: &Path, journal_user: u32, cache: PageCache) -> io::Result<RecordingFile>;
    /// Passes each name in a directory and its file type to `take`, if the name is valid UTF-8.
    fn each_name(&self, directory: &Path, take: &mut dyn FnMut(&str, FileType)) -> io::Result<()>;
    /// Returns true if the path exists.
    fn is_there(&self, path: &Path) -> bool;
}

/// Directories of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MountedDirectories;

impl RecordingStorage for MountedDirectories {
    fn open(&self, path: &Path) -> io::Result<RecordingFile> {
        refuse_pieces(path)?;
        recording_file::open(path).map(RecordingFile::stored)
    }

    fn open_of(&self, path: &Path, journal_user: u32, cache: PageCache) -> io::Result<RecordingFile> {
        recording_file::open_of(path, journal_user, cache).map(RecordingFile::stored)
    }

    fn each_name(&self, directory: &Path, take: &mut dyn FnMut(&str, FileType)) -> io::Result<()> {
        recording_file::each_name(directory, take)
    }

    fn is_there(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
    }
}

/// Returns an error for a journal copied from an object store in pieces. Otherwise a reader would take the
/// first piece for all of it.
fn refuse_pieces(journal: &Path) -> io::Result<()> {
    let first = journal.display().to_string();
    let second = PathBuf::from(piece_name(&first, 1));
    if !is_journal(&first) || fs::symlink_metadata(second).is_err() {
        return Ok(());
    }
    let pieces = format!("{first}.0*");
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "it was copied in pieces, as an object store keeps it: join them by `cat {pieces} >> {first}`, and remove {pieces}"
        ),
    ))
}

/// Returns true if this is the name of a journal.
fn is_journal(name: &str) -> bool {
    name.ends_with(".journal")
}

impl StoredFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn into_file(self: Box<Self>) -> Option<File> {
        Some(*self)
    }
}

/// Targets read through their engines. Each has a directory path as its key.
#[derive(Debug)]
pub struct TargetDirectories(Vec<(PathBuf, Arc<TargetDirectory>)>);

/// The run's directory of a target, with the thread whose engine reads there.
#[derive(Debug)]
struct TargetDirectory {
    target: Arc<dyn Target>,
    requests: SyncSender<Request>,
    free: Mutex<Vec<Slot>>,
}

/// An operation, and the channel for its completion.
#[derive(Debug)]
struct Request {
    operation: Operation,
    reply: SyncSender<Completion>,
}

/// Limit on a target's open files.
const OPEN_MAX: u32 = 256;
/// Bytes of a buffer for a name, or for part of a listing.
const NAMES: usize = 1 << 16;

impl TargetDirectories {
    /// Starts an engine for each target, under the path by which readers look it up. Fails if an engine can't
    /// be made.
    pub fn new(targets: impl IntoIterator<Item = (PathBuf, Arc<dyn Target>)>) -> Result<Self, EngineError> {
        let directories = targets.into_iter().map(|(path, target)| {
            let directory = TargetDirectory::new(target)?;
            Ok((path, Arc::new(directory)))
        });
        directories.collect::<Result<_, _>>().map(TargetDirectories)
    }

    fn directory(&self, path: &Path) -> io::Result<&Arc<TargetDirectory>> {
        let found = self.0.iter().find(|(named, _)| named == path);
        found.map(|(_, directory)| directory).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the directory of a file, and its name there.
    fn place<'a>(&self, path: &'a Path) -> io::Result<(&Arc<TargetDirectory>, &'a str)> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }
}

impl RecordingStorage for TargetDirectories {
    fn open(&self, path: &Path) -> io::Result<RecordingFile> {
        let (directory, name) = self.place(path)?;
        let file = directory.open(name)?;
        // The reader of a run's directory also made it.
        let access =
            ReadAccess { user: geteuid().as_raw(), group: getegid().as_raw(), mode: recording_file::USER };
        Ok(RecordingFile { file: Box::new(file), access })
    }

    fn open_of(&self, path: &Path, _: u32, _: PageCache) -> io::Result<RecordingFile> {
        self.open(path)
    }

    fn each_name(&self, directory: &Path, take: &mut dyn FnMut(&str, FileType)) -> io::Result<()> {
        self.directory(directory)?.each_name(take)
    }

    fn is_there(&self, path: &Path) -> bool {
        let found = self.place(path).and_then(|(directory, name)| directory.stat(name));
        found.is_ok()
    }
}

fn options() -> Options {
    Options { kind: EngineKind::Sync, depth: 1, slots: 1 + OPEN_MAX, clock: Clock::start() }
}

impl TargetDirectory {
    fn new(target: Arc<dyn Target>) -> Result<Self, EngineError> {
        let (requests, requested) = mpsc::sync_channel(0);
        let (ready, is_ready) = mpsc::sync_channel(1);
        let of = target.clone();
        let begun = thread::Builder::new().name("read".into()).spawn(move || match of.engine(&options()) {
            Ok(engine) => {
                drop(ready.send(Ok(())));
                serve(engine, &requested);
            }
            Err(error) => drop(ready.send(Err(error))),
        });
        let setup = |source| EngineError::Setup { engine: "sync", what: "a thread for reading", source };
        begun.map_err(setup)?;
        is_ready.recv().unwrap_or_else(|_| Err(setup(io::ErrorKind::BrokenPipe.into())))?;
        let free = Mutex::new((1..=OPEN_MAX).map(Slot).collect());
        Ok(TargetDirectory { target, requests, free })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread carry out the operation. Returns the result in bytes, and the buffer.
    fn carry_out(&self, operation: Operation) -> io::Result<(usize, Buffer)> {
        let (reply, replied) = mpsc::sync_channel(1);
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.requests.send(Request { operation, reply }).map_err(|_| gone())?;
        let Completion { operation, result, .. } = replied.recv().map_err(|_| gone())?;
        let done = result.map_err(io::Error::from)?;
        Ok((done as usize, operation.buffer))
    }

    fn open(self: &Arc<Self>, name: &str) -> io::Result<TargetFile> {
        let slot = self.free().pop().ok_or(rustix::io::Errno::MFILE)?;
        let open = if is_journal(name) { Open::GROWN } else { Open::READ };
        let opened = self.carry_out(named(OpKind::Open(open), slot, name));
        // Dropping it closes the file and frees the slot, also if nothing was opened in the slot.
        let file = TargetFile { directory: self.clone(), slot };
        opened.map(|_| file)
    }

    fn stat(&self, name: &str) -> io::Result<usize> {
        self.carry_out(named(OpKind::Stat, ROOT, name)).map(|(length, _)| length)
    }

    fn each_name(&self, take: &mut dyn FnMut(&str, FileType)) -> io::Result<()> {
        // A listing resumes at its last position, so begin each one with an engine of its own.
        let directory = TargetDirectory::new(self.target.clone()).map_err(io::Error::other)?;
        loop {
            let list = Operation::on(OpKind::List, ROOT, Buffer::alone(NAMES));
            let (length, buffer) = directory.carry_out(list)?;
            if length == 0 {
                return Ok(());
            }
            for (name, kind) in listing::entries(&buffer[..length]) {
                if let Ok(name) = std::str::from_utf8(name) {
                    take(name, kind_of(kind));
                }
            }
        }
    }
}

fn named(kind: OpKind, slot: Slot, name: &str) -> Operation {
    Operation::named(kind, ROOT, slot, name.as_bytes(), Buffer::alone(NAMES))
}

fn kind_of(kind: u8) -> FileType {
    match kind {
        listing::DIRECTORY => FileType::Directory,
        listing::FILE => FileType::RegularFile,
        _ => FileType::Unknown,
    }
}

/// Carries out requests one after the other, until all senders are gone.
fn serve(mut engine: Box<dyn Engine>, requested: &Receiver<Request>) {
    let mut done = Vec::new();
    for Request { operation, reply } in requested {
        let now = engine.tick();
        engine.submit(operation, now);
        while done.is_empty() {
            engine.reap(Wait::ForOne, &mut done);
        }
        // The requester may have stopped waiting.
        done.drain(..).for_each(|completion| drop(reply.send(completion)));
    }
}

/// A file in a slot of a target's engine.
#[derive(Debug)]
struct TargetFile {
    directory: Arc<TargetDirectory>,
    slot: Slot,
}

impl StoredFile for TargetFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let length = into.len().try_into().unwrap_or(u32::MAX);
        let read = Operation::read(self.slot, offset, length, Buffer::alone(length as usize));
        let (length, buffer) = self.directory.carry_out(read)?;
        into[..length].copy_from_slice(&buffer[..length]);
        Ok(length)
    }
}

impl Drop for TargetFile {
    fn drop(&mut self) {
        let close = Operation::on(OpKind::Close, self.slot, Buffer::alone(1));
        // A slot that fails to close is empty.
        drop(self.directory.carry_out(close));
        self.directory.free().push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_was_copied_in_pieces_is_refused_with_how_they_are_joined() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("n.0.journal"), "bytes").expect("room");
        assert!(MountedDirectories.open(&at("n.0.journal")).is_ok());
        fs::write(at("n.0.journal.00000001"), "bytes").expect("room");
        let why = MountedDirectories.open(&at("n.0.journal")).expect_err("it is the first piece").to_string();
        let first = at("n.0.journal").display().to_string();
        assert!(why.contains(&format!("`cat {first}.0* >> {first}`")), "{why}");
        fs::write(at("n.0.raw"), "bytes").expect("room");
        assert!(MountedDirectories.open(&at("n.0.raw")).is_ok());
    }
}
