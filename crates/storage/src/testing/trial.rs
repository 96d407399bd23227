//! For the engines' own tests: a workload that writes a file and reads it back, and small steps.

use std::{os::fd::OwnedFd, sync::mpsc, time::Duration};

use nilometer_model::{EngineKind, Nanos, Seed};

use crate::{
    Arena, Buffer, Clock, Completion, Drive, Engine, Step, Wait, Workload,
    clock::VirtualClock,
    engine::{self, Options},
    operation::{Errno, OpKind, Open, Operation, ROOT, Slot},
    testing::{Cost, Device, Simulated},
};

pub(crate) const FILE: Slot = Slot(1);

pub(crate) fn directory() -> (tempfile::TempDir, OwnedFd) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = OwnedFd::from(std::fs::File::open(directory.path()).expect("it can be opened"));
    (directory, root)
}

/// Creates a file, writes it in blocks, syncs, closes, opens, reads it back and closes. It waits only when
/// the data require it.
pub(crate) struct RoundTrip {
    blocks: u64,
    length: u32,
    direct: bool,
    step: u64,
    free: Vec<Buffer>,
    flying: usize,
    pub(crate) most_flying: usize,
    pub(crate) read: u64,
}

impl RoundTrip {
    /// Creates the workload. `length` is at most that of the buffers.
    pub(crate) fn new(blocks: u64, length: u32, direct: bool, free: Vec<Buffer>) -> Self {
        RoundTrip { blocks, length, direct, step: 0, free, flying: 0, most_flying: 0, read: 0 }
    }

    fn block(&self, index: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        Seed(42).part(index).stream().fill(&mut bytes);
        bytes
    }

    fn operation(&mut self, buffer: Buffer) -> Operation {
        let (blocks, length) = (self.blocks, u64::from(self.length));
        let step = self.step;
        let open = |open: Open, buffer| {
            Operation::named(OpKind::Open(open.direct_if(self.direct)), ROOT, FILE, b"trial", buffer)
        };
        if step == 0 {
            open(Open::CREATE, buffer)
        } else if step <= blocks {
            let index = step - 1;
            let mut operation = Operation::write(FILE, index * length, self.length, buffer);
            operation.buffer[..length as usize].copy_from_slice(&self.block(index));
            operation
        } else if step == blocks + 1 {
            Operation::on(OpKind::SyncData, FILE, buffer)
        } else if step == blocks + 2 || step == 2 * blocks + 4 {
            Operation::on(OpKind::Close, FILE, buffer)
        } else if step == blocks + 3 {
            open(Open::READ, buffer)
        } else {
            let mut operation = Operation::read(FILE, (step - blocks - 4) * length, self.length, buffer);
            operation.buffer.fill(0);
            operation
        }
    }
}

impl Workload for RoundTrip {
    fn next(&mut self, now: Nanos) -> Step {
        if self.step > 2 * self.blocks + 4 {
            return Step::Done;
        }
        if (self.step == self.blocks + 1 && self.flying > 0) || self.free.is_empty() {
            return Step::Wait(Wait::ForOne);
        }
        let buffer = self.free.pop().expect("not empty");
        let operation = self.operation(buffer);
        self.step += 1;
        self.flying += 1;
        self.most_flying = self.most_flying.max(self.flying);
        Step::Issue(operation, now)
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { operation, result, due, issued, finished } = completion;
        self.flying -= 1;
        assert!(due <= issued && issued <= finished, "{due:?} {issued:?} {finished:?}");
        let length = if operation.kind.is_data() { self.length } else { 0 };
        assert_eq!(result, Ok(length), "{operation:?}");
        if operation.kind == OpKind::Read {
            let index = operation.offset / u64::from(self.length);
            assert!(operation.buffer[..length as usize] == self.block(index), "block {index}");
            self.read += 1;
        }
        self.free.push(operation.buffer);
    }
}

/// Runs a round trip with this many buffers, all of which must be in flight at once and come back.
pub(crate) fn round_trip(engine: &mut dyn Engine, buffers: u32, direct: bool, registered: bool) {
    let count = buffers as usize;
    let (arena, buffers) = Arena::shared_out(count, 16384);
    if registered {
        engine.register(&arena).expect("little memory");
    }
    let addresses = |buffers: &[Buffer]| {
        let mut addresses: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        addresses.sort_unstable();
        addresses
    };
    let before = addresses(&buffers);
    let length = if direct { 16384 } else { 10_007 };
    let mut workload = RoundTrip::new(100, length, direct, buffers);
    Drive::new(&mut workload, engine).run(|_| ());
    assert_eq!(workload.read, 100);
    assert_eq!(workload.most_flying, count);
    assert_eq!(addresses(&workload.free), before);
}

/// Runs one operation and waits for it.
pub(crate) fn once(engine: &mut dyn Engine, operation: Operation) -> Completion {
    let now = engine.tick();
    engine.submit(operation, now);
    let mut done = Vec::new();
    while done.is_empty() {
        engine.reap(Wait::ForOne, &mut done);
    }
    assert_eq!(done.len(), 1);
    done.remove(0)
}

pub(crate) fn named(kind: OpKind, file: Slot, name: &[u8]) -> Operation {
    Operation::named(kind, ROOT, file, name, Buffer::alone(64))
}

/// Checks that faults are data and return the buffer.
pub(crate) fn faults(engine: &mut dyn Engine) {
    let cases = [
        (named(OpKind::Open(Open::READ), FILE, b"missing"), Errno::ENOENT),
        (named(OpKind::Stat, ROOT, b"missing"), Errno::ENOENT),
        (named(OpKind::Unlink, ROOT, b"a/b"), Errno::EINVAL),
        (Operation::read(FILE, 0, 64, Buffer::alone(64)), Errno::EBADF),
        (Operation::read(Slot(77), 0, 64, Buffer::alone(64)), Errno::EBADF),
        (Operation::on(OpKind::Sync, FILE, Buffer::alone(64)), Errno::EBADF),
        (Operation::on(OpKind::Close, FILE, Buffer::alone(64)), Errno::EBADF),
        (Operation::on(OpKind::Close, ROOT, Buffer::alone(64)), Errno::EBADF),
        (Operation::read(ROOT, 0, 64, Buffer::alone(64)), Errno::EISDIR),
    ];
    for (operation, errno) in cases {
        let Operation { kind, .. } = operation;
        let completion = once(engine, operation);
        assert_eq!(completion.result, Err(errno), "{kind:?}");
        assert_eq!(completion.operation.buffer.len(), 64);
    }
    once(engine, named(OpKind::Open(Open::CREATE), FILE, b"short")).result.expect("created");
    assert_eq!(once(engine, Operation::write(FILE, 0, 64, Buffer::alone(64))).result, Ok(64));
    let far = Operation::write(FILE, u64::MAX, 64, Buffer::alone(64));
    assert_eq!(once(engine, far).result, Err(Errno::EINVAL));
    let read = once(engine, Operation::read(FILE, 0, 64, Buffer::alone(64)));
    assert_eq!(read.result, Err(Errno::EBADF), "it is open to write only");
    once(engine, named(OpKind::Open(Open::READ), FILE, b"short")).result.expect("opened over the other");
    let read = once(engine, Operation::read(FILE, 60, 64, Buffer::alone(64)));
    assert_eq!(read.result, Ok(4), "a short read is reported as it is");
}

/// Checks that a wake from another thread ends `News` and `Until`, even an earlier one, and that `Until` ends
/// in time.
pub(crate) fn waits(engine: &mut dyn Engine) {
    let waker = engine.waker();
    let mut done = Vec::new();
    let late = Nanos::from_millis(20_000);
    for round in 0..4 {
        let started = engine.tick();
        let wait = if round % 2 == 0 { Wait::News } else { Wait::Until(started + late) };
        if round < 2 {
            waker.wake();
        }
        std::thread::scope(|scope| {
            if round >= 2 {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    waker.wake();
                });
            }
            engine.reap(wait, &mut done);
        });
        assert!(done.is_empty());
        assert!(engine.tick().since(started) < late, "round {round}");
    }
    for micros in [20, 500, 5000] {
        let time = engine.tick() + Nanos(micros * 1000);
        while engine.now() < time {
            engine.reap(Wait::Until(time), &mut done);
        }
        let late = engine.tick().since(time);
        assert!(late < Nanos::from_millis(100), "{late:?} late after {micros} us");
    }
    engine.reap(Wait::Until(Nanos(0)), &mut done);
    assert!(done.is_empty());
}

/// Makes a test fail if it would hang.
pub(crate) fn within(limit: Duration, test: impl FnOnce() + Send + 'static) {
    let (end, ended) = mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        test();
        end.send(()).expect("the test waits");
    });
    match ended.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// Creates an engine on the files of a real directory, with room for one open file.
pub(crate) fn on_directory(root: OwnedFd, kind: EngineKind, depth: u32) -> Box<dyn Engine> {
    let options = Options { kind, depth, slots: 2, clock: Clock::start() };
    engine::on_directory(root, &options).expect("each is permitted here")
}

/// Creates an engine in virtual time: every operation takes the same time, however many are in flight.
pub(crate) fn in_virtual_time(depth: usize, clock: VirtualClock, took: Nanos) -> Box<dyn Engine> {
    let device = Device { parallel: depth, ..Device::with_cost(Cost::fixed(took)) };
    Box::new(Simulated::new(device, clock).attach(depth, 2))
}

#[test]
fn each_engine_on_a_directory_is_made_as_it_is_named() {
    for (kind, depth) in [(EngineKind::Sync, 1), (EngineKind::IoUring, 5), (EngineKind::Pool, 5)] {
        let (_directory, root) = directory();
        let mut engine = on_directory(root, kind, depth);
        assert_eq!(engine.depth(), depth as usize);
        round_trip(&mut *engine, depth, false, true);
    }
}
