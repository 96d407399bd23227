//! The processes that serve a file system on this machine besides the caller. They are the kernel's threads,
//! which write back, complete and encrypt, and the daemon of a FUSE mount.
//!
//! Their processor time comes from their clocks (`clock_getcpuclockid(3)`). It includes every thread of a
//! daemon, even ended ones, and costs one system call each. Missing are kernel threads that ended in between,
//! and work in interrupts.

use std::{fs, mem::MaybeUninit};

use nilometer_model::{Nanos, TargetDescription};

/// Processor time of each process, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served(Vec<(i32, Nanos)>);

impl Served {
    /// Reads the time of all visible kernel threads.
    pub fn by_kernel() -> Self {
        Self::by(&kernel_threads())
    }

    /// Reads the time of these processes.
    pub fn by(processes: &[i32]) -> Self {
        let mut served: Vec<_> = processes.iter().filter_map(|&id| Some((id, spent(id)?))).collect();
        served.sort_unstable();
        Served(served)
    }

    /// Returns the time spent since `earlier`; a process that is new since then counts from its start.
    pub fn since(&self, earlier: &Served) -> Nanos {
        let before = |id| match earlier.0.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => earlier.0[at].1,
            Err(_) => Nanos(0),
        };
        self.0.iter().fold(Nanos(0), |sum, &(id, is)| sum + is.since(before(id)))
    }
}

/// Returns the children of `kthreadd`; empty in a container, where they can't be seen.
fn kernel_threads() -> Vec<i32> {
    const KTHREADD: i32 = 2;
    let text = |file: &str| fs::read_to_string(format!("/proc/{KTHREADD}/{file}")).unwrap_or_default();
    if text("comm").trim() != "kthreadd" {
        return Vec::new();
    }
    let children = text(&format!("task/{KTHREADD}/children"));
    children.split_whitespace().filter_map(|id| id.parse().ok()).chain([KTHREADD]).collect()
}

/// Returns the processor time of a process since it started; `None` if it is gone.
fn spent(process: i32) -> Option<Nanos> {
    let mut clock = MaybeUninit::<libc::clockid_t>::uninit();
    // SAFETY: the kernel writes only the clock's number, and reports if it did.
    if unsafe { libc::clock_getcpuclockid(process, clock.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call above succeeded, so the clock's number was written; only `time` is written here.
    let told = unsafe { libc::clock_gettime(clock.assume_init(), &raw mut time) } == 0;
    told.then(|| Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()))
}

/// Returns the processes that serve a target's FUSE mount: those that hold `/dev/fuse` open for its
/// connection. Since Linux 6.16 the kernel reports the connection, which is the minor number of the mount's
/// device (`fuse_connection` in `proc_pid_fdinfo(5)`). Only root sees it for other users' processes.
///
/// On older kernels a daemon is a process that holds any connection and has the mount point among its
/// arguments. Daemons that can't be recognised are left out.
pub fn daemons(description: &TargetDescription) -> Vec<i32> {
    if !description.file_system.starts_with("fuse") {
        return Vec::new();
    }
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let point = description.mount_point.to_string_lossy();
    let connection = connection(&table, &point);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| serves(*id, connection, &point)).collect()
}

/// Returns true if a process holds this FUSE connection, or any connection with the mount point among its
/// arguments.
fn serves(process: i32, connection: Option<u32>, point: &str) -> bool {
    fuse_descriptors(process).iter().any(|info| match connection_of(info) {
        Some(number) => Some(number) == connection,
        None => arguments(process).iter().any(|argument| *argument == point),
    })
}

/// Returns the minor device number of the mount at a point, from the mount table: `42 27 0:39 / /mnt ...`,
/// with spaces and backslashes in octal.
fn connection(table: &str, point: &str) -> Option<u32> {
    let point = point.replace('\\', "\\134").replace(' ', "\\040");
    let at_point = |line: &&str| line.split(' ').nth(4).is_some_and(|mounted| mounted == point);
    table.lines().rfind(at_point)?.split(' ').nth(2)?.split_once(':')?.1.parse().ok()
}

/// Returns the `fdinfo` of each descriptor of a process for `/dev/fuse`.
fn fuse_descriptors(process: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let fuse = entries
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == "/dev/fuse"))
        .map(|entry| format!("/proc/{process}/fdinfo/{}", entry.file_name().to_string_lossy()));
    fuse.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

fn connection_of(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?.trim().parse().ok()
}

fn arguments(process: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n42 27 0:39 / /mnt rw - fuse.x x rw\n\
                         43 42 0:40 / /mnt rw - fuse.y y rw\n";

    #[test]
    fn a_connection_is_found_by_the_mount_on_top() {
        assert_eq!((connection(TABLE, "/mnt"), connection(TABLE, "/nowhere")), (Some(40), None));
        let info = "pos:\t0\nflags:\t0100002\nmnt_id:\t24\nino:\t90\nfuse_connection:\t39\n";
        assert_eq!((connection_of(info), connection_of("pos:\t0\n")), (Some(39), None));
    }

    #[test]
    fn the_time_of_a_process_is_read_and_of_none_that_is_gone() {
        let id = std::process::id().cast_signed();
        let before = spent(id).expect("this process lives");
        let clock = crate::Clock::start();
        let is_spent = || {
            let after = Served(vec![(id, spent(id).expect("it still does"))]);
            after.since(&Served(vec![(id, before)])) > Nanos::from_millis(1)
        };
        // On a busy machine other tasks have the processor for a while.
        while !is_spent() {
            assert!(clock.now() < Nanos::from_millis(60_000), "a minute of work is no time: {before:?}");
        }
        assert_eq!(spent(4_200_000), None, "above the largest id");
    }

    #[test]
    fn only_what_came_since_counts() {
        let served = |list: &[(i32, u64)]| Served(list.iter().map(|&(id, time)| (id, Nanos(time))).collect());
        let (was, is) = (served(&[(2, 5), (3, 7)]), served(&[(2, 6), (4, 10)]));
        assert_eq!(is.since(&was), Nanos(11), "one that ended is missing, one that began is not");
    }
}
