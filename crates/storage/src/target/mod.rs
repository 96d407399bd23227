//! A storage system under test.

mod null;
mod posix;

pub use null::NullTarget;
pub use posix::{
    Cleaned, Directory, Holder, OURS, Posix, SharedRun, clean, describe_in_child, in_use, is_run_name, probe,
    run_name,
};
pub(crate) use posix::{Mount, block_device, mount_table};

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use nilometer_model::{Coldness, DeviceTraffic, FileSystemSpace, Seed, StripeLayout, TargetDescription};

use crate::engine::{Engine, EngineError, Options};

/// Describes a storage system, prepares it for a run, and makes the engines that can drive it.
pub trait Target: Send + Sync + std::fmt::Debug {
    /// Returns its kind and capabilities, found before the run.
    fn description(&self) -> &TargetDescription;

    /// Makes an engine for the calling thread, on the run's own directory.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError>;

    /// The target that copies to this one come from. Engines know its run directory as [`crate::SOURCE`].
    fn source(&self) -> Option<&Arc<dyn Target>> {
        None
    }

    /// The targets that one recording is striped over; empty for a single target.
    fn members(&self) -> &[Arc<dyn Target>] {
        &[]
    }

    /// The run's own directory, for callers that read its files by path; `None` if its files have no paths.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Lets other processes of the campaign work in the run, and returns the data they need to find it.
    /// `None` if they can't, or if the target keeps nothing that they would have to find.
    fn share(&self) -> Result<Option<SharedRun>, TargetError> {
        Ok(None)
    }

    /// Returns the free space now.
    fn space(&self) -> Result<FileSystemSpace, TargetError>;

    /// Drops the file of this name from the cache of this machine and reports whether it is gone. The answer
    /// is "not provable" if this machine has no such cache to query.
    fn chill(&self, name: &str) -> Result<Coldness, TargetError> {
        let _ = name;
        Ok(Coldness::NotProvable)
    }

    /// Writes everything out and lets this machine drop its cached data, names and inodes of all file
    /// systems. Returns true if it did. It needs root, and a target in memory has nothing to drop.
    fn drop_caches(&self) -> Result<bool, TargetError> {
        Ok(false)
    }

    /// The traffic of the device below since it was attached; `None` if there is no device here.
    fn traffic(&self) -> Option<DeviceTraffic> {
        None
    }

    /// Sets how new files are spread over storage devices; a value that is `None` stays as before the first
    /// call. Returns the layout read back, since systems silently give less than requested; `None` if the
    /// target has no choice.
    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        let _ = asked;
        Ok(None)
    }

    /// Removes everything that the run has made; the run's directory stays.
    fn clear(&self) -> Result<(), TargetError>;

    /// Does the same, except that the files of [`Target::source`] stay.
    fn clear_copies(&self) -> Result<(), TargetError> {
        self.clear()
    }

    /// Removes the run's directory.
    fn remove(&self) -> Result<(), TargetError>;
}

/// A new directory on a target, for files that stay: a recording belongs to the user. Nothing outside it is
/// touched.
pub trait KeptDirectory: Target {
    /// The directory's path, as a user names it.
    fn path(&self) -> &Path;

    /// Puts a new file into the directory for good: all of it or nothing, even after a loss of power. It
    /// never replaces an existing entry.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Does the same, and replaces a plain file of this name at once: readers find the old file or the new one.
    ///
    /// # Errors
    /// The storage refuses, or it has no file systems' names.
    fn replace(&self, name: &str, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("{name}: files here can't be replaced")))
    }

    /// Lets other processes hold the directory's lock too, as long as they record into it. Call it before they
    /// join.
    ///
    /// # Errors
    /// Another program holds the lock.
    fn share_lock(&self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Removes the directory and plain files of these names, which the caller made in it, if nothing else is
    /// there. A file that is gone already counts as removed: other processes may remove the same ones. Call it for
    /// a directory that turned out not to be needed.
    fn remove_unused(&self, names: &[String]) -> Result<(), TargetError>;
}

/// An id that differs for each run: names of run directories are never reused.
pub fn run_id() -> Seed {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Seed(since_epoch.as_nanos() as u64).part(u64::from(std::process::id()))
}

/// The target that the user probably meant by a path that does not exist. Empty if unknown.
fn meant(path: &Path) -> &'static str {
    let text = path.to_string_lossy();
    let is_export = text.split_once(":/").is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    match (is_export, text.contains(',')) {
        (true, _) => ": mount it and name the mounted directory, or write nfs://SERVER/EXPORT",
        (false, true) => ": name each directory by itself, without a comma",
        (false, false) => "",
    }
}

/// Why a target can't be used, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A system call on the target failed.
    #[error("{path}: can't {action}: {source}")]
    Io {
        /// The path concerned.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The path does not exist.
    #[error("{path}: can't find it{}", meant(.path))]
    Absent {
        /// The path as the user gave it.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The path is no directory.
    #[error("{path}: not a directory: name a directory on the storage to be evaluated")]
    NotADirectory {
        /// The path as the user gave it.
        path: PathBuf,
    },
    /// No proof here that Nilometer made it.
    #[error("{path}: not a run directory of nilometer ({why}): nothing was removed")]
    NotOurs {
        /// The path concerned.
        path: PathBuf,
        /// The check that failed.
        why: String,
    },
    /// Something in a run directory was not made by the run, or could not be removed.
    #[error("{path}: left where it is: {why}")]
    Kept {
        /// The entry that stays.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A running campaign uses it.
    #[error("{path}: in use by a running campaign{}: nothing was removed", numbered(*.process))]
    InUse {
        /// The path concerned.
        path: PathBuf,
        /// The process that measures there, if its marker names one.
        process: Option<u32>,
    },
    /// The target did not answer.
    #[error("{path}: no answer within {limit}: is the file system hung?")]
    Hung {
        /// The path concerned.
        path: PathBuf,
        /// The time waited.
        limit: nilometer_model::Nanos,
    },
    /// A client in this process can't reach the target, or can't do this to it.
    #[error("{place}: can't {action} it: {why}")]
    Client {
        /// The target as a URL.
        place: String,
        /// The attempted action.
        action: &'static str,
        /// The error of the client or the server.
        why: String,
    },
    /// This build has no client for the target.
    #[error("{place}: {why}")]
    NotBuilt {
        /// The target as a URL.
        place: String,
        /// The missing part, and the remedy.
        why: &'static str,
    },
    /// The child process failed to describe the target.
    #[error("{path}: {message}")]
    Probe {
        /// The path concerned.
        path: PathBuf,
        /// The child's message.
        message: String,
    },
}

/// Returns ` (process 1234)`, or an empty string if the process is unknown.
fn numbered(process: Option<u32>) -> String {
    process.map(|id| format!(" (process {id})")).unwrap_or_default()
}

impl TargetError {
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(rustix::io::Errno) -> Self {
        let path = path.into();
        move |errno| TargetError::Io { path, action, source: errno.into() }
    }
}
