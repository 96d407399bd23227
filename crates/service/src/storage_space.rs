//! The free space below directories for recordings, and the permission to write there. The calls may hang with the
//! storage: only threads that nobody waits for make them.

use std::{
    collections::BTreeSet,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nilometer_model::{Bytes, Nanos, TargetUrl};
use rustix::fs::{Access, AtFlags, CWD};

/// The longest that storage may take to answer. The Field System gives up after that.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(1500);

/// The space of all file systems that hold one of the directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FreeSpace {
    /// The size in total.
    pub(crate) size: Bytes,
    /// Free for this user.
    pub(crate) free: Bytes,
    /// The free bytes that recordings may use. The rest is the reserve, which stays free on each file system.
    pub(crate) recordable: Bytes,
}

/// The space of directories. A file system that holds several of them counts once.
pub(crate) fn space_of(directories: &[PathBuf], reserve: Bytes) -> io::Result<FreeSpace> {
    let mut space = FreeSpace::default();
    let mut seen = BTreeSet::new();
    for directory in directories {
        if !seen.insert(directory.metadata()?.dev()) {
            continue;
        }
        let stat = rustix::fs::statvfs(directory)?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        space.size.0 += stat.f_blocks.saturating_mul(stat.f_frsize);
        space.free.0 += free;
        space.recordable.0 += free.saturating_sub(reserve.0);
    }
    Ok(space)
}

/// The first of the mounted directories in which this user can't make files, with the cause. `None` if it can in
/// all of them. Servers of URLs answer when a recording is made ready.
pub(crate) fn why_unwritable(directories: &[PathBuf]) -> Option<String> {
    let is_mounted = |path: &&PathBuf| !path.to_str().is_some_and(TargetUrl::is_one);
    directories.iter().filter(is_mounted).find_map(|path| {
        let cause = refusal(path).err()?;
        Some(format!(
            "{}: can't write there: {cause}: name a directory that this user may write to",
            path.display()
        ))
    })
}

fn refusal(directory: &Path) -> io::Result<()> {
    if !directory.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    Ok(rustix::fs::accessat(CWD, directory, wanted, AtFlags::EACCESS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_takes_no_files_is_named_with_the_cause() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("space");
        let good = [place.path().to_owned(), "s3://bucket/data".into()];
        assert_eq!(why_unwritable(&good), None);
        for (wrong, cause) in [(file, "not a directory"), (place.path().join("absent"), "No such file")] {
            let why = why_unwritable(&[place.path().to_owned(), wrong.clone()]).expect("it takes none");
            assert!(why.starts_with(&wrong.display().to_string()) && why.contains(cause), "{why}");
        }
    }
}
