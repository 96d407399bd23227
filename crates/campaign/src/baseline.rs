//! The number of dirty bytes that a machine has anyway.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_storage::process;

/// Dirty bytes beyond the usual that do not disturb a measurement.
const CALM: u64 = 32 << 20;

/// The usual number of dirty bytes on this machine. They were dirty or under write-back before the campaign, or
/// did not go away while it waited. Others wrote them; waiting for them before each phase is useless.
#[derive(Debug, Clone)]
pub(crate) struct Baseline(Arc<AtomicU64>);

impl Baseline {
    /// The dirty bytes of this moment.
    pub(crate) fn now() -> Self {
        Baseline(Arc::new(AtomicU64::new(process::dirty_bytes())))
    }

    /// True if `dirty` bytes are no more than usual. If they are fewer, they are the usual number from now on.
    pub(crate) fn is_calm(&self, dirty: u64) -> bool {
        self.0.fetch_min(dirty, Ordering::Relaxed).saturating_add(CALM) >= dirty
    }

    /// Makes `dirty` bytes the usual number: they did not go away in time.
    pub(crate) fn stays(&self, dirty: u64) {
        self.0.store(dirty, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_go_away_is_usual_until_it_does() {
        let usual = Baseline(Arc::new(AtomicU64::new(CALM)));
        assert!(usual.is_calm(2 * CALM) && !usual.is_calm(2 * CALM + 1));
        usual.stays(10 * CALM);
        assert!(usual.is_calm(11 * CALM));
        assert!(usual.is_calm(5 * CALM), "it went away in part");
        assert!(!usual.is_calm(11 * CALM), "and is waited for when it comes again");
    }
}
