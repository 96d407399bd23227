//! How long a message that holds memory may stand still while others wait for some. Pure: it is told the time, and what came.
//!
//! Time counts only while somebody waits, and only as the recorder looks: a recorder that was stopped for a minute finds all
//! messages where they were, and first reads what came meanwhile.

use nilometer_model::Nanos;

/// A stranger's message that brings less than [`PROGRESS`] in such a time is given up.
pub(super) const STRANGER_STANDS: Nanos = Nanos::from_millis(1000);
/// The same of a connection that brought something of the series: its network may have lost a segment or two.
pub(super) const SENDER_STANDS: Nanos = Nanos::from_millis(10_000);
/// Bytes that a message has to bring in that time: a link of a megabit a second brings twice as much.
pub(super) const PROGRESS: u64 = 64 << 10;
/// Longest that the time between two looks counts.
const LOOK_MAX: Nanos = Nanos::from_millis(100);

/// Tells how long it is since the last look, as far as that counts.
#[derive(Debug, Default)]
pub(super) struct LookClock(Option<Nanos>);

impl LookClock {
    /// The next look is now.
    pub(super) fn look(&mut self, now: Nanos) -> Nanos {
        let last = self.0.replace(now).unwrap_or(now);
        now.since(last).min(LOOK_MAX)
    }
}

/// How long the message of a connection has stood still.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// Bytes of the connection when the time began.
    mark: u64,
    stood: Nanos,
}

impl Standstill {
    /// Nobody waits, or the message can't go on by itself: the time begins anew.
    pub(super) fn clear(&mut self, bytes: u64) {
        *self = Standstill { mark: bytes, stood: Nanos(0) };
    }

    /// So long others waited, and so many bytes have come on the connection by now. Whether it stood still for too long.
    pub(super) fn is_too_long(&mut self, waited: Nanos, bytes: u64, at_most: Nanos) -> bool {
        self.stood += waited;
        if bytes - self.mark >= PROGRESS {
            self.clear(bytes);
        }
        self.stood >= at_most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Nanos {
        Nanos::from_millis(time)
    }

    /// After how many looks of 20 ms it is given up, at so many bytes a look.
    fn given_up_after(bytes_per_look: u64) -> Option<u64> {
        let mut standstill = Standstill::default();
        standstill.clear(500);
        (1..1000).find(|look| standstill.is_too_long(ms(20), 500 + look * bytes_per_look, STRANGER_STANDS))
    }

    #[test]
    fn a_message_that_trickles_is_given_up_after_a_second_and_one_that_goes_on_is_not() {
        assert_eq!(given_up_after(0), Some(50));
        assert_eq!(given_up_after(1), Some(50));
        assert_eq!(given_up_after(PROGRESS / 60), Some(50), "less than 64 KiB a second");
        assert_eq!(given_up_after(PROGRESS / 40), None);
    }

    #[test]
    fn only_time_in_which_others_wait_and_the_recorder_looks_counts() {
        let mut standstill = Standstill::default();
        assert!(!standstill.is_too_long(ms(900), 0, STRANGER_STANDS));
        standstill.clear(0);
        assert!(!standstill.is_too_long(ms(900), 0, STRANGER_STANDS));
        assert!(standstill.is_too_long(ms(100), 0, STRANGER_STANDS));
        let mut clock = LookClock::default();
        let counted = [5000, 5020, 65_000].map(|at| clock.look(ms(at)));
        assert_eq!(counted, [ms(0), ms(20), LOOK_MAX]);
    }
}
