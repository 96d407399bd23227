//! `build`: who compiles what, and that the program comes last.

use std::collections::BTreeMap;

use nilometer_campaign::workload::{CrewShare, WalkTask, WorkerPart, WorkerPlace, build};
use nilometer_model::{Bytes, Nanos, Phase};
use nilometer_plan::{BuildCell, TreeLike, WalkCommand, WorkloadCell};
use nilometer_storage::{
    Buffer, Completion, Drive, Engine, OpKind, Open,
    clock::VirtualClock,
    interleave,
    testing::conformance::workload_suite,
    testing::{Cost, Device, Simulated},
};

use crate::{demands, part, run, run_phase};

const CELL: BuildCell = BuildCell {
    like: TreeLike::None,
    directories: 12,
    files: 120,
    size: Bytes(1_000_000),
    units: 40,
    headers: 5,
    think_time: Nanos(0),
    cold: false,
};

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

/// A build in virtual time.
struct Built {
    target: Simulated,
    /// What each worker did, in the order in which it was done.
    done: Vec<(usize, OpKind, u64)>,
    time: Nanos,
}

fn built(cell: BuildCell, workers: u32) -> Built {
    let cell = WorkloadCell::Build(cell);
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
        let begin = clock.now();
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
            return Built { time: clock.now() - begin, target, done };
        }
    }
    unreachable!("a build is the last phase")
}

#[test]
fn each_unit_is_compiled_once_and_the_program_is_written_when_all_objects_are_there() {
    for workers in [1, 3, 8, 32] {
        let Built { target, done, .. } = built(CELL, workers);
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
        let done = built(CELL, workers).done;
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

/// In virtual time: a compiler on a processor of its own for each worker.
#[test]
fn a_worker_thinks_once_a_unit_before_it_writes_the_object() {
    let think_time = Nanos::from_millis(10);
    let kinds = |done: &[(usize, OpKind, u64)]| -> Vec<(usize, OpKind)> {
        done.iter().map(|(worker, kind, _)| (*worker, *kind)).collect()
    };
    for headers in [0, 5] {
        let cell = BuildCell { headers, ..CELL };
        let [at_once, alone] =
            [Nanos(0), think_time].map(|think_time| built(BuildCell { think_time, ..cell.clone() }, 1));
        assert_eq!(alone.time, at_once.time + Nanos(40 * think_time.0), "{headers} headers");
        assert_eq!(kinds(&alone.done), kinds(&at_once.done), "it asks for the same");
    }
    // Forty units by eight workers are five each, and by forty one each; then one of them links.
    for (workers, turns) in [(8, 5), (40, 1)] {
        let took = built(BuildCell { think_time, ..CELL }, workers).time;
        let least = Nanos(turns * think_time.0);
        assert!(took >= least && took < least + think_time, "{workers} workers: {took}");
    }
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
