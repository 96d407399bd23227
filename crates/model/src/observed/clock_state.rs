//! The error of a machine's clock, as its time service reported it to the kernel.

use std::{fmt, str::FromStr};

use crate::Nanos;

/// The kernel's estimate of the machine's clock (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockState {
    /// Synchronised, with the largest error by the estimate of the time service.
    Synchronised(Nanos),
    /// No time service synchronises it.
    Unsynchronised,
}

/// A text that is not a state of a clock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no state of a clock")]
pub struct ClockStateError(String);

impl ClockState {
    /// The name of the fact in a record's environment.
    pub const FACT: &str = "clock";

    /// The largest error; `None` if it is unknown.
    pub const fn error(self) -> Option<Nanos> {
        match self {
            ClockState::Synchronised(error) => Some(error),
            ClockState::Unsynchronised => None,
        }
    }
}

const WITHIN: &str = "synchronised to within ";
const NOT: &str = "not synchronised";

impl fmt::Display for ClockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockState::Synchronised(error) => write!(f, "{WITHIN}{error}"),
            ClockState::Unsynchronised => f.write_str(NOT),
        }
    }
}

impl FromStr for ClockState {
    type Err = ClockStateError;

    fn from_str(text: &str) -> Result<Self, ClockStateError> {
        if text == NOT {
            return Ok(ClockState::Unsynchronised);
        }
        let error = text.strip_prefix(WITHIN).and_then(|error| error.parse().ok());
        error.map(ClockState::Synchronised).ok_or_else(|| ClockStateError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_of_a_record_is_read_as_it_was_written() {
        for state in [ClockState::Synchronised(Nanos(1_250_000)), ClockState::Unsynchronised] {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        assert_eq!(ClockState::Synchronised(Nanos(1_250_000)).to_string(), "synchronised to within 1.25 ms");
        assert!("synchronised".parse::<ClockState>().is_err());
    }
}
