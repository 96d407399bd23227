//! Removes the directories that killed runs left at a path, and nothing else.

use std::path::{Path, PathBuf};

use rustix::{
    fs::{self, AtFlags, FlockOperation, Mode, OFlags},
    io::Errno,
};

use super::{
    super::TargetError,
    joined::open_marker,
    run_directory::{
        RunDirectory,
        clearing::names,
        marker::{NEW_MARKER, held_marker, is_unfinished, process},
        well_named,
    },
};

/// The result of a clean.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Run directories that were removed.
    pub removed: Vec<PathBuf>,
    /// Directories with the name of a run directory that stay, and why.
    pub left: Vec<TargetError>,
}

/// Cleans below `path`, or `path` itself if it is a run directory.
pub fn clean(path: &Path) -> Result<Cleaned, TargetError> {
    // Drop `.` components and a slash at the end, behind which a symlink would be followed.
    let path: PathBuf = path.components().collect();
    path.symlink_metadata().map_err(cannot_find(&path))?;
    let mut cleaned = Cleaned::default();
    // A well-formed name is used as it is: a symlink of such a name is not followed.
    let real = match run_name(&path) {
        Some(name) => canonical(path.parent().unwrap_or(Path::new("")))?.join(name),
        None => canonical(&path)?,
    };
    match (run_name(&real), real.parent()) {
        (Some(name), Some(parent)) => clean_one(parent, name, &mut cleaned),
        _ => clean_below(&real, &mut cleaned)?,
    }
    Ok(cleaned)
}

fn run_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str().filter(|name| well_named(name))
}

/// Returns the path without symlinks; an empty path is the working directory.
fn canonical(path: &Path) -> Result<PathBuf, TargetError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().map_err(cannot_find(path))
}

fn cannot_find(path: &Path) -> impl FnOnce(std::io::Error) -> TargetError {
    move |source| TargetError::Io { path: path.into(), action: "find", source }
}

fn clean_below(path: &Path, cleaned: &mut Cleaned) -> Result<(), TargetError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = fs::open(path, flags, Mode::empty()).map_err(TargetError::io(path, "open"))?;
    for (name, _) in names(&directory).map_err(TargetError::io(path, "list"))? {
        if let Some(name) = name.to_str().ok().filter(|name| well_named(name)) {
            clean_one(path, name, cleaned);
        }
    }
    Ok(())
}

/// A running campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its directory.
    pub directory: PathBuf,
    /// Its process, if the directory's marker names one.
    pub process: Option<u32>,
}

/// Returns the campaign that runs at `path`: the first that holds a run directory there. Directories of other
/// users can't be inspected.
pub fn in_use(path: &Path) -> Result<Option<Holder>, TargetError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = fs::open(path, flags, Mode::empty()).map_err(TargetError::io(path, "open"))?;
    let entries = names(&directory).map_err(TargetError::io(path, "list"))?;
    let runs = entries.iter().filter_map(|(name, _)| name.to_str().ok().filter(|name| well_named(name)));
    let held = |name: &str| {
        let marker = held_marker(&directory, name)?;
        Some(Holder { directory: path.join(name), process: process(&marker) })
    };
    Ok(runs.into_iter().find_map(held))
}

fn clean_one(parent: &Path, name: &str, cleaned: &mut Cleaned) {
    let result = match RunDirectory::adopt(parent, name) {
        Ok(run) => run.remove(),
        Err(error @ TargetError::NotOurs { .. }) if well_named(name) => {
            remove_unborn(&parent.join(name)).unwrap_or(Err(error))
        }
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => cleaned.removed.push(parent.join(name)),
        Err(error) => cleaned.left.push(error),
    }
}

/// Removes the directory of a run that was killed before its marker was complete: it is empty, or has an
/// unfinished marker. `None` if this is no such directory.
fn remove_unborn(path: &Path) -> Option<Result<(), TargetError>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::open(path, flags, Mode::empty()).ok()?;
    let mine = fs::fstat(&directory).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    let entries = names(&directory).ok()?;
    if !mine || entries.iter().any(|(name, _)| name.to_bytes() != NEW_MARKER.as_bytes()) {
        return None;
    }
    if !entries.is_empty() {
        let marker = open_marker(&directory, NEW_MARKER).ok()?;
        if fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Some(Err(TargetError::InUse { path: path.into(), process: None }));
        }
        if !is_unfinished(&directory, &marker) {
            return None;
        }
        fs::unlinkat(&directory, NEW_MARKER, AtFlags::empty()).ok()?;
    }
    fs::rmdir(path).ok().map(Ok)
}
