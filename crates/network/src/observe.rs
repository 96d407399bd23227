//! Reads the kernel's counters of this machine during a trial, interval by interval. One rank of each machine does so.

use std::{cmp::Reverse, collections::BTreeMap, thread};

use nilometer_model::{Nanos, TrafficInterval};
use nilometer_storage::network::traffic::TrafficCounters;

use crate::span::Span;

/// The length of an interval. A shorter trial has [`INTERVALS_LEAST`] shorter ones.
const INTERVAL: Nanos = Nanos::from_millis(1000);
/// The intervals of a short trial.
const INTERVALS_LEAST: u64 = 5;
/// The shortest interval: reading the counters takes some 0.1 ms.
const INTERVAL_LEAST: Nanos = Nanos::from_millis(10);
/// The most intervals of a long trial: rank 0 gathers those of all machines.
const INTERVALS_MOST: u64 = 600;
/// The most interfaces of a machine that are kept: those with most traffic in the whole trial.
const LINKS_MOST: usize = 16;

/// The counters at a time.
struct CountersReading {
    at: Nanos,
    counters: TrafficCounters,
}

impl CountersReading {
    fn now(span: Span) -> Self {
        CountersReading { at: span.clock.now(), counters: TrafficCounters::now() }
    }

    fn since(&self, before: &CountersReading, span: Span) -> TrafficInterval {
        TrafficInterval {
            machine: 0,
            from: before.at.since(span.from),
            until: self.at.since(span.from),
            retransmitted: self.counters.retransmitted_since(&before.counters),
            links: self.counters.links_since(&before.counters),
        }
    }
}

/// The intervals of this machine from the begin of a trial to the end of sending. The machine's number is for rank 0 to
/// fill in.
pub(crate) fn intervals(span: Span) -> Vec<TrafficInterval> {
    let step = step_of(span.until.since(span.from));
    span.wait();
    let mut before = CountersReading::now(span);
    let mut intervals = Vec::new();
    while before.at < span.until {
        let until = until(before.at, step, span);
        thread::sleep(until.since(span.clock.now()).duration());
        let now = CountersReading::now(span);
        intervals.push(now.since(&before, span));
        before = now;
    }
    keep_busiest(&mut intervals);
    intervals
}

/// The end of the interval that begins at `now`. A rest of less than half a step belongs to the interval before it.
fn until(now: Nanos, step: Nanos, span: Span) -> Nanos {
    let due = span.from + next_due(now.since(span.from), step);
    let has_rest = span.until.since(due).0 >= step.0 / 2;
    if has_rest { due } else { span.until }
}

/// Leaves out all interfaces but the busiest of the trial: a machine with containers has hundreds.
fn keep_busiest(intervals: &mut [TrafficInterval]) {
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    for link in intervals.iter().flat_map(|interval| &interval.links) {
        *bytes.entry(link.name.clone()).or_default() += link.received_bytes.saturating_add(link.sent_bytes);
    }
    let mut names: Vec<_> = bytes.into_iter().collect();
    names.sort_by_key(|(_, bytes)| Reverse(*bytes));
    names.truncate(LINKS_MOST);
    for interval in intervals {
        interval.links.retain(|link| names.iter().any(|(name, _)| *name == link.name));
    }
}

/// The length of a trial's intervals: whole seconds in a long one.
fn step_of(duration: Nanos) -> Nanos {
    let seconds = duration.0.div_ceil(INTERVAL.0 * INTERVALS_MOST).max(1);
    Nanos(duration.0 / INTERVALS_LEAST).clamp(INTERVAL_LEAST, Nanos(seconds * INTERVAL.0))
}

/// The next whole number of steps, at least half a step away. A reading that comes late makes the next interval
/// shorter or longer by up to half a step.
const fn next_due(now: Nanos, step: Nanos) -> Nanos {
    Nanos(((now.0 + step.0 / 2) / step.0 + 1) * step.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::LinkTraffic;
    use nilometer_storage::Clock;

    #[test]
    fn a_long_trial_has_an_interval_each_second_and_a_short_one_has_five() {
        let steps = [30_000, 1000, 100, 10].map(|millis| step_of(Nanos::from_millis(millis)));
        assert_eq!(steps, [1000, 200, 20, 10].map(Nanos::from_millis));
        let step = Nanos::from_millis(200);
        let late = [0, 199, 200, 450].map(|millis| next_due(Nanos::from_millis(millis), step));
        assert_eq!(late, [200, 400, 400, 600].map(Nanos::from_millis));
        let hours = [600, 601, 7200].map(|seconds| step_of(Nanos::from_millis(seconds * 1000)));
        assert_eq!(hours, [1000, 2000, 12_000].map(Nanos::from_millis), "at most 600 intervals");
    }

    #[test]
    fn a_rest_shorter_than_half_a_step_belongs_to_the_last_interval() {
        let clock = Clock::start();
        let ends = |millis| {
            let span = Span { clock, from: Nanos(0), until: Nanos::from_millis(millis) };
            until(Nanos::from_millis(9000), Nanos::from_millis(1000), span)
        };
        assert_eq!([10_001, 10_499, 10_500].map(ends), [10_001, 10_499, 10_000].map(Nanos::from_millis));
    }

    #[test]
    fn of_many_interfaces_the_busiest_are_kept_in_all_intervals() {
        let link =
            |name: u64, bytes| LinkTraffic { name: name.to_string(), received_bytes: bytes, sent_bytes: 1 };
        let interval = |bytes: fn(u64) -> u64| TrafficInterval {
            machine: 0,
            from: Nanos(0),
            until: Nanos(1),
            retransmitted: None,
            links: (0..100).map(|name| link(name, bytes(name))).collect(),
        };
        let mut intervals = [interval(|name| name), interval(|_| 5)];
        keep_busiest(&mut intervals);
        let names = |of: &TrafficInterval| of.links.iter().map(|link| link.name.clone()).collect::<Vec<_>>();
        let expected: Vec<_> = (84..100).map(|name: u64| name.to_string()).collect();
        assert_eq!(intervals.each_ref().map(names), [expected.clone(), expected]);
    }

    #[test]
    fn intervals_follow_each_other_to_the_end_of_sending() {
        let clock = Clock::start();
        let from = clock.now();
        let span = Span { clock, from, until: from + Nanos::from_millis(50) };
        let all = intervals(span);
        assert!(all.windows(2).all(|pair| pair[0].until == pair[1].from), "{all:?}");
        assert!(all.last().expect("one").until >= Nanos::from_millis(50), "{all:?}");
        assert!(all.iter().all(|interval| interval.until > interval.from), "{all:?}");
    }
}
