//! Counts how often intervals hold the truth and words are false, and holds the counts to the goals.

use std::fmt;

use nilometer_analysis::effect::{Answer, Effect};

/// A goal that the simulation missed, in words.
pub(super) type Missed = String;

/// The least share of intervals at 95 % that must hold the truth.
const HELD_LEAST: f64 = 0.93;
/// The greatest share of comparisons that may say *faster* or *slower* where nothing differs.
const FALSE_MOST: f64 = 0.05;
/// A single row is held to the goal within this many standard deviations of its luck.
const LUCK: f64 = 3.0;

/// How often intervals hold the truth, which is that nothing differs, and what the words say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    all: u64,
    held: u64,
    falsely: u64,
    undecided: u64,
}

impl Tally {
    /// Counts an interval and the word for it at this margin in percent.
    pub(super) fn add(&mut self, effect: &Effect, margin: f64) {
        let answer = effect.answer(margin);
        self.count(
            effect.low <= 0.0 && effect.high >= 0.0,
            matches!(answer, Answer::Faster | Answer::Slower),
        );
        self.undecided += u64::from(answer == Answer::Undecided);
    }

    /// Counts a case by hand.
    pub(super) fn count(&mut self, is_held: bool, is_false: bool) {
        self.all += 1;
        self.held += u64::from(is_held);
        self.falsely += u64::from(is_false);
    }

    pub(super) fn and(self, other: Tally) -> Tally {
        Tally {
            all: self.all + other.all,
            held: self.held + other.held,
            falsely: self.falsely + other.falsely,
            undecided: self.undecided + other.undecided,
        }
    }

    pub(super) fn held(&self) -> f64 {
        self.held as f64 / self.all.max(1) as f64
    }

    pub(super) fn falsely(&self) -> f64 {
        self.falsely as f64 / self.all.max(1) as f64
    }

    /// The goals that these intervals miss. Those of one campaign are not independent of each other, so that luck counts
    /// campaigns.
    pub(super) fn missed(&self, what: &str, campaigns: u64) -> Vec<Missed> {
        let luck = |share: f64| LUCK * (share * (1.0 - share) / campaigns.max(1) as f64).sqrt();
        let held = self.held();
        let falsely = self.falsely();
        let too_few = held < HELD_LEAST - luck(HELD_LEAST);
        let too_many = falsely > FALSE_MOST + luck(FALSE_MOST);
        let few = too_few.then(|| format!("{what}: {held:.3} of intervals hold the truth"));
        let many = too_many.then(|| format!("{what}: {falsely:.3} of words are false"));
        few.into_iter().chain(many).collect()
    }
}

impl fmt::Display for Tally {
    /// Columns of a table: intervals that hold the truth, false words, not decided; in percent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undecided = self.undecided as f64 / self.all.max(1) as f64;
        write!(f, "{:.1} | {:.1} | {:.0}", 100.0 * self.held(), 100.0 * self.falsely(), 100.0 * undecided)
    }
}

/// The rows of several shapes: all of them together, and the one that holds the truth least often.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shapes {
    pub(super) all: Tally,
    pub(super) least: Option<Tally>,
}

impl Shapes {
    pub(super) fn add(&mut self, tally: Tally) {
        self.all = self.all.and(tally);
        if tally.all > 0 && self.least.is_none_or(|least| tally.held() < least.held()) {
            self.least = Some(tally);
        }
    }
}

impl fmt::Display for Shapes {
    /// Columns of a table: as a tally, with the least share of a shape behind the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.least.map_or(0.0, |least| 100.0 * least.held());
        let all = self.all.to_string();
        let (held, rest) = all.split_once(" | ").unwrap_or((&all, ""));
        write!(f, "{held} ({least:.1}) | {rest}")
    }
}
