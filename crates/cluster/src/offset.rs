//! How far the clocks of two processes are apart, by messages that go to and fro: the shortest of several round trips says it
//! best, and is wrong by half of its length at the most (F. Cristian, Probabilistic clock synchronization, Distributed Computing
//! 3, 1989).

use nilometer_model::Nanos;

/// One message that went to and fro.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTrip {
    /// When it left, on the clock of who asked.
    pub(crate) asked: Nanos,
    /// When it was there, on the clock of who answered.
    pub(crate) answered: Nanos,
    /// When it was back.
    pub(crate) back: Nanos,
}

/// By how much a clock is ahead of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockOffset {
    /// In nanoseconds.
    pub(crate) ahead: i64,
    /// It may be so much more or less.
    pub(crate) uncertainty: u64,
}

impl RoundTrip {
    fn took(self) -> u64 {
        self.back.since(self.asked).0
    }

    fn offset(self) -> ClockOffset {
        let middle = self.asked.0.midpoint(self.back.0);
        ClockOffset {
            ahead: self.answered.0.cast_signed() - middle.cast_signed(),
            uncertainty: self.took().div_ceil(2),
        }
    }
}

impl ClockOffset {
    /// What the shortest of these says of the clock of who answered; none says nothing.
    pub(crate) fn of(trips: &[RoundTrip]) -> Self {
        let shortest = trips.iter().min_by_key(|trip| trip.took());
        shortest.map(|trip| trip.offset()).unwrap_or_default()
    }

    /// Of a clock that is so far ahead of one that is itself so far ahead.
    pub(crate) fn behind(self, other: ClockOffset) -> Self {
        ClockOffset {
            ahead: self.ahead + other.ahead,
            uncertainty: self.uncertainty.saturating_add(other.uncertainty),
        }
    }

    /// A time of the other clock on this one.
    pub(crate) fn here(self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_add_signed(self.ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(asked: u64, answered: u64, back: u64) -> RoundTrip {
        RoundTrip { asked: Nanos(asked), answered: Nanos(answered), back: Nanos(back) }
    }

    #[test]
    fn the_shortest_trip_says_it_and_the_truth_lies_within_what_it_leaves_open() {
        // The other clock is ahead by 1000; the way there takes long, or the way back.
        let trips = [trip(0, 1090, 100), trip(200, 1208, 220), trip(300, 1310, 400)];
        let offset = ClockOffset::of(&trips);
        assert_eq!(offset, ClockOffset { ahead: 998, uncertainty: 10 });
        for trip in trips {
            let ClockOffset { ahead, uncertainty } = trip.offset();
            assert!((ahead - 1000).unsigned_abs() <= uncertainty, "{trip:?}");
        }
        assert_eq!(offset.here(Nanos(5000)), Nanos(5998));
        let behind = ClockOffset { ahead: -5000, uncertainty: 3 };
        assert_eq!(behind.here(Nanos(100)), Nanos(0), "before its begin there is no time");
        assert_eq!(offset.behind(behind), ClockOffset { ahead: -4002, uncertainty: 13 });
    }
}
