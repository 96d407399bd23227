//! The kernel's counters since the start of a machine, by subject.

use serde::{Deserialize, Serialize};

/// The activity of processors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorCounters {
    /// The sum over all processors.
    pub all: ProcessorTimes,
    /// The busy time of each, in their order.
    pub each_busy_ms: Vec<u64>,
}

/// The use of processor time, in steps of 10 ms (`/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTimes {
    /// Time in processes and the kernel.
    pub busy_ms: u64,
    /// The part of `busy_ms` for deferred work of interrupts, such as the network's.
    pub softirq_ms: u64,
    /// Idle time while some task waited for a disk.
    pub iowait_ms: u64,
    /// Other idle time.
    pub idle_ms: u64,
    /// Time that the hypervisor gave to other virtual machines.
    pub stolen_ms: u64,
}

/// The present state of memory (`/proc/meminfo`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLevels {
    /// Bytes available without swapping.
    pub available_bytes: u64,
    /// Bytes in the cache that are to be written.
    pub dirty_bytes: u64,
    /// Bytes being written.
    pub writeback_bytes: u64,
}

/// How long some task waited for a resource (Linux pressure stall information, `some`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureCounters {
    /// For a processor.
    pub cpu_us: u64,
    /// For input or output.
    pub io_us: u64,
    /// For memory.
    pub memory_us: u64,
}

/// The traffic of an interface (`/proc/net/dev`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Broken packets, both ways.
    pub errors: u64,
    /// Dropped packets, both ways.
    pub dropped: u64,
}

/// The work of a block device (`/proc/diskstats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads that were completed.
    pub reads: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time with at least one request. The kernel counts in 32 bits.
    pub busy_ms: u64,
    /// Time weighted by the number of requests in progress. The kernel counts in 32 bits.
    pub queue_ms: u64,
}

/// The work of the kernel's NFS server (`/proc/net/rpc/nfsd`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsServerCounters {
    /// Threads that answer requests.
    pub threads: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes that clients read.
    pub read_bytes: u64,
    /// Bytes that clients wrote.
    pub written_bytes: u64,
}
