//! Removes the temporary files and directories of processes that were killed, and nothing else.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
    process::geteuid,
};

use super::partial_name::PartialName;

/// Temporary files in a directory whose writer has ended, or may have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DeadPartials {
    /// Files that were removed.
    pub removed: Vec<PathBuf>,
    /// Files that stay, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// Kinds of files in a temporary directory.
const MADE_IN_DIRECTORY: [&str; 3] = [".h5", ".journal", ".raw"];

/// Removes leftovers of killed processes from a directory, for the file of this name or for all. It leaves
/// names that this program did not make, files of running processes and files of other users alone.
pub fn remove_dead(directory: &Path, name: Option<&str>) -> DeadPartials {
    let mut dead = DeadPartials::default();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(held) = rustix::fs::open(directory, flags, Mode::empty()) else { return dead };
    for (text, partial) in partials_in(directory) {
        if name.is_some_and(|name| !PartialName::is_of(&text, name)) {
            continue;
        }
        let path = directory.join(&text);
        match partial.is_dead() {
            Some(false) => {}
            None => dead.left.push((path, "another machine or container makes it, or did".into())),
            Some(true) => match remove_one(&held, &text, &partial) {
                Ok(()) => dead.removed.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => dead.left.push((path, error.to_string())),
            },
        }
    }
    dead
}

/// Returns the temporary names in a directory, in order.
fn partials_in(directory: &Path) -> Vec<(String, PartialName)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut partials: Vec<_> =
        names.filter_map(|name| PartialName::read(&name).map(|partial| (name, partial))).collect();
    partials.sort_by(|one, other| one.0.cmp(&other.0));
    partials
}

fn remove_one(directory: &OwnedFd, name: &str, partial: &PartialName) -> io::Result<()> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    check_own(&stat)?;
    if !partial.is_of_this_boot() && modified(&stat) >= start_of_machine()? {
        return Err(io::Error::other("it was written since this machine was started"));
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink == 1 => {
            Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty())?)
        }
        FileType::Directory => remove_directory(directory, name),
        _ => Err(io::Error::other("it is not a plain file with one name")),
    }
}

fn check_own(stat: &Stat) -> io::Result<()> {
    let user = geteuid();
    if user.is_root() || user.as_raw() == stat.st_uid {
        return Ok(());
    }
    Err(io::Error::other(format!("it belongs to user {}", stat.st_uid)))
}

/// Removes a temporary directory, which contains the unfinished file, a journal and nothing else.
fn remove_directory(above: &OwnedFd, name: &str) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(above, name, flags, Mode::empty())?;
    let mut files = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if [".", ".."].contains(&file.as_str()) {
            continue;
        }
        let stat = rustix::fs::statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
        if !is_file || !MADE_IN_DIRECTORY.iter().any(|kind| file.ends_with(kind)) {
            return Err(io::Error::other(format!("{file} is in it, which no export makes")));
        }
        files.push(file);
    }
    for file in files {
        rustix::fs::unlinkat(&directory, file, AtFlags::empty())?;
    }
    Ok(rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

fn modified(stat: &Stat) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0))
}

/// Returns the time at which this machine started (`btime` of `proc_stat(5)`).
fn start_of_machine() -> io::Result<SystemTime> {
    let text = fs::read_to_string("/proc/stat")?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    let seconds = seconds.ok_or_else(|| io::Error::other("the kernel does not say when it was started"))?;
    Ok(UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_file::NewFile;

    /// A name whose process has ended.
    fn dead_name(name: &str) -> String {
        let mut child = std::process::Command::new("true").spawn().expect("true is everywhere");
        child.wait().expect("it is ours");
        PartialName::of_this_process(name, 0).of_process(child.id()).to_string()
    }

    #[test]
    fn only_what_the_dead_left_is_removed() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| home.path().join(name);
        let dead = dead_name("a.raw");
        let other = dead_name("b.raw");
        let directory = dead_name("c.h5");
        let full = dead_name("d.h5");
        let live = NewFile::create(home.path(), "a.raw").expect("room");
        for name in [dead.as_str(), &other, ".a.raw.4711.0.partial", "mine.partial"] {
            fs::write(at(name), "bytes").expect("room");
        }
        for (name, file) in [(&directory, "c.h5"), (&full, "mine.txt")] {
            fs::create_dir(at(name)).expect("room");
            fs::write(at(name).join(file), "bytes").expect("room");
        }
        assert_eq!(remove_dead(home.path(), Some("a.raw")).removed, [at(&dead)]);
        let all = remove_dead(home.path(), None);
        let mut expected = vec![at(&other), at(&directory)];
        expected.sort();
        assert_eq!(all.removed, expected);
        assert_eq!(all.left.len(), 1, "{all:?}");
        assert!(all.left[0].1.contains("mine.txt is in it"), "{all:?}");
        for name in [live.temporary(), ".a.raw.4711.0.partial", "mine.partial", &full] {
            assert!(at(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_link_under_such_a_name_is_left() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let name = home.path().join(dead_name("a"));
        std::os::unix::fs::symlink("/etc/hostname", &name).expect("room");
        let dead = remove_dead(home.path(), None);
        assert_eq!((dead.removed.len(), dead.left.len()), (0, 1), "{dead:?}");
        assert!(fs::symlink_metadata(&name).is_ok());
    }
}
