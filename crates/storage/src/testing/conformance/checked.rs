//! An engine under test: each operation on it checks the rules that hold for all.

use nilometer_model::{Capability, Nanos};

use crate::{
    Buffer, Completion, Engine, Errno, OpKind, Operation, ROOT, Slot, Wait,
    listing::{self, Stat},
};

/// Calls of `reap` before the test fails: one may return early with nothing, but not for ever.
const PATIENCE: u32 = 1_000_000;

/// Room for two names of the greatest length.
pub(super) const NAMES: usize = 600;

/// A check of an engine, and the capabilities it needs.
pub(super) type Check = (fn(&mut Checked), &'static [Capability]);

/// An engine that compares each completion with the operation submitted.
pub(super) struct Checked {
    pub(super) engine: Box<dyn Engine>,
    last: Nanos,
}

impl Checked {
    pub(super) fn new(mut engine: Box<dyn Engine>) -> Self {
        let last = engine.tick();
        Checked { engine, last }
    }

    /// Runs one operation; returns its result and its buffer.
    pub(super) fn run(&mut self, operation: Operation) -> (Result<u32, Errno>, Buffer) {
        let completion = self.run_all(vec![operation]).remove(0);
        (completion.result, completion.operation.buffer)
    }

    /// Runs one operation that must have this result.
    pub(super) fn expect(
        &mut self,
        what: &str,
        operation: Operation,
        expected: Result<u32, Errno>,
    ) -> Buffer {
        let kind = operation.kind;
        let (result, buffer) = self.run(operation);
        assert_eq!(result, expected, "{what}: {kind:?}");
        buffer
    }

    /// Runs all operations at once, at most the depth; returns completions in the order of submission.
    pub(super) fn run_all(&mut self, operations: Vec<Operation>) -> Vec<Completion> {
        assert!(operations.len() <= self.engine.depth(), "the suite keeps to the depth");
        let mut open = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            let due = Nanos(number as u64);
            let operation = operation.tagged(u64::MAX - number as u64);
            open.push((number, Sent::of(&operation, due, self.engine.now())));
            self.engine.submit(operation, due);
        }
        let mut done = Vec::new();
        for _ in 0..PATIENCE {
            if open.is_empty() {
                break;
            }
            let mut reaped = Vec::new();
            self.engine.reap(Wait::ForOne, &mut reaped);
            for completion in reaped {
                let at = open.iter().position(|(_, sent)| sent.is(&completion));
                let at = at.unwrap_or_else(|| {
                    panic!("a completion of an operation that was not in flight: {completion:?}")
                });
                let (number, sent) = open.swap_remove(at);
                sent.check(&completion);
                done.push((number, completion));
            }
            self.check_clock(done.iter().map(|(_, completion)| completion.finished));
        }
        assert!(open.is_empty(), "{} operations were never completed: {open:?}", open.len());
        self.check_nothing_more();
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, completion)| completion).collect()
    }

    pub(super) fn check_nothing_more(&mut self) {
        let mut more = Vec::new();
        self.engine.reap(Wait::Poll, &mut more);
        assert!(more.is_empty(), "completed more than once: {more:?}");
    }

    fn check_clock(&mut self, finished: impl Iterator<Item = Nanos>) {
        let now = self.engine.now();
        assert!(now >= self.last, "the clock went back from {:?} to {now:?}", self.last);
        self.last = self.engine.tick();
        assert!(self.last >= now, "reading the clock moved it back from {now:?} to {:?}", self.last);
        for time in finished {
            assert!(time <= self.last, "finished at {time:?}, which is still to come at {:?}", self.last);
        }
    }

    /// Runs an operation on a name.
    pub(super) fn named(&mut self, kind: OpKind, file: Slot, name: &[u8]) -> Result<u32, Errno> {
        self.run(Operation::named(kind, ROOT, file, name, Buffer::alone(NAMES))).0
    }

    pub(super) fn expect_named(
        &mut self,
        kind: OpKind,
        file: Slot,
        name: &[u8],
        expected: Result<u32, Errno>,
    ) {
        let result = self.named(kind, file, name);
        assert_eq!(result, expected, "{kind:?} of {}", String::from_utf8_lossy(name));
    }

    /// Runs an operation on an open file with an argument.
    pub(super) fn on(&mut self, kind: OpKind, file: Slot, offset: u64) -> Result<u32, Errno> {
        let mut operation = Operation::on(kind, file, Buffer::alone(16));
        operation.offset = offset;
        self.run(operation).0
    }

    pub(super) fn write(&mut self, file: Slot, offset: u64, bytes: &[u8]) -> Result<u32, Errno> {
        let mut buffer = Buffer::alone(bytes.len().max(1));
        buffer[..bytes.len()].copy_from_slice(bytes);
        self.run(Operation::write(file, offset, bytes.len() as u32, buffer)).0
    }

    pub(super) fn read(&mut self, file: Slot, offset: u64, length: u32) -> Result<Vec<u8>, Errno> {
        let mut buffer = Buffer::alone(length as usize);
        buffer.fill(0xee);
        let (result, buffer) = self.run(Operation::read(file, offset, length, buffer));
        result.map(|moved| buffer[..moved as usize].to_vec())
    }

    pub(super) fn stat(&mut self, name: &[u8]) -> Result<Stat, Errno> {
        let (result, buffer) =
            self.run(Operation::named(OpKind::Stat, ROOT, ROOT, name, Buffer::alone(NAMES)));
        result.map(|length| {
            assert_eq!(length as usize, Stat::BYTES, "a stat answers with {} bytes", Stat::BYTES);
            Stat::take(&buffer)
        })
    }

    /// Lists all names of an open directory in order, in parts of at most `room` bytes.
    pub(super) fn list(&mut self, dir: Slot, room: usize) -> Vec<(Vec<u8>, u8)> {
        let mut all = Vec::new();
        for _ in 0..PATIENCE {
            let (result, buffer) = self.run(Operation::on(OpKind::List, dir, Buffer::alone(room)));
            let filled = result.expect("an open directory can be listed") as usize;
            all.extend(listing::entries(&buffer[..filled]).map(|(name, kind)| (name.to_vec(), kind)));
            if filled == 0 {
                all.sort();
                return all;
            }
        }
        panic!("a listing has no end: it does not go on where the one before ended");
    }
}

/// The data that must come back unchanged.
#[derive(Debug)]
struct Sent {
    kind: OpKind,
    file: Slot,
    dir: Slot,
    length: u32,
    tag: u64,
    start: *const u8,
    bytes: usize,
    due: Nanos,
    now: Nanos,
}

impl Sent {
    fn of(operation: &Operation, due: Nanos, now: Nanos) -> Self {
        let Operation { kind, file, dir, length, tag, .. } = *operation;
        Sent {
            kind,
            file,
            dir,
            length,
            tag,
            start: operation.buffer.as_ptr(),
            bytes: operation.buffer.len(),
            due,
            now,
        }
    }

    fn is(&self, completion: &Completion) -> bool {
        self.due == completion.due && self.kind == completion.operation.kind
    }

    fn check(&self, completion: &Completion) {
        let Completion { operation, issued, finished, .. } = completion;
        let Operation { file, dir, length, .. } = *operation;
        assert_eq!((file, dir, length), (self.file, self.dir, self.length), "another operation came back");
        assert_eq!(operation.tag, self.tag, "{:?} came back under another tag", self.kind);
        let start = operation.buffer.as_ptr();
        let bytes = operation.buffer.len();
        assert_eq!((start, bytes), (self.start, self.bytes), "another buffer came back from {:?}", self.kind);
        assert!(*issued >= self.now, "{:?} issued at {issued:?}, before it was submitted", self.kind);
        assert!(issued <= finished, "{:?} issued at {issued:?}, finished at {finished:?}", self.kind);
    }
}
