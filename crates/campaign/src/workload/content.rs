//! The content of written blocks. No two are the same: a storage system can neither compress them nor keep one
//! copy of many.
//!
//! Buffers are filled with random bytes before the clock starts; here they are changed just enough.

use nilometer_model::Seed;
use nilometer_storage::Buffer;

/// The way in which the next block gets its bytes.
#[derive(Debug)]
pub enum BlockContent {
    /// The buffer as it is, each page stamped: 8 bytes in 4096.
    Stamped(Seed),
    /// Small pieces, copied into the buffer one by one as a program does that collects its output.
    Pieces(Pieces),
}

impl BlockContent {
    #[inline]
    pub(super) fn fill(&mut self, block: &mut [u8], offset: u64) {
        match self {
            BlockContent::Stamped(seed) => stamp(block, *seed, offset),
            BlockContent::Pieces(pieces) => pieces.fill(block),
        }
    }
}

/// Makes each page of a block unlike any other, so that nothing can be deduplicated. It changes eight bytes in
/// each page.
#[inline]
pub fn stamp(block: &mut [u8], seed: Seed, offset: u64) {
    for (page, number) in block.chunks_mut(4096).zip(offset / 4096..) {
        let mark = mark(seed, number);
        let length = page.len().min(8);
        page[..length].copy_from_slice(&mark[..length]);
    }
}

#[inline]
fn mark(seed: Seed, number: u64) -> [u8; 8] {
    seed.0.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

/// Pieces of one size from a pool of random bytes, from its beginning to its end and again. Each piece gets a
/// number in its first bytes when its turn comes, so no two are the same.
///
/// The pool is longer than the unit that file systems compress at a time. Beside the copy this costs one store
/// of 8 bytes for each piece.
#[derive(Debug)]
pub struct Pieces {
    pool: Buffer,
    size: usize,
    seed: Seed,
    number: u64,
    /// The position in the pool.
    at: usize,
    /// Bytes of the current piece that were not copied yet.
    left: usize,
}

impl Pieces {
    /// Pieces of `size` bytes, at most as large as the pool.
    pub fn new(pool: Buffer, size: usize, seed: Seed) -> Self {
        assert!((1..=pool.len()).contains(&size), "limits are checked where they are configured");
        Pieces { pool, size, seed, number: 0, at: 0, left: 0 }
    }

    #[inline]
    fn fill(&mut self, block: &mut [u8]) {
        let mut filled = 0;
        while filled < block.len() {
            if self.left == 0 {
                self.begin();
            }
            let length = self.left.min(block.len() - filled);
            block[filled..filled + length].copy_from_slice(&self.pool[self.at..self.at + length]);
            filled += length;
            self.at += length;
            self.left -= length;
        }
    }

    #[inline]
    fn begin(&mut self) {
        if self.at + self.size > self.pool.len() {
            self.at = 0;
        }
        let mark = mark(self.seed, self.number);
        let length = self.size.min(8);
        self.pool[self.at..self.at + length].copy_from_slice(&mark[..length]);
        self.number += 1;
        self.left = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Buffer {
        let mut pool = Buffer::alone(1000);
        Seed(1).stream().fill(&mut pool);
        pool
    }

    #[test]
    fn pieces_are_the_same_however_they_are_cut() {
        let (mut whole, mut cut) = (vec![0; 6000], Vec::new());
        Pieces::new(pool(), 100, Seed(2)).fill(&mut whole);
        let mut pieces = Pieces::new(pool(), 100, Seed(2));
        for length in [1, 99, 100, 250, 1550, 4000] {
            let mut part = vec![0; length];
            pieces.fill(&mut part);
            cut.extend(part);
        }
        assert!(whole == cut);
    }

    #[test]
    fn no_piece_and_no_page_comes_twice() {
        let mut all = vec![0; 128 * 1024];
        Pieces::new(pool(), 64, Seed(2)).fill(&mut all);
        let distinct = |size| all.chunks(size).collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!((distinct(64), distinct(4096)), (2048, 32));
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 256, "random bytes");
    }
}
