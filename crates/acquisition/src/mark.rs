//! Below the mark everything is settled: acknowledged, or known to be lost. Progress is a mark and not a file size,
//! because preallocation and queue depth leave holes.

use std::collections::VecDeque;

use nilometer_model::Nanos;

/// The mark, and which frames above it are settled already.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    below: u64,
    /// From `below` on: what became of that frame.
    above: VecDeque<Settled>,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Settled {
    /// Nothing yet.
    #[default]
    Open,
    /// It is lost.
    Lost,
    /// It is acknowledged, and was due then.
    Stored(Nanos),
}

impl Mark {
    /// Frames with a number below this are settled.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// A frame is settled. Frames may come in any order, each once. Those that the mark passes by this are told: they can
    /// be read from now on, or are lost.
    pub fn settle(&mut self, number: u64, settled: Settled, mut passed: impl FnMut(Settled)) {
        if number == self.below && self.above.is_empty() {
            self.below += 1;
            return passed(settled);
        }
        let at = number.checked_sub(self.below).expect("a frame is settled once") as usize;
        if at >= self.above.len() {
            self.above.resize(at + 1, Settled::Open);
        }
        self.above[at] = settled;
        while let Some(settled) = self.above.pop_front_if(|settled| *settled != Settled::Open) {
            self.below += 1;
            passed(settled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_waits_for_the_first_open_frame() {
        let (mut mark, mut passed) = (Mark::default(), Vec::new());
        let below: Vec<u64> = [0, 2, 3, 1, 5, 4]
            .into_iter()
            .map(|number| {
                let settled = if number == 3 { Settled::Lost } else { Settled::Stored(Nanos(number)) };
                mark.settle(number, settled, |settled| passed.push(settled));
                mark.below()
            })
            .collect();
        assert_eq!(below, [1, 1, 1, 4, 4, 6]);
        let stored = |number| Settled::Stored(Nanos(number));
        assert_eq!(passed, [stored(0), stored(1), stored(2), Settled::Lost, stored(4), stored(5)]);
    }
}
