//! `random`.

use nilometer_campaign::workload::build;
use nilometer_model::{
    Bytes,
    plan::{Access, Coverage, Mode, Phase, RandomCell, WorkloadCell},
};
use nilometer_storage::{
    Buffer, Drive, OpKind,
    clock::VirtualClock,
    conformance::workload_suite,
    target::{Device, Simulated},
};

use crate::{demands, part, run_phase};

fn random() -> WorkloadCell {
    WorkloadCell::Random(RandomCell {
        file_size: Bytes(20 * 1000),
        block_size: Bytes(500),
        access: Access::Buffered,
        operations: 60,
        mode: Mode::Read,
        reads: 50,
        coverage: Coverage::Uniform,
    })
}

#[test]
fn all_phases_pass_the_suite() {
    let cell = random();
    workload_suite(demands(1 << 20, 2), &|_| {}, &mut |buffers| build(&cell, Phase::LayOut, part(buffers)));
    let written = |engine: &mut dyn nilometer_storage::Engine| run_phase(engine, &cell, Phase::LayOut);
    workload_suite(demands(1000, 2), &written, &mut |buffers| build(&cell, Phase::Read, part(buffers)));
}

#[test]
fn random_reads_stay_inside_and_are_the_same_again() {
    let offsets = || {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        let mut engine = target.attach(1, 2);
        run_phase(&mut engine, &random(), Phase::LayOut);
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
