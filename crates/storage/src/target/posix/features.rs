//! The features of a mount, tried in a run directory. Each attempt uses small files of its own, so that
//! leftovers of one neither help nor hurt another.

use std::os::fd::{BorrowedFd, OwnedFd};

use nilometer_model::{DirectIo, FeatureFinding, FileSystemKind, StorageFeature, published_features};
use rustix::{
    fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, XattrFlags},
    io::{Errno, retry_on_intr},
};

use super::cache;

/// Builds the table of a system, sorted by feature: findings tried here replace published ones.
pub(super) fn features(kind: FileSystemKind, tried: Vec<FeatureFinding>) -> Vec<FeatureFinding> {
    let is_tried =
        |published: &FeatureFinding| tried.iter().any(|finding| finding.feature == published.feature);
    let published = published_features(kind).into_iter().filter(|finding| !is_tried(finding));
    let mut table: Vec<FeatureFinding> = published.collect();
    table.extend(tried);
    table.sort_by_key(|finding| finding.feature);
    table
}

/// Why a feature can't be used.
enum NotOffered {
    /// The kernel refused it.
    Refused(Errno),
    /// The kernel accepted it but did something else.
    Different(String),
}

impl From<Errno> for NotOffered {
    fn from(errno: Errno) -> Self {
        NotOffered::Refused(errno)
    }
}

impl NotOffered {
    fn in_words(&self) -> String {
        match self {
            NotOffered::Refused(errno) => errno.to_string(),
            NotOffered::Different(what) => what.clone(),
        }
    }
}

/// Uses a feature once, in the root of a run directory.
type Attempt = fn(BorrowedFd<'_>) -> Result<(), NotOffered>;

/// Tries every feature that can be tried, in the root of a run directory.
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
        let outcome = attempt(root).map_err(|why| why.in_words());
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
    retry_on_intr(|| fs::openat(root, name, flags, Mode::RUSR | Mode::WUSR))
}

/// Succeeds if `is_so`; otherwise fails with a description of the finding.
fn expect(is_so: bool, found: impl FnOnce() -> String) -> Result<(), NotOffered> {
    if is_so { Ok(()) } else { Err(NotOffered::Different(found())) }
}

/// Renames a file onto another; the old name must be gone. The content identifies the file, because inodes
/// may change.
fn renames(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let from = made(root, "n_from", OFlags::empty())?;
    retry_on_intr(|| rustix::io::pwrite(&from, b"5", 0))?;
    made(root, "n_onto", OFlags::empty())?;
    fs::renameat(root, "n_from", root, "n_onto")?;
    let size = fs::statat(root, "n_onto", AtFlags::SYMLINK_NOFOLLOW)?.st_size;
    let before = fs::statat(root, "n_from", AtFlags::SYMLINK_NOFOLLOW);
    expect(size == 1, || "the other file is still there".into())?;
    expect(before.is_err_and(|errno| errno == Errno::NOENT), || "the old name is still there".into())
}

fn links(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    made(root, "n_one", OFlags::empty())?;
    fs::linkat(root, "n_one", root, "n_other", AtFlags::empty())?;
    let count = fs::statat(root, "n_other", AtFlags::SYMLINK_NOFOLLOW)?.st_nlink;
    expect(count == 2, || format!("taken, but the file says that it has {count} names"))
}

/// Tries the two kinds of lock on separate files: some systems release one late, and refuse the other until
/// then.
fn locks(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let range = made(root, "n_range", OFlags::empty())?;
    fs::fcntl_lock(&range, FlockOperation::NonBlockingLockExclusive)?;
    let whole = made(root, "n_lock", OFlags::empty())?;
    fs::flock(&whole, FlockOperation::NonBlockingLockExclusive)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let second = fs::openat(root, "n_lock", flags, Mode::empty())?;
    let twice = fs::flock(&second, FlockOperation::NonBlockingLockExclusive);
    expect(twice == Err(Errno::WOULDBLOCK), || "taken, but by two at once".into())
}

fn reserves(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let file = made(root, "n_space", OFlags::empty())?;
    Ok(retry_on_intr(|| fs::fallocate(&file, FallocateFlags::empty(), 0, 64 << 10))?)
}

fn maps(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let file = made(root, "n_map", OFlags::empty())?;
    retry_on_intr(|| rustix::io::pwrite(&file, &[0x5a; 4096], 0))?;
    cache::map_shared(&file).map_err(|error| NotOffered::Different(error.to_string()))
}

fn has_attributes(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let file = made(root, "n_attribute", OFlags::empty())?;
    fs::fsetxattr(&file, "user.nilometer", b"5", XattrFlags::empty())?;
    let mut value = [0; 8];
    let length = fs::fgetxattr(&file, "user.nilometer", &mut value)?;
    expect(&value[..length] == b"5", || "taken, but another value is read".into())
}

/// Appends from two writers that both believe they are at the beginning.
fn appends(root: BorrowedFd<'_>) -> Result<(), NotOffered> {
    let first = made(root, "n_append", OFlags::APPEND)?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let second = fs::openat(root, "n_append", flags, Mode::empty())?;
    retry_on_intr(|| rustix::io::write(&first, b"one"))?;
    retry_on_intr(|| rustix::io::write(&second, b"two"))?;
    let mut read = [0; 8];
    let length = retry_on_intr(|| rustix::io::pread(&first, &mut read, 0))?;
    expect(&read[..length] == b"onetwo", || "taken, but one of two writers is overwritten".into())
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
        // Every name is taken now, so no attempt can make its files.
        let refused = tried(root.as_fd(), &DirectIo::Buffered);
        assert!(refused.iter().all(|finding| finding.answer.starts_with("no: ")), "{refused:?}");
        let table = features(FileSystemKind::Ext4, found);
        assert!(table.is_sorted_by_key(|finding| finding.feature) && table.len() == 18, "{table:?}");
    }
}
