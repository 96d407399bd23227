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

impl ForeignFacts {
    /// The first fault because of which a reading lacks bytes or packets that came. Such a fault of a plain file is at
    /// its end, where the file may still grow.
    pub fn lacking(&self) -> Option<&str> {
        let is_lack = |fault: &&String| match self.kind {
            ForeignKind::Capture => true,
            ForeignKind::PlainFile => false,
            ForeignKind::Chunks | ForeignKind::Mark6 => LACKS.iter().any(|word| fault.contains(word)),
        };
        self.faults.iter().find(is_lack).map(String::as_str)
    }
}

/// Words of faults because of which chunks or blocks are not read to their end.
const LACKS: [&str; 4] = ["not read", "can't be read", "is cut", "shorter than"];

/// The files of a lane without a journal: all in one directory.
#[derive(Debug)]
pub(crate) struct ForeignLane {
    pub(crate) directory: PathBuf,
    /// In the order of [`crate::journal::FrameExtent::file`].
    pub(crate) files: Vec<PathBuf>,
    pub(crate) access: ReadAccess,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_chunks_that_are_not_read_to_their_end_are_lacking() {
        let of = |kind, faults: &[&str]| {
            let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
            let facts = ForeignFacts { kind, files: 1, in_step: true, faults, notes: Vec::new() };
            facts.lacking().map(str::to_owned)
        };
        let not_read = "a: no header of a block is at byte 5: 9 B from there on are not read";
        let twice = "3 blocks are there twice: the first one of each counts";
        assert_eq!(of(ForeignKind::Mark6, &[twice, not_read]).as_deref(), Some(not_read));
        assert_eq!(of(ForeignKind::Mark6, &[twice]), None);
        assert!(of(ForeignKind::Chunks, &["chunk 3 is cut: 1 kB of it are not there"]).is_some());
        assert!(of(ForeignKind::Capture, &["2 packets are left out"]).is_some());
        assert_eq!(of(ForeignKind::PlainFile, &["the last frame is cut"]), None);
    }
}
