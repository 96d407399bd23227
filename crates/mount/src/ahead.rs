//! How far ahead of a reader blocks are fetched from all disks at once: pure.

use std::ops::Range;

/// A reader that goes through a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ahead {
    /// Where its last read ended.
    next: u64,
    /// What was asked for ends here.
    asked: u64,
}

/// As much is asked for ahead of a reader: a few blocks of each of many disks.
const WINDOW: u64 = 64 << 20;
/// It is asked for in pieces of this size.
const PIECE: u64 = 8 << 20;
/// Reads of one reader may come in another order: the kernel asks for several pieces at once.
const NEAR: u64 = 16 << 20;

impl Ahead {
    /// A read of so many bytes; what to fetch now, if anything. Who jumps is not helped until it goes on from there.
    pub(crate) fn read(&mut self, offset: u64, length: u64) -> Option<Range<u64>> {
        let end = offset + length;
        if offset.abs_diff(self.next) > NEAR {
            *self = Ahead { next: end, asked: end };
            return None;
        }
        self.next = self.next.max(end);
        let begin = self.asked.max(end);
        if begin + PIECE > end + WINDOW {
            return None;
        }
        self.asked = end + WINDOW;
        Some(begin..self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_ahead_is_asked_for_once_and_never_too_early() {
        let (mut ahead, mut asked) = (Ahead::default(), Vec::new());
        for piece in 0..4000 {
            // Each second pair comes the other way round.
            let offset = (piece ^ u64::from(piece % 4 > 1)) << 17;
            if let Some(range) = ahead.read(offset, 1 << 17) {
                assert!(range.start > offset && range.end <= offset + WINDOW + (1 << 17));
                asked.push(range);
            }
        }
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(asked[0], 1 << 17..WINDOW + (1 << 17));
        assert!(asked.len() < 80, "{} times", asked.len());
    }

    #[test]
    fn who_jumps_is_helped_when_it_goes_on() {
        let mut ahead = Ahead::default();
        assert!(ahead.read(0, 4096).is_some());
        assert_eq!(ahead.read(1 << 40, 4096), None);
        assert_eq!(ahead.read((1 << 40) + 4096, 4096), Some((1 << 40) + 8192..(1 << 40) + 8192 + WINDOW));
        assert_eq!(ahead.read(5, 4096), None);
    }
}
