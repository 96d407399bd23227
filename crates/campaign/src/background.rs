//! Load beside the measurements: a workload that workers repeat on the same target, or recorders of an
//! instrument. It works in a directory of its own, from before a measured phase begins until it has ended. Its
//! files are laid out once for each cell, before.

mod beside;
mod pause;
mod recorders;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread,
};

use nilometer_cluster::{Alone, CampaignRanks, Cluster};
use nilometer_model::{BackgroundDone, EngineKind, Invalid, Nanos, Phase, Sample, Seed};
use nilometer_plan::{BackgroundLoad, BufferData, OfferedRate, Volumes, WorkloadCell, WorkloadRun};
use nilometer_storage::{Target, TargetError, within};

use crate::{
    cold::chilled,
    load_share::LoadShare,
    supervise::{Crew, DoneSinceBeat, GLANCE, Heartbeat, Watch},
    task::{Reached, Run, Task},
    worker::muster,
};
pub(crate) use beside::LoadsBeside;
use pause::WorkClock;
use recorders::RecorderLoad;

/// Workers publish their counts this often, which bounds the error of the work done within a phase.
const BEAT: Nanos = Nanos::from_millis(1);
/// How often `awaited` checks if the load has begun.
const LOOK_EVERY: Nanos = Nanos::from_millis(2);

/// The loads of a cell, by the numbers of their targets; a target without one has no entry.
#[derive(Debug, Default)]
pub(crate) struct Loads(BTreeMap<usize, Load>);

/// A load on a target.
#[derive(Debug)]
enum Load {
    Workers(Box<WorkerLoad>),
    Recorders(Box<RecorderLoad>),
}

/// A workload on a target.
#[derive(Debug)]
struct WorkerLoad {
    worker: LoadWorker,
    /// The result of its thread, while it works.
    ending: Option<Receiver<Result<(), Invalid>>>,
    /// The counts when it was last started.
    before: DoneSinceBeat,
    /// True if it has worked since its files were laid out.
    is_used: bool,
}

/// The context of a load's thread.
#[derive(Debug, Clone)]
struct LoadWorker {
    /// The run, with a stop flag of its own.
    run: Run,
    target: [(usize, Arc<dyn Target>); 1],
    cell: WorkloadRun,
    prepared: Vec<Phase>,
    measured: Vec<Phase>,
    seed: Seed,
    share: LoadShare,
    pulse: Arc<Heartbeat>,
    work: Arc<WorkClock>,
}

/// The load that this process lays out, and its share of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedLoad<'a> {
    pub(crate) load: &'a BackgroundLoad,
    pub(crate) share: &'a LoadShare,
    pub(crate) seed: Seed,
    /// The processes of the campaign.
    pub(crate) cluster: &'a dyn Cluster,
}

impl Loads {
    /// Lays out the files of this process's share of a load on a target.
    fn prepare(
        &mut self,
        run: &Run,
        number: usize,
        target: &Arc<dyn Target>,
        shared: SharedLoad<'_>,
    ) -> Result<(), Invalid> {
        let SharedLoad { load, share, .. } = shared;
        let prepared = match (load.recording(), load.workload()) {
            (Some(_), _) if share.instruments.is_empty() => return Ok(()),
            (Some(instruments), _) => {
                Load::Recorders(Box::new(RecorderLoad::new(run, target, instruments, shared)))
            }
            (None, Some(workload)) if !load.is_none() => {
                let worker = LoadWorker::new(run, number, target, workload, shared);
                worker.prepare(run)?;
                let before = DoneSinceBeat::default();
                Load::Workers(Box::new(WorkerLoad { worker, ending: None, before, is_used: false }))
            }
            _ => return Ok(()),
        };
        self.0.insert(number, prepared);
        Ok(())
    }

    /// Lays out the files of this process's share on each of these targets that has a place for it. Returns, for
    /// each target, why that failed, with the machine; `None` if it did not.
    pub(crate) fn prepare_all(
        &mut self,
        run: &Run,
        places: &[Option<Arc<dyn Target>>],
        targets: &[usize],
        shared: SharedLoad<'_>,
    ) -> Vec<Option<Invalid>> {
        let prepare = |&number: &usize| {
            let place = places.get(number)?.as_ref()?;
            self.prepare(run, number, place, shared).err().map(|why| on_machine(why, shared.cluster))
        };
        targets.iter().map(prepare).collect()
    }

    /// Lays out again any files that were half done when the loads last ended. Returns the reasons of those
    /// that fail.
    pub(crate) fn renew(&mut self, run: &Run) -> BTreeMap<usize, Invalid> {
        let renewed = self.0.iter_mut().map(|(number, load)| (*number, load.renew(run)));
        renewed.filter_map(|(number, renewed)| Some((number, renewed.err()?))).collect()
    }

    /// Starts all loads, and waits until each has done something. Returns the reasons of those that don't.
    pub(crate) fn begin(&mut self) -> BTreeMap<usize, Invalid> {
        let begun: Vec<_> = self.0.iter_mut().map(|(number, load)| (*number, load.begin())).collect();
        let refused = begun.into_iter().filter_map(|(number, begun)| Some((number, begun.err()?)));
        refused
            .chain(self.0.iter_mut().filter_map(|(number, load)| Some((*number, load.awaited().err()?))))
            .collect()
    }

    /// The work of a load so far; `None` if there is none.
    pub(crate) fn done(&self, number: usize) -> Option<BackgroundDone> {
        Some(match self.0.get(&number)? {
            Load::Workers(load) => load.done(),
            Load::Recorders(load) => load.done(),
        })
    }

    /// The work of all loads so far, by the numbers of their targets.
    fn all_done(&self) -> BTreeMap<usize, BackgroundDone> {
        self.0.keys().filter_map(|number| Some((*number, self.done(*number)?))).collect()
    }

    /// Ends all loads. Returns the reasons of those that had ended before, or don't end.
    pub(crate) fn end(&mut self) -> BTreeMap<usize, Invalid> {
        for load in self.0.values() {
            match load {
                Load::Workers(load) => load.stop(),
                Load::Recorders(load) => load.stop(),
            }
        }
        self.0.iter_mut().filter_map(|(number, load)| Some((*number, load.ended().err()?))).collect()
    }

    /// Removes the files of the loads.
    pub(crate) fn clear(self, hang_after: Nanos) {
        for load in self.0.into_values() {
            let target = match &load {
                Load::Workers(load) => &load.worker.target[0].1,
                Load::Recorders(load) => load.target(),
            };
            // Any files left are removed with the directory, at the end.
            drop(within(hang_after, target, |target| target.clear()));
        }
    }
}

impl Load {
    fn renew(&mut self, run: &Run) -> Result<(), Invalid> {
        match self {
            Load::Workers(load) => load.renew(run),
            Load::Recorders(load) => load.renew(),
        }
    }

    fn begin(&mut self) -> Result<(), Invalid> {
        match self {
            Load::Workers(load) => load.begin(),
            Load::Recorders(load) => load.begin(),
        }
    }

    fn awaited(&mut self) -> Result<(), Invalid> {
        match self {
            Load::Workers(load) => load.awaited(),
            Load::Recorders(load) => load.awaited(),
        }
    }

    fn ended(&mut self) -> Result<(), Invalid> {
        match self {
            Load::Workers(load) => load.ended(),
            Load::Recorders(load) => load.ended(),
        }
    }
}

impl WorkerLoad {
    fn done(&self) -> BackgroundDone {
        let done = self.worker.pulse.done();
        BackgroundDone {
            wall: self.worker.work.worked(self.worker.run.clock.now()),
            bytes: done.bytes,
            operations: done.operations,
            latency_sum: done.latency_sum,
            errors: done.errors,
            frames: None,
        }
    }

    fn stop(&self) {
        self.worker.run.stop.store(true, Ordering::Relaxed);
        // Its supervisor checks for the end only a few times a second.
        self.worker.pulse.ceasing().store(true, Ordering::Relaxed);
    }

    fn renew(&mut self, run: &Run) -> Result<(), Invalid> {
        let is_left = std::mem::take(&mut self.is_used) && !self.worker.is_repeatable();
        self.worker.pulse.ceasing().store(false, Ordering::Relaxed);
        if is_left { self.worker.lay_out_anew(run) } else { Ok(()) }
    }

    fn begin(&mut self) -> Result<(), Invalid> {
        let worker = self.worker.clone();
        worker.run.stop.store(false, Ordering::Relaxed);
        worker.pulse.ceasing().store(false, Ordering::Relaxed);
        let (sender, ending) = sync_channel(1);
        self.ending = Some(ending);
        self.before = worker.pulse.done();
        self.is_used = true;
        // The receiver of the result may be gone.
        let work = move || drop(sender.send(worker.work_on()));
        let spawned = thread::Builder::new().name("background".into()).spawn(work);
        spawned.map(drop).map_err(|error| not_lasting(&format!("no thread for it: {error}")))
    }

    /// Waits until the load has done something.
    fn awaited(&mut self) -> Result<(), Invalid> {
        let LoadWorker { run, pulse, .. } = &self.worker;
        let before = self.before;
        let began = run.clock.now();
        loop {
            let now = pulse.done();
            if now.bytes + now.operations > before.bytes + before.operations || now.errors > before.errors {
                return Ok(());
            }
            match self.ending.as_ref().map(|ending| ending.recv_timeout(LOOK_EVERY.duration())) {
                Some(Err(RecvTimeoutError::Timeout)) if run.clock.now().since(began) < run.hang_after => {}
                Some(Ok(ended)) => {
                    self.ending = None;
                    return ended.and(Err(not_lasting("it had nothing to do")));
                }
                _ => return Err(not_lasting("it hangs")),
            }
        }
    }

    /// Waits for the end of the load. Returns an error with the reason if it had ended before.
    fn ended(&mut self) -> Result<(), Invalid> {
        let Some(ending) = self.ending.take() else { return Ok(()) };
        // Its own supervisor gives up a worker that hangs.
        let patience = self.worker.run.hang_after + GLANCE + GLANCE;
        match ending.recv_timeout(patience.duration()) {
            Ok(ended) => ended,
            Err(_) => Err(not_lasting("it hangs")),
        }
    }
}

impl SharedLoad<'_> {
    /// The seed of this process's share.
    fn own_seed(&self) -> Seed {
        let seed = self.seed.named("background");
        if self.share.rank() == 0 { seed } else { seed.named("rank").part(self.share.rank().into()) }
    }
}

/// The reason why a load does not work, with the machine if there are several processes.
fn on_machine(why: Invalid, cluster: &dyn Cluster) -> Invalid {
    match why {
        Invalid::NoBackground(why) if cluster.size() > 1 => {
            not_lasting(&format!("{}: {why}", cluster.node()))
        }
        why => why,
    }
}

/// The words for an error of a sample. A full disk may show as a short write only.
fn error_words(errno: i32) -> String {
    match errno {
        Sample::SHORT => "a write was shorter than requested".to_owned(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}

fn not_lasting(why: &str) -> Invalid {
    Invalid::NoBackground(why.to_owned())
}

/// The values that the phases of a pass share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    reached: &'a Reached,
    pulse: &'a Arc<Heartbeat>,
}

impl LoadWorker {
    fn new(
        run: &Run,
        number: usize,
        target: &Arc<dyn Target>,
        workload: &WorkloadCell,
        shared: SharedLoad<'_>,
    ) -> Self {
        let SharedLoad { load, share, .. } = shared;
        LoadWorker {
            run: Run { stop: Arc::new(AtomicBool::new(false)), ..run.clone() },
            target: [(number, target.clone())],
            cell: cell(load, workload),
            prepared: load.prepared(),
            measured: load.measured(),
            seed: shared.own_seed(),
            share: share.clone(),
            pulse: Arc::new(Heartbeat::every(BEAT)),
            work: Arc::default(),
        }
    }

    /// Runs the preparing phases, each once and as fast as possible, unless the campaign ends.
    fn prepare(&self, run: &Run) -> Result<(), Invalid> {
        let reached = self.reached();
        let cell = WorkloadRun { offered: OfferedRate::None, stonewall: false, ..self.cell.clone() };
        // Laying out is not part of the load's work.
        let pulse = Arc::default();
        for phase in &self.prepared {
            if run.is_over() {
                break;
            }
            self.pass(run, &cell, *phase, Shared { reached: &reached, pulse: &pulse })?;
        }
        Ok(())
    }

    /// Works until it is stopped.
    fn work_on(&self) -> Result<(), Invalid> {
        let reached = self.reached();
        loop {
            for phase in &self.measured {
                self.pass(&self.run, &self.cell, *phase, Shared { reached: &reached, pulse: &self.pulse })?;
                if self.run.is_over() {
                    return Ok(());
                }
            }
            if !self.is_repeatable() {
                self.lay_out_anew(&self.run)?;
            }
            if self.run.is_over() {
                return Ok(());
            }
        }
    }

    fn is_repeatable(&self) -> bool {
        self.measured.iter().all(|phase| phase.is_repeatable())
    }

    fn lay_out_anew(&self, run: &Run) -> Result<(), Invalid> {
        let [(_, target)] = &self.target;
        let sound = |error: TargetError| not_lasting(&error.to_string());
        if self.cell.copies() {
            let cleared = self.apart(run, || within(run.hang_after, target, |target| target.clear_copies()));
            return cleared.and_then(|cleared| cleared).map_err(sound);
        }
        let cleared = within(run.hang_after, target, |target| target.clear());
        cleared.and_then(|cleared| cleared).map_err(sound)?;
        self.prepare(run)
    }

    /// Does something that is no work of the load. The clock of a copy stands still meanwhile.
    fn apart<T>(&self, run: &Run, done: impl FnOnce() -> T) -> T {
        if !self.cell.copies() {
            return done();
        }
        self.work.pause(run.clock.now());
        let result = done();
        self.work.go_on(run.clock.now());
        result
    }

    fn reached(&self) -> Reached {
        Reached::new(&[self.target[0].0], self.cell.workers)
    }

    /// Runs a phase, with workers that begin together.
    fn pass(&self, run: &Run, cell: &WorkloadRun, phase: Phase, shared: Shared<'_>) -> Result<(), Invalid> {
        let Shared { reached, pulse } = shared;
        let [(number, target)] = &self.target;
        let ranks = CampaignRanks::alone();
        let (targets, seed, attempt) = (&self.target, self.seed, 0);
        let cluster = &Alone;
        let share = Some(&self.share);
        let task = Task { targets, cell, phase, seed, attempt, reached, cluster, ranks: &ranks, share };
        // The caches of the whole machine are also those of the measurement.
        if !task.drops_caches() {
            self.apart(run, || chilled(run, *number, target, &task))?;
        }
        let (sender, reports) = sync_channel(2 * cell.workers as usize);
        let crews = vec![Crew::with(cell.workers, pulse.clone())];
        let mut watch = Watch { run, reports, crews, tell: &mut |_| {} };
        muster(run, &mut watch.crews[0], 0, &task, &sender);
        drop(sender);
        watch.await_all(Nanos::MAX, &mut |_, _| {});
        let begun = run.clock.now();
        watch.crews[0].gate.open(begun);
        watch.await_all(begun, &mut |_, _| {});
        let sample = &watch.crews[0].sample;
        // A worker that is stopped leaves files half done, and may find them in that state.
        if run.is_over() {
            return Ok(());
        }
        match (&sample.invalid, sample.errors.keys().next_back()) {
            (Some(why), _) if !watch.crews[0].is_sound() => Err(not_lasting(&why.to_string())),
            (_, Some(errno)) => {
                Err(not_lasting(&format!("operations failed in {}: {}", phase.name(), error_words(*errno))))
            }
            _ => Ok(()),
        }
    }
}

/// The cell of a load. When one worker is done with its part all begin again, so that none is idle.
fn cell(load: &BackgroundLoad, workload: &WorkloadCell) -> WorkloadRun {
    WorkloadRun {
        workers: load.workers,
        lone_worker: None,
        nodes: None,
        processes: None,
        engine: EngineKind::Sync,
        mpi_io: None,
        depth: 1,
        time_limit: None,
        stonewall: true,
        volumes: Volumes::Alone,
        siblings: None,
        stripe_count: None,
        stripe_size: None,
        replicas: None,
        pool: None,
        settings: Vec::new(),
        data: BufferData::Random,
        offered: load.offered,
        background: None,
        workload: workload.clone(),
    }
}

#[cfg(test)]
mod tests {
    use nilometer_storage::Errno;

    use super::*;

    #[test]
    fn a_short_write_is_no_success() {
        assert_eq!(error_words(Sample::SHORT), "a write was shorter than requested");
        assert!(error_words(Errno::ENOSPC.0).starts_with("No space left on device"));
    }
}
