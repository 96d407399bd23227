//! The results of a measured recording: its goal, and the fate of its frames, packets and readers.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Histogram, Level, Levels, Nanos, Switches};

/// The question that a recording answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// How fast the storage takes frames: frames arrive as soon as there is room.
    Limit,
    /// Does the storage keep up with the instrument? Frames arrive when they are due.
    #[default]
    Pace,
    /// The highest rate without loss: many recordings, each at a rate that follows from earlier ones.
    Search,
    /// The smallest buffer without loss at the instrument's pace: many recordings, each with a buffer that
    /// follows from earlier ones.
    Buffer,
}

impl Goal {
    /// All of them.
    pub const ALL: [Goal; 4] = [Goal::Limit, Goal::Pace, Goal::Search, Goal::Buffer];

    /// Its word in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Limit => "limit",
            Goal::Pace => "pace",
            Goal::Search => "search",
            Goal::Buffer => "buffer",
        }
    }

    /// True if a recording is one trial of many.
    pub const fn searches(self) -> bool {
        matches!(self, Goal::Search | Goal::Buffer)
    }

    /// The opposite of [`Goal::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Goal::ALL.into_iter().find(|goal| goal.name() == name)
    }
}

/// The most stalls in a result; of more, only the longest stay.
pub const STALLS_MOST: usize = 200;

/// The fate of an instrument's frames in an ingest phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ingest {
    /// Number of instruments of this kind, each with its own recorder. Figures are totals of all.
    pub count: u32,
    /// The question that the recording answers.
    pub goal: Goal,
    /// Bytes of a frame.
    pub frame_size: Bytes,
    /// The mean time between frames, over all instruments, as they arrived.
    pub period: Nanos,
    /// How long frames arrived.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames acknowledged by the storage.
    pub stored: u64,
    /// Bytes given to the storage; fewer than the frames have if they are compressed.
    pub written: Bytes,
    /// Frames that found no free slot, or whose write failed everywhere.
    pub lost: u64,
    /// Slots of the ring.
    pub slots: u64,
    /// The most slots in use at once.
    pub slots_high: u64,
    /// The longest time in which frames waited and none was acknowledged, even if it is within the allowance.
    pub longest_stall: Nanos,
    /// How late a frame may be; a longer wait counts as a stall.
    pub allowance: Nanos,
    /// Frames that were acknowledged later than the allowance after they were due.
    pub late: u64,
    /// Times longer than the allowance in which frames waited and none was acknowledged. They count from the
    /// recording's first frame. If there were many, only the longest.
    pub stalls: Vec<Stall>,
    /// Number of stalls.
    pub stall_count: u64,
    /// Total time of all stalls.
    pub stalled: Nanos,
    /// The fewest bytes acknowledged in any whole second; `None` if the recording was shorter.
    pub slowest_second: Option<Bytes>,
    /// From due until the frame survives a loss of power; empty if the plan did not ask for that.
    pub durable: Histogram,
    /// From due until a reader can read the frame: the frame and all before it are settled.
    pub readable: Histogram,
    /// Slots in use and frames lost over time.
    pub levels: Levels,
    /// The other instruments recorded at the same time, each by its own recorder; empty if there were none.
    pub company: String,
    /// The condition that the target was brought into; empty if it was left as it is.
    pub condition: String,
    /// The background load on the target, in words; empty if there was none.
    pub load: String,
    /// The readers during the recording.
    pub readers: Vec<ReaderTotals>,
    /// From due until a reader had read the frame and found it right, over all readers.
    pub read: Histogram,
    /// The fate of its packets, if the instrument sends packets: frames are then blocks of them.
    pub packets: Option<PacketTotals>,
}

/// A ring fills if the frames that wait grow by more than this share of the arrivals.
const FILLS: f64 = 0.025;

/// The share if nothing else shows that the storage keeps up.
const GROWS: f64 = 0.002;

/// Slots in use for this many frame periods prove nothing: these frames are on their way.
const ON_THE_WAY: f64 = 8.0;

impl Ingest {
    /// True if the target was as it is, without background load.
    pub fn is_undisturbed(&self) -> bool {
        self.condition.is_empty() && self.load.is_empty()
    }

    /// The longest time from due until a reader can read the frame: it and all before it are settled.
    pub fn latest(&self) -> Nanos {
        Nanos(self.readable.max())
    }

    /// Returns true if the ring was still filling at the last frame, so that a longer recording would have
    /// lost some.
    ///
    /// A ring that stalls fill is drained between them. The test therefore compares the fewest waiting frames
    /// of the first third with those of the last third. If there are several recorders, the levels are those
    /// of the last one to report; it stands for all.
    pub fn is_filling(&self) -> bool {
        self.fills_by(FILLS)
    }

    /// Like [`Ingest::is_filling`], and also true for a slow growth, if frames on their way do not explain
    /// it.
    pub fn is_growing(&self) -> bool {
        self.fills_by(GROWS)
    }

    /// True if the ring fills by more than this share of the arrivals.
    fn fills_by(&self, share: f64) -> bool {
        let spent = self.due.saturating_mul(self.period.0);
        let width = self.levels.width().0;
        let bins = self.levels.bins();
        let bins = &bins[..bins.len().min((spent / width) as usize)];
        let third = bins.len() / 3;
        let least = |bins: &[Level]| bins.iter().map(|level| level.last).min().unwrap_or(0);
        let grown = least(&bins[bins.len() - third..]).saturating_sub(least(&bins[..third]));
        let between = 2.0 / 3.0 * spent as f64;
        let most = (share * between).max(ON_THE_WAY * self.period.0 as f64);
        (grown * u64::from(self.count.max(1)) * self.period.0) as f64 > most
    }

    /// Keeps only the longest stalls, in order of time.
    pub fn limit_stalls(&mut self) {
        self.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
        self.stalls.truncate(STALLS_MOST);
        self.stalls.sort_by_key(|stall| stall.at);
    }

    /// The number of losses: packets if there are any, otherwise frames.
    pub fn losses(&self) -> u64 {
        self.packets.map_or(self.lost, |packets| packets.lost().max(self.lost))
    }
}

/// The fate of packets that a simulated instrument sent over loopback. Counts are of packets, unless their
/// text says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketTotals {
    /// The longest packet, including the bytes that are not stored.
    pub size: Bytes,
    /// Packets that were due.
    pub due: u64,
    /// Packets that the simulated instrument could not hand to the network.
    pub unsent: u64,
    /// Packets received from the kernel.
    pub came: u64,
    /// Messages dropped by the kernel, by its own count. Each has one packet, or several that the kernel had
    /// joined.
    pub dropped: u64,
    /// Packets received that found no room in the ring, or were in blocks that no lane was left to take.
    pub ring: u64,
    /// Packets that have their place on the storage.
    pub stored: u64,
    /// Runs of missing packets (RFC 3357, loss periods).
    pub losses: u64,
    /// The most packets missing in a row.
    pub longest_loss: u64,
    /// Packets that arrived after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// The most packets that overtook a single one (RFC 4737, section 4.2, reordering extent).
    pub extent: u64,
    /// The sum of the packets that overtook others.
    pub overtaken: u64,
    /// Packets that arrived twice.
    pub duplicates: u64,
    /// The socket buffer that the kernel granted, in bytes.
    pub room: Bytes,
    /// The latest departure of a packet after its due time.
    pub late: Nanos,
    /// Processor time of the simulated instrument, which waits actively for the time of a packet.
    pub sending: Nanos,
    /// Processor time of the receiving side.
    pub receiving: Nanos,
}

/// The counts that an instrument's sender reports for a stream of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPackets {
    /// Packets that were due.
    pub due: u64,
    /// Packets handed to the network.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// How late they left, in nanoseconds.
    pub lateness: Histogram,
    /// Processor time of the sender in user space.
    pub user: Nanos,
    /// Processor time of the sender in the kernel.
    pub system: Nanos,
    /// Context switches of the sender.
    pub switches: Switches,
}

impl SentPackets {
    /// Processor time of the sender, in user space and the kernel.
    pub fn processor(&self) -> Nanos {
        self.user + self.system
    }
}

impl PacketTotals {
    /// Packets sent that are not on the storage.
    pub const fn lost(&self) -> u64 {
        self.due.saturating_sub(self.unsent).saturating_sub(self.stored)
    }

    /// Lost packets that never came out of the kernel: its buffer was full.
    pub const fn in_kernel(&self) -> u64 {
        self.due.saturating_sub(self.unsent).saturating_sub(self.came)
    }

    /// Lost packets without such a reason: lost neither in the kernel nor at the ring.
    pub const fn otherwise(&self) -> u64 {
        self.lost().saturating_sub(self.in_kernel()).saturating_sub(self.ring)
    }

    /// Adds the packets of another instrument of the same kind.
    #[must_use]
    pub fn and(self, other: PacketTotals) -> Self {
        PacketTotals {
            size: self.size.max(other.size),
            due: self.due + other.due,
            unsent: self.unsent + other.unsent,
            came: self.came + other.came,
            dropped: self.dropped + other.dropped,
            ring: self.ring + other.ring,
            stored: self.stored + other.stored,
            losses: self.losses + other.losses,
            longest_loss: self.longest_loss.max(other.longest_loss),
            reordered: self.reordered + other.reordered,
            extent: self.extent.max(other.extent),
            overtaken: self.overtaken + other.overtaken,
            duplicates: self.duplicates + other.duplicates,
            room: if self.room.0 == 0 { other.room } else { self.room.min(other.room) },
            late: self.late.max(other.late),
            sending: self.sending + other.sending,
            receiving: self.receiving + other.receiving,
        }
    }
}

/// The results of a reader that followed a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReaderTotals {
    /// True if it wrote its data to a second target.
    pub copies: bool,
    /// True if it read the stored frames after the recording had ended.
    pub after: bool,
    /// Frames that it read and found right.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From its first frame until its last.
    pub wall: Nanos,
    /// Frames that it did not reach: removed to make room, or still unread 2 s after the recording had ended.
    pub missed: u64,
    /// Frames that it read and that differ from the instrument's.
    pub wrong: u64,
    /// Reads and writes that failed.
    pub failed: u64,
    /// True if it wrote a copy, did not end in time and was given up.
    pub hung: bool,
    /// The most bytes that it was to read in a second; `None` without a limit. The record has it in its plan.
    #[serde(default)]
    pub limit_per_second: Option<Bytes>,
}

/// A time in which frames waited and none was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Its start, counted from the first frame.
    pub at: Nanos,
    /// Its length.
    pub length: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_goal_is_read_again() {
        for goal in Goal::ALL {
            assert_eq!(Goal::from_name(goal.name()), Some(goal));
        }
    }
}
