//! A disk with a volatile cache. When it loses its power, any part of the writes since the last flush is on it.
//! Writes overtake each other, and each is torn between sectors.
//!
//! ```text
//! ext4 or XFS -> loop device -> file shown by FUSE (this module) -> image, and what was written since the last fsync
//! ```
//!
//! Flushes of the file system arrive here as `fsync` of the file.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, WriteFlags,
};
use nilometer_model::Seed;
use tempfile::TempDir;

use crate::{
    await_some,
    file_system::{FileSystem, must, tried},
    shown_file::shown_file,
};

/// Smallest unit that a disk writes whole.
const SECTOR: usize = 512;
const DISK: INodeNo = INodeNo(2);
/// The kernel caches no attributes and asks each time.
const KEPT: Duration = Duration::ZERO;
const REQUEST_MAX: u32 = 1 << 20;

/// A file system on such a disk. Dropping it unmounts and removes it.
#[derive(Debug)]
pub struct TornDisk {
    volume: Option<FileSystem>,
    session: Option<BackgroundSession>,
    cache: Arc<Mutex<DiskCache>>,
    /// Mount options for a second mount of the same file system.
    beside: &'static str,
    directory: TempDir,
}

/// A disk after a loss of power.
#[derive(Debug)]
pub struct PowerLost {
    /// The file system found on it. Dropping it unmounts it.
    pub found: FileSystem,
    /// Number of writes that were not flushed.
    pub unflushed: usize,
    /// Number of their sectors that are lost.
    pub lost_sectors: usize,
    image: PathBuf,
}

#[derive(Debug)]
struct DiskCache {
    /// Bytes that survive in any case.
    flushed: File,
    /// Bytes that a read returns.
    latest: File,
    unflushed: Vec<CachedWrite>,
    bytes: u64,
}

#[derive(Debug)]
struct CachedWrite {
    offset: u64,
    bytes: Vec<u8>,
}

impl TornDisk {
    /// ext4 on such a disk of `mebibytes` MiB.
    pub fn ext4(mebibytes: u64) -> Self {
        TornDisk::with(&["mkfs.ext4", "-q", "-m", "0"], mebibytes, "loop")
    }

    /// XFS on such a disk of `mebibytes` MiB, at least 300.
    pub fn xfs(mebibytes: u64) -> Self {
        TornDisk::with(&["mkfs.xfs", "-q"], mebibytes, "loop,nouuid")
    }

    fn with(make: &[&str], mebibytes: u64, beside: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        let image = |name: &str| {
            let file = File::options().read(true).write(true).create_new(true).open(at(name));
            let file = file.expect("space");
            file.set_len(mebibytes << 20).expect("a sparse file");
            file
        };
        let cache = DiskCache {
            flushed: image("flushed"),
            latest: image("latest"),
            unflushed: Vec::new(),
            bytes: mebibytes << 20,
        };
        let cache = Arc::new(Mutex::new(cache));
        for name in ["shown", "mounted"] {
            fs::create_dir(at(name)).expect("space");
        }
        let session = Session::new(ShownDisk(cache.clone()), at("shown"), &Config::default());
        let session = session.and_then(Session::spawn).expect("FUSE is there");
        must(Command::new(make[0]).args(&make[1..]).arg(at("shown/disk")));
        let volume = FileSystem::mounted_at(&at("mounted"), &["-o", "loop"], &at("shown/disk"));
        TornDisk { volume: Some(volume), session: Some(session), cache, beside, directory }
    }

    /// The mount point.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    /// The disk after a loss of power now. The seed selects the cached sectors that reached it.
    pub fn after_power_loss(&self, seed: u64) -> PowerLost {
        let at = |name: String| self.directory.path().join(name);
        let [image, point] = ["image", "found"].map(|name| at(format!("{name}-{seed}")));
        let (unflushed, lost_sectors) = self.lock().lose_power(Seed(seed), &image);
        fs::create_dir(&point).expect("space");
        let found = FileSystem::mounted_at(&point, &["-o", self.beside], &image);
        PowerLost { found, unflushed, lost_sectors, image }
    }

    fn lock(&self) -> MutexGuard<'_, DiskCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TornDisk {
    fn drop(&mut self) {
        drop(self.volume.take());
        let shown = self.directory.path().join("shown");
        // The loop device lets go a moment after the file system.
        await_some("the end of the disk", || tried(Command::new("umount").arg(&shown)).then_some(()));
        drop(self.session.take());
    }
}

impl PowerLost {
    /// The mount point.
    pub fn path(&self) -> &Path {
        self.found.path()
    }
}

impl Drop for PowerLost {
    fn drop(&mut self) {
        // It is still mounted; its space becomes free with the unmount.
        fs::remove_file(&self.image).unwrap_or_default();
    }
}

impl DiskCache {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.latest.write_all_at(bytes, offset)?;
        self.unflushed.push(CachedWrite { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for write in self.unflushed.drain(..) {
            self.flushed.write_all_at(&write.bytes, write.offset)?;
        }
        Ok(())
    }

    /// Makes an image of the disk after a loss of power. Returns the numbers of writes not flushed and of their
    /// sectors that are lost.
    fn lose_power(&self, seed: Seed, image: &Path) -> (usize, usize) {
        must(Command::new("cp").arg("--sparse=always").arg(image.with_file_name("flushed")).arg(image));
        let file = File::options().write(true).open(image).expect("it was made");
        let mut random = seed.named("power").stream();
        let mut order: Vec<usize> = (0..self.unflushed.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        // Nearly all of them, nearly none, or any part.
        let kept_in_1000 = random.below(1001);
        let mut lost = 0;
        for at in order {
            let CachedWrite { offset, bytes } = &self.unflushed[at];
            for (sector, bytes) in bytes.chunks(SECTOR).enumerate() {
                if random.below(1000) < kept_in_1000 {
                    file.write_all_at(bytes, offset + (sector * SECTOR) as u64).expect("space");
                } else {
                    lost += 1;
                }
            }
        }
        (self.unflushed.len(), lost)
    }
}

/// A directory with one file, the disk.
struct ShownDisk(Arc<Mutex<DiskCache>>);

impl ShownDisk {
    fn lock(&self) -> MutexGuard<'_, DiskCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let (kind, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0),
            _ => (FileType::RegularFile, self.lock().bytes),
        };
        shown_file(ino, kind, size)
    }
}

impl Filesystem for ShownDisk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config.set_max_write(REQUEST_MAX).ok();
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == "disk" {
            reply.entry(&KEPT, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KEPT, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let cache = self.lock();
        let mut bytes = vec![0; u64::from(size).min(cache.bytes.saturating_sub(offset)) as usize];
        match cache.latest.read_exact_at(&mut bytes, offset) {
            Ok(()) => reply.data(&bytes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.lock().write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.lock().flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }
}
