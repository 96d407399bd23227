//! How long a message that holds memory may stand still while others wait for some. The logic is pure: it
//! gets the time and the number of bytes received.
//!
//! Time counts only while others wait, and only when the recorder looks. A recorder that was stopped for a
//! minute finds all messages unchanged, and first reads the bytes that arrived meanwhile.

use nilometer_model::Nanos;

/// A stranger's message is given up if it brings less than [`PROGRESS`] in this time.
pub(super) const STRANGER_STANDS: Nanos = Nanos::from_millis(1000);
/// The same for a connection that sent a message of the series: its network may have lost a segment or two.
pub(super) const SENDER_STANDS: Nanos = Nanos::from_millis(10_000);
/// Bytes that a message must bring in that time. A link of 1 Mbit/s brings twice as much.
pub(super) const PROGRESS: u64 = 64 << 10;
/// Maximum time between two looks that counts.
const LOOK_MAX: Nanos = Nanos::from_millis(100);

/// Measures the time since the last look, up to a maximum.
#[derive(Debug, Default)]
pub(super) struct LookClock(Option<Nanos>);

impl LookClock {
    /// Looks now and returns the time that counts since the last look.
    pub(super) fn look(&mut self, now: Nanos) -> Nanos {
        let last = self.0.replace(now).unwrap_or(now);
        now.since(last).min(LOOK_MAX)
    }
}

/// How long the message of a connection has stood still.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// Bytes received on the connection when the time began.
    mark: u64,
    stood: Nanos,
}

impl Standstill {
    /// Restarts the time: no other waits, or the message can't go on by itself.
    pub(super) fn clear(&mut self, bytes: u64) {
        *self = Standstill { mark: bytes, stood: Nanos(0) };
    }

    /// Adds time that others waited, given the bytes received so far. Returns true if the message stood still
    /// too long.
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

    /// Number of looks of 20 ms after which a message is given up, at this rate.
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
