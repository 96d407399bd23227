//! The frames of one recorder, if several recorders take an instrument's frames in turn.
//!
//! A recorder numbers its own frames without gaps, as the ring's watermark and its chunks require. Stored
//! frames have the instrument's numbers. The ring converts the numbers as frames leave it and come back.

/// Every n-th frame of an instrument, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTurn {
    /// The first frame; less than [`FrameTurn::of`].
    pub first: u32,
    /// The distance between its frames, which is the number of recorders.
    pub of: u32,
}

impl Default for FrameTurn {
    fn default() -> Self {
        FrameTurn::ALL
    }
}

impl FrameTurn {
    /// The turn of a single recorder.
    pub const ALL: FrameTurn = FrameTurn { first: 0, of: 1 };

    /// Returns true if the recorder takes all frames.
    pub const fn is_all(self) -> bool {
        self.of == 1
    }

    /// Returns the instrument's number of the recorder's own frame `own`.
    pub const fn of_instrument(self, own: u64) -> u64 {
        own * self.of as u64 + self.first as u64
    }

    /// Returns the recorder's own number of this frame of the instrument, which must be one of its frames.
    pub const fn own(self, number: u64) -> u64 {
        number / self.of as u64
    }

    /// Returns how many of the instrument's first `frames` frames are this recorder's.
    pub const fn own_of(self, frames: u64) -> u64 {
        frames.saturating_sub(self.first as u64).div_ceil(self.of as u64)
    }

    /// Returns the least number of frames that the instrument delivered if `own` came to this recorder: up to
    /// its last one.
    pub const fn delivered(self, own: u64) -> u64 {
        match own.checked_sub(1) {
            Some(last) => self.of_instrument(last) + 1,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_turns_together_are_all_frames() {
        let turns = [0, 1, 2].map(|first| FrameTurn { first, of: 3 });
        let numbers = |turn: FrameTurn| (0..5).map(move |own| turn.of_instrument(own));
        let mut all: Vec<u64> = turns.into_iter().flat_map(numbers).collect();
        all.sort_unstable();
        assert_eq!(all, (0..15).collect::<Vec<_>>());
        for turn in turns {
            assert!(numbers(turn).zip(0..).all(|(number, own)| turn.own(number) == own));
        }
        assert_eq!(turns.map(|turn| turn.delivered(2)), [4, 5, 6]);
        assert_eq!(turns.map(|turn| turn.own_of(7)), [3, 2, 2]);
        assert_eq!(turns[2].delivered(0), 0, "its first frame is the instrument's third, and none came");
        assert_eq!((FrameTurn::ALL.of_instrument(7), FrameTurn::ALL.delivered(7)), (7, 7));
    }
}
