//! Transfers files, one after the other, written or read in blocks: open, reserve, move, drain, sync, close.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use nilometer_model::{Nanos, RandomStream};
use nilometer_storage::{
    Buffer, Completion, Errno, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload,
};

use super::{BlockContent, Names, Order, WorkerPart, Writing, writing::Pause};

const FILE: Slot = Slot(1);

/// The direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into files.
    Write(Writing),
    /// Over the blocks that the worker has written to them.
    Rewrite(Writing),
    /// From existing ones.
    Read,
    /// Both, in existing files, which are durable before they are closed.
    Mix {
        /// The share of reads in percent.
        reads: u32,
    },
}

impl Direction {
    fn writing(self) -> Writing {
        match self {
            Direction::Write(writing) | Direction::Rewrite(writing) => writing,
            Direction::Mix { .. } => Writing { open: Open::READ_WRITE, ..Writing::NEW },
            Direction::Read => Writing::NOT,
        }
    }
}

/// The workload of a worker that writes or reads files in blocks.
#[derive(Debug)]
pub struct Transfer {
    names: Names,
    order: Order,
    direction: Direction,
    /// Chooses between reads and writes.
    choice: RandomStream,
    content: BlockContent,
    writing: Writing,
    stop_at: Nanos,
    /// Used in turn. If there are more buffers than the depth needs, consecutive blocks differ.
    buffers: VecDeque<Buffer>,
    state: State,
    issued: u64,
    /// The number of blocks at which moving pauses: at the end of the file, or where a sync is due.
    pause_at: u64,
    flying: u32,
    failed: bool,
    /// See [`WorkerPart::keeps_step`].
    keeps_step: bool,
    file: u32,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Reserve,
    Moving,
    Close,
    Done,
    /// One operation that is not data is in flight.
    Waiting,
}

/// The blocks of all files of a worker. A writer stores how many it wrote; a reader goes no further.
#[derive(Debug)]
pub(super) struct Progress {
    /// A writer stores its number here.
    reached: Option<Arc<AtomicU64>>,
    moved: u64,
    limit: u64,
}

impl Progress {
    pub(super) fn writing(reached: Arc<AtomicU64>) -> Self {
        Progress { reached: Some(reached), moved: 0, limit: u64::MAX }
    }

    fn reading(reached: &AtomicU64) -> Self {
        Progress { reached: None, moved: 0, limit: reached.load(Ordering::Relaxed) }
    }

    /// The number of blocks that are left out of `count`.
    fn left(&self, count: u64) -> u64 {
        count.min(self.limit - self.moved)
    }

    /// Adds the blocks of a closed file. Returns true if another file may follow.
    pub(super) fn add(&mut self, blocks: u64) -> bool {
        self.moved += blocks;
        if let Some(reached) = &self.reached {
            reached.store(self.moved, Ordering::Relaxed);
        }
        self.moved < self.limit
    }
}

impl Transfer {
    /// Moves data between the part's buffers, which hold a block each, and the named files.
    pub fn new(names: impl Into<Names>, order: Order, direction: Direction, part: WorkerPart) -> Self {
        let seed = part.seed_for("content");
        Transfer::with_content(names.into(), order, direction, BlockContent::Stamped(seed), part)
    }

    /// Like `new`, with the bytes of written blocks from `content`.
    pub(super) fn with_content(
        names: Names,
        order: Order,
        direction: Direction,
        content: BlockContent,
        part: WorkerPart,
    ) -> Self {
        let choice = part.seed_for("reads").stream();
        let writing = direction.writing();
        let writing = Writing { open: writing.open.direct_if(part.direct), ..writing };
        let progress = match direction {
            Direction::Write(_) => Progress::writing(part.reached),
            Direction::Read | Direction::Rewrite(_) | Direction::Mix { .. } => {
                Progress::reading(&part.reached)
            }
        };
        // If all workers share out files, this one may have none.
        let state = if names.count() == 0 { State::Done } else { State::Open };
        Transfer {
            names,
            order,
            direction,
            choice,
            content,
            writing,
            stop_at: part.stop_at,
            buffers: part.buffers.into(),
            state,
            issued: 0,
            pause_at: 0,
            flying: 0,
            failed: false,
            keeps_step: part.keeps_step,
            file: 0,
            progress,
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanos) -> Step {
        if self.issued == self.pause_at || now >= self.stop_at {
            return self.pause(now);
        }
        let Some(buffer) = self.buffers.pop_front() else { return Step::Wait(Wait::ForOne) };
        let length = self.order.length(self.issued);
        let offset = self.order.offset(self.issued);
        self.issued += 1;
        self.flying += 1;
        let reads = match self.direction {
            Direction::Read => true,
            Direction::Write(_) | Direction::Rewrite(_) => false,
            Direction::Mix { reads } => self.choice.below(100) < u64::from(reads),
        };
        let operation = if reads {
            Operation::read(FILE, offset, length, buffer)
        } else {
            self.write(offset, length, buffer)
        };
        Step::Issue(operation, now)
    }

    #[inline]
    fn write(&mut self, offset: u64, length: u32, mut buffer: Buffer) -> Operation {
        self.content.fill(&mut buffer[..length as usize], offset);
        Operation::write(FILE, offset, length, buffer)
    }

    /// The step if no block moves now: a sync is due, the file is at its end, the time is up, or an operation
    /// failed.
    #[cold]
    fn pause(&mut self, now: Nanos) -> Step {
        if self.flying > 0 {
            return Step::Wait(Wait::ForOne);
        }
        let end = self.progress.left(self.order.count());
        let pause = Pause::of(self.failed, now < self.stop_at && self.issued < end);
        self.pause_at = self.writing.next_pause(self.issued, end);
        self.alone(self.writing.in_pause(pause), now)
    }

    /// An operation on the open file, which must have nothing else in flight.
    fn alone(&mut self, kind: OpKind, now: Nanos) -> Step {
        let buffer = self.buffers.pop_front().unwrap_or_default();
        self.issue(self.writing.operation(kind, FILE, buffer), now)
    }

    fn issue(&mut self, operation: Operation, now: Nanos) -> Step {
        self.state = State::Waiting;
        self.flying += 1;
        Step::Issue(operation, now)
    }

    /// Opens the first file in any case, the others while there is time.
    fn open(&mut self, now: Nanos) -> Step {
        let in_time = self.file == 0 || now < self.stop_at;
        let Some(buffer) = self.buffers.pop_front().filter(|_| in_time) else {
            self.state = State::Done;
            return Step::Done;
        };
        let kind = OpKind::Open(self.writing.open);
        let name = self.names.name(self.file);
        let operation = Operation::named(kind, ROOT, FILE, name, buffer);
        self.issue(operation, now)
    }

    /// Continues after the operation that was alone in flight.
    #[cold]
    fn go_on(&mut self, kind: OpKind, result: Result<u32, Errno>) {
        self.state = match kind {
            OpKind::Open(_) if result.is_err() => State::Done,
            OpKind::Open(_) => {
                self.issued = 0;
                self.pause_at = self.writing.next_pause(0, self.progress.left(self.order.count()));
                if self.writing.reserve.is_some() { State::Reserve } else { State::Moving }
            }
            OpKind::Close => self.next_file(),
            OpKind::Sync => State::Close,
            _ => State::Moving,
        };
        let refused = kind == OpKind::Allocate && result.is_err_and(Errno::is_refusal);
        if result.is_err() && !refused {
            self.fail();
        }
    }

    /// Moves and opens nothing more, and closes the open file. If others make the same calls, it still makes
    /// all of them.
    fn fail(&mut self) {
        if self.keeps_step {
            return;
        }
        self.failed = true;
        self.pause_at = self.issued;
    }

    fn next_file(&mut self) -> State {
        let more = self.progress.add(self.issued);
        self.file += 1;
        if more && !self.failed && self.file < self.names.count() { State::Open } else { State::Done }
    }
}

impl Workload for Transfer {
    #[inline]
    fn next(&mut self, now: Nanos) -> Step {
        match self.state {
            State::Moving => self.advance(now),
            State::Open => self.open(now),
            State::Reserve => self.alone(OpKind::Allocate, now),
            State::Close => self.alone(OpKind::Close, now),
            State::Waiting => Step::Wait(Wait::ForOne),
            State::Done => Step::Done,
        }
    }

    #[inline]
    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let operation = completion.operation;
        if operation.kind.is_data() {
            if completion.result != Ok(operation.length) {
                self.fail();
            }
        } else {
            self.go_on(operation.kind, completion.result);
        }
        self.buffers.push_back(operation.buffer);
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Bytes, Seed};

    use super::*;
    use crate::workload::WorkerPlace;

    /// The operations of a worker whose every block fails.
    fn done(keeps_step: bool) -> Vec<OpKind> {
        let buffers = vec![Buffer::alone(512)];
        let part = WorkerPart { keeps_step, ..WorkerPart::new(WorkerPlace::alone(0, 1), Seed(1), buffers) };
        let order = Order::sequential(Bytes(3 * 512), Bytes(512));
        let mut transfer = Transfer::new("n_f", order, Direction::Write(Writing::NEW), part);
        let mut done = Vec::new();
        while let Step::Issue(operation, due) = transfer.next(Nanos(0)) {
            done.push(operation.kind);
            let result = if operation.kind.is_data() { Err(Errno::ENOSPC) } else { Ok(0) };
            transfer.completed(Completion { operation, result, due, issued: due, finished: due });
        }
        done
    }

    #[test]
    fn who_keeps_step_with_others_makes_all_calls_whatever_comes_of_them() {
        let open = OpKind::Open(Open::CREATE);
        assert_eq!(done(false), [open, OpKind::Write, OpKind::Close]);
        let all = [open, OpKind::Write, OpKind::Write, OpKind::Write, OpKind::Sync, OpKind::Close];
        assert_eq!(done(true), all);
    }
}
