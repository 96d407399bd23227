//! How a recording's frames are distributed over files.

use serde::{Deserialize, Serialize};

use crate::Capability;

/// A way to distribute frames over files. [`Storing::kind`] describes all its properties in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storing {
    /// Files of N frames, one after the other; each writer has its own.
    #[default]
    Files,
    /// A growing file for each writer. The writer reserves and truncates nothing and always writes at the
    /// end, so that append-only storage works.
    Growing,
    /// One file for all writers (N-to-1): each frame at its number times the distance between frames.
    Shared,
    /// Chunks of N consecutive frames, numbered over all writers as VLBI recorders do: `<name>.00000000` and
    /// on. In the order of their numbers, from all directories, they are one stream without gaps.
    Scattered,
    /// A file of a fixed size for each writer. A full file is overwritten from its beginning: only the latest
    /// frames stay.
    #[serde(skip)]
    Ring,
    /// A file for each position of a scan, by any writer. Frames `p x N` to `p x N + N - 1` are in
    /// `<name>.<p, 8 digits>.<format>`; a position without frames has no file.
    Positions,
}

/// The pattern of the names of a recording's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileNames {
    /// The names that [`Storing`] describes.
    #[default]
    Recorder,
    /// The names that DECTRIS' file writer gives: `<name>_data_000001.h5` and on, below `<name>_master.h5`.
    Dectris,
}

/// The properties of a way of storing, for code that treats all ways alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoringKind {
    /// Its word in instruments and on the command line.
    pub name: &'static str,
    /// Its description for people.
    pub words: &'static str,
    /// True if frames go into many files, N of them each.
    pub many_files: bool,
    /// The number in the names of files, if each writer writes files of consecutive frames.
    pub chunks: Option<ChunkNumber>,
    /// True if all writers write one file.
    pub one_for_all: bool,
    /// True if a full file is overwritten.
    pub overwrites: bool,
}

/// The number in the name of a file of consecutive frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkNumber {
    /// The number of files before it, over all writers.
    InOrder,
    /// The number of its first frame, divided by the frames of a file.
    Position,
}

/// The defaults: each writer has its own file, or its own part of the only file.
const OWN: StoringKind = StoringKind {
    name: "",
    words: "",
    many_files: false,
    chunks: None,
    one_for_all: false,
    overwrites: false,
};

impl Storing {
    /// The ways that an instrument may choose.
    pub const ALL: [Storing; 5] =
        [Storing::Files, Storing::Growing, Storing::Shared, Storing::Scattered, Storing::Positions];
    /// All ways, in the order of their numbers in journals.
    pub const STORED: [Storing; 6] = [
        Storing::Files,
        Storing::Growing,
        Storing::Shared,
        Storing::Scattered,
        Storing::Ring,
        Storing::Positions,
    ];

    /// Its properties.
    pub const fn kind(self) -> StoringKind {
        match self {
            Storing::Files => StoringKind {
                name: "files",
                words: "one file after the other, per writer",
                many_files: true,
                ..OWN
            },
            Storing::Growing => StoringKind { name: "growing", words: "one growing file a writer", ..OWN },
            Storing::Shared => StoringKind {
                name: "shared",
                words: "one file that all writers share (N-to-1)",
                one_for_all: true,
                ..OWN
            },
            Storing::Scattered => StoringKind {
                name: "scattered",
                words: "chunks, scattered over all directories",
                many_files: true,
                chunks: Some(ChunkNumber::InOrder),
                ..OWN
            },
            Storing::Ring => StoringKind {
                name: "ring",
                words: "a ring of the latest frames a writer",
                overwrites: true,
                ..OWN
            },
            Storing::Positions => StoringKind {
                name: "positions",
                words: "a file for each position of a scan",
                many_files: true,
                chunks: Some(ChunkNumber::Position),
                ..OWN
            },
        }
    }

    /// The capabilities that storage must have for it, with this many frames in a file.
    ///
    /// Storage of any kind takes files written from beginning to end. Other files need writes at any
    /// position, and writes after a sync.
    pub const fn needs(self, frames_per_file: Option<u64>) -> &'static [Capability] {
        match (self, frames_per_file) {
            (Storing::Files | Storing::Scattered, _) | (Storing::Positions, Some(1)) => &[Capability::Write],
            // A missing frame of a position leaves its place empty.
            (Storing::Growing | Storing::Shared | Storing::Ring | Storing::Positions, _) => {
                &[Capability::WriteAnywhere, Capability::Sync]
            }
        }
    }

    /// True if frames go into many files, N of them each.
    pub const fn is_many_files(self) -> bool {
        self.kind().many_files
    }

    /// True if each writer writes files of consecutive frames, numbered over all writers.
    pub const fn is_chunked(self) -> bool {
        self.kind().chunks.is_some()
    }

    /// Its word in instruments and on the command line.
    pub const fn name(self) -> &'static str {
        self.kind().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own_which_is_read_back() {
        for (number, storing) in Storing::STORED.into_iter().enumerate() {
            assert_eq!(storing as usize, number, "journals have this number for it");
            let read: Result<Storing, _> = serde_json::from_value(storing.name().into());
            assert_eq!(read.ok(), Storing::ALL.contains(&storing).then_some(storing));
        }
    }
}
