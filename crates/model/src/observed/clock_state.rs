//! How right a machine's clock is, as its time service told the kernel.

use std::{fmt, str::FromStr};

use crate::Nanos;

/// What a machine's kernel knows of its clock (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockState {
    /// It is wrong by so much at the most, as the time service reckons.
    Synchronised(Nanos),
    /// No time service keeps it.
    Unsynchronised,
}

/// A text that is no state of a clock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no state of a clock")]
pub struct ClockStateError(String);

impl ClockState {
    /// The fact of a record's environment that has it.
    pub const FACT: &str = "clock";

    /// How far it may be wrong; none where nobody knows.
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
