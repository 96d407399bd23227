//! How an engine without operations of its own in flight waits: asleep until woken, and awake in time.

use std::{sync::Arc, thread::Thread};

use nilometer_model::Nanos;

use super::{Wait, Wake};
use crate::Clock;

/// A sleeping thread wakes 50 to 90 us late on an idle machine: the last stretch is spent awake.
pub(super) const AWAKE_BEFORE: Nanos = Nanos(80_000);

/// The owning thread's pause, with an end for others to break it.
#[derive(Debug)]
pub(super) struct Pause {
    owner: Thread,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

impl Pause {
    /// For the calling thread.
    pub(super) fn here() -> Self {
        Pause { owner: std::thread::current() }
    }

    pub(super) fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(Unpark(self.owner.clone()))
    }

    /// Waits as told, in the calling thread; may return early. Returns the time.
    pub(super) fn wait(wait: Wait, clock: &Clock) -> Nanos {
        match wait {
            Wait::Poll | Wait::ForOne => {}
            Wait::News => std::thread::park(),
            Wait::Until(time) => return Self::until(time, clock),
        }
        clock.now()
    }

    fn until(time: Nanos, clock: &Clock) -> Nanos {
        let left = time.since(clock.now());
        if left > AWAKE_BEFORE {
            std::thread::park_timeout((left - AWAKE_BEFORE).duration());
            if time.since(clock.now()) > AWAKE_BEFORE {
                return clock.now();
            }
        }
        loop {
            let now = clock.now();
            if now >= time {
                return now;
            }
            std::hint::spin_loop();
        }
    }
}
