//! Rates of packets and bytes over about the last second.

use std::collections::VecDeque;

use nilometer_model::Nanos;

/// Rates over about the last second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RecentRates {
    pub(super) packets: f64,
    pub(super) bytes: f64,
}

/// Counts of about the last second: time, packets, bytes.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(Nanos, u64, u64)>);

impl Recent {
    const OVER: Nanos = Nanos::from_millis(1000);

    /// Adds the counts at `now`, and returns the rates since about a second ago.
    pub(super) fn see(&mut self, now: Nanos, packets: u64, bytes: u64) -> RecentRates {
        self.0.push_back((now, packets, bytes));
        while self.0.get(1).is_some_and(|second| now.since(second.0) >= Self::OVER) {
            self.0.pop_front();
        }
        let (then, packets_then, bytes_then) = self.0[0];
        let seconds = now.since(then).seconds();
        if seconds == 0.0 {
            return RecentRates::default();
        }
        let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
        RecentRates { packets: rate(packets, packets_then), bytes: rate(bytes, bytes_then) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_last_second_whenever_it_is_asked() {
        let mut recent = Recent::default();
        let at = Nanos::from_millis;
        let rates = |packets, bytes| RecentRates { packets, bytes };
        assert_eq!(recent.see(at(0), 5, 50), rates(0.0, 0.0), "nothing to compare with");
        assert_eq!(recent.see(at(500), 10, 100), rates(10.0, 100.0));
        for step in 2..20 {
            recent.see(at(500 * step), 5 + 5 * step, 50 + 50 * step);
        }
        assert!(recent.0.len() <= 4, "it keeps no more than it needs");
        // No more packets arrive.
        assert_eq!(recent.see(at(10_000), 100, 1000), rates(5.0, 50.0));
        assert_eq!(recent.see(at(12_000), 100, 1000), rates(0.0, 0.0));
    }
}
