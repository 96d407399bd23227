//! The tree in memory against a real directory: random operations must give the same results, error numbers, data and
//! names. So what is proved on a simulated target is proved about Linux.

use std::os::fd::OwnedFd;

use nilometer_model::{Bytes, EngineKind, Seed};
use nilometer_storage::{
    Arena, Buffer, Clock, Completion, Engine, OpKind, Open, Operation, Slot, Target, Wait,
    clock::VirtualClock,
    engine::{self, Options},
    listing::{self, Stat},
    testing::{Device, Memory, Simulated},
};
use proptest::prelude::*;

/// The last is for listings.
const SLOTS: u32 = 6;
const OWN: Slot = Slot(SLOTS - 1);
const SIZE: usize = 4096;

/// An operation to be made twice.
#[derive(Debug, Clone)]
struct Plan {
    kind: OpKind,
    file: u32,
    dir: u32,
    offset: u64,
    length: u32,
    name: &'static str,
    second: &'static str,
    fill: u8,
}

impl Plan {
    fn operation(&self) -> Operation {
        let mut buffer = Arena::shared_out(1, SIZE).1.remove(0);
        let mut operation = match self.kind {
            OpKind::Write => {
                buffer.fill(self.fill);
                Operation::write(Slot(self.file), self.offset, self.length, buffer)
            }
            OpKind::Read => Operation::read(Slot(self.file), self.offset, self.length, buffer),
            kind if is_named(kind) => {
                Operation::named(kind, Slot(self.dir), Slot(self.file), self.name.as_bytes(), buffer)
            }
            kind => Operation::on(kind, Slot(self.file), buffer),
        };
        if self.kind == OpKind::Rename {
            let start = self.name.len() + 1;
            operation.buffer[start..start + self.second.len()].copy_from_slice(self.second.as_bytes());
        }
        operation.offset = self.offset;
        operation
    }
}

fn is_named(kind: OpKind) -> bool {
    use OpKind::{MakeDir, OpenDir, RemoveDir, Rename, Stat, Unlink};
    matches!(kind, Rename | OpenDir | Stat | Unlink | RemoveDir | MakeDir | OpKind::Open(_))
}

fn kinds() -> impl Strategy<Value = OpKind> {
    let more = [
        OpKind::Open(Open::CREATE),
        OpKind::Open(Open::CREATE),
        OpKind::Open(Open::WRITE),
        OpKind::Open(Open::READ_WRITE),
        OpKind::Open(Open::SHARED),
        OpKind::MakeDir,
        OpKind::OpenDir,
        OpKind::Rename,
        OpKind::Write,
    ];
    prop::sample::select([&OpKind::ALL[..], &more].concat())
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "a", "b", "b", "c", ".", "..", "a/b", "", LONG])
}

const LONG: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    "01234567890123456789012345678901234567890123456789012345678901234567890123456789"
);

fn offsets() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..9000_u64, 1 => Just(0), 1 => Just(1 << 62), 1 => Just(u64::MAX), 1 => 60_000..70_000_u64]
}

fn plans() -> impl Strategy<Value = Plan> {
    (kinds(), 0..=SLOTS, 0..SLOTS - 1, offsets(), 0..=SIZE as u32, names(), names(), any::<u8>()).prop_map(
        |(kind, file, dir, offset, length, name, second, fill)| {
            // Half of the names are looked up in the run's directory; opens go into slots that there are.
            let dir = if fill % 2 == 0 { 0 } else { dir };
            let file = match kind {
                OpKind::Open(_) | OpKind::OpenDir => 1 + file % (SLOTS - 2),
                OpKind::Rename if fill % 3 > 0 => 0,
                _ => file,
            };
            Plan { kind, file, dir, offset, length, name, second, fill }
        },
    )
}

fn carry_out(engine: &mut dyn Engine, operation: Operation) -> Completion {
    engine.submit(operation, engine.now());
    let mut done = Vec::new();
    engine.reap(Wait::ForOne, &mut done);
    done.pop().expect("one completion for one operation")
}

/// What an operation shows: its result, and what came in the buffer.
fn shown(completion: &Completion) -> (Result<u32, i32>, Vec<u8>) {
    let Completion { operation, result, .. } = completion;
    let moved = result.map_or(0, |moved| moved as usize);
    match operation.kind {
        // What a listing shows of later changes is the file system's own: see `listed`.
        OpKind::List => (result.map(|_| 0).map_err(|errno| errno.0), Vec::new()),
        OpKind::Stat if moved > 0 => {
            let stat = Stat::take(&operation.buffer);
            let size = if stat.directory { 0 } else { stat.size };
            (Ok(u32::from(stat.directory)), size.to_le_bytes().to_vec())
        }
        OpKind::Read => (result.map_err(|errno| errno.0), operation.buffer[..moved].to_vec()),
        _ => (result.map_err(|errno| errno.0), Vec::new()),
    }
}

/// The names in the directory of a slot, in order, by a listing of its own in parts.
fn listed(engine: &mut dyn Engine, dir: u32, own: Slot) -> Result<Vec<Vec<u8>>, i32> {
    let buffer = || Arena::shared_out(1, 64).1.remove(0);
    let open = Operation::named(OpKind::OpenDir, Slot(dir), own, b".", buffer());
    carry_out(engine, open).result.map_err(|errno| errno.0)?;
    let mut names = Vec::new();
    loop {
        // Room for two or three of the short names, or for the long one alone.
        let list = Operation::on(OpKind::List, own, Arena::shared_out(1, 304).1.remove(0));
        let list = carry_out(engine, list);
        let filled = list.result.map_err(|errno| errno.0)? as usize;
        names.extend(
            listing::entries(&list.operation.buffer[..filled]).map(|(name, kind)| [&[kind], name].concat()),
        );
        if filled == 0 {
            names.sort();
            return Ok(names);
        }
    }
}

fn options() -> Options {
    Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() }
}

fn compare(plans: &[Plan], model: &mut dyn Engine) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let root = OwnedFd::from(std::fs::File::open(directory.path()).expect("it can be opened"));
    let mut real = engine::on_directory(root, &options()).expect("sync works everywhere");
    for (step, plan) in plans.iter().enumerate() {
        let done_real = carry_out(real.as_mut(), plan.operation());
        let done_model = carry_out(model, plan.operation());
        prop_assert_eq!(shown(&done_real), shown(&done_model), "step {}: {:?}", step, plan);
        if plan.kind == OpKind::List {
            let (real, model) = (listed(real.as_mut(), plan.dir, OWN), listed(model, plan.dir, OWN));
            prop_assert_eq!(real, model, "names at step {}: {:?}", step, plan);
        }
    }
    Ok(())
}

/// What is below the directory in a slot: names, and contents where there are any. Synced on the way, if so wanted.
fn walk(engine: &mut dyn Engine, dir: u32, sync: bool) -> Vec<String> {
    let mut all = Vec::new();
    let below = Slot(dir + 1);
    for entry in listed(engine, dir, below).expect("an open directory can be listed") {
        let (kind, name) = entry.split_first().expect("a type comes before the name");
        let mut take =
            |kind, buffer| carry_out(engine, Operation::named(kind, Slot(dir), below, name, buffer));
        if *kind == listing::DIRECTORY {
            take(OpKind::OpenDir, Buffer::alone(4096)).result.expect("a directory opens");
            all.push(format!("{name:?}: {:?}", walk(engine, dir + 1, sync)));
        } else {
            take(OpKind::Open(Open::READ), Buffer::alone(4096)).result.expect("a file opens");
            let read = carry_out(engine, Operation::read(below, 0, 1 << 17, Buffer::alone(1 << 17)));
            let length = read.result.expect("a file can be read") as usize;
            all.push(format!("{name:?}: {:?}", &read.operation.buffer[..length]));
            if sync {
                carry_out(engine, Operation::on(OpKind::Sync, below, read.operation.buffer))
                    .result
                    .expect("synced");
            }
        }
    }
    if sync {
        carry_out(engine, Operation::on(OpKind::Sync, Slot(dir), Buffer::empty())).result.expect("synced");
    }
    all
}

/// Any history may be cut short by a crash; once all is synced, nothing is lost by one.
fn survives_when_synced(target: &Simulated, seed: Seed) {
    let cut = target.copy(VirtualClock::default());
    cut.crash(seed);
    walk(&mut cut.attach(1, 60), 0, false);
    let before = walk(&mut target.attach(1, 60), 0, true);
    target.crash(seed);
    assert_eq!(
        walk(&mut target.attach(1, 60), 0, false),
        before,
        "a crash after a sync of all changed something"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_tree_answers_as_a_real_directory(plans in prop::collection::vec(plans(), 1..120)) {
        let mut memory = Memory::new(Bytes(1 << 40)).engine(&options()).expect("memory works everywhere");
        compare(&plans, memory.as_mut())?;
    }

    #[test]
    fn so_it_does_with_a_volatile_cache(plans in prop::collection::vec(plans(), 1..120), seed: u64) {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        compare(&plans, &mut target.attach(1, SLOTS))?;
        survives_when_synced(&target, Seed(seed));
    }
}
