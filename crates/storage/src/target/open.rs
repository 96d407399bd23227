//! The one place where a target is made of its address: described, opened for a run, found again and cleaned after a kill.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use nilometer_model::{RunHandle, Seed, TargetAddress, TargetDescription};

use crate::PATIENCE;

use super::{
    NullTarget, Target, TargetError,
    posix::{self, Cleaned, Posix, SharedRun},
};

/// What is at an address and what it can do. A hung file system never answers: a campaign asks [`describe_in_child`].
pub fn describe(address: &TargetAddress) -> Result<TargetDescription, TargetError> {
    match address {
        TargetAddress::Directory(path) => posix::probe(path),
        TargetAddress::Null => Ok(NullTarget::new().description().clone()),
    }
}

/// The file that this process runs, also when another one has its name by now.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// [`describe`] in a child process that is given up after [`PATIENCE`], because a hung file system never answers. The child
/// runs the program of this process, which has to answer `describe --exchange -- ADDRESS` as `nilometer` does.
pub fn describe_in_child(address: &TargetAddress) -> Result<TargetDescription, TargetError> {
    match address {
        TargetAddress::Directory(path) => posix::probe_in_child(Path::new(THIS_PROGRAM), path, PATIENCE),
        TargetAddress::Null => describe(address),
    }
}

/// Where the copies of a run come from: what is there, and the number of the run on it.
#[derive(Debug, Clone)]
pub struct CopySource {
    /// The storage that is read.
    pub description: TargetDescription,
    /// What tells the run from others there.
    pub run: u64,
}

/// Makes what a run needs on the described target: `run` tells it from other runs.
pub fn open(
    description: &TargetDescription,
    run: u64,
    origin: Option<CopySource>,
) -> Result<Arc<dyn Target>, TargetError> {
    match description.address {
        TargetAddress::Directory(_) => {
            let target = Posix::create(description.clone(), run)?;
            let Some(CopySource { description, run }) = origin else { return Ok(Arc::new(target)) };
            Ok(Arc::new(target.with_source(Posix::create(description, run)?)?))
        }
        // Nothing that copies is run there: what it reads would be kept nowhere.
        TargetAddress::Null => Ok(Arc::new(NullTarget::new())),
    }
}

/// Joins what another process of the campaign made on a target that this one has described: see [`Target::share`].
pub fn join(description: TargetDescription, run: Option<&SharedRun>) -> Result<Arc<dyn Target>, TargetError> {
    Ok(match run {
        Some(run) => Arc::new(Posix::join(description, run)?),
        None => Arc::new(NullTarget::new()),
    })
}

/// Different for each run: names of run directories are never used twice.
pub fn run_id() -> Seed {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Seed(since_epoch.as_nanos() as u64).part(u64::from(std::process::id()))
}

/// What [`open`] makes there and a later campaign would have to clean; none if it makes nothing.
pub fn run_handle(description: &TargetDescription, run: u64) -> Option<RunHandle> {
    description.directory().map(|path| RunHandle(Posix::run_directory(path, run).display().to_string()))
}

/// Whether a run of this handle was on the described target.
pub fn is_run_at(handle: &RunHandle, description: &TargetDescription) -> bool {
    description.directory().is_some_and(|path| Path::new(&handle.0).parent() == Some(path))
}

/// Removes what a killed run left; none if nothing is there. Of the caller's own it is all or nothing: see [`Cleaned`].
pub fn clean_run(handle: &RunHandle) -> Result<Option<Cleaned>, TargetError> {
    let path = PathBuf::from(&handle.0);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    posix::clean(&path).map(Some)
}
