//! Time limits of tests. A limit only finds a program that hangs, so a busy machine gets a longer one.

use std::time::Duration;

use nilometer_storage::Clock;

const STEP: Duration = Duration::from_millis(5);

/// Limit of a wait that only a program that hangs exceeds. A step that takes a second alone may take half a minute
/// beside others.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Calls `found` every few milliseconds until it returns a value. Gives up with `None` after `limit`. On a busy
/// machine the limit grows with the load, five times at most.
pub fn awaited<T>(limit: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = Clock::start();
    loop {
        // A look may take long, and what it waits for may come in it: the last look begins after the limit.
        let waited = clock.now().duration();
        let is_last = waited > limit && waited > limit.mul_f64(crowding());
        if let Some(found) = found() {
            return Some(found);
        }
        if is_last {
            return None;
        }
        std::thread::sleep(STEP);
    }
}

/// Bound of the factor, so that a program that hangs ends its test whatever the load.
const CROWDING_MOST: f64 = 5.0;

/// Load for each processor: threads that run, or wait for a processor or a disk; at least 1. It is the mean of
/// the last minute, or the threads that could run now if they are more.
fn crowding() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut fields = load.split([' ', '/']);
    let mut number = |at| fields.nth(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    let mean = number(0);
    let now = number(2);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (mean.max(now) / processors as f64).clamp(1.0, CROWDING_MOST)
}
