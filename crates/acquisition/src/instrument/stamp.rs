//! What makes each frame another, though frames are sent round: its number, and a photon more or less here and there.
//!
//! - The first 16 bytes are the frame's number and the content's seed, as two little-endian 64-bit numbers; a shorter frame
//!   has the first of them. So a frame says which it is.
//! - In each page of 4096 bytes the lowest bit of two pixels is turned, one in each half, at places that follow from the
//!   number: 2^18 versions of a page of 32-bit pixels, so that what finds equal pages finds few. A count stays a count, a
//!   gap becomes a bad pixel, and the data compress as before.

use nilometer_model::Seed;

/// What is stamped by itself.
pub(super) const PAGE: usize = 4096;
/// Bytes of number and seed.
const HEAD: usize = 16;

/// The stamp of frames with one seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) seed: Seed,
    /// Bytes of a pixel: 1, 2 or 4. The lowest bit is in the first of them.
    pub(super) pixel: usize,
}

impl Stamp {
    /// Stamps page `index` of frame `number`.
    #[inline]
    pub(super) fn put(self, number: u64, index: usize, page: &mut [u8]) {
        let places = places(number, index as u64);
        if page.len() == PAGE {
            let half = PAGE / 2 / self.pixel;
            page[(places as usize % half) * self.pixel] ^= 1;
            page[PAGE / 2 + ((places >> 32) as usize % half) * self.pixel] ^= 1;
        } else if let Some(pixels) = (page.len() / self.pixel).checked_sub(1) {
            page[places as usize % (pixels + 1) * self.pixel] ^= 1;
        }
        if index == 0 {
            self.put_head(number, page);
        }
    }

    fn put_head(self, number: u64, page: &mut [u8]) {
        let length = page.len().min(HEAD);
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..].copy_from_slice(&self.seed.0.to_le_bytes());
        page[..length].copy_from_slice(&head[..length]);
    }
}

/// Random bits for a page of a frame: an odd multiplier, its high bits mixed into the low ones.
#[inline]
fn places(number: u64, page: u64) -> u64 {
    let bits = (number << 20 ^ page).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 3
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pages_of_frames_hardly_ever_agree() {
        let stamp = Stamp { seed: Seed(1), pixel: 4 };
        let mut seen = BTreeSet::new();
        for number in 0..100 {
            for index in 1..101 {
                let mut page = [0; PAGE];
                stamp.put(number, index, &mut page);
                let turned: Vec<_> = (0..PAGE).filter(|&at| page[at] == 1).collect();
                assert!(turned.len() == 2 && turned.iter().all(|at| at % 4 == 0), "{turned:?}");
                seen.insert(turned);
            }
        }
        // Of 10 000 drawn from 2^18 some 190 agree with another.
        assert!(seen.len() > 9600, "{} versions", seen.len());
    }

    #[test]
    fn a_frame_says_which_it_is_even_if_it_is_short() {
        let stamp = Stamp { seed: Seed(5), pixel: 1 };
        let mut page = [9; 20];
        stamp.put(77, 0, &mut page);
        assert_eq!(page[..16], [77, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        let mut page = [9; 1];
        stamp.put(77, 0, &mut page);
        assert_eq!(page, [77]);
        stamp.put(77, 0, &mut []);
    }
}
