//! The share that one process has in a sample of several, and the state of its node before.

use serde::{Deserialize, Serialize};

use crate::{Activity, ByteRate, Nanos};

/// The share of one process in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RankPart {
    /// The rank of the process, from 0.
    pub rank: u32,
    /// The name of the machine that it ran on.
    pub node: String,
    /// How many nanoseconds its clock was ahead of rank 0's.
    pub clock_offset: i64,
    /// The uncertainty of `clock_offset`, in nanoseconds in either direction.
    pub clock_uncertainty: u64,
    /// How long after the agreed start, by its clock, the last of its workers began.
    pub began: Nanos,
    /// Number of its workers; the sample lists workers in the order of ranks.
    pub workers: u32,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The completion of its first operation, from the agreed start.
    pub first_done: Nanos,
    /// The completion of its last operation, from the agreed start.
    pub last_done: Nanos,
    /// Processor time in user space.
    pub user: Nanos,
    /// Processor time in the kernel.
    pub system: Nanos,
    /// How long its workers, or its recorders, waited for a processor, as in a sample.
    pub run_delay: Nanos,
}

/// The state of one node just before a phase, as the first process there that measured saw it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NodeStart {
    /// The name of the machine.
    pub node: String,
    /// Its load average over a minute.
    pub load: f64,
    /// Its activity.
    pub before: Activity,
}

impl NodeStart {
    /// Returns the rate at which all disks of the node read and wrote. `None` if the process did not observe
    /// the node.
    pub fn disk_rate(&self) -> Option<ByteRate> {
        let Activity { over, disk_read, disk_written, .. } = self.before;
        (over.0 > 0).then(|| ByteRate::of(disk_read + disk_written, over))
    }
}
