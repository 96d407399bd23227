//! A panic anywhere in the program, also in a thread that nobody waits for, is never an exit code of 0.

use std::{
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::tell;

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Notes panics from now on; each is told on stderr as ever.
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

/// Whether there was one.
pub(crate) fn happened() -> bool {
    PANICKED.load(Ordering::Relaxed)
}
