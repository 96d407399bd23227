//! Computes how far to read ahead of a reader. Pure.
//!
//! The window reads ahead as much as the reader has read since its last jump, so that a few single reads cost
//! little. It reads at least two pieces ahead and at most a limit. For example, with pieces of 4 MiB (so
//! requests of at least 8 MiB), a limit of 64 MiB, and sequential reads of 128 KiB:
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
//! The window requests everything once. A read that begins more than 16 MiB from the end of the last one is a
//! jump, and starts anew there.

use std::ops::Range;

/// Limits on the size of requests, and on reading ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Most bytes of a piece. Files are cut at multiples of it.
    pub(super) piece: u64,
    /// Most bytes requested ahead of a reader.
    pub(super) most: u64,
}

impl Sizes {
    /// Bytes of the first request, and least bytes of later ones except at the end.
    const fn part(self) -> u64 {
        2 * self.piece
    }

    /// Greatest distance, in both directions, between the end of the last read and the start of the next
    /// without a jump. The kernel issues several reads at once, which arrive in any order.
    const fn near(self) -> u64 {
        4 * self.piece
    }
}

/// The position of a sequential reader, and the end of the bytes requested ahead of it, all in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    sizes: Sizes,
    /// Offset of the first read, or of the last jump.
    begun: u64,
    /// Furthest end of a read since then.
    next: u64,
    /// End of the bytes requested.
    asked: u64,
    /// Present limit, which is lower while others also read.
    most: u64,
}

/// The effect of a read on reading ahead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The reader continues: read this range now, if any.
    On(Option<Range<u64>>),
    /// The reader jumped: drop its pieces. Reading ahead resumes when it continues from the new offset.
    Jump,
}

impl Window {
    /// Starts at the beginning of a recording.
    pub(super) const fn new(sizes: Sizes) -> Self {
        Window { sizes, begun: 0, next: 0, asked: 0, most: sizes.most }
    }

    /// Limits reading ahead to `most` bytes from here on, but not to less than a part.
    pub(super) const fn limit(&mut self, most: u64) {
        self.most = most;
    }

    /// Takes a read of `length` bytes at `offset`, in a recording of `total` bytes at present.
    pub(super) fn read(&mut self, offset: u64, length: u64, total: u64) -> Step {
        let most = self.sizes.most.min(self.most.max(self.sizes.part()));
        let end = offset + length;
        if offset.abs_diff(self.next) > self.sizes.near() {
            // Request nothing yet, because a random reader never continues from here.
            *self = Window { begun: offset, next: end, asked: end, ..*self };
            return Step::Jump;
        }
        self.next = self.next.max(end);
        let ahead = self.next.saturating_sub(self.begun).clamp(self.sizes.part().min(most), most);
        // The reader may have overtaken the requests, if they were limited or the recording grew.
        let begin = self.asked.max(self.next);
        let end = (self.next + ahead).min(total);
        // Small requests are not worth it, except at the end.
        if begin >= end || (end - begin < self.sizes.part() && end < total) {
            return Step::On(None);
        }
        self.asked = end;
        Step::On(Some(begin..end))
    }

    /// Without a jump, the reader reads nothing below this offset again.
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
            // Swap the reads of every second pair.
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
