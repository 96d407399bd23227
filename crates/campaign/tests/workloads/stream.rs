//! `stream`.

use nilometer_campaign::workload::{Direction, Order, Part, Transfer, build};
use nilometer_model::{
    Bytes, Nanos,
    plan::{Access, DataSource, FileLayout, Phase, StreamCell, SyncPolicy, WorkloadCell},
};
use nilometer_storage::{
    Buffer, Drive, OpKind,
    clock::VirtualClock,
    conformance::workload_suite,
    target::{Cost, Device, Simulated},
};

use crate::{demands, part, run_phase};

const FILE: Bytes = Bytes(20 * 1000);

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

#[test]
fn all_phases_pass_the_suite() {
    let cell = stream();
    workload_suite(demands(1 << 20, 2), &|_| {}, &mut |buffers| build(&cell, Phase::Write, part(buffers)));
    let written = |engine: &mut dyn nilometer_storage::Engine| run_phase(engine, &cell, Phase::Write);
    workload_suite(demands(1000, 2), &written, &mut |buffers| build(&cell, Phase::Read, part(buffers)));
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
