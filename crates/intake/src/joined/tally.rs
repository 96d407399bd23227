//! Counts of values to be joined to frames, and why some are joined to none.

use nilometer_hdf5::TEXT_BYTES;

use crate::transport::zeromq::RefusedPeers;

/// Why a value or a whole message is joined to no frame. It is counted, and never ends a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JoinRefusal {
    /// It is no JSON object with the number of a frame.
    Malformed,
    /// The files have no place for a value of this name.
    UnknownName,
    /// The name is reserved for the recorder or the detector.
    ReservedName,
    /// It is a list or an object.
    NoValue,
    /// It is a text, and its column has numbers.
    NoNumber,
    /// It is a fraction, and the layout requires whole numbers.
    NoWholeNumber,
    /// The recording has no such frame.
    UnknownFrame,
    /// Too many values wait for their frames.
    NoRoom,
    /// The file of its frame was closed, and has no column of this name.
    TooLate,
}

impl JoinRefusal {
    /// All reasons.
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
            JoinRefusal::UnknownName => "with a name that has no place in the file",
            JoinRefusal::ReservedName => "with a name that the recorder or the detector uses",
            JoinRefusal::NoValue => "no numbers or texts",
            JoinRefusal::NoNumber => "texts in a column of numbers",
            JoinRefusal::NoWholeNumber => "fractions in a column of whole numbers",
            JoinRefusal::UnknownFrame => "for frames that are not there",
            JoinRefusal::NoRoom => "too many that waited for frames",
            JoinRefusal::TooLate => "behind the end of their file",
        }
    }
}

/// Maximum number of names shown in a line.
const SHOWN: usize = 8;

/// The counts of joined values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinedTally {
    /// Valid messages or lines.
    pub messages: u64,
    /// Values joined to frames.
    pub joined: u64,
    /// The names of joined values.
    pub names: Vec<String>,
    /// Texts that were too long for a column and were cut.
    pub cut: u64,
    /// Counts by [`JoinRefusal::ALL`].
    refused: [u64; JoinRefusal::ALL.len()],
    /// The last refusal, in words.
    pub fault: Option<String>,
    /// Unheard connections, because other addresses are the senders.
    pub not_heard: RefusedPeers,
    /// Frames in each dataset, if there are several.
    pub datasets: Option<super::DatasetTally>,
}

impl JoinedTally {
    /// Number refused for this reason.
    pub fn refused(&self, why: JoinRefusal) -> u64 {
        self.refused[why as usize]
    }

    /// Describes the counts in one line. `None` if there are none.
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

    /// Describes all counts, including those of datasets. `None` if there is nothing to report.
    pub fn text(&self) -> Option<String> {
        let datasets = self.datasets.as_ref().map(super::DatasetTally::line);
        self.line().into_iter().chain(datasets).reduce(|values, datasets| format!("{values}; {datasets}"))
    }

    /// Counts refusals.
    pub(super) fn refuse(&mut self, why: JoinRefusal, count: u64, fault: String) {
        self.refused[why as usize] += count;
        self.fault = Some(fault);
    }
}
