//! Every workload passes the public conformance suite, and does what it is for.

mod crew;
mod frames;
mod random;
mod stream;
mod tree;
mod walk;

use nilometer_campaign::workload::{Part, build};
use nilometer_model::{
    Nanos, Seed,
    plan::{Phase, WorkloadCell},
};
use nilometer_storage::{Buffer, Drive, Engine, Workload, conformance::Demands};

/// A worker's part in a phase, with its memory.
fn part(buffers: Vec<Buffer>) -> Part {
    Part { worker: 0, workers: 1, seed: Seed(3), direct: false, stop_at: Nanos::MAX, buffers }
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
    run(build(cell, phase, part(vec![Buffer::alone(1 << 20)])).as_mut(), engine);
}
