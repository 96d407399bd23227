//! Answers the kernel's requests from the catalogue: one directory, with a file for each recording.

use std::{
    ffi::OsStr,
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, Request,
};

use crate::{catalogue::Catalogue, entry::Entry, handles::Handles};

/// Requested read-ahead of the kernel in KiB, in requests of at most 1 MiB.
pub(crate) const READ_AHEAD_KIB: u32 = 4096;
const REQUEST_MAX: u32 = 1 << 20;
const IN_FLIGHT: u16 = 64;
/// Requested features: several requests at once, of maximum size, and a cache that stays valid while a file
/// grows.
const WISHES: [InitFlags; 4] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_MAX_PAGES,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
];
/// Maximum depth of stacked file systems below, if the kernel reads a file directly.
const STACKED: u32 = 2;
/// How long the kernel may cache unchanging attributes.
const LONG: Duration = Duration::from_hours(1);
/// Maximum number of names in an answer about the directory: the kernel asks for a page or a few.
const ANSWERED: usize = 512;
/// File numbers begin after that of the directory.
const FIRST: u64 = 2;

/// The inode number of the file with this index in the catalogue.
pub(crate) fn inode(number: usize) -> INodeNo {
    INodeNo(FIRST + number as u64)
}

/// The FUSE file system.
#[derive(Debug)]
pub(crate) struct Files {
    catalogue: Arc<Catalogue>,
    owner: (u32, u32),
    began: SystemTime,
    handles: Arc<Handles>,
}

impl Files {
    pub(crate) fn new(catalogue: Arc<Catalogue>) -> Self {
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Files { catalogue, owner, began: SystemTime::now(), handles: Arc::default() }
    }

    fn entry(&self, inode: INodeNo) -> Option<Arc<Entry>> {
        self.catalogue.entry(inode.0.checked_sub(FIRST)? as usize)
    }

    /// How long the kernel may cache a file's attributes, and the attributes.
    fn of_file(&self, number: usize, entry: &Entry) -> (Duration, FileAttr) {
        let keep = if entry.is_over() { LONG } else { Duration::ZERO };
        let all = self.attributes(inode(number), FileType::RegularFile, entry.length(), entry.time());
        // The kernel lets only those users read it who may read the underlying files.
        let attributes = entry.shown_to.map_or(all, |access| FileAttr {
            uid: access.user,
            gid: access.group,
            perm: access.mode as u16,
            ..all
        });
        (keep, attributes)
    }

    fn attributes(&self, ino: INodeNo, kind: FileType, size: u64, time: SystemTime) -> FileAttr {
        let (perm, nlink) = if kind == FileType::Directory { (0o555, 2) } else { (0o444, 1) };
        FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: REQUEST_MAX,
            flags: 0,
        }
    }

    fn directory(&self) -> FileAttr {
        self.attributes(INodeNo::ROOT, FileType::Directory, 0, self.began)
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each is a request: an older kernel keeps its defaults.
        config.set_max_write(REQUEST_MAX).ok();
        if let Err(most) = config.set_max_readahead(READ_AHEAD_KIB << 10) {
            config.set_max_readahead(most).ok();
        }
        config.set_max_background(IN_FLIGHT).ok();
        for wish in WISHES {
            config.add_capabilities(wish).ok();
        }
        if config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() {
            config.set_max_stack_depth(STACKED).ok();
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found =
            name.to_str().filter(|_| parent == INodeNo::ROOT).and_then(|name| self.catalogue.named(name));
        match found {
            Some((number, entry)) => {
                let (keep, attributes) = self.of_file(number, &entry);
                reply.entry(&keep, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        if inode == INodeNo::ROOT {
            return reply.attr(&LONG, &self.directory());
        }
        match self.entry(inode) {
            Some(entry) => {
                let (keep, attributes) = self.of_file((inode.0 - FIRST) as usize, &entry);
                reply.attr(&keep, &attributes);
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let Some(entry) = self.entry(inode) else { return reply.error(Errno::ENOENT) };
        self.handles.open(inode, &entry, reply);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.handles.reader(handle) {
            Some(reader) => reader.read(offset, size, reply),
            None => reply.error(Errno::EBADF),
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.handles.close(handle);
        reply.ok();
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let begin = offset as usize;
        let own = [".", ".."].map(|name| (1, FileType::Directory, name.to_owned()));
        // The answer has room for only a part of many files.
        let first = begin.saturating_sub(own.len());
        let names = self.catalogue.names_from(first, ANSWERED);
        let files = (FIRST + first as u64..).zip(names);
        let files = files.map(|(number, name)| (number, FileType::RegularFile, name));
        let entries = own.into_iter().skip(begin).chain(files);
        for (next, (number, kind, name)) in (begin as u64 + 1..).zip(entries) {
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
