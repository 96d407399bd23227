//! The workers of a phase: threads that wait for a common start and drive their part of the workload.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    thread,
};

use nilometer_model::{Invalid, Nanos, Phase, Seed};
use nilometer_plan::{BufferData, WorkloadRun};
use nilometer_storage::{Arena, Clock, Drive, Tally, Target, engine::Options};

use crate::{
    barrier::Barrier,
    driven::{DrivenPart, driven},
    parallel_files::ParallelFiles,
    supervise::{Crew, Heartbeat, Report},
    task::{Run, Task},
    workload::{self, CrewShare, Paced, Stonewall, WorkerPace, WorkerPart, WorkerPlace},
};

/// Starts the workers on a target.
pub(crate) fn muster(
    run: &Run,
    crew: &mut Crew,
    number: usize,
    task: &Task<'_>,
    sender: &SyncSender<(usize, Report)>,
) {
    let wall = (task.cell.stonewall && task.may_end_early()).then(Arc::default);
    let (index, target) = &task.targets[number];
    let target = task.at_work(target);
    let share = CrewShare::of(&task.cell.workload);
    let files = match ParallelFiles::of(task, target.as_ref()) {
        Ok(files) => files.map(Arc::new),
        Err(why) => return crew.fail(Invalid::Refused(why)),
    };
    crew.keeps_step = files.as_ref().is_some_and(|files| files.keeps_step());
    for place in task.places() {
        let worker = place.worker;
        let job = Job {
            target: target.clone(),
            files: files.clone(),
            cell: task.cell.clone(),
            phase: task.phase,
            seed: task.seed,
            place,
            paced: task.paced(place),
            pulse: crew.pulse.clone(),
            gate: crew.gate.clone(),
            clock: run.clock,
            time_limit: task.cell.time_limit.filter(|_| task.may_end_early()),
            measured_for: task.cell.time_limit.filter(|_| !task.may_end_early() && !task.phase.is_setup()),
            wall: wall.clone(),
            share: share.clone(),
            reached: task.reached.of(*index, worker),
        };
        let sender = sender.clone();
        let report = move |report| drop(sender.send((number, report)));
        let name = format!("worker {worker}");
        if let Err(error) = thread::Builder::new().name(name).spawn(move || work(job, &report)) {
            crew.fail(Invalid::Refused(format!("no thread for worker {worker}: {error}")));
            return;
        }
    }
}

/// The task of one worker.
struct Job {
    target: Arc<dyn Target>,
    /// Replaces the target's engine if the cell asks for MPI-IO.
    files: Option<Arc<ParallelFiles>>,
    cell: WorkloadRun,
    phase: Phase,
    seed: Seed,
    place: WorkerPlace,
    /// Its place among the workers that share the rate.
    paced: WorkerPlace,
    pulse: Arc<Heartbeat>,
    gate: Arc<Barrier>,
    clock: Clock,
    /// The longest time that the phase may take.
    time_limit: Option<Nanos>,
    /// The longest time that is measured, if the phase then continues to its end.
    measured_for: Option<Nanos>,
    /// Ends the phase for all workers, if the first to finish may do so.
    wall: Option<Arc<AtomicBool>>,
    /// Data that the workers of a process share.
    share: CrewShare,
    reached: Arc<AtomicU64>,
}

/// The thread of a worker. It drops a report that nobody waits for any more.
fn work(job: Job, report: &dyn Fn(Report)) {
    let last = run_worker(&job, report).unwrap_or_else(Report::Refused);
    // A target is cleared when nobody holds it any more. Behind the last report the program may end at any moment.
    drop(job);
    report(last);
}

fn run_worker(job: &Job, report: &dyn Fn(Report)) -> Result<Report, String> {
    let Job { cell, clock, .. } = job;
    let options = Options { kind: cell.engine, depth: cell.depth, slots: workload::SLOTS, clock: *clock };
    let mut engine = match &job.files {
        Some(files) => files.engine(&options)?,
        None => job.target.engine(&options).map_err(|error| error.to_string())?,
    };
    let begun = clock.now();
    let size = workload::buffer_size(&cell.workload, job.phase);
    let (arena, mut buffers) = Arena::shared_out(workload::buffer_count(cell, job.phase), size);
    let mut content = job.seed.named("filling").part(u64::from(job.place.number())).stream();
    for buffer in buffers.iter_mut().filter(|_| cell.data == BufferData::Random) {
        content.fill(buffer);
    }
    // Without the right to lock memory, I/O is only slower, and the figure is that of this user.
    engine.register(&arena).ok();
    report(Report::Ready(clock.now().since(begun)));
    let start = job.gate.pass().ok_or("another worker could not start")?;
    let real = job.target.description().direct_alignment().is_some();
    let part = WorkerPart {
        place: job.place,
        seed: job.seed,
        direct: workload::is_direct(cell.access(), real),
        stop_at: job.time_limit.map_or(Nanos::MAX, |limit| start + limit),
        reached: job.reached.clone(),
        share: job.share.clone(),
        keeps_step: job.files.as_ref().is_some_and(|files| files.keeps_step()),
        buffers,
    };
    let stop_at = part.stop_at;
    let mut workload = workload::build(&cell.workload, job.phase, part);
    let counted = workload::counted_of(&cell.workload, job.phase);
    let is_paced = !cell.offered.is_none() && !job.phase.is_setup();
    if is_paced {
        let limits = WorkerPace {
            offered: cell.offered,
            place: job.paced,
            counted,
            block: cell.block_size(),
            start,
            stop_at,
        };
        workload = Box::new(Paced::new(workload, limits, job.pulse.ceasing().clone()));
    }
    if let Some(wall) = &job.wall {
        workload = Box::new(Stonewall::new(workload, wall.clone()));
    }
    let drive = Drive::new(workload.as_mut(), engine.as_mut());
    let tally = Tally::counting(counted, start);
    let tally = if is_paced { tally.from_due() } else { tally };
    clock.sleep_until(start);
    let late = clock.now().since(start);
    let measured_until = job.measured_for.map(|limit| start + limit);
    let part = DrivenPart { start, measured_until, pulse: &job.pulse, report, late };
    let mut last = driven(drive, &part, tally);
    if let Report::Done(work) = &mut last {
        // A worker that waited for its next operation to be due was not interrupted: it learned that there is
        // none.
        work.cut_short |= is_paced && job.pulse.ceasing().load(Ordering::Relaxed);
    }
    Ok(last)
}
