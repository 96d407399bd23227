//! Locks of recorders on this machine. A recorder locks each directory in which it records (`flock`), and an
//! evaluation locks its own. Processes that record into one directory hold its lock together.
//!
//! The kernel lists locks with their devices, so a copy sees recorders of all users. It can't see those of
//! other machines on a shared file system.

use std::{fs, path::Path};

use rustix::fs::{Dev, Stat, major, minor};

/// A device as in the kernel's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceNumber {
    major: u32,
    minor: u32,
}

impl DeviceNumber {
    /// The device of a file.
    pub(super) fn of(status: &Stat) -> Self {
        let device: Dev = status.st_dev;
        DeviceNumber { major: major(device), minor: minor(device) }
    }
}

/// A lock that another process of this program holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecorderLock {
    /// The process.
    pub(super) process: u32,
    pub(super) device: DeviceNumber,
    pub(super) inode: u64,
}

impl RecorderLock {
    /// Reads a line such as `1: FLOCK  ADVISORY  WRITE 21173 fe:00:10444801 0 EOF`. `None` for other kinds of
    /// locks, and for processes that wait for one.
    fn of_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let is_flock = words.next()? == "FLOCK";
        let is_held = matches!(words.nth(1)?, "READ" | "WRITE");
        let process = words.next()?.parse().ok()?;
        let mut place = words.next()?.split(':');
        let major = u32::from_str_radix(place.next()?, 16).ok()?;
        let minor = u32::from_str_radix(place.next()?, 16).ok()?;
        let inode = place.next()?.parse().ok()?;
        let lock = RecorderLock { process, device: DeviceNumber { major, minor }, inode };
        (is_flock && is_held).then_some(lock)
    }

    /// Returns true if the lock is on this file.
    pub(super) fn is_on(&self, status: &Stat) -> bool {
        self.device == DeviceNumber::of(status) && self.inode == status.st_ino
    }
}

/// The locks of other processes of this program. Empty if the kernel does not list locks.
pub(super) fn recorder_locks() -> Vec<RecorderLock> {
    let listed = fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = std::process::id();
    let name = command_of(Path::new("/proc/self"));
    let of_this_program = |lock: &RecorderLock| {
        let process = lock.process;
        process != own && command_of(&Path::new("/proc").join(process.to_string())) == name
    };
    listed.lines().filter_map(RecorderLock::of_line).filter(of_this_program).collect()
}

/// The command's name of a process.
fn command_of(process: &Path) -> Option<String> {
    fs::read_to_string(process.join("comm")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_locks_of_whole_files_that_a_process_has_are_read() {
        let device = DeviceNumber { major: 254, minor: 10 };
        let lock = RecorderLock { process: 21_173, device, inode: 10_444_801 };
        for kind in ["WRITE", "READ "] {
            let line = format!("1: FLOCK  ADVISORY  {kind} 21173 fe:0a:10444801 0 EOF");
            assert_eq!(RecorderLock::of_line(&line), Some(lock), "one process, or several together");
        }
        for other in [
            "",
            "4: POSIX  ADVISORY  WRITE 21005 fe:00:10051587 0 EOF",
            "1: -> FLOCK  ADVISORY  WRITE 21173 fe:00:10444801 0 EOF",
            "1: FLOCK  ADVISORY  WRITE x fe:00:10444801 0 EOF",
        ] {
            assert_eq!(RecorderLock::of_line(other), None, "{other}");
        }
    }
}
