//! Counters for the messages of a series.

use nilometer_wire::series::{SeriesAnnouncement, SeriesError};

use super::description::unread_values;

/// Why a message or a frame in it is not recorded. It is counted, and never ends a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesRefusal {
    /// The message can't be decoded.
    Malformed,
    /// An image without a start of its series, which was late or missing.
    Early,
    /// It arrived during another series, without a start of its own.
    Foreign,
    /// It arrived when the series was over.
    Late,
    /// The frame is there already.
    Duplicate,
    /// The image has a number that the series does not have.
    Number,
    /// The series has no such channel.
    Channel,
    /// It has another shape, or pixels of another type.
    Shape,
    /// Its packing is invalid, or it unpacks to another size.
    Packing,
    /// It is longer than a slot.
    TooLong,
    /// There was no slot for it.
    NoRoom,
    /// The start of its series can't be decoded or recorded.
    Start,
}

impl SeriesRefusal {
    /// All reasons.
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

/// Counts of a series, in frames unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesTally {
    /// Frames handed on.
    pub frames: u64,
    /// Their bytes as received.
    pub bytes: u64,
    /// Start messages of the series: more than one if it has several producers.
    pub starts: u64,
    /// End messages of the series.
    pub ends: u64,
    /// Counts by [`SeriesRefusal::ALL`]. A message that can't be decoded, or belongs to another series,
    /// counts as one.
    refused: [u64; SeriesRefusal::ALL.len()],
    /// The fault of the last refused one, except those that were late or duplicates.
    pub fault: Option<String>,
    /// Values beside pixels that can't be read: they are not in their place in the file.
    pub unread: u64,
    /// The fault of the last of these.
    pub unread_fault: Option<String>,
}

impl SeriesTally {
    /// Number refused for this reason.
    pub fn refused(&self, why: SeriesRefusal) -> u64 {
        self.refused[why as usize]
    }

    /// Number refused for any reason.
    pub fn refused_all(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Counts values that can't be decoded.
    pub(super) fn note_unread(&mut self, unread: &[SeriesError]) {
        self.unread += unread.len() as u64;
        if let Some(fault) = unread.last() {
            self.unread_fault = Some(fault.to_string());
        }
    }

    /// Counts the values of a start that can't be read.
    pub(super) fn note_start(&mut self, announced: &SeriesAnnouncement) {
        self.note_unread(&announced.unread);
        self.note_unread(&unread_values(&announced.fields));
    }

    /// Counts one refusal.
    pub(super) fn refuse(&mut self, why: SeriesRefusal, fault: Option<String>) {
        self.refused[why as usize] += 1;
        self.fault = fault.or(self.fault.take());
    }
}
