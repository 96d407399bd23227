//! `wait`: times come, and nothing is asked.

use nilometer_campaign::workload::{WorkerPart, build};
use nilometer_model::{Nanos, Phase};
use nilometer_plan::{WaitCell, WorkloadCell};
use nilometer_storage::{
    Drive, OpKind,
    clock::VirtualClock,
    testing::conformance::workload_suite,
    testing::{Cost, Device, Simulated},
};

use crate::{demands, part};

const DURATION: Nanos = Nanos::from_millis(100);

fn cell(operations: u64) -> WorkloadCell {
    WorkloadCell::Wait(WaitCell { duration: DURATION, operations })
}

#[test]
fn it_passes_the_suite() {
    workload_suite(demands(512, 1), &|_| {}, &mut |buffers| build(&cell(20), Phase::Wait, part(buffers)));
}

/// When each time came, on a storage that takes a second for whatever it is asked.
fn times(depth: usize, stop_at: Nanos) -> Vec<Nanos> {
    let device = Device::with_cost(Cost::fixed(Nanos::from_millis(1000)));
    let target = Simulated::new(device, VirtualClock::default());
    let part = WorkerPart { stop_at, ..part(Vec::new()) };
    let mut workload = build(&cell(4), Phase::Wait, part);
    let mut engine = target.attach(depth, 1);
    let mut times = Vec::new();
    Drive::new(workload.as_mut(), &mut engine).run(|completion| {
        assert_eq!((completion.operation.kind, completion.result), (OpKind::Nop, Ok(0)));
        assert_eq!((completion.due, completion.issued), (completion.finished, completion.finished));
        times.push(completion.finished);
    });
    times
}

#[test]
fn each_time_counts_when_it_comes_and_the_storage_has_no_part_in_it() {
    let at = |count: u64| Nanos(count * DURATION.0);
    for depth in [1, 4] {
        assert_eq!(times(depth, Nanos::MAX), [at(1), at(2), at(3), at(4)]);
        assert_eq!(times(depth, at(2) + Nanos(1)), [at(1), at(2)], "the time is up before the third");
    }
}
