//! Frees space behind the end of a file that a recorder reserved and could not give back because it was killed.
//! The space is empty, and nothing else frees it.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nilometer_storage::process::BootId;
use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat},
    io::Errno,
    process::geteuid,
};

use nilometer_recording::{
    journal::{Entry, RECORD, prefix},
    reader::journals_below,
    recording_file,
};

/// Less is not worth reporting: file systems reserve some space themselves.
const LEAST: u64 = 1 << 20;
/// Number of records at the start of a journal that are searched for the machine's boot identifier.
const FIRST_RECORDS: usize = 8;
/// File systems that only one machine writes at a time, by magic number (statfs(2)): ext2 to ext4, XFS, btrfs,
/// F2FS, tmpfs.
const OF_ONE_MACHINE: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// Frees the space reserved behind the ends of a recording's files in this directory, and returns each file with
/// its freed bytes. The recording stays as it is.
///
/// While a recorder still writes, nothing is freed: it holds a lock on its directory, which other processes on
/// this machine see. Recordings that another machine may still write are therefore left alone.
pub fn free_reserved(directory: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = fs::open(directory, flags, Mode::empty())?;
    let user = geteuid().as_raw();
    let journals = journals_below(&[directory.to_path_buf()]);
    // Processes of several machines may record into one directory, and locks show those of this one.
    let are_seen = journals.iter().all(|journal| is_of_this_machine(journal, &held));
    if fs::fstat(&held)?.st_uid != user || journals.is_empty() || !are_seen {
        return Ok(Vec::new());
    }
    if !is_let_go(&held)? {
        return Ok(Vec::new());
    }
    let stems: Vec<String> = journals.iter().filter_map(|journal| stem(journal)).collect();
    let mut names = Vec::new();
    recording_file::each_name(directory, |name, _| names.push(name.to_owned()))?;
    let own = |name: &String| {
        stems.iter().any(|stem| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('.')))
    };
    let mut freed = Vec::new();
    for name in names.iter().filter(|name| own(name)) {
        let bytes = free_behind(&held, name, user)?;
        freed.extend((bytes > 0).then(|| (directory.join(name), bytes)));
    }
    Ok(freed)
}

/// Tries and delay: a killed recorder releases its lock a moment later.
const TRIES: u32 = 40;
const STEP: Duration = Duration::from_millis(50);

/// Returns true if nobody records into this directory.
pub(crate) fn is_let_go(directory: &OwnedFd) -> io::Result<bool> {
    for _ in 0..TRIES {
        match fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => thread::sleep(STEP),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

/// The name of the recording, from the name of its journal.
fn stem(journal: &Path) -> Option<String> {
    let name = journal.file_name()?.to_str()?.strip_suffix(".journal")?;
    name.rsplit_once('.').map(|(stem, _)| stem.to_owned())
}

/// Returns true if a lock on this machine shows whether the recording is still being written.
pub(crate) fn is_of_this_machine(journal: &Path, directory: &OwnedFd) -> bool {
    let is_local =
        || fs::fstatfs(directory).is_ok_and(|found| OF_ONE_MACHINE.contains(&(found.f_type.cast_unsigned())));
    is_local() || boot(journal).is_some_and(|boot| BootId::now() == Some(boot))
}

/// The boot of the machine in which the recording began, from its journal.
fn boot(journal: &Path) -> Option<BootId> {
    let file = recording_file::open(journal).ok()?.file;
    let mut records = [0; FIRST_RECORDS * RECORD];
    let length = rustix::io::pread(&file, &mut records, 0).ok()?;
    prefix(&records[..length]).into_iter().find_map(|entry| match entry {
        Entry::Boot { id, .. } => Some(id),
        _ => None,
    })
}

/// Frees the space reserved behind the end of a file of this user, and returns the bytes freed.
fn free_behind(directory: &OwnedFd, name: &str, user: u32) -> io::Result<u64> {
    let is_own = |stat: &Stat| {
        FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_uid == user && stat.st_nlink == 1
    };
    let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_own(&stat) || behind(&stat) < LEAST {
        return Ok(0);
    }
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(directory, name, flags, Mode::empty())?;
    let before = fs::fstat(&file)?;
    if !is_own(&before) {
        return Ok(0);
    }
    // Truncate to the current size: file systems then free the space behind it.
    fs::ftruncate(&file, before.st_size.cast_unsigned())?;
    Ok(behind(&before).saturating_sub(behind(&fs::fstat(&file)?)))
}

/// Bytes of storage behind the end of a file.
fn behind(stat: &Stat) -> u64 {
    (stat.st_blocks.cast_unsigned() * 512).saturating_sub(stat.st_size.cast_unsigned().next_multiple_of(4096))
}
