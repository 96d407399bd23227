//! The marker of a run's directory. It proves that a run made the directory, and its lock that the run lives.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags},
    io::{Errno, retry_on_intr},
};

use super::{
    super::joined::{self, open_marker},
    DIRECTORY, well_named,
};

pub(super) const MARKER: &str = ".nilometer-run";
/// The marker before it is complete.
pub(in super::super) const NEW_MARKER: &str = ".nilometer-run.new";

/// Opens the new directory and marks it; on failure it removes a partial marker.
pub(super) fn open_marked(parent: &OwnedFd, name: &str) -> Result<(OwnedFd, OwnedFd), Errno> {
    let root = retry_on_intr(|| fs::openat(parent, name, DIRECTORY, Mode::empty()))?;
    let marker = write_marker(&root).inspect_err(|_| {
        for name in [NEW_MARKER, MARKER] {
            fs::unlinkat(&root, name, AtFlags::empty()).ok();
        }
    })?;
    Ok((root, marker))
}

/// Writes the marker under another name and then renames it: a marker is whole or absent.
fn write_marker(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let marker = retry_on_intr(|| fs::openat(root, NEW_MARKER, flags, Mode::RUSR | Mode::WUSR))?;
    fs::flock(&marker, FlockOperation::NonBlockingLockExclusive)?;
    let [identity, _] = marker_texts(root)?;
    let text = format!("{identity}{PROCESS}{}\n", std::process::id());
    if retry_on_intr(|| rustix::io::write(&marker, text.as_bytes()))? != text.len() {
        return Err(Errno::NOSPC);
    }
    // Without this, a directory that survives a crash of the machine may hold an empty marker, which proves
    // nothing.
    retry_on_intr(|| fs::fsync(&marker))?;
    fs::renameat(root, NEW_MARKER, root, MARKER)?;
    Ok(marker)
}

/// Returns the two texts that a marker in this directory may have. The first names inode and birth, which no
/// copy shares and no new mount changes, if the birth is available. The second names inode and device.
fn marker_texts(directory: &OwnedFd) -> Result<[String; 2], Errno> {
    let stat = fs::fstat(directory)?;
    let device = marker_text(stat.st_ino, &format!("of device {}", stat.st_dev));
    let born = birth(directory).map(|birth| marker_text(stat.st_ino, &birth));
    Ok([born.unwrap_or_else(|| device.clone()), device])
}

fn marker_text(inode: u64, which: &str) -> String {
    format!("A run of nilometer made this directory. `nilometer clean` removes it.\ninode {inode} {which}\n")
}

/// Returns the directory's creation time, if the file system stores it.
fn birth(directory: &OwnedFd) -> Option<String> {
    let stat = fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then(|| format!("born {}.{:09}", stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

/// Checks that the directory is ours; the error gives the reason if it is not.
pub(super) fn verify(root: &OwnedFd, marker: &OwnedFd, name: &str) -> Result<(), String> {
    if !well_named(name) {
        return Err(NOT_WELL_NAMED.into());
    }
    verify_plain(root, marker)?;
    let content = content(marker).map_err(text)?;
    let valid = marker_texts(root).map_err(text)?;
    if !valid.iter().any(|valid| content.strip_prefix(valid.as_str()).is_some_and(is_process_or_nothing)) {
        return Err("the marker was made for another directory".into());
    }
    Ok(())
}

pub(super) const NOT_WELL_NAMED: &str = "the name is not nilometer- and 16 hexadecimal digits";

/// Checks that directory and marker are plain and belong to this user; the error gives the reason if not.
pub(super) fn verify_plain(root: &OwnedFd, marker: &OwnedFd) -> Result<(), String> {
    let directory = fs::fstat(root).map_err(text)?;
    let file = fs::fstat(marker).map_err(text)?;
    let user = rustix::process::geteuid().as_raw();
    if directory.st_uid != user || file.st_uid != user {
        return Err("it belongs to another user".into());
    }
    if !FileType::from_raw_mode(file.st_mode).is_file()
        || file.st_dev != directory.st_dev
        || file.st_nlink != 1
    {
        return Err("the marker is not a plain file of its own".into());
    }
    Ok(())
}

/// Returns true if a marker's text names the inode of this directory. It checks only the inode:
/// another node may see another device, so the caller compares the whole text with the maker's.
pub(super) fn names_inode(marker: &str, root: &OwnedFd) -> bool {
    fs::fstat(root).is_ok_and(|stat| marker.starts_with(marker_text(stat.st_ino, "").trim_end_matches('\n')))
}

/// Returns true if an unfinished marker is the beginning of a marker of this directory.
pub(in super::super) fn is_unfinished(directory: &OwnedFd, marker: &OwnedFd) -> bool {
    let (Ok(content), Ok(texts)) = (content(marker), marker_texts(directory)) else { return false };
    let is_whole = |text: &String| {
        content.strip_prefix(text.as_str()).is_some_and(|rest| PROCESS_LINE_MAX >= rest.len())
    };
    texts.iter().any(|text| text.starts_with(&content) || is_whole(text))
}

/// The longest length of `process ` and a number.
const PROCESS_LINE_MAX: usize = 32;

/// Reads a marker. A marker that is no text, or longer than any of ours, is not ours.
pub(super) fn content(marker: &OwnedFd) -> Result<String, Errno> {
    let mut content = [0; 256];
    let count = rustix::io::pread(marker, &mut content, 0)?;
    Ok(String::from_utf8_lossy(&content[..count]).into_owned())
}

/// The start of a marker's last line. Markers of older versions end before it.
pub(super) const PROCESS: &str = "process ";

fn is_process_or_nothing(rest: &str) -> bool {
    let line = rest.strip_prefix(PROCESS).and_then(|rest| rest.strip_suffix('\n'));
    rest.is_empty() || line.is_some_and(|id| id.parse::<u32>().is_ok())
}

/// Returns the process that made a marker, if the marker names it.
pub(in super::super) fn process(marker: &OwnedFd) -> Option<u32> {
    content(marker).ok()?.lines().find_map(|line| line.strip_prefix(PROCESS)?.parse().ok())
}

/// Returns the marker of a directory that a running campaign holds; `None` if none does.
pub(in super::super) fn held_marker(parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let root = fs::openat(parent, name, DIRECTORY, Mode::empty()).ok()?;
    let marker = open_marker(&root, MARKER).ok()?;
    let locked = fs::flock(&marker, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    (locked || joined::claim(&root).is_err()).then_some(marker)
}

fn text(errno: Errno) -> String {
    errno.to_string()
}
