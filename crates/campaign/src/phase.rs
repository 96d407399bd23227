//! One phase of one cell, on one target or on several at the same time. Workers run on threads of their own and
//! begin together; a supervisor watches them.

use std::sync::mpsc::sync_channel;

use nilometer_cluster::{ClusterDecision, RankReport};
use nilometer_model::{
    Activity, Coldness, DeviceTraffic, DirectIo, EngineKind, Invalid, Nanos, Phase, Sample,
};
use nilometer_plan::Access;
use nilometer_storage::{
    Calendar, Clock, Target,
    process::{self, Usage},
};

use crate::{
    background::{Loads, LoadsBeside},
    cold::{chilled, delivered},
    conversation::{converse, is_conversation},
    parallel_files::{is_silenced, is_stuck},
    settle::settle,
    starvation::starved,
    supervise::{Crew, SoFar, Watch},
    surroundings::{Moment, Surroundings},
    task::{Run, Task, traffic_since},
    together::{decided, sleep_through, united},
    worker::muster,
};

/// Runs a phase and returns, at rank 0, a sample for each target. Never fails: a sample records any fault.
/// Returns `None` if the campaign ended before the phase did, and at other ranks.
pub(crate) fn run_phase(
    run: &Run,
    surroundings: &mut Surroundings,
    task: &Task<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> Option<Vec<Sample>> {
    let samples = run_own_part(run, surroundings, task, loads, tell);
    // A process whose call of MPI-IO hangs can send no messages.
    if !is_stuck(task) {
        surroundings.pass_together(task.cluster, &run.clock);
    }
    samples
}

/// The part of this process in a phase. Returns the same as [`run_phase`].
fn run_own_part(
    run: &Run,
    surroundings: &mut Surroundings,
    task: &Task<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> Option<Vec<Sample>> {
    if is_conversation(task) {
        return run_conversation(run, surroundings, task, loads);
    }
    if task.is_idle() {
        return sleep_through(run, task, loads);
    }
    let mut beside = LoadsBeside::renewed(loads, task.cluster, task.load(), run);
    let chilled: Vec<_> =
        task.targets.iter().map(|(number, target)| chilled(run, *number, target, task)).collect();
    let settling = settle(run);
    let load = process::load_average();
    let (sender, reports) = sync_channel(2 * task.cell.workers as usize * task.targets.len());
    let crews = task.targets.iter().map(|_| Crew::new(task.cell.at_work())).collect();
    let mut watch = Watch { run, reports, crews, tell };
    for (number, crew) in watch.crews.iter_mut().enumerate() {
        match &chilled[number] {
            Err(invalid) => crew.fail(invalid.clone()),
            Ok(_) => muster(run, crew, number, task, &sender),
        }
    }
    // The supervisor's own end of the channel would hide that all workers are gone.
    drop(sender);
    watch.await_all(Nanos::MAX, &mut |_, _| {});
    if is_silenced(task) {
        return None;
    }
    if !all_begin(&mut watch, task) {
        watch.crews.iter().for_each(|crew| crew.gate.cancel());
        return None;
    }
    beside.begin();
    let whole = measure(&mut watch, surroundings, task, &mut beside) && watch.await_rest();
    if is_silenced(task) {
        beside.cut();
        return None;
    }
    let loads = beside.ended(task.numbers());
    let crews = watch.crews.into_iter().zip(chilled).zip(task.targets);
    let samples = crews.map(|((crew, chilled), (number, target))| {
        let coldness = task.coldness(*number, chilled.unwrap_or(None));
        let mpi_io = task.mpi_io_in_force();
        let mut sample = Sample { settling, load, coldness, mpi_io, ..crew.sample };
        sample.coldness = delivered(&sample, target.as_ref(), task);
        let judged = judge(&sample, target.as_ref(), task);
        let judged = judged.map(|why| why.throttled(crew.throttled));
        sample.invalid = judged;
        task.of_rank(sample, crew.began)
    });
    let report = RankReport::Measured { whole, samples: samples.collect(), loads };
    united(task.cluster, task.cluster.gather(report))
}

/// Runs a phase in which processes exchange messages.
fn run_conversation(
    run: &Run,
    surroundings: &mut Surroundings,
    task: &Task<'_>,
    loads: &mut Loads,
) -> Option<Vec<Sample>> {
    let mut beside = LoadsBeside::renewed(loads, task.cluster, task.load(), run);
    let settling = settle(run);
    let load = process::load_average();
    beside.begin();
    task.cluster.barrier();
    beside.count();
    let mut report = converse(run, surroundings, task);
    if let RankReport::Measured { samples, loads, .. } = &mut report {
        *loads = beside.ended(task.numbers());
        for of_rank in samples {
            (of_rank.sample.settling, of_rank.sample.load) = (settling, load);
        }
    }
    united(task.cluster, task.cluster.gather(report))
}

/// Returns true if rank 0 decides that the phase begins.
fn all_begin(watch: &mut Watch<'_>, task: &Task<'_>) -> bool {
    let cluster = task.cluster;
    let failed = |crew: &Crew| if crew.is_sound() { None } else { crew.sample.invalid.clone() };
    let reports = cluster.gather(RankReport::Ready(watch.crews.iter().map(failed).collect()));
    let decided = decided(watch.run, cluster, reports);
    let ClusterDecision::Begin(failed) = cluster.broadcast(decided) else { return false };
    for (crew, why) in watch.crews.iter_mut().zip(failed) {
        if let Some(why) = why.filter(|_| crew.is_sound()) {
            crew.fail(why);
        }
    }
    true
}

/// The start of a phase, and the readings taken then.
struct Begun {
    calendar: Nanos,
    moment: Moment,
    before: Activity,
    /// The traffic of each target's device.
    traffic: Vec<Option<DeviceTraffic>>,
}

/// Opens the gates for the agreed time and waits for all workers of this process. Returns true if all came to
/// their end.
fn measure(
    watch: &mut Watch<'_>,
    surroundings: &mut Surroundings,
    task: &Task<'_>,
    beside: &mut LoadsBeside<'_>,
) -> bool {
    let clock = watch.run.clock;
    let traffic = task.targets.iter().map(|(_, target)| task.at_work(target).traffic()).collect();
    // The processes agree on a start only when all listen, to make it near.
    task.cluster.barrier();
    let (moment, before) = surroundings.begin(&clock);
    // A process that hears of the start too late has counted its load over the whole phase all the same.
    beside.count();
    let at = task.cluster.agree_start(&clock);
    let calendar = Calendar::now().time + at.since(clock.now());
    let begun = Begun { calendar, moment, before, traffic };
    // Workers sleep until the start by themselves: a worker that another thread wakes begins later.
    for crew in watch.crews.iter_mut().filter(|crew| crew.is_sound()) {
        crew.sample = Sample { filling: crew.sample.filling, ..Sample::new(at) };
        crew.gate.open(at);
    }
    let whole = watch.await_all(at, &mut |number, crew| {
        crew.sample.background = beside.measured(task.targets[number].0);
        settle_accounts(surroundings, &clock, crew, &begun, number, task);
    });
    for crew in &mut watch.crews {
        (crew.sample.started, crew.sample.before) = (begun.calendar, begun.before);
    }
    whole
}

/// Puts the resources that a crew used into its sample. Processor time is that of the workers' threads in the
/// phase.
///
/// If other threads work for them (those of a pool, or the kernel's for `io_uring`), it is that of the whole
/// process, with some work from before and after. If several targets were measured at once, or a load ran, it
/// is that of each target's own threads only.
fn settle_accounts(
    surroundings: &mut Surroundings,
    clock: &Clock,
    crew: &mut Crew,
    begun: &Begun,
    number: usize,
    task: &Task<'_>,
) {
    let spent = surroundings.end(clock, &begun.moment);
    let target = &task.targets[number];
    let all = task.targets.len();
    // A client's library has threads of its own.
    let by_library = task.at_work(&target.1).description().address.url().is_some();
    // The threads of a load belong to the same process.
    let by_threads = crew.sample.background.is_some();
    let alone = by_threads || task.cell.engine == EngineKind::Sync && !by_library;
    let Usage { user, system, switches, .. } = if all == 1 && !alone { spent.ours } else { crew.usage };
    let sample = &mut crew.sample;
    crew.throttled = spent.throttled;
    (sample.user, sample.system, sample.switches) = (user, system, switches);
    sample.device = traffic_since(begun.traffic[number], task.at_work(&target.1).as_ref());
    spent.put(sample, target.0, all as u64, surroundings.idle_cores());
}

/// Returns why the figure must not be used, or `None` if it may be.
fn judge(sample: &Sample, target: &dyn Target, task: &Task<'_>) -> Option<Invalid> {
    if !sample.errors.is_empty() {
        return Some(Invalid::Errors);
    }
    if sample.invalid.is_some() {
        return sample.invalid.clone();
    }
    // A source is read through the cache, even if the copy is written past it.
    let direct = task.cell.access() == Some(Access::Direct) && task.phase != Phase::Source;
    if direct && target.description().direct == DirectIo::Buffered {
        return Some(Invalid::NotDirect);
    }
    if sample.coldness == Some(Coldness::Contradicted) {
        return Some(Invalid::WarmRead);
    }
    starved(sample.run_delay, Nanos(sample.wall.0.saturating_mul(sample.workers.len() as u64)))
}
