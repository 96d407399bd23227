//! What the tests share: file systems of their own that can be broken, and the program run from outside with a limit.
//!
//! Everything a test makes lies in a temporary directory of its own and goes when its guard is dropped, also on panic.

#![forbid(unsafe_code)]

mod file_system;
mod program;

pub use file_system::{FileSystem, may_mount};
pub use program::{Ended, Running, nilometer, run, start};

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The file in a run directory that says that it is ours.
pub const MARKER: &str = ".nilometer-run";

/// Names in a directory that begin as those of run directories do.
pub fn run_directories(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory that can be listed");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("nilometer-"))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
