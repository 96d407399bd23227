//! The operations of an engine and their results.

use std::fmt;

use nilometer_model::Nanos;

use crate::{Buffer, listing_bound::ListingBound};

/// A place in the engine's table of open files. The workload chooses it, so it can plan later operations
/// before the open completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// The run's own directory: open from the start, never closed.
pub const ROOT: Slot = Slot(0);

/// The directory that copies come from, if the engine has one: open from the start, never closed, outside the
/// table. A file in it can be opened to read ([`Open::READ`] with this as `dir`); the engine refuses anything
/// else.
pub const SOURCE: Slot = Slot(u32::MAX);

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Open(u8);

impl Open {
    /// An existing file, to read.
    pub const READ: Open = Open(0);
    /// An existing file, to write.
    pub const WRITE: Open = Open(1);
    /// An existing file, to read and to write.
    pub const READ_WRITE: Open = Open(1 | Self::READS_TOO);
    /// A new file, to write; it must not exist.
    pub const CREATE: Open = Open(3);
    /// A file that many open to write; the first of them makes it.
    pub const SHARED: Open = Open(3 | Self::MAY_EXIST);
    /// A new file that grows, a journal. The bytes a write appends are there, for other readers too, once the
    /// write completes. Open it as [`Open::GROWN`] to read it if you do not know how the storage keeps it.
    pub const GROW: Open = Open(3 | Self::GROWS);
    /// An existing file that grows, or grew, to read. A read may end before the end of the file, at a whole
    /// record of a journal; the next read continues there. At the end of the file it returns 0.
    pub const GROWN: Open = Open(Self::GROWS);

    const DIRECT: u8 = 4;
    const MAY_EXIST: u8 = 8;
    const READS_TOO: u8 = 16;
    const GROWS: u8 = 32;

    /// Bypasses the page cache (`O_DIRECT`) if `yes`.
    #[must_use]
    pub const fn direct_if(self, yes: bool) -> Open {
        if yes { Open(self.0 | Self::DIRECT) } else { self }
    }

    /// Returns true if the file can be read.
    pub const fn reads(self) -> bool {
        !self.writes() || self.0 & Self::READS_TOO != 0
    }

    /// Returns true if the file can be written.
    pub const fn writes(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns true if the open makes a missing file.
    pub const fn creates(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns true if the file must not exist yet.
    pub const fn must_be_new(self) -> bool {
        self.creates() && self.0 & Self::MAY_EXIST == 0
    }

    /// Returns true if written bytes are there once the write completes.
    pub const fn grows(self) -> bool {
        self.0 & Self::GROWS != 0
    }

    /// Returns true if it bypasses the page cache.
    pub const fn is_direct(self) -> bool {
        self.0 & Self::DIRECT != 0
    }
}

/// The kind of an operation. Names are in the buffer, relative to the directory in `dir`; answers come back
/// in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Reads `length` bytes at `offset` into the buffer. The result is the number of bytes read.
    Read,
    /// Writes `length` bytes of the buffer at `offset`. The result is the number of bytes accepted.
    Write,
    /// Makes the file's data and metadata, or the names in the directory, survive a loss of power.
    Sync,
    /// Makes data, and the metadata needed to find it, survive a loss of power.
    SyncData,
    /// Reserves space from 0 to `offset`; the file's size stays.
    Allocate,
    /// Sets the file's size to `offset`.
    Truncate,
    /// Opens the named file into slot `file`.
    Open(Open),
    /// Opens the named directory into slot `file`.
    OpenDir,
    /// Empties the slot.
    Close,
    /// Stats the named entry without following a symlink; puts a [`crate::listing::Stat`] into the buffer.
    Stat,
    /// Puts the next entries of the directory in `file` into the buffer, in the format of [`crate::listing`];
    /// 0 at the end.
    List,
    /// Removes the named file.
    Unlink,
    /// Removes the named, empty directory.
    RemoveDir,
    /// Makes the named directory.
    MakeDir,
    /// Renames: two names in the buffer with a NUL between, from `dir` to `file`. `length` is that of the first.
    Rename,
    /// Does nothing on the storage, for any slots. It measures the cost of an operation without the
    /// storage.
    Nop,
}

impl OpKind {
    /// Every kind, for suites and tables.
    pub const ALL: [OpKind; 16] = [
        OpKind::Read,
        OpKind::Write,
        OpKind::Sync,
        OpKind::SyncData,
        OpKind::Allocate,
        OpKind::Truncate,
        OpKind::Open(Open::READ),
        OpKind::OpenDir,
        OpKind::Close,
        OpKind::Stat,
        OpKind::List,
        OpKind::Unlink,
        OpKind::RemoveDir,
        OpKind::MakeDir,
        OpKind::Rename,
        OpKind::Nop,
    ];

    /// Returns true if the kind moves file data.
    #[inline]
    pub const fn is_data(self) -> bool {
        matches!(self, OpKind::Read | OpKind::Write)
    }
}

/// One operation with its memory.
#[derive(Debug)]
pub struct Operation {
    /// The kind of operation.
    pub kind: OpKind,
    /// The file it acts on, or the slot it opens into.
    pub file: Slot,
    /// The directory of a name.
    pub dir: Slot,
    /// Bytes of data or of the name.
    pub length: u32,
    /// The position in the file, in bytes; for a listing, the position to continue from.
    pub offset: u64,
    /// The issuer's identifier, such as a place in its in-flight table, to match the completion. Engines
    /// ignore it and return it unchanged, like `user_data` of `io_uring`.
    pub tag: u64,
    /// Data, name or answer.
    pub buffer: Buffer,
}

impl Operation {
    /// Reads `length` bytes at `offset`.
    #[inline]
    pub fn read(file: Slot, offset: u64, length: u32, buffer: Buffer) -> Self {
        Operation { kind: OpKind::Read, file, dir: ROOT, length, offset, tag: 0, buffer }
    }

    /// Writes `length` bytes at `offset`.
    #[inline]
    pub fn write(file: Slot, offset: u64, length: u32, buffer: Buffer) -> Self {
        Operation { kind: OpKind::Write, file, dir: ROOT, length, offset, tag: 0, buffer }
    }

    /// An operation on an open file that needs no memory but may carry some.
    #[inline]
    pub fn on(kind: OpKind, file: Slot, buffer: Buffer) -> Self {
        Operation { kind, file, dir: ROOT, length: 0, offset: 0, tag: 0, buffer }
    }

    /// An operation on a name, which is copied into the buffer with a NUL after it.
    #[inline]
    pub fn named(kind: OpKind, dir: Slot, file: Slot, name: &[u8], mut buffer: Buffer) -> Self {
        buffer[..name.len()].copy_from_slice(name);
        buffer[name.len()] = 0;
        Operation { kind, file, dir, length: name.len() as u32, offset: 0, tag: 0, buffer }
    }

    /// Returns the operation with this tag.
    #[inline]
    #[must_use]
    pub fn tagged(self, tag: u64) -> Self {
        Operation { tag, ..self }
    }

    /// Returns the name in the buffer.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.buffer[..self.length as usize]
    }

    /// Returns the second name of a rename; empty if there is none.
    pub fn second_name(&self) -> &[u8] {
        let behind = self.buffer.get(self.length as usize + 1..).unwrap_or_default();
        behind.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// An error number of the kernel, or of a [`ListingBound`]. A fault of the storage is data, not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $libc:ident;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno(libc::$libc);)*
            /// The kernel's name, or "errno".
            pub fn name(self) -> &'static str {
                match self { $(Errno::$name => stringify!($libc),)* _ => "errno" }
            }
        }
    };
}

errnos! {
    /// Input or output failed.
    EIO = EIO;
    /// No space left.
    ENOSPC = ENOSPC;
    /// No such file or directory.
    ENOENT = ENOENT;
    /// The name exists already.
    EEXIST = EEXIST;
    /// The slot holds no open file.
    EBADF = EBADF;
    /// The arguments make no sense, such as a name with a slash.
    EINVAL = EINVAL;
    /// Not a directory.
    ENOTDIR = ENOTDIR;
    /// Is a directory.
    EISDIR = EISDIR;
    /// The directory is not empty.
    ENOTEMPTY = ENOTEMPTY;
    /// Read-only file system.
    EROFS = EROFS;
    /// The target can't do this.
    EOPNOTSUPP = EOPNOTSUPP;
    /// The kernel or the file system has no such call.
    ENOSYS = ENOSYS;
    /// The quota is used up.
    EDQUOT = EDQUOT;
    /// A symlink where none is followed.
    ELOOP = ELOOP;
    /// The file system was shut down.
    EUCLEAN = EUCLEAN;
    /// The server no longer knows the file.
    ESTALE = ESTALE;
    /// Took too long.
    ETIMEDOUT = ETIMEDOUT;
    /// Not allowed.
    EACCES = EACCES;
    /// Not permitted.
    EPERM = EPERM;
    /// Out of memory.
    ENOMEM = ENOMEM;
    /// A signal interrupted the call before it did anything.
    EINTR = EINTR;
    /// The kernel can't do it at this moment.
    EAGAIN = EAGAIN;
}

impl Errno {
    /// Returns true if the file system does not support the operation at all, rather than having failed at
    /// it.
    pub fn is_refusal(self) -> bool {
        matches!(self, Errno::EOPNOTSUPP | Errno::ENOSYS)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bound) = ListingBound::of_number(self.0) {
            return f.write_str(&bound.text());
        }
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        // The name says more than the number that the standard library appends.
        let text = text.split(" (os error").next().unwrap_or_default();
        write!(f, "{} ({text})", self.name())
    }
}

impl From<ListingBound> for Errno {
    fn from(bound: ListingBound) -> Self {
        Errno(bound.number())
    }
}

/// An error with the same message as its [`Errno`].
impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        match ListingBound::of_number(errno.0) {
            Some(bound) => std::io::Error::other(bound.text()),
            None => std::io::Error::from_raw_os_error(errno.0),
        }
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Errno(errno.raw_os_error())
    }
}

/// A completed operation, with its buffer.
#[derive(Debug)]
pub struct Completion {
    /// The operation.
    pub operation: Operation,
    /// Bytes moved, bytes of the answer, or 0.
    pub result: Result<u32, Errno>,
    /// The time at which it should have been issued.
    pub due: Nanos,
    /// The time at which it was issued.
    pub issued: Nanos,
    /// The time at which it completed.
    pub finished: Nanos,
}
