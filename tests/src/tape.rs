//! A file system whose files are on tape. A file has a size and no blocks, and a read waits until the test lets the tape
//! deliver; then the file has blocks.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen, Request,
    Session,
};
use tempfile::TempDir;

use crate::{await_some, file_system::tried, shown_file::shown_file};

/// The number of the first file.
const FIRST: u64 = 2;
/// The kernel caches no attributes and asks each time.
const KEPT: Duration = Duration::ZERO;

/// A mounted tape. Dropping it unmounts it.
#[derive(Debug)]
pub struct Tape {
    drive: Arc<TapeDrive>,
    session: Option<BackgroundSession>,
    directory: TempDir,
}

#[derive(Debug)]
struct TapeDrive {
    /// Bytes of each file.
    size: u64,
    state: Mutex<TapeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TapeState {
    /// True for each file that is on disk.
    files: BTreeMap<u64, bool>,
    /// True once the tape delivers what is asked for.
    delivers: bool,
    /// The numbers of the files whose reads wait.
    waiting: Vec<u64>,
    /// Opens of files so far.
    opened: u64,
}

impl Tape {
    /// A tape with this number of files, each of `size` bytes, named `f2`, `f3` and on.
    pub fn with_files(count: u64, size: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = (FIRST..FIRST + count).map(|number| (number, false)).collect();
        let state = Mutex::new(TapeState { files, ..TapeState::default() });
        let drive = Arc::new(TapeDrive { size, state, changed: Condvar::new() });
        let session = Session::new(ShownTape(drive.clone()), directory.path(), &Config::default());
        let session = session.and_then(Session::spawn).expect("FUSE is there");
        Tape { drive, session: Some(session), directory }
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The paths of the files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.drive.lock().files.keys().map(|number| self.path().join(format!("f{number}"))).collect()
    }

    /// The number of files whose reads wait for the tape.
    pub fn waiting(&self) -> usize {
        let mut waiting = self.drive.lock().waiting.clone();
        waiting.sort_unstable();
        waiting.dedup();
        waiting.len()
    }

    /// The number of files that are on disk.
    pub fn on_disk(&self) -> usize {
        self.drive.lock().files.values().filter(|is_on_disk| **is_on_disk).count()
    }

    /// Opens of files so far.
    pub fn opened(&self) -> u64 {
        self.drive.lock().opened
    }

    /// Lets the tape deliver all files that are asked for, now and later.
    pub fn deliver(&self) {
        self.drive.lock().delivers = true;
        self.drive.changed.notify_all();
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.deliver();
        let point = self.directory.path().to_path_buf();
        await_some("the end of the tape", || tried(Command::new("umount").arg(&point)).then_some(()));
        drop(self.session.take());
    }
}

impl TapeDrive {
    fn lock(&self) -> MutexGuard<'_, TapeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the file is on disk.
    fn recall(&self, number: u64) {
        let mut state = self.lock();
        state.waiting.push(number);
        let brought = self.changed.wait_while(state, |state| !state.delivers);
        let mut state = brought.unwrap_or_else(PoisonError::into_inner);
        state.waiting.retain(|waiting| *waiting != number);
        state.files.insert(number, true);
    }

    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let is_root = number == INodeNo::ROOT.0;
        let is_on_disk = self.lock().files.get(&number).copied();
        let (kind, size) = match is_on_disk {
            Some(_) => (FileType::RegularFile, self.size),
            None if is_root => (FileType::Directory, 0),
            None => return None,
        };
        let shown = shown_file(INodeNo(number), kind, size);
        Some(FileAttr { blocks: if is_on_disk == Some(true) { shown.blocks } else { 0 }, ..shown })
    }
}

/// The directory of the files.
struct ShownTape(Arc<TapeDrive>);

impl Filesystem for ShownTape {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = name.to_str().and_then(|name| name.strip_prefix('f')?.parse().ok());
        match number.and_then(|number| self.0.attributes(number)) {
            Some(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.attributes(ino.0) {
            Some(attributes) => reply.attr(&KEPT, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let numbers: Vec<u64> = self.0.lock().files.keys().copied().collect();
        let own = [".", ".."].map(|name| (1, FileType::Directory, name.to_owned()));
        let files = numbers.into_iter().map(|number| (number, FileType::RegularFile, format!("f{number}")));
        let entries = own.into_iter().chain(files).skip(offset as usize);
        for (next, (number, kind, name)) in (offset + 1..).zip(entries) {
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.lock().opened += 1;
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let drive = self.0.clone();
        let length = u64::from(size).min(drive.size.saturating_sub(offset));
        // A read that waits must not hold up the requests of others.
        let answer = move || {
            drive.recall(ino.0);
            reply.data(&vec![7; length as usize]);
        };
        thread::spawn(answer);
    }
}
