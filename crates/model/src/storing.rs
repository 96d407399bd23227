//! Into which files a recording's frames go.

use serde::{Deserialize, Serialize};

use crate::Capability;

/// See the module. What is to be known of a way of storing stands in [`Storing::kind`], once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storing {
    /// Files of N frames, one after the other; each writer has its own.
    #[default]
    Files,
    /// A file for each writer that grows with the frames: nothing is reserved or cut off, and each write begins where the
    /// file ends, so that storage which can only append takes it.
    Growing,
    /// One file for all writers (N-to-1): each frame at its number times the distance between frames.
    Shared,
    /// Chunks of N consecutive frames, numbered over all writers as VLBI recorders do: `<name>.00000000` and on. In the
    /// order of their numbers, whichever directories they are in, they are one stream without gaps.
    Scattered,
    /// A file of a fixed size for each writer, which is written again from its beginning when it is full: only the latest
    /// frames stay.
    #[serde(skip)]
    Ring,
    /// A file for each position of a scan, whichever writer has it: frames `p x N` to `p x N + N - 1` are in
    /// `<name>.<p, 8 digits>.<format>`, and of a position without frames there is none.
    Positions,
}

/// What a way of storing is, for those who need not know which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoringKind {
    /// The word in instruments and on the command line.
    pub name: &'static str,
    /// What is said of it to people.
    pub words: &'static str,
    /// Frames go into many files, N of them each.
    pub many_files: bool,
    /// Which number is in the names of files of consecutive frames, if that is what each writer writes.
    pub chunks: Option<ChunkNumber>,
    /// All writers write one file.
    pub one_for_all: bool,
    /// What is there is overwritten when the file is full.
    pub overwrites: bool,
}

/// The number in the name of a file of consecutive frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkNumber {
    /// How many such files are before it, those of all writers counted.
    InOrder,
    /// That of its first frame, divided by the frames of a file.
    Position,
}

/// A file, or a part of the only one, of the writer's own.
const OWN: StoringKind = StoringKind {
    name: "",
    words: "",
    many_files: false,
    chunks: None,
    one_for_all: false,
    overwrites: false,
};

impl Storing {
    /// Those that an instrument may ask for.
    pub const ALL: [Storing; 5] =
        [Storing::Files, Storing::Growing, Storing::Shared, Storing::Scattered, Storing::Positions];
    /// All, in the order of the numbers that journals have for them.
    pub const STORED: [Storing; 6] = [
        Storing::Files,
        Storing::Growing,
        Storing::Shared,
        Storing::Scattered,
        Storing::Ring,
        Storing::Positions,
    ];

    /// What it is.
    pub const fn kind(self) -> StoringKind {
        match self {
            Storing::Files => StoringKind {
                name: "files",
                words: "files of a writer's own, one after the other",
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

    /// What storage must be able to do for it, where a file has so many frames. Files that are written from their beginning to
    /// their end are put anywhere; others are written in places, and go on behind a sync.
    pub const fn needs(self, frames_per_file: Option<u64>) -> &'static [Capability] {
        match (self, frames_per_file) {
            (Storing::Files | Storing::Scattered, _) | (Storing::Positions, Some(1)) => &[Capability::Write],
            // What is missing of a position leaves its place empty.
            (Storing::Growing | Storing::Shared | Storing::Ring | Storing::Positions, _) => {
                &[Capability::WriteAnywhere, Capability::Sync]
            }
        }
    }

    /// Frames go into many files, N of them each.
    pub const fn is_many_files(self) -> bool {
        self.kind().many_files
    }

    /// Each writer writes files of consecutive frames, which are numbered over all writers.
    pub const fn is_chunked(self) -> bool {
        self.kind().chunks.is_some()
    }

    /// The word in instruments and on the command line.
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
