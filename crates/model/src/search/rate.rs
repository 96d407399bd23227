//! The highest rate that is carried without loss with a given buffer.

use std::{collections::BTreeMap, fmt};

use super::{Advice, Answer, Ended, INVALID_MOST, Votes};
use crate::{ByteRate, Nanos, statistics::poisson_upper};

/// A search over rates of a fixed grid, so that rates repeat, also between searches.
///
/// From the hint it goes up or down in growing steps to where the answer changes, and halves the range there. At each rate
/// the majority of three trials decides, and at the upper end, the lowest rate at which most lost, the majority of five: two
/// stalls in a row would move it. From there it goes down to the first rate at which three of three trials were carried: the
/// lower end. So a rare stall widens the interval downwards, and does not move it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearch {
    /// Where to begin: the rate that the storage took as fast as it could.
    pub hint: ByteRate,
    /// No lower rate is tried. Above zero.
    pub least: ByteRate,
    /// No higher rate is tried: what the source can deliver.
    pub most: ByteRate,
    /// From one rate to the next, as a share of it. Above zero.
    pub grid: f64,
    /// How long a trial lasts.
    pub duration: Nanos,
    /// Trials in all, at the most.
    pub trials: u32,
}

/// From one rate of the grid to the next, unless said otherwise.
pub const GRID: f64 = 0.05;

/// Enough for any search: 4 at each of some 10 rates, and as many again for confirmation.
pub const TRIALS: u32 = 80;

/// A trial at a rate that the search asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateTrial {
    /// Its rate.
    pub rate: ByteRate,
    /// How it ended.
    pub ended: Ended,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// The highest rate below `lost` that three of three trials carried; none if there was none.
    pub carried: Option<ByteRate>,
    /// The lowest rate at which most trials lost; none if there was none.
    pub lost: Option<ByteRate>,
    /// Trials at `carried`; none of them lost.
    pub clean: u32,
    /// How long a trial lasted.
    pub duration: Nanos,
    /// Trials in all.
    pub trials: u32,
    /// Of these, invalid.
    pub invalid: u32,
}

/// A rate of the grid: its logarithm to the base 1 + grid, in B/s. Independent of the search, so that two searches of the
/// same grid try the same rates.
type Notch = i32;

type Poll = BTreeMap<Notch, Votes>;

impl RateSearch {
    /// With the usual grid and number of trials.
    pub const fn new(hint: ByteRate, (least, most): (ByteRate, ByteRate), duration: Nanos) -> Self {
        RateSearch { hint, least, most, grid: GRID, duration, trials: TRIALS }
    }

    /// What to do after these trials, in any order. All must be at rates that the search, or one of the same grid, asked
    /// for.
    pub fn advise(&self, trials: &[RateTrial]) -> Advice<ByteRate, RateLimit> {
        let mut poll = Poll::new();
        for trial in trials {
            poll.entry(self.notch(trial.rate).round() as Notch).or_default().add(trial.ended);
        }
        let next = self.locate(&poll).or_else(|| self.confirm(&poll));
        match next.filter(|_| trials.len() < self.trials as usize) {
            Some(notch) => Advice::Next(self.rate(notch)),
            None => Advice::Found(self.limit(&poll)),
        }
    }

    fn notch(&self, rate: ByteRate) -> f64 {
        rate.0.ln() / self.grid.ln_1p()
    }

    fn rate(&self, notch: Notch) -> ByteRate {
        ByteRate((f64::from(notch) * self.grid.ln_1p()).exp())
    }

    /// The rates that may be tried, lowest and highest: within the bounds, at least one. A rate of the grid stays one.
    fn bounds(&self) -> (Notch, Notch) {
        let top = (self.notch(self.most) + 1e-6).floor() as Notch;
        (((self.notch(self.least) - 1e-6).ceil() as Notch).min(top), top)
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
        let edge = self.edge(poll);
        let floor = self.floor(poll, edge);
        let (low, high) = (floor.unwrap_or(bottom - 1), edge);
        let notch = match (floor.is_some(), edge <= top) {
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

    fn limit(&self, poll: &Poll) -> RateLimit {
        let edge = self.edge(poll);
        let clean = poll.range(self.bounds().0..edge).rfind(|(_, votes)| votes.is_clean());
        let lost = poll.iter().find(|(_, votes)| votes.answer() == Some(Answer::Lost));
        let sum = |of: fn(&Votes) -> u32| poll.values().map(of).sum::<u32>();
        RateLimit {
            carried: clean.map(|(notch, _)| self.rate(*notch)),
            lost: lost.map(|(notch, _)| self.rate(*notch)),
            clean: clean.map_or(0, |(_, votes)| votes.carried),
            duration: self.duration,
            trials: sum(|votes| votes.carried + votes.lost + votes.invalid),
            invalid: sum(|votes| votes.invalid),
        }
    }
}

impl RateLimit {
    /// Losses at the rate that is carried are rarer than one in this time, at 95 %: the time of its trials over the most
    /// events that are compatible with none seen. It holds for trials made beforehand; these were chosen as the first
    /// that lost nothing, which flatters a storage that stalls now and then. None if no rate is carried.
    pub fn rarer_than(&self) -> Option<Nanos> {
        let time = self.duration.seconds() * f64::from(self.clean);
        self.carried.map(|_| Nanos::from_seconds(time / poisson_upper(0)))
    }

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
        match self.rarer_than() {
            None => write!(f, ")"),
            Some(time) => write!(
                f,
                "); at that rate {} of {} lost nothing, so losses are rarer than one in {time} (95 %)",
                self.clean, self.clean
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, Stream};
    use proptest::prelude::*;

    const T: Nanos = Nanos(10_000_000_000);
    const HINT: ByteRate = ByteRate(500e6);

    fn searching(hint: f64) -> RateSearch {
        RateSearch::new(ByteRate(hint), (ByteRate(50e6), ByteRate(5e9)), T)
    }

    /// Searches to the end: what was found, and the history.
    fn carry_out(
        search: &RateSearch,
        mut ended: impl FnMut(ByteRate) -> Ended,
    ) -> (RateLimit, Vec<RateTrial>) {
        let mut trials = Vec::new();
        loop {
            match search.advise(&trials) {
                Advice::Next(rate) => trials.push(RateTrial { rate, ended: ended(rate) }),
                Advice::Found(limit) => return (limit, trials),
            }
        }
    }

    fn above(threshold: f64) -> impl Fn(ByteRate) -> Ended {
        move |rate| if rate.0 > threshold { Ended::Lost } else { Ended::Carried }
    }

    proptest! {
        #[test]
        fn a_threshold_is_bracketed_by_neighbours(
            threshold in 61e6..4.1e9_f64, hint in 10e6..9e9_f64, grid in 0.01..0.2_f64,
        ) {
            let search = RateSearch { grid, ..searching(hint) };
            let (limit, trials) = carry_out(&search, above(threshold));
            let (carried, lost) = (limit.carried.expect("in bounds").0, limit.lost.expect("in bounds").0);
            prop_assert!(carried <= threshold && threshold < lost, "{} {}", carried, lost);
            prop_assert!((lost / carried - 1.0 - grid).abs() < 1e-9);
            prop_assert_eq!((limit.clean, limit.trials as usize), (3, trials.len()));
            prop_assert!(limit.trials < TRIALS);
        }

        #[test]
        fn the_order_of_trials_does_not_matter_and_the_search_goes_on_from_any_part(
            seed: u64, cut in 0..40_usize,
        ) {
            let (search, mut stream) = (searching(700e6), Seed(seed).stream());
            let (limit, trials) = carry_out(&search, |rate| noisy(&mut stream, rate, 0.1));
            let mut shuffled = trials.clone();
            shuffled.reverse();
            prop_assert_eq!(search.advise(&shuffled), Advice::Found(limit));
            if let Some(next) = trials.get(cut) {
                prop_assert_eq!(search.advise(&trials[..cut]), Advice::Next(next.rate));
            }
        }
    }

    #[test]
    fn a_good_hint_saves_trials() {
        let trials = |hint| carry_out(&searching(hint), above(500e6)).0.trials;
        assert!(trials(505e6) <= 9, "{} trials with a good hint", trials(505e6));
        assert!(trials(60e6) > trials(505e6) && trials(60e6) < 30, "{} with a bad one", trials(60e6));
    }

    #[test]
    fn beyond_the_bounds_there_is_one_end_only() {
        let (limit, trials) = carry_out(&searching(500e6), above(1e12));
        assert_eq!((limit.lost, limit.clean), (None, 3));
        let top = limit.carried.expect("all are carried").0;
        assert!(top <= 5e9 && top * 1.05 > 5e9, "{top}");
        assert!(trials.iter().all(|trial| trial.rate.0 <= 5e9));
        assert!(limit.to_string().starts_with("carries at least 4.8"), "{limit}");
        let (limit, trials) = carry_out(&searching(500e6), above(1e6));
        let lost = limit.lost.expect("none is carried").0;
        assert!(limit.carried.is_none() && (50e6..50e6 * 1.05).contains(&lost), "{lost}");
        assert!(trials.iter().all(|trial| trial.rate.0 >= 50e6));
        assert!(limit.rarer_than().is_none() && limit.to_string().contains("no lower rate"), "{limit}");
    }

    #[test]
    fn the_sentence_says_the_interval_and_how_sure_it_is() {
        let (limit, _) = carry_out(&searching(500e6), above(500e6));
        // 3 trials of 10 s over 2.9957.
        assert_eq!(
            limit.to_string(),
            "carries 487 MB/s and loses frames at 511 MB/s (6 trials of 10 s); at that rate 3 of 3 lost nothing, so \
             losses are rarer than one in 10 s (95 %)"
        );
    }

    #[test]
    fn a_rate_that_the_recorder_itself_cannot_keep_is_an_end() {
        let own = |rate: ByteRate| if rate.0 > 300e6 { Ended::Invalid } else { Ended::Carried };
        let (limit, _) = carry_out(&searching(500e6), own);
        let carried = limit.carried.expect("up to 300 MB/s").0;
        assert!(carried <= 300e6 && carried * 1.05 > 300e6 && limit.lost.is_none(), "{limit}");
        let (limit, trials) = carry_out(&searching(500e6), |_| Ended::Invalid);
        assert_eq!((limit.carried, limit.lost, limit.invalid as usize), (None, None, trials.len()));
        // One that is invalid now and then changes nothing.
        let mut count = 0;
        let (limit, _) = carry_out(&searching(500e6), |rate| {
            count += 1;
            if count % 3 == 0 { Ended::Invalid } else { above(400e6)(rate) }
        });
        let (carried, lost) = (limit.carried.expect("carried").0, limit.lost.expect("lost").0);
        assert!(carried <= 400e6 && 400e6 < lost && lost / carried < 1.06 && limit.invalid > 2, "{limit}");
    }

    #[test]
    fn a_rare_stall_widens_the_interval_downwards_and_no_more() {
        let (undisturbed, history) = carry_out(&searching(500e6), above(400e6));
        for stalled in 0..history.len() {
            let mut number = 0;
            let (limit, _) = carry_out(&searching(500e6), |rate| {
                number += 1;
                if number == stalled + 1 { Ended::Lost } else { above(400e6)(rate) }
            });
            assert_eq!(limit.lost, undisturbed.lost, "a stall in trial {stalled}");
            let lower =
                (undisturbed.carried.expect("carried").0 / limit.carried.expect("carried").0 - 1.0) / 0.05;
            assert!(
                (-0.01..1.01).contains(&lower),
                "{lower:.2} steps lower after a stall in trial {stalled}"
            );
        }
    }

    #[test]
    fn a_search_ends_when_its_trials_are_used_up() {
        for trials in 0..8 {
            let search = RateSearch { trials, ..searching(500e6) };
            let (limit, _) = carry_out(&search, above(400e6));
            assert_eq!((limit.trials, limit.carried), (trials, None), "nothing is confirmed yet");
        }
    }

    /// A storage that loses one trial in `stalls` of them by a stall, whatever the rate, and the others by a logistic
    /// function of the logarithm of the rate: half of them at 500 MB/s, from 12 % to 88 % within +- 10 %.
    fn noisy(stream: &mut Stream, rate: ByteRate, stalls: f64) -> Ended {
        if stream.unit() < chance(rate, stalls) { Ended::Lost } else { Ended::Carried }
    }

    fn chance(rate: ByteRate, stalls: f64) -> f64 {
        let overloaded = 1.0 / (1.0 + (-(rate.0 / HINT.0).ln() / 0.05).exp());
        1.0 - (1.0 - overloaded) * (1.0 - stalls)
    }

    fn median(values: impl Iterator<Item = f64>) -> f64 {
        crate::statistics::median(&values.collect::<Vec<_>>()).expect("some searches")
    }

    /// Ten searches, each from a hint of its own within 20 %.
    fn ten(seed: Seed, stalls: f64) -> Vec<RateLimit> {
        let one = |repeat| {
            let mut stream = seed.part(repeat).stream();
            let search = searching(HINT.0 * (0.8 + 0.4 * stream.unit()));
            carry_out(&search, |rate| noisy(&mut stream, rate, stalls)).0
        };
        (0..10).map(one).collect()
    }

    fn interval(limit: &RateLimit) -> (f64, f64) {
        (limit.carried.map_or(0.0, |rate| rate.0), limit.lost.map_or(f64::INFINITY, |rate| rate.0))
    }

    /// How many of ten overlap with their common median interval.
    fn overlapping(limits: &[RateLimit]) -> usize {
        let low = median(limits.iter().map(|limit| interval(limit).0));
        let high = median(limits.iter().map(|limit| interval(limit).1));
        limits.iter().map(interval).filter(|(carried, lost)| *carried <= high && low <= *lost).count()
    }

    #[test]
    fn of_ten_repeated_searches_at_least_nine_overlap() {
        for stalls in [0.0, 0.03, 0.1] {
            let sets: Vec<_> = (0..500).map(|seed| ten(Seed(seed), stalls)).collect();
            let good = sets.iter().filter(|set| overlapping(set) >= 9).count();
            let all: Vec<_> = sets.into_iter().flatten().collect();
            let share = |is: fn((f64, f64)) -> bool| {
                100.0 * all.iter().map(interval).filter(|limit| is(*limit)).count() as f64 / 5000.0
            };
            let covered = share(|(carried, lost)| carried <= HINT.0 && HINT.0 <= lost);
            let safe = share(|(carried, _)| carried <= HINT.0);
            // Losses come with a rate of -ln(1 - chance) a trial.
            let holds = |limit: &&RateLimit| {
                let losses = limit.carried.map_or(0.0, |rate| -(-chance(rate, stalls)).ln_1p());
                limit.rarer_than().is_none_or(|time| losses * time.seconds() <= T.seconds())
            };
            let sure = 100.0 * all.iter().filter(holds).count() as f64 / 5000.0;
            let trials = median(all.iter().map(|limit| f64::from(limit.trials)));
            let ratio = median(all.iter().map(interval).map(|(carried, lost)| lost / carried));
            println!(
                "{stalls} of trials stalled: in {good} of 500 sets nine of ten overlap; {covered:.1} % contain the rate of \
                 even chances, {safe:.1} % carry no more; of {sure:.1} % losses are as rare as they say; median of \
                 {trials} trials, of a ratio of {ratio:.2}"
            );
            assert!(good >= 480, "{stalls}: nine of ten overlap in {good} of 500 sets only");
            assert!(covered > 60.0 && safe > 92.0, "{stalls}: {covered} % and {safe} %");
            assert!(sure > 95.0, "{stalls}: of {sure} % losses are as rare as they say");
        }
    }
}
