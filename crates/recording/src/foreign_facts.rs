//! Facts about a recording without a journal, as far as its files show them.

use std::{fmt, path::PathBuf};

use crate::recording_file::ReadAccess;

/// The way in which another program stored a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKind {
    /// One file with one frame after the other.
    PlainFile,
    /// Chunks `NAME.00000000` and on, scattered over directories, as `FlexBuff` and jive5ab write them.
    Chunks,
    /// Files with numbered blocks, one on each disk of a Mark 6 group.
    Mark6,
    /// Captured packets: pcap or pcapng.
    Capture,
}

impl ForeignKind {
    /// Its word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ForeignKind::PlainFile => "file",
            ForeignKind::Chunks => "vbs",
            ForeignKind::Mark6 => "mark6",
            ForeignKind::Capture => "capture",
        }
    }
}

impl fmt::Display for ForeignKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignKind::PlainFile => "a plain file",
            ForeignKind::Chunks => "chunks as of FlexBuff (vbs)",
            ForeignKind::Mark6 => "blocks as of Mark 6",
            ForeignKind::Capture => "captured packets",
        })
    }
}

/// Facts about a recording without a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFacts {
    /// The way in which it is stored.
    pub kind: ForeignKind,
    /// Number of its files.
    pub files: u64,
    /// True if frames begin at multiples of their size, as far as opening it showed.
    pub in_step: bool,
    /// Faults of the files that opening them showed, with their places.
    pub faults: Vec<String>,
    /// Other findings that a reader of the recording should know.
    pub notes: Vec<String>,
}

/// The files of a lane without a journal: all in one directory.
#[derive(Debug)]
pub(crate) struct ForeignLane {
    pub(crate) directory: PathBuf,
    /// In the order of [`crate::journal::FrameExtent::file`].
    pub(crate) files: Vec<PathBuf>,
    pub(crate) access: ReadAccess,
}
