//! What a process prints, where a launcher reads it.

use std::{fs::OpenOptions, os::fd::AsRawFd};

/// Prints nothing more: for a process that is done and may be kept from ending by storage that hangs. Launchers read what their
/// processes print until all of them have closed it, and would wait for this one.
pub fn let_go_of_output() {
    let Ok(nothing) = OpenOptions::new().write(true).open("/dev/null") else { return };
    for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both are open, and whoever prints afterwards does so into nothing.
        unsafe { libc::dup2(nothing.as_raw_fd(), output) };
    }
}
