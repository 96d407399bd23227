//! `build`: who compiles what, and that the program comes last.

use std::collections::BTreeMap;

use nilometer_campaign::workload::{CrewShare, WalkTask, WorkerPart, WorkerPlace, build};
use nilometer_model::{
    Bytes, Nanos,
    plan::{BuildCell, Phase, WalkCommand, WorkloadCell},
};
use nilometer_storage::{
    Buffer, Completion, Drive, Engine, OpKind, Open,
    clock::VirtualClock,
    interleave,
    testing::conformance::workload_suite,
    testing::{Cost, Device, Simulated},
};

use crate::{demands, part, run, run_phase};

const CELL: BuildCell =
    BuildCell { directories: 12, files: 120, size: Bytes(1_000_000), units: 40, headers: 5, cold: false };

fn target() -> Simulated {
    Simulated::new(Device::with_cost(Cost::fixed(Nanos(1000))), VirtualClock::default())
}

#[test]
fn all_phases_pass_the_suite() {
    let few = BuildCell { directories: 1, files: 1, units: 1, ..CELL };
    for cell in [CELL, few] {
        let cell = WorkloadCell::Build(cell);
        let lay_out = |engine: &mut dyn Engine| run_phase(engine, &cell, Phase::LayOut);
        workload_suite(demands(4096, 40), &lay_out, &mut |buffers| build(&cell, Phase::Build, part(buffers)));
    }
}

/// What each worker of a build did, in the order in which it was done.
fn built(workers: u32) -> (Simulated, Vec<(usize, OpKind, u64)>) {
    let cell = WorkloadCell::Build(CELL);
    let clock = VirtualClock::default();
    let device = Device { parallel: 4, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
    let target = Simulated::new(device, clock.clone());
    let parts = |share: &CrewShare| -> Vec<WorkerPart> {
        let part = |place| WorkerPart { place, share: share.clone(), ..part(crate::buffers(1)) };
        WorkerPlace::of_rank(0, 1, workers).map(part).collect()
    };
    for phase in [Phase::LayOut, Phase::Build] {
        let share = CrewShare::of(&cell);
        let mut crew: Vec<_> = parts(&share).into_iter().map(|part| build(&cell, phase, part)).collect();
        let mut engines: Vec<_> = crew.iter().map(|_| target.attach(1, 64)).collect();
        let mut done = Vec::new();
        let mut drives: Vec<_> = crew
            .iter_mut()
            .zip(&mut engines)
            .map(|(workload, engine)| Drive::new(workload.as_mut(), engine))
            .collect();
        interleave(&clock, &mut drives, Nanos::MAX, &mut |worker, completion: &Completion| {
            assert!(completion.result.is_ok(), "{completion:?}");
            done.push((worker, completion.operation.kind, u64::from(completion.operation.length)));
        });
        if phase == Phase::Build {
            drop(drives);
            return (target, done);
        }
    }
    unreachable!("a build is the last phase")
}

#[test]
fn each_unit_is_compiled_once_and_the_program_is_written_when_all_objects_are_there() {
    for workers in [1, 3, 8, 32] {
        let (target, done) = built(workers);
        let renames: Vec<usize> =
            (0..done.len()).filter(|&number| done[number].1 == OpKind::Rename).collect();
        assert_eq!(renames.len(), 41, "each object, and the program: {workers} workers");
        // Behind the last object the one who made it reads all of them, and only then is the program made.
        let [last_object, program] = renames[39..] else { panic!("two") };
        let linker = done[program].0;
        assert_eq!(done[last_object].0, linker, "{workers} workers");
        let opened = |open: Open| {
            let behind = done[last_object..].iter().filter(|(worker, ..)| *worker == linker);
            behind.filter(|(_, kind, _)| *kind == OpKind::Open(open)).count()
        };
        assert_eq!((opened(Open::READ), opened(Open::CREATE)), (40, 1), "{workers} workers");
        let mut walk = nilometer_campaign::workload::Walk::new(
            "n_w0",
            WalkTask::Look(WalkCommand::Ls),
            64,
            Nanos::MAX,
            vec![Buffer::alone(4096)],
        );
        run(&mut walk, &mut target.attach(1, 64));
        assert_eq!(walk.found().files, 120 + 40 + 1);
    }
}

#[test]
fn workers_share_the_work_and_together_do_the_same_however_many_they_are() {
    let sums = |workers| {
        let (_, done) = built(workers);
        let mut sums = BTreeMap::new();
        for (_, kind, length) in done.iter().filter(|(_, kind, _)| kind.is_data()) {
            *sums.entry(format!("{kind:?}")).or_insert(0) += length;
        }
        let busy = (0..workers as usize).filter(|worker| done.iter().any(|(by, ..)| by == worker)).count();
        (sums, busy)
    };
    let (alone, one) = sums(1);
    let (together, eight) = sums(8);
    assert_eq!((alone, one), (together, 1));
    assert_eq!(eight, 8, "nobody is idle");
}

#[test]
fn a_build_of_which_a_unit_fails_takes_no_more_and_makes_no_program() {
    let cell = WorkloadCell::Build(CELL);
    let target = target();
    // The tree is not there: the first operation fails.
    let mut done = Vec::new();
    let mut workload = build(&cell, Phase::Build, part(crate::buffers(1)));
    Drive::new(workload.as_mut(), &mut target.attach(1, 64)).run(|completion| done.push(completion.result));
    assert!(done.len() == 1 && done[0].is_err(), "{done:?}");
}
