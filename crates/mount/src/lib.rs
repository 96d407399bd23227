//! Shows recordings as plain files: each is one read-only file with its true size, wherever its blocks lie.
//! It also shows recordings in progress.
//!
//! ```text
//! directories -> Catalogue (what is recorded there) -> Files (what the kernel asks) -> Handles -> whoever reads
//! ```
//!
//! It speaks the kernel's FUSE protocol without the C library libfuse. Root mounts directly; other users need
//! the program `fusermount3` of the Debian package `fuse3`.

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
use nilometer_recording::{
    reader::OpenError,
    view::{LimitError, Limits},
};

use catalogue::{Catalogue, Forget};
use files::{Files, inode};

/// Why recordings can't be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The recordings can't be opened.
    #[error(transparent)]
    Recordings(#[from] OpenError),
    /// A recording does not have the part.
    #[error(transparent)]
    Part(#[from] LimitError),
    /// There are no recordings.
    #[error(
        "no recording in {0} or in the directories there: name directories of recordings, or those above them"
    )]
    Nothing(String),
    /// The directory is not suitable.
    #[error("{path}: {why}: name an empty directory to mount on")]
    Place {
        /// The directory as the user named it.
        path: PathBuf,
        /// The fault of the directory.
        why: String,
    },
    /// The kernel refused, or the user has no permission.
    #[error(
        "can't mount on {path}: {why}; it takes /dev/fuse, and root or the program fusermount3 (package fuse3)"
    )]
    Mount {
        /// The directory.
        path: PathBuf,
        /// The error of the kernel or the program.
        why: String,
    },
}

/// The users who may read the mounted files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountReaders {
    /// Only the user who mounts; not even root.
    Owner,
    /// All users. Root may request it, and others if `/etc/fuse.conf` has `user_allow_other`.
    All,
}

/// A mount. It is unmounted on drop.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    session: Option<BackgroundSession>,
    catalogue: Arc<Catalogue>,
    stop: Arc<AtomicBool>,
}

/// Number of threads that answer the kernel. None of them waits for a disk.
const THREADS: usize = 4;
/// Interval between looks for growth of recordings.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time to wait for the end of a mount: open files may keep it alive after it is unmounted.
const PATIENCE: Duration = Duration::from_secs(2);

impl Mounted {
    /// Mounts all recordings in these directories and their subdirectories on an empty directory, and shows of
    /// each the part between the limits.
    pub fn new(
        directories: &[PathBuf],
        limits: Limits,
        at: &Path,
        readers: MountReaders,
    ) -> Result<Self, MountError> {
        check(at)?;
        let catalogue = Arc::new(Catalogue::new(directories, limits, readers)?);
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

    /// Looks for news until it is unmounted. It does not wait for a disk that hangs.
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

    /// Returns true if another program unmounted it.
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// Read faults that were not reported before: unreadable journals, and the first fault of each recording.
    pub fn news_of_faults(&self) -> Vec<String> {
        self.catalogue.news_of_faults()
    }

    fn undo(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(session) = self.session.take() else { return Ok(()) };
        if session.guard.is_finished() {
            // Another program unmounted it: there is nothing left to do.
            return session.join();
        }
        let (told, ended) = mpsc::sync_channel(1);
        thread::Builder::new().name("end".into()).spawn(move || told.send(session.umount_and_join()))?;
        let Ok(Err(error)) = ended.recv_timeout(PATIENCE) else { return Ok(()) };
        // Files in it are still open. It leaves the tree now, and ends when they are closed.
        rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH).map_err(|_| error)
    }

    /// Unmounts.
    pub fn unmount(mut self) -> io::Result<()> {
        self.undo()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // To learn about errors, call `unmount`.
        drop(self.undo());
    }
}

fn look_until(stop: &AtomicBool, catalogue: &Arc<Catalogue>, forget: &Forget) {
    while !stop.load(Ordering::Relaxed) {
        catalogue.look(forget);
        thread::sleep(LOOK);
    }
}

/// Makes the kernel drop cached parts of a file that no longer match its content.
fn forget(notifier: Notifier) -> Forget {
    Arc::new(move |number, range| {
        let begin = range.start.cast_signed();
        let length = (range.end - range.start).cast_signed();
        // The kernel caches nothing of a file that is not open.
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

/// Refuses a directory that is not empty or can't be a mount point.
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

/// Increases the kernel's read-ahead, usually 128 KiB. Only root may do so; others read a little slower.
fn read_further_ahead(at: &Path) {
    let Ok(status) = rustix::fs::stat(at) else { return };
    let major = rustix::fs::major(status.st_dev);
    let minor = rustix::fs::minor(status.st_dev);
    drop(fs::write(
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        files::READ_AHEAD_KIB.to_string(),
    ));
}
