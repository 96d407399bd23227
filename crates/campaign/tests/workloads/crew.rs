//! All workers of a cell, phase by phase: on one virtual clock, or one after the other on a real directory.

use nilometer_campaign::workload::{SLOTS, WorkerPart, WorkerPlace, build};
use nilometer_model::{EngineKind, Nanos, Phase};
use nilometer_plan::WorkloadCell;
use nilometer_storage::{
    Arena, Clock, Completion, Drive, Engine, Target, Workload,
    clock::VirtualClock,
    engine::Options,
    interleave,
    target::{Posix, probe},
    testing::{Cost, Device, Simulated},
};
use tempfile::TempDir;

/// Bytes of a buffer: more than any piece of a test.
const BUFFER: usize = 1 << 16;

/// What one worker does in a phase, with memory for `depth` operations.
pub(crate) fn work(
    cell: &WorkloadCell,
    phase: Phase,
    worker: u32,
    workers: u32,
    depth: usize,
) -> Box<dyn Workload> {
    let (_, buffers) = Arena::shared_out(depth, BUFFER);
    let part = WorkerPart { place: WorkerPlace::alone(worker, workers), ..crate::part(buffers) };
    build(cell, phase, part)
}

/// A simulated target with its time.
pub(crate) struct Virtual {
    pub(crate) clock: VirtualClock,
    pub(crate) target: Simulated,
}

impl Virtual {
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::default();
        let device = Device { parallel: 3, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
        Virtual { target: Simulated::new(device, clock.clone()), clock }
    }

    /// All workers at once, each at this depth. `observe` sees each operation with its worker; none may fail.
    pub(crate) fn run(
        &self,
        (cell, phase): (&WorkloadCell, Phase),
        (workers, depth): (u32, usize),
        observe: &mut dyn FnMut(usize, &Completion),
    ) {
        let mut engines: Vec<_> = (0..workers).map(|_| self.target.attach(depth, SLOTS)).collect();
        let mut works: Vec<_> =
            (0..workers).map(|worker| work(cell, phase, worker, workers, depth)).collect();
        let pairs = works.iter_mut().zip(&mut engines);
        let mut drives: Vec<_> = pairs.map(|(work, engine)| Drive::new(work.as_mut(), engine)).collect();
        interleave(&self.clock, &mut drives, Nanos::MAX, &mut |worker, completion| {
            assert!(completion.result.is_ok(), "{phase:?}, worker {worker}: {completion:?}");
            observe(worker, completion);
        });
    }
}

/// A run's directory on a real file system.
pub(crate) struct Real {
    pub(crate) target: Posix,
    // Dropped last: the run's directory lies in it.
    _home: TempDir,
}

impl Real {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let description = probe(home.path()).expect("it can be written");
        let target = Posix::create(description, 1).expect("a run directory");
        Real { target, _home: home }
    }

    /// One worker after the other; none of their operations may fail.
    pub(crate) fn run(&self, cell: &WorkloadCell, phase: Phase, workers: u32) {
        let (kind, clock) = (EngineKind::Sync, Clock::start());
        for worker in 0..workers {
            let mut engine = self
                .target
                .engine(&Options { kind, depth: 1, slots: SLOTS, clock })
                .expect("a file system has this engine");
            crate::run(work(cell, phase, worker, workers, 1).as_mut(), engine.as_mut() as &mut dyn Engine);
        }
    }
}
