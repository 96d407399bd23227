//! One pass of a search for the highest rate: from a hint to a rate that is carried, just below one that is not.

use std::collections::BTreeMap;

use nilometer_model::ByteRate;

use super::{Advice, Answer, INVALID_MOST, SearchEnd, Votes};

/// The rates that a search may try.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateGrid {
    /// The lowest rate. Above zero.
    pub(super) least: ByteRate,
    /// The highest rate.
    pub(super) most: ByteRate,
    /// The ratio of successive rates, less one. Above zero.
    pub(super) ratio: f64,
}

/// A trial at a rate from the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateTrial {
    /// Its rate.
    pub rate: ByteRate,
    /// Its end.
    pub ended: SearchEnd,
}

/// A pass over rates of the search's grid.
///
/// From the hint it goes up or down in growing steps until the answer changes, and halves the range there. At
/// each rate the majority of three trials decides. At the upper end, the lowest rate at which most lost, it
/// is the majority of five: two stalls in a row would move it.
///
/// From there it goes down to the first rate that three of three trials carried: the lower end. A rare stall
/// therefore widens the interval downwards, and does not move it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    grid: RateGrid,
    hint: ByteRate,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bracket {
    /// The highest rate below `lost` that three of three trials carried; `None` if there was none.
    pub(super) carried: Option<ByteRate>,
    /// The lowest rate at which most trials lost; `None` if there was none.
    pub(super) lost: Option<ByteRate>,
}

/// A rate of the grid: the logarithm of its B/s to the base 1 + grid. It is independent of the search, so
/// that two searches of the same grid try the same rates.
type Notch = i32;

type Poll = BTreeMap<Notch, Votes>;

impl Pass {
    pub(super) const fn new(grid: RateGrid, hint: ByteRate) -> Self {
        Pass { grid, hint }
    }

    /// The next step after these trials of the pass, in any order. All must be at rates of this pass, or of
    /// one with the same grid.
    pub(super) fn advise(&self, trials: &[RateTrial]) -> Advice<ByteRate, Bracket> {
        let poll = self.poll(trials);
        match self.locate(&poll).or_else(|| self.confirm(&poll)) {
            Some(notch) => Advice::Next(self.rate(notch)),
            None => Advice::Found(self.bracket(&poll)),
        }
    }

    /// The result of an incomplete pass.
    pub(super) fn so_far(&self, trials: &[RateTrial]) -> Bracket {
        self.bracket(&self.poll(trials))
    }

    fn poll(&self, trials: &[RateTrial]) -> Poll {
        let mut poll = Poll::new();
        for trial in trials {
            poll.entry(self.notch(trial.rate).round() as Notch).or_default().add(trial.ended);
        }
        poll
    }

    fn notch(&self, rate: ByteRate) -> f64 {
        rate.0.ln() / self.grid.ratio.ln_1p()
    }

    fn rate(&self, notch: Notch) -> ByteRate {
        ByteRate((f64::from(notch) * self.grid.ratio.ln_1p()).exp())
    }

    /// The rates that may be tried, lowest and highest: within the bounds, at least one. A rate of the grid stays one.
    fn bounds(&self) -> (Notch, Notch) {
        let top = (self.notch(self.grid.most) + 1e-6).floor() as Notch;
        (((self.notch(self.grid.least) - 1e-6).ceil() as Notch).min(top), top)
    }

    /// The lowest rate that loses or can't be tried; the one above the bounds if there is none.
    fn edge(&self, poll: &Poll) -> Notch {
        let (bottom, top) = self.bounds();
        let is_edge = |votes: &Votes| matches!(votes.answer(), Some(Answer::Lost | Answer::Untestable));
        poll.range(bottom..=top).find(|(_, votes)| is_edge(votes)).map_or(top + 1, |(notch, _)| *notch)
    }

    /// The highest rate below the edge that most trials carried.
    fn floor(&self, poll: &Poll, edge: Notch) -> Option<Notch> {
        let carries = |(_, votes): &(&Notch, &Votes)| votes.answer() == Some(Answer::Carried);
        poll.range(self.bounds().0..edge).rfind(carries).map(|(notch, _)| *notch)
    }

    /// The next rate to be tried until a rate that is carried lies just below one that is not.
    fn locate(&self, poll: &Poll) -> Option<Notch> {
        let (bottom, top) = self.bounds();
        let hint = (self.notch(self.hint).floor() as Notch).clamp(bottom, top);
        let high = self.edge(poll);
        let floor = self.floor(poll, high);
        let low = floor.unwrap_or(bottom - 1);
        let notch = match (floor.is_some(), high <= top) {
            (false, false) => hint,
            (true, false) => low + (low - hint).abs() + 1,
            (false, true) => high - (high - hint).abs() - 1,
            (true, true) => low.midpoint(high),
        };
        (high - low > 1).then(|| notch.clamp(low + 1, high - 1))
    }

    /// The next rate to be tried until both ends are confirmed: the edge, then the first one below that is clean.
    fn confirm(&self, poll: &Poll) -> Option<Notch> {
        let votes = |notch: &Notch| poll.get(notch).copied().unwrap_or_default();
        let edge = self.edge(poll);
        let at_edge = votes(&edge);
        if at_edge.answer() == Some(Answer::Lost) && !at_edge.is_firm() && at_edge.invalid <= INVALID_MOST {
            return Some(edge);
        }
        let mut below = (self.bounds().0..edge).rev();
        let first = below.find(|notch| votes(notch).is_clean() || votes(notch).is_open())?;
        votes(&first).is_open().then_some(first)
    }

    fn bracket(&self, poll: &Poll) -> Bracket {
        let edge = self.edge(poll);
        let clean = poll.range(self.bounds().0..edge).rfind(|(_, votes)| votes.is_clean());
        let lost = poll.iter().find(|(_, votes)| votes.answer() == Some(Answer::Lost));
        Bracket {
            carried: clean.map(|(notch, _)| self.rate(*notch)),
            lost: lost.map(|(notch, _)| self.rate(*notch)),
        }
    }
}
