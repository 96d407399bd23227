//! The frames of one recorder, if several recorders take an instrument's frames in turn.
//!
//! A recorder numbers its own frames without gaps, as the ring's watermark and its chunks require. Stored
//! frames have the instrument's numbers. The ring converts the numbers as frames leave it and come back.

/// Every n-th frame of an instrument, or every n-th line of a scan.
///
/// ```text
/// first 1 of 2, lines of 3     0 1 2 | 3 4 5 | 6 7 8 | 9 10 11
/// its own numbers                      0 1 2           3  4  5
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTurn {
    /// The place among the recorders; less than [`FrameTurn::of`].
    pub first: u32,
    /// The number of recorders.
    pub of: u32,
    /// Consecutive frames of a turn: 1, or those of a line of the scan.
    pub line: u64,
}

impl Default for FrameTurn {
    fn default() -> Self {
        FrameTurn::ALL
    }
}

impl FrameTurn {
    /// The turn of a single recorder.
    pub const ALL: FrameTurn = FrameTurn { first: 0, of: 1, line: 1 };

    /// Returns true if the recorder takes all frames.
    pub const fn is_all(self) -> bool {
        self.of == 1
    }

    /// Returns the instrument's number of the recorder's own frame `own`.
    pub const fn of_instrument(self, own: u64) -> u64 {
        (own / self.line * self.of as u64 + self.first as u64) * self.line + own % self.line
    }

    /// Returns the recorder's own number of this frame of the instrument, which must be one of its frames.
    pub const fn own(self, number: u64) -> u64 {
        number / self.round() * self.line + number % self.line
    }

    /// Returns the number of frames in which each recorder has one turn.
    const fn round(self) -> u64 {
        self.of as u64 * self.line
    }

    /// Returns how many of the instrument's first `frames` frames are this recorder's.
    pub const fn own_of(self, frames: u64) -> u64 {
        let rest = (frames % self.round()).saturating_sub(self.first as u64 * self.line);
        let begun = if rest < self.line { rest } else { self.line };
        frames / self.round() * self.line + begun
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
        let turns = [0, 1, 2].map(|first| FrameTurn { first, of: 3, line: 1 });
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

    #[test]
    fn turns_of_whole_lines_are_all_frames_too() {
        for (of, line) in [(1, 5), (2, 3), (3, 4), (4, 1)] {
            let turns: Vec<_> = (0..of).map(|first| FrameTurn { first, of, line }).collect();
            for frames in 0..50 {
                let parts: u64 = turns.iter().map(|turn| turn.own_of(frames)).sum();
                assert_eq!(parts, frames, "{of} recorders, lines of {line}");
            }
            let mut all = Vec::new();
            for turn in turns {
                let numbers: Vec<u64> = (0..2 * line).map(|own| turn.of_instrument(own)).collect();
                assert!(numbers.chunks(line as usize).all(|line| line.is_sorted_by(|a, b| a + 1 == *b)));
                assert!(numbers.iter().zip(0..).all(|(number, own)| turn.own(*number) == own));
                assert!((0..2 * line).all(|own| turn.own_of(turn.delivered(own)) == own));
                all.extend(numbers);
            }
            all.sort_unstable();
            assert_eq!(all, (0..u64::from(of) * 2 * line).collect::<Vec<_>>());
        }
    }
}
