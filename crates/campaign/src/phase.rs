//! One phase of one cell, on one target or on several at the same time: workers on threads of their own, begun together,
//! watched by a supervisor.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision, RankReport};
use nilometer_model::{
    Activity, BackgroundDone, Coldness, DeviceTraffic, DirectIo, EngineKind, Invalid, Nanos, Phase, Sample,
    Seed, Waited,
};
use nilometer_plan::{Access, BufferData, WorkloadRun};
use nilometer_storage::{
    Arena, Calendar, Clock, Counted, Drive, Tally, Target,
    engine::Options,
    process::{self, Usage},
};

use crate::{
    background::Loads,
    barrier::Barrier,
    cold::{chilled, delivered},
    conversation::{converse, is_conversation},
    driven::{DrivenPart, driven},
    parallel_files::{ParallelFiles, is_silenced},
    settle::{Baseline, settle},
    supervise::{Crew, Heartbeat, Report, SoFar, Watch},
    surroundings::{Moment, Surroundings},
    together::{decided, sleep_through, united},
    workload::{self, CrewShare, Paced, Stonewall, WorkerPace, WorkerPart, WorkerPlace},
};

/// What stays the same throughout a campaign.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// All engines' clock.
    pub(crate) clock: Clock,
    /// How long a worker may be silent beyond its time limit.
    pub(crate) hang_after: Nanos,
    /// Set from elsewhere to end the campaign.
    pub(crate) stop: Arc<AtomicBool>,
    /// When it ends at the latest.
    pub(crate) ends: Nanos,
    /// What the machine has to write back anyway.
    pub(crate) usual: Baseline,
}

/// How many blocks each worker wrote in a repeat of a cell, by target and worker: what is read back goes no further.
#[derive(Debug)]
pub(crate) struct Reached(BTreeMap<(usize, u32), Arc<AtomicU64>>);

impl Reached {
    /// Nothing is known to be missing.
    pub(crate) fn new(targets: &[usize], workers: u32) -> Self {
        let places = targets.iter().flat_map(|&target| (0..workers).map(move |worker| (target, worker)));
        Reached(places.map(|place| (place, Arc::new(AtomicU64::new(workload::EVERY_BLOCK)))).collect())
    }
}

impl Run {
    /// No more operations are to be issued.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.ends
    }
}

/// What is measured.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// With their numbers in the plan.
    pub(crate) targets: &'a [(usize, Arc<dyn Target>)],
    pub(crate) cell: &'a WorkloadRun,
    pub(crate) phase: Phase,
    pub(crate) seed: Seed,
    /// Which repeat it is of all that several processes make together; 0 where there is one.
    pub(crate) attempt: u32,
    /// How far the workers of this process came in the phases before.
    pub(crate) reached: &'a Reached,
    /// The processes of the campaign.
    pub(crate) cluster: &'a dyn Cluster,
    /// Where they are.
    pub(crate) ranks: &'a CampaignRanks,
}

impl Task<'_> {
    /// What a later phase needs is made whole.
    fn may_end_early(&self) -> bool {
        self.cell.workload.parameters().may_end_early(self.phase)
    }

    /// Names and inodes are to come from the storage too.
    pub(crate) fn drops_caches(&self) -> bool {
        self.cell.workload.parameters().drops_caches(self.phase)
    }

    /// Where the phase works: what copies come from is made and read where it lies.
    fn at_work<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let elsewhere = self.cell.copies() && matches!(self.phase, Phase::LayOut | Phase::Source);
        target.source().filter(|_| elsewhere).unwrap_or(target)
    }

    /// What the phase reads: a copy is written to one target and read from another.
    pub(crate) fn read_from<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let copied = self.cell.copies() && matches!(self.phase, Phase::Write | Phase::Rewrite);
        target.source().filter(|_| copied).unwrap_or_else(|| self.at_work(target))
    }
}

/// Runs a phase and says, at rank 0, what came of it on each target. Never fails: what goes wrong is in the samples.
/// None if the campaign ended before the phase did, and at other ranks.
pub(crate) fn run_phase(
    run: &Run,
    surroundings: &mut Surroundings,
    task: &Task<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> Option<Vec<Sample>> {
    if is_conversation(task) {
        return run_conversation(run, surroundings, task);
    }
    if task.is_idle() {
        return sleep_through(run, task);
    }
    let mut without_load = loads.renew(run);
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
    without_load.append(&mut loads.begin());
    let whole = measure(&mut watch, surroundings, task, loads) && watch.await_rest();
    without_load.append(&mut loads.end());
    if is_silenced(task) {
        return None;
    }
    let crews = watch.crews.into_iter().zip(chilled).zip(task.targets);
    let samples = crews.map(|((crew, chilled), (number, target))| {
        let coldness = task.coldness(*number, chilled.unwrap_or(None));
        let mpi_io = task.mpi_io_in_force();
        let mut sample = Sample { settling, load, coldness, mpi_io, ..crew.sample };
        sample.coldness = delivered(&sample, target.as_ref(), task);
        let judged = judge(&sample, target.as_ref(), task);
        let judged = judged.map(|why| why.throttled(crew.throttled));
        sample.invalid = Invalid::gravest(judged, without_load.remove(number));
        task.of_rank(sample, crew.began)
    });
    let report = RankReport::Measured { whole, samples: samples.collect() };
    united(task.cluster, task.cluster.gather(report))
}

/// The same for a phase in which processes speak to each other.
fn run_conversation(run: &Run, surroundings: &mut Surroundings, task: &Task<'_>) -> Option<Vec<Sample>> {
    let settling = settle(run);
    let load = process::load_average();
    task.cluster.barrier();
    let mut report = converse(run, surroundings, task);
    if let RankReport::Measured { samples, .. } = &mut report {
        for of_rank in samples {
            (of_rank.sample.settling, of_rank.sample.load) = (settling, load);
        }
    }
    united(task.cluster, task.cluster.gather(report))
}

/// Whether the phase begins, as rank 0 decides.
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
            pulse: crew.pulse.clone(),
            gate: crew.gate.clone(),
            clock: run.clock,
            time_limit: task.cell.time_limit.filter(|_| task.may_end_early()),
            measured_for: task.cell.time_limit.filter(|_| !task.may_end_early() && !task.phase.is_setup()),
            wall: wall.clone(),
            share: share.clone(),
            reached: task.reached.0[&(*index, worker)].clone(),
        };
        let sender = sender.clone();
        let report = move |report| drop(sender.send((number, report)));
        let name = format!("worker {worker}");
        if let Err(error) = thread::Builder::new().name(name).spawn(move || work(&job, &report)) {
            crew.fail(Invalid::Refused(format!("no thread for worker {worker}: {error}")));
            return;
        }
    }
}

/// When a phase began, and what was known then.
struct Begun {
    calendar: Nanos,
    moment: Moment,
    before: Activity,
    /// At each target's device.
    traffic: Vec<Option<DeviceTraffic>>,
    /// By each target's load.
    beside: Vec<Option<BackgroundDone>>,
}

/// Opens the gates for the agreed time and waits for all workers of this process; whether all came to their end.
fn measure(watch: &mut Watch<'_>, surroundings: &mut Surroundings, task: &Task<'_>, loads: &Loads) -> bool {
    let clock = watch.run.clock;
    let traffic = task.targets.iter().map(|(_, target)| task.at_work(target).traffic()).collect();
    // A start is agreed upon when all listen, so that it can be near.
    task.cluster.barrier();
    let (moment, before) = surroundings.begin(&clock);
    let at = task.cluster.agree_start(&clock);
    let calendar = Calendar::now().time + at.since(clock.now());
    let beside = task.targets.iter().map(|(number, _)| loads.done(*number)).collect();
    let begun = Begun { calendar, moment, before, traffic, beside };
    // Workers sleep until then by themselves: who is woken by another thread is woken later.
    for crew in watch.crews.iter_mut().filter(|crew| crew.is_sound()) {
        crew.sample = Sample { filling: crew.sample.filling, ..Sample::new(at) };
        crew.gate.open(at);
    }
    let whole = watch.await_all(at, &mut |number, crew| {
        crew.sample.background = done_beside(&begun, loads, number, task);
        settle_accounts(surroundings, &clock, crew, &begun, number, task);
    });
    for crew in &mut watch.crews {
        (crew.sample.started, crew.sample.before) = (begun.calendar, begun.before);
    }
    whole
}

/// What the load on a target did since a phase began.
fn done_beside(begun: &Begun, loads: &Loads, number: usize, task: &Task<'_>) -> Option<BackgroundDone> {
    let is = loads.done(task.targets[number].0)?;
    Some(is.since(begun.beside[number]?))
}

/// What was spent while a crew worked goes into its sample. Processor time is that of its workers' threads in the
/// phase; where other threads work for them, the kernel's for `io_uring` or those of a pool, that of the whole process,
/// which has some of what comes before and after. Where several targets were measured at once, it is that of each one's
/// own threads only, as beside a load.
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
    // Threads of a load are of the same process.
    let by_threads = crew.sample.background.is_some();
    let alone = by_threads || task.cell.engine == EngineKind::Sync && !by_library;
    let Usage { user, system, switches } = if all == 1 && !alone { spent.ours } else { crew.usage };
    let sample = &mut crew.sample;
    crew.throttled = spent.throttled;
    (sample.user, sample.system, sample.switches) = (user, system, switches);
    sample.device = traffic_since(begun.traffic[number], task.at_work(&target.1).as_ref());
    spent.put(sample, target.0, all as u64, surroundings.idle_cores());
}

/// What came to the device below since `was`.
pub(crate) fn traffic_since(was: Option<DeviceTraffic>, target: &dyn Target) -> Option<DeviceTraffic> {
    let (was, is) = was.zip(target.traffic())?;
    Some(is.since(was))
}

/// Why the figure must not be used, if so.
fn judge(sample: &Sample, target: &dyn Target, task: &Task<'_>) -> Option<Invalid> {
    if !sample.errors.is_empty() {
        return Some(Invalid::Errors);
    }
    if sample.invalid.is_some() {
        return sample.invalid.clone();
    }
    // A source is read through the cache, however the copy is written.
    let direct = task.cell.access() == Some(Access::Direct) && task.phase != Phase::Source;
    if direct && target.description().direct == DirectIo::Buffered {
        return Some(Invalid::NotDirect);
    }
    if sample.coldness == Some(Coldness::Contradicted) {
        return Some(Invalid::WarmRead);
    }
    starved(sample.run_delay, Nanos(sample.wall.0.saturating_mul(sample.workers.len() as u64)))
}

/// Workers that wait for a processor for more than this part of their time are measured, not the storage. Less makes a
/// figure at most so much too low, and shows in the spread of its repeats.
const WAITED_PART: u64 = 5;

/// The workers waited for too long of all their time together.
fn starved(waited: Nanos, of: Nanos) -> Option<Invalid> {
    let allowed = Nanos(of.0 / WAITED_PART);
    (waited > allowed).then_some(Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) })))
}

/// What a worker is told.
struct Job {
    target: Arc<dyn Target>,
    /// In the place of the target's engine, where MPI-IO is asked for.
    files: Option<Arc<ParallelFiles>>,
    cell: WorkloadRun,
    phase: Phase,
    seed: Seed,
    place: WorkerPlace,
    pulse: Arc<Heartbeat>,
    gate: Arc<Barrier>,
    clock: Clock,
    /// When the phase ends at the latest.
    time_limit: Option<Nanos>,
    /// How long it is measured at the most, where it goes on to its end all the same.
    measured_for: Option<Nanos>,
    /// What ends the phase for all workers, if one of them may.
    wall: Option<Arc<AtomicBool>>,
    /// What the workers of a process have together.
    share: CrewShare,
    reached: Arc<AtomicU64>,
}

/// A worker's thread. A report that nobody waits for any more is dropped.
fn work(job: &Job, report: &dyn Fn(Report)) {
    report(run_worker(job, report).unwrap_or_else(Report::Refused));
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
    // Without the right to lock memory it is only slower, and the figure is that of this user.
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
    let copied = cell.copies() && matches!(job.phase, Phase::Write | Phase::Rewrite);
    let counted = if copied { Counted::Copied } else { workload::counted(job.phase) };
    let is_paced = !cell.offered.is_none() && !job.phase.is_setup();
    if is_paced {
        let limits = WorkerPace {
            offered: cell.offered,
            place: job.place,
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
        // Who waited for its next operation to be due was not broken off, but told that there is none.
        work.cut_short |= is_paced && job.pulse.ceasing().load(Ordering::Relaxed);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn workers_without_a_processor_are_told_from_those_that_have_one(of in 1..u64::MAX / 2, part in 0.0..1.0) {
            let waited = |part: f64| Nanos::from_seconds(part * Nanos(of).seconds());
            prop_assert_eq!(starved(waited(0.19 * part), Nanos(of)), None);
            prop_assert!(starved(Nanos(of), Nanos(of)).is_some());
            let why = starved(Nanos(of), Nanos(of)).map(|why| why.to_string()).unwrap_or_default();
            prop_assert!(why.contains(", allowed "), "{}", why);
        }
    }
}
