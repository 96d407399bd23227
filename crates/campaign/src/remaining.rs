//! How long the rest of a campaign will take, from what was measured so far.

use std::collections::BTreeMap;

use nilometer_model::Nanos;

use crate::turns::Turn;

/// What takes about as long each time: a cell on the same targets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    cell: usize,
    targets: Vec<usize>,
}

/// Turns of a kind.
#[derive(Debug, Clone, Default)]
struct Seen {
    left: u64,
    done: u64,
    took: Nanos,
    /// What it is said to take, where that is known before.
    known: Option<Nanos>,
}

impl Seen {
    fn mean(&self) -> Option<f64> {
        (self.done > 0).then(|| self.took.seconds() / self.done as f64)
    }
}

/// The rest of a campaign.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remaining(BTreeMap<Kind, Seen>);

impl Remaining {
    /// All these turns are left; `known` says what one takes, where that is planned.
    pub(crate) fn new(turns: &[Turn], known: impl Fn(&Turn) -> Option<Nanos>) -> Self {
        let mut remaining = Remaining::default();
        for turn in turns {
            let seen = remaining.0.entry(kind(turn)).or_default();
            seen.left += 1;
            seen.known = known(turn);
        }
        remaining
    }

    /// A turn is over; none if it was left out.
    pub(crate) fn done(&mut self, turn: &Turn, took: Option<Nanos>) {
        let seen = self.0.entry(kind(turn)).or_default();
        seen.left = seen.left.saturating_sub(1);
        if let Some(took) = took {
            seen.done += 1;
            seen.took += took;
        }
    }

    /// How long all that is left will take, the turn that runs included: each as the same cell took on the same targets,
    /// else as it took on others, else as all took on average. None before anything is known.
    pub(crate) fn time(&self) -> Option<Nanos> {
        let mean = mean(self.0.values().filter(|seen| seen.known.is_none()));
        let mut seconds = 0.0;
        for (Kind { cell, .. }, seen) in self.0.iter().filter(|(_, seen)| seen.left > 0) {
            let elsewhere = || self.0.iter().filter(|(kind, _)| kind.cell == *cell).map(|(_, seen)| seen);
            let own = seen.mean().or(seen.known.map(Nanos::seconds));
            seconds += own.or_else(|| self::mean(elsewhere())).or(mean)? * seen.left as f64;
        }
        Some(Nanos::from_seconds(seconds))
    }
}

/// Of all turns of these kinds.
fn mean<'a>(kinds: impl Iterator<Item = &'a Seen>) -> Option<f64> {
    let (done, took) =
        kinds.fold((0, 0.0), |(done, took), seen| (done + seen.done, took + seen.took.seconds()));
    (done > 0).then(|| took / done as f64)
}

fn kind(turn: &Turn) -> Kind {
    Kind { cell: turn.cell, targets: turn.targets.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(cell: usize, target: usize) -> Turn {
        Turn { targets: vec![target], cell, repeat: 0 }
    }

    const SECOND: Nanos = Nanos::from_millis(1000);

    #[test]
    fn what_is_known_best_counts() {
        let turns = [turn(0, 0), turn(0, 0), turn(0, 1), turn(1, 0), turn(2, 0)];
        let recording = |turn: &Turn| (turn.cell == 2).then_some(Nanos::from_millis(40_000));
        let mut remaining = Remaining::new(&turns, recording);
        assert_eq!(remaining.time(), None, "nothing is known of two cells");
        remaining.done(&turns[0], Some(Nanos(2 * SECOND.0)));
        // The same cell, here and there, a cell of which only the mean is known, and the recording.
        assert_eq!(remaining.time(), Some(Nanos((2 + 2 + 2 + 40) * SECOND.0)));
        remaining.done(&turns[3], Some(Nanos(8 * SECOND.0)));
        assert_eq!(remaining.time(), Some(Nanos((2 + 2 + 40) * SECOND.0)));
        remaining.done(&turns[1], None);
        remaining.done(&turns[2], Some(SECOND));
        remaining.done(&turns[4], Some(SECOND));
        assert_eq!(remaining.time(), Some(Nanos(0)));
    }
}
