//! The only place where a clock is read. All engines of a run share one origin, so their times can be compared.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use nilometer_model::Nanos;

/// A monotonic clock with an origin.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that starts at zero now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        Clock(Instant::now())
    }

    /// Reads the clock: some 25 ns.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// Time that moves only when it is told to, for simulations. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Arc<AtomicU64>);

impl VirtualClock {
    /// The present.
    pub fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }

    /// Moves the present forward; never back.
    pub fn advance_to(&self, time: Nanos) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }
}
