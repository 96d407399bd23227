//! A recording that was measured: what it was to show, and what became of its frames, its packets and its readers.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Histogram, Level, Levels, Nanos, Switches};

/// What a recording is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// How fast the storage takes frames: they come as soon as there is room.
    Limit,
    /// Whether the instrument is carried: frames come when they are due.
    #[default]
    Pace,
    /// The highest rate without loss: many recordings, each at a rate that follows from the ones before.
    Search,
    /// The smallest buffer without loss at the instrument's pace: many recordings, each with a buffer that follows from the
    /// ones before.
    Buffer,
}

impl Goal {
    /// All of them.
    pub const ALL: [Goal; 4] = [Goal::Limit, Goal::Pace, Goal::Search, Goal::Buffer];

    /// The word in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Limit => "limit",
            Goal::Pace => "pace",
            Goal::Search => "search",
            Goal::Buffer => "buffer",
        }
    }

    /// A recording is one trial of many.
    pub const fn searches(self) -> bool {
        matches!(self, Goal::Search | Goal::Buffer)
    }

    /// The opposite of [`Goal::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Goal::ALL.into_iter().find(|goal| goal.name() == name)
    }
}

/// Of more stalls than this the longest are kept.
pub const STALLS_MOST: usize = 200;

/// What the recorder did with an instrument's frames in an ingest phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ingest {
    /// So many of it, each with a recorder of its own; figures are of all together.
    pub count: u32,
    /// What the recording was to show.
    pub goal: Goal,
    /// Bytes of a frame.
    pub frame_size: Bytes,
    /// The mean time from one frame to the next, of all together, as they came.
    pub period: Nanos,
    /// How long frames came.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames acknowledged by the storage.
    pub stored: u64,
    /// Bytes of frames that the storage was given: fewer than they have where they are compressed.
    pub written: Bytes,
    /// Frames that found no free slot, or whose write failed everywhere.
    pub lost: u64,
    /// Slots of the ring.
    pub slots: u64,
    /// The most slots that were in use at once.
    pub slots_high: u64,
    /// The longest time in which frames waited and none was acknowledged, whether or not it is longer than the allowance.
    pub longest_stall: Nanos,
    /// What a stall is longer than, and how late a frame may be.
    pub allowance: Nanos,
    /// Frames that were acknowledged later than the allowance after they were due.
    pub late: u64,
    /// Times longer than the allowance in which frames waited and none was acknowledged, on the recording's clock from
    /// its first frame: the longest, if there were many.
    pub stalls: Vec<Stall>,
    /// How many there were.
    pub stall_count: u64,
    /// How long all of them together.
    pub stalled: Nanos,
    /// The fewest bytes acknowledged in any whole second; none if it was shorter.
    pub slowest_second: Option<Bytes>,
    /// From due until the frame survives the loss of power; empty if that was not asked for.
    pub durable: Histogram,
    /// From due until the frame can be read: it and all before it are settled.
    pub readable: Histogram,
    /// Slots in use and frames lost over time.
    pub levels: Levels,
    /// What was recorded at the same time, each by a recorder of its own; empty if nothing else was.
    pub company: String,
    /// The condition that the target was brought into; empty for as it is.
    pub condition: String,
    /// What worked on the target meanwhile, in words; empty for nothing.
    pub load: String,
    /// Who read it meanwhile.
    pub readers: Vec<ReaderTotals>,
    /// From due until a reader had read the frame and found it right, all readers together.
    pub read: Histogram,
    /// What became of its packets, if it sent some: frames are then blocks of them.
    pub packets: Option<PacketTotals>,
}

/// A ring fills if what waits at the end grows by more than this share of what comes.
const FILLS: f64 = 0.025;

/// And if nothing else tells whether the storage keeps up, by more than this share.
const GROWS: f64 = 0.002;

/// Slots in use for so many frames' time say nothing: they are on their way.
const ON_THE_WAY: f64 = 8.0;

impl Ingest {
    /// The target was as it is, and nothing else worked on it.
    pub fn is_undisturbed(&self) -> bool {
        self.condition.is_empty() && self.load.is_empty()
    }

    /// The longest time from when a frame was due until it could be read: it and all before it were settled.
    pub fn latest(&self) -> Nanos {
        Nanos(self.readable.max())
    }

    /// Whether the ring was still filling when the last frame came, so that a longer recording would have lost some. A ring
    /// that fills by stalls is drained between them: it is the least that waited at any moment of the last third against
    /// that of the first third which counts. Of several recorders the levels are those of the one that was heard of last,
    /// which stands for all.
    pub fn is_filling(&self) -> bool {
        self.fills_by(FILLS)
    }

    /// The same, of a ring that fills however slowly, as far as it can be told from frames on their way.
    pub fn is_growing(&self) -> bool {
        self.fills_by(GROWS)
    }

    /// By more than this share of what comes.
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

    /// The longest of its stalls, in the order of time.
    pub fn limit_stalls(&mut self) {
        self.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
        self.stalls.truncate(STALLS_MOST);
        self.stalls.sort_by_key(|stall| stall.at);
    }

    /// What was lost: packets where there are some, otherwise frames.
    pub fn losses(&self) -> u64 {
        self.packets.map_or(self.lost, |packets| packets.lost().max(self.lost))
    }
}

/// What became of packets that a simulated instrument sent over loopback. All counts are of packets, unless they say
/// otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketTotals {
    /// The longest of them, with what is not kept.
    pub size: Bytes,
    /// That were due.
    pub due: u64,
    /// That the simulated instrument could not hand to the network.
    pub unsent: u64,
    /// That came out of the kernel.
    pub came: u64,
    /// Messages that the kernel says it dropped: of one packet each, or of several that it had joined.
    pub dropped: u64,
    /// That came and found no room in the ring, or were in blocks that no lane was left to take.
    pub ring: u64,
    /// That have their place on the storage.
    pub stored: u64,
    /// Times that packets were missing one after the other (RFC 3357, loss periods).
    pub losses: u64,
    /// The most packets missing in a row.
    pub longest_loss: u64,
    /// That came after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// By how many others one of them was overtaken at the most (RFC 4737, section 4.2, reordering extent).
    pub extent: u64,
    /// And all of them together.
    pub overtaken: u64,
    /// That came twice.
    pub duplicates: u64,
    /// How many bytes of packets may wait in the kernel: what it gave.
    pub room: Bytes,
    /// How late a packet left at the most.
    pub late: Nanos,
    /// Processor time of the simulated instrument, which waits for a packet's time awake.
    pub sending: Nanos,
    /// Processor time of what receives packets.
    pub receiving: Nanos,
}

/// What an instrument's sender says of a stream of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPackets {
    /// Packets that were due.
    pub due: u64,
    /// That were handed to the network.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// How late they left, in nanoseconds.
    pub lateness: Histogram,
    /// Processor time of who sent, in user space.
    pub user: Nanos,
    /// And in the kernel.
    pub system: Nanos,
    /// Its context switches.
    pub switches: Switches,
}

impl SentPackets {
    /// Processor time of who sent.
    pub fn processor(&self) -> Nanos {
        self.user + self.system
    }
}

impl PacketTotals {
    /// That were sent and are not on the storage.
    pub const fn lost(&self) -> u64 {
        self.due.saturating_sub(self.unsent).saturating_sub(self.stored)
    }

    /// Of these, those that never came out of the kernel: its buffer was full.
    pub const fn in_kernel(&self) -> u64 {
        self.due.saturating_sub(self.unsent).saturating_sub(self.came)
    }

    /// Of those that were lost, those for which there is no such reason.
    pub const fn otherwise(&self) -> u64 {
        self.lost().saturating_sub(self.in_kernel()).saturating_sub(self.ring)
    }

    /// Those of another instrument of the same kind too.
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

/// What a reader got that followed a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReaderTotals {
    /// It wrote what it read to a second target.
    pub copies: bool,
    /// It read what was kept when the recording was over.
    pub after: bool,
    /// Frames that it read, and found right.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From its first frame until its last.
    pub wall: Nanos,
    /// Frames that were removed to make room before it came to them.
    pub missed: u64,
    /// Frames that it read and that were not what the instrument delivered.
    pub wrong: u64,
    /// Reads and writes of it that failed.
    pub failed: u64,
    /// It wrote a copy, did not end in time and was given up.
    pub hung: bool,
}

/// A time in which frames waited and none was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When it began, from the first frame on.
    pub at: Nanos,
    /// How long it was.
    pub length: Nanos,
}
