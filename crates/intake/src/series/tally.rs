//! What became of the messages of a series.

use nilometer_wire::series::SeriesError;

/// Why a message, or a frame in it, is not recorded. It is counted, and never ends a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesRefusal {
    /// The message is none that can be read.
    Malformed,
    /// An image without a start of its series: that came too late, or never.
    Early,
    /// It came while another series was recorded, and no start of its own did.
    Foreign,
    /// It came when the series was over.
    Late,
    /// The frame is there already.
    Duplicate,
    /// The image has a number that the series does not have.
    Number,
    /// The series has no such channel.
    Channel,
    /// It has another shape, or pixels of another type.
    Shape,
    /// Its bytes are packed in a way that they can't be, or to another size.
    Packing,
    /// It is longer than a slot.
    TooLong,
    /// There was no slot for it.
    NoRoom,
    /// The start of its series can't be read or recorded.
    Start,
}

impl SeriesRefusal {
    /// All of them.
    pub const ALL: [SeriesRefusal; 12] = [
        SeriesRefusal::Malformed,
        SeriesRefusal::Early,
        SeriesRefusal::Foreign,
        SeriesRefusal::Late,
        SeriesRefusal::Duplicate,
        SeriesRefusal::Number,
        SeriesRefusal::Channel,
        SeriesRefusal::Shape,
        SeriesRefusal::Packing,
        SeriesRefusal::TooLong,
        SeriesRefusal::NoRoom,
        SeriesRefusal::Start,
    ];

    /// The word in reports and records.
    pub const fn name(self) -> &'static str {
        match self {
            SeriesRefusal::Malformed => "malformed",
            SeriesRefusal::Early => "before the start",
            SeriesRefusal::Foreign => "of another series",
            SeriesRefusal::Late => "late",
            SeriesRefusal::Duplicate => "duplicate",
            SeriesRefusal::Number => "beyond the series",
            SeriesRefusal::Channel => "of an unknown channel",
            SeriesRefusal::Shape => "of another shape or type",
            SeriesRefusal::Packing => "wrongly packed",
            SeriesRefusal::TooLong => "longer than a slot",
            SeriesRefusal::NoRoom => "without room",
            SeriesRefusal::Start => "of a series that can't be recorded",
        }
    }
}

/// What came, in frames if nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesTally {
    /// Frames that were handed on.
    pub frames: u64,
    /// Their bytes, as they came.
    pub bytes: u64,
    /// Start messages of the series: more than one if it has several producers.
    pub starts: u64,
    /// End messages of the series.
    pub ends: u64,
    /// By [`SeriesRefusal::ALL`]. A message that can't be read, or is of another series, counts as one.
    refused: [u64; SeriesRefusal::ALL.len()],
    /// What was wrong with the last that was refused, other than late or there already.
    pub fault: Option<String>,
    /// Values beside pixels that can't be read: the file is without them.
    pub unread: u64,
    /// The fault of the last of these.
    pub unread_fault: Option<String>,
}

impl SeriesTally {
    /// How many were refused for this reason.
    pub fn refused(&self, why: SeriesRefusal) -> u64 {
        self.refused[why as usize]
    }

    /// Refused for any reason.
    pub fn refused_all(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Counts values that can't be read.
    pub(super) fn note_unread(&mut self, unread: &[SeriesError]) {
        self.unread += unread.len() as u64;
        if let Some(fault) = unread.last() {
            self.unread_fault = Some(fault.to_string());
        }
    }

    /// Counts one.
    pub(super) fn refuse(&mut self, why: SeriesRefusal, fault: Option<String>) {
        self.refused[why as usize] += 1;
        self.fault = fault.or(self.fault.take());
    }
}
