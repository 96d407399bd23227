//! The files, directories and devices that a line itself works on. `explain` runs a line only if none of them
//! exists yet. The line then overwrites, extends and removes only its own files.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use anyhow::bail;

/// A path that a line works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinePath {
    /// A file.
    File(PathBuf),
    /// Files whose names begin with the last part of this path, such as `job.0.0` of fio.
    FilesFrom(PathBuf),
    /// A directory that the line fills.
    Directory(PathBuf),
}

/// All that a line works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineReach {
    paths: Vec<LinePath>,
    /// Options whose effect no path in the line bounds, each with that effect.
    unbounded: Vec<String>,
    /// The option that starts the line in another directory.
    moved_by: Option<String>,
}

/// Advice that ends every refusal.
const OURS_ONLY: &str = "or --ours-only, which measures our cells and does not run the line";

/// File systems of the kernel and of devices.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Plain memory below one of them.
const SHARED_MEMORY: &str = "/dev/shm";

impl LineReach {
    /// Adds a path.
    pub(super) fn add(&mut self, path: LinePath) {
        self.paths.push(path);
    }

    /// Adds an option with an effect beyond the paths of the line.
    pub(super) fn add_unbounded(&mut self, option: &str, effect: &str) {
        self.unbounded.push(format!("`{option}`: {effect}"));
    }

    /// The line starts in another directory.
    pub(super) fn move_by(&mut self, option: &str) {
        self.moved_by = Some(option.to_owned());
    }

    /// Adds the paths and options of another reach.
    pub(super) fn extend(&mut self, other: &LineReach) {
        self.paths.extend_from_slice(&other.paths);
        self.unbounded.extend_from_slice(&other.unbounded);
    }

    /// Refuses a line that would touch something it did not make itself.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(unbounded) = self.unbounded.first() {
            bail!(
                "{unbounded}, and explain runs a line only on files that it makes itself: leave it out, {OURS_ONLY}"
            );
        }
        for path in &self.paths {
            if let Some(option) = self.moved_by.as_ref().filter(|_| path.path().is_relative()) {
                let path = path.path().display();
                bail!(
                    "`{option}` starts the line in another directory than this: write {path} from the root on, {OURS_ONLY}"
                );
            }
            if let Some(obstacle) = path.obstacle() {
                bail!(
                    "{obstacle}, and explain runs a line only on files that it makes itself: write a path that does not exist \
                     yet, {OURS_ONLY}"
                );
            }
        }
        Ok(())
    }
}

impl LinePath {
    fn path(&self) -> &Path {
        match self {
            LinePath::File(path) | LinePath::FilesFrom(path) | LinePath::Directory(path) => path,
        }
    }

    /// The reason not to run the line on this path; `None` if nothing is there yet.
    fn obstacle(&self) -> Option<String> {
        let path = self.path();
        let is_of_system = SYSTEM_DIRECTORIES.iter().any(|system| path.starts_with(system));
        if is_of_system && !path.starts_with(SHARED_MEMORY) {
            return Some(format!("{} is a device or of the kernel", path.display()));
        }
        match self {
            LinePath::File(path) => existing(path),
            LinePath::FilesFrom(path) => existing_from(path),
            LinePath::Directory(path) => existing_in(path),
        }
    }
}

/// Refuses a path at which anything exists, even a link that leads nowhere.
fn existing(path: &Path) -> Option<String> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_block_device() || found.file_type().is_char_device() => {
            Some(format!("{shown} is a device"))
        }
        Ok(_) => Some(format!("{shown} exists")),
        Err(error) => unknown(path, &error),
    }
}

/// Refuses a file whose name begins with the last part of a path.
fn existing_from(path: &Path) -> Option<String> {
    let begin = path.file_name().unwrap_or_default().as_encoded_bytes();
    let parent = super::line::parent_of(path);
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) => return unknown(&parent, &error),
    };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let found = names.into_iter().find(|name| name.as_encoded_bytes().starts_with(begin));
    found.and_then(|name| existing(&parent.join(name)))
}

/// Refuses a directory with something in it, or something else in its place.
fn existing_in(path: &Path) -> Option<String> {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().map(|_| format!("{} is not empty", path.display())),
        Err(error) if error.kind() == ErrorKind::NotADirectory => existing(path),
        Err(error) => unknown(path, &error),
    }
}

/// Refuses a path that this program may not see: something may be there.
fn unknown(path: &Path, error: &std::io::Error) -> Option<String> {
    let is_absent = [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind());
    (!is_absent).then(|| format!("can't look at {} ({error})", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refusal(path: LinePath) -> Option<String> {
        let mut reach = LineReach::default();
        reach.add(path);
        reach.check().err().map(|error| error.to_string())
    }

    #[test]
    fn only_paths_at_which_nothing_is_are_free() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| home.path().join(name);
        fs::write(at("job.0.0"), "precious").expect("space");
        symlink(at("gone"), at("link")).expect("space");
        fs::create_dir(at("empty")).expect("space");
        for free in [
            LinePath::File(at("job")),
            LinePath::FilesFrom(at("other")),
            LinePath::FilesFrom(at("gone/job")),
            LinePath::Directory(at("empty")),
            LinePath::Directory(at("gone")),
            LinePath::File("/dev/shm/nilometer-never-made".into()),
        ] {
            assert_eq!(refusal(free.clone()), None, "{free:?}");
        }
        for (taken, part) in [
            (LinePath::File(at("job.0.0")), "job.0.0 exists"),
            (LinePath::File(at("link")), "link exists"),
            (LinePath::File(at("empty")), "empty exists"),
            (LinePath::FilesFrom(at("job")), "job.0.0 exists"),
            (LinePath::FilesFrom(at("job.0.0")), "job.0.0 exists"),
            (LinePath::Directory(home.path().into()), "is not empty"),
            (LinePath::Directory(at("job.0.0")), "exists"),
            (LinePath::File("/dev/null".into()), "/dev/null is a device"),
            (LinePath::File("/dev/no-such-disk".into()), "is a device"),
            (LinePath::File("/proc/sysrq-trigger".into()), "of the kernel"),
        ] {
            let refusal = refusal(taken.clone()).expect("it is taken");
            assert!(refusal.contains(part) && refusal.contains("--ours-only"), "{taken:?}: {refusal}");
        }
    }

    #[test]
    fn relative_paths_of_a_line_that_starts_elsewhere_are_not_known() {
        let mut reach = LineReach::default();
        reach.move_by("--wdir /data");
        reach.add(LinePath::File("/tmp/nilometer-never-made".into()));
        reach.check().expect("it does not depend on the directory");
        reach.add(LinePath::File("file".into()));
        let error = reach.check().expect_err("it may be any file").to_string();
        assert!(error.contains("`--wdir /data` starts the line in another directory"), "{error}");
    }
}
