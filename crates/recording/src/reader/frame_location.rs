//! The location of a frame in a recording.

use crate::journal::FrameExtent;

/// Location of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLocation {
    /// Index of the lane's head in [`Index::heads`](super::Index::heads).
    pub lane: usize,
    /// Position in the lane's files.
    pub extent: FrameExtent,
}

impl FrameLocation {
    /// Index of the file in the lane, or of the part if the lane has only one file.
    pub fn file(&self) -> u64 {
        self.extent.file
    }
}
