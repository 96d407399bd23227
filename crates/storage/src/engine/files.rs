//! The table of open files, and every operation as a system call relative to a directory descriptor.
//!
//! Names with a slash are rejected and symlinks are not followed. An operation can therefore reach only the
//! run's directory and, for reading, the files of the directory that copies come from.

use std::{
    ffi::CStr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags};

use crate::{
    listing,
    operation::{Errno, OpKind, Open, Operation, SOURCE, Slot},
};

/// The directories an engine can reach: the run's own, and one to read files from.
#[derive(Debug)]
pub struct Reach {
    /// The run's own directory.
    pub root: OwnedFd,
    /// The directory that [`SOURCE`] stands for.
    pub source: Option<OwnedFd>,
}

impl From<OwnedFd> for Reach {
    fn from(root: OwnedFd) -> Self {
        Reach { root, source: None }
    }
}

/// Gives an operation the open files of its slots.
pub(super) trait Table {
    /// The open file in a slot; it stays open for as long as the answer is held.
    fn at(&self, slot: Slot) -> Result<impl AsFd, Errno>;
    /// The directory that copies come from.
    fn source(&self) -> Option<BorrowedFd<'_>>;
}

/// The result of an operation, and its change to the table.
pub(super) enum Outcome {
    /// The result.
    Answer(u32),
    /// The file to put into the operation's slot.
    Opened(OwnedFd),
    /// The operation's slot must be emptied.
    Closed,
}

/// Open files by slot, for one thread; slot 0 is the run's directory.
#[derive(Debug)]
pub(super) struct Files {
    table: Vec<Option<OwnedFd>>,
    source: Option<OwnedFd>,
}

impl Table for Files {
    #[inline]
    fn at(&self, slot: Slot) -> Result<impl AsFd, Errno> {
        self.descriptor(slot)
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }
}

impl Files {
    /// Creates the table. `slots` is at least 1.
    pub(super) fn new(Reach { root, source }: Reach, slots: u32) -> Self {
        let mut table: Vec<_> = (0..slots.max(1)).map(|_| None).collect();
        table[0] = Some(root);
        Files { table, source }
    }

    /// The open file in a slot.
    #[inline]
    pub(super) fn descriptor(&self, slot: Slot) -> Result<BorrowedFd<'_>, Errno> {
        self.table.get(slot.0 as usize).and_then(Option::as_ref).map(AsFd::as_fd).ok_or(Errno::EBADF)
    }

    /// Runs the operation in the calling thread.
    #[inline]
    pub(super) fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        match perform(self, operation)? {
            Outcome::Answer(result) => Ok(result),
            Outcome::Opened(file) => self.put(operation.file, Some(file)),
            Outcome::Closed => self.put(operation.file, None),
        }
    }

    /// Fills or empties a slot and closes the file that was in it. Slot 0, the root, stays.
    pub(super) fn put(&mut self, slot: Slot, file: Option<OwnedFd>) -> Result<u32, Errno> {
        match self.table.get_mut(slot.0 as usize) {
            Some(place) if slot.0 > 0 && (file.is_some() || place.is_some()) => {
                *place = file;
                Ok(0)
            }
            _ => Err(Errno::EBADF),
        }
    }
}

/// Runs the operation in the calling thread, but does not change the table.
///
/// A call that a signal interrupted did nothing, so this makes it again (POSIX.1-2017, EINTR of `open`, `read`,
/// `write`, `fsync`, `ftruncate`, `posix_fallocate`). A write that was interrupted later returns the bytes it
/// wrote, and its caller goes on from there.
#[inline]
pub(super) fn perform(table: &impl Table, operation: &mut Operation) -> Result<Outcome, Errno> {
    loop {
        match perform_once(table, operation) {
            Err(Errno::EINTR) => {}
            ended => return ended,
        }
    }
}

#[inline]
fn perform_once(table: &impl Table, operation: &mut Operation) -> Result<Outcome, Errno> {
    let Operation { kind, file, offset, .. } = *operation;
    let length = operation.length as usize;
    let moved = match kind {
        OpKind::Read => rustix::io::pread(table.at(file)?, &mut operation.buffer[..length], offset)?,
        OpKind::Write => rustix::io::pwrite(table.at(file)?, &operation.buffer[..length], offset)?,
        _ => return perform_rare(table, operation),
    };
    Ok(Outcome::Answer(moved as u32))
}

#[inline(never)]
fn perform_rare(table: &impl Table, operation: &mut Operation) -> Result<Outcome, Errno> {
    let Operation { kind, file, offset, .. } = *operation;
    match kind {
        OpKind::Sync => fs::fsync(table.at(file)?)?,
        OpKind::SyncData => fs::fdatasync(table.at(file)?)?,
        OpKind::Allocate => fs::fallocate(table.at(file)?, FallocateFlags::KEEP_SIZE, 0, offset)?,
        OpKind::Truncate => fs::ftruncate(table.at(file)?, offset)?,
        OpKind::Close => return Ok(Outcome::Closed),
        OpKind::Nop => {}
        OpKind::List => return list(table.at(file)?.as_fd(), operation).map(Outcome::Answer),
        _ if operation.dir == SOURCE => return open_source(table, operation),
        _ => return perform_named(table.at(operation.dir)?.as_fd(), table, operation),
    }
    Ok(Outcome::Answer(0))
}

/// Opens a file of the directory that copies come from: for reading, nothing else is allowed there.
fn open_source(table: &impl Table, operation: &Operation) -> Result<Outcome, Errno> {
    let source = table.source().ok_or(Errno::EBADF)?;
    let name = checked(operation)?;
    match operation.kind {
        OpKind::Open(open) if !open.writes() => {
            Ok(Outcome::Opened(fs::openat(source, name, flags(open), Mode::empty())?))
        }
        _ => Err(Errno::EROFS),
    }
}

fn perform_named(
    dir: BorrowedFd<'_>,
    table: &impl Table,
    operation: &mut Operation,
) -> Result<Outcome, Errno> {
    let name = checked(operation)?;
    match operation.kind {
        OpKind::Open(open) => {
            let opened = fs::openat(dir, name, flags(open), Mode::from_raw_mode(0o644))?;
            return Ok(Outcome::Opened(opened));
        }
        OpKind::OpenDir => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            return Ok(Outcome::Opened(fs::openat(dir, name, flags, Mode::empty())?));
        }
        OpKind::Stat => {
            let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let directory = fs::FileType::from_raw_mode(stat.st_mode).is_dir();
            listing::Stat { size: stat.st_size.cast_unsigned(), directory }.put(&mut operation.buffer);
            return Ok(Outcome::Answer(listing::Stat::BYTES as u32));
        }
        OpKind::Unlink => fs::unlinkat(dir, name, AtFlags::empty())?,
        OpKind::RemoveDir => fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?,
        OpKind::MakeDir => fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))?,
        OpKind::Rename => rename(dir, name, table, operation)?,
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(Outcome::Answer(0))
}

fn rename(dir: BorrowedFd<'_>, name: &CStr, table: &impl Table, operation: &Operation) -> Result<(), Errno> {
    let second = operation.second_name();
    if !plain(second) {
        return Err(Errno::EINVAL);
    }
    Ok(fs::renameat(dir, name, table.at(operation.file)?, second)?)
}

/// Calls `getdents64`, which has no safe wrapper that leaves the records as they are.
fn list(dir: BorrowedFd<'_>, operation: &mut Operation) -> Result<u32, Errno> {
    let buffer = &mut *operation.buffer;
    // SAFETY: the kernel writes at most `len` bytes into the buffer, which is borrowed for the whole call.
    let count =
        unsafe { libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
    u32::try_from(count)
        .map_err(|_| Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

fn flags(open: Open) -> OFlags {
    let mut flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    flags |= match (open.reads(), open.writes()) {
        (true, true) => OFlags::RDWR,
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
    };
    flags.set(OFlags::CREATE, open.creates());
    flags.set(OFlags::EXCL, open.must_be_new());
    if open.is_direct() {
        flags |= OFlags::DIRECT;
    }
    flags
}

/// The operation's name with its NUL, if it names an entry of the directory itself.
#[inline]
fn checked(operation: &Operation) -> Result<&CStr, Errno> {
    let end = operation.length as usize;
    let name = operation.buffer.get(..=end).and_then(|name| CStr::from_bytes_with_nul(name).ok());
    name.filter(|name| plain(name.to_bytes())).ok_or(Errno::EINVAL)
}

/// Returns true if `name` is an entry of a directory or the directory itself, never its parent or anything
/// further away.
#[inline]
pub fn plain(name: &[u8]) -> bool {
    !name.is_empty() && name != b".." && !name.contains(&b'/')
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::thread::JoinHandleExt,
        sync::atomic::{AtomicU32, Ordering},
        thread::JoinHandle,
        time::Duration,
    };

    use super::*;
    use crate::{
        Buffer,
        operation::ROOT,
        testing::trial::{self, FILE},
    };

    static SIGNALS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count_signal(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
    }

    /// Handles `SIGUSR1` without `SA_RESTART`: a system call that waits then ends with EINTR.
    fn handle_signals() {
        // SAFETY: all zeros is a valid `sigaction`, and the handler only adds to an atomic.
        let outcome = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())
        };
        assert_eq!(outcome, 0, "SIGUSR1 can be handled");
    }

    /// Sends the thread a signal while it waits in an open. Returns false if the thread has ended.
    fn interrupts_an_open<T>(thread: &JoinHandle<T>, number: i32) -> bool {
        let call = format!("/proc/self/task/{number}/syscall");
        let opening = format!("{} ", libc::SYS_openat);
        while !std::fs::read_to_string(&call).is_ok_and(|text| text.starts_with(&opening)) {
            if thread.is_finished() {
                return false;
            }
            std::thread::yield_now();
        }
        let before = SIGNALS.load(Ordering::SeqCst);
        // SAFETY: the thread was not joined, so the number is its own.
        let sent = unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
        assert_eq!(sent, 0, "it runs");
        while SIGNALS.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        true
    }

    /// Opening a pipe to read waits for a writer, and a signal interrupts that wait.
    #[test]
    fn a_call_that_a_signal_interrupts_is_made_again() {
        handle_signals();
        trial::within(Duration::from_mins(1), || {
            let (directory, root) = trial::directory();
            let pipe = directory.path().join("pipe");
            fs::mknodat(fs::CWD, &pipe, fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
            let mut files = Files::new(root.into(), 2);
            let (sender, number) = std::sync::mpsc::sync_channel(1);
            let opens = std::thread::spawn(move || {
                sender.send(rustix::thread::gettid().as_raw_pid()).expect("the test waits");
                let name = Buffer::alone(512);
                let mut open = Operation::named(OpKind::Open(Open::READ), ROOT, FILE, b"pipe", name);
                files.execute(&mut open)
            });
            let number = number.recv().expect("it has begun");
            for _ in 0..3 {
                assert!(interrupts_an_open(&opens, number), "an interrupted open must not end");
            }
            let _writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("a reader waits");
            assert_eq!(opens.join().expect("it ended"), Ok(0));
        });
    }
}
