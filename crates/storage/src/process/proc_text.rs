//! Parsers for the counters in `/proc`: processors (`proc_stat(5)`), disks (`proc_diskstats(5)`), interfaces
//! (`/proc/net/dev`), pressure (the kernel's `accounting/psi.rst`), memory (`proc_meminfo(5)`) and the
//! kernel's NFS server. A field that is missing or no number counts as zero.

use nilometer_model::observed::{
    DiskCounters, LinkCounters, MemoryLevels, NfsServerCounters, PressureCounters, ProcessorTimes,
};

/// A tick of `/proc/stat` (`USER_HZ`), in milliseconds.
const TICK_MS: u64 = 10;
/// The unit of `/proc/diskstats`, independent of the disk's own sector.
const SECTOR: u64 = 512;

fn number(field: Option<&str>) -> u64 {
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Returns the times of all processors together, then of each.
pub(crate) fn processors(stat: &str) -> impl Iterator<Item = ProcessorTimes> {
    stat.lines().map_while(|line| line.strip_prefix("cpu")).map(|line| {
        let fields = line.split_once(' ').map_or("", |(_, fields)| fields);
        let mut fields = fields.split_whitespace();
        let mut next = || number(fields.next()).saturating_mul(TICK_MS);
        let [user, nice, system, idle_ms, iowait_ms, hard, softirq_ms, stolen_ms] =
            std::array::from_fn(|_| next());
        let busy = [user, nice, system, hard, softirq_ms];
        let busy_ms = busy.into_iter().fold(0, u64::saturating_add);
        ProcessorTimes { busy_ms, softirq_ms, iowait_ms, idle_ms, stolen_ms }
    })
}

/// Returns the number of context switches.
pub(super) fn switches(stat: &str) -> u64 {
    number(stat.lines().find_map(|line| line.strip_prefix("ctxt ")))
}

/// Parses `254 0 vda reads merged sectors ms writes merged sectors ms in-flight busy queue ...`: name and
/// counts of each device, including partitions.
pub(crate) fn disks(text: &str) -> impl Iterator<Item = (&str, DiskCounters)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let name = fields.next()?;
        let mut next = || number(fields.next());
        let [reads, _, read, _, writes, _, written, _, _, busy_ms, queue_ms] =
            std::array::from_fn(|_| next());
        let read_bytes = read.saturating_mul(SECTOR);
        let written_bytes = written.saturating_mul(SECTOR);
        Some((name, DiskCounters { reads, writes, read_bytes, written_bytes, busy_ms, queue_ms }))
    })
}

/// Parses `  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets errs drop ...`,
/// without loopback.
pub(crate) fn interfaces(text: &str) -> impl Iterator<Item = (&str, LinkCounters)> {
    text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo").map(
        |(name, values)| {
            let mut values = values.split_whitespace();
            let mut next = || number(values.next());
            let [received_bytes, received_packets, bad_received, lost_received, _, _, _, _] =
                std::array::from_fn(|_| next());
            let [sent_bytes, sent_packets, bad_sent, lost_sent] = std::array::from_fn(|_| next());
            let errors = bad_received.saturating_add(bad_sent);
            let dropped = lost_received.saturating_add(lost_sent);
            let counters =
                LinkCounters { received_bytes, sent_bytes, received_packets, sent_packets, errors, dropped };
            (name.trim(), counters)
        },
    )
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, in microseconds, for processors, I/O and
/// memory.
pub(crate) fn pressure(cpu: &str, io: &str, memory: &str) -> Option<PressureCounters> {
    let total = |text: &str| {
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let total = some.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
        total.parse::<u64>().ok()
    };
    Some(PressureCounters { cpu_us: total(cpu)?, io_us: total(io)?, memory_us: total(memory)? })
}

/// Returns the bytes of a line such as `Dirty:   1234 kB`; `None` if there is no such line.
pub(crate) fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the levels that change while data are written.
pub(crate) fn memory(text: &str) -> MemoryLevels {
    let bytes = |name: &str| meminfo(text, name).unwrap_or(0);
    MemoryLevels {
        available_bytes: bytes("MemAvailable"),
        dirty_bytes: bytes("Dirty"),
        writeback_bytes: bytes("Writeback"),
    }
}

/// Parses the lines `io READ WRITTEN`, `th THREADS ...` and `rpc CALLS ...`; `None` if no server runs.
pub(crate) fn nfs_server(text: &str) -> Option<NfsServerCounters> {
    let fields = |name: &str| {
        let mut lines = text.lines().map(str::split_whitespace);
        lines.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))
    };
    let threads = number(fields("th")?.next());
    let mut io = fields("io")?;
    let counters = NfsServerCounters {
        threads,
        calls: number(fields("rpc")?.next()),
        read_bytes: number(io.next()),
        written_bytes: number(io.next()),
    };
    (threads > 0).then_some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  59424 1 12309 265226 1450 2 129 509 7 0\ncpu0 29033 0 4430 135444 342 0 20 234 0 0\n\
                        cpu1 30391 1 7879 129782 1108 2 109 275 7 0\nintr 57 0 2\nctxt 1155\nbtime 1763772000\n";
    const DISKS: &str = "   7       0 loop0 5 0 10 0 5 0 10 0 0 0 0\n 254       0 vda 84625 16289 100 60044 28057 55472 200 \
                         79687 3 4120 99000 1 2 3 4\n 259 0 nvme0n1 1 1 7 1 1 1 8 1 0 1\n";
    const NETWORK: &str = "Inter-|   Receive                            |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
        lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
        eth0: 212285126    4777    1    2    0     0          0         0   242952    2786    4    8    0     0       0          0\n\
        ib0:10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
    const PRESSURE: &str = "some avg10=15.04 avg60=5.12 avg300=2.08 total=33437969\nfull avg10=0.00 avg60=0.00 \
                            avg300=0.00 total=4\n";

    #[test]
    fn processors_are_all_then_each() {
        let found: Vec<ProcessorTimes> = processors(STAT).collect();
        let all = ProcessorTimes {
            busy_ms: (59424 + 1 + 12309 + 2 + 129) * 10,
            softirq_ms: 1290,
            iowait_ms: 14500,
            idle_ms: 2_652_260,
            stolen_ms: 5090,
        };
        assert_eq!((found.len(), found[0]), (3, all));
        assert_eq!((found[1].busy_ms, switches(STAT)), ((29033 + 4430 + 20) * 10, 1155));
    }

    #[test]
    fn disks_and_interfaces_are_known_by_name() {
        let found: Vec<(&str, DiskCounters)> = disks(DISKS).collect();
        let vda = DiskCounters {
            reads: 84625,
            writes: 28057,
            read_bytes: 51_200,
            written_bytes: 102_400,
            busy_ms: 4120,
            queue_ms: 99_000,
        };
        assert_eq!((found.len(), found[1]), (3, ("vda", vda)));
        let found: Vec<(&str, LinkCounters)> = interfaces(NETWORK).collect();
        let card = LinkCounters {
            received_bytes: 212_285_126,
            sent_bytes: 242_952,
            received_packets: 4777,
            sent_packets: 2786,
            errors: 5,
            dropped: 10,
        };
        assert_eq!((found.len(), found[0], found[1].0), (2, ("eth0", card), "ib0"));
    }

    #[test]
    fn what_a_kernel_does_not_tell_is_none() {
        let told = PressureCounters { cpu_us: 33_437_969, io_us: 33_437_969, memory_us: 33_437_969 };
        assert_eq!(pressure(PRESSURE, PRESSURE, PRESSURE), Some(told));
        assert_eq!(pressure(PRESSURE, "", PRESSURE), None);
        let text =
            "MemTotal: 16 kB\nMemAvailable:   8 kB\nDirty:  3 kB\nWriteback: 2 kB\nWritebackTmp: 9 kB\n";
        let levels = MemoryLevels { available_bytes: 8192, dirty_bytes: 3072, writeback_bytes: 2048 };
        assert_eq!((memory(text), meminfo(text, "MemTotal")), (levels, Some(16_384)));
        let text = "rc 0 5 6\nfh 0 0 0 0 0\nio 4096 8192\nth 8 0 0.000\nnet 1 0 1 1\nrpc 77 0 0 0 0\n";
        let server = NfsServerCounters { threads: 8, calls: 77, read_bytes: 4096, written_bytes: 8192 };
        assert_eq!(nfs_server(text), Some(server));
        assert_eq!(nfs_server(&text.replace("th 8", "th 0")), None, "no server runs");
        assert_eq!(nfs_server(""), None);
    }

    proptest! {
        #[test]
        fn garbage_is_no_reason_to_fail(text in "[ a-z0-9:=\\n.-]{0,300}") {
            for text in [text.clone(), format!("cpu {text}"), format!("some {text}"), format!("io {text}\nth 1\nrpc 1")] {
                processors(&text).for_each(drop);
                disks(&text).for_each(drop);
                interfaces(&text).for_each(drop);
                pressure(&text, &text, &text);
                memory(&text);
                nfs_server(&text);
                switches(&text);
            }
        }
    }
}
