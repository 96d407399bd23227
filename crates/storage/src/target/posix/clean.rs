//! Removes what killed runs left at a path, and nothing else.

use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};

use super::{
    super::TargetError,
    run_directory::{NEW_MARKER, PREFIX, RunDirectory, names, well_named},
};

/// What was found at a path.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Run directories that are gone.
    pub removed: Vec<PathBuf>,
    /// Directories with such a name that were left, and why.
    pub left: Vec<TargetError>,
}

/// Cleans below `path`, or `path` itself if it is a run directory.
pub fn clean(path: &Path) -> Result<Cleaned, TargetError> {
    let path = path.canonicalize().map_err(|source| TargetError::Io {
        path: path.into(),
        action: "find",
        source,
    })?;
    let itself = path.file_name().and_then(|name| name.to_str()).filter(|name| well_named(name));
    let mut cleaned = Cleaned::default();
    if let (Some(name), Some(parent)) = (itself, path.parent()) {
        clean_one(parent, name, &mut cleaned);
        return Ok(cleaned);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = fs::open(&path, flags, Mode::empty()).map_err(TargetError::io(&path, "open"))?;
    for (name, _) in names(&directory).map_err(TargetError::io(&path, "list"))? {
        if let Some(name) = name.to_str().ok().filter(|name| name.starts_with(PREFIX)) {
            clean_one(&path, name, &mut cleaned);
        }
    }
    Ok(cleaned)
}

fn clean_one(parent: &Path, name: &str, cleaned: &mut Cleaned) {
    let result = match RunDirectory::adopt(parent, name) {
        Ok(run) => run.remove(),
        Err(error @ TargetError::NotOurs { .. }) if well_named(name) => {
            remove_unborn(&parent.join(name)).map_err(|()| error)
        }
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => cleaned.removed.push(parent.join(name)),
        Err(error) => cleaned.left.push(error),
    }
}

/// A run that was killed before its marker was complete leaves an empty directory, or one with an unfinished marker.
fn remove_unborn(path: &Path) -> Result<(), ()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::open(path, flags, Mode::empty()).map_err(drop)?;
    let mine = fs::fstat(&directory).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    let entries = names(&directory).map_err(drop)?;
    if !mine || entries.iter().any(|(name, _)| name.to_bytes() != NEW_MARKER.as_bytes()) {
        return Err(());
    }
    for (name, _) in entries {
        fs::unlinkat(&directory, name, AtFlags::empty()).map_err(drop)?;
    }
    fs::rmdir(path).map_err(drop)
}
