//! Reads the kernel's counters of this machine during a trial, interval by interval. One rank of each machine does so.

use std::thread;

use nilometer_model::{Nanos, TrafficInterval};
use nilometer_storage::network::traffic::TrafficCounters;

use crate::span::Span;

/// The length of an interval. A shorter trial has [`INTERVALS_LEAST`] shorter ones.
const INTERVAL: Nanos = Nanos::from_millis(1000);
/// The intervals of a short trial.
const INTERVALS_LEAST: u64 = 5;
/// The shortest interval: reading the counters takes some 0.1 ms.
const INTERVAL_LEAST: Nanos = Nanos::from_millis(10);

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
        let due = next_due(before.at.since(span.from), step);
        let until = (span.from + due).min(span.until);
        thread::sleep(until.since(span.clock.now()).duration());
        let now = CountersReading::now(span);
        intervals.push(now.since(&before, span));
        before = now;
    }
    intervals
}

/// The length of a trial's intervals.
fn step_of(duration: Nanos) -> Nanos {
    Nanos(duration.0 / INTERVALS_LEAST).clamp(INTERVAL_LEAST, INTERVAL)
}

/// The next whole number of steps. A reading that comes late makes the next interval shorter.
const fn next_due(now: Nanos, step: Nanos) -> Nanos {
    Nanos((now.0 / step.0 + 1) * step.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::Clock;

    #[test]
    fn a_long_trial_has_an_interval_each_second_and_a_short_one_has_five() {
        let steps = [30_000, 1000, 100, 10].map(|millis| step_of(Nanos::from_millis(millis)));
        assert_eq!(steps, [1000, 200, 20, 10].map(Nanos::from_millis));
        let step = Nanos::from_millis(200);
        let late = [0, 199, 200, 450].map(|millis| next_due(Nanos::from_millis(millis), step));
        assert_eq!(late, [200, 200, 400, 600].map(Nanos::from_millis));
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
