//! The same bytes by this client and by `xrdcp`, `XRootD`'s own program for copies: what one puts the other gets.

use std::{fs, process::Command};

use nilometer_model::EngineKind;
use nilometer_storage::{
    Buffer, Clock, Engine, OpKind, Open, Operation, ROOT, Slot, Wait, engine::Options, target::run_id,
};
use nilometer_tests::{Testbed, tool};

use crate::by_url::{Server, again_inside};

const FILE: Slot = Slot(1);
const BLOCK: usize = 1 << 20;
/// Bytes of a file: no whole number of blocks.
const SIZE: usize = 9 * BLOCK + 12_345;

#[test]
fn xrdcp_gets_what_was_written_and_what_it_puts_is_read() {
    if let Some(server) = Server::here() {
        return both_ways(&server);
    }
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    if tool("xrdcp").is_some() {
        again_inside(
            &testbed,
            "copies::xrdcp_gets_what_was_written_and_what_it_puts_is_read",
            &testbed.url("xrootd"),
        );
    }
}

fn both_ways(server: &Server) {
    let description = nilometer_remote::describe(&server.0).expect("the server runs");
    let id = run_id().0;
    let target = nilometer_remote::open(&description, id, None).expect("a run directory");
    let run = nilometer_remote::run_handle(&description, id).expect("a URL has one");
    let options = Options { kind: EngineKind::Pool, depth: 4, slots: 2, clock: Clock::start() };
    let mut engine = target.engine(&options).expect("the server runs");
    let place = tempfile::tempdir().expect("a temporary directory");
    let [ours, theirs] = ["ours", "theirs"].map(|name| place.path().join(name));
    let mut bytes = vec![0; SIZE];
    nilometer_model::Seed(7).stream().fill(&mut bytes);

    write(engine.as_mut(), b"n_ours", &bytes);
    copied(&format!("{}/n_ours", run.0), ours.to_str().expect("plain letters"));
    assert!(fs::read(&ours).expect("a copy") == bytes, "xrdcp got other bytes");
    bytes.reverse();
    fs::write(&theirs, &bytes).expect("room");
    copied(theirs.to_str().expect("plain letters"), &format!("{}/n_theirs", run.0));
    assert!(read(engine.as_mut(), b"n_theirs") == bytes, "xrdcp put other bytes");
    drop(engine);
    target.remove().expect("nothing else is in it");
}

fn copied(from: &str, to: &str) {
    let output = Command::new("xrdcp").args(["--nopbar", "--silent", from, to]).output().expect("it starts");
    assert!(output.status.success(), "{from} -> {to}: {output:?}");
}

/// The operations, as many in flight as may be: how many bytes each moved, and their buffers, in order.
fn run(engine: &mut dyn Engine, operations: Vec<Operation>) -> Vec<Operation> {
    let depth = engine.depth();
    let mut waiting = operations.into_iter();
    let mut flying = 0;
    let mut done = Vec::new();
    loop {
        for operation in waiting.by_ref().take(depth - flying) {
            let now = engine.tick();
            engine.submit(operation, now);
            flying += 1;
        }
        if flying == 0 {
            break;
        }
        let before = done.len();
        engine.reap(Wait::ForOne, &mut done);
        flying -= done.len() - before;
    }
    let mut operations: Vec<_> = done
        .into_iter()
        .map(|completion| {
            let kind = completion.operation.kind;
            assert!(completion.result.is_ok(), "{kind:?}: {:?}", completion.result);
            completion.operation
        })
        .collect();
    operations.sort_by_key(|operation| operation.offset);
    operations
}

fn named(kind: OpKind, name: &[u8]) -> Vec<Operation> {
    vec![Operation::named(kind, ROOT, FILE, name, Buffer::alone(64))]
}

fn write(engine: &mut dyn Engine, name: &[u8], bytes: &[u8]) {
    run(engine, named(OpKind::Open(Open::CREATE), name));
    run(engine, (0..bytes.len().div_ceil(BLOCK)).map(|number| block_of(bytes, number)).collect());
    run(engine, vec![Operation::on(OpKind::Sync, FILE, Buffer::alone(1))]);
    run(engine, vec![Operation::on(OpKind::Close, FILE, Buffer::alone(1))]);
}

/// The write of the block of this number.
fn block_of(bytes: &[u8], number: usize) -> Operation {
    let block = &bytes[number * BLOCK..bytes.len().min((number + 1) * BLOCK)];
    let mut buffer = Buffer::alone(block.len());
    buffer[..block.len()].copy_from_slice(block);
    Operation::write(FILE, (number * BLOCK) as u64, block.len() as u32, buffer)
}

fn read(engine: &mut dyn Engine, name: &[u8]) -> Vec<u8> {
    run(engine, named(OpKind::Open(Open::READ), name));
    let asked = |number: usize| {
        let length = BLOCK.min(SIZE - number * BLOCK);
        Operation::read(FILE, (number * BLOCK) as u64, length as u32, Buffer::alone(length))
    };
    let blocks = run(engine, (0..SIZE.div_ceil(BLOCK)).map(asked).collect());
    let bytes = blocks.iter().flat_map(|read| read.buffer[..read.length as usize].iter().copied()).collect();
    run(engine, vec![Operation::on(OpKind::Close, FILE, Buffer::alone(1))]);
    bytes
}
