//! Tests of the simulated target's promises.

use std::collections::BTreeSet;

use nilometer_model::{Nanos, Seed};

use super::*;
use crate::{
    Buffer, Completion, Wait,
    listing::{self, Stat},
    operation::{Errno, OpKind, Open, Operation, ROOT, Slot},
};

const FILE: Slot = Slot(1);

fn system() -> Simulated {
    Simulated::new(Device::default(), VirtualClock::default())
}

fn carry_out(engine: &mut dyn Engine, operation: Operation) -> Completion {
    engine.submit(operation, engine.now());
    let mut done = Vec::new();
    engine.reap(Wait::ForOne, &mut done);
    done.pop().expect("one completion for one operation")
}

fn named(kind: OpKind, dir: Slot, file: Slot, name: &str) -> Operation {
    Operation::named(kind, dir, file, name.as_bytes(), Buffer::alone(64))
}

fn rename(from: &str, to: &str) -> Operation {
    let mut operation = named(OpKind::Rename, ROOT, ROOT, from);
    let start = from.len() + 1;
    operation.buffer[start..start + to.len()].copy_from_slice(to.as_bytes());
    operation
}

fn filled(offset: u64, bytes: &[u8]) -> Operation {
    let mut buffer = Buffer::alone(bytes.len());
    buffer.copy_from_slice(bytes);
    Operation::write(FILE, offset, bytes.len() as u32, buffer)
}

fn ok(engine: &mut dyn Engine, operation: Operation) {
    carry_out(engine, operation).result.expect("nothing fails here");
}

fn sync(engine: &mut dyn Engine, slot: Slot) {
    ok(engine, Operation::on(OpKind::Sync, slot, Buffer::empty()));
}

/// Returns the content of a file, if its name exists.
fn content(target: &Simulated, name: &str) -> Option<Vec<u8>> {
    let mut engine = target.attach(1, 3);
    let stat = carry_out(&mut engine, named(OpKind::Stat, ROOT, ROOT, name));
    stat.result.ok()?;
    let size = Stat::take(&stat.operation.buffer).size as usize;
    ok(&mut engine, named(OpKind::Open(Open::READ), ROOT, FILE, name));
    let read = Operation::read(FILE, 0, size as u32, Buffer::alone(size.max(1)));
    let read = carry_out(&mut engine, read);
    assert_eq!(read.result, Ok(size as u32));
    Some(read.operation.buffer[..size].to_vec())
}

fn names(target: &Simulated) -> BTreeSet<String> {
    let mut engine = target.attach(1, 3);
    let list = carry_out(&mut engine, Operation::on(OpKind::List, ROOT, Buffer::alone(4096)));
    let filled = list.result.expect("the run's directory can be listed") as usize;
    listing::entries(&list.operation.buffer[..filled])
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Returns the results of `seeds` crashes after the same history.
fn crashes<T>(target: &Simulated, seeds: u64, look: impl Fn(&Simulated) -> T) -> Vec<T> {
    (0..seeds)
        .map(|seed| {
            let copy = target.copy(VirtualClock::default());
            copy.crash(Seed(seed));
            look(&copy)
        })
        .collect()
}

#[test]
fn what_is_synced_is_never_lost_and_what_is_not_may_be() {
    let target = system();
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    ok(&mut engine, filled(0, &[1; 3000]));
    sync(&mut engine, FILE);
    sync(&mut engine, ROOT);
    ok(&mut engine, filled(3000, &[2; 3000]));
    let (mut sizes, mut wholes) = (BTreeSet::new(), 0);
    for data in crashes(&target, 2000, |target| content(target, "f").expect("its name is safe")) {
        assert_eq!(data[..3000], [1; 3000], "synced data was lost");
        wholes += u32::from(data[3000..] == [2; 3000]);
        sizes.insert(data.len());
    }
    assert!(wholes > 100 && wholes < 1900, "{wholes} of 2000 kept the write that was not synced");
    assert!(sizes.contains(&3000) && sizes.contains(&6000), "it is also lost: {sizes:?}");
    assert!(sizes.iter().any(|size| !matches!(size, 3000 | 6000)), "it is also torn: {sizes:?}");
    assert!(sizes.iter().all(|size| matches!(size, 3000 | 6000) || size % 512 == 0), "at sectors: {sizes:?}");
}

#[test]
fn a_name_is_not_safe_because_its_file_is() {
    let target = system();
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    ok(&mut engine, filled(0, b"data"));
    let unsynced = crashes(&target, 200, |target| content(target, "f"));
    for state in [None, Some(Vec::new()), Some(b"data".to_vec())] {
        assert!(unsynced.contains(&state), "{state:?} never came out");
    }
    sync(&mut engine, FILE);
    let half = crashes(&target, 200, |target| content(target, "f"));
    assert!(half.contains(&None) && half.contains(&Some(b"data".to_vec())));
    assert!(!half.contains(&Some(Vec::new())), "its data is safe whether its name is or not");
}

#[test]
fn a_sync_covers_what_was_done_before_it_was_issued() {
    let device = Device {
        write: Cost::fixed(Nanos(10)),
        sync: Cost::fixed(Nanos(1000)),
        parallel: 2,
        ..Device::default()
    };
    let target = Simulated::new(device, VirtualClock::default());
    let mut engine = target.attach(2, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    sync(&mut engine, ROOT);
    engine.submit(Operation::on(OpKind::Sync, FILE, Buffer::empty()), engine.now());
    engine.submit(filled(0, b"late"), engine.now());
    let mut done = Vec::new();
    while done.len() < 2 {
        engine.reap(Wait::ForOne, &mut done);
    }
    let lost = crashes(&target, 100, |target| content(target, "f"));
    assert!(lost.contains(&Some(Vec::new())), "the write was not yet done when the sync was issued");
}

#[test]
fn a_rename_replaces_at_once_or_not_at_all() {
    let target = system();
    let mut engine = target.attach(1, 3);
    for (name, bytes) in [("old", b"1"), ("new", b"2")] {
        ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, name));
        ok(&mut engine, filled(0, bytes));
        sync(&mut engine, FILE);
    }
    sync(&mut engine, ROOT);
    ok(&mut engine, rename("new", "old"));
    let states = crashes(&target, 200, |target| (content(target, "old"), content(target, "new")));
    let (before, after) = ((Some(b"1".to_vec()), Some(b"2".to_vec())), (Some(b"2".to_vec()), None));
    assert!(states.iter().all(|state| *state == before || *state == after));
    assert!(states.contains(&before) && states.contains(&after));
    sync(&mut engine, ROOT);
    assert!(crashes(&target, 200, names).iter().all(|names| names.len() == 1));
}

#[test]
fn what_was_not_removed_does_not_vanish() {
    let target = system();
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "journal"));
    ok(&mut engine, filled(0, b"first"));
    sync(&mut engine, FILE);
    sync(&mut engine, ROOT);
    ok(&mut engine, rename("journal", "journal.old"));
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "journal"));
    let first = Some(b"first".to_vec());
    for (new, old) in
        crashes(&target, 500, |target| (content(target, "journal"), content(target, "journal.old")))
    {
        assert!(new == first || old == first, "a file that nobody removed is gone");
    }
}

#[test]
fn the_death_of_a_process_loses_nothing_that_was_done() {
    let device = Device { write: Cost::fixed(Nanos(10)), ..Device::default() };
    let target = Simulated::new(device, VirtualClock::default());
    let mut engine = target.attach(4, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    ok(&mut engine, filled(0, b"done"));
    engine.submit(filled(4, b"begun"), engine.now());
    engine.submit(filled(9, b"queued"), engine.now());
    target.kill();
    let mut done = Vec::new();
    engine.reap(Wait::Poll, &mut done);
    assert_eq!(done.iter().map(|c| c.result).collect::<Vec<_>>(), [Err(Errno::EIO); 2]);
    assert_eq!(content(&target, "f").as_deref(), Some(&b"donebegun"[..]));
    assert_eq!(carry_out(&mut engine, named(OpKind::Stat, ROOT, ROOT, "f")).result, Err(Errno::EIO));
}

#[test]
fn what_is_in_flight_at_a_crash_may_be_kept_lost_or_torn() {
    let seen: BTreeSet<_> = (0..300)
        .map(|seed| {
            let device = Device { write: Cost::fixed(Nanos(10)), ..Device::default() };
            let target = Simulated::new(device, VirtualClock::default());
            let mut engine = target.attach(4, 3);
            ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
            sync(&mut engine, ROOT);
            engine.submit(filled(0, &[1; 1024]), engine.now());
            target.crash(Seed(seed));
            content(&target, "f").map(|data| (data.len(), data.first().copied()))
        })
        .collect();
    let expected = [(0, None), (512, Some(1)), (1024, Some(0)), (1024, Some(1))].map(Some);
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn the_same_seed_loses_the_same() {
    let target = system();
    let mut engine = target.attach(1, 3);
    for number in 0..20 {
        ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, &format!("{number}")));
        ok(&mut engine, filled(0, &[number; 700]));
    }
    let look =
        |target: &Simulated| names(target).iter().map(|name| content(target, name)).collect::<Vec<_>>();
    let first = crashes(&target, 50, look);
    assert!(first == crashes(&target, 50, look));
    assert!(first.iter().any(|state| *state != first[0]));
}

#[test]
fn a_device_dies_and_fills_up() {
    let device =
        Device { dead_from: Nanos(1000), capacity: 1024, ..Device::with_cost(Cost::fixed(Nanos(100))) };
    let target = Simulated::new(device, VirtualClock::default());
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    ok(&mut engine, filled(0, &[1; 1024]));
    assert_eq!(target.space().expect("it answers").free, Bytes(0));
    let results: Vec<_> =
        (0..10).map(|_| carry_out(&mut engine, filled(1024, &[1])).result.expect_err("it is full")).collect();
    assert_eq!(results, [[Errno::ENOSPC; 7].as_slice(), &[Errno::EIO; 3]].concat());
}

#[test]
fn a_hollow_device_takes_more_than_memory_holds() {
    let device = Device { hollow: true, capacity: 1 << 50, ..Device::default() };
    let target = Simulated::new(device, VirtualClock::default());
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    let mut buffer = Buffer::alone(1 << 20);
    for number in 0..1 << 14 {
        let write = carry_out(&mut engine, Operation::write(FILE, number << 20, 1 << 20, buffer));
        assert_eq!(write.result, Ok(1 << 20));
        buffer = write.operation.buffer;
    }
    assert_eq!(target.space().expect("it answers").free, Bytes((1 << 50) - (1 << 34)));
    let stat = carry_out(&mut engine, named(OpKind::Stat, ROOT, ROOT, "f"));
    assert_eq!(Stat::take(&stat.operation.buffer).size, 1 << 34);
    target.crash(Seed(1));
    assert_eq!(names(&target), BTreeSet::from(["f".to_owned()]));
}

#[test]
fn a_page_cache_takes_writes_at_once_until_it_is_full_and_a_sync_waits_for_it() {
    let write = Cost { base: Nanos(0), picoseconds_per_byte: 1000 };
    let target =
        Simulated::new(Device { write, page_cache: 250, ..Device::default() }, VirtualClock::default());
    let mut engine = target.attach(1, 3);
    ok(&mut engine, named(OpKind::Open(Open::CREATE), ROOT, FILE, "f"));
    let finished =
        [0, 100, 200, 300].map(|offset| carry_out(&mut engine, filled(offset, &[1; 100])).finished);
    // Of 300 bytes, 50 have to reach the device first. Then the cache is full, and each write takes as long
    // as the device.
    assert_eq!(finished, [0, 0, 50, 150].map(Nanos));
    let sync = carry_out(&mut engine, Operation::on(OpKind::Sync, FILE, Buffer::empty()));
    assert_eq!(sync.finished, Nanos(400));
}
