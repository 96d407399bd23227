//! The network of this machine: its interfaces, their properties and the kernel's counters.

pub mod counters;
pub mod interrupts;
pub mod links;
pub mod traffic;
mod unacknowledged;

use std::{fs, path::Path};

pub use unacknowledged::unacknowledged;

/// Reads a file of `/proc` or `/sys`; `None` if it does not exist here.
pub fn kernel_text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

/// Returns the network interfaces, ordered by name.
pub fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| Path::new("/sys/class/net").join(name).join("statistics").is_dir());
    names.sort();
    names
}
