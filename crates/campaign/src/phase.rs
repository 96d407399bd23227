//! One phase of one cell on one target: workers on threads of their own, begun together, watched by a supervisor.
//!
//! A worker reports by channel and is never joined: one that misses the time limit is given up where it hangs, and
//! its sample says so.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_model::{
    Coldness, Invalid, Nanos, Sample, Seed,
    plan::{Access, Cell, Phase},
};
use nilometer_storage::{
    Arena, Clock, Drive, OpKind, Tally, Target,
    engine::Options,
    process::{self, Usage},
    target::{Direct, TargetError},
};

use crate::{
    gate::Gate,
    patience::within,
    workload::{self, Part, Stonewall},
};

/// What stays the same throughout a campaign.
#[derive(Debug, Clone)]
pub struct Run {
    /// All engines' clock.
    pub clock: Clock,
    /// Processor time the idle machine spends in a second, as cores.
    pub idle_cores: f64,
    /// How long a worker may be silent beyond its time limit.
    pub hang_after: Nanos,
    /// How far workers came.
    pub reached: Reached,
}

/// How many blocks each worker wrote in the present cell on each target: what is read back then goes no further.
#[derive(Debug, Clone, Default)]
pub struct Reached(Arc<Mutex<BTreeMap<Place, Arc<AtomicU64>>>>);

/// A target's path and a worker's number.
type Place = (PathBuf, u32);

impl Reached {
    fn of(&self, target: &dyn Target, worker: u32) -> Arc<AtomicU64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.entry((target.description().path.clone(), worker));
        place.or_insert_with(|| Arc::new(AtomicU64::new(workload::EVERY_BLOCK))).clone()
    }
}

impl Run {
    /// Processor time of the machine since it had spent `was`, above its idle level over `wall`.
    pub(crate) fn machine_since(&self, was: Option<Nanos>, wall: Nanos) -> Nanos {
        let idle = Nanos::from_seconds(self.idle_cores * wall.seconds());
        was.zip(process::machine_busy()).map_or(Nanos(0), |(was, is)| is.since(was).since(idle))
    }
}

/// What a worker sends.
enum Report {
    Ready(Nanos),
    /// With how long it waited for a processor.
    Done(Box<Tally>, Nanos),
    Refused(String),
}

/// Runs a phase and says what came of it. Never fails: what goes wrong is in the sample.
pub fn run_phase(run: &Run, target: &Arc<dyn Target>, cell: &Cell, phase: Phase, seed: Seed) -> Sample {
    let target = at_work(target, cell, phase);
    let coldness = match chilled(run, target, cell, phase) {
        Ok(coldness) => coldness,
        Err(invalid) => return Sample::invalid(invalid),
    };
    let settling = settle(&run.clock);
    let (load, busy, traffic) = (process::load_average(), process::machine_busy(), target.traffic());
    let mut sample = match measure(run, target, cell, phase, seed) {
        Ok(sample) => sample,
        Err(invalid) => Sample::invalid(invalid),
    };
    sample.settling = settling;
    sample.load = load;
    sample.coldness = coldness;
    sample.device = traffic_since(traffic, target.as_ref());
    sample.machine = run.machine_since(busy, sample.wall);
    sample.invalid = judge(&sample, target.as_ref(), cell, phase);
    sample
}

/// Where a phase works: what copies come from is made and read where it lies.
fn at_work<'a>(target: &'a Arc<dyn Target>, cell: &Cell, phase: Phase) -> &'a Arc<dyn Target> {
    let elsewhere = cell.copies() && matches!(phase, Phase::LayOut | Phase::Source);
    target.source().filter(|_| elsewhere).unwrap_or(target)
}

/// What a phase reads: a copy is written to one target and read from another.
fn read_by<'a>(target: &'a Arc<dyn Target>, cell: &Cell, phase: Phase) -> &'a Arc<dyn Target> {
    target.source().filter(|_| cell.copies() && phase == Phase::Write).unwrap_or(target)
}

/// Bytes read and written at the device below since `was`.
pub(crate) fn traffic_since(was: Option<(u64, u64)>, target: &dyn Target) -> Option<(u64, u64)> {
    let (was, is) = was.zip(target.traffic())?;
    Some((is.0.saturating_sub(was.0), is.1.saturating_sub(was.1)))
}

/// Drops from the cache what will be read.
fn chilled(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &Cell,
    phase: Phase,
) -> Result<Option<Coldness>, Invalid> {
    if (0..cell.workers).all(|worker| workload::files_of(&cell.workload, phase, worker).next().is_none()) {
        return Ok(None);
    }
    let (cell, target) = (cell.clone(), read_by(target, cell, phase));
    within(run.hang_after, target, move |target| chill(target, &cell, phase)).map_err(|_| Invalid::Hung)
}

/// Drops the phase's files from the cache; the worst of what was found. A time limit may have kept some from being made.
fn chill(target: &dyn Target, cell: &Cell, phase: Phase) -> Option<Coldness> {
    let names = (0..cell.workers).flat_map(|worker| workload::files_of(&cell.workload, phase, worker));
    let state = |name: String| match target.chill(&name) {
        Err(TargetError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        state => Some(state.unwrap_or(Coldness::NotProvable)),
    };
    names.filter_map(state).max_by_key(|coldness| match coldness {
        Coldness::Proved => 0,
        Coldness::NotProvable => 1,
        Coldness::Contradicted => 2,
    })
}

/// Dirty pages below this do not disturb.
const CALM: u64 = 32 << 20;
const SETTLE_AT_MOST: Nanos = Nanos::from_millis(10_000);

/// Waits until the machine has written its dirty pages back; how long that took.
pub(crate) fn settle(clock: &Clock) -> Nanos {
    let start = clock.now();
    while process::dirty_bytes() > CALM && clock.now().since(start) < SETTLE_AT_MOST {
        thread::sleep(Nanos::from_millis(20).duration());
    }
    clock.now().since(start)
}

/// Why the figure must not be used, if so.
fn judge(sample: &Sample, target: &dyn Target, cell: &Cell, phase: Phase) -> Option<Invalid> {
    let fifth = sample.wall.0.saturating_mul(sample.workers.len() as u64) / 5;
    if !sample.errors.is_empty() {
        return Some(Invalid::Errors);
    }
    if sample.invalid.is_some() {
        return sample.invalid.clone();
    }
    if phase != Phase::Source
        && cell.access() == Some(Access::Direct)
        && target.description().direct == Direct::Buffered
    {
        return Some(Invalid::NotDirect);
    }
    if sample.coldness == Some(Coldness::Contradicted) {
        return Some(Invalid::WarmRead);
    }
    (sample.run_delay.0 > fifth).then_some(Invalid::Starved)
}

fn measure(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &Cell,
    phase: Phase,
    seed: Seed,
) -> Result<Sample, Invalid> {
    let gate = Arc::new(Gate::default());
    let wall = (cell.stonewall && !phase.is_setup()).then(Arc::default);
    let workers = cell.workers;
    let (sender, reports) = sync_channel(2 * workers as usize);
    let watch = Watch { reports, pulse: Arc::default(), clock: run.clock, hang_after: run.hang_after };
    for worker in 0..workers {
        let crew =
            (gate.clone(), sender.clone(), target.clone(), cell.clone(), watch.pulse.clone(), run.clock);
        let (wall, reached) = (wall.clone(), run.reached.of(target.as_ref(), worker));
        let work = move || {
            let (gate, sender, target, cell, pulse, clock) = crew;
            let (target, cell, pulse) = (target.as_ref(), &cell, &*pulse);
            let job = Job { target, cell, phase, seed, worker, pulse, clock, wall, reached };
            work(&job, &gate, &sender);
        };
        if let Err(error) = thread::Builder::new().name(format!("worker {worker}")).spawn(work) {
            gate.cancel();
            return Err(Invalid::Refused(format!("no thread for worker {worker}: {error}")));
        }
    }
    // The supervisor's own end of the channel would hide that all workers are gone.
    drop(sender);
    let filling = watch.all_ready(workers).inspect_err(|_| gate.cancel())?;
    let start = run.clock.now();
    let before = Usage::of_process();
    gate.open(start);
    let mut sample = Sample { filling, ..Sample::new(start) };
    for _ in 0..workers {
        watch.collect(&mut sample)?;
    }
    Usage { user: sample.user, system: sample.system } = Usage::of_process().since(before);
    Ok(sample)
}

/// The supervisor's view of the workers.
struct Watch {
    reports: Receiver<Report>,
    /// When any worker last completed an operation, to within [`BEAT`].
    pulse: Arc<AtomicU64>,
    clock: Clock,
    hang_after: Nanos,
}

/// A worker shows that it lives this often: rarely enough to cost nothing.
const BEAT: Nanos = Nanos::from_millis(50);

impl Watch {
    /// Waits for every worker's buffers to be filled; the longest time it took one.
    fn all_ready(&self, workers: u32) -> Result<Nanos, Invalid> {
        let mut filling = Nanos(0);
        for _ in 0..workers {
            match self.receive()? {
                Report::Ready(took) => filling = filling.max(took),
                Report::Refused(why) => return Err(Invalid::Refused(why)),
                Report::Done(..) => unreachable!("no worker passes the gate before it is opened"),
            }
        }
        Ok(filling)
    }

    fn collect(&self, sample: &mut Sample) -> Result<(), Invalid> {
        match self.receive()? {
            Report::Done(tally, run_delay) => {
                tally.add_to(sample);
                sample.run_delay += run_delay;
                Ok(())
            }
            Report::Refused(why) => Err(Invalid::Refused(why)),
            Report::Ready(_) => unreachable!("a worker is ready once"),
        }
    }

    /// The next report; hung if neither a report nor a completed operation came for too long.
    fn receive(&self) -> Result<Report, Invalid> {
        let asked = self.clock.now();
        loop {
            let seen = asked.max(Nanos(self.pulse.load(Ordering::Relaxed)));
            let left = (seen + self.hang_after).since(self.clock.now());
            if left == Nanos(0) {
                return Err(Invalid::Hung);
            }
            match self.reports.recv_timeout(left.duration()) {
                Ok(report) => return Ok(report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Invalid::Refused("a worker ended without a report".into()));
                }
            }
        }
    }
}

struct Job<'a> {
    target: &'a dyn Target,
    cell: &'a Cell,
    phase: Phase,
    seed: Seed,
    worker: u32,
    pulse: &'a AtomicU64,
    clock: Clock,
    /// What ends the phase for all workers, if one of them may.
    wall: Option<Arc<AtomicBool>>,
    reached: Arc<AtomicU64>,
}

/// What a later phase needs is laid out whole.
fn time_limit(cell: &Cell, phase: Phase) -> Option<Nanos> {
    cell.time_limit.filter(|_| !phase.is_setup())
}

/// A worker's thread. A report that nobody waits for any more is dropped.
fn work(job: &Job<'_>, gate: &Gate, reports: &SyncSender<Report>) {
    let last = run_worker(job, gate, reports).unwrap_or_else(Report::Refused);
    drop(reports.send(last));
}

fn run_worker(job: &Job<'_>, gate: &Gate, reports: &SyncSender<Report>) -> Result<Report, String> {
    let Job { cell, clock, .. } = *job;
    let options = Options { kind: cell.engine, depth: cell.depth, slots: workload::SLOTS, clock };
    let mut engine = job.target.engine(&options).map_err(|error| error.to_string())?;
    let begun = clock.now();
    let (arena, mut buffers) = Arena::shared_out(
        workload::buffer_count(cell, job.phase),
        workload::buffer_size(&cell.workload, job.phase),
    );
    let mut content = job.seed.named("filling").part(u64::from(job.worker)).stream();
    for buffer in &mut buffers {
        content.fill(buffer);
    }
    // Without the right to lock memory it is only slower, and the figure is that of this user.
    engine.register(&arena).ok();
    drop(reports.send(Report::Ready(clock.now().since(begun))));
    let start = gate.pass().ok_or("another worker could not start")?;
    let real = job.target.description().direct_alignment().is_some();
    let part = Part {
        worker: job.worker,
        workers: cell.workers,
        seed: job.seed,
        direct: workload::is_direct(cell.access(), real),
        stop_at: time_limit(cell, job.phase).map_or(Nanos::MAX, |limit| start + limit),
        reached: job.reached.clone(),
        buffers,
    };
    let mut workload = workload::build(&cell.workload, job.phase, part);
    if let Some(wall) = &job.wall {
        workload = Box::new(Stonewall::new(workload, wall.clone()));
    }
    let copies = cell.copies() && job.phase == Phase::Write;
    let mut tally = Tally::new(start);
    let (before, mut beat) = (process::run_delay(), start);
    Drive::new(workload.as_mut(), engine.as_mut()).run(|completion| {
        // The bytes of a copy count once, when they are written.
        if copies && completion.operation.kind == OpKind::Read {
            tally.observe_source(completion);
        } else {
            tally.observe(completion);
        }
        if completion.finished.since(beat) > BEAT {
            beat = completion.finished;
            job.pulse.store(beat.0, Ordering::Relaxed);
        }
    });
    Ok(Report::Done(Box::new(tally), process::run_delay().since(before)))
}
