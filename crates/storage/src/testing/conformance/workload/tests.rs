//! The suite detects workloads that break its rules.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::operation::{OpKind, Open, ROOT, Slot};

const BLOCKS: u64 = 20;
const FILE: Slot = Slot(1);

/// A fault of a workload.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    KeepsABuffer,
    WritesBeforeTheOpen,
    WaitsForEver,
    TriesForEver,
    StopsThenGoesOn,
    Remembers,
}

/// Writes a file, a block every ten microseconds, and closes it.
struct Blocks {
    fault: Fault,
    free: Vec<Buffer>,
    state: State,
    next: u64,
    flying: u64,
    dones: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Opening,
    Open,
    Closing,
    Closed,
}

static MEMORY: AtomicU64 = AtomicU64::new(0);

impl Blocks {
    fn boxed(fault: Fault, free: Vec<Buffer>) -> Box<dyn Workload> {
        let next = if fault == Fault::Remembers { MEMORY.fetch_add(1, Ordering::Relaxed) % 2 } else { 0 };
        Box::new(Blocks { fault, free, state: State::New, next, flying: 0, dones: 0 })
    }

    fn write(&mut self, now: Nanos, mut buffer: Buffer) -> Step {
        let due = Nanos(self.next * 10_000);
        if now < due {
            self.free.push(buffer);
            return Step::Wait(Wait::Until(due));
        }
        let length = buffer.len() as u32;
        buffer.fill(self.next as u8);
        self.next += 1;
        self.flying += 1;
        Step::Issue(Operation::write(FILE, (self.next - 1) * u64::from(length), length, buffer), due)
    }

    fn end(&mut self, now: Nanos, buffer: Buffer) -> Step {
        if self.flying > 0 {
            self.free.push(buffer);
            return Step::Wait(Wait::ForOne);
        }
        self.state = State::Closing;
        Step::Issue(Operation::on(OpKind::Close, FILE, buffer), now)
    }
}

impl Workload for Blocks {
    fn next(&mut self, now: Nanos) -> Step {
        if self.state == State::Closed {
            self.dones += 1;
            let again = self.fault == Fault::StopsThenGoesOn && self.dones > 1;
            return if again { Step::Wait(Wait::News) } else { Step::Done };
        }
        let Some(buffer) = self.free.pop() else { return Step::Wait(Wait::ForOne) };
        match self.state {
            State::New => {
                self.state = State::Opening;
                Step::Issue(Operation::named(OpKind::Open(Open::CREATE), ROOT, FILE, b"f", buffer), now)
            }
            State::Opening if self.fault == Fault::WritesBeforeTheOpen => self.write(now, buffer),
            State::Open if self.next < BLOCKS => self.write(now, buffer),
            State::Open => self.end(now, buffer),
            _ => {
                self.free.push(buffer);
                Step::Wait(Wait::ForOne)
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        match (completion.operation.kind, completion.result) {
            (OpKind::Write, Ok(_)) => self.flying -= 1,
            (OpKind::Write, Err(_)) => {
                self.flying -= u64::from(self.fault != Fault::WaitsForEver);
                self.next = if self.fault == Fault::TriesForEver { 0 } else { BLOCKS };
            }
            (OpKind::Close, _) => self.state = State::Closed,
            (_, result) => self.state = if result.is_ok() { State::Open } else { State::Closed },
        }
        if self.fault == Fault::KeepsABuffer && self.next == 3 {
            std::mem::forget(completion.operation.buffer);
        } else {
            self.free.push(completion.operation.buffer);
        }
    }
}

/// Succeeds, or returns the reason that the workload fails the suite.
fn verdict(fault: Fault) -> Result<(), String> {
    let demands = Demands { buffers: 1 + usize::from(fault != Fault::None), bytes: 64, slots: 2 };
    let suite = || workload_suite(demands, &|_| {}, &mut |buffers| Blocks::boxed(fault, buffers));
    catch_unwind(AssertUnwindSafe(suite)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })
}

#[test]
fn a_workload_without_fault_passes() {
    assert_eq!(verdict(Fault::None), Ok(()));
}

#[test]
fn each_fault_is_found_and_named() {
    for (fault, word) in [
        (Fault::KeepsABuffer, "buffers are left over"),
        (Fault::WritesBeforeTheOpen, "which is not open"),
        (Fault::WaitsForEver, "it would wait for ever"),
        (Fault::TriesForEver, "no end after"),
        (Fault::StopsThenGoesOn, "after done"),
        (Fault::Remembers, "the same history gave other operations"),
    ] {
        let message = verdict(fault).expect_err(word);
        assert!(message.contains(word), "expected `{word}`, found: {message}");
    }
}
