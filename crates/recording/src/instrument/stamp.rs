//! Stamps that make each delivered frame unique although the prepared frames repeat: the frame's number, and
//! changed low bits.
//!
//! - A frame begins with its number and the content's seed, which identify it: see [`StampHead`]. A shorter
//!   frame has the first bytes of these.
//! - In each page of 4096 bytes the stamp flips the lowest bit of two pixels, one in each half. The positions
//!   follow from the frame's number. A page of 32-bit pixels has 2^18 versions, so deduplication finds few
//!   equal pages. A count stays a count, a gap becomes a bad pixel, and the compressibility stays the same.

use nilometer_model::{PixelType, Seed};
use serde::{Deserialize, Serialize};

/// Bytes of a page, the unit that [`Stamp::put`] stamps.
pub(super) const PAGE: usize = 4096;
/// Bytes of number and seed in the longest layout.
const HEAD_MAX: usize = 32;

/// Layout of number and seed, 64 bits each, at the beginning of a frame, least significant bytes first. The
/// origin in a journal states the layout, so recordings of every version can be verified.
///
/// ```text
/// packed   nnnnnnnn ssssssss                      16 bytes, pixels of any value
/// spread   nn00 nn00 nn00 nn00 ss00 ss00 ss00 ss00   8 pixels of 32 bits, at most 65535 each
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StampHead {
    /// Two 64-bit numbers. All frames of early versions have this head.
    ///
    /// For signed pixels it leaves out the two highest bits of each half of the seed. The difference of two
    /// pixels then fits into 32 bits; readers of CBF disagree about larger differences.
    #[default]
    Packed,
    /// Sixteen bits in each pixel, for signed pixels. All values stay below the greatest count of a counting
    /// detector. CBF files state that count (`Count_cutoff`) and processing programs take it as the limit of
    /// valid pixels.
    Spread,
}

impl StampHead {
    /// Returns the layout for new frames.
    pub(super) const fn of(pixel: PixelType) -> Self {
        match pixel {
            PixelType::Int32 => StampHead::Spread,
            _ => StampHead::Packed,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) fn is_packed(&self) -> bool {
        *self == StampHead::Packed
    }
}

/// The stamp of frames with one seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) seed: Seed,
    /// Bytes of a pixel or, for packed pixels, of the fewest that fill whole bytes. The first byte holds a
    /// pixel's lowest bit.
    pub(super) unit: usize,
    pub(super) head: StampHead,
    /// The seed as the head states it.
    told: u64,
}

impl Stamp {
    /// Creates the stamp for new frames with pixels of this type.
    pub(super) fn new(seed: Seed, pixel: PixelType) -> Self {
        Stamp::with_head(seed, pixel, StampHead::of(pixel))
    }

    /// Creates the stamp for frames with this layout of the head.
    pub(super) fn with_head(seed: Seed, pixel: PixelType, head: StampHead) -> Self {
        let unit = match pixel {
            PixelType::Uint2 => 1,
            PixelType::Uint12 => 3,
            pixel => pixel.bits() as usize / 8,
        };
        let is_cut = pixel == PixelType::Int32 && head == StampHead::Packed;
        let told = if is_cut { seed.0 & 0x3fff_ffff_3fff_ffff } else { seed.0 };
        Stamp { seed, unit, head, told }
    }

    /// Stamps page `index` of frame `number`.
    #[inline]
    pub(super) fn put(self, number: u64, index: usize, page: &mut [u8]) {
        self.turn_two(number, index, page);
        self.put_head(number, index, page);
    }

    /// Turns page `index` of frame `before` into that of frame `number`. Flipping a bit a second time restores
    /// it.
    #[inline]
    pub(super) fn change(self, before: u64, number: u64, index: usize, page: &mut [u8]) {
        self.turn_two(before, index, page);
        self.turn_two(number, index, page);
        self.put_head(number, index, page);
    }

    /// Flips a bit in each half of a page.
    #[inline]
    fn turn_two(self, number: u64, index: usize, page: &mut [u8]) {
        let places = places(number, index as u64);
        let (first, second) = page.split_at_mut(page.len().min(PAGE / 2));
        self.turn(places as u32, index * PAGE, first);
        self.turn((places >> 32) as u32, index * PAGE + PAGE / 2, second);
    }

    /// Flips a bit of these bytes, which begin at `from` in the frame, a multiple of half a page.
    #[inline]
    fn turn(self, place: u32, from: usize, bytes: &mut [u8]) {
        let (first, pixels) = self.pixels(from, bytes.len());
        if pixels > 0 {
            // Most pages hold a power of two of pixels and need no division.
            let chosen = if pixels.is_power_of_two() { place & (pixels - 1) } else { place % pixels };
            bytes[first + chosen as usize * self.unit] ^= 1;
        }
    }

    /// Returns the start of the first complete pixel in these bytes, and the number of complete pixels.
    #[inline]
    fn pixels(self, from: usize, length: usize) -> (usize, u32) {
        if self.unit.is_power_of_two() {
            return (0, (length >> self.unit.trailing_zeros()) as u32);
        }
        let first = (self.unit - from % self.unit) % self.unit;
        (first, (length.saturating_sub(first) / self.unit) as u32)
    }

    #[inline]
    fn put_head(self, number: u64, index: usize, page: &mut [u8]) {
        if index > 0 {
            return;
        }
        let (head, bytes) = self.head_of(number);
        let length = page.len().min(bytes);
        page[..length].copy_from_slice(&head[..length]);
    }

    /// Returns the head of a frame and its length in bytes.
    #[inline]
    fn head_of(self, number: u64) -> ([u8; HEAD_MAX], usize) {
        let mut head = [0; HEAD_MAX];
        let words = [number, self.told];
        let bytes = match self.head {
            StampHead::Packed => 8,
            StampHead::Spread => 16,
        };
        for (word, part) in words.into_iter().zip(head.chunks_exact_mut(bytes)) {
            let word = word.to_le_bytes();
            // The head uses two of the four bytes of each pixel.
            match self.head {
                StampHead::Packed => part.copy_from_slice(&word),
                StampHead::Spread => (0..8).for_each(|at| part[at / 2 * 4 + at % 2] = word[at]),
            }
        }
        (head, 2 * bytes)
    }
}

/// Returns random bits for a page of a frame: multiplies by an odd number and mixes the high bits into the low
/// ones.
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
        let stamp = Stamp::new(Seed(1), PixelType::Uint32);
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
        // About 190 of 10 000 numbers drawn from 2^18 repeat another.
        assert!(seen.len() > 9600, "{} versions", seen.len());
    }

    #[test]
    fn bits_are_turned_where_they_always_were() {
        // Another place would make frames of earlier recordings look damaged.
        let turned = |pixel, length| {
            let mut page = vec![0; length];
            Stamp::new(Seed(1), pixel).put(7, 3, &mut page);
            (0..length).filter(|&at| page[at] == 1).collect::<Vec<_>>()
        };
        assert_eq!(turned(PixelType::Uint2, 4096), [144, 2230]);
        assert_eq!(turned(PixelType::Uint2, 3936), [144, 2166]);
        assert_eq!(turned(PixelType::Uint12, 4096), [936, 3411]);
        assert_eq!(turned(PixelType::Uint32, 4095), [576, 3776]);
    }

    #[test]
    fn a_frame_says_which_it_is_even_if_it_is_short() {
        let stamp = Stamp::new(Seed(5), PixelType::Uint8);
        let mut page = [9; 20];
        stamp.put(77, 0, &mut page);
        assert_eq!(page[..16], [77, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        let mut page = [9; 1];
        stamp.put(77, 0, &mut page);
        assert_eq!(page, [77]);
        stamp.put(77, 0, &mut []);
    }

    #[test]
    fn signed_pixels_of_a_packed_head_differ_by_less_than_32_bits() {
        for number in 0..1000_u64 {
            let seed = Seed(1).part(number);
            let mut page = [0; PAGE];
            let stamp = Stamp::with_head(seed, PixelType::Int32, StampHead::Packed);
            stamp.put(number << 20, 0, &mut page);
            let pixels =
                page.as_chunks().0.iter().map(|pixel| i32::from_le_bytes(*pixel)).collect::<Vec<_>>();
            assert!(
                pixels.windows(2).all(|pair| pair[1].checked_sub(pair[0]).is_some()),
                "{:?}",
                &pixels[..5]
            );
        }
    }

    #[test]
    fn signed_pixels_of_new_frames_say_number_and_seed_in_small_counts() {
        let number = 0xfedc_ba98_7654_3210;
        let stamp = Stamp::new(Seed(0x0123_4567_89ab_cdef), PixelType::Int32);
        let mut page = [0xff; PAGE];
        stamp.put(number, 0, &mut page);
        let pixels: Vec<_> = page.as_chunks().0.iter().map(|pixel| i32::from_le_bytes(*pixel)).collect();
        assert_eq!(
            pixels[..8],
            [0x3210, 0x7654, 0xba98, 0xfedc, 0xcdef, 0x89ab, 0x4567, 0x0123],
            "least significant bits first"
        );
        assert_eq!(pixels[8], -1, "the next pixel is what it was");
        let mut short = [9; 5];
        stamp.put(number, 0, &mut short);
        assert_eq!(short, [0x10, 0x32, 0, 0, 0x54]);
    }
}
