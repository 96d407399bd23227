//! The smallest buffer with which a given rate is carried without loss.

use std::{collections::BTreeMap, fmt};

use super::{Advice, CLEAN, SearchEnd, Votes};

/// A search over buffers at one rate.
///
/// A trial's history is independent of the buffer until the buffer is full. The most slots in use in a trial
/// without loss are therefore exactly those that the trial needed.
///
/// Three trials with the largest buffer give the first guess, the most that any of them used. Three trials of
/// three confirm a guess; if one of them loses, the guess grows by a quarter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSearch {
    /// The largest buffer, in slots. At least 1.
    pub most: u64,
    /// The number of processes that take frames in turn, each into a buffer of its own with an equal share of the
    /// slots. At least 1.
    pub parts: u64,
}

/// A trial with a buffer from the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferTrial {
    /// Slots of the ring.
    pub slots: u64,
    /// The most slots that were in use at once.
    pub high: u64,
    /// Its end.
    pub ended: SearchEnd,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimit {
    /// Slots that carried three of three trials; `None` if the largest buffer is too small.
    pub enough: Option<u64>,
    /// The largest buffer with which a trial lost; `None` if no trial lost.
    pub lost: Option<u64>,
    /// The most slots that a trial without loss had in use, with any buffer.
    pub high: u64,
    /// Trials in all.
    pub trials: u32,
}

/// No buffer of a part has fewer slots.
const SLOTS_LEAST: u64 = 2;

type Poll = BTreeMap<u64, Votes>;

impl BufferSearch {
    /// The next step after these trials, in any order: the number of slots to try, or the limit.
    pub fn advise(&self, trials: &[BufferTrial]) -> Advice<u64, BufferLimit> {
        let poll = poll(trials);
        let votes = |slots| poll.get(&slots).copied().unwrap_or_default();
        let slots = if votes(self.most).is_clean() { self.guess(trials, votes) } else { self.most };
        if votes(slots).is_open() {
            return Advice::Next(slots);
        }
        Advice::Found(limit(&poll, votes(slots).is_clean().then_some(slots), trials))
    }

    /// The result of an incomplete search: the smallest buffer that three of three trials confirmed.
    pub fn so_far(&self, trials: &[BufferTrial]) -> BufferLimit {
        let poll = poll(trials);
        let enough = poll.iter().find(|(_, votes)| votes.is_clean()).map(|(slots, _)| *slots);
        limit(&poll, enough, trials)
    }

    /// The first guess that may still be confirmed, or is. The largest buffer is.
    fn guess(self, trials: &[BufferTrial], votes: impl Fn(u64) -> Votes) -> u64 {
        let ample = carried(trials).filter(|trial| trial.slots == self.most);
        let high = ample.map(|trial| trial.high).max().unwrap_or(self.most).max(1);
        let mut slots = self.shared_out(high);
        while !votes(slots).is_clean() && !votes(slots).is_open() {
            slots = self.shared_out(slots + slots.div_ceil(4));
        }
        slots
    }
}

impl BufferSearch {
    /// The least number of slots from this one on that all parts share alike, two of each at least; at most the
    /// largest buffer.
    fn shared_out(self, slots: u64) -> u64 {
        let least = if self.parts > 1 { SLOTS_LEAST * self.parts } else { 1 };
        slots.max(least).next_multiple_of(self.parts).min(self.most)
    }
}

fn poll(trials: &[BufferTrial]) -> Poll {
    let mut poll = Poll::new();
    for trial in trials {
        poll.entry(trial.slots).or_default().add(trial.ended);
    }
    poll
}

fn limit(poll: &Poll, enough: Option<u64>, trials: &[BufferTrial]) -> BufferLimit {
    BufferLimit {
        enough,
        lost: poll.iter().rfind(|(_, votes)| votes.lost > 0).map(|(slots, _)| *slots),
        high: carried(trials).map(|trial| trial.high).max().unwrap_or_default(),
        trials: trials.len() as u32,
    }
}

fn carried(trials: &[BufferTrial]) -> impl Iterator<Item = &BufferTrial> {
    trials.iter().filter(|trial| trial.ended == SearchEnd::Carried)
}

impl fmt::Display for BufferLimit {
    /// The sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.enough, self.lost) {
            (Some(enough), _) => {
                write!(f, "{enough} slots are enough: {CLEAN} of {CLEAN} trials lost nothing")
            }
            (None, Some(lost)) => write!(f, "{lost} slots are not enough"),
            (None, None) => write!(f, "not decided"),
        }?;
        if let (Some(_), Some(lost)) = (self.enough, self.lost) {
            write!(f, "; with {lost} one of them lost")?;
        }
        write!(f, " ({} trials)", self.trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches a storage that needs `needs(number)` slots in trial `number`.
    fn search(most: u64, needs: impl Fn(usize) -> u64) -> (BufferLimit, Vec<BufferTrial>) {
        let (search, mut trials) = (BufferSearch { most, parts: 1 }, Vec::new());
        loop {
            let slots = match search.advise(&trials) {
                Advice::Next(slots) => slots,
                Advice::Found(limit) => return (limit, trials),
            };
            let needed = needs(trials.len());
            let ended = if needed <= slots { SearchEnd::Carried } else { SearchEnd::Lost };
            trials.push(BufferTrial { slots, high: needed.min(slots), ended });
            assert!(trials.len() < 200, "no end: {trials:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_always_needed_is_found_exactly(needed in 1..5000_u64, most in 1..5000_u64) {
            let (limit, trials) = search(most, |_| needed);
            if needed <= most {
                prop_assert_eq!((limit.enough, limit.lost, limit.high), (Some(needed), None, needed));
                let largest = trials.iter().filter(|trial| trial.slots == most).count();
                prop_assert_eq!(largest, 3);
            } else {
                prop_assert_eq!((limit.enough, limit.lost, trials.len()), (None, Some(most), 1));
            }
        }

        #[test]
        fn what_is_found_was_carried_three_times_of_three(seed: u64, most in 1..5000_u64) {
            let mut stream = nilometer_model::Seed(seed).stream();
            let needs: Vec<u64> = (0..200).map(|_| 1 + stream.below(most)).collect();
            let (limit, trials) = search(most, |trial| needs[trial]);
            let enough = limit.enough.expect("the largest is always enough");
            let here: Vec<_> = trials.iter().filter(|trial| trial.slots == enough).collect();
            prop_assert!(here.len() >= 3 && here.iter().all(|trial| trial.ended == SearchEnd::Carried));
            prop_assert!(limit.lost.is_none_or(|lost| lost < enough));
        }
    }

    #[test]
    fn a_guess_that_loses_grows_by_a_quarter() {
        let needs = [100, 90, 80, 70, 101, 10, 126, 10, 10, 10];
        let (limit, trials) = search(1000, |trial| needs[trial]);
        let tried: Vec<u64> = trials.iter().map(|trial| trial.slots).collect();
        assert_eq!(tried, [1000, 1000, 1000, 100, 100, 125, 125, 157, 157, 157]);
        assert_eq!((limit.enough, limit.lost, limit.high), (Some(157), Some(125), 100));
        assert_eq!(
            limit.to_string(),
            "157 slots are enough: 3 of 3 trials lost nothing; with 125 one of them lost (10 trials)"
        );
    }

    #[test]
    fn a_search_that_was_cut_short_says_what_was_confirmed() {
        let trial = |slots, ended| BufferTrial { slots, high: slots.min(40), ended };
        let search = BufferSearch { most: 100, parts: 1 };
        let mut trials = vec![trial(100, SearchEnd::Carried); 3];
        trials.extend([trial(40, SearchEnd::Carried), trial(40, SearchEnd::Lost)]);
        assert_eq!(search.advise(&trials), Advice::Next(50));
        let limit = BufferLimit { enough: Some(100), lost: Some(40), high: 40, trials: 5 };
        assert_eq!(search.so_far(&trials), limit);
        assert_eq!(search.so_far(&trials[..2]).enough, None);
    }

    #[test]
    fn invalid_trials_are_repeated_and_then_given_up() {
        let invalid = BufferTrial { slots: 10, high: 0, ended: SearchEnd::Invalid };
        let search = BufferSearch { most: 10, parts: 1 };
        assert_eq!(search.advise(&[invalid; 3]), Advice::Next(10));
        let limit = BufferLimit { enough: None, lost: None, high: 0, trials: 4 };
        assert_eq!(search.advise(&[invalid; 4]), Advice::Found(limit));
        assert_eq!(limit.to_string(), "not decided (4 trials)");
    }
}
