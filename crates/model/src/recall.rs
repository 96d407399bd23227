//! Files on tape: the rule by which a file's attributes show that its bytes are elsewhere, and the times until they
//! come back.

use std::path::PathBuf;

use crate::{Bytes, Nanos};

/// Smaller files may lie in the inode, without any block.
const INLINE_MOST: u64 = 4096;
/// Fewer blocks than this share of a file's size are a stub.
const STUB_SHARE: u64 = 64;

/// Returns true if a file of this size has no blocks, or hardly any: its bytes are on tape, or are holes. No attribute
/// of POSIX tells these apart.
pub const fn is_hollow(bytes: u64, allocated: u64) -> bool {
    bytes > INLINE_MOST && allocated < bytes / STUB_SHARE
}

/// A file that was read from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecalledFile {
    /// Its path, as the user names it.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// True if its bytes were not on disk before, as far as its blocks show.
    pub was_offline: bool,
    /// The number of files that were read at a time.
    pub at_once: u32,
    /// The times from the open on, or the fault in words.
    pub times: Result<RecallTimes, String>,
}

/// The times of a file's first and last byte, from just before its open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallTimes {
    /// Until the first byte was there.
    pub first: Nanos,
    /// Until the last byte was there.
    pub last: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_blocks_is_hollow_unless_it_fits_into_the_inode() {
        assert!(!is_hollow(4096, 0) && is_hollow(4097, 0));
        assert!(is_hollow(1 << 30, 4096), "a stub of one block");
        assert!(!is_hollow(1 << 20, 1 << 14), "a compressed file");
        assert!(!is_hollow(0, 0));
    }
}
