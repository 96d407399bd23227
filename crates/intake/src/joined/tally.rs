//! What came of values that are to be joined to frames, and why some are joined to none.

use nilometer_hdf5::TEXT_BYTES;

use crate::transport::zeromq::RefusedPeers;

/// Why a value, or all of a message, is joined to no frame. It is counted, and never ends a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JoinRefusal {
    /// No JSON object with the number of a frame.
    Malformed,
    /// The files have no place for a value of this name.
    UnknownName,
    /// The recorder or the detector says what has this name.
    ReservedName,
    /// A list or an object.
    NoValue,
    /// A text, where there are numbers.
    NoNumber,
    /// A fraction, where the layout wants whole numbers.
    NoWholeNumber,
    /// The recording has no such frame.
    UnknownFrame,
    /// Too many values wait for their frames.
    NoRoom,
    /// The file of its frame was closed, and has no column of this name.
    TooLate,
}

impl JoinRefusal {
    /// All of them.
    pub const ALL: [JoinRefusal; 9] = [
        JoinRefusal::Malformed,
        JoinRefusal::UnknownName,
        JoinRefusal::ReservedName,
        JoinRefusal::NoValue,
        JoinRefusal::NoNumber,
        JoinRefusal::NoWholeNumber,
        JoinRefusal::UnknownFrame,
        JoinRefusal::NoRoom,
        JoinRefusal::TooLate,
    ];

    /// The words in reports.
    pub const fn name(self) -> &'static str {
        match self {
            JoinRefusal::Malformed => "no JSON object with a `frame`",
            JoinRefusal::UnknownName => "of names that the file has no place for",
            JoinRefusal::ReservedName => "of names that the recorder or the detector has itself",
            JoinRefusal::NoValue => "no numbers or texts",
            JoinRefusal::NoNumber => "texts in a column of numbers",
            JoinRefusal::NoWholeNumber => "fractions in a column of whole numbers",
            JoinRefusal::UnknownFrame => "of frames that are not there",
            JoinRefusal::NoRoom => "too many that waited for frames",
            JoinRefusal::TooLate => "behind the end of their file",
        }
    }
}

/// Names that are shown in a line, at the most.
const SHOWN: usize = 8;

/// What came of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinedTally {
    /// Messages, or lines, that were understood.
    pub messages: u64,
    /// Values that were joined to frames.
    pub joined: u64,
    /// Names of which some were.
    pub names: Vec<String>,
    /// Texts that were longer than a column has room for: the begin of each is taken.
    pub cut: u64,
    /// By [`JoinRefusal::ALL`].
    refused: [u64; JoinRefusal::ALL.len()],
    /// The last that was refused, in words.
    pub fault: Option<String>,
    /// Connections that were not heard, because others are the senders.
    pub not_heard: RefusedPeers,
    /// Which datasets frames went into, if there are several.
    pub datasets: Option<super::DatasetTally>,
}

impl JoinedTally {
    /// How many were refused for this reason.
    pub fn refused(&self, why: JoinRefusal) -> u64 {
        self.refused[why as usize]
    }

    /// A line of it, if any came.
    pub fn line(&self) -> Option<String> {
        let refused: Vec<_> = JoinRefusal::ALL
            .into_iter()
            .map(|why| (self.refused(why), why.name()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let is_heard = self.not_heard.connections == 0;
        if self.joined == 0 && self.messages == 0 && self.cut == 0 && refused.is_empty() && is_heard {
            return None;
        }
        let shown: Vec<_> = self.names.iter().take(SHOWN).map(String::as_str).collect();
        let more = self.names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = if shown.is_empty() { String::new() } else { format!(" of {}{more}", shown.join(", ")) };
        let cut = match self.cut {
            0 => String::new(),
            cut => format!("; cut to {TEXT_BYTES} B: {cut}"),
        };
        let not_heard = match &self.not_heard {
            none if none.connections == 0 => String::new(),
            some => format!("; not heard: {some}; name all senders with --allow"),
        };
        let joined = format!("{} values{names}{cut}{not_heard}", self.joined);
        if refused.is_empty() {
            return Some(joined);
        }
        let fault = self.fault.as_ref().map_or_else(String::new, |fault| format!("; the last: {fault}"));
        Some(format!("{joined}; refused: {}{fault}", refused.join(", ")))
    }

    /// All of it, if there is something to be said.
    pub fn text(&self) -> Option<String> {
        let datasets = self.datasets.as_ref().map(super::DatasetTally::line);
        self.line().into_iter().chain(datasets).reduce(|values, datasets| format!("{values}; {datasets}"))
    }

    /// So many more were refused.
    pub(super) fn refuse(&mut self, why: JoinRefusal, count: u64, fault: String) {
        self.refused[why as usize] += count;
        self.fault = Some(fault);
    }
}
