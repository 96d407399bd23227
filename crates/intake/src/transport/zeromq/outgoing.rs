//! An outgoing message, in pieces that stay where they were made. All connections share the pixels; only the
//! kernel copies them.

use std::{fmt, io::IoSlice, sync::Arc};

use nilometer_wire::zmtp::part_header;

/// Bytes with several holders. They are freed when the last holder is done.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A piece of a message.
#[derive(Clone)]
pub enum OutgoingPiece {
    /// Bytes around pixels.
    Made(Vec<u8>),
    /// Pixels.
    Shared(SharedBytes),
}

/// A message as it is sent: the header of each part, and the part's pieces.
#[derive(Debug)]
pub struct OutgoingMessage {
    /// The sender's number for it.
    pub tag: u64,
    pieces: Vec<OutgoingPiece>,
    length: usize,
}

impl OutgoingPiece {
    fn bytes(&self) -> &[u8] {
        match self {
            OutgoingPiece::Made(bytes) => bytes,
            OutgoingPiece::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

impl fmt::Debug for OutgoingPiece {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} B", self.bytes().len())
    }
}

impl OutgoingMessage {
    /// Makes a message of these parts, in order.
    pub fn new(tag: u64, parts: Vec<Vec<OutgoingPiece>>) -> Self {
        let last = parts.len().saturating_sub(1);
        let mut pieces = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            let length = part.iter().map(|piece| piece.bytes().len() as u64).sum();
            pieces.push(OutgoingPiece::Made(part_header(length, number < last)));
            pieces.extend(part);
        }
        let length = pieces.iter().map(|piece| piece.bytes().len()).sum();
        OutgoingMessage { tag, pieces, length }
    }

    /// A copy of these parts, each of pieces that need not touch.
    pub fn copied(parts: &[&[&[u8]]]) -> Self {
        let part = |part: &&[&[u8]]| vec![OutgoingPiece::Made(part.concat())];
        OutgoingMessage::new(0, parts.iter().map(part).collect())
    }

    /// Length of the message in bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Bytes of its pixels.
    pub fn pixels(&self) -> u64 {
        let is_shared = |piece: &&OutgoingPiece| matches!(piece, OutgoingPiece::Shared(_));
        self.pieces.iter().filter(is_shared).map(|piece| piece.bytes().len() as u64).sum()
    }

    /// The bytes after the first `begin`.
    pub(super) fn behind(&self, begin: usize) -> Vec<IoSlice<'_>> {
        let mut before = begin;
        let mut slices = Vec::with_capacity(self.pieces.len());
        for bytes in self.pieces.iter().map(OutgoingPiece::bytes) {
            if before < bytes.len() {
                slices.push(IoSlice::new(&bytes[before..]));
            }
            before = before.saturating_sub(bytes.len());
        }
        slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_goes_on_behind_whatever_was_sent_of_it() {
        let shared: SharedBytes = Arc::new(vec![7; 300]);
        let parts = vec![
            vec![OutgoingPiece::Made(b"a".to_vec()), OutgoingPiece::Made(Vec::new())],
            vec![OutgoingPiece::Shared(shared.clone()), OutgoingPiece::Made(b"end".to_vec())],
        ];
        let message = OutgoingMessage::new(5, parts);
        let behind =
            |begin| message.behind(begin).iter().flat_map(|piece| piece.to_vec()).collect::<Vec<u8>>();
        let all = behind(0);
        // RFC 23: flags, with 1 for more and 2 for a long size; the size in 1 or 8 bytes.
        let expected = [&b"\x01\x01a\x02\0\0\0\0\0\0\x01\x2f"[..], &[7; 300], b"end"].concat();
        assert_eq!((all.as_slice(), message.length()), (&expected[..], expected.len()));
        for begin in 0..=expected.len() {
            assert!(behind(begin) == expected[begin..], "behind {begin}");
        }
        drop(message);
        assert_eq!(Arc::strong_count(&shared), 1, "it is given back");
    }
}
