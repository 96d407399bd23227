//! Observations of a machine during a measurement elsewhere: the lines of the file of `nilometer observe`.
//!
//! The first line is an [`ObservedHeader`], each other one an [`ObservedLine`]. All are JSON, and each figure
//! has its unit in its name.
//!
//! Counters are those of the kernel, since the start of the machine. Readers of the file compute rates from
//! two looks, and detect missing looks and counters that went back.

mod clock_reading;
mod clock_state;
mod counters;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, LinkBond, Moment, Nanos};

pub use clock_reading::ClockReading;
pub use clock_state::{ClockState, ClockStateError};
pub use counters::{
    DiskCounters, LinkCounters, MemoryLevels, NfsServerCounters, PressureCounters, ProcessorCounters,
    ProcessorTimes,
};

/// The format name in the first line of a file of observations.
pub const OBSERVED_FORMAT: &str = "nilometer-observed";
/// The version, raised when a field is renamed, removed or changes its meaning; not when one is added.
pub const OBSERVED_VERSION: u32 = 1;

/// The first line: a description of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedHeader {
    /// [`OBSERVED_FORMAT`].
    pub format: String,
    /// [`OBSERVED_VERSION`].
    pub version: u32,
    /// The version of the program.
    pub nilometer: String,
    /// The machine's host name.
    pub host: String,
    /// The identity of this boot of the machine (`boot_id` in random(4)); empty if the kernel does not report
    /// it.
    pub boot_id: String,
    /// Name and release of the kernel.
    pub kernel: String,
    /// When the observer began, by the machine's clock.
    pub started: Moment,
    /// The interval between looks.
    pub interval_s: f64,
    /// The kernel's source of time.
    pub clock_source: String,
    /// Number of processors.
    pub processors: usize,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// Network interfaces that were up, without the loopback.
    pub links: Vec<ObservedLink>,
    /// Block devices, without partitions.
    pub disks: Vec<ObservedDisk>,
    /// File systems on block devices and of servers, by the kernel's table. The observer touches none of
    /// them.
    pub mounts: Vec<ObservedMount>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedLink {
    /// Its name in the kernel.
    pub name: String,
    /// True for a card or a bond of cards. The speed of other interfaces is fictitious.
    pub is_card: bool,
    /// The capacity each way; `None` if the driver does not report it.
    pub speed_bytes_per_second: Option<f64>,
    /// The longest packet.
    pub mtu_bytes: Option<u64>,
    /// The members of a bond.
    pub bond: Option<LinkBond>,
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDisk {
    /// Its name in the kernel.
    pub name: String,
    /// Its kind, in words.
    pub kind: String,
    /// Its capacity.
    pub size_bytes: u64,
    /// True if it is rotational; `None` if the kernel does not report it.
    pub rotational: Option<bool>,
    /// Whole devices that it is made of; empty for a disk.
    pub made_of: Vec<String>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedMount {
    /// The mount point.
    pub mount_point: String,
    /// Its type.
    pub file_system: String,
    /// A device, a server and its path, or a name that a daemon chose.
    pub source: String,
}

/// Any line but the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservedLine {
    /// All counters at one moment.
    Look(Box<ObservedLook>),
    /// The last line of an observer that ended in order.
    Ended(ObserverEnd),
}

/// All counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedLook {
    /// The time by the machine's clock, since 1970, UTC.
    pub time_us: u64,
    /// The time since the start of the machine, sleep included. Nobody can set that clock.
    pub running_us: u64,
    /// The largest error of the machine's clock, as its time service reports; null if it is unsynchronised or
    /// unknown.
    pub clock_error_us: Option<u64>,
    /// The activity of processors.
    pub processors: ProcessorCounters,
    /// The state of memory.
    pub memory: MemoryLevels,
    /// How long some task waited (PSI); null if the kernel does not report it.
    pub pressure: Option<PressureCounters>,
    /// Counters by interface, without the loopback.
    pub links: BTreeMap<String, LinkCounters>,
    /// Counters by block device, without those that never did anything.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Counters of the kernel's NFS server, if one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_server: Option<NfsServerCounters>,
    /// Temperatures by sensor, in some of the looks. Sensors of disks are missing, since reading them would
    /// disturb the disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub temperatures_celsius: BTreeMap<String, f64>,
}

/// The observer's own summary when it ends in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ObserverEnd {
    /// The time by the machine's clock, since 1970, UTC.
    pub time_us: u64,
    /// Number of looks.
    pub looks: u64,
    /// Looks that were due but skipped, because the machine had no time for them.
    pub missed: u64,
    /// Processor time of the observer itself.
    pub own_processor_s: f64,
    /// The length of the observation.
    pub observed_s: f64,
}

impl ObservedLook {
    /// The time by the machine's clock.
    pub fn time(&self) -> Nanos {
        Nanos(self.time_us.saturating_mul(1000))
    }

    /// The time by the clock that nobody can set.
    pub fn running(&self) -> Nanos {
        Nanos(self.running_us.saturating_mul(1000))
    }
}

/// A file of observations: its header, and the looks that the caller selected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedLog {
    /// The name that the user gave.
    pub name: String,
    /// The description of the machine.
    pub header: ObservedHeader,
    /// The selected looks, in order.
    pub looks: Vec<ObservedLook>,
    /// The times of the first and the last look of the file, even if they are not selected; `None` without
    /// looks.
    pub range: Option<ObservedRange>,
    /// The observer's summary, if it ended in order.
    pub end: Option<ObserverEnd>,
    /// True if the last line is incomplete: the observer was killed while it wrote, or still writes.
    pub is_torn: bool,
}

/// A range of time, by one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedRange {
    /// The start, since 1970, UTC.
    pub from: Nanos,
    /// The end, not before `from`.
    pub to: Nanos,
}

impl ObservedRange {
    /// Returns true if the ranges overlap.
    pub fn meets(self, other: ObservedRange) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    /// Returns true if it contains all of the other one.
    pub fn holds(self, other: ObservedRange) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// The smallest range that contains both.
    #[must_use]
    pub fn and(self, other: ObservedRange) -> Self {
        ObservedRange { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// Its length.
    pub fn length(self) -> Nanos {
        self.to.since(self.from)
    }
}

impl std::fmt::Display for ObservedRange {
    /// `2026-11-26T10:00:00Z to 2026-11-26T10:05:00Z`, in whole seconds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = |time: Nanos| Moment(Nanos(time.0 / 1_000_000_000 * 1_000_000_000));
        write!(f, "{} to {}", whole(self.from), whole(self.to))
    }
}

impl ObservedHeader {
    /// The device of this name.
    pub fn disk(&self, name: &str) -> Option<&ObservedDisk> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&ObservedLink> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The machine's memory.
    pub fn memory(&self) -> Bytes {
        Bytes(self.memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet_where_they_have_a_moment_in_common() {
        let range = |from, to| ObservedRange { from: Nanos(from), to: Nanos(to) };
        assert!(range(1, 3).meets(range(3, 5)) && range(3, 5).meets(range(1, 3)));
        assert!(!range(1, 2).meets(range(3, 5)) && !range(3, 5).meets(range(1, 2)));
        assert!(range(1, 9).holds(range(2, 9)) && !range(2, 9).holds(range(1, 9)));
        assert_eq!(range(1, 2).and(range(5, 6)), range(1, 6));
        let shown = range(1_795_370_400_900_000_000, 1_795_370_460_000_000_000).to_string();
        assert_eq!(shown, "2026-11-22T18:00:00Z to 2026-11-22T18:01:00Z");
    }

    #[test]
    fn lines_say_what_they_are_and_come_back() {
        let disk = DiskCounters { reads: 1, busy_ms: 2, ..DiskCounters::default() };
        let disks = [("sda".to_owned(), disk)].into();
        let look = ObservedLook { time_us: 7, clock_error_us: Some(9), disks, ..ObservedLook::default() };
        let line = ObservedLine::Look(Box::new(look));
        let text = serde_json::to_string(&line).expect("JSON");
        assert!(text.starts_with("{\"look\":{\"time_us\":7,") && !text.contains("nfs_server"), "{text}");
        assert_eq!(serde_json::from_str::<ObservedLine>(&text).expect("its own"), line);
        let ended = serde_json::to_string(&ObservedLine::Ended(ObserverEnd::default())).expect("JSON");
        assert!(ended.starts_with("{\"ended\":{\"time_us\":0,"), "{ended}");
        let header = serde_json::to_string(&ObservedHeader::default()).expect("JSON");
        assert!(header.starts_with("{\"format\":"), "the first word says whose it is: {header}");
    }
}
