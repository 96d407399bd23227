//! The standard output of a process under a launcher.

use std::{fs::OpenOptions, os::fd::AsRawFd};

/// Closes the output for a process that is done but may be kept from ending by hanging storage. A launcher
/// reads until all processes have closed their outputs, and would wait for this one.
pub fn let_go_of_output() {
    let Ok(nothing) = OpenOptions::new().write(true).open("/dev/null") else { return };
    for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both descriptors are open. Later prints go to the null device.
        unsafe { libc::dup2(nothing.as_raw_fd(), output) };
    }
}
