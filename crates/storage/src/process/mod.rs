//! The time spent by this thread, by the servers of a file system and by the whole machine. It includes
//! processor time, a ready thread's wait for a processor, disks and networks.

mod client;
mod control_group;
mod machine;
mod place;
pub(crate) mod proc_text;

pub use client::{Served, daemons};
pub use control_group::{GroupMemory, group_memory, processor_quota, throttled};
pub use machine::Machine;
pub use place::{pin_to, processors};

use nilometer_model::{Bytes, Nanos, Switches};

/// The identity of a start of a machine: the kernel makes a new one at each (`boot_id` in random(4)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(pub u128);

impl BootId {
    /// Reads it for this machine; `None` if the kernel does not provide it.
    pub fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok().map(BootId)
    }
}

impl std::fmt::Display for BootId {
    /// Formats it like the kernel: `0e4c5d3f-1f0a-4c55-9f5a-0c7f3a9b2d11`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = format!("{:032x}", self.0);
        let [first, second, third, fourth, last] = [0..8, 8..12, 12..16, 16..20, 20..32];
        write!(f, "{}-{}-{}", &digits[first], &digits[second], &digits[third])?;
        write!(f, "-{}-{}", &digits[fourth], &digits[last])
    }
}

/// Processor time, context switches and input and output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user space.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// Context switches.
    pub switches: Switches,
    /// Bytes that the kernel fetched from storage for it.
    pub fetched: u64,
    /// Bytes that it wrote, or left in the page cache to be written.
    pub stored: u64,
}

/// The unit of `ru_inblock` and `ru_oublock`, in bytes (the kernel's `task_io_accounting_ops.h`).
const BLOCK: u64 = 512;

impl Usage {
    /// Reads the usage of the calling thread since its start.
    pub fn of_thread() -> Self {
        // The kernel updates a running thread's time when the thread leaves the processor, or when its clock
        // is read.
        let _read = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Reads the usage of all threads of this process since its start, including the kernel's workers for
    /// `io_uring`.
    pub fn of_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    fn of(whose: libc::c_int) -> Self {
        // SAFETY: all zeroes is a valid rusage, and the kernel writes only into it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(whose, &raw mut usage);
            usage
        };
        let nanos = |time: libc::timeval| {
            Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000)
        };
        let switches = Switches {
            voluntary: usage.ru_nvcsw.cast_unsigned(),
            involuntary: usage.ru_nivcsw.cast_unsigned(),
        };
        Usage {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            switches,
            fetched: usage.ru_inblock.cast_unsigned() * BLOCK,
            stored: usage.ru_oublock.cast_unsigned() * BLOCK,
        }
    }

    /// Returns the usage since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Usage) -> Self {
        let switches = Switches {
            voluntary: self.switches.voluntary.saturating_sub(earlier.switches.voluntary),
            involuntary: self.switches.involuntary.saturating_sub(earlier.switches.involuntary),
        };
        Usage {
            user: self.user.since(earlier.user),
            system: self.system.since(earlier.system),
            switches,
            fetched: self.fetched.saturating_sub(earlier.fetched),
            stored: self.stored.saturating_sub(earlier.stored),
        }
    }

    /// Adds the usage of another thread.
    #[must_use]
    pub fn and(self, other: Usage) -> Self {
        let switches = Switches {
            voluntary: self.switches.voluntary + other.switches.voluntary,
            involuntary: self.switches.involuntary + other.switches.involuntary,
        };
        Usage {
            user: self.user + other.user,
            system: self.system + other.system,
            switches,
            fetched: self.fetched + other.fetched,
            stored: self.stored + other.stored,
        }
    }

    /// Returns the time in user space and kernel together.
    pub fn total(self) -> Nanos {
        self.user + self.system
    }
}

/// Returns the time for which the calling thread was ready to run but waited for a processor, since its start
/// (`/proc/thread-self/schedstat`, second field). Zero if the kernel does not report it.
pub fn run_delay() -> Nanos {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Nanos(schedstat.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0))
}

/// Returns the load average over the last minute; 0 if `/proc` does not report it.
pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Returns the number of tasks on the whole machine that run or are ready to, including the caller
/// (`procs_running` of `proc_stat(5)`). 0 if `/proc` does not report it.
pub fn runnable_tasks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("procs_running "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Returns the bytes that are dirty or under write-back on the whole machine (`/proc/meminfo`).
pub fn dirty_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let levels = proc_text::memory(&text);
    levels.dirty_bytes + levels.writeback_bytes
}

/// Returns the resident memory of this process: `VmRSS` (`proc_pid_status(5)`); 0 if `/proc` does not report
/// it.
pub fn resident_memory() -> Bytes {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Bytes(proc_text::meminfo(&text, "VmRSS").unwrap_or(0))
}

/// Returns the memory available without swapping: `MemAvailable` (`proc_meminfo(5)`), or the rest of a
/// container's or job's limit if that is less.
pub fn available_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of_machine = proc_text::meminfo(&text, "MemAvailable").map(Bytes);
    let allowed = group_memory().map(|memory| memory.available);
    of_machine.into_iter().chain(allowed).min()
}

/// Returns a note for messages about available memory if a container or a job has a limit: ` (a container or
/// job allows 512 MiB)`.
pub fn memory_limit_words() -> String {
    group_memory().map_or_else(String::new, |memory| format!(" (a container or job allows {})", memory.limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_called_as_the_kernel_calls_it() {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("it is there");
        assert_eq!(BootId::now().map(|id| id.to_string()).as_deref(), Some(text.trim()));
    }

    #[test]
    fn a_thread_that_never_leaves_its_processor_is_counted() {
        let (clock, before) = (crate::Clock::start(), Usage::of_thread());
        let spent = || Usage::of_thread().since(before).total();
        // Other tasks may have the processor meanwhile.
        while spent() < Nanos::from_millis(5) && clock.now() < Nanos::from_millis(60_000) {}
        assert!(spent() >= Nanos::from_millis(5), "{:?} of {:?}", spent(), clock.now());
    }
}
