//! CBOR (RFC 8949) as far as messages of detectors use it, read with hard limits. The crate `minicbor` writes
//! it.
//!
//! That crate would do for the reading of whole messages too. Here large byte strings may have been taken out of a message while
//! it came, so that pixels lie in memory of their own ([`MessageBytes`]); the reader knows where they are missing, counts
//! places as they were in the message that was sent, and bounds what it makes by what came.

mod read;
mod scan;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use read::{CborItem, CborReader};
pub use scan::{Scanned, StringScanner};

use std::{fmt, ops::Range};

/// Items within items that are kept, at the most: what lies deeper is passed over.
pub const DEPTH_MAX: u32 = 16;
/// Items of a message, at the most.
pub const ITEMS_MAX: u32 = 1 << 18;

/// Bytes of a message that lie elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCut {
    /// In front of which of the bytes that are left they belong.
    pub at: usize,
    /// How many they are.
    pub length: usize,
}

/// A message, or a part of one, of which long byte strings may lie elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct MessageBytes<'a> {
    /// All that was not taken out.
    pub bytes: &'a [u8],
    /// What was taken out, in the order of its places.
    pub cuts: &'a [ByteCut],
}

impl<'a> MessageBytes<'a> {
    /// A message that lies in one piece.
    pub fn whole(bytes: &'a [u8]) -> Self {
        MessageBytes { bytes, cuts: &[] }
    }
}

/// Where a byte string of a message lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataPlace {
    /// In these of the bytes that were left in the message, its parts one behind the other.
    Within(Range<usize>),
    /// It is the cut of this index.
    Apart {
        /// Index into [`MessageBytes::cuts`], of all parts of a message together.
        cut: usize,
        /// Its bytes.
        length: usize,
    },
}

impl DataPlace {
    /// How many bytes it has.
    pub fn length(&self) -> usize {
        match self {
            DataPlace::Within(range) => range.len(),
            DataPlace::Apart { length, .. } => *length,
        }
    }
}

/// What is wrong at a place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CborFault {
    /// It ends within an item.
    Short,
    /// A first byte that RFC 8949 gives no meaning.
    Reserved,
    /// More items than [`ITEMS_MAX`].
    Many,
    /// A piece of a string that is no string of its kind.
    Piece,
    /// An end where nothing of indefinite length is open.
    Break,
    /// Bytes behind its end.
    Trailing,
    /// Another item than a map.
    NoMap,
}

impl fmt::Display for CborFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CborFault::Short => formatter.write_str("the message ends within an item"),
            CborFault::Reserved => formatter.write_str("no CBOR item begins with this byte"),
            CborFault::Many => write!(formatter, "more than {ITEMS_MAX} items"),
            CborFault::Piece => formatter.write_str("a piece of a string that is none"),
            CborFault::Break => formatter.write_str("an end of nothing"),
            CborFault::Trailing => formatter.write_str("bytes behind the end of the message"),
            CborFault::NoMap => formatter.write_str("a message is a map, and this is none"),
        }
    }
}

/// A message that is no CBOR as detectors send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct CborError {
    /// Counted from 0, in the message as it was sent.
    pub at: u64,
    /// What is wrong there.
    pub fault: CborFault,
}
