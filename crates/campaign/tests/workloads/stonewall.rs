//! The stonewall, and what it leaves of the workloads behind it.

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_campaign::workload::{Stonewall, WorkerPart, WorkerPlace, build};
use nilometer_model::{Bytes, Nanos, Phase};
use nilometer_plan::{FramesCell, StreamCell, WorkloadCell};
use nilometer_storage::{
    Drive, OpKind, Workload,
    clock::VirtualClock,
    interleave,
    testing::conformance::workload_suite,
    testing::{Cost, Device, Simulated},
};

use crate::{buffers, demands, frames::CELL as FRAMES, part, stream::PLAIN};

fn cell(blocks: u64) -> WorkloadCell {
    WorkloadCell::Stream(StreamCell { file_size: Bytes(blocks * 1000), ..PLAIN })
}

#[test]
fn it_passes_the_suite() {
    for raised in [false, true] {
        workload_suite(demands(1000, 2), &|_| {}, &mut |buffers| {
            let inner = build(&cell(20), Phase::Write, part(buffers));
            Box::new(Stonewall::new(inner, Arc::new(AtomicBool::new(raised))))
        });
    }
}

#[test]
fn the_first_to_be_done_ends_all_and_all_sync_and_close() {
    let clock = VirtualClock::default();
    let device = Device { parallel: 8, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
    let target = Simulated::new(device, clock.clone());
    let wall = Arc::default();
    let part = |worker| WorkerPart { place: WorkerPlace::alone(worker, 3), ..part(buffers(2)) };
    let mut workers: Vec<_> = [10, 500, 800]
        .iter()
        .zip(0..)
        .map(|(blocks, worker)| {
            Stonewall::new(build(&cell(*blocks), Phase::Write, part(worker)), Arc::clone(&wall))
        })
        .collect();
    let mut engines: Vec<_> = (0..3).map(|_| target.attach(2, 2)).collect();
    let pairs = workers.iter_mut().zip(&mut engines);
    let mut drives: Vec<_> =
        pairs.map(|(workload, engine)| Drive::new(workload as &mut dyn Workload, engine)).collect();
    let mut done = vec![Vec::new(); 3];
    interleave(&clock, &mut drives, Nanos::MAX, &mut |worker, completion| {
        assert!(completion.result.is_ok(), "{completion:?}");
        assert!(completion.due <= completion.issued, "what is due after the wall: {completion:?}");
        done[worker].push(completion.operation.kind);
    });
    for kinds in &done {
        let writes = kinds.iter().filter(|kind| **kind == OpKind::Write).count();
        assert!((10..=16).contains(&writes), "{writes} blocks: all end with the first, who had 10");
        assert_eq!(kinds[kinds.len() - 2..], [OpKind::Sync, OpKind::Close]);
    }
    assert_eq!(done[0].iter().filter(|kind| **kind == OpKind::Write).count(), 10);
}

#[test]
fn a_worker_without_a_part_does_not_end_that_of_others() {
    let cell = WorkloadCell::Frames(FramesCell { frames: 1, ..FRAMES });
    let (target, wall) = (Simulated::new(Device::default(), VirtualClock::default()), Arc::default());
    let mut writes = 0;
    for worker in [1, 0] {
        let part = WorkerPart { place: WorkerPlace::alone(worker, 2), ..part(buffers(1)) };
        let mut walled = Stonewall::new(build(&cell, Phase::Write, part), Arc::clone(&wall));
        Drive::new(&mut walled, &mut target.attach(1, 1024))
            .run(|completion| writes += u32::from(completion.operation.kind == OpKind::Write));
    }
    assert_eq!(writes, 1);
}
