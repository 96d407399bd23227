//! The end of a pass at full speed.

use nilometer_model::{Bytes, Nanos, Series, sustained::is_precise};

/// When a pass at full speed may end before its time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pass {
    /// Never: only the first pass can find a cache, and only if it fills it.
    #[default]
    Whole,
    /// Once its rate is precise enough and it has taken more than the cache that an earlier pass found.
    Precise {
        /// The least number of bytes before the end.
        behind: Bytes,
    },
}

/// A later pass takes at least this multiple of the bytes that went into the cache in an earlier one: the cache
/// may drain meanwhile.
const BEHIND: f64 = 1.5;

/// The least duration of a pass at full speed.
const PASS_LEAST: Nanos = Nanos::from_millis(15_000);

impl Pass {
    /// A pass after others that found a cache of this size; zero if they found none.
    pub fn after(cache: Bytes) -> Self {
        #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
        let behind = Bytes((BEHIND * cache.0 as f64) as u64);
        Pass::Precise { behind }
    }

    /// Returns true if the pass may end after this time with this work.
    pub fn may_end(self, elapsed: Nanos, work: &Series) -> bool {
        let Pass::Precise { behind } = self else { return false };
        let taken: u64 = work.bins().iter().map(|bin| bin.bytes).sum();
        elapsed >= PASS_LEAST && taken > behind.0 && is_precise(work)
    }
}
