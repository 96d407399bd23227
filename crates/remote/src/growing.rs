//! Appends to a growing file, one write at a time. A write is done when the server has confirmed its bytes.

use std::collections::VecDeque;

use nilometer_storage::{Errno, OpKind};

use crate::client::Flight;

/// Operations that wait to be appended to a file, and the file's length once they are.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// The offset at which the next write must begin.
    next: u64,
    /// Writes, syncs and closes in their order.
    waiting: VecDeque<Flight>,
    /// True while a write is being added.
    is_busy: bool,
    /// The first fault. Every later operation gets it too, because nothing can be added behind missing bytes.
    fault: Option<Errno>,
}

/// The caller's next step.
#[derive(Debug)]
pub(crate) enum GrowStep {
    /// The operation is complete.
    Over(Flight, Result<u32, Errno>),
    /// Write these bytes, then call [`Growing::added`].
    Add(Flight),
}

impl Growing {
    /// Queues a sync, a close, or a write that begins where the last one ended.
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

    /// Takes the outcome of the write that [`GrowStep::Add`] requested.
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

    /// Splits steps into the write to add and short descriptions of the completed operations.
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
