//! Recordings as plain files: each is one, read-only, with its true size, wherever its blocks lie; also while it is still
//! made.
//!
//! ```text
//! directories -> Catalogue (what is recorded there) -> Files (what the kernel asks) -> Handles -> whoever reads
//! ```
//!
//! The kernel's FUSE is spoken without any library: root mounts by itself, others by the program `fusermount3` of the
//! Debian package `fuse3`.

#![forbid(unsafe_code)]

mod catalogue;
mod crew;
mod entry;
mod files;
mod handles;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use fuser::{BackgroundSession, Config, MountOption, Notifier, Session, SessionACL};
use nilometer_recording::reader::OpenError;

use catalogue::{Catalogue, Forget};
use files::{Files, inode};

/// What can't be mounted, or not there.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The recordings.
    #[error(transparent)]
    Recordings(#[from] OpenError),
    /// There are none.
    #[error(
        "no recording in {0} or in the directories there: name directories of recordings, or those above them"
    )]
    Nothing(String),
    /// The place.
    #[error("{path}: {why}: name an empty directory to mount on")]
    Place {
        /// As it was named.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The kernel, or who may ask it.
    #[error(
        "can't mount on {path}: {why}; it takes /dev/fuse, and root or the program fusermount3 (package fuse3)"
    )]
    Mount {
        /// Where.
        path: PathBuf,
        /// What the kernel or the program said.
        why: String,
    },
}

/// Who may read what is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountReaders {
    /// Who mounts it, and nobody else, root included.
    Owner,
    /// All users. Root may ask for it, and others where `/etc/fuse.conf` has `user_allow_other`.
    All,
}

/// A mount. It is undone when this is dropped.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    session: Option<BackgroundSession>,
    catalogue: Arc<Catalogue>,
    stop: Arc<AtomicBool>,
}

/// Threads that answer the kernel. None of them waits for a disk.
const THREADS: usize = 4;
/// How often it is looked what recordings gained.
const LOOK: Duration = Duration::from_millis(50);
/// What somebody still has open may keep a mount alive that nobody sees any more: it is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

impl Mounted {
    /// Mounts all recordings in these directories, and in the directories there, on an empty directory.
    pub fn new(directories: &[PathBuf], at: &Path, readers: MountReaders) -> Result<Self, MountError> {
        check(at)?;
        let catalogue = Arc::new(Catalogue::new(directories, readers)?);
        if catalogue.is_empty() {
            let names: Vec<_> = directories.iter().map(|path| path.display().to_string()).collect();
            return Err(MountError::Nothing(names.join(", ")));
        }
        let failed = |error: io::Error| {
            let why = error.to_string().trim_end().into();
            MountError::Mount { path: at.to_owned(), why }
        };
        let files = Files::new(catalogue.clone());
        let session = Session::new(files, at, &options(readers)).and_then(Session::spawn).map_err(failed)?;
        read_further_ahead(at);
        let notifier = session.notifier();
        let mounted = Mounted { at: at.to_owned(), session: Some(session), catalogue, stop: Arc::default() };
        mounted.watch(notifier).map_err(failed)?;
        Ok(mounted)
    }

    /// Looks for news until it is undone. Whether a disk hangs meanwhile is not waited for.
    fn watch(&self, notifier: Notifier) -> io::Result<()> {
        let catalogue = self.catalogue.clone();
        let stop = self.stop.clone();
        let look = move || look_until(&stop, &catalogue, &forget(notifier));
        thread::Builder::new().name("news".into()).spawn(look).map(drop)
    }

    /// The names of the files.
    pub fn names(&self) -> Vec<String> {
        self.catalogue.names()
    }

    /// Whether somebody else undid the mount.
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// What could not be read though it should be there: the first of each recording, once.
    pub fn news_of_faults(&self) -> Vec<String> {
        self.catalogue.news_of_faults()
    }

    fn undo(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(session) = self.session.take() else { return Ok(()) };
        if session.guard.is_finished() {
            // Somebody else unmounted it: there is nothing left to be undone.
            return session.join();
        }
        let (told, ended) = mpsc::sync_channel(1);
        thread::Builder::new().name("end".into()).spawn(move || told.send(session.umount_and_join()))?;
        let Ok(Err(error)) = ended.recv_timeout(PATIENCE) else { return Ok(()) };
        // Files in it are still open: it is gone from the tree, and for good when they are closed.
        rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH).map_err(|_| error)
    }

    /// Unmounts.
    pub fn unmount(mut self) -> io::Result<()> {
        self.undo()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Who wants to know whether it worked calls `unmount`.
        drop(self.undo());
    }
}

fn look_until(stop: &AtomicBool, catalogue: &Arc<Catalogue>, forget: &Forget) {
    while !stop.load(Ordering::Relaxed) {
        catalogue.look(forget);
        thread::sleep(LOOK);
    }
}

/// Has the kernel forget what it keeps of a part of a file: that does not fit what stands there now.
fn forget(notifier: Notifier) -> Forget {
    Arc::new(move |number, range| {
        let begin = range.start.cast_signed();
        let length = (range.end - range.start).cast_signed();
        // Of a file that nobody has open it keeps nothing.
        drop(notifier.inval_inode(inode(number), begin, length));
    })
}

fn options(readers: MountReaders) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::DefaultPermissions,
        MountOption::FSName("nilometer".into()),
        MountOption::Subtype("nilometer".into()),
    ];
    config.acl = match readers {
        MountReaders::Owner => SessionACL::Owner,
        MountReaders::All => SessionACL::All,
    };
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}

/// What would hide something, or can't be mounted on.
fn check(at: &Path) -> Result<(), MountError> {
    let wrong = |why: String| Err(MountError::Place { path: at.to_owned(), why });
    match fs::read_dir(at).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            wrong("a mount of which the program is gone: unmount it (umount, or fusermount3 -u)".into())
        }
        Err(error) => wrong(error.to_string()),
        Ok(false) => wrong("it is not empty".into()),
        Ok(true) => Ok(()),
    }
}

/// The kernel asks for 128 KiB at once as a rule. Root may have it ask for more; whoever may not reads a little slower.
fn read_further_ahead(at: &Path) {
    let Ok(status) = rustix::fs::stat(at) else { return };
    let major = rustix::fs::major(status.st_dev);
    let minor = rustix::fs::minor(status.st_dev);
    drop(fs::write(
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        files::READ_AHEAD_KIB.to_string(),
    ));
}
