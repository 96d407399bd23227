//! Appending to files, syncing now and then, and losing power at any moment: what was synced is there afterwards. An
//! engine that only pretends to sync must be found out by the same test.

use std::sync::Arc;

use nilometer_model::{Nanos, Seed};
use nilometer_storage::{
    Arena, Buffer, Completion, Engine, EngineError, OpKind, Open, Operation, ROOT, Slot, Wait, Wake,
    clock::VirtualClock,
    testing::{Cost, Device, Simulated},
};

const FILES: u32 = 3;
const BLOCK: u32 = 700;

/// Says that a sync was done, and does none.
struct Forgetful<E>(E);

impl<E: Engine> Engine for Forgetful<E> {
    fn depth(&self) -> usize {
        self.0.depth()
    }
    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn tick(&mut self) -> Nanos {
        self.0.tick()
    }
    fn submit(&mut self, mut operation: Operation, due: Nanos) {
        if matches!(operation.kind, OpKind::Sync | OpKind::SyncData) && operation.file != ROOT {
            // A write of nothing: it succeeds, and nothing is safe.
            (operation.kind, operation.length) = (OpKind::Write, 0);
        }
        self.0.submit(operation, due);
    }
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        self.0.reap(wait, done);
    }
    fn waker(&self) -> Arc<dyn Wake> {
        self.0.waker()
    }
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), EngineError> {
        self.0.register(arena)
    }
    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }
}

fn name(file: u32) -> [u8; 2] {
    [b'f', b'0' + file as u8]
}

fn carry_out(engine: &mut dyn Engine, operation: Operation) -> Completion {
    engine.submit(operation, engine.now());
    let mut done = Vec::new();
    engine.reap(Wait::ForOne, &mut done);
    done.pop().expect("one completion for one operation")
}

/// Appends and syncs by the seed; blocks of each file that were acknowledged as safe. One write stays in flight.
fn record(engine: &mut dyn Engine, seed: Seed) -> [u64; FILES as usize] {
    let mut stream = seed.stream();
    let (mut written, mut safe) = ([0_u64; FILES as usize], [0; FILES as usize]);
    for file in 0..FILES {
        let open =
            Operation::named(OpKind::Open(Open::CREATE), ROOT, Slot(file + 1), &name(file), Buffer::alone(8));
        carry_out(engine, open).result.expect("new");
    }
    carry_out(engine, Operation::on(OpKind::Sync, ROOT, Buffer::empty())).result.expect("synced");
    for _ in 0..stream.below(30) {
        let file = stream.below(u64::from(FILES)) as usize;
        if stream.below(3) == 0 {
            let kind = if stream.below(2) == 0 { OpKind::Sync } else { OpKind::SyncData };
            carry_out(engine, Operation::on(kind, Slot(file as u32 + 1), Buffer::empty()))
                .result
                .expect("synced");
            safe[file] = written[file];
        } else {
            carry_out(engine, block(file, written[file])).result.expect("written");
            written[file] += 1;
        }
    }
    engine.submit(block(0, written[0]), engine.now());
    safe
}

fn block(file: usize, number: u64) -> Operation {
    let mut buffer = Buffer::alone(BLOCK as usize);
    buffer.fill(number as u8 + 1);
    Operation::write(Slot(file as u32 + 1), number * u64::from(BLOCK), BLOCK, buffer)
}

/// Whether a file holds its first blocks.
fn holds(engine: &mut dyn Engine, file: u32, blocks: u64) -> bool {
    let open = Operation::named(OpKind::Open(Open::READ), ROOT, Slot(1), &name(file), Buffer::alone(8));
    carry_out(engine, open).result.expect("its name is safe");
    (0..blocks).all(|number| {
        let buffer = Buffer::alone(BLOCK as usize);
        let read = carry_out(engine, Operation::read(Slot(1), number * u64::from(BLOCK), BLOCK, buffer));
        read.result == Ok(BLOCK) && read.operation.buffer.iter().all(|&byte| byte == number as u8 + 1)
    })
}

/// The seeds for which something that was acknowledged as safe is lost.
fn losing_seeds(wrap: impl Fn(nilometer_storage::testing::SimulatedEngine) -> Box<dyn Engine>) -> Vec<u64> {
    let loses = |seed: &u64| {
        let device = Device { write: Cost::fixed(Nanos(1000)), ..Device::default() };
        let target = Simulated::new(device, VirtualClock::default());
        let safe = record(wrap(target.attach(2, FILES + 1)).as_mut(), Seed(*seed).named("record"));
        target.crash(Seed(*seed));
        let mut after = target.attach(1, 2);
        !(0..FILES).zip(safe).all(|(file, blocks)| holds(&mut after, file, blocks))
    };
    (0..4000).filter(loses).collect()
}

#[test]
fn what_was_synced_is_never_lost() {
    assert_eq!(losing_seeds(|engine| Box::new(engine)), Vec::<u64>::new());
}

#[test]
fn an_engine_that_forgets_to_sync_is_found_out() {
    let losing = losing_seeds(|engine| Box::new(Forgetful(engine)));
    assert!(losing.len() > 400, "only {} of 4000 seeds found it", losing.len());
}
