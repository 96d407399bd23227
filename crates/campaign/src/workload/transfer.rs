//! One file, written or read in blocks, in sequence or at random: open, move, drain, sync, close.

use nilometer_model::{Bytes, Nanos, Seed, Stream};
use nilometer_storage::{Buffer, Completion, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload};

use super::Part;

const FILE: Slot = Slot(1);

/// Which way data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into a new file.
    Write {
        /// Made durable before the file is closed.
        sync: bool,
    },
    /// From an existing one.
    Read,
}

/// In which order blocks are moved.
#[derive(Debug, Clone)]
pub enum Order {
    /// From the first to the last.
    Sequential {
        /// Bytes of the file.
        size: Bytes,
        /// Bytes of a block.
        block: Bytes,
    },
    /// Uniformly, with repeats.
    Random {
        /// Bytes of the file.
        size: Bytes,
        /// Bytes of a block.
        block: Bytes,
        /// How many blocks.
        operations: u64,
        /// Chooses them.
        stream: Stream,
    },
}

impl Order {
    fn block(&self) -> u32 {
        match self {
            Order::Sequential { block, .. } | Order::Random { block, .. } => block.0 as u32,
        }
    }

    /// Where the block of this number begins; none behind the last.
    #[inline]
    fn offset(&mut self, number: u64) -> Option<u64> {
        match self {
            Order::Sequential { size, block } => Some(number * block.0).filter(|&offset| offset < size.0),
            Order::Random { operations, .. } if number >= *operations => None,
            Order::Random { size, block, stream, .. } => Some(stream.below(size.0 / block.0) * block.0),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Transfer {
    name: String,
    order: Order,
    direction: Direction,
    direct: bool,
    stamp: Seed,
    stop_at: Nanos,
    buffers: Vec<Buffer>,
    state: State,
    issued: u64,
    flying: u32,
    failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Opening,
    Moving,
    Sync,
    Close,
    Closing,
    Closed,
}

impl Transfer {
    /// Moves data between the part's buffers, which hold a block each, and the named file.
    pub fn new(name: &str, order: Order, direction: Direction, part: Part) -> Self {
        Transfer {
            name: name.into(),
            order,
            direction,
            direct: part.direct,
            stamp: part.seed.named("content").part(u64::from(part.worker)),
            stop_at: part.stop_at,
            buffers: part.buffers,
            state: State::Open,
            issued: 0,
            flying: 0,
            failed: false,
        }
    }

    fn writes(&self) -> bool {
        self.direction != Direction::Read
    }

    fn issue(&mut self, operation: Operation, now: Nanos, state: State) -> Step {
        self.state = state;
        self.flying += 1;
        Step::Issue(operation, now)
    }

    #[inline]
    fn advance(&mut self, now: Nanos) -> Step {
        let Some(buffer) = self.buffers.pop() else { return Step::Wait(Wait::ForOne) };
        let over = self.failed || now >= self.stop_at;
        let Some(offset) = (if over { None } else { self.order.offset(self.issued) }) else {
            self.buffers.push(buffer);
            return self.end(now);
        };
        self.issued += 1;
        self.flying += 1;
        let length = self.order.block();
        Step::Issue(
            if self.writes() {
                self.write(offset, length, buffer)
            } else {
                Operation::read(FILE, offset, length, buffer)
            },
            now,
        )
    }

    #[inline]
    fn write(&self, offset: u64, length: u32, mut buffer: Buffer) -> Operation {
        stamp(&mut buffer[..length as usize], self.stamp, offset);
        Operation::write(FILE, offset, length, buffer)
    }

    fn end(&mut self, now: Nanos) -> Step {
        if self.flying > 0 {
            return Step::Wait(Wait::ForOne);
        }
        let sync = self.direction == Direction::Write { sync: true } && !self.failed;
        if sync && self.state == State::Moving {
            let buffer = self.buffers.pop().unwrap_or_default();
            return self.issue(Operation::on(OpKind::Sync, FILE, buffer), now, State::Sync);
        }
        self.state = State::Close;
        self.close(now)
    }

    fn close(&mut self, now: Nanos) -> Step {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.issue(Operation::on(OpKind::Close, FILE, buffer), now, State::Closing)
    }

    fn open(&mut self, now: Nanos) -> Step {
        let Some(buffer) = self.buffers.pop() else { return Step::Done };
        let how = if self.writes() { Open::CREATE } else { Open::READ };
        let kind = OpKind::Open(how.direct_if(self.direct));
        self.issue(Operation::named(kind, ROOT, FILE, self.name.as_bytes(), buffer), now, State::Opening)
    }
}

impl Workload for Transfer {
    #[inline]
    fn next(&mut self, now: Nanos) -> Step {
        match self.state {
            State::Moving => self.advance(now),
            State::Open => self.open(now),
            State::Close => self.close(now),
            State::Closed => Step::Done,
            State::Opening | State::Sync | State::Closing => Step::Wait(Wait::ForOne),
        }
    }

    #[inline]
    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let operation = completion.operation;
        match operation.kind {
            OpKind::Read | OpKind::Write => self.failed |= completion.result != Ok(operation.length),
            OpKind::Open(_) => {
                self.state = if completion.result.is_ok() { State::Moving } else { State::Closed };
            }
            OpKind::Sync => self.state = State::Close,
            _ => self.state = State::Closed,
        }
        self.buffers.push(operation.buffer);
    }
}

/// Makes each page of a block unlike any other, so that nothing can be deduplicated: eight bytes a page.
#[inline]
pub fn stamp(block: &mut [u8], seed: Seed, offset: u64) {
    for (page, number) in block.chunks_mut(4096).zip(offset / 4096..) {
        let mark = seed.0.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
        let length = page.len().min(8);
        page[..length].copy_from_slice(&mark[..length]);
    }
}
