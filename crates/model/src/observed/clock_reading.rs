//! The machine's clock as the kernel estimates it: its error and its offset.

use std::fmt;

use serde::Serialize;

use crate::{Nanos, observed::ClockState};

/// A reading of the kernel's estimate of the machine's clock (adjtimex(2)). Time services (NTP, PTP) tell the kernel
/// these figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockReading {
    /// True if a time service synchronises the clock.
    pub synchronised: bool,
    /// The time by which the kernel still moves the clock, in ns: `offset`. Time services that set only its frequency
    /// leave 0.
    pub offset_ns: i64,
    /// The largest error of the clock, in ns: `maxerror`. It grows while no time service synchronises the clock.
    pub error_max_ns: u64,
    /// The estimated error of the clock, in ns: `esterror`.
    pub error_estimate_ns: u64,
}

impl ClockReading {
    /// The state of the clock.
    pub const fn state(self) -> ClockState {
        if self.synchronised {
            ClockState::Synchronised(Nanos(self.error_max_ns))
        } else {
            ClockState::Unsynchronised
        }
    }

    /// The reading as four numbers for a journal. The first is 1 without synchronisation and 2 with it.
    pub const fn numbers(self) -> [u64; 4] {
        let state = if self.synchronised { 2 } else { 1 };
        [state, self.error_max_ns, self.offset_ns.cast_unsigned(), self.error_estimate_ns]
    }

    /// The reading that [`ClockReading::numbers`] made these numbers of. `None` for any others.
    pub const fn of_numbers([state, error_max_ns, offset, error_estimate_ns]: [u64; 4]) -> Option<Self> {
        match state {
            1 | 2 => Some(ClockReading {
                synchronised: state == 2,
                offset_ns: offset.cast_signed(),
                error_max_ns,
                error_estimate_ns,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for ClockReading {
    /// The state, and the offset of a synchronised clock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.state())?;
        if !self.synchronised {
            return Ok(());
        }
        let sign = if self.offset_ns < 0 { "-" } else { "" };
        let offset = Nanos(self.offset_ns.unsigned_abs());
        write!(f, ", offset {sign}{offset}, estimated error {}", Nanos(self.error_estimate_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_read_from_a_journal_as_it_was_written() {
        let reading = ClockReading {
            synchronised: true,
            offset_ns: -1_500_000,
            error_max_ns: 2_000_000,
            error_estimate_ns: 30_000,
        };
        let free = ClockReading { synchronised: false, ..reading };
        for one in [reading, free] {
            assert_eq!(ClockReading::of_numbers(one.numbers()), Some(one));
        }
        assert_eq!(ClockReading::of_numbers([0; 4]), None, "journals of older programs have zeroes there");
        assert_eq!(reading.to_string(), "synchronised to within 2 ms, offset -1.5 ms, estimated error 30 us");
        assert_eq!(free.to_string(), "not synchronised");
    }
}
