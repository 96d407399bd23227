//! A process of a campaign that is not rank 0. It decides nothing, and has no record.

use std::{
    sync::{Arc, atomic::AtomicBool, mpsc::sync_channel},
    thread,
};

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision, RankReport};
use nilometer_model::{Nanos, Phase, Seed, TargetAddress};
use nilometer_network::{say_reachable, take_part};
use nilometer_plan::{AppliedSetting, BackgroundLoad, RecordingRun, WorkloadRun};
use nilometer_storage::{Clock, Target, process::daemons, within};

use crate::{
    background::{Loads, SharedLoad},
    baseline::Baseline,
    ingest::{Job, Pass, RecordingRanks, run_ingest},
    join::{Describe, JoinedPlaces, joined, own_clients},
    load_share::LoadShare,
    machine_settings::MachineSettings,
    machines::describe_machine,
    on_machines::{restore, settled},
    parallel_files::{is_stuck, own_mpi_io, stuck},
    phase::run_phase,
    surroundings::{Surroundings, first_look},
    task::{Reached, Run, Task},
};

/// Takes part in a campaign that rank 0 leads, to its end. Then it leaves the targets, before rank 0 removes
/// its files there. `version` must be the same as that of rank 0.
///
/// If this rank can't join, it reports the reason to rank 0, which ends the campaign before it begins.
///
/// Rank 0 decides when the campaign is over. `stop` ends a phase on this rank alone, which then counts for
/// none.
///
/// # Errors
/// If the storage keeps this process from continuing, with the reason in words. The campaign ends with this
/// process, after rank 0 had some time to report.
pub fn follow(
    cluster: &dyn Cluster,
    version: &str,
    describe: Describe<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<(), String> {
    cluster.gather(RankReport::Present(cluster.node()));
    match begun(cluster) {
        ClusterDecision::Join { version: theirs, targets, hang_after } => {
            let all = joined(&theirs, version, cluster.rank(), &targets, describe);
            let all = all.map_err(|why| format!("{}: {why}", cluster.node()));
            let report = all.as_ref().map(|all| own_clients(cluster, &all.targets));
            let report = report.map_err(Clone::clone);
            cluster.gather(RankReport::Joined(report));
            let all = all.unwrap_or_default();
            match cluster.broadcast(None) {
                ClusterDecision::Begun(ranks) => {
                    follow_joined(cluster, all, &ranks, hang_after, stop.clone())?;
                }
                _ => leave(all, hang_after),
            }
        }
        ClusterDecision::End => {}
        decision => unreachable!("a campaign begins before {decision:?}"),
    }
    cluster.barrier();
    Ok(())
}

/// Returns rank 0's first decision, after any exchanges that rank 0 needs to make it.
fn begun(cluster: &dyn Cluster) -> ClusterDecision {
    loop {
        match cluster.broadcast(None) {
            ClusterDecision::MpiIo => drop(cluster.gather(own_mpi_io(cluster))),
            ClusterDecision::Reach => say_reachable(cluster),
            decision => return decision,
        }
    }
}

/// Takes part with all targets, in the order of the plan. Rank 0 measures none that this rank has not joined.
fn follow_joined(
    cluster: &dyn Cluster,
    places: JoinedPlaces,
    ranks: &CampaignRanks,
    hang_after: Nanos,
    stop: Arc<AtomicBool>,
) -> Result<(), String> {
    let clock = Clock::start();
    let run = Run { clock, hang_after, stop, ends: Nanos::MAX, usual: Baseline::now() };
    let mut follower = Follower::new(cluster, places, ranks, run);
    loop {
        match cluster.broadcast(None) {
            ClusterDecision::Repeat { run, seed, attempt, targets } => {
                follower.begin(*run, seed, attempt, &targets);
            }
            ClusterDecision::Load { load, seed, targets, left } => {
                follower.run.ends = clock.now() + left;
                follower.prepare_load(&load, seed, &targets);
            }
            ClusterDecision::Apply { setting, target } => follower.apply(&setting, target),
            ClusterDecision::Undo { setting, target } => follower.undo(&setting, target),
            ClusterDecision::Restore => follower.restore(),
            ClusterDecision::Unload => std::mem::take(&mut follower.loads).clear(hang_after),
            ClusterDecision::Phase { phase, targets, left } => {
                follower.run.ends = clock.now() + left;
                follower.take(phase, &targets)?;
            }
            ClusterDecision::Record { cells, attempt, target, left } => {
                follower.run.ends = clock.now() + left;
                follower.record(&cells, attempt, target);
            }
            ClusterDecision::ReadBack { cell, seed, attempt, target, left } => {
                follower.run.ends = clock.now() + left;
                follower.read_back(*cell, seed, attempt, target);
            }
            ClusterDecision::Describe => describe_machine(cluster, ranks),
            ClusterDecision::Reach => say_reachable(cluster),
            ClusterDecision::Traffic(traffic) => {
                take_part(cluster, clock, &traffic);
                follower.surroundings.pass(&clock);
            }
            ClusterDecision::MpiIo
            | ClusterDecision::Join { .. }
            | ClusterDecision::Begun(_)
            | ClusterDecision::Begin(_)
            | ClusterDecision::Closed(_)
            | ClusterDecision::Send(_)
            | ClusterDecision::Sent(_)
            | ClusterDecision::Share(_)
            | ClusterDecision::Cancel
            | ClusterDecision::Connect(_) => {
                unreachable!("the campaign has begun, but a phase got a decision from before it")
            }
            ClusterDecision::End => break,
        }
    }
    drop(follower.loads);
    leave(follower.places, hang_after);
    Ok(())
}

/// Leaves the targets. Waits at most `hang_after` for one that hangs.
fn leave(places: JoinedPlaces, hang_after: Nanos) {
    let (left, is_left) = sync_channel(1);
    let leaves = move || {
        drop(places);
        left.send(()).ok();
    };
    // If no thread can be started, the end of this process leaves them.
    if thread::Builder::new().name("leave".into()).spawn(leaves).is_ok() {
        is_left.recv_timeout(hang_after.duration()).ok();
    }
}

struct Follower<'a> {
    cluster: &'a dyn Cluster,
    places: JoinedPlaces,
    ranks: &'a CampaignRanks,
    run: Run,
    surroundings: Surroundings,
    /// The shares of the current repeat's load.
    loads: Loads,
    /// The settings that are in force on this machine.
    settings: MachineSettings,
    repeat: Option<Repeat>,
}

/// The current repeat of a cell.
struct Repeat {
    cell: WorkloadRun,
    seed: Seed,
    attempt: u32,
    reached: Reached,
}

impl<'a> Follower<'a> {
    fn new(cluster: &'a dyn Cluster, places: JoinedPlaces, ranks: &'a CampaignRanks, run: Run) -> Self {
        let served_by = |target: &Option<Arc<dyn Target>>| {
            target.as_ref().map_or_else(Vec::new, |target| daemons(target.description()))
        };
        // In a long campaign rank 0 looks for longer. This rank waits for it meanwhile, and counts the wait as a
        // gap too.
        let surroundings = Surroundings::look(
            &run.clock,
            places.targets.iter().map(served_by).collect(),
            first_look(Nanos(0)),
        );
        Follower {
            cluster,
            places,
            ranks,
            run,
            surroundings,
            loads: Loads::default(),
            settings: MachineSettings::default(),
            repeat: None,
        }
    }

    fn begin(&mut self, cell: WorkloadRun, seed: Seed, attempt: u32, targets: &[usize]) {
        let reached = Reached::new(targets, cell.workers);
        // Rank 0 clears the targets. The sources of copies are of this process alone.
        for target in self.places.targets.iter().flatten() {
            if let Some(source) = target.source() {
                // A source that can't be cleared holds old files only: those of this repeat have other names.
                drop(within(self.run.hang_after, source, |source| source.clear()));
            }
        }
        self.repeat = Some(Repeat { cell, seed, attempt, reached });
    }

    /// The address of a target in the plan.
    fn address(&self, number: usize) -> TargetAddress {
        let target = self.places.targets[number].as_ref().expect("this rank joined the targets of rank 0");
        target.description().address.clone()
    }

    /// Applies a setting if this rank is the first on its machine, and reports the outcome.
    fn apply(&mut self, setting: &AppliedSetting, target: usize) {
        let at = self.address(target);
        settled(self.cluster, self.ranks, |node| self.settings.apply(node, setting, &at).into());
    }

    /// Takes a setting back if this rank has applied it, and reports the outcome.
    fn undo(&mut self, setting: &AppliedSetting, target: usize) {
        let at = self.address(target);
        settled(self.cluster, self.ranks, |_| self.settings.undo(setting, &at).into());
    }

    /// Takes back the settings that killed campaigns left on this machine, if this rank is the first there.
    fn restore(&self) {
        settled(self.cluster, self.ranks, restore);
    }

    /// Lays out this rank's share of a load, and agrees with the others if that worked.
    fn prepare_load(&mut self, load: &BackgroundLoad, seed: Seed, targets: &[usize]) {
        let cluster = self.cluster;
        let share = LoadShare::of(cluster.rank(), self.ranks, load);
        let shared = SharedLoad { load, share: &share, seed, cluster };
        let failed = self.loads.prepare_all(&self.run, &self.places.loads, targets, shared);
        cluster.gather(RankReport::Ready(failed));
    }

    /// Records this rank's part of these cells.
    fn record(&mut self, cells: &[(RecordingRun, Seed)], attempt: u32, number: usize) {
        let target = self.places.targets[number].clone().expect("this rank joined the targets of rank 0");
        let together = RecordingRanks { cluster: self.cluster, ranks: self.ranks, attempt };
        let pass = Pass::Whole;
        let job = Job { number, target: &target, archive: None, cells, pass, together };
        run_ingest(&self.run, &mut self.surroundings, &job, &mut self.loads, &mut |_| {});
    }

    /// Reads this rank's part of a cell's recording.
    fn read_back(&mut self, cell: RecordingRun, seed: Seed, attempt: u32, number: usize) {
        let target = self.places.targets[number].clone().expect("this rank joined the targets of rank 0");
        let together = RecordingRanks { cluster: self.cluster, ranks: self.ranks, attempt };
        let cells = [(cell, seed)];
        let job = Job { number, target: &target, archive: None, cells: &cells, pass: Pass::Whole, together };
        let recorded = job.recorded_files(0).expect("rank 0 reads a recording only if its cell asks for it");
        recorded.read(&self.run, &mut self.surroundings);
    }

    /// Runs a phase. Returns an error if this process can't continue after it.
    fn take(&mut self, phase: Phase, targets: &[usize]) -> Result<(), String> {
        let repeat = self.repeat.as_ref().expect("a repeat comes before its phases");
        let Repeat { cell, reached, .. } = repeat;
        let known = &self.places.targets;
        let joined = |number: usize| known[number].clone().expect("this rank joined the targets of rank 0");
        let targets: Vec<_> = targets.iter().map(|&number| (number, joined(number))).collect();
        let Repeat { seed, attempt, .. } = *repeat;
        let Follower { cluster, ranks, .. } = *self;
        let share = None;
        let task = Task { targets: &targets, cell, phase, seed, attempt, reached, cluster, ranks, share };
        let mut none = Loads::default();
        let loads = if phase.is_setup() { &mut none } else { &mut self.loads };
        run_phase(&self.run, &mut self.surroundings, &task, loads, &mut |_| {});
        if !is_stuck(&task) {
            return Ok(());
        }
        // The launcher ends all processes when this one ends: give rank 0 time to report first.
        thread::sleep(self.run.hang_after.duration());
        Err(stuck(&task))
    }
}
