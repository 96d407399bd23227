//! The recorder's wait for a processor in passes at full speed. Meanwhile it gave the storage nothing, so that
//! their rate may be too low.

use std::fmt;

use crate::{ByteRate, Nanos};

/// The time for which a recorder waited for a processor in passes at full speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RecorderWait {
    /// The time for which it was ready to run and waited.
    pub waited: Nanos,
    /// The duration of the passes.
    pub of: Nanos,
    /// The part of it that the rate is taken from. The whole wait may lie in that part.
    pub within: Nanos,
}

/// After a wait of more than this share of the time that a rate is taken from, the rate is only a lower bound. The
/// workers of a phase have the same share.
const SHARE_MOST: f64 = 0.2;

impl RecorderWait {
    /// Adds the wait in another pass.
    #[must_use]
    pub fn and(self, other: RecorderWait) -> Self {
        RecorderWait {
            waited: self.waited + other.waited,
            of: self.of + other.of,
            within: self.within + other.within,
        }
    }

    /// A wait in the whole duration of a pass.
    pub fn new(waited: Nanos, of: Nanos) -> Self {
        RecorderWait { waited, of, within: of }
    }

    /// The wait as a share of the time that the rate is taken from; 0 without passes.
    pub fn share(self) -> f64 {
        if self.within.0 == 0 { 0.0 } else { self.waited.seconds() / self.within.seconds() }
    }

    /// True if the rate is only a lower bound.
    pub fn is_long(self) -> bool {
        self.share() > SHARE_MOST
    }

    /// The rate that the storage may have instead of `rate`, if it was idle while the recorder waited. `None` if
    /// the wait is too long to say.
    ///
    /// Example: 90 MB/s in 40 s, of which the recorder waited for 4 s, may be 100 MB/s.
    pub fn raised(self, rate: ByteRate) -> Option<ByteRate> {
        (!self.is_long()).then(|| ByteRate(rate.0 / (1.0 - self.share())))
    }
}

impl fmt::Display for RecorderWait {
    /// `the recorder waited 12 s of 40 s for a processor`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recorder waited {} of {} for a processor", self.waited, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wait(waited: u64, of: u64) -> RecorderWait {
        RecorderWait::new(Nanos::from_millis(waited), Nanos::from_millis(of))
    }

    #[test]
    fn a_wait_raises_the_rate_that_the_storage_may_have() {
        let most = wait(4000, 40_000).raised(ByteRate(90e6)).expect("a tenth is not long");
        assert!((most.0 - 100e6).abs() < 1.0, "{most}");
        assert_eq!(RecorderWait::default().raised(ByteRate(90e6)), Some(ByteRate(90e6)));
        assert_eq!(wait(12_000, 40_000).raised(ByteRate(90e6)), None, "it is only a lower bound");
        assert_eq!(wait(12_000, 40_000).to_string(), "the recorder waited 12 s of 40 s for a processor");
        let behind_a_cache = RecorderWait { within: Nanos::from_millis(10_000), ..wait(4000, 40_000) };
        assert_eq!(behind_a_cache.raised(ByteRate(90e6)), None, "all of it may lie behind the cache");
    }

    proptest! {
        #[test]
        fn no_wait_lowers_a_rate(waited in 0..100_000_u64, of in 0..100_000_u64, rate in 0.0..1e12) {
            let raised = wait(waited, of).raised(ByteRate(rate));
            prop_assert!(raised.is_none_or(|raised| raised.0 >= rate && raised.0 <= rate / 0.79));
        }
    }
}
