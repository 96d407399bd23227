//! A file that is being written. All appends between two syncs form one request to a data node, which stays
//! open until the sync.
//!
//! ```text
//! write -> waiting -> the name node names a data node -> stream: write, write, ... -> sync or close:
//!                                                        the end of the stream, and the data node's answer
//! ```
//!
//! A write is done once the connection has taken its bytes. If the data node could not store them, the sync or
//! close reports it.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use nilometer_storage::{Errno, OpKind};

use crate::client::Flight;

/// An appending file, shared by the open file and its requests.
pub(super) type SharedAppend = Rc<RefCell<Appending>>;

/// The state of a file that is being written.
#[derive(Debug)]
pub(super) struct Appending {
    pub(super) path: String,
    /// The offset at which the next write must begin.
    next: u64,
    /// Writes, syncs and closes in their order.
    waiting: VecDeque<Flight>,
    state: AppendState,
    /// The first fault. Every later operation gets it too.
    fault: Option<Errno>,
    /// True once the file was dropped without a close.
    is_left: bool,
}

/// The progress of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendState {
    Idle,
    /// The request for a data node is at the name node.
    Asked,
    /// The request with this token is open.
    Flowing(usize),
    /// The end of the request was sent.
    Ending,
}

/// The caller's next step.
#[derive(Debug)]
pub(super) enum AppendStep {
    /// The operation is complete.
    Over(Flight, Result<u32, Errno>),
    /// Ask the name node for a data node.
    Ask,
    /// Send the bytes of this write in the stream with this token.
    Feed(usize, Flight),
    /// End the stream with this token.
    Finish(usize),
}

impl Appending {
    /// Makes the state of a file of `length` bytes.
    pub(super) fn new(path: String, length: u64) -> SharedAppend {
        Rc::new(RefCell::new(Appending {
            path,
            next: length,
            waiting: VecDeque::new(),
            state: AppendState::Idle,
            fault: None,
            is_left: false,
        }))
    }

    /// Returns true while a request of the file is under way.
    pub(super) fn is_active(&self) -> bool {
        self.state != AppendState::Idle
    }

    /// Queues a write from the flight's buffer. It must begin where the last one ended.
    pub(super) fn write(&mut self, flight: Flight) -> Vec<AppendStep> {
        if flight.operation.offset != self.next {
            return vec![AppendStep::Over(flight, Err(Errno::EOPNOTSUPP))];
        }
        self.next += u64::from(flight.operation.length);
        self.waiting.push_back(flight);
        self.go_on()
    }

    /// Queues a sync or a close.
    pub(super) fn end(&mut self, flight: Flight) -> Vec<AppendStep> {
        self.waiting.push_back(flight);
        self.go_on()
    }

    /// Ends the stream of a file that was dropped without a close. Its data must still reach the server.
    pub(super) fn leave(&mut self) -> Vec<AppendStep> {
        self.is_left = true;
        self.go_on()
    }

    /// Takes the token of the request to the data node, or the name node's error.
    pub(super) fn led(&mut self, stream: Result<usize, Errno>) -> Vec<AppendStep> {
        match stream {
            Ok(token) => self.state = AppendState::Flowing(token),
            Err(errno) => return self.failed(errno),
        }
        self.go_on()
    }

    /// Takes the data node's answer. An answer before the end of the stream is a fault, because data are
    /// missing.
    pub(super) fn answered(&mut self, outcome: Result<(), Errno>) -> Vec<AppendStep> {
        match outcome {
            Ok(()) if self.state == AppendState::Ending => {
                self.state = AppendState::Idle;
                self.go_on()
            }
            outcome => self.failed(outcome.err().unwrap_or(Errno::EIO)),
        }
    }

    fn failed(&mut self, errno: Errno) -> Vec<AppendStep> {
        self.state = AppendState::Idle;
        self.fault.get_or_insert(errno);
        self.go_on()
    }

    fn go_on(&mut self) -> Vec<AppendStep> {
        let mut steps = Vec::new();
        while let Some(step) = self.step() {
            steps.push(step);
        }
        steps
    }

    fn step(&mut self) -> Option<AppendStep> {
        let is_write = self.waiting.front().map(|flight| flight.operation.kind == OpKind::Write);
        match (self.state, is_write) {
            (AppendState::Idle, Some(_)) if self.fault.is_some() => {
                let flight = self.waiting.pop_front()?;
                Some(AppendStep::Over(flight, self.fault.map_or(Ok(0), Err)))
            }
            (AppendState::Idle, Some(true)) => {
                self.state = AppendState::Asked;
                Some(AppendStep::Ask)
            }
            (AppendState::Idle, Some(false)) => Some(AppendStep::Over(self.waiting.pop_front()?, Ok(0))),
            (AppendState::Flowing(token), Some(true)) => {
                Some(AppendStep::Feed(token, self.waiting.pop_front()?))
            }
            (AppendState::Flowing(token), is_write) if is_write.is_some() || self.is_left => {
                self.state = AppendState::Ending;
                Some(AppendStep::Finish(token))
            }
            _ => None,
        }
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

    /// Describes each step in a few words.
    fn short(steps: &[AppendStep]) -> Vec<String> {
        let one = |step: &AppendStep| match step {
            AppendStep::Over(flight, result) => format!("{:?} {result:?}", flight.operation.kind),
            AppendStep::Ask => "ask".into(),
            AppendStep::Feed(token, flight) => format!("feed {token} {}", flight.operation.offset),
            AppendStep::Finish(token) => format!("finish {token}"),
        };
        steps.iter().map(one).collect()
    }

    #[test]
    fn what_is_between_two_syncs_is_one_stream() {
        let file = Appending::new("/f".into(), 0);
        let mut file = file.borrow_mut();
        assert_eq!(short(&file.end(sync())), ["Sync Ok(0)"], "nothing was written");
        assert_eq!(short(&file.write(write(0, 10))), ["ask"]);
        assert_eq!(short(&file.write(write(10, 5))), [""; 0], "it waits for the answer");
        assert_eq!(short(&file.write(write(20, 5))), ["Write Err(Errno(95))"], "a hole");
        assert_eq!(short(&file.led(Ok(7))), ["feed 7 0", "feed 7 10"]);
        assert_eq!(short(&file.end(sync())), ["finish 7"]);
        assert_eq!(short(&file.write(write(15, 1))), [""; 0], "behind the sync");
        assert_eq!(short(&file.answered(Ok(()))), ["Sync Ok(0)", "ask"], "a stream of its own");
        assert_eq!(short(&file.led(Ok(8))), ["feed 8 15"]);
        assert_eq!(short(&file.leave()), ["finish 8"]);
        assert_eq!(short(&file.answered(Ok(()))), [""; 0]);
        assert!(!file.is_active());
    }

    #[test]
    fn a_fault_is_that_of_all_that_follows() {
        let file = Appending::new("/f".into(), 3);
        let mut file = file.borrow_mut();
        file.write(write(3, 1));
        assert_eq!(short(&file.led(Err(Errno::EACCES))), ["Write Err(Errno(13))"]);
        assert_eq!(short(&file.write(write(4, 1))), ["Write Err(Errno(13))"]);
        assert_eq!(short(&file.end(sync())), ["Sync Err(Errno(13))"], "and is said once more at its end");
        let file = Appending::new("/f".into(), 0);
        let mut file = file.borrow_mut();
        file.write(write(0, 1));
        file.led(Ok(1));
        assert_eq!(short(&file.answered(Ok(()))), [""; 0], "it answered before the end was sent");
        assert_eq!(short(&file.end(sync())), ["Sync Err(Errno(5))"]);
    }
}
