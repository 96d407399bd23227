//! A panic anywhere in the program, also in a thread that nobody waits for, is never an exit code of 0.

use std::{
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Notes panics from now on; each is told on stderr as ever.
pub(crate) fn watch() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        tell(info);
    }));
}

/// Whether there was one.
pub(crate) fn happened() -> bool {
    PANICKED.load(Ordering::Relaxed)
}
