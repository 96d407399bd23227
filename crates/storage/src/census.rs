//! Counts the entries of a directory tree. It reads names only to open them, follows no symbolic link,
//! and enters no other file system. Only if the caller allows it, it opens files that may be on tape, to look for
//! holes. Its memory is bounded by the depth of the tree, not by its entries.

use std::{
    ffi::CStr,
    io,
    os::fd::AsFd,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use nilometer_model::{CENSUS_DEPTH_MAX, Census, CountedDirectory, CountedEntry, CountedKind, is_hollow};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, SeekFrom, Stat, fstat, openat, seek, statat};

/// The way to tell files on tape from files with holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleLook {
    /// Open no file: a file without blocks may be either.
    Never,
    /// Open each file without blocks, and ask the file system for its first hole. Some file systems bring a file
    /// back from tape when a program asks that.
    Opened,
}

/// Counts a tree, until all is counted or `stop` is true. Ages are from `now`, in seconds since 1970. The path of
/// the first directory may be a symbolic link; Nilometer follows no other.
///
/// # Errors
/// If the first directory can't be opened. The census counts other entries that it can't read.
pub fn census(root: &Path, now: i64, holes: HoleLook, stop: &AtomicBool) -> io::Result<Census> {
    let top = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let device = fstat(&top)?.st_dev;
    let first = OpenDirectory::new(Dir::new(top)?);
    let census = Census { directories: 1, ..Census::default() };
    let mut walk = CensusWalk { census, device, now, holes, open: vec![first] };
    while !walk.open.is_empty() && !stop.load(Ordering::Relaxed) {
        walk.step();
    }
    Ok(walk.census)
}

/// A walk through a tree.
struct CensusWalk {
    census: Census,
    /// The file system of the first directory.
    device: u64,
    now: i64,
    holes: HoleLook,
    /// The directories from the first one down to the present one.
    open: Vec<OpenDirectory>,
}

/// A directory with entries that are not yet counted.
struct OpenDirectory {
    entries: Dir,
    count: u64,
    /// Plain files among the counted entries.
    files: u64,
    /// The walk entered one of its directories.
    is_inner: bool,
    /// The listing ended with an error: there may be more entries.
    is_cut: bool,
    /// Searches for an entry in a second listing.
    searches: usize,
}

/// The most searches in a directory: if more entries have gone, somebody removes them.
const SEARCHES_MOST: usize = 16;

impl OpenDirectory {
    const fn new(entries: Dir) -> Self {
        OpenDirectory { entries, count: 0, files: 0, is_inner: false, is_cut: false, searches: 0 }
    }
}

impl OpenDirectory {
    /// Returns true if the directory still lists a name that can't be found: a server may not take the name, or the
    /// entry is broken.
    fn lists(&mut self, name: &CStr) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MOST && self.listed_anew(name).unwrap_or(false)
    }

    fn listed_anew(&self, name: &CStr) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = Dir::new(openat(self.entries.fd()?, ".", flags, Mode::empty())?)?;
        Ok(entries.flatten().any(|entry| entry.file_name() == name))
    }
}

impl CensusWalk {
    /// Counts the next entry of the present directory, or leaves that.
    fn step(&mut self) {
        let level = self.open.len() - 1;
        let Some(present) = self.open.last_mut() else { return };
        match present.entries.read() {
            Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Some(Ok(entry)) => {
                let counted = self.count(entry.file_name());
                self.note(level, entry.file_name(), counted);
            }
            // The listing ends behind an error.
            Some(Err(_)) => {
                present.is_cut = true;
                self.census.unreadable += 1;
            }
            None => self.leave(),
        }
    }

    /// Notes an entry of the directory at `level`.
    fn note(&mut self, level: usize, name: &CStr, counted: io::Result<CountedKind>) {
        let present = &mut self.open[level];
        match counted {
            Ok(kind) => {
                present.count += 1;
                present.files += u64::from(matches!(kind, CountedKind::File { .. }));
            }
            // Somebody removed it after the listing had it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !present.lists(name) => {
                self.census.vanished += 1;
            }
            Err(_) => {
                present.count += 1;
                self.census.unreadable += 1;
            }
        }
    }

    /// Leaves the present directory, whose listing is at its end.
    fn leave(&mut self) {
        let Some(OpenDirectory { count, files, is_inner, is_cut, .. }) = self.open.pop() else { return };
        if !is_cut {
            let level = self.open.len();
            self.census.leave(CountedDirectory { level, entries: count, files, is_inner });
        }
    }

    /// Counts an entry of the present directory; a directory becomes the present one.
    fn count(&mut self, name: &CStr) -> io::Result<CountedKind> {
        let depth = self.open.len() - 1;
        let present = &self.open[depth];
        // Looking at a mount point must not mount it.
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let stat = statat(present.entries.fd()?, name, flags)?;
        let mut kind = kind(&stat, self.now);
        if let CountedKind::File { bytes, allocated, is_sparse, .. } = &mut kind
            && self.holes == HoleLook::Opened
            && is_hollow(*bytes, *allocated)
        {
            // A file that can't be opened stays one that may be offline.
            *is_sparse = has_hole(present.entries.fd()?, name, *bytes).unwrap_or(false);
        }
        let entered = if kind == CountedKind::Directory { self.descend(name, stat.st_dev) } else { Ok(()) };
        let is_gone = matches!(&entered, Err(error) if error.kind() == io::ErrorKind::NotFound);
        if !is_gone {
            self.census.add(&CountedEntry { kind, depth, user: stat.st_uid, group: stat.st_gid });
        }
        entered.map(|()| kind)
    }

    /// Enters a directory of the present one, if it belongs to the tree.
    fn descend(&mut self, name: &CStr, device: u64) -> io::Result<()> {
        if device != self.device {
            self.census.other_file_systems += 1;
        } else if self.open.len() > CENSUS_DEPTH_MAX {
            self.census.too_deep += 1;
        } else {
            self.enter(name)?;
        }
        Ok(())
    }

    fn enter(&mut self, name: &CStr) -> io::Result<()> {
        let Some(present) = self.open.last_mut() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = openat(present.entries.fd()?, name, flags, Mode::empty())?;
        // Somebody may have mounted another file system since.
        if fstat(&below)?.st_dev == self.device {
            present.is_inner = true;
            self.open.push(OpenDirectory::new(Dir::new(below)?));
        } else {
            self.census.other_file_systems += 1;
        }
        Ok(())
    }
}

/// Returns true if the file system reports a hole before the file's end (lseek(2), `SEEK_HOLE`).
fn has_hole(directory: impl AsFd, name: &CStr, bytes: u64) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    Ok(seek(&file, SeekFrom::Hole(0))? < bytes)
}

fn kind(stat: &Stat, now: i64) -> CountedKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => CountedKind::Directory,
        FileType::Symlink => CountedKind::Symlink,
        FileType::RegularFile => CountedKind::File {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            // stat(2): blocks of 512 bytes on every file system.
            allocated: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            age: now.saturating_sub(stat.st_mtime),
            is_linked: stat.st_nlink > 1,
            is_sparse: false,
        },
        _ => CountedKind::Special,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        time::{Duration, UNIX_EPOCH},
    };

    use nilometer_model::LevelCounts;

    use super::*;

    const NOW: i64 = 1_000_000_000;
    static GOES_ON: AtomicBool = AtomicBool::new(false);

    fn file(path: &Path, bytes: u64, age: u64) {
        let file = File::create(path).expect("space");
        file.set_len(bytes).expect("space");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(NOW as u64 - age)).expect("our own");
    }

    /// Directories of a level by the least number of their files: without and with directories.
    fn by_files(level: &LevelCounts) -> [Vec<(u64, u64)>; 2] {
        [&level.leaves, &level.inner].map(|counts| counts.ranges().map(|of| (of.from, of.count)).collect())
    }

    #[test]
    fn every_entry_counts_once_and_no_symbolic_link_is_followed() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| home.path().join(path);
        fs::create_dir_all(at("a/b")).expect("space");
        fs::create_dir(at("empty")).expect("space");
        file(&at("one"), 100, 10);
        file(&at("a/two"), 5000, 400 * 86_400);
        file(&at("a/b/three"), 0, 10);
        fs::hard_link(at("one"), at("a/again")).expect("space");
        symlink(home.path(), at("a/b/back")).expect("space");
        let counted = census(home.path(), NOW, HoleLook::Never, &GOES_ON).expect("a directory");
        assert_eq!((counted.directories, counted.files, counted.symlinks), (4, 4, 1));
        assert_eq!((counted.bytes, counted.hard_links), (5200, 2));
        assert_eq!(counted.depths, [3, 3, 2], "a, empty, one; b, two, again; three, back");
        let entries: Vec<(u64, u64)> = counted.entries.ranges().map(|of| (of.from, of.count)).collect();
        assert_eq!(entries, [(0, 1), (2, 3)]);
        let levels: Vec<[Vec<(u64, u64)>; 2]> = counted.levels.iter().map(by_files).collect();
        let [one, two] = [(1, 1), (2, 1)];
        let expected = [[vec![], vec![one]], [vec![(0, 1)], vec![two]], [vec![one], vec![]]];
        assert_eq!(levels, expected, "the first with a file; `empty`, and `a` with two; `b` with one");
        assert_eq!((counted.ages.younger[0], counted.ages.younger[5]), (3, 1));
        assert_eq!((counted.users.count(), counted.unreadable), (1, 0));
        let through_link =
            census(&at("a/b/back"), NOW, HoleLook::Never, &GOES_ON).expect("a link to a directory");
        assert_eq!(through_link, counted);
    }

    #[test]
    fn a_tree_deeper_than_can_be_open_ends_there_and_what_is_no_directory_is_an_error() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let deep = home.path().join(vec!["d"; CENSUS_DEPTH_MAX + 3].join("/"));
        fs::create_dir_all(&deep).expect("space");
        let counted = census(home.path(), NOW, HoleLook::Never, &GOES_ON).expect("a directory");
        assert_eq!((counted.too_deep, counted.directories), (1, CENSUS_DEPTH_MAX as u64 + 2));
        file(&home.path().join("file"), 1, 1);
        assert!(census(&home.path().join("file"), NOW, HoleLook::Never, &GOES_ON).is_err());
        let stopped = census(home.path(), NOW, HoleLook::Never, &AtomicBool::new(true)).expect("a directory");
        assert_eq!(stopped.files, 0);
    }
}
