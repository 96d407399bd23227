//! Below the mark everything is settled: acknowledged, or known to be lost. Progress is a mark and not a file size,
//! because preallocation and queue depth leave holes.

use std::collections::VecDeque;

/// The mark, and which frames above it are settled already.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    below: u64,
    /// From `below` on: whether that frame is settled.
    above: VecDeque<bool>,
}

impl Mark {
    /// Frames with a number below this are settled.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// A frame is settled. Frames may come in any order, each once.
    pub fn settle(&mut self, number: u64) {
        if number == self.below && self.above.is_empty() {
            self.below += 1;
            return;
        }
        let at = number.checked_sub(self.below).expect("a frame is settled once") as usize;
        if at >= self.above.len() {
            self.above.resize(at + 1, false);
        }
        self.above[at] = true;
        while self.above.front() == Some(&true) {
            self.above.pop_front();
            self.below += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_waits_for_the_first_open_frame() {
        let mut mark = Mark::default();
        let below: Vec<u64> = [0, 2, 3, 1, 5, 4]
            .into_iter()
            .map(|number| {
                mark.settle(number);
                mark.below()
            })
            .collect();
        assert_eq!(below, [1, 1, 1, 4, 4, 6]);
    }
}
