//! What this thread and this machine spent: processor time, and the time a ready thread waited for a processor.

use nilometer_model::Nanos;

/// Processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user space.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub fn of_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Of all threads of this process, since it began: the kernel's workers for `io_uring` are among them.
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
        Usage { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
    }

    /// What was spent since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Usage) -> Self {
        Usage { user: self.user.since(earlier.user), system: self.system.since(earlier.system) }
    }

    /// User and kernel together.
    pub fn total(self) -> Nanos {
        self.user + self.system
    }
}

/// How long the calling thread was ready to run but waited for a processor, since it began
/// (`/proc/thread-self/schedstat`, second field); zero where the kernel does not tell.
pub fn run_delay() -> Nanos {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Nanos(schedstat.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0))
}

/// Busy processor time of the whole machine since it started: user, nice, system, interrupts, steal apart
/// (`/proc/stat`, first line; in ticks of 10 ms). None where `/proc` does not tell.
pub fn machine_busy() -> Option<Nanos> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let mut fields =
        stat.lines().next()?.split_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
    let (user, nice, system) = (fields.next()?, fields.next()?, fields.next()?);
    let (_idle, _iowait) = (fields.next()?, fields.next()?);
    let interrupts = fields.next()? + fields.next()?;
    Some(Nanos((user + nice + system + interrupts) * 10_000_000))
}

/// The time of the calendar, since 1970, UTC. For a person to read: nothing is measured by it, since it may be set.
pub fn calendar() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Nanos(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}

/// The load average over the last minute; 0 where `/proc` does not tell.
pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Dirty and under write-back, in bytes, of the whole machine (`/proc/meminfo`).
pub fn dirty_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        |line: &str| line.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    text.lines()
        .filter(|line| line.starts_with("Dirty:") || line.starts_with("Writeback:"))
        .map(kib)
        .sum::<u64>()
        * 1024
}
