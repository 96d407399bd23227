//! Reads the CBOR (RFC 8949) of detector messages, with hard limits. The crate `minicbor` writes it.
//!
//! The crate could also read whole messages. Here, a receiver may have taken large byte strings out of a
//! message as it arrived, so that pixels get memory of their own ([`MessageBytes`]).
//!
//! This reader knows where those strings are missing, counts positions as in the message sent, and limits its
//! memory by the bytes received.

mod read;
mod scan;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use read::{CborItem, CborReader};
pub use scan::{Scanned, StringScanner};

use std::{fmt, ops::Range};

/// Limit on the depth of nested items. The reader skips deeper ones.
pub const DEPTH_MAX: u32 = 16;
/// Limit on the items of a message.
pub const ITEMS_MAX: u32 = 1 << 18;

/// Bytes taken out of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCut {
    /// Index of the remaining byte that follows them.
    pub at: usize,
    /// Number of bytes taken out.
    pub length: usize,
}

/// A message, or a part of one, possibly with long byte strings taken out.
#[derive(Debug, Clone, Copy)]
pub struct MessageBytes<'a> {
    /// The remaining bytes.
    pub bytes: &'a [u8],
    /// The byte strings taken out, in order of position.
    pub cuts: &'a [ByteCut],
}

impl<'a> MessageBytes<'a> {
    /// Wraps a message in one piece.
    pub fn whole(bytes: &'a [u8]) -> Self {
        MessageBytes { bytes, cuts: &[] }
    }
}

/// Position of a byte string of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataPlace {
    /// In this range of the remaining bytes, counted over all parts of the message.
    Within(Range<usize>),
    /// In a cut.
    Apart {
        /// Index into [`MessageBytes::cuts`], of all parts of a message together.
        cut: usize,
        /// Bytes of the cut.
        length: usize,
    },
}

impl DataPlace {
    /// Bytes of the string.
    pub fn length(&self) -> usize {
        match self {
            DataPlace::Within(range) => range.len(),
            DataPlace::Apart { length, .. } => *length,
        }
    }
}

/// The fault at a position of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CborFault {
    /// The message ends within an item.
    Short,
    /// RFC 8949 reserves this first byte.
    Reserved,
    /// More items than [`ITEMS_MAX`].
    Many,
    /// A piece of a string that has another type than the string.
    Piece,
    /// A break outside of any item of indefinite length.
    Break,
    /// Bytes after the end of the message.
    Trailing,
    /// The message is no map.
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

/// The error for a message that is no valid CBOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct CborError {
    /// Position from 0, in the message as sent.
    pub at: u64,
    /// The fault at that position.
    pub fault: CborFault,
}
