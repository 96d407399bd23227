//! What `nilometer observe` saw of a machine while something else was measured: the lines of its file. The first is an
//! [`ObservedHeader`], each other one an [`ObservedLine`]; all are JSON, and each figure has its unit in its name.
//!
//! Counters are as the kernel has them, since the machine was started: whoever reads the file makes rates of two looks, and
//! sees where one is missing or a counter went back.

mod clock_state;
mod counters;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, LinkBond, Moment, Nanos};

pub use clock_state::{ClockState, ClockStateError};
pub use counters::{
    DiskCounters, LinkCounters, MemoryLevels, NfsServerCounters, PressureCounters, ProcessorCounters,
    ProcessorTimes,
};

/// What a file of observations says of itself in its first line.
pub const OBSERVED_FORMAT: &str = "nilometer-observed";
/// Raised when a field is renamed, removed or changes its meaning; not when one is added.
pub const OBSERVED_VERSION: u32 = 1;

/// The first line: what the machine is.
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
    /// Which start of which machine it is (`boot_id` in random(4)); empty where the kernel does not say.
    pub boot_id: String,
    /// Name and release of the kernel.
    pub kernel: String,
    /// When the observer began, by the machine's clock.
    pub started: Moment,
    /// How often it looks.
    pub interval_s: f64,
    /// What the kernel reads the time from.
    pub clock_source: String,
    /// Processors that are there.
    pub processors: usize,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// Network interfaces that were up, but the loopback.
    pub links: Vec<ObservedLink>,
    /// Block devices, partitions apart.
    pub disks: Vec<ObservedDisk>,
    /// File systems on block devices and of servers, by the kernel's table: none of them was touched.
    pub mounts: Vec<ObservedMount>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedLink {
    /// As the kernel calls it.
    pub name: String,
    /// A card, or a bond of cards: of others the speed is made up.
    pub is_card: bool,
    /// What it can carry each way; none where the driver does not say.
    pub speed_bytes_per_second: Option<f64>,
    /// The longest packet.
    pub mtu_bytes: Option<u64>,
    /// The members of a bond.
    pub bond: Option<LinkBond>,
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDisk {
    /// As the kernel calls it.
    pub name: String,
    /// What it is, in words.
    pub kind: String,
    /// How much it holds.
    pub size_bytes: u64,
    /// Whether it turns; none where the kernel does not say.
    pub rotational: Option<bool>,
    /// Whole devices that it is made of; empty of a disk.
    pub made_of: Vec<String>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedMount {
    /// Where.
    pub mount_point: String,
    /// Its type.
    pub file_system: String,
    /// A device, a server and its path, or what a daemon calls it.
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
    /// By the machine's clock, since 1970, UTC.
    pub time_us: u64,
    /// Since the machine was started, sleep included: nobody can set that clock.
    pub running_us: u64,
    /// How far the machine's clock may be wrong, as its time service says; null where it is not synchronised, or nobody says.
    pub clock_error_us: Option<u64>,
    /// What processors did.
    pub processors: ProcessorCounters,
    /// Memory.
    pub memory: MemoryLevels,
    /// How long some task waited (PSI); null where the kernel does not tell.
    pub pressure: Option<PressureCounters>,
    /// By interface, the loopback apart.
    pub links: BTreeMap<String, LinkCounters>,
    /// By block device, those apart that never did anything.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Of the kernel's NFS server, where one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_server: Option<NfsServerCounters>,
    /// By sensor, in some of the looks. Those of disks are left out: to ask them is to ask the disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub temperatures_celsius: BTreeMap<String, f64>,
}

/// What the observer says of itself when it ends in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ObserverEnd {
    /// By the machine's clock, since 1970, UTC.
    pub time_us: u64,
    /// How often it looked.
    pub looks: u64,
    /// Looks that were due and not made, as the machine had no time for them.
    pub missed: u64,
    /// Processor time that the observer itself used.
    pub own_processor_s: f64,
    /// How long it observed.
    pub observed_s: f64,
}

impl ObservedLook {
    /// When, by the machine's clock.
    pub fn time(&self) -> Nanos {
        Nanos(self.time_us.saturating_mul(1000))
    }

    /// When, by the clock that nobody can set.
    pub fn running(&self) -> Nanos {
        Nanos(self.running_us.saturating_mul(1000))
    }
}

/// A file of observations as it was read: its header, and those of its looks that were asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedLog {
    /// What the user called it.
    pub name: String,
    /// What the machine is.
    pub header: ObservedHeader,
    /// In their order.
    pub looks: Vec<ObservedLook>,
    /// The times of the first and the last look of the file, whether or not they were asked for; none without any.
    pub range: Option<ObservedRange>,
    /// What the observer said of itself, if it ended in order.
    pub end: Option<ObserverEnd>,
    /// The last line is not whole: the observer was killed while it wrote, or still writes.
    pub is_torn: bool,
}

/// From one moment to another, by one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedRange {
    /// Since 1970, UTC.
    pub from: Nanos,
    /// Not before `from`.
    pub to: Nanos,
}

impl ObservedRange {
    /// Whether they have a moment in common.
    pub fn meets(self, other: ObservedRange) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    /// Whether all of the other one is in it.
    pub fn holds(self, other: ObservedRange) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Both, and what is between them.
    #[must_use]
    pub fn and(self, other: ObservedRange) -> Self {
        ObservedRange { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// How long.
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
