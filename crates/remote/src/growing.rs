//! Writes to a file that grows, one after the other: each is done when the server has answered that it is there.

use std::collections::VecDeque;

use nilometer_storage::{Errno, OpKind};

use crate::client::Flight;

/// What is to be added to a file, and how far that is.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// Where the next write has to begin.
    next: u64,
    /// Writes, syncs and closes in their order.
    waiting: VecDeque<Flight>,
    /// A write is being added.
    is_busy: bool,
    /// The first fault, which all that follows comes to: nothing can be added behind what is missing.
    fault: Option<Errno>,
}

/// What has to be done next.
#[derive(Debug)]
pub(crate) enum GrowStep {
    /// The operation is over.
    Over(Flight, Result<u32, Errno>),
    /// The bytes of this write are to be there; then [`Growing::added`] is told.
    Add(Flight),
}

impl Growing {
    /// A write behind the last one, a sync or a close.
    pub(crate) fn take(&mut self, flight: Flight) -> Vec<GrowStep> {
        if flight.operation.kind == OpKind::Write {
            if flight.operation.offset != self.next {
                return vec![GrowStep::Over(flight, Err(Errno::EOPNOTSUPP))];
            }
            self.next += u64::from(flight.operation.length);
        }
        self.waiting.push_back(flight);
        self.go_on()
    }

    /// What became of the write that was to be added.
    pub(crate) fn added(&mut self, flight: Flight, outcome: Result<(), Errno>) -> Vec<GrowStep> {
        self.is_busy = false;
        if let Err(errno) = outcome {
            self.fault.get_or_insert(errno);
        }
        let length = flight.operation.length;
        let mut steps = vec![GrowStep::Over(flight, outcome.map(|()| length))];
        steps.extend(self.go_on());
        steps
    }

    fn go_on(&mut self) -> Vec<GrowStep> {
        let mut steps = Vec::new();
        while !self.is_busy {
            let Some(flight) = self.waiting.pop_front() else { break };
            steps.push(match self.fault {
                Some(errno) => GrowStep::Over(flight, Err(errno)),
                None if flight.operation.kind == OpKind::Write => {
                    self.is_busy = true;
                    GrowStep::Add(flight)
                }
                None => GrowStep::Over(flight, Ok(0)),
            });
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;
    use nilometer_storage::{Buffer, Operation, Slot};

    use super::*;

    fn flight(operation: Operation) -> Flight {
        Flight { operation, due: Nanos(0), issued: Nanos(0) }
    }

    fn write(offset: u64, length: u32) -> Flight {
        flight(Operation::write(Slot(1), offset, length, Buffer::alone(length as usize)))
    }

    fn sync() -> Flight {
        flight(Operation::on(OpKind::Sync, Slot(1), Buffer::alone(1)))
    }

    /// The write that is to be added, and in short what is over.
    fn parted(steps: Vec<GrowStep>) -> (Option<Flight>, Vec<String>) {
        let (mut add, mut over) = (None, Vec::new());
        for step in steps {
            match step {
                GrowStep::Add(flight) => assert!(add.replace(flight).is_none(), "one at a time"),
                GrowStep::Over(flight, result) => {
                    over.push(format!("{:?} {:?}", flight.operation.kind, result.map_err(|errno| errno.0)));
                }
            }
        }
        (add, over)
    }

    #[test]
    fn writes_are_added_one_after_the_other_and_a_sync_waits_for_them() {
        let mut file = Growing::default();
        let (first, _) = parted(file.take(write(0, 10)));
        assert!(file.take(write(10, 5)).is_empty() && file.take(sync()).is_empty());
        let (none, over) = parted(file.take(write(20, 1)));
        assert!(none.is_none() && over == ["Write Err(95)"], "a hole: {over:?}");
        let (second, over) = parted(file.added(first.expect("it begins at once"), Ok(())));
        assert_eq!(over, ["Write Ok(10)"]);
        let (none, over) = parted(file.added(second.expect("the next"), Ok(())));
        assert!(none.is_none() && over == ["Write Ok(5)", "Sync Ok(0)"], "{over:?}");
    }

    #[test]
    fn nothing_is_added_behind_what_is_missing() {
        let mut file = Growing::default();
        let (first, _) = parted(file.take(write(0, 1)));
        file.take(write(1, 1));
        let (none, over) = parted(file.added(first.expect("it begins at once"), Err(Errno::EIO)));
        assert!(none.is_none() && over == ["Write Err(5)", "Write Err(5)"], "{over:?}");
        assert_eq!(parted(file.take(sync())).1, ["Sync Err(5)"]);
    }
}
