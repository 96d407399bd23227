//! How far ahead of a reader a recording is read: pure.
//!
//! As much is read ahead as the reader has read since it last jumped, so that one who looks at a few frames
//! costs little: two pieces at least, and a limit at most. For example, pieces of 4 MiB (so 8 MiB are asked
//! for at least), a limit of 64 MiB, and a reader that goes on in reads of 128 KiB:
//!
//! ```text
//! read so far     asked for (KiB)      asked ahead of the reader
//!    128 KiB        128 ..  8320       8 MiB
//!    256 KiB      -                    another 128 KiB are too little: it waits until it is 8 MiB
//!   8320 KiB       8320 .. 16640       8.125 MiB: as much as was read
//!  12416 KiB      16640 .. 24832       12.125 MiB
//!  16512 KiB      24832 .. 33024       16.125 MiB
//!   ..
//!  65792 KiB     123136 .. 131328      64 MiB: the limit, from here on 8 MiB each time that 8 MiB were read
//! ```
//!
//! Everything is asked for once. A read that begins more than 16 MiB from the end of what was read is a jump:
//! all begins anew there.

use std::ops::Range;

/// The limits of reading at once, and ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes of a piece at the most, and what files are cut at multiples of.
    pub(super) piece: u64,
    /// Not more than this is ever asked for ahead of a reader.
    pub(super) most: u64,
}

impl Sizes {
    /// The bytes that are asked for first, and the fewest that are asked for at once later, but for the end.
    const fn part(self) -> u64 {
        2 * self.piece
    }

    /// How far from where the last read ended the next may begin, to either side, and be no jump: the kernel
    /// asks for several reads at once, and they come in any order.
    const fn near(self) -> u64 {
        4 * self.piece
    }
}

/// The position of one reader that goes through a recording, and the end of what was asked for ahead of it.
/// All in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    sizes: Sizes,
    /// The offset at which it began, or to which it jumped last.
    begun: u64,
    /// The end of what it read, the furthest since then.
    next: u64,
    /// The end of what was asked for.
    asked: u64,
    /// Not more than this now, because others read too.
    most: u64,
}

/// The effect of a read on what is read ahead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The reader goes on: this is to be read now, if anything.
    On(Option<Range<u64>>),
    /// It jumped: what was read for it is of no use. It is not helped until it goes on from there.
    Jump,
}

impl Window {
    /// At the beginning of a recording.
    pub(super) const fn new(sizes: Sizes) -> Self {
        Window { sizes, begun: 0, next: 0, asked: 0, most: sizes.most }
    }

    /// Asks for no more than so many bytes ahead from here on; for a part in any case.
    pub(super) const fn limit(&mut self, most: u64) {
        self.most = most;
    }

    /// Takes a read of `length` bytes at `offset`, of a recording of `total` bytes by now.
    pub(super) fn read(&mut self, offset: u64, length: u64, total: u64) -> Step {
        let most = self.sizes.most.min(self.most.max(self.sizes.part()));
        let end = offset + length;
        if offset.abs_diff(self.next) > self.sizes.near() {
            // Nothing is asked for yet: a reader that only looks at places here and there never goes on.
            *self = Window { begun: offset, next: end, asked: end, ..*self };
            return Step::Jump;
        }
        self.next = self.next.max(end);
        let ahead = self.next.saturating_sub(self.begun).clamp(self.sizes.part().min(most), most);
        // The reader may have overtaken what was asked for, where that was limited or the recording grew.
        let begin = self.asked.max(self.next);
        let end = (self.next + ahead).min(total);
        // Little is not worth it, but for the end.
        if begin >= end || (end - begin < self.sizes.part() && end < total) {
            return Step::On(None);
        }
        self.asked = end;
        Step::On(Some(begin..end))
    }

    /// Below this offset nothing is read again without a jump.
    pub(super) const fn behind(&self) -> u64 {
        self.next.saturating_sub(self.sizes.near())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u64 = 1 << 17;
    const MOST: u64 = 64 << 20;
    const SIZES: Sizes = Sizes { piece: 4 << 20, most: MOST };
    const FIRST: u64 = SIZES.part();

    #[test]
    fn everything_ahead_is_asked_for_once_and_never_too_early() {
        let (mut window, mut asked) = (Window::new(SIZES), Vec::new());
        let total = 4000 * READ;
        for read in 0..4000 {
            // Each second pair comes the other way round.
            let offset = (read ^ u64::from(read % 4 > 1)) * READ;
            match window.read(offset, READ, total) {
                Step::On(Some(range)) => {
                    assert!(range.start > offset && range.end <= offset + MOST + 2 * READ);
                    asked.push(range);
                }
                Step::On(None) => {}
                Step::Jump => panic!("{offset} is near"),
            }
        }
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(asked[0], READ..READ + FIRST);
        assert_eq!(asked.last().expect("something was").end, total);
        assert!(asked.len() < 80, "{} times", asked.len());
    }

    #[test]
    fn who_shares_the_memory_reads_less_far_ahead() {
        let mut window = Window::new(SIZES);
        let mut farthest = |most, reads: Range<u64>| {
            window.limit(most);
            let steps = reads.map(|read| (read * READ, window.read(read * READ, READ, 1 << 40)));
            let ahead = steps.filter_map(|(offset, step)| match step {
                Step::On(Some(range)) => Some(range.end - offset - READ),
                _ => None,
            });
            ahead.max()
        };
        assert_eq!(farthest(u64::MAX, 0..1000), Some(MOST));
        assert_eq!(farthest(MOST / 4, 1000..2000), Some(MOST / 4));
        assert_eq!(farthest(0, 2000..3000), Some(FIRST));
    }

    #[test]
    fn who_jumps_is_helped_when_it_goes_on() {
        let (mut window, far) = (Window::new(SIZES), 1 << 40);
        assert_eq!(window.read(0, READ, far * 2), Step::On(Some(READ..READ + FIRST)));
        assert_eq!(window.read(far, READ, far * 2), Step::Jump);
        let next = far + READ;
        assert_eq!(window.read(next, READ, far * 2), Step::On(Some(next + READ..next + READ + FIRST)));
        assert_eq!(window.read(5, READ, far * 2), Step::Jump);
    }

    #[test]
    fn what_grows_is_asked_for_as_it_comes() {
        let mut window = Window::new(SIZES);
        assert_eq!(window.read(0, READ, READ), Step::On(None));
        assert_eq!(window.read(READ, READ, 3 * READ), Step::On(Some(2 * READ..3 * READ)));
        assert_eq!(window.read(2 * READ, READ, 3 * READ), Step::On(None));
        assert_eq!(window.read(3 * READ, READ, 5 * READ), Step::On(Some(4 * READ..5 * READ)));
    }
}
