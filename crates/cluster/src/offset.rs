//! Measures the offset between the clocks of two processes from round trips of messages. The shortest of
//! several gives the best estimate, with an error of at most half its length (F. Cristian, Probabilistic clock
//! synchronization, Distributed Computing 3, 1989).

use nilometer_model::Nanos;

/// Two clocks drift apart by at most one part in `DRIFT_PART`. Quartz clocks of computers are accurate to about
/// 50 in a million.
const DRIFT_PART: u64 = 10_000;

/// One round trip of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTrip {
    /// Departure on the requester's clock.
    pub(crate) asked: Nanos,
    /// Arrival on the responder's clock.
    pub(crate) answered: Nanos,
    /// Return on the requester's clock.
    pub(crate) back: Nanos,
}

/// The offset of one clock from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockOffset {
    /// Nanoseconds by which the clock is ahead.
    pub(crate) ahead: i64,
    /// Error bound of `ahead` in nanoseconds.
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
    /// Returns the responder's offset from the shortest round trip, or zero without trips.
    pub(crate) fn of(trips: &[RoundTrip]) -> Self {
        let shortest = trips.iter().min_by_key(|trip| trip.took());
        shortest.map(|trip| trip.offset()).unwrap_or_default()
    }

    /// Adds the offset of the other clock: this one is relative to that clock.
    pub(crate) fn behind(self, other: ClockOffset) -> Self {
        ClockOffset {
            ahead: self.ahead + other.ahead,
            uncertainty: self.uncertainty.saturating_add(other.uncertainty),
        }
    }

    /// Adds the drift since the measurement to the uncertainty: `age` has passed, and `steps` clocks in a row
    /// were each compared with the next.
    pub(crate) fn aged(self, age: Nanos, steps: u32) -> Self {
        let drift = (age.0 / DRIFT_PART).saturating_mul(steps.into());
        ClockOffset { uncertainty: self.uncertainty.saturating_add(drift), ..self }
    }

    /// Converts a time of the other clock to this clock.
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
        // The other clock is ahead by 1000. Either the way there or the way back is slow.
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

    /// The clock of a simulated machine. Its rate and its offset differ from true time.
    #[derive(Clone, Copy)]
    struct Drifting {
        ahead: i64,
        /// Deviation of the rate, in parts per 1,000,000,000.
        faster: i64,
    }

    impl Drifting {
        fn of(random: &mut nilometer_model::RandomStream) -> Self {
            let within = |random: &mut nilometer_model::RandomStream, most: u64| {
                random.below(2 * most + 1).cast_signed() - most.cast_signed()
            };
            // Machines started within an hour of each other, with quartzes accurate to 50 in a million.
            Drifting { ahead: within(random, 3_600_000_000_000), faster: within(random, 50_000) }
        }

        fn shows(self, at: u64) -> i64 {
            let at = i128::from(at);
            (at + at * i128::from(self.faster) / 1_000_000_000) as i64 + self.ahead
        }
    }

    /// Simulates the protocol in virtual time. Ranks compare clocks along the tree, each with its children in
    /// turn, and messages take `fast` to `slow` each way. Returns for each rank its error at a start agreed
    /// `later`, and its own error bound.
    fn agreed(size: u32, [fast, slow]: [u64; 2], later: u64, seed: u64) -> Vec<[u64; 2]> {
        let mut random = nilometer_model::Seed(seed).named("clocks").stream();
        let clocks: Vec<Drifting> = (0..size).map(|_| Drifting::of(&mut random)).collect();
        let epoch = 4_000_000_000_000;
        let mut offsets = vec![ClockOffset::default(); size as usize];
        let mut ready = vec![epoch; size as usize];
        for rank in 1..size {
            // In order of rank, parents come before their children.
            let above = (rank & (rank - 1)) as usize;
            let mut at = ready[above];
            let trips: Vec<RoundTrip> = (0..16)
                .map(|_| {
                    let [there, back] = [(); 2].map(|()| fast + random.below(slow - fast + 1));
                    let shown = |clock: Drifting, at| Nanos((clock.shows(at)).cast_unsigned());
                    let trip = RoundTrip {
                        asked: shown(clocks[above], at),
                        answered: shown(clocks[rank as usize], at + there),
                        back: shown(clocks[above], at + there + back),
                    };
                    at += there + back;
                    trip
                })
                .collect();
            offsets[rank as usize] = ClockOffset::of(&trips).behind(offsets[above]);
            (ready[above], ready[rank as usize]) = (at, at);
        }
        let compared = ready.iter().max().copied().unwrap_or(epoch);
        let start = clocks[0].shows(compared + later);
        let wrong = (0..size).map(|rank| {
            let clock = clocks[rank as usize];
            let age = Nanos(compared + later - epoch);
            let offset = offsets[rank as usize].aged(age, rank.count_ones());
            let believed = offset.here(Nanos(start.cast_unsigned())).0.cast_signed();
            [believed.abs_diff(clock.shows(compared + later)), offset.uncertainty]
        });
        wrong.collect()
    }

    #[test]
    fn a_start_of_ten_thousand_processes_is_agreed_within_what_they_state() {
        for seed in 0..20 {
            // A cluster's network with busy machines: 5 us to 2 ms each way.
            for ways in [[5_000, 30_000], [5_000, 2_000_000]] {
                let wrong = agreed(10_000, ways, 30_000_000, seed);
                assert!(wrong.iter().all(|[error, stated]| error <= stated), "seed {seed}, {ways:?}");
                let stated = wrong.iter().map(|[_, stated]| *stated).max().unwrap_or(0);
                assert!(
                    stated > 10_000,
                    "nothing is claimed that messages over a network can't know: {stated}"
                );
            }
        }
    }

    #[test]
    fn clocks_that_drift_are_reckoned_with() {
        // Both ways take the same time, so the measured offset is exact. A start ten seconds later shows the
        // drift.
        let later = 10_000_000_000;
        let wrong = agreed(1000, [1000, 1000], later, 3);
        assert!(wrong.iter().all(|[error, stated]| error <= stated));
        let by_messages = |rank: u32| u64::from(rank.count_ones()) * 1001;
        let beyond = (0..).zip(&wrong).filter(|(rank, [error, _])| *error > by_messages(*rank)).count();
        assert!(beyond > 900, "half a round trip would not have covered it: {beyond}");
    }
}
