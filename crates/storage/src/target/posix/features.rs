//! What a mount can do, tried in a run directory: each with small files of its own, so that what one leaves does not help or
//! hurt another.

use std::os::fd::{BorrowedFd, OwnedFd};

use nilometer_model::{DirectIo, FeatureFinding, FileSystemKind, StorageFeature, published_features};
use rustix::{
    fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, XattrFlags},
    io::Errno,
};

use super::cache;

/// The table of a system: what is published of it, and behind it what was tried here.
pub(super) fn features(kind: FileSystemKind, tried: Vec<FeatureFinding>) -> Vec<FeatureFinding> {
    let is_tried =
        |published: &FeatureFinding| tried.iter().any(|finding| finding.feature == published.feature);
    let published = published_features(kind).into_iter().filter(|finding| !is_tried(finding));
    let mut table: Vec<FeatureFinding> = published.collect();
    table.extend(tried);
    table.sort_by_key(|finding| finding.feature);
    table
}

/// Uses a feature once, in the root of a run directory.
type Attempt = fn(BorrowedFd<'_>) -> Result<(), Errno>;

/// Tries what can be tried, in the root of a run directory.
pub(super) fn tried(root: BorrowedFd<'_>, direct: &DirectIo) -> Vec<FeatureFinding> {
    let attempts: [(StorageFeature, Attempt); 7] = [
        (StorageFeature::Rename, renames),
        (StorageFeature::HardLinks, links),
        (StorageFeature::Locks, locks),
        (StorageFeature::Preallocation, reserves),
        (StorageFeature::SharedMapping, maps),
        (StorageFeature::ExtendedAttributes, has_attributes),
        (StorageFeature::Append, appends),
    ];
    let mut findings = vec![past_the_cache(direct)];
    for (feature, attempt) in attempts {
        let outcome = attempt(root).map_err(|errno| errno.to_string());
        findings.push(FeatureFinding::measured(feature, outcome));
    }
    findings.sort_by_key(|finding| finding.feature);
    findings
}

fn past_the_cache(direct: &DirectIo) -> FeatureFinding {
    let tried = match direct {
        DirectIo::Real { .. } => Ok(()),
        other => Err(other.to_string()),
    };
    FeatureFinding::measured(StorageFeature::DirectIo, tried)
}

fn made(root: BorrowedFd<'_>, name: &str, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW | more;
    fs::openat(root, name, flags, Mode::RUSR | Mode::WUSR)
}

/// A file gets the name of another, which is gone then.
fn renames(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let first = made(root, "n_from", OFlags::empty())?;
    made(root, "n_onto", OFlags::empty())?;
    fs::renameat(root, "n_from", root, "n_onto")?;
    let there = fs::statat(root, "n_onto", AtFlags::SYMLINK_NOFOLLOW)?.st_ino;
    let before = fs::statat(root, "n_from", AtFlags::SYMLINK_NOFOLLOW);
    if before.is_err_and(|errno| errno == Errno::NOENT) && fs::fstat(&first)?.st_ino == there {
        Ok(())
    } else {
        Err(Errno::STALE)
    }
}

fn links(root: BorrowedFd<'_>) -> Result<(), Errno> {
    made(root, "n_one", OFlags::empty())?;
    fs::linkat(root, "n_one", root, "n_other", AtFlags::empty())?;
    let count = fs::statat(root, "n_other", AtFlags::SYMLINK_NOFOLLOW)?.st_nlink;
    if count == 2 { Ok(()) } else { Err(Errno::MLINK) }
}

/// The two kinds on files of their own: some systems release one late, and refuse the other until then.
fn locks(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let range = made(root, "n_range", OFlags::empty())?;
    fs::fcntl_lock(&range, FlockOperation::NonBlockingLockExclusive)?;
    let whole = made(root, "n_lock", OFlags::empty())?;
    fs::flock(&whole, FlockOperation::NonBlockingLockExclusive)
}

fn reserves(root: BorrowedFd<'_>) -> Result<(), Errno> {
    fs::fallocate(&made(root, "n_space", OFlags::empty())?, FallocateFlags::empty(), 0, 64 << 10)
}

fn maps(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let file = made(root, "n_map", OFlags::empty())?;
    rustix::io::pwrite(&file, &[0x5a; 4096], 0)?;
    cache::map_shared(&file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn has_attributes(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let file = made(root, "n_attribute", OFlags::empty())?;
    fs::fsetxattr(&file, "user.nilometer", b"5", XattrFlags::empty())?;
    let mut value = [0; 8];
    let length = fs::fgetxattr(&file, "user.nilometer", &mut value)?;
    if &value[..length] == b"5" { Ok(()) } else { Err(Errno::IO) }
}

/// Two writers that each believe to be at the beginning.
fn appends(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let first = made(root, "n_append", OFlags::APPEND)?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let second = fs::openat(root, "n_append", flags, Mode::empty())?;
    rustix::io::write(&first, b"one")?;
    rustix::io::write(&second, b"two")?;
    let mut read = [0; 8];
    let length = rustix::io::pread(&first, &mut read, 0)?;
    if &read[..length] == b"onetwo" { Ok(()) } else { Err(Errno::IO) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_local_file_system_can_all_of_it_and_what_can_not_says_why() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = std::fs::File::open(directory.path()).expect("it can be opened");
        let found = tried(root.as_fd(), &DirectIo::Real { alignment: 512 });
        assert_eq!(found.len(), 8);
        assert!(found.iter().all(|finding| finding.answer == "yes"), "{found:?}");
        // Every name is taken now: nothing can be made.
        let refused = tried(root.as_fd(), &DirectIo::Buffered);
        assert!(refused.iter().all(|finding| finding.answer.starts_with("no: ")), "{refused:?}");
        let table = features(FileSystemKind::Ext4, found);
        assert!(table.is_sorted_by_key(|finding| finding.feature) && table.len() == 16, "{table:?}");
    }
}
