//! The activity of a process and of a whole machine over some time: processors, switches, disks, network.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Context switches of this process's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Switches to wait for something.
    pub voluntary: u64,
    /// Switches because another thread's turn had come.
    pub involuntary: u64,
}

impl Switches {
    /// The switches of both processes.
    pub(crate) fn and(self, other: Switches) -> Switches {
        Switches {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

/// The activity of a whole machine over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Activity {
    /// The length of the observation.
    pub over: Nanos,
    /// Processor time of all processes and the kernel.
    pub busy: Nanos,
    /// Processor time that the hypervisor gave to other virtual machines.
    pub stolen: Nanos,
    /// Context switches.
    pub switches: u64,
    /// Bytes read from all disks.
    pub disk_read: u64,
    /// Bytes written to all disks.
    pub disk_written: u64,
    /// Bytes received from the network, without the loopback device.
    pub received: u64,
    /// Bytes sent to the network, without the loopback device.
    pub sent: u64,
    /// How long some task was delayed; `None` if the kernel does not report it.
    pub pressure: Option<Pressure>,
}

impl Activity {
    /// Combines two machines that were observed for about the same time.
    pub(crate) fn and(self, other: Activity) -> Activity {
        Activity {
            over: self.over.max(other.over),
            busy: self.busy + other.busy,
            stolen: self.stolen + other.stolen,
            switches: self.switches + other.switches,
            disk_read: self.disk_read + other.disk_read,
            disk_written: self.disk_written + other.disk_written,
            received: self.received + other.received,
            sent: self.sent + other.sent,
            pressure: match (self.pressure, other.pressure) {
                (Some(one), Some(another)) => Some(one.worst(another)),
                (one, another) => one.or(another),
            },
        }
    }
}

/// How long some task waited for a busy resource (Linux pressure stall information, `some`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// For a processor.
    pub cpu: Nanos,
    /// For input or output.
    pub io: Nanos,
    /// For memory.
    pub memory: Nanos,
}

impl Pressure {
    /// The longer delay of the two machines: shares of a time do not add up.
    fn worst(self, other: Pressure) -> Pressure {
        Pressure {
            cpu: self.cpu.max(other.cpu),
            io: self.io.max(other.io),
            memory: self.memory.max(other.memory),
        }
    }
}
