//! A panic anywhere in the program never ends with exit code 0, not even in a thread that nobody waits for.

use std::{
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::tell;

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Counts panics from now on. Each still appears on stderr.
pub(crate) fn watch() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        if tell::is_json() {
            tell::note(info);
        } else {
            usual(info);
        }
    }));
}

/// True after a panic.
pub(crate) fn happened() -> bool {
    PANICKED.load(Ordering::Relaxed)
}
