//! Messages about a recording that stays and that several processes make together.

use std::{net::SocketAddr, path::PathBuf};

use nilometer_model::{Nanos, Seed};
use serde::{Deserialize, Serialize};

/// Rank 0's decision about the recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SharingDecision {
    /// All processes make this recording.
    Asked(SharedRecording),
    /// The number of lanes of each rank, or the reason why there is no recording.
    Lanes(Result<Vec<u32>, String>),
    /// The inode of the directory that rank 0 has made for all, or the reason why there is none.
    Directory(Result<u64, String>),
    /// Time zero of all clocks, in nanoseconds since 1970 on rank 0's machine.
    Begins(u64),
    /// The addresses at which the processes pass on starts and ends of a series, in the order of ranks. Or the reason
    /// why there is no recording.
    Relays(Result<Vec<SocketAddr>, UnpreparedPart>),
    /// The recording begins, or the reason why it does not.
    Prepared(Result<(), UnpreparedPart>),
}

/// A process's report about the recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SharingReport {
    /// The process's number of lanes, or the reason why it can have none, which names its machine.
    Lanes(Result<u32, String>),
    /// The address at which others pass on starts and ends of a series to the process, or the reason why it has none.
    Relay(Result<SocketAddr, UnpreparedPart>),
    /// Everything is ready for the first frame, or the reason why it is not.
    Prepared(Result<(), UnpreparedPart>),
    /// The part that the process stored.
    Stored(StoredPart),
}

/// The reason why a process can't begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpreparedPart {
    /// The reason, which names the machine.
    pub why: String,
    /// True if the request itself is impossible, and nothing failed.
    pub asked_wrongly: bool,
}

/// The recording that rank 0 was told to make with all processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedRecording {
    /// Version of rank 0's program.
    pub version: String,
    /// Identifies the recording in the journals of all its lanes, and nowhere else.
    pub id: u64,
    /// The recording's name.
    pub name: String,
    /// True if frames come as messages of a series, of which each process gets some.
    pub is_series: bool,
    /// A random number that these processes know and nobody else.
    pub key: u64,
    /// The instrument, as JSON.
    pub instrument: String,
    /// The recording's duration.
    pub duration: Nanos,
    /// Maximum number of frames of all streams together.
    pub frames: Option<u64>,
    /// Seed of the data.
    pub seed: Seed,
}

/// The part of the recording that one process stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPart {
    /// The name of its machine.
    pub node: String,
    /// Frames due at this process.
    pub due: u64,
    /// Frames that the whole instrument had delivered by then.
    pub delivered: u64,
    /// Frames stored of those due.
    pub stored: u64,
    /// Bytes written for these frames.
    pub written: u64,
    /// Time from the start until the last frame was stored.
    pub wall: Nanos,
    /// Longest time between a frame's due time and its acknowledgement.
    pub longest: Nanos,
    /// Number of the recording in the process's directories. All parts may share one number, or have their own.
    pub recording: u64,
    /// Number of the first frame according to its packets, if the packets were counted without a break.
    pub first_frame: Option<u64>,
    /// The fate of frames that are not stored, in words.
    pub lost: Option<String>,
    /// The state of the process's buffer and directories, one line each.
    pub lines: Vec<String>,
    /// Problems other than lost frames.
    pub faults: Vec<String>,
    /// True if its storage hung, so that writes may still come.
    pub hung: bool,
    /// The directories with its part of the recording.
    pub directories: Vec<PathBuf>,
}
