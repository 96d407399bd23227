//! The frames that one of several processes takes of an instrument.

use nilometer_model::{Nanos, Schedule};

/// The frames of a process that shares those of an instrument with others. Each process takes every n-th frame,
/// when the instrument delivers it.
///
/// ```text
/// bursts of 4 frames, 3 processes   0 1 2 3 ....... 4 5 6 7 ....... 8 9
/// process 0                         0     3 .......     6   .......   9
/// process 1                           1   ....... 4     7   .......
/// process 2                             2 .......   5       ....... 8
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstrumentTurn {
    /// Number of its first frame, which is the process's number among those that record.
    pub first: u32,
    /// Number of processes.
    pub of: u32,
    /// The due times of the whole instrument's frames.
    pub schedule: Schedule,
}

impl InstrumentTurn {
    /// The time from the start of the recording until the first frame of this process is due.
    pub fn first_due(&self) -> Nanos {
        self.schedule.due(self.first.into())
    }
}
