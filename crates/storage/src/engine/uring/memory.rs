//! The memory that the kernel keeps mapped for a ring: arenas, cut into pieces of a size it accepts.

use std::sync::Arc;

use crate::Arena;

/// The kernel takes at most 1 GiB in one registered buffer.
const PIECE_BYTES: usize = 1 << 30;

/// Registered arenas, which live as long as this value.
#[derive(Debug, Default)]
pub(super) struct Memory {
    arenas: Vec<Arc<Arena>>,
    /// Sorted by address.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    index: u16,
}

impl Memory {
    /// Returns true if the arena is registered.
    pub(super) fn holds(&self, arena: &Arc<Arena>) -> bool {
        self.arenas.iter().any(|held| Arc::ptr_eq(held, arena))
    }

    /// Adds an arena.
    pub(super) fn push(&mut self, arena: Arc<Arena>) {
        self.arenas.push(arena);
    }

    /// Removes the last arena.
    pub(super) fn pop(&mut self) {
        self.arenas.pop();
    }

    /// Returns the regions to register, in the order of the kernel's indices.
    pub(super) fn vectors(&self) -> Vec<libc::iovec> {
        let regions = self.arenas.iter().map(|arena| arena.region());
        regions.flat_map(|(base, bytes)| cut(base, bytes)).collect()
    }

    /// Records that exactly these regions are registered.
    pub(super) fn registered(&mut self, vectors: &[libc::iovec]) {
        let piece = |(index, vector): (usize, &libc::iovec)| {
            let start = vector.iov_base as usize;
            Piece { start, end: start + vector.iov_len, index: index as u16 }
        };
        self.pieces = vectors.iter().enumerate().map(piece).collect();
        self.pieces.sort_unstable_by_key(|piece| piece.start);
    }

    /// Returns the kernel's index of the piece that contains these bytes.
    #[inline]
    pub(super) fn index_of(&self, bytes: &[u8]) -> Option<u16> {
        let start = bytes.as_ptr() as usize;
        let behind = self.pieces.partition_point(|piece| piece.start <= start);
        let piece = self.pieces.get(behind.checked_sub(1)?)?;
        (!bytes.is_empty() && start + bytes.len() <= piece.end).then_some(piece.index)
    }
}

/// Cuts `bytes` bytes from an address on into pieces that the kernel accepts.
fn cut(base: *mut u8, bytes: usize) -> impl Iterator<Item = libc::iovec> {
    (0..bytes).step_by(PIECE_BYTES).map(move |from| libc::iovec {
        iov_base: base.wrapping_add(from).cast(),
        iov_len: PIECE_BYTES.min(bytes - from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    #[test]
    fn bytes_are_found_in_the_piece_where_they_lie() {
        let mut memory = Memory::default();
        let mut buffers = Vec::new();
        for count in [3, 1, 2] {
            let (arena, shared) = Arena::shared_out(count, 8192);
            memory.push(arena);
            buffers.push(shared);
        }
        assert_eq!(memory.index_of(&buffers[0][0]), None, "nothing is registered yet");
        memory.registered(&memory.vectors());
        for (index, shared) in buffers.iter().enumerate() {
            for buffer in shared {
                assert_eq!(memory.index_of(buffer), Some(index as u16));
                assert_eq!(memory.index_of(&buffer[8191..]), Some(index as u16));
                assert_eq!(memory.index_of(&buffer[..0]), None);
            }
        }
        assert_eq!(memory.index_of(&Buffer::alone(4096)), None);
    }

    #[test]
    fn a_large_arena_is_cut() {
        let base = std::ptr::without_provenance_mut(1 << 40);
        let pieces: Vec<_> = cut(base, 5 << 29).map(|v| (v.iov_base as usize, v.iov_len)).collect();
        let expected = [(0, 1 << 30), (1 << 30, 1 << 30), (2 << 30, 1 << 29)];
        assert_eq!(pieces, expected.map(|(from, bytes)| ((1 << 40) + from, bytes)));
    }
}
