//! The time in which the flows of a trial send.

use std::{
    io::{self, ErrorKind},
    thread,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

/// How long a flow may be silent after the end of sending.
pub(crate) const SILENCE: Nanos = Nanos::from_millis(10_000);

/// The time in which data are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) clock: Clock,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

impl Span {
    /// Waits until it begins.
    pub(crate) fn wait(self) {
        thread::sleep(self.from.since(self.clock.now()).duration());
    }

    /// Fails if a flow has been silent for too long after the end. `last` is the time of its last bytes.
    pub(crate) fn check(self, last: Nanos) -> io::Result<()> {
        let quiet_since = self.until.max(self.from + last);
        let is_given_up = self.clock.now().since(quiet_since) >= SILENCE;
        if is_given_up { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}
