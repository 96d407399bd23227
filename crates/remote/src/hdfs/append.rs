//! A file that is being written: what is appended between two syncs is one request to a data node, which goes on for as long as
//! something comes.
//!
//! ```text
//! write -> waiting -> the name node says which data node -> stream: write, write, ... -> sync or close: the end of the stream,
//!                                                                                        and the data node's answer
//! ```
//!
//! A write is done once it is handed over to the connection; what a data node could not keep is told at the sync or the close.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use nilometer_storage::{Errno, OpKind};

use crate::client::Flight;

/// Shared by the open file and the requests for it.
pub(super) type SharedAppend = Rc<RefCell<Appending>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Appending {
    pub(super) path: String,
    /// Where the next write has to begin.
    next: u64,
    /// Writes, syncs and closes in their order.
    waiting: VecDeque<Flight>,
    state: AppendState,
    /// The first fault, which all that follows comes to.
    fault: Option<Errno>,
    /// Nobody has the file open any more.
    is_left: bool,
}

/// How far the request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendState {
    Idle,
    /// The name node was asked.
    Asked,
    /// By its number.
    Flowing(usize),
    /// Its end was sent.
    Ending,
}

/// What has to be done next.
#[derive(Debug)]
pub(super) enum AppendStep {
    /// The operation is over.
    Over(Flight, Result<u32, Errno>),
    /// The name node is asked.
    Ask,
    /// The bytes of a write go into the stream.
    Feed(usize, Flight),
    /// Nothing follows in it.
    Finish(usize),
}

impl Appending {
    /// A file that is so long.
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

    /// A request of it is under way.
    pub(super) fn is_active(&self) -> bool {
        self.state != AppendState::Idle
    }

    /// A write of what is in the flight's buffer: behind the last one.
    pub(super) fn write(&mut self, flight: Flight) -> Vec<AppendStep> {
        if flight.operation.offset != self.next {
            return vec![AppendStep::Over(flight, Err(Errno::EOPNOTSUPP))];
        }
        self.next += u64::from(flight.operation.length);
        self.waiting.push_back(flight);
        self.go_on()
    }

    /// A sync or a close.
    pub(super) fn end(&mut self, flight: Flight) -> Vec<AppendStep> {
        self.waiting.push_back(flight);
        self.go_on()
    }

    /// The file was left without being closed: what was written is to be there all the same.
    pub(super) fn leave(&mut self) -> Vec<AppendStep> {
        self.is_left = true;
        self.go_on()
    }

    /// The name node has said where; the request of this number goes there. Or it has not.
    pub(super) fn led(&mut self, stream: Result<usize, Errno>) -> Vec<AppendStep> {
        match stream {
            Ok(token) => self.state = AppendState::Flowing(token),
            Err(errno) => return self.failed(errno),
        }
        self.go_on()
    }

    /// The data node has answered. One that does so before the end was sent has not taken all.
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

    /// In short: what the steps are.
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
