//! A workload under test: every step is checked and recorded.

use std::collections::BTreeMap;

use nilometer_model::Nanos;

use crate::{Completion, OpKind, Operation, ROOT, SOURCE, Slot, Step, Wait, Workload};

/// The most steps: more than any workload for tests takes.
const STEPS_MAX: u64 = 1_000_000;

/// The operations, in order.
pub(super) type Words = Vec<Word>;

/// One operation as it was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    kind: OpKind,
    file: Slot,
    dir: Slot,
    offset: u64,
    length: u32,
    due: Nanos,
    /// The name or the written data, hashed.
    bytes: u64,
}

/// A workload whose steps are checked and recorded.
pub(super) struct Watched {
    workload: Box<dyn Workload>,
    depth: usize,
    flying: usize,
    steps: u64,
    /// The content of each slot that is not empty.
    slots: BTreeMap<Slot, Content>,
    words: Words,
}

/// A slot in use.
#[derive(Debug, Default, Clone, Copy)]
struct Content {
    open: bool,
    /// An open or a close is in flight.
    changing: bool,
    /// Other operations in flight.
    users: u32,
}

impl Watched {
    pub(super) fn new(workload: Box<dyn Workload>, depth: usize) -> Self {
        let slots = [ROOT, SOURCE].map(|slot| (slot, Content { open: true, ..Content::default() })).into();
        Watched { workload, depth, flying: 0, steps: 0, slots, words: Words::new() }
    }

    /// Drops the workload and returns its operations.
    pub(super) fn finish(self) -> Words {
        assert_eq!(self.flying, 0, "done while operations are in flight");
        self.words
    }

    fn issue(&mut self, operation: &Operation, due: Nanos) {
        self.flying += 1;
        assert!(self.flying <= self.depth, "{} operations in flight at depth {}", self.flying, self.depth);
        self.words.push(word(operation, due));
        if changes_slot(operation.kind) {
            let content = self.slots.entry(operation.file).or_default();
            assert!(
                !content.changing && content.users == 0 && ![ROOT, SOURCE].contains(&operation.file),
                "{:?} of {:?} while it is in use: {content:?}",
                operation.kind,
                operation.file
            );
            content.changing = true;
        }
        for slot in uses(operation) {
            let content = self.slots.entry(slot).or_default();
            assert!(
                content.open
                    && (!content.changing || slot == operation.file && operation.kind == OpKind::Close),
                "{:?} uses {slot:?}, which is not open: {content:?}",
                operation.kind
            );
            content.users += 1;
        }
    }
}

impl Workload for Watched {
    fn next(&mut self, now: Nanos) -> Step {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "no end after {STEPS_MAX} steps, {} operations", self.words.len());
        let step = self.workload.next(now);
        match &step {
            Step::Issue(operation, due) => self.issue(operation, *due),
            Step::Wait(Wait::ForOne) => assert!(
                self.flying > 0,
                "waits for a completion while nothing is in flight: it would wait for ever"
            ),
            Step::Wait(Wait::Until(time)) => {
                assert!(
                    *time > now,
                    "waits until {time:?}, which is over at {now:?}: time would stand still"
                );
            }
            Step::Wait(_) | Step::Done => {}
        }
        step
    }

    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let Operation { kind, file, .. } = completion.operation;
        for slot in uses(&completion.operation) {
            self.slots.get_mut(&slot).expect("it was in use").users -= 1;
        }
        if changes_slot(kind) {
            let content = self.slots.get_mut(&file).expect("it was being changed");
            content.changing = false;
            // After a failed close nothing may use the slot; a failed open leaves the earlier content.
            content.open = kind != OpKind::Close && (content.open || completion.result.is_ok());
        }
        self.workload.completed(completion);
    }
}

fn changes_slot(kind: OpKind) -> bool {
    matches!(kind, OpKind::Open(_) | OpKind::OpenDir | OpKind::Close)
}

/// The slots that must be open.
fn uses(operation: &Operation) -> impl Iterator<Item = Slot> + use<> {
    let slots = match operation.kind {
        OpKind::Rename => [Some(operation.dir), Some(operation.file)],
        OpKind::Open(_)
        | OpKind::OpenDir
        | OpKind::Stat
        | OpKind::Unlink
        | OpKind::RemoveDir
        | OpKind::MakeDir => [Some(operation.dir), None],
        _ => [Some(operation.file), None],
    };
    slots.into_iter().flatten()
}

fn word(operation: &Operation, due: Nanos) -> Word {
    let Operation { kind, file, dir, offset, length, .. } = *operation;
    let bytes = match kind {
        OpKind::Rename => hash(operation.name()) ^ hash(operation.second_name()).rotate_left(1),
        OpKind::Read | OpKind::List => 0,
        _ => hash(operation.buffer.get(..length as usize).expect("no longer than its buffer")),
    };
    Word { kind, file, dir, offset, length, due, bytes }
}

/// Returns the FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
