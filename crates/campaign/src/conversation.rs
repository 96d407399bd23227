//! Phases in which processes exchange messages while they work on files in turn: none is a measurement of
//! throughput.

use nilometer_cluster::RankReport;
use nilometer_model::{RankSample, Sample};
use nilometer_plan::WorkloadCell;
use nilometer_storage::{Calendar, process::Usage};

use crate::{
    locks::LockTurns,
    surroundings::Surroundings,
    task::{Run, Task},
    visibility::Conversation,
};

/// Returns true if the phase is such a one.
pub(crate) fn is_conversation(task: &Task<'_>) -> bool {
    matches!(task.cell.workload, WorkloadCell::Visibility(_) | WorkloadCell::Locks(_))
}

/// Takes part in the phase, even if the cell does not use this process. Returns the samples of each target, and
/// if it went on to its end.
pub(crate) fn converse(run: &Run, surroundings: &mut Surroundings, task: &Task<'_>) -> RankReport {
    let start = task.cluster.agree_start(&run.clock);
    run.clock.sleep_until(start);
    let began = run.clock.now().since(start);
    let mut samples = Vec::new();
    for number in 0..task.targets.len() {
        match on_target(run, surroundings, task, number) {
            Some(sample) => samples.push(task.of_rank(sample, began)),
            None => return RankReport::Measured { whole: false, samples: Vec::new(), loads: Vec::new() },
        }
    }
    let samples: Vec<RankSample> = if task.is_idle() { Vec::new() } else { samples };
    RankReport::Measured { whole: true, samples, loads: Vec::new() }
}

/// Runs the phase on one target. Targets come one after the other, because the phase measures how long a
/// process waits for another.
fn on_target(run: &Run, surroundings: &mut Surroundings, task: &Task<'_>, number: usize) -> Option<Sample> {
    let (moment, before) = surroundings.begin(&run.clock);
    let started = Calendar::now().time;
    let start = run.clock.now();
    let (index, target) = &task.targets[number];
    let sample = match task.cell.workload {
        WorkloadCell::Locks(cell) => {
            let mut turns = LockTurns::new(run, task, cell, target);
            turns.hold()?;
            turns.sample(start)
        }
        WorkloadCell::Visibility(cell) => {
            let mut conversation = Conversation::new(run, task, cell, target);
            conversation.hold()?;
            conversation.sample(start)
        }
        _ => unreachable!("see `is_conversation`"),
    };
    let spent = surroundings.end(&run.clock, &moment);
    let Usage { user, system, switches, .. } = spent.ours;
    let mut sample = Sample { started, before, user, system, switches, ..sample };
    spent.put(&mut sample, *index, 1, surroundings.idle_cores());
    Some(sample)
}
