//! A recording that stays and that several processes make: what they say of it to each other.

use std::path::PathBuf;

use nilometer_model::{Nanos, Seed};
use serde::{Deserialize, Serialize};

/// What rank 0 decides of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SharingDecision {
    /// It is made by all.
    Asked(SharedRecording),
    /// How many lanes each rank has of it; or why there is no recording.
    Lanes(Result<Vec<u32>, String>),
    /// When the clocks of all are at zero, in nanoseconds since 1970, as rank 0's machine has it.
    Begins(u64),
    /// It begins; or why it does not.
    Prepared(Result<(), UnpreparedPart>),
}

/// What a process reports of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SharingReport {
    /// How many lanes it has; or why it can't have any, in words that name its machine.
    Lanes(Result<u32, String>),
    /// Everything is there, and its first frame may come; or why not.
    Prepared(Result<(), UnpreparedPart>),
    /// What it stored.
    Stored(StoredPart),
}

/// Why a process can't begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpreparedPart {
    /// In words that name its machine.
    pub why: String,
    /// What was asked for can't be, and nothing went wrong.
    pub asked_wrongly: bool,
}

/// What all processes record together, as rank 0 was asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedRecording {
    /// Of rank 0's program.
    pub version: String,
    /// The same in the journals of all lanes, and in no other's.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What is recorded, as JSON.
    pub instrument: String,
    /// For how long.
    pub duration: Nanos,
    /// So many frames at the most, of all streams.
    pub frames: Option<u64>,
    /// Of its data.
    pub seed: Seed,
}

/// What one process stored of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPart {
    /// The name of its machine.
    pub node: String,
    /// Frames that were due there.
    pub due: u64,
    /// How many the whole instrument had delivered by then.
    pub delivered: u64,
    /// Of those, how many are stored.
    pub stored: u64,
    /// Bytes that were written for them.
    pub written: u64,
    /// From the start until the last was stored.
    pub wall: Nanos,
    /// The longest from when a frame was due until it was acknowledged.
    pub longest: Nanos,
    /// Which recording its directories have: all parts have one number, or each its own.
    pub recording: u64,
    /// The number of its first frame as packets have it, where they were counted without a break.
    pub first_frame: Option<u64>,
    /// What became of frames that are not stored, in words.
    pub lost: Option<String>,
    /// How its buffer and its directories fared, a line each.
    pub lines: Vec<String>,
    /// What did not go well, beside frames that were lost.
    pub faults: Vec<String>,
    /// Where its part of the recording is.
    pub directories: Vec<PathBuf>,
}
