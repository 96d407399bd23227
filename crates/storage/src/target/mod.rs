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

/// Says what it is, prepares for a run, and makes the engines that can drive it.
pub trait Target: Send + Sync + std::fmt::Debug {
    /// What it is and what it can do, found before the run.
    fn description(&self) -> &TargetDescription;

    /// An engine for the calling thread, on the run's own directory.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError>;

    /// Where copies to this target come from: its engines know the run's directory there as [`crate::SOURCE`].
    fn source(&self) -> Option<&Arc<dyn Target>> {
        None
    }

    /// Of several targets that a recording lies on at once each; none of a single one.
    fn members(&self) -> &[Arc<dyn Target>] {
        &[]
    }

    /// The run's own directory, for who reads its files by their paths; none where they have none.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Lets other processes of the campaign work in the run: what they must be told to find it. None where they can't, or where
    /// nothing is kept that they would have to find.
    fn share(&self) -> Result<Option<SharedRun>, TargetError> {
        Ok(None)
    }

    /// Free space, now.
    fn space(&self) -> Result<FileSystemSpace, TargetError>;

    /// Drops the file of this name from the cache of this machine, and says whether it is gone: not provable where there
    /// is no such cache to be asked.
    fn chill(&self, name: &str) -> Result<Coldness, TargetError> {
        let _ = name;
        Ok(Coldness::NotProvable)
    }

    /// Writes everything out and lets this machine drop what it keeps of all its file systems: data, names and inodes. Whether
    /// it did: it takes root, and there is nothing to be dropped of what lies in memory.
    fn drop_caches(&self) -> Result<bool, TargetError> {
        Ok(false)
    }

    /// What came to the device below since it was attached; none if there is no device here.
    fn traffic(&self) -> Option<DeviceTraffic> {
        None
    }

    /// Spreads the files that are made from now on over storage devices so, what is none as before the first call. How it
    /// will be, as read back, since systems give less than asked without saying so; none where the target has no choice.
    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        let _ = asked;
        Ok(None)
    }

    /// Removes all that the run has made so far; the run's directory stays.
    fn clear(&self) -> Result<(), TargetError>;

    /// Removes the run's directory.
    fn remove(&self) -> Result<(), TargetError>;
}

/// A new directory on a target, for files that stay: what a recording writes is the user's. Nothing outside it is touched.
pub trait KeptDirectory: Target {
    /// Where it is, as a user names it.
    fn path(&self) -> &Path;

    /// Puts a new file into the directory, for good: all of it or nothing, also after a loss of power. It takes the place of
    /// nothing that is there.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes the directory with plain files of these names, which the caller has made in it, if there is nothing else: for
    /// one that was made and then not needed.
    fn remove_unused(&self, names: &[String]) -> Result<(), TargetError>;
}

/// Different for each run: names of run directories are never used twice.
pub fn run_id() -> Seed {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Seed(since_epoch.as_nanos() as u64).part(u64::from(std::process::id()))
}

/// A target that can't be used, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A system call on the target failed.
    #[error("{path}: can't {action}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The path is no directory.
    #[error("{path}: not a directory: name a directory on the storage to be evaluated")]
    NotADirectory {
        /// As the user named it.
        path: PathBuf,
    },
    /// Nothing here says that Nilometer made it.
    #[error("{path}: not a run directory of nilometer ({why}): nothing was removed")]
    NotOurs {
        /// Where.
        path: PathBuf,
        /// Which check failed.
        why: String,
    },
    /// Something in a run directory was not made by the run, or could not be removed.
    #[error("{path}: left where it is: {why}")]
    Kept {
        /// What stays.
        path: PathBuf,
        /// Why it does.
        why: String,
    },
    /// A running campaign holds it.
    #[error("{path}: in use by a running campaign{}: nothing was removed", numbered(*.process))]
    InUse {
        /// Where.
        path: PathBuf,
        /// The process that measures there, as far as its marker says.
        process: Option<u32>,
    },
    /// It did not answer.
    #[error("{path}: no answer within {limit}: is the file system hung?")]
    Hung {
        /// Where.
        path: PathBuf,
        /// How long was waited.
        limit: nilometer_model::Nanos,
    },
    /// A client in this process can't reach it, or not do this.
    #[error("{place}: can't {action} it: {why}")]
    Client {
        /// Where, as a URL.
        place: String,
        /// What was tried.
        action: &'static str,
        /// What the client or the server said.
        why: String,
    },
    /// This program has no client for it.
    #[error("{place}: {why}")]
    NotBuilt {
        /// Where, as a URL.
        place: String,
        /// What is missing, and what to do.
        why: &'static str,
    },
    /// Describing it failed in the child process.
    #[error("{path}: {message}")]
    Probe {
        /// Where.
        path: PathBuf,
        /// What the child said.
        message: String,
    },
}

/// ` (process 1234)`, if it is known.
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
