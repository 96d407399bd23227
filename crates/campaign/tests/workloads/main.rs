//! Every workload passes the public conformance suite, and does what it is for.

mod build;
mod copied_tree;
mod copy;
mod crew;
mod frames;
mod place;
mod published;
mod random;
mod small_writes;
mod stonewall;
mod stream;
mod tree;
mod unpack;
mod wait;
mod walk;

use nilometer_campaign::workload::{WorkerPart, WorkerPlace, build};
use nilometer_model::{Phase, Seed};
use nilometer_plan::WorkloadCell;
use nilometer_storage::{
    Buffer, Completion, Drive, Engine, OpKind, Open, Operation, ROOT, Slot, Wait, Workload,
    testing::conformance::Demands,
};

/// A worker's part in a phase, with its memory.
fn part(buffers: Vec<Buffer>) -> WorkerPart {
    WorkerPart::new(WorkerPlace::alone(0, 1), Seed(3), buffers)
}

/// The least of a workload with one buffer.
fn demands(bytes: usize, slots: u32) -> Demands {
    Demands { buffers: 1, bytes, slots }
}

/// Runs a workload to its end.
fn run(workload: &mut dyn Workload, engine: &mut dyn Engine) {
    Drive::new(workload, engine).run(|completion| assert!(completion.result.is_ok(), "{completion:?}"));
}

/// Runs one phase of a cell's first worker to its end.
fn run_phase(engine: &mut dyn Engine, cell: &WorkloadCell, phase: Phase) {
    run(build(cell, phase, part(buffers(2))).as_mut(), engine);
}

/// Random bytes, a MiB each, none like another.
fn buffers(count: u64) -> Vec<Buffer> {
    let fill = |number| {
        let mut buffer = Buffer::alone(1 << 20);
        Seed(number).stream().fill(&mut buffer);
        buffer
    };
    (0..count).map(fill).collect()
}

/// Everything that is done to the end, in the order of its completion: kind, offset, length. Nothing fails.
fn watched(workload: &mut dyn Workload, engine: &mut dyn Engine) -> Vec<(OpKind, u64, u32)> {
    let mut done = Vec::new();
    Drive::new(workload, engine).run(|completion| {
        assert!(completion.result.is_ok(), "{completion:?}");
        let Operation { kind, offset, length, .. } = completion.operation;
        done.push((kind, offset, length));
    });
    done
}

/// The offsets of all operations of this kind.
fn offsets(done: &[(OpKind, u64, u32)], of: OpKind) -> Vec<u64> {
    done.iter().filter(|(kind, ..)| *kind == of).map(|(_, offset, _)| *offset).collect()
}

/// A whole file.
fn content(engine: &mut dyn Engine, name: &str, size: usize) -> Vec<u8> {
    let open = Operation::named(OpKind::Open(Open::READ), ROOT, Slot(1), name.as_bytes(), Buffer::alone(64));
    let mut content = Vec::new();
    let read = Operation::read(Slot(1), 0, size as u32 + 1, Buffer::alone(size + 1));
    for operation in [open, read, Operation::on(OpKind::Close, Slot(1), Buffer::empty())] {
        let mut done = Vec::new();
        engine.submit(operation, engine.now());
        engine.reap(Wait::ForOne, &mut done);
        let Completion { operation, result, .. } = done.pop().expect("it is done");
        let moved = result.expect(name) as usize;
        content.extend_from_slice(&operation.buffer[..moved]);
    }
    content
}
