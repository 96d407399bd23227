//! Lets the machine come to rest before a phase: dirty data of this program and of others reach the storage
//! before a measurement begins.

use std::thread;

use nilometer_model::Nanos;
use nilometer_storage::process;

use crate::task::Run;

const AT_MOST: Nanos = Nanos::from_millis(10_000);
const LOOK_EVERY: Nanos = Nanos::from_millis(10);

/// Waits until no more bytes are dirty than usual. Returns the time that took.
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
