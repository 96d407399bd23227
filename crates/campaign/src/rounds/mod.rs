//! The campaign: repeats are rounds. Each round runs all cells on all targets in an order drawn from the seed;
//! drift therefore affects all alike. Every sample is in the record before the next phase begins.

mod ceiling;
mod keep;
mod layout;
mod loads;
mod mpi_io;
mod network;
mod precise;
mod progress;
mod recordings;
mod settings;
mod spoilt;

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision};
use nilometer_model::{Invalid, Nanos, Phase, Sample, Seed, TargetDescription};
use nilometer_network::NetworkLead;
use nilometer_plan::{EstimatedSpeed, Event, Measurement, PlannedCampaign, WorkloadRun};
use nilometer_record::{Record, RecordError};
use nilometer_storage::{Calendar, Clock, Target, process::daemons, target::TargetError, within};

use crate::{
    background::Loads,
    baseline::Baseline,
    begin::TargetPlaces,
    calendar::Watched,
    machine_settings::MachineSettings,
    parallel_files::is_stuck,
    phase::run_phase,
    precision::MeasuredRates,
    remaining::{Planned, Remaining},
    supervise::SoFar,
    surroundings::{Surroundings, first_look},
    task::{Reached, Run, Task},
    turns::{self, Done, ScheduledRepeat, Trials, is_broken},
};
use ceiling::ceiling;
pub use progress::{Now, Progress};
use spoilt::{Budget, Taken};

/// A resolved plan with its targets and its record.
#[derive(Debug)]
pub struct Campaign {
    /// The plan and its targets.
    pub resolved: PlannedCampaign,
    /// The targets in the plan's order; `None` for one that is left out from the start.
    pub targets: Vec<Option<Arc<dyn Target>>>,
    /// The archive to which recordings are copied while they are made, if the plan asks for it.
    pub archive: Option<Arc<dyn Target>>,
    /// The places in which loads work beside the measurements: of each rank, in the order of targets; `None` for
    /// a target without a load.
    pub load_places: Vec<TargetPlaces>,
    /// The record that samples go into.
    pub record: Record,
    /// The keys of the samples in the record, each with the reason why it must not be used, if there is one.
    pub done: Done,
    /// The trials of searches that the record has.
    pub trials: Trials,
    /// The rates of workloads that the record has.
    pub rates: MeasuredRates,
    /// Another thread sets it to end the campaign within a second.
    pub stop: Arc<AtomicBool>,
    /// The processes that measure together; this one is rank 0.
    pub cluster: Arc<dyn Cluster>,
    /// The nodes that the processes run on, see [`crate::joined_by_all`].
    pub ranks: CampaignRanks,
    /// The stages of the plan that measure the network, see [`crate::network_stages`].
    pub network: Vec<NetworkLead>,
}

/// A campaign that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The campaign could not write the record.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A campaign that came to its end, or was stopped.
#[derive(Debug)]
pub struct Ran {
    /// The record, with all samples.
    pub record: Record,
    /// The number of repeats of cells that were not measured, on targets that were not left out.
    pub missing: usize,
}

type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// The state that changes while a campaign runs.
struct State<'a> {
    run: Run,
    surroundings: Surroundings,
    calendar: Watched,
    left_out: Vec<bool>,
    remaining: Remaining,
    /// The time that repetitions of spoilt turns may take.
    budget: Budget,
    /// The turn that runs; `None` between turns, and while a spoilt one is repeated.
    turn: Option<ScheduledRepeat>,
    /// The time at which the turn began.
    turn_begun: Nanos,
    /// The number of turns done, this one included, and the number of all.
    place: (usize, usize),
    /// The notes on layouts so far; a note that is the same in each round is made once.
    noted: Vec<String>,
    /// The number of repeats that several processes began.
    attempts: u32,
    /// The settings in force on this machine, if there are several processes.
    settings: MachineSettings,
    tell: Tell<'a>,
}

impl Campaign {
    /// Runs all turns that are not done yet. Samples record the faults of a target, and the other targets go
    /// on; only a fault of the record ends the campaign.
    pub fn run(self, tell: Tell<'_>) -> Result<Ran, CampaignError> {
        let cluster = self.cluster.clone();
        let held = self.targets.clone();
        let places = self.load_places.clone();
        let ran = self.run_rounds(tell);
        cluster.broadcast(Some(ClusterDecision::End));
        // Rank 0 removes its files from the targets after the other ranks have left them.
        cluster.barrier();
        drop((held, places));
        ran
    }

    fn run_rounds(mut self, tell: Tell<'_>) -> Result<Ran, CampaignError> {
        let turns = turns::turns(&self.resolved);
        let mut state = self.begin(&turns, tell);
        let plan = self.resolved.plan.clone();
        self.note_machines()?;
        self.restore_machines(&mut state)?;
        for round in spoilt::rounds(&plan, &turns) {
            let number = round.first().map_or(0, |turn| turn.repeat.min(self.last_round()));
            self.take_network(&mut state, number)?;
            let taken = self.take_round(&mut state, &turns, round)?;
            self.take_again(&mut state, &taken)?;
        }
        self.take_network(&mut state, self.last_round())?;
        self.take_until_precise(&mut state, &turns)?;
        let asked: Vec<_> = turns.iter().filter(|turn| !turns::is_ceiling(&self.resolved, turn)).collect();
        let all = asked.len() + self.network_planned();
        let missing = asked.into_iter().filter(|turn| !self.is_done(&state, turn)).count();
        let missing = missing + self.network_missing();
        if missing > 0 && state.run.clock.now() >= state.run.ends {
            let limit = self.resolved.plan.time_limit;
            self.note(
                &mut state,
                &format!(
                    "the time limit of {limit} was reached: {missing} of {all} measurements are missing"
                ),
            )?;
        }
        Ok(Ran { record: self.record, missing })
    }

    /// Returns true if nothing of a turn is left to measure on the targets in use.
    fn is_done(&self, state: &State<'_>, turn: &ScheduledRepeat) -> bool {
        let turn = ScheduledRepeat { targets: state.in_use(&turn.targets), ..turn.clone() };
        turn.is_done(&self.resolved.plan, &self.done, &self.trials)
    }

    /// Measures the turns of a round that are not done yet, unless the campaign ends before.
    fn take_round(
        &mut self,
        state: &mut State<'_>,
        turns: &[ScheduledRepeat],
        round: &[ScheduledRepeat],
    ) -> Result<Vec<Taken>, CampaignError> {
        let mut taken = Vec::new();
        for planned in round {
            if planned.is_done(&self.resolved.plan, &self.done, &self.trials) {
                continue;
            }
            if state.run.is_over() {
                break;
            }
            let before = turns.element_offset(planned).unwrap_or(turns.len() - 1);
            state.place = (before + 1, turns.len());
            state.turn = Some(planned.clone());
            state.turn_begun = state.run.clock.now();
            let turn = ScheduledRepeat { targets: state.in_use(&planned.targets), ..planned.clone() };
            let left_out = turn.targets.is_empty();
            self.take(state, &turn)?;
            let took = state.run.clock.now().since(state.turn_begun);
            state.remaining.done(planned, (!left_out).then_some(took));
            state.turn = None;
            let spoilt = spoilt::spoilt(&turn, &self.resolved.plan, &self.done).is_some();
            state.budget.plan(turn.cell, took, spoilt);
            taken.push(Taken { turn, took });
        }
        Ok(taken)
    }

    fn begin<'a>(&self, turns: &[ScheduledRepeat], tell: Tell<'a>) -> State<'a> {
        let plan = &self.resolved.plan;
        let clock = Clock::start();
        let hang_after = plan.hang_after;
        let stop = self.stop.clone();
        let served_by = |(number, target): (usize, &Option<Arc<dyn Target>>)| match target {
            Some(_) => self.resolved.described(number).iter().flat_map(daemons).collect(),
            None => Vec::new(),
        };
        let left: Vec<ScheduledRepeat> =
            turns.iter().filter(|turn| !turn.is_done(plan, &self.done, &self.trials)).cloned().collect();
        let expected = plan.estimate(self.resolved.targets.len(), EstimatedSpeed::ASSUMED).time;
        State {
            run: Run { clock, hang_after, stop, ends: clock.now() + plan.time_limit, usual: Baseline::now() },
            surroundings: Surroundings::look(
                &clock,
                self.targets.iter().enumerate().map(served_by).collect(),
                first_look(expected),
            ),
            calendar: Watched::begin(),
            left_out: self.targets.iter().map(Option::is_none).collect(),
            remaining: Remaining::new(&left, |turn| self.planned(turn)),
            budget: Budget::default(),
            turn: None,
            turn_begun: clock.now(),
            place: (0, turns.len()),
            noted: Vec::new(),
            attempts: 0,
            settings: MachineSettings::default(),
            tell,
        }
    }

    /// The expected time of a turn by the plan.
    fn planned(&self, turn: &ScheduledRepeat) -> Option<Planned> {
        let plan = &self.resolved.plan;
        match &plan.cells[turn.cell].measurement {
            Measurement::Workload(run) => {
                let is_ceiling = turns::is_ceiling(&self.resolved, turn);
                let speed = if is_ceiling { EstimatedSpeed::UTMOST } else { EstimatedSpeed::ASSUMED };
                Some(Planned::workload(plan.time_of(run, speed), is_ceiling))
            }
            Measurement::Recording(_) => {
                let members = turns::company(plan, turn.cell).into_iter();
                members.map(|(_, run)| Planned::recording(run)).max_by_key(|planned| planned.time)
            }
            Measurement::Imported(_) => None,
        }
    }

    /// Measures one cell, all its phases, on the turn's targets. Returns early if the campaign ends first.
    fn take(&mut self, state: &mut State<'_>, turn: &ScheduledRepeat) -> Result<(), CampaignError> {
        match &self.resolved.plan.cells[turn.cell].measurement {
            Measurement::Recording(run) if run.goal.searches() => self.take_search(state, turn)?,
            Measurement::Recording(_) => self.take_recording(state, turn)?,
            // A record may come from anybody. Nothing is measured of an imported cell, whatever its plan
            // contains.
            Measurement::Imported(_) => {}
            Measurement::Workload(run) => {
                let is_ceiling = turns::is_ceiling(&self.resolved, turn);
                let elements = self.resolved.at_once(turn.cell).len();
                let run = if is_ceiling { ceiling(run, elements) } else { run.clone() };
                self.take_with_settings(state, turn, &run)?;
            }
        }
        for target in state.in_use(&turn.targets) {
            if let Err(error) = self.clear(state, turn, target) {
                self.leave_out(state, target, &error.to_string())?;
            }
        }
        Ok(())
    }

    fn seed(&self, turn: &ScheduledRepeat) -> Seed {
        Seed(self.resolved.plan.seed).part(turn.cell as u64).part(u64::from(turn.repeat))
    }

    /// Runs all phases of a cell. A target on which one fails runs no more of them; a target that hangs is left
    /// out.
    fn take_phases(
        &mut self,
        state: &mut State<'_>,
        turn: &ScheduledRepeat,
        cell: &WorkloadRun,
    ) -> Result<(), CampaignError> {
        let seed = self.seed(turn);
        let reached = Reached::new(&turn.targets, cell.workers);
        let run = Box::new(cell.clone());
        let targets = turn.targets.clone();
        let attempt = state.next_attempt(self.cluster.as_ref());
        self.cluster.broadcast(Some(ClusterDecision::Repeat { run, seed, attempt, targets }));
        let mut going = Vec::new();
        for &number in &turn.targets {
            let layout_on = |on: &TargetDescription| cell.where_chosen_by(on.striping).layout();
            match self.lay_out(state, number, &layout_on, cell)? {
                Ok(()) => going.push(number),
                Err(error) => {
                    let refused = Sample::invalid(Invalid::Refused(error.to_string()));
                    self.keep_broken(state, turn, number, cell.phases()[0], refused)?;
                }
            }
        }
        let mut loads = self.prepare_loads(state, turn, &mut going)?;
        let kept = |target: usize| self.resolved.targets[target].keeps();
        let prepares = turn.targets.iter().any(|&target| kept(target));
        for phase in cell.phases().into_iter().filter(|phase| prepares || !phase.is_setup()) {
            let targets: Vec<_> =
                going.iter().filter_map(|&number| Some((number, self.targets[number].clone()?))).collect();
            if targets.is_empty() {
                break;
            }
            let numbers = targets.iter().map(|(number, _)| *number).collect();
            let left = state.run.ends.since(state.run.clock.now());
            self.cluster.broadcast(Some(ClusterDecision::Phase { phase, targets: numbers, left }));
            let cluster = self.cluster.as_ref();
            let (reached, ranks) = (&reached, &self.ranks);
            let share = None;
            let task = Task { targets: &targets, cell, phase, seed, attempt, reached, cluster, ranks, share };
            let mut none = Loads::default();
            let beside = if phase.is_setup() { &mut none } else { &mut loads };
            let Some(samples) = state.measure(turn, &task, beside) else { break };
            let is_stuck = is_stuck(&task);
            for (&(number, _), sample) in targets.iter().zip(samples) {
                if let Some(why) = sample.invalid.clone().filter(is_broken) {
                    going.retain(|&going| going != number);
                    self.keep_broken(state, turn, number, phase, sample)?;
                    if why == Invalid::Hung {
                        self.leave_out(state, number, &format!("hung in {}: {cell}", phase.name()))?;
                        self.end_if_stuck(state, is_stuck)?;
                    }
                } else if !phase.is_setup() {
                    self.keep(state, turn.key(number, phase), sample)?;
                }
            }
        }
        self.clear_loads(state, turn, loads);
        Ok(())
    }

    fn leave_out(&mut self, state: &mut State<'_>, target: usize, why: &str) -> Result<(), CampaignError> {
        state.left_out[target] = true;
        self.record.leave_out(target, why)?;
        (state.tell)(Progress::LeftOut { target, why });
        // A recording over several targets needs all of them.
        let joined =
            (0..self.resolved.targets.len()).filter(|&of| self.resolved.members(of).contains(&target));
        for joined in joined.collect::<Vec<_>>() {
            if !state.left_out[joined] {
                let why = format!("{} was left out", self.resolved.targets[target].address);
                self.leave_out(state, joined, &why)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, state: &mut State<'_>, what: &str) -> Result<(), CampaignError> {
        self.record.note(&Event { at: Calendar::now().time, what: what.into() })?;
        (state.tell)(Progress::Event(what));
        Ok(())
    }

    /// Removes the files of a cell; the time limit grows with their number.
    fn clear(&self, state: &State<'_>, turn: &ScheduledRepeat, target: usize) -> Result<(), TargetError> {
        let Some(target) = &self.targets[target] else { return Ok(()) };
        let run = self.resolved.plan.cells[turn.cell].as_workload();
        let plan = &self.resolved.plan;
        let files = run.map_or(0, |run| run.footprint(plan.processes_of(run)).entries);
        let limit = state.run.hang_after + Nanos(files.saturating_mul(UNLINK_AT_MOST.0));
        within(limit, target, |target| target.clear())?
    }
}

impl State<'_> {
    /// The targets that were not left out.
    fn in_use(&self, targets: &[usize]) -> Vec<usize> {
        targets.iter().copied().filter(|&target| !self.left_out[target]).collect()
    }

    /// Counts a repeat that begins, and returns its number.
    fn next_attempt(&mut self, cluster: &dyn Cluster) -> u32 {
        self.attempts += u32::from(cluster.size() > 1);
        self.attempts
    }

    /// Runs a phase of a cell. Returns `None` if the campaign ended first.
    fn measure(&mut self, turn: &ScheduledRepeat, task: &Task<'_>, loads: &mut Loads) -> Option<Vec<Sample>> {
        let State { run, surroundings, place, tell, remaining, turn_begun, turn: running, .. } = self;
        let (done, of) = *place;
        let left = || remaining.time(running.as_ref(), run.clock.now().since(*turn_begun));
        run_phase(run, surroundings, task, loads, &mut |so_far| {
            tell(now(turn, task.phase, so_far, done, of, left()));
        })
    }

    /// The expected time for the rest of the campaign; `None` if it knows nothing of a turn.
    fn left(&self) -> Option<Nanos> {
        self.remaining.time(self.turn.as_ref(), self.run.clock.now().since(self.turn_begun))
    }
}

fn now(
    turn: &ScheduledRepeat,
    phase: Phase,
    so_far: SoFar,
    done: usize,
    of: usize,
    left: Option<Nanos>,
) -> Progress<'_> {
    Progress::Now(Now {
        targets: &turn.targets,
        cell: turn.cell,
        repeat: turn.repeat,
        phase,
        so_far,
        done,
        of,
        left,
    })
}

/// How long a storage system that still works may take to remove a file.
const UNLINK_AT_MOST: Nanos = Nanos::from_millis(10);
