//! How long a test waits: limits only find what hangs, and what hangs on a quiet machine takes longer on a busy one.

use std::time::Duration;

const STEP: Duration = Duration::from_millis(5);

/// Looks every few milliseconds until `found` gives something; none after `limit`, or after as many times that as more threads
/// want to run than there are processors.
pub fn awaited<T>(limit: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let mut waited = Duration::ZERO;
    while waited <= limit || waited <= limit.mul_f64(crowding()) {
        if let Some(found) = found() {
            return Some(found);
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
    None
}

/// What hangs on a machine of any load is found.
const CROWDING_MOST: f64 = 5.0;

/// Threads that run, or wait for a processor or a disk, for each processor: the mean of the last minute, and never below one.
fn crowding() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (load / processors as f64).clamp(1.0, CROWDING_MOST)
}
