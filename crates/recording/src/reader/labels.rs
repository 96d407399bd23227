//! A label for each of many numbers that arrive nearly in order. Neighbours with the same label form a run. If
//! runs are short, each number takes a byte.
//!
//! ```text
//! one writer       0..1024: 1                       a run: the same memory for any recording
//! two, in turns    1 2 1 2 2 1 1 2 ..               a byte for each number
//! ```

use std::{collections::BTreeMap, ops::Range};

/// The label of a number. 0 means none.
pub(super) type Label = u16;

/// Numbers in a page.
const PAGE: u64 = 1024;

/// This number of runs takes as much memory as a byte for each number.
const RUNS_MAX: usize = PAGE as usize / size_of::<Run>();

/// Consecutive offsets in a page with one label. `end` follows the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    first: u16,
    end: u16,
    label: Label,
}

/// Labels by offset in a page. Offsets beyond the end have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// Runs in order. Adjacent ones have different labels.
    Runs(Vec<Run>),
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// Labels of numbers in pages. Each page has a value of type `X`.
#[derive(Debug, Clone)]
pub(super) struct Labels<X = ()> {
    /// Pages by number divided by the page size. No page is empty.
    pages: BTreeMap<u64, (Page, X)>,
    count: u64,
}

impl<X> Default for Labels<X> {
    fn default() -> Self {
        Labels { pages: BTreeMap::new(), count: 0 }
    }
}

/// The page of a number, and the offset in it.
fn split(number: u64) -> (u64, u16) {
    (number / PAGE, (number % PAGE) as u16)
}

impl<X: Default> Labels<X> {
    /// Number of labelled numbers.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn get(&self, number: u64) -> Label {
        self.page(number).map_or(0, |(page, _, at)| page.get(at))
    }

    /// Returns the page of a number, the page's value, and the number's offset in it.
    pub(super) fn page(&self, number: u64) -> Option<(&Page, &X, u16)> {
        let (key, at) = split(number);
        self.pages.get(&key).map(|(page, with)| (page, with, at))
    }

    /// Labels a number, or removes its label if `label` is 0.
    pub(super) fn set(&mut self, number: u64, label: Label) {
        self.change(number, |page, _, at| page.set(at, label));
    }

    /// Changes the label of a number together with its page's value.
    pub(super) fn change<T>(&mut self, number: u64, change: impl FnOnce(&mut Page, &mut X, u16) -> T) -> T {
        let (key, at) = split(number);
        let (page, with) = self.pages.entry(key).or_default();
        let before = page.get(at) != 0;
        let changed = change(page, with, at);
        self.count += u64::from(page.get(at) != 0);
        self.count -= u64::from(before);
        if page.is_empty() {
            self.pages.remove(&key);
        }
        changed
    }

    /// Returns the first labelled number at or after `from`.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        self.numbers(from..u64::MAX).next()
    }

    /// Returns the last labelled number below `below`.
    pub(super) fn previous(&self, below: u64) -> Option<u64> {
        let (key, at) = split(below);
        self.pages.range(..=key).rev().find_map(|(&other, (page, _))| {
            let at = page.previous(if other == key { at } else { PAGE as u16 })?;
            Some(other * PAGE + u64::from(at))
        })
    }

    /// Returns the labelled numbers in a range, in order.
    pub(super) fn numbers(&self, among: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.pages(among)
            .flat_map(|(begin, page, _, offsets)| page.offsets(offsets).map(move |at| begin + u64::from(at)))
    }

    /// Returns the pages that overlap with a range: first number of the page, page, its value, and offsets in
    /// the range.
    pub(super) fn pages(&self, among: Range<u64>) -> impl Iterator<Item = (u64, &Page, &X, Range<u16>)> + '_ {
        let keys = if among.is_empty() { 0..0 } else { among.start / PAGE..(among.end - 1) / PAGE + 1 };
        self.pages.range(keys).map(move |(key, (page, with))| {
            let first = among.start.saturating_sub(key * PAGE).min(PAGE);
            let end = among.end.saturating_sub(key * PAGE).min(PAGE);
            (key * PAGE, page, with, first as u16..end as u16)
        })
    }

    /// Number of labelled numbers in a range.
    pub(super) fn count_in(&self, numbers: Range<u64>) -> u64 {
        let pages = self.pages(numbers);
        pages.map(|(_, page, _, offsets)| page.count(offsets, |label| label != 0)).sum()
    }
}

/// A set of numbers.
#[derive(Debug, Clone, Default)]
pub struct Numbers(Labels);

impl Numbers {
    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.count() == 0
    }

    /// Number of numbers in the set.
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// Returns true if the set contains the number.
    pub fn contains(&self, number: u64) -> bool {
        self.0.get(number) > 0
    }

    /// The greatest number in the set.
    pub fn last(&self) -> Option<u64> {
        self.0.previous(u64::MAX)
    }

    /// Number of elements in a range.
    pub(crate) fn count_in(&self, numbers: Range<u64>) -> u64 {
        self.0.count_in(numbers)
    }

    pub(crate) fn add(&mut self, number: u64) {
        self.0.set(number, 1);
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.0.set(number, 0);
    }
}

impl Default for Page {
    fn default() -> Self {
        Page::Runs(Vec::new())
    }
}

impl Page {
    /// Offset after the last labelled one.
    pub(super) fn end(&self) -> u16 {
        match self {
            Page::Runs(runs) => runs.last().map_or(0, |run| run.end),
            Page::Bytes(labels) => labels.len() as u16,
            Page::Words(labels) => labels.len() as u16,
        }
    }

    /// Returns the labelled offsets in a range.
    pub(super) fn offsets(&self, among: Range<u16>) -> impl Iterator<Item = u16> + '_ {
        let next = move |from| self.next(from, |label| label != 0).filter(|at| *at < among.end);
        std::iter::successors(next(among.start), move |at| next(at + 1))
    }

    fn is_empty(&self) -> bool {
        self.end() == 0
    }

    pub(super) fn get(&self, at: u16) -> Label {
        match self {
            Page::Runs(runs) => {
                let run = runs.partition_point(|run| run.end <= at);
                runs.get(run).filter(|run| run.first <= at).map_or(0, |run| run.label)
            }
            Page::Bytes(labels) => labels.get(usize::from(at)).map_or(0, |label| (*label).into()),
            Page::Words(labels) => labels.get(usize::from(at)).copied().unwrap_or(0),
        }
    }

    pub(super) fn set(&mut self, at: u16, label: Label) {
        if let Page::Runs(runs) = self {
            set_in_runs(runs, at, label);
            if runs.len() <= RUNS_MAX {
                return;
            }
            *self = Page::Bytes(Vec::new()).filled(runs);
            return;
        }
        if let (Page::Bytes(labels), Err(_)) = (&*self, u8::try_from(label)) {
            *self = Page::Words(labels.iter().map(|label| (*label).into()).collect());
        }
        match self {
            Page::Bytes(labels) => set_in_list(labels, at, label as u8),
            Page::Words(labels) => set_in_list(labels, at, label),
            Page::Runs(_) => {}
        }
        if at + 1 == PAGE as u16 || self.is_full_of(label) {
            self.join();
        }
    }

    /// Adds these runs.
    fn filled(mut self, runs: &[Run]) -> Self {
        for run in runs {
            (run.first..run.end).for_each(|at| self.set(at, run.label));
        }
        self
    }

    /// Returns true if all numbers have this label, which can happen when the last of several writers fills a
    /// page.
    fn is_full_of(&self, label: Label) -> bool {
        match self {
            Page::Runs(_) => false,
            Page::Bytes(labels) => {
                labels.len() as u64 == PAGE && labels.iter().all(|other| Label::from(*other) == label)
            }
            Page::Words(labels) => labels.len() as u64 == PAGE && labels.iter().all(|other| *other == label),
        }
    }

    /// Turns the page back into runs if they take less memory.
    fn join(&mut self) {
        let mut runs: Vec<Run> = Vec::new();
        for at in 0..PAGE as u16 {
            set_in_runs(&mut runs, at, self.get(at));
            if runs.len() > RUNS_MAX / 2 {
                return;
            }
        }
        *self = Page::Runs(runs);
    }

    pub(super) fn next(&self, from: u16, is_asked: impl Fn(Label) -> bool) -> Option<u16> {
        match self {
            Page::Runs(runs) => {
                let first = runs.partition_point(|run| run.end <= from);
                let run = runs[first..].iter().find(|run| is_asked(run.label))?;
                Some(run.first.max(from))
            }
            Page::Bytes(labels) => next_in_list(labels, from, |label| is_asked(label.into())),
            Page::Words(labels) => next_in_list(labels, from, is_asked),
        }
    }

    fn previous(&self, below: u16) -> Option<u16> {
        match self {
            Page::Runs(runs) => {
                let runs = &runs[..runs.partition_point(|run| run.first < below)];
                runs.last().map(|run| run.end.min(below) - 1)
            }
            Page::Bytes(labels) => previous_in_list(labels, below),
            Page::Words(labels) => previous_in_list(labels, below),
        }
    }

    pub(super) fn count(&self, offsets: Range<u16>, is_asked: impl Fn(Label) -> bool) -> u64 {
        match self {
            Page::Runs(runs) => {
                let first = runs.partition_point(|run| run.end <= offsets.start);
                let among = runs[first..].iter().take_while(|run| run.first < offsets.end);
                let within = |run: &Run| u64::from(run.end.min(offsets.end) - run.first.max(offsets.start));
                among.filter(|run| is_asked(run.label)).map(within).sum()
            }
            Page::Bytes(labels) => count_in_list(labels, offsets, |label| is_asked(label.into())),
            Page::Words(labels) => count_in_list(labels, offsets, is_asked),
        }
    }
}

fn set_in_runs(runs: &mut Vec<Run>, at: u16, label: Label) {
    // Numbers in order extend the last run.
    if let Some(last) = runs.last_mut().filter(|last| (last.end, last.label) == (at, label)) {
        last.end += 1;
        return;
    }
    let here = runs.partition_point(|run| run.end <= at);
    let split = runs.get(here).copied().filter(|run| run.first <= at);
    let whole = split.unwrap_or(Run { first: at, end: at, label: 0 });
    let parts = [
        Run { end: at, ..whole },
        Run { first: at, end: at + 1, label },
        Run { first: at + 1, end: whole.end.max(at + 1), ..whole },
    ];
    let parts = parts.into_iter().filter(|run| run.first < run.end && run.label != 0);
    runs.splice(here..here + usize::from(split.is_some()), parts);
    // Join runs that have become adjacent.
    let from = here.saturating_sub(1);
    for first in (from..(here + 3).min(runs.len().saturating_sub(1))).rev() {
        let run = runs[first];
        let next = runs[first + 1];
        if (run.end, run.label) == (next.first, next.label) {
            runs[first].end = next.end;
            runs.remove(first + 1);
        }
    }
}

fn set_in_list<T: Copy + Default + PartialEq>(labels: &mut Vec<T>, at: u16, label: T) {
    let at = usize::from(at);
    if at >= labels.len() {
        labels.resize(at + 1, T::default());
    }
    labels[at] = label;
    let end = labels.iter().rposition(|label| *label != T::default()).map_or(0, |last| last + 1);
    labels.truncate(end);
}

fn next_in_list<T: Copy>(labels: &[T], from: u16, is_asked: impl Fn(T) -> bool) -> Option<u16> {
    let from = usize::from(from);
    let at = labels.get(from..)?.iter().position(|label| is_asked(*label))?;
    Some((from + at) as u16)
}

fn previous_in_list<T: Copy + Default + PartialEq>(labels: &[T], below: u16) -> Option<u16> {
    let below = labels.len().min(below.into());
    labels[..below].iter().rposition(|label| *label != T::default()).map(|at| at as u16)
}

fn count_in_list<T: Copy>(labels: &[T], offsets: Range<u16>, is_asked: impl Fn(T) -> bool) -> u64 {
    let end = labels.len().min(offsets.end.into());
    let among = labels.get(usize::from(offsets.start)..end).unwrap_or_default();
    among.iter().filter(|label| is_asked(**label)).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_what_a_plain_map_says(
            changes in prop::collection::vec((0..3000_u64, 1..40_u64, 1..3_u64, 0..4_usize), 0..60),
            from in 0..3100_u64, count in 0..3000_u64,
        ) {
            let (mut labels, mut map) = (Labels::<()>::default(), BTreeMap::new());
            for (first, count, step, label) in changes {
                // Include a label that needs more than a byte.
                let label = [0, 1, 2, 300][label];
                for number in (first..).step_by(step as usize).take(count as usize) {
                    labels.set(number, label);
                    if label == 0 {
                        map.remove(&number);
                    } else {
                        map.insert(number, label);
                    }
                }
            }
            prop_assert_eq!(labels.count(), map.len() as u64);
            prop_assert!((0..3200).all(|number| labels.get(number) == map.get(&number).copied().unwrap_or(0)));
            prop_assert_eq!(labels.next(from), map.range(from..).next().map(|(number, _)| *number));
            prop_assert_eq!(labels.previous(from), map.range(..from).next_back().map(|(number, _)| *number));
            prop_assert_eq!(labels.count_in(from..from + count), map.range(from..from + count).count() as u64);
            let numbers = map.range(from..from + count).map(|(number, _)| *number);
            prop_assert!(labels.numbers(from..from + count).eq(numbers));
            for (begin, page, (), offsets) in labels.pages(from..from + count) {
                let numbers = begin + u64::from(offsets.start)..begin + u64::from(offsets.end);
                let mut same = map.range(numbers).filter(|(_, label)| **label == 2).map(|(number, _)| *number - begin);
                prop_assert_eq!(page.count(offsets.clone(), |label| label == 2), same.clone().count() as u64);
                let next = page.next(offsets.start, |label| label == 2).filter(|at| *at < offsets.end);
                prop_assert_eq!(next.map(u64::from), same.next());
                let end = map.range(begin..begin + PAGE).next_back().map_or(0, |(number, _)| *number + 1 - begin);
                prop_assert_eq!(u64::from(page.end()), end);
            }
        }
    }

    #[test]
    fn pages_take_no_more_memory_than_they_need() {
        let (mut labels, all) = (Labels::<()>::default(), 0..4 * PAGE);
        let is_run = |labels: &Labels| {
            labels.pages.values().all(|(page, ())| matches!(page, Page::Runs(runs) if runs.len() == 1))
        };
        let set = |labels: &mut Labels, first, step, label: Label| {
            for number in all.clone().skip(first).step_by(step) {
                labels.set(number, label);
            }
        };
        set(&mut labels, 0, 1, 7);
        assert!(is_run(&labels), "one writer's");
        // Two writers, one after the other.
        let mut labels = Labels::default();
        set(&mut labels, 0, 2, 1);
        assert!(labels.pages.values().all(|(page, ())| matches!(page, Page::Bytes(_))));
        set(&mut labels, 1, 2, 1);
        assert!(is_run(&labels));
        set(&mut labels, 0, 1, 0);
        assert!(labels.pages.is_empty() && labels.count() == 0);
    }
}
