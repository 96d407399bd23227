//! The highest rate that a storage carries without loss with a given buffer. A search makes several passes
//! and unites their results, because shared storage is faster in one minute than in the next.
//!
//! A pass tries rates of a grid, each one 5 % above the one before. From the hint it goes up or down in steps
//! that double. It then halves the range between the highest rate that is carried and the lowest that is not.
//!
//! For example, take a storage that carries 500 MB/s, and a hint of 400 MB/s. A trial that lost nothing is `c`,
//! one that lost frames is `L`:
//!
//! ```text
//! MB/s         382  401  421  442  464  487  511  537
//! trials 1, 2  cc                                         the hint, rounded down to the grid; 2 of 3 decide
//!        3, 4       cc                                    one step up
//!        5, 6                 cc                          two steps up
//!        7, 8                                     LL      four steps up: lost
//!        9, 10                          cc                half way between 442 and 537
//!        11, 12                              LL           half way between 487 and 537: neighbours now
//!        13                                  L            the upper end must lose 3 of 5
//!        14                             c                 the lower end must carry 3 of 3
//! ```
//!
//! The result of the pass is: carries 487, loses at 511. The next one begins at 487 and needs 6 trials if
//! nothing has changed. Suppose the storage has become slower meanwhile, and the last of three passes finds
//! 382 and 401. The search then reports: carries 382, loses at 511, in passes that lie within 28 %.

use std::fmt;

use nilometer_model::{ByteRate, Nanos, statistics::poisson_upper};

use super::{
    Advice, SearchEnd, Votes,
    pass::{Bracket, Pass, RateGrid, RateTrial},
};

/// A search over rates of a fixed grid, so that rates repeat, also between searches. It finds the limit
/// several times anew, in passes, and unites their intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearch {
    /// The first rate: that of the storage at full speed.
    pub hint: ByteRate,
    /// No lower rate is tried. Above zero.
    pub least: ByteRate,
    /// The highest rate to try: the limit of the source.
    pub most: ByteRate,
    /// The ratio of successive rates, less one. Above zero.
    pub grid: f64,
    /// The duration of a trial.
    pub duration: Nanos,
    /// The number of passes, each of which finds the limit anew. At least one.
    pub passes: u32,
    /// Trials in all, at the most.
    pub trials: u32,
}

/// The default of `grid`.
pub const GRID: f64 = 0.05;

/// The default number of passes.
pub const PASSES: u32 = 3;

/// The most trials. Half of all searches of three passes need 43, one pass some 20. A search that needs more
/// gives its result so far.
pub const TRIALS: u32 = 60;

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// The highest rate that every pass carried: the lowest of theirs, at each of which three of three trials
    /// lost nothing. `None` if a pass found none.
    pub carried: Option<ByteRate>,
    /// The lowest rate at which every pass lost: the highest of theirs, at each of which most trials lost.
    /// `None` if a pass lost none.
    pub lost: Option<ByteRate>,
    /// Trials at `carried` that lost nothing, of all passes.
    pub clean: u32,
    /// Trials there that did.
    pub stalled: u32,
    /// The duration of a trial.
    pub duration: Nanos,
    /// Number of complete passes.
    pub passes: u32,
    /// The spread of the carried rates of passes: the highest over the lowest, less one. Zero if they are
    /// equal.
    pub moved: f64,
    /// Trials in all.
    pub trials: u32,
    /// The number of invalid ones among them.
    pub invalid: u32,
}

impl RateSearch {
    /// A search with the usual grid and numbers of passes and trials, between the rates `least` and `most`.
    pub const fn new(hint: ByteRate, least: ByteRate, most: ByteRate, duration: Nanos) -> Self {
        RateSearch { hint, least, most, grid: GRID, duration, passes: PASSES, trials: TRIALS }
    }

    const fn rates(&self) -> RateGrid {
        RateGrid { least: self.least, most: self.most, ratio: self.grid }
    }

    /// The rate of the next trial after these, in the order in which they were made; or the result.
    pub fn advise(&self, trials: &[RateTrial]) -> Advice<ByteRate, RateLimit> {
        // Replay all passes from the history, so that the record needs only the trials: an interrupted search
        // continues from there.
        let mut found = Vec::new();
        let mut rest = trials;
        let mut hint = self.hint;
        while found.len() < self.passes as usize {
            let pass = Pass::new(self.rates(), hint);
            let Some((bracket, used)) = complete(&pass, rest) else {
                return self.go_on(&pass, &found, trials, rest);
            };
            found.push(bracket);
            rest = &rest[used..];
            // A pass that begins at the end of the last one needs the fewest trials.
            hint = bracket.carried.or(bracket.lost).unwrap_or(self.hint);
        }
        Advice::Found(self.limit(&found, trials))
    }

    /// The next trial of an incomplete pass, while there are trials left. `rest` are the trials of the pass
    /// so far.
    fn go_on(
        &self,
        pass: &Pass,
        found: &[Bracket],
        all: &[RateTrial],
        rest: &[RateTrial],
    ) -> Advice<ByteRate, RateLimit> {
        match pass.advise(rest) {
            Advice::Next(rate) if all.len() < self.trials as usize => Advice::Next(rate),
            // Trials are used up: a pass that is not complete says something only if there is no other.
            _ if found.is_empty() => {
                Advice::Found(RateLimit { passes: 0, ..self.limit(&[pass.so_far(rest)], all) })
            }
            _ => Advice::Found(self.limit(found, all)),
        }
    }

    /// Unites the results of passes.
    fn limit(&self, found: &[Bracket], trials: &[RateTrial]) -> RateLimit {
        // `None` if any pass found none: then no rate is safe all the time.
        let carried =
            found.iter().map(|bracket| bracket.carried.map(|rate| rate.0)).collect::<Option<Vec<_>>>();
        let lost = found.iter().map(|bracket| bracket.lost.map(|rate| rate.0)).collect::<Option<Vec<_>>>();
        let least = carried.iter().flatten().copied().reduce(f64::min);
        let most = carried.iter().flatten().copied().reduce(f64::max);
        // Trials of all passes at the rate that is carried, also those of a pass that found a higher one: a
        // loss there counts. Rates of one place in the grid differ by rounding only.
        let mut there = Votes::default();
        let near = |trial: &&RateTrial| {
            least.is_some_and(|rate| (trial.rate.0 / rate - 1.0).abs() < self.grid / 4.0)
        };
        trials.iter().filter(near).for_each(|trial| there.add(trial.ended));
        RateLimit {
            carried: least.map(ByteRate),
            lost: lost.iter().flatten().copied().reduce(f64::max).map(ByteRate),
            clean: there.carried,
            stalled: there.lost,
            duration: self.duration,
            passes: found.len() as u32,
            moved: least.zip(most).map_or(0.0, |(least, most)| most / least - 1.0),
            trials: trials.len() as u32,
            invalid: trials.iter().filter(|trial| trial.ended == SearchEnd::Invalid).count() as u32,
        }
    }
}

/// The result of a pass from the first of these trials, with their number; `None` if it needs more.
fn complete(pass: &Pass, trials: &[RateTrial]) -> Option<(Bracket, usize)> {
    // The fewest that suffice: those behind them belong to the next pass.
    (0..=trials.len()).find_map(|used| match pass.advise(&trials[..used]) {
        Advice::Found(bracket) => Some((bracket, used)),
        Advice::Next(_) => None,
    })
}

impl RateLimit {
    /// The time in which losses at the carried rate are rarer than one, at 95 %. It is the time of its trials
    /// over the most events compatible with those seen.
    ///
    /// The bound holds for trials chosen beforehand. These are the first that lost nothing, which flatters a
    /// storage that stalls now and then. `None` if no rate is carried.
    pub fn rarer_than(&self) -> Option<Nanos> {
        let time = self.duration.seconds() * f64::from(self.clean + self.stalled);
        self.carried.map(|_| Nanos::from_seconds(time / poisson_upper(u64::from(self.stalled))))
    }

    /// Writes both ends.
    fn interval(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.carried, self.lost) {
            (Some(carried), Some(lost)) => write!(f, "carries {carried} and loses frames at {lost}"),
            (Some(carried), None) => write!(f, "carries at least {carried}; no higher rate could be tried"),
            (None, Some(lost)) => write!(f, "loses frames at {lost}; no lower rate that was tried is safe"),
            (None, None) => write!(f, "not decided"),
        }
    }
}

impl fmt::Display for RateLimit {
    /// The sentence, without its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interval(f)?;
        write!(f, " ({} trials of {}", self.trials, self.duration)?;
        if self.invalid > 0 {
            write!(f, ", {} of them invalid", self.invalid)?;
        }
        if self.passes == 0 {
            write!(f, ", ended before its first pass was complete")?;
        }
        if self.passes > 1 {
            write!(f, ", in {} passes that lie within {:.0} %", self.passes, 100.0 * self.moved)?;
        }
        match self.rarer_than() {
            None => write!(f, ")"),
            Some(time) => write!(
                f,
                "); at that rate {} of {} lost nothing, so losses are rarer than one in {time} (95 %)",
                self.clean,
                self.clean + self.stalled
            ),
        }
    }
}

#[cfg(test)]
mod tests;
