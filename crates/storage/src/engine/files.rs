//! The table of open files, and every operation as a system call relative to a directory descriptor.
//!
//! No name with a slash is taken and no symlink is followed, so nothing outside the run's directory can be reached.

use std::{
    ffi::CStr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags};

use crate::{
    listing,
    operation::{Errno, OpKind, Open, Operation, Slot},
};

/// Open files by slot; slot 0 is the run's directory.
#[derive(Debug)]
pub(super) struct Files(Vec<Option<OwnedFd>>);

impl Files {
    /// `slots` at least 1.
    pub(super) fn new(root: OwnedFd, slots: u32) -> Self {
        let mut table: Vec<_> = (0..slots.max(1)).map(|_| None).collect();
        table[0] = Some(root);
        Files(table)
    }

    /// The open file in a slot.
    #[inline]
    pub(super) fn at(&self, slot: Slot) -> Result<BorrowedFd<'_>, Errno> {
        self.0.get(slot.0 as usize).and_then(Option::as_ref).map(AsFd::as_fd).ok_or(Errno::EBADF)
    }

    /// Does the operation in the calling thread.
    #[inline]
    pub(super) fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        let Operation { kind, file, offset, .. } = *operation;
        let length = operation.length as usize;
        match kind {
            OpKind::Read => {
                let moved = rustix::io::pread(self.at(file)?, &mut operation.buffer[..length], offset)?;
                Ok(moved as u32)
            }
            OpKind::Write => {
                Ok(rustix::io::pwrite(self.at(file)?, &operation.buffer[..length], offset)? as u32)
            }
            _ => self.execute_rare(operation),
        }
    }

    #[inline(never)]
    fn execute_rare(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        match operation.kind {
            OpKind::Sync => fs::fsync(self.at(operation.file)?)?,
            OpKind::SyncData => fs::fdatasync(self.at(operation.file)?)?,
            OpKind::Allocate => {
                fs::fallocate(self.at(operation.file)?, FallocateFlags::KEEP_SIZE, 0, operation.offset)?;
            }
            OpKind::Truncate => fs::ftruncate(self.at(operation.file)?, operation.offset)?,
            OpKind::Close => return self.put(operation.file, None),
            OpKind::List => return self.list(operation),
            _ => return self.execute_named(operation),
        }
        Ok(0)
    }

    fn execute_named(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        let dir = self.at(operation.dir)?;
        let name = checked(operation)?;
        match operation.kind {
            OpKind::Open(open) => {
                let opened = fs::openat(dir, name, flags(open), Mode::from_raw_mode(0o644))?;
                return self.put(operation.file, Some(opened));
            }
            OpKind::OpenDir => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let opened = fs::openat(dir, name, flags, Mode::empty())?;
                return self.put(operation.file, Some(opened));
            }
            OpKind::Stat => {
                let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let directory = fs::FileType::from_raw_mode(stat.st_mode).is_dir();
                listing::Stat { size: stat.st_size.cast_unsigned(), directory }.put(&mut operation.buffer);
                return Ok(listing::Stat::BYTES as u32);
            }
            OpKind::Unlink => fs::unlinkat(dir, name, AtFlags::empty())?,
            OpKind::RemoveDir => fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?,
            OpKind::MakeDir => fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))?,
            OpKind::Rename => {
                let second = operation.second_name();
                if !plain(second) {
                    return Err(Errno::EINVAL);
                }
                fs::renameat(dir, name, self.at(operation.file)?, second)?;
            }
            _ => return Err(Errno::EOPNOTSUPP),
        }
        Ok(0)
    }

    /// Fills or empties a slot; what was in it is closed. The root stays.
    fn put(&mut self, slot: Slot, file: Option<OwnedFd>) -> Result<u32, Errno> {
        match self.0.get_mut(slot.0 as usize) {
            Some(place) if slot.0 > 0 && (file.is_some() || place.is_some()) => {
                *place = file;
                Ok(0)
            }
            _ => Err(Errno::EBADF),
        }
    }

    /// `getdents64`, which has no safe wrapper that leaves the records as they are.
    fn list(&self, operation: &mut Operation) -> Result<u32, Errno> {
        let dir = self.at(operation.file)?.as_raw_fd();
        let buffer = &mut *operation.buffer;
        // SAFETY: the kernel writes at most `len` bytes into the buffer, which is borrowed for the whole call.
        let count = unsafe { libc::syscall(libc::SYS_getdents64, dir, buffer.as_mut_ptr(), buffer.len()) };
        u32::try_from(count)
            .map_err(|_| Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
    }
}

fn flags(open: Open) -> OFlags {
    let mut flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    flags |= if open.writes() { OFlags::WRONLY } else { OFlags::RDONLY };
    if open.creates() {
        flags |= OFlags::CREATE | OFlags::EXCL;
    }
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

/// Names an entry of a directory, or the directory itself; never its parent or anything further away.
#[inline]
pub(crate) fn plain(name: &[u8]) -> bool {
    !name.is_empty() && name != b".." && !name.contains(&b'/')
}
