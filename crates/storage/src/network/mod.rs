//! The network of this machine: its interfaces, what they are, and what the kernel counted there.

pub mod counters;
pub mod interrupts;
pub mod links;

use std::{fs, path::Path};

/// The text of a file of `/proc` or `/sys`; none if there is no such file here.
pub fn kernel_text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

/// The network interfaces, in order of their names.
pub fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| Path::new("/sys/class/net").join(name).join("statistics").is_dir());
    names.sort();
    names
}
