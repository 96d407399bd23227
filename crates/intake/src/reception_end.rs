//! The reasons for which a receiver takes no more packets.

/// The reason for which a receiver takes no more packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceptionEnd {
    /// A user or another program stopped the recording.
    Stopped,
    /// The stream was silent for the time that the user set.
    Silence,
    /// No packet of the stream came in the time from the start.
    NothingCame,
    /// The time after the first packet that the user set is over.
    Duration,
    /// The recording has the number of packets that the user set.
    Packets,
    /// No directory was left to store packets.
    NoDirectory,
    /// The network gave up.
    Network,
}

impl ReceptionEnd {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ReceptionEnd::Stopped => "stop",
            ReceptionEnd::Silence => "silence",
            ReceptionEnd::NothingCame => "no packet",
            ReceptionEnd::Duration => "duration",
            ReceptionEnd::Packets => "packets",
            ReceptionEnd::NoDirectory => "no directory",
            ReceptionEnd::Network => "network",
        }
    }

    /// Returns true if the user set this end: packets behind it are none of the recording.
    pub const fn is_planned(self) -> bool {
        matches!(self, ReceptionEnd::Stopped | ReceptionEnd::Duration | ReceptionEnd::Packets)
    }
}
