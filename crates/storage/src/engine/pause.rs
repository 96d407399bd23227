//! How an engine that has no operations of its own in flight waits: asleep until a wake, and awake in time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::Thread,
};

use nilometer_model::Nanos;

use super::{Wait, Wake};
use crate::Clock;

/// A sleeping thread wakes 50 to 90 us late on an idle machine, so it spins through the last stretch.
pub(super) const AWAKE_BEFORE: Nanos = Nanos(80_000);
/// Spins before a sleep: news within a few microseconds costs both sides less than a sleep and a wake.
const SPINS: u32 = 500;

/// The owning thread's pause, with a handle that lets other threads end it.
#[derive(Debug)]
pub(super) struct Pause(Arc<Bell>);

#[derive(Debug)]
struct Bell {
    owner: Thread,
    rung: AtomicBool,
    asleep: AtomicBool,
}

impl Wake for Bell {
    fn wake(&self) {
        // Each side writes its own flag before it reads the other's: one of the two sees the other.
        self.rung.store(true, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.owner.unpark();
        }
    }
}

impl Bell {
    fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }
}

impl Pause {
    /// Creates a pause for the calling thread.
    pub(super) fn here() -> Self {
        let rung = AtomicBool::new(false);
        let asleep = AtomicBool::new(false);
        Pause(Arc::new(Bell { owner: std::thread::current(), rung, asleep }))
    }

    pub(super) fn waker(&self) -> Arc<dyn Wake> {
        self.0.clone()
    }

    /// Waits in the owning thread as `wait` says, or until a wake. Returns the time.
    pub(super) fn wait(&self, wait: Wait, clock: &Clock) -> Nanos {
        match wait {
            Wait::Poll | Wait::ForOne => {}
            Wait::News => self.news(),
            Wait::Until(time) => {
                let now = self.until(time, clock);
                self.heard();
                return now;
            }
        }
        if wait != Wait::Poll {
            self.heard();
        }
        clock.now()
    }

    fn heard(&self) {
        if self.0.rung.load(Ordering::Relaxed) {
            self.0.rung.store(false, Ordering::SeqCst);
        }
    }

    fn news(&self) {
        for _ in 0..SPINS {
            if self.0.is_rung() {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleep(std::thread::park);
    }

    /// Sleeps unless the bell was rung; may end early.
    fn sleep(&self, park: impl FnOnce()) {
        self.0.asleep.store(true, Ordering::SeqCst);
        if !self.0.is_rung() {
            park();
        }
        self.0.asleep.store(false, Ordering::SeqCst);
    }

    /// Waits until `time` or a wake. Returns the current time.
    fn until(&self, time: Nanos, clock: &Clock) -> Nanos {
        let mut now = clock.now();
        let left = time.since(now);
        if left > AWAKE_BEFORE {
            self.sleep(|| std::thread::park_timeout((left - AWAKE_BEFORE).duration()));
            now = clock.now();
        }
        while !self.0.is_rung() && now < time {
            std::hint::spin_loop();
            now = clock.now();
        }
        now
    }
}
