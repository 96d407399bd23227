//! Files copied from another storage system, as `dd` and `cp` do: each block is read from the source, through the page
//! cache, and then written. With a depth of 1 one waits for the other; with more, several blocks are under way.

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_storage::{
    Buffer, Completion, Errno, OpKind, Open, Operation, ROOT, SOURCE, Slot, Step, Wait, Workload,
};

use super::{Names, Order, WorkerPart, Writing, transfer::Progress, writing::Pause};

const FROM: Slot = Slot(1);
const TO: Slot = Slot(2);

/// The workload of a worker that copies files.
#[derive(Debug)]
pub struct Copy {
    sources: Names,
    names: Names,
    order: Order,
    writing: Writing,
    stop_at: Nanos,
    free: VecDeque<Buffer>,
    /// Blocks that were read and wait to be written, by number.
    full: VecDeque<(u64, Buffer)>,
    state: State,
    /// The number of blocks of the file whose read was issued.
    issued: u64,
    pause_at: u64,
    flying: u32,
    failed: bool,
    file: u32,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    OpenSource,
    OpenCopy,
    Reserve,
    Moving,
    CloseCopy,
    CloseSource,
    Done,
    /// One operation that is not data is in flight.
    Waiting,
}

impl Copy {
    /// Reads each of the `sources` from its beginning and writes its blocks in this order to the file of the
    /// same number among `names`. Slots: 3.
    pub fn new(sources: Names, names: Names, order: Order, writing: Writing, part: WorkerPart) -> Self {
        let writing = Writing { open: writing.open.direct_if(part.direct), ..writing };
        let state = if names.count() == 0 { State::Done } else { State::OpenSource };
        Copy {
            sources,
            names,
            order,
            writing,
            stop_at: part.stop_at,
            free: part.buffers.into(),
            full: VecDeque::new(),
            state,
            issued: 0,
            pause_at: 0,
            flying: 0,
            failed: false,
            file: 0,
            progress: Progress::writing(part.reached),
        }
    }

    fn advance(&mut self, now: Nanos) -> Step {
        if let Some((number, buffer)) = self.full.pop_front() {
            let length = self.order.length(number);
            let offset = self.order.offset(number);
            self.flying += 1;
            return Step::Issue(Operation::write(TO, offset, length, buffer), now);
        }
        if self.issued == self.pause_at || now >= self.stop_at {
            return self.pause(now);
        }
        let Some(buffer) = self.free.pop_front() else { return Step::Wait(Wait::ForOne) };
        let number = self.issued;
        let length = self.order.length(number);
        self.issued += 1;
        self.flying += 1;
        Step::Issue(Operation::read(FROM, number * self.order.block(), length, buffer), now)
    }

    fn pause(&mut self, now: Nanos) -> Step {
        if self.flying > 0 {
            return Step::Wait(Wait::ForOne);
        }
        let end = self.order.count();
        let pause = Pause::of(self.failed, now < self.stop_at && self.issued < end);
        self.pause_at = self.writing.next_pause(self.issued, end);
        self.alone(self.writing.in_pause(pause), TO, now)
    }

    fn alone(&mut self, kind: OpKind, file: Slot, now: Nanos) -> Step {
        let buffer = self.free.pop_front().unwrap_or_default();
        self.issue(self.writing.operation(kind, file, buffer), now)
    }

    fn issue(&mut self, operation: Operation, now: Nanos) -> Step {
        self.state = State::Waiting;
        self.flying += 1;
        Step::Issue(operation, now)
    }

    fn open_source(&mut self, now: Nanos) -> Step {
        let in_time = self.file == 0 || now < self.stop_at;
        let Some(buffer) = self.free.pop_front().filter(|_| in_time) else {
            self.state = State::Done;
            return Step::Done;
        };
        let name = self.sources.name(self.file);
        let operation = Operation::named(OpKind::Open(Open::READ), SOURCE, FROM, name, buffer);
        self.issue(operation, now)
    }

    fn open_copy(&mut self, now: Nanos) -> Step {
        let buffer = self.free.pop_front().expect("nothing is in flight");
        let kind = OpKind::Open(self.writing.open);
        let name = self.names.name(self.file);
        let operation = Operation::named(kind, ROOT, TO, name, buffer);
        self.issue(operation, now)
    }

    /// Continues after the operation that was alone in flight.
    fn go_on(&mut self, kind: OpKind, file: Slot, result: Result<u32, Errno>) {
        let refused = kind == OpKind::Allocate && result.is_err_and(Errno::is_refusal);
        if result.is_err() && !refused {
            self.fail();
        }
        self.state = match kind {
            OpKind::Open(_) if file == FROM => {
                if self.failed {
                    State::Done
                } else {
                    State::OpenCopy
                }
            }
            OpKind::Open(_) if self.failed => State::CloseSource,
            OpKind::Open(_) => {
                self.issued = 0;
                self.pause_at = self.writing.next_pause(0, self.order.count());
                if self.writing.reserve.is_some() { State::Reserve } else { State::Moving }
            }
            OpKind::Close if file == TO => State::CloseSource,
            OpKind::Close => self.next_file(),
            OpKind::Sync => State::CloseCopy,
            _ => State::Moving,
        };
    }

    fn fail(&mut self) {
        self.failed = true;
        self.pause_at = self.issued;
        self.free.extend(self.full.drain(..).map(|(_, buffer)| buffer));
    }

    fn next_file(&mut self) -> State {
        let more = self.progress.add(self.issued);
        self.file += 1;
        if more && !self.failed && self.file < self.names.count() { State::OpenSource } else { State::Done }
    }
}

impl Workload for Copy {
    fn next(&mut self, now: Nanos) -> Step {
        match self.state {
            State::Moving => self.advance(now),
            State::OpenSource => self.open_source(now),
            State::OpenCopy => self.open_copy(now),
            State::Reserve => self.alone(OpKind::Allocate, TO, now),
            State::CloseCopy => self.alone(OpKind::Close, TO, now),
            State::CloseSource => self.alone(OpKind::Close, FROM, now),
            State::Waiting => Step::Wait(Wait::ForOne),
            State::Done => Step::Done,
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let Operation { kind, file, length, offset, buffer, .. } = completion.operation;
        match kind {
            OpKind::Read if completion.result == Ok(length) && !self.failed => {
                self.full.push_back((offset / self.order.block(), buffer));
            }
            OpKind::Read | OpKind::Write => {
                self.free.push_back(buffer);
                if completion.result != Ok(length) {
                    self.fail();
                }
            }
            _ => {
                self.free.push_back(buffer);
                self.go_on(kind, file, completion.result);
            }
        }
    }
}
