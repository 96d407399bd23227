//! The bytes of a file in memory: sparse, and cheap to copy, since copies share chunks that neither has
//! written since.

use std::{collections::BTreeMap, sync::Arc};

/// The bytes of a chunk: large enough that a look-up costs little beside copying, small enough to share well.
const CHUNK: u64 = 64 * 1024;

/// Bytes from 0 to a size; unwritten bytes read as zeros. A chunk ends at its last written byte.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    size: u64,
    stored: u64,
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
}

impl Content {
    /// Returns the file's size.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes that take up memory.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Copies existing bytes from `offset` on and returns their number.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let length = self.size.saturating_sub(offset).min(into.len() as u64) as usize;
        for piece in pieces(offset, length) {
            let target = &mut into[piece.start..piece.start + piece.length];
            let chunk = self.chunks.get(&piece.chunk).map_or(&[][..], |chunk| chunk);
            let there = chunk.get(piece.within..).unwrap_or_default();
            let copied = there.len().min(target.len());
            target[..copied].copy_from_slice(&there[..copied]);
            target[copied..].fill(0);
        }
        length
    }

    /// Puts bytes at `offset`; the size grows with them. Writing no bytes changes nothing.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for piece in pieces(offset, bytes.len()) {
            let chunk = Arc::make_mut(self.chunks.entry(piece.chunk).or_default());
            let before = chunk.len();
            put(chunk, piece.within, &bytes[piece.start..piece.start + piece.length]);
            self.stored += (chunk.len() - before) as u64;
        }
        if !bytes.is_empty() {
            self.size = self.size.max(offset + bytes.len() as u64);
        }
    }

    /// Returns the additional bytes stored after such a write.
    pub(crate) fn growth(&self, offset: u64, length: usize) -> u64 {
        let stored = |chunk| self.chunks.get(&chunk).map_or(0, |chunk| chunk.len());
        pieces(offset, length)
            .map(|piece| (piece.within + piece.length).saturating_sub(stored(piece.chunk)) as u64)
            .sum()
    }

    /// Truncates the file, or extends it with zeros.
    pub(crate) fn truncate(&mut self, size: u64) {
        self.size = size;
        for (_, gone) in self.chunks.split_off(&size.div_ceil(CHUNK)) {
            self.stored -= gone.len() as u64;
        }
        let within = (size % CHUNK) as usize;
        if within > 0
            && let Some(last) = self.chunks.get_mut(&(size / CHUNK))
            && last.len() > within
        {
            self.stored -= (last.len() - within) as u64;
            Arc::make_mut(last).truncate(within);
        }
    }
}

fn put(chunk: &mut Vec<u8>, within: usize, bytes: &[u8]) {
    if chunk.len() < within {
        chunk.resize(within, 0);
    }
    let over = bytes.len().min(chunk.len() - within);
    chunk[within..within + over].copy_from_slice(&bytes[..over]);
    chunk.extend_from_slice(&bytes[over..]);
}

/// The part of a range within one chunk.
struct Piece {
    chunk: u64,
    within: usize,
    start: usize,
    length: usize,
}

fn pieces(offset: u64, length: usize) -> impl Iterator<Item = Piece> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let at = offset + start as u64;
        let within = (at % CHUNK) as usize;
        let piece =
            Piece { chunk: at / CHUNK, within, start, length: (length - start).min(CHUNK as usize - within) };
        start += piece.length;
        (piece.length > 0).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
            #[test]
            fn it_is_a_vector_of_bytes(changes in prop::collection::vec((any::<bool>(), 0..200_000_u64, 0..90_000_usize, any::<u8>()), 1..12)) {
                let (mut content, mut plain) = (Content::default(), Vec::<u8>::new());
                for (cut, offset, length, byte) in changes {
                    if cut {
                        content.truncate(offset);
                        plain.resize(offset as usize, 0);
                        continue;
                    }
                    let end = offset as usize + length;
                    let growth = content.growth(offset, length);
                    let before = content.stored();
                    content.write(offset, &vec![byte; length]);
                    prop_assert!(content.stored() - before >= growth);
                    if length > 0 && plain.len() < end {
                        plain.resize(end, 0);
                    }
    if length > 0 {
                        plain[offset as usize..end].fill(byte);
                    }
                }
                let mut read = vec![7; plain.len() + 5];
                prop_assert_eq!(content.read(0, &mut read), plain.len());
                prop_assert!(read[..plain.len()] == plain[..]);
                prop_assert_eq!(content.size(), plain.len() as u64);
            }
        }

    #[test]
    fn a_file_of_terabytes_takes_no_memory_until_it_is_written() {
        let mut content = Content::default();
        content.truncate(1 << 40);
        content.write(1 << 41, b"end");
        assert_eq!((content.size(), content.stored()), ((1 << 41) + 3, 3));
    }
}
