//! Locks directories while their files are repaired, in the same way as recorders lock the directories that they
//! write into.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nilometer_recording::reader::Recording;
use rustix::{
    fs::{self, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
    process::geteuid,
};

use super::{RepairError, RepairOptions};
use crate::reserved::{is_let_go, is_of_this_machine};

/// The locked directories of a recording, by lane.
#[derive(Debug)]
pub(super) struct HeldDirectories(Vec<(PathBuf, OwnedFd)>);

impl HeldDirectories {
    /// Locks the directories of all lanes. Fails if somebody records into one, or repairs it.
    pub(super) fn hold(recording: &Recording, options: RepairOptions) -> Result<Self, RepairError> {
        let mut held: Vec<(PathBuf, OwnedFd)> = Vec::new();
        // Lanes of one dataset may belong to several machines, of which one may still write.
        let is_over = if recording.head().is_one_dataset() {
            recording.index.ended >= recording.index.heads.len()
        } else {
            recording.is_over()
        };
        let is_known_down = is_over || options.recorder_is_down;
        for lane in 0..recording.index.heads.len() {
            let path = recording.directory(lane);
            let failed = |source: io::Error| RepairError::Directory { path: path.to_owned(), source };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = fs::open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
            if !is_known_down && !is_of_this_machine(&recording.journal(lane), &directory) {
                return Err(RepairError::Elsewhere { path: path.to_owned() });
            }
            if held.iter().any(|(other, _)| other == path) {
                continue;
            }
            if !is_let_go(&directory).map_err(failed)? {
                return Err(RepairError::Recorded { path: path.to_owned() });
            }
            held.push((path.to_owned(), directory));
        }
        Ok(HeldDirectories(held))
    }

    /// Locks one directory with a journal that does not say where it was written.
    pub(super) fn hold_one(path: &Path, journal: &Path, options: RepairOptions) -> Result<Self, RepairError> {
        let failed = |source: io::Error| RepairError::Directory { path: path.to_owned(), source };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = fs::open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        if !options.recorder_is_down && !is_of_this_machine(journal, &directory) {
            return Err(RepairError::Elsewhere { path: path.to_owned() });
        }
        if !is_let_go(&directory).map_err(failed)? {
            return Err(RepairError::Recorded { path: path.to_owned() });
        }
        Ok(HeldDirectories(vec![(path.to_owned(), directory)]))
    }

    /// All locked directories.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Path, &OwnedFd)> {
        self.0.iter().map(|(path, directory)| (path.as_path(), directory))
    }

    /// The locked directory that contains a file.
    pub(super) fn directory(&self, path: &Path) -> io::Result<&OwnedFd> {
        let held = self.0.iter().find(|(other, _)| Some(other.as_path()) == path.parent());
        held.map(|(_, directory)| directory).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens a file in a locked directory for reading, and writing if asked. It must be a plain file of this
    /// user, without other names.
    pub(super) fn open(&self, path: &Path, access: OFlags) -> io::Result<File> {
        open_own(self.directory(path)?, path, access)
    }
}

/// Returns true if somebody records or repairs this recording, as far as a lock shows it.
pub fn is_held(recording: &Recording) -> bool {
    let lanes = 0..recording.index.heads.len();
    let directories: BTreeSet<&Path> = lanes.map(|lane| recording.directory(lane)).collect();
    directories.into_iter().any(is_locked)
}

/// Returns true if somebody holds the lock of a directory, alone or together with others.
fn is_locked(directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = fs::open(directory, flags, Mode::empty()) else { return false };
    // Another program that looks holds the lock for a moment.
    (0..LOOKS).all(|_| is_locked_now(&directory))
}

/// Looks at a lock once, and waits for the next look if somebody holds it.
fn is_locked_now(directory: &OwnedFd) -> bool {
    let is_held = fs::flock(directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    if is_held {
        thread::sleep(LOOK_EVERY);
    }
    is_held
}

/// Looks at a lock, and the delay after each.
const LOOKS: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Opens a file of this user for reading. Files of other users are not given to the library.
pub(crate) fn opened_own(path: &Path) -> io::Result<File> {
    opened_own_for(path, OFlags::RDONLY)
}

/// Opens a file of this user with this access.
pub(super) fn opened_own_for(path: &Path, access: OFlags) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::open(directory, flags, Mode::empty())?;
    open_own(&directory, path, access)
}

/// The same in any directory.
pub(super) fn open_own(directory: &OwnedFd, path: &Path, access: OFlags) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(directory, name, flags, Mode::empty())?;
    let stat = fs::fstat(&file)?;
    let user = stat.st_uid;
    let why = match (FileType::from_raw_mode(stat.st_mode).is_file(), stat.st_nlink) {
        (true, 1) if user == geteuid().as_raw() => return Ok(file.into()),
        (true, 1) => format!("it belongs to user {user}: repair it as that user"),
        (true, names) => format!("it has {names} names (hard links), and would change under all of them"),
        (false, _) => "it is not a regular file".into(),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// A path by which the library opens exactly this open file.
pub(crate) fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_shows_whether_one_process_holds_it_or_several() {
        let home = tempfile::tempdir().expect("a temporary directory");
        assert!(!is_locked(home.path()));
        let held = |operation| {
            let directory = File::open(home.path()).expect("it is there");
            fs::flock(&directory, operation).expect("it is free");
            directory
        };
        let alone = held(FlockOperation::NonBlockingLockExclusive);
        assert!(is_locked(home.path()));
        drop(alone);
        let both = [held(FlockOperation::NonBlockingLockShared), held(FlockOperation::NonBlockingLockShared)];
        for one in both {
            assert!(is_locked(home.path()), "the other one holds it on");
            drop(one);
        }
        assert!(!is_locked(home.path()));
    }
}
