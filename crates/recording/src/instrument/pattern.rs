//! Frames of random bytes that nothing compresses, made by stamping a base frame in place.

use nilometer_model::Seed;

use super::Origin;

const PAGE: usize = 4096;

/// Content of random bytes: one base frame from a seed, and a mark of eight bytes in each page, computed from
/// the frame's number. The frames neither compress nor deduplicate, and making one touches eight bytes per
/// page.
#[derive(Debug, Clone)]
pub struct Pattern {
    seed: Seed,
    base: Vec<u8>,
}

impl Pattern {
    /// Creates frames of this many bytes.
    pub fn new(seed: Seed, frame_size: usize) -> Self {
        let mut base = vec![0; frame_size];
        seed.named("base frame").stream().fill(&mut base);
        Pattern { seed, base }
    }

    /// Returns the recipe that makes the frames again.
    pub(super) fn origin(&self) -> Origin {
        Origin::of_pattern(self.seed, self.frame_size(), crc32fast::hash(&self.base))
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.base.len()
    }

    /// Copies the base frame into a slot and zeroes the bytes after the frame.
    pub fn prepare(&self, slot: &mut [u8]) {
        slot[..self.base.len()].copy_from_slice(&self.base);
        slot[self.base.len()..].fill(0);
    }

    /// Turns a prepared slot into frame `number`.
    #[inline]
    pub fn stamp(&self, number: u64, slot: &mut [u8]) {
        for (index, page) in slot[..self.base.len()].chunks_mut(PAGE).enumerate() {
            let mark = mark(number, index as u64);
            let length = page.len().min(8);
            page[..length].copy_from_slice(&mark[..length]);
        }
    }

    /// Checks that these bytes are frame `number`. The error is the index of the first wrong page.
    pub fn verify(&self, number: u64, frame: &[u8]) -> Result<(), usize> {
        if frame.len() != self.base.len() {
            return Err(frame.len().min(self.base.len()) / PAGE);
        }
        let pages = frame.chunks(PAGE).zip(self.base.chunks(PAGE)).enumerate();
        for (index, (page, base)) in pages {
            let length = page.len().min(8);
            if page[..length] != mark(number, index as u64)[..length] || page[length..] != base[length..] {
                return Err(index);
            }
        }
        Ok(())
    }
}

/// Returns the mark of a page, different for each page of each frame. The odd multiplier makes marks differ in
/// all their bits.
#[inline]
fn mark(number: u64, page: u64) -> [u8; 8] {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(page).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_told_from_every_other() {
        let pattern = Pattern::new(Seed(1), 3 * PAGE + 5);
        let mut slot = vec![7; 4 * PAGE];
        pattern.prepare(&mut slot);
        pattern.stamp(4, &mut slot);
        pattern.stamp(41, &mut slot);
        let frame = &mut slot[..3 * PAGE + 5];
        assert_eq!(pattern.verify(41, frame), Ok(()));
        assert_eq!(pattern.verify(40, frame), Err(0));
        frame[2 * PAGE + 100] ^= 1;
        assert_eq!(pattern.verify(41, frame), Err(2));
        assert_eq!(pattern.verify(41, &frame[..PAGE]), Err(1));
    }
}
