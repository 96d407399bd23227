//! The files, directories and devices that a line itself works on.

use std::path::{Path, PathBuf};

/// A path that a line works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinePath {
    /// A file.
    File(PathBuf),
    /// Files whose names begin with the last part of this path, such as `job.0.0` of fio.
    FilesFrom(PathBuf),
    /// A directory that the line fills.
    Directory(PathBuf),
}

impl LinePath {
    /// The path in the line.
    pub fn path(&self) -> &Path {
        match self {
            LinePath::File(path) | LinePath::FilesFrom(path) | LinePath::Directory(path) => path,
        }
    }
}

/// All that a line works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineReach {
    /// Paths in the order of the line.
    pub paths: Vec<LinePath>,
    /// Options whose effect no path in the line bounds, each with that effect.
    pub unbounded: Vec<String>,
    /// The option that starts the line in another directory; `None` if it starts in this one.
    pub moved_by: Option<String>,
}

impl LineReach {
    /// Adds a path.
    pub fn add(&mut self, path: LinePath) {
        self.paths.push(path);
    }

    /// Adds an option with an effect beyond the paths of the line.
    pub(crate) fn add_unbounded(&mut self, option: &str, effect: &str) {
        self.unbounded.push(format!("`{option}`: {effect}"));
    }

    /// Adds the paths and options of another reach.
    pub(crate) fn extend(&mut self, other: &LineReach) {
        self.paths.extend_from_slice(&other.paths);
        self.unbounded.extend_from_slice(&other.unbounded);
    }
}
