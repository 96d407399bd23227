//! The free space below directories for recordings. The calls may hang with the storage: only threads that nobody
//! waits for make them.

use std::{collections::BTreeSet, io, os::unix::fs::MetadataExt, path::PathBuf};

use nilometer_model::{Bytes, Nanos};

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
