//! The progress of one long operation, on stderr: a line in place on a terminal, and nothing elsewhere.

use std::{io::IsTerminal, time::Duration};

use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_storage::Clock;

use crate::tell;

/// The progress of one operation, as a share of its bytes.
#[derive(Debug)]
pub(crate) struct Share {
    what: &'static str,
    all: Bytes,
    clock: Clock,
    told: Option<Nanos>,
    shows: bool,
}

const STEP: Duration = Duration::from_millis(200);

impl Share {
    /// Starts at 0 of `all` bytes.
    pub(crate) fn new(what: &'static str, all: Bytes) -> Self {
        Share { what, all, clock: Clock::start(), told: None, shows: std::io::stderr().is_terminal() }
    }

    /// Shows the progress: `done` bytes.
    pub(crate) fn tell(&mut self, done: Bytes) {
        let now = self.clock.now();
        if !self.shows || self.told.is_some_and(|told| now.since(told).duration() < STEP) {
            return;
        }
        self.told = Some(now);
        tell::rewrite_lines(&line(self.what, done, self.all, now), 0);
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if self.told.take().is_some() {
            tell::rewrite_lines("", 1);
        }
    }
}

fn line(what: &str, done: Bytes, all: Bytes, elapsed: Nanos) -> String {
    let percent = done.0 as f64 * 100.0 / all.0.max(1) as f64;
    format!("{percent:.0} % {what}, {done} of {all}, {}", ByteRate::of(done.0, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_much_and_how_fast() {
        let text = line("read", Bytes(500_000_000), Bytes(2_000_000_000), Nanos::from_millis(500));
        assert_eq!(text, "25 % read, 500 MB of 2 GB, 1 GB/s");
    }
}
