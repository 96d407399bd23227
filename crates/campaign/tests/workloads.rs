//! Every workload passes the public conformance suite, and does what it is for.

use nilometer_campaign::workload::{Direction, MakeTree, Order, Part, Transfer, Walk, build};
use nilometer_model::{
    Bytes, Nanos, Seed,
    plan::{
        Access, Coverage, DataSource, FileLayout, Mode, Phase, RandomCell, StreamCell, SyncPolicy, WalkCell,
        WorkloadCell,
    },
};
use nilometer_storage::{
    Arena, Buffer, Drive, Engine, OpKind, Workload,
    clock::VirtualClock,
    conformance::{Demands, workload_suite},
    target::{Cost, Device, Simulated},
};

const TREE: WalkCell = WalkCell { levels: 2, branching: 3, files: 7 };
const FILE: Bytes = Bytes(20 * 1000);

fn part(buffers: Vec<Buffer>) -> Part {
    Part { worker: 0, workers: 1, seed: Seed(3), direct: false, stop_at: Nanos::MAX, buffers }
}

fn stream() -> WorkloadCell {
    WorkloadCell::Stream(StreamCell {
        file_size: FILE,
        block_size: Bytes(1000),
        access: Access::Buffered,
        sync: SyncPolicy::Close,
        files: 1,
        layout: FileLayout::Own,
        preallocate: false,
        source: DataSource::Memory,
        read_back: true,
    })
}

fn random() -> WorkloadCell {
    WorkloadCell::Random(RandomCell {
        file_size: FILE,
        block_size: Bytes(500),
        access: Access::Buffered,
        operations: 60,
        mode: Mode::Read,
        reads: 50,
        coverage: Coverage::Uniform,
    })
}

/// Runs a workload to its end.
fn run(workload: &mut dyn Workload, engine: &mut dyn Engine) {
    Drive::new(workload, engine).run(|completion| assert!(completion.result.is_ok(), "{completion:?}"));
}

fn written(engine: &mut dyn Engine, cell: &WorkloadCell) {
    run(build(cell, cell.parameters().phases()[0], part(vec![Buffer::alone(1 << 20)])).as_mut(), engine);
}

#[test]
fn all_pass_the_suite() {
    let demands = |bytes, slots| Demands { buffers: 1, bytes, slots };
    for cell in [stream(), random()] {
        let first = cell.parameters().phases()[0];
        workload_suite(demands(1 << 20, 2), &|_| {}, &mut |buffers| build(&cell, first, part(buffers)));
        workload_suite(demands(1000, 2), &|engine| written(engine, &cell), &mut |buffers| {
            build(&cell, Phase::Read, part(buffers))
        });
    }
    let tree = WorkloadCell::Walk(TREE);
    workload_suite(demands(512, 5), &|_| {}, &mut |buffers| build(&tree, Phase::LayOut, part(buffers)));
    for slots in [2, 4, 64] {
        workload_suite(demands(300, slots), &|engine| written(engine, &tree), &mut |buffers| {
            Box::new(Walk::new("n_w0", slots, Nanos::MAX, buffers))
        });
    }
}

#[test]
fn a_walk_finds_all_that_was_made_at_any_depth() {
    for depth in [1, 2, 7, 32] {
        let device = Device { parallel: 4, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
        let target = Simulated::new(device, VirtualClock::default());
        let mut engine = target.attach(depth, 64);
        run(&mut MakeTree::new("n_w0", &TREE, vec![Buffer::alone(512)]), &mut engine);
        let (_, buffers) = Arena::shared_out(depth, 300);
        let mut walk = Walk::new("n_w0", 64, Nanos::MAX, buffers);
        run(&mut walk, &mut engine);
        let found = walk.found();
        assert_eq!((found.files, found.directories, found.errors), (TREE.all_files(), TREE.directories(), 0));
    }
}

#[test]
fn a_walk_that_runs_out_of_slots_says_what_it_gave_up() {
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let mut engine = target.attach(1, 64);
    run(&mut MakeTree::new("n_w0", &TREE, vec![Buffer::alone(512)]), &mut engine);
    // Room for the first level only: its three directories can't be entered.
    let mut walk = Walk::new("n_w0", 2, Nanos::MAX, vec![Buffer::alone(512)]);
    run(&mut walk, &mut engine);
    let found = walk.found();
    assert_eq!((found.files, found.directories, found.errors), (7, 1, 3));
}

#[test]
fn a_time_limit_ends_a_transfer_which_still_syncs_and_closes() {
    let device = Device { write: Cost::fixed(Nanos(1000)), ..Device::default() };
    let target = Simulated::new(device, VirtualClock::default());
    let order = Order::Sequential { size: FILE, block: Bytes(1000) };
    let limited = Part { stop_at: Nanos(5500), ..part(vec![Buffer::alone(1000)]) };
    let mut transfer = Transfer::new("n_w0", order, Direction::Write { sync: true }, limited);
    let mut done = Vec::new();
    Drive::new(&mut transfer, &mut target.attach(1, 2))
        .run(|completion| done.push(completion.operation.kind));
    assert_eq!(done.iter().filter(|kind| **kind == OpKind::Write).count(), 6);
    assert_eq!(done[done.len() - 2..], [OpKind::Sync, OpKind::Close]);
}

#[test]
fn random_reads_stay_inside_and_are_the_same_again() {
    let offsets = || {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        let mut engine = target.attach(1, 2);
        written(&mut engine, &random());
        let mut offsets = Vec::new();
        let mut read = build(&random(), Phase::Read, part(vec![Buffer::alone(512)]));
        Drive::new(read.as_mut(), &mut engine).run(|completion| {
            if completion.operation.kind == OpKind::Read {
                assert_eq!(completion.result, Ok(500), "a block is whole");
                offsets.push(completion.operation.offset);
            }
        });
        offsets
    };
    let first = offsets();
    assert_eq!((first.len(), first.iter().all(|offset| offset % 500 == 0)), (60, true));
    assert_eq!(first, offsets());
}
