//! What the kernel counts since a machine was started, by what it counts.

use serde::{Deserialize, Serialize};

/// What processors did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorCounters {
    /// All of them.
    pub all: ProcessorTimes,
    /// The busy time of each, in their order.
    pub each_busy_ms: Vec<u64>,
}

/// Where the time of processors went, in steps of 10 ms (`/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTimes {
    /// Processes and the kernel.
    pub busy_ms: u64,
    /// Of that, work that interrupts left, as the network's.
    pub softirq_ms: u64,
    /// Idle while some task waited for a disk.
    pub iowait_ms: u64,
    /// Idle otherwise.
    pub idle_ms: u64,
    /// What the host of a virtual machine gave to others.
    pub stolen_ms: u64,
}

/// What there is of memory now (`/proc/meminfo`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLevels {
    /// That can be taken without swapping.
    pub available_bytes: u64,
    /// In the cache, and to be written.
    pub dirty_bytes: u64,
    /// Being written.
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

/// What passed an interface (`/proc/net/dev`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that came.
    pub received_packets: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Packets that were broken, both ways.
    pub errors: u64,
    /// Packets that were dropped, both ways.
    pub dropped: u64,
}

/// What a block device did (`/proc/diskstats`).
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
    /// How long it had at least one request. The kernel counts in 32 bits.
    pub busy_ms: u64,
    /// The same, each moment as often as there were requests. The kernel counts in 32 bits.
    pub queue_ms: u64,
}

/// What the kernel's NFS server did (`/proc/net/rpc/nfsd`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsServerCounters {
    /// Threads that answer.
    pub threads: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes that clients read.
    pub read_bytes: u64,
    /// Bytes that clients wrote.
    pub written_bytes: u64,
}
