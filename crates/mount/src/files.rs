//! What the kernel asks, answered from the catalogue: one directory, with a file for each recording.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use fuser::{
    BackingId, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, Request,
};

use crate::{
    ahead::Ahead,
    catalogue::{Catalogue, Entry},
};

/// The kernel is asked to read so far ahead, in KiB, in requests of at most 1 MiB.
pub(crate) const READ_AHEAD_KIB: u32 = 4096;
const REQUEST_MAX: u32 = 1 << 20;
const IN_FLIGHT: u16 = 64;
/// How long the kernel may keep what does not change.
const LONG: Duration = Duration::from_hours(1);
/// Numbers of files begin behind that of the directory.
const FIRST: u64 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Files {
    catalogue: Arc<Catalogue>,
    owner: (u32, u32),
    began: SystemTime,
    handles: AtomicU64,
    open: Mutex<BTreeMap<u64, Open>>,
}

/// What belongs to a file that somebody has open.
#[derive(Debug, Default)]
struct Open {
    ahead: Ahead,
    /// The kernel reads the file behind it by itself.
    _backing: Option<Arc<BackingId>>,
}

impl Files {
    pub(crate) fn new(catalogue: Arc<Catalogue>) -> Self {
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Files {
            catalogue,
            owner,
            began: SystemTime::now(),
            handles: AtomicU64::new(1),
            open: Mutex::default(),
        }
    }

    fn entry(&self, inode: INodeNo) -> Option<Arc<Entry>> {
        self.catalogue.entry(inode.0.checked_sub(FIRST)? as usize)
    }

    /// How long the kernel may keep a file's attributes, and these.
    fn of_file(&self, number: usize, entry: &Entry) -> (Duration, FileAttr) {
        let keep = if entry.is_over() { LONG } else { Duration::ZERO };
        let inode = INodeNo(FIRST + number as u64);
        (keep, self.attributes(inode, FileType::RegularFile, entry.length(), entry.time()))
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

    fn handle(&self, open: Open) -> u64 {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, open);
        handle
    }

    /// The file that is all of a recording, for the kernel to read by itself. Root may ask that; elsewhere it is refused.
    fn backing(entry: &Entry, reply: &ReplyOpen) -> Option<Arc<BackingId>> {
        let path = entry.whole.only_file()?;
        reply.open_backing(File::open(path).ok()?).ok().map(Arc::new)
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each is a wish: an older kernel keeps its own way.
        drop(config.set_max_write(REQUEST_MAX));
        if let Err(most) = config.set_max_readahead(READ_AHEAD_KIB << 10) {
            drop(config.set_max_readahead(most));
        }
        drop(config.set_max_background(IN_FLIGHT));
        for wish in [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_MAX_PAGES, InitFlags::FUSE_PARALLEL_DIROPS] {
            drop(config.add_capabilities(wish));
        }
        if config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() {
            drop(config.set_max_stack_depth(2));
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
        if !entry.is_over() {
            // What the kernel keeps of it is forgotten at each opening: what was missing then may have come.
            return reply.opened(FileHandle(self.handle(Open::default())), FopenFlags::empty());
        }
        let backing = Self::backing(&entry, &reply);
        let handle = FileHandle(self.handle(Open { ahead: Ahead::default(), _backing: backing.clone() }));
        match backing {
            Some(backing) => reply.opened_passthrough(handle, FopenFlags::empty(), &backing),
            None => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(entry) = self.entry(inode) else { return reply.error(Errno::ENOENT) };
        let ahead = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.get_mut(&handle.0).and_then(|open| open.ahead.read(offset, u64::from(size)))
        };
        if let Some(range) = ahead {
            entry.whole.fetch(range);
        }
        let length = u64::from(size).min(entry.length().saturating_sub(offset)) as usize;
        let mut buffer = vec![0; length];
        let read = entry.whole.read_at(offset, &mut buffer);
        reply.data(&buffer[..read]);
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
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
        reply.ok();
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let own = [(1, FileType::Directory, ".".to_owned()), (1, FileType::Directory, "..".to_owned())];
        let files =
            (FIRST..).zip(self.catalogue.names()).map(|(number, name)| (number, FileType::RegularFile, name));
        for (next, (number, kind, name)) in (1..).zip(own.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
