//! The rate of a dump as a function of the fill of the recorder's buffer. Pure: the caller passes fill and times.
//!
//! ```text
//! share of full speed
//! 1 ------------.
//!                `.
//!                  `.
//! 0                  `--------------
//!   0          1/4      3/4        1   fill of the buffer
//! ```
//!
//! The buffer is the recorder's only reserve against slow storage. A dump takes processor, disk and bus from the
//! recorder. It slows down as soon as the buffer fills, and stops while much of the reserve is left.

use nilometer_model::{ByteRate, Nanos};

/// Up to this fill a dump runs at full speed.
const FULL_SPEED_FILL: f64 = 0.25;
/// From this fill on it waits.
const STOP_FILL: f64 = 0.75;
/// The longest pause before the next look at the fill.
pub(super) const PAUSE_MAX: Nanos = Nanos::from_millis(500);

/// Returns the share of its full speed that a dump may use, from 0 to 1. `fill` is that of the recorder's buffer, from
/// 0 to 1; one that is no number counts as full.
pub(super) fn speed_share(fill: f64) -> f64 {
    if fill.is_nan() {
        return 0.0;
    }
    ((STOP_FILL - fill) / (STOP_FILL - FULL_SPEED_FILL)).clamp(0.0, 1.0)
}

/// Returns the fill of a buffer with this number of slots, from 0 to 1. Without slots there is nothing to fill.
pub(super) fn buffer_fill(in_use: usize, slots: usize) -> f64 {
    if slots == 0 { 0.0 } else { in_use as f64 / slots as f64 }
}

/// Returns the pause after a piece that took some time, at this share of full speed. Pieces and pauses together take
/// `took / share`. A pause is at most [`PAUSE_MAX`].
pub(super) fn pause_after(took: Nanos, share: f64) -> Nanos {
    if share <= 0.0 {
        return PAUSE_MAX;
    }
    Nanos::from_seconds(took.seconds() * (1.0 - share) / share).min(PAUSE_MAX)
}

/// A limit on the rate of a dump. Time in which the dump waits earns no credit, so it is never faster afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpRateLimit {
    /// The most bytes a second. `None` for any number.
    at_most: Option<ByteRate>,
    /// The time from which on the next piece may begin.
    free: Nanos,
}

impl DumpRateLimit {
    pub(super) fn new(at_most: Option<ByteRate>) -> Self {
        DumpRateLimit { at_most, free: Nanos(0) }
    }

    /// Notes a piece of `bytes` bytes that began at `begun`. Returns the time from which on the next one may begin.
    pub(super) fn after(&mut self, begun: Nanos, bytes: u64) -> Nanos {
        let time = self.at_most.map_or(Nanos(0), |rate| Nanos::from_seconds(bytes as f64 / rate.0));
        self.free = self.free.max(begun) + time;
        self.free
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dump_stops_long_before_the_buffer_is_full() {
        for (fill, share) in [(0.0, 1.0), (0.25, 1.0), (0.5, 0.5), (0.75, 0.0), (1.0, 0.0), (7.0, 0.0)] {
            assert!((speed_share(fill) - share).abs() < 1e-12, "{fill}: {}", speed_share(fill));
        }
        assert_eq!(speed_share(f64::NAN).to_bits(), 0.0_f64.to_bits());
        assert_eq!(speed_share(buffer_fill(0, 0)).to_bits(), 1.0_f64.to_bits());
        assert!((buffer_fill(3, 4) - STOP_FILL).abs() < 1e-12);
    }

    #[test]
    fn pauses_follow_the_share() {
        let took = Nanos::from_millis(10);
        assert_eq!(pause_after(took, 1.0), Nanos(0));
        assert_eq!(pause_after(took, 0.5), took);
        assert_eq!(pause_after(took, 0.1), Nanos::from_millis(90));
        assert_eq!(pause_after(took, 0.0), PAUSE_MAX);
        assert_eq!(pause_after(Nanos::from_millis(10_000), 0.5), PAUSE_MAX);
    }

    #[test]
    fn a_dump_that_waited_is_no_faster_than_its_limit_afterwards() {
        let ms = Nanos::from_millis;
        let mut limit = DumpRateLimit::new(Some(ByteRate(1e6)));
        assert_eq!(limit.after(ms(0), 500_000), ms(500));
        assert_eq!(limit.after(ms(500), 500_000), ms(1000));
        // It waits a minute for frames.
        assert_eq!(limit.after(ms(61_000), 500_000), ms(61_500));
        assert_eq!(limit.after(ms(61_500), 1_000_000), ms(62_500));
        let mut none = DumpRateLimit::new(None);
        assert_eq!(none.after(ms(7), 1 << 40), ms(7));
    }

    proptest! {
        #[test]
        fn a_fuller_buffer_never_speeds_a_dump_up(one in 0.0..1.0_f64, other in 0.0..1.0_f64, took in 0..1_000_000_000_u64) {
            let fuller = one.max(other);
            let emptier = one.min(other);
            prop_assert!(speed_share(fuller) <= speed_share(emptier));
            let took = Nanos(took);
            prop_assert!(pause_after(took, speed_share(fuller)) >= pause_after(took, speed_share(emptier)));
        }
    }
}
