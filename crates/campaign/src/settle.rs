//! Before a phase the machine is let come to rest: what was written before, by this program or by others, is written back
//! before anything is measured.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use nilometer_model::Nanos;
use nilometer_storage::process;

use crate::phase::Run;

/// So many dirty pages more than usual do not disturb.
const CALM: u64 = 32 << 20;
const AT_MOST: Nanos = Nanos::from_millis(10_000);
const LOOK_EVERY: Nanos = Nanos::from_millis(10);

/// What is usual on this machine: bytes dirty or under write-back that were there before the campaign, or that would not
/// go away. They are others', and to wait for them each time anew would be in vain.
#[derive(Debug, Clone)]
pub(crate) struct Baseline(Arc<AtomicU64>);

impl Baseline {
    /// As it is now.
    pub(crate) fn now() -> Self {
        Baseline(Arc::new(AtomicU64::new(process::dirty_bytes())))
    }

    /// Whether so much is no more than usual; less than usual is the new usual.
    fn is_calm(&self, dirty: u64) -> bool {
        self.0.fetch_min(dirty, Ordering::Relaxed).saturating_add(CALM) >= dirty
    }

    /// So much would not go away.
    pub(crate) fn stays(&self, dirty: u64) {
        self.0.store(dirty, Ordering::Relaxed);
    }
}

/// Waits until no more is dirty than usual; how long that took.
pub(crate) fn settle(run: &Run) -> Nanos {
    let start = run.clock.now();
    loop {
        let dirty = process::dirty_bytes();
        let waited = run.clock.now().since(start);
        if run.usual.is_calm(dirty) || run.is_over() {
            return waited;
        }
        if waited >= AT_MOST {
            run.usual.stays(dirty);
            return waited;
        }
        thread::sleep(LOOK_EVERY.duration());
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
