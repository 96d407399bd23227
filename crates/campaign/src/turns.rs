//! Schedules the cells on their targets. Pure: the schedule is the same if a campaign runs at once or in parts.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Bytes, Goal, Invalid, Phase, Sample, Seed, sustained::step};
use nilometer_plan::{
    AppliedSetting, BackgroundLoad, Condition, Key, Measurement, PlannedCampaign, RecordedInstrument,
    RecordingRun, ResolvedPlan, Volumes,
    search::{Advice, Found, Trial, advise},
};

use crate::ingest::Pass;

/// One repeat of one cell, all its phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduledRepeat {
    /// The targets: one, or all that are measured at the same time.
    pub(crate) targets: Vec<usize>,
    /// The cell; for recordings that run at the same time, the first.
    pub(crate) cell: usize,
    /// The number of the repeat; the rounds of the warm-up come first.
    pub(crate) repeat: u32,
}

/// The samples of a record, each with the reason why it must not be used, if there is one.
pub(crate) type Done = BTreeMap<Key, Option<Invalid>>;

impl ScheduledRepeat {
    /// The key of a sample of this turn.
    pub(crate) fn key(&self, target: usize, phase: Phase) -> Key {
        Key { target, cell: self.cell, repeat: self.repeat, phase }
    }

    /// The cells of this turn.
    pub(crate) fn cells(&self, plan: &ResolvedPlan) -> Vec<usize> {
        match plan.cells[self.cell].measurement {
            Measurement::Recording(_) => company(plan, self.cell).into_iter().map(|(cell, _)| cell).collect(),
            Measurement::Workload(_) | Measurement::Imported(_) => vec![self.cell],
        }
    }

    /// The cell, if it is a search.
    pub(crate) fn search<'a>(&self, plan: &'a ResolvedPlan) -> Option<&'a RecordingRun> {
        plan.cells[self.cell].as_recording().filter(|run| run.goal.searches())
    }

    /// The keys of its samples on a target.
    pub(crate) fn keys(&self, plan: &ResolvedPlan, target: usize) -> Vec<Key> {
        let phases = plan.cells[self.cell].measured_phases();
        let of_cell = |cell: usize| {
            let turn = ScheduledRepeat { cell, ..self.clone() };
            phases.iter().map(move |&phase| turn.key(target, phase)).collect::<Vec<_>>()
        };
        self.cells(plan).into_iter().flat_map(of_cell).collect()
    }

    /// Returns true if nothing is left to measure: on each target every phase has its sample, or one failed and
    /// ended the rest.
    pub(crate) fn is_done(&self, plan: &ResolvedPlan, done: &Done, trials: &Trials) -> bool {
        let phases = plan.cells[self.cell].measured_phases();
        let turns: Vec<ScheduledRepeat> =
            self.cells(plan).into_iter().map(|cell| ScheduledRepeat { cell, ..self.clone() }).collect();
        self.targets.iter().all(|&target| match self.search(plan) {
            Some(run) => trials.next(done, run, self.cell, target).is_none(),
            None => turns.iter().all(|turn| turn.has_all(&phases, done, target)),
        })
    }

    /// Returns true if these phases of the one cell have their samples on a target, or one failed.
    fn has_all(&self, phases: &[Phase], done: &Done, target: usize) -> bool {
        let first = self.key(target, Phase::ALL[0]);
        let last = self.key(target, Phase::Ingest);
        let broken = done.range(first..=last).any(|(_, invalid)| invalid.as_ref().is_some_and(is_broken));
        broken || phases.iter().all(|&phase| done.contains_key(&self.key(target, phase)))
    }
}

/// The trials of searches, in the order in which they were made, and the results of passes at full speed, which
/// later passes use.
#[derive(Debug, Clone, Default)]
pub struct Trials {
    made: BTreeMap<Key, Trial>,
    /// The measured limit of each target and instrument.
    limits: Vec<(LimitOf, Limit)>,
}

/// The setup of passes at full speed.
#[derive(Debug, Clone, PartialEq)]
struct LimitOf {
    target: usize,
    instrument: RecordedInstrument,
    /// The condition of the target.
    condition: Option<Condition>,
    /// The load on the target.
    background: Option<Box<BackgroundLoad>>,
    /// The settings in force.
    settings: Vec<AppliedSetting>,
}

impl LimitOf {
    fn new(run: &RecordingRun, target: usize) -> Self {
        let background = run.background.clone().filter(|load| !load.is_none());
        LimitOf {
            target,
            instrument: run.recorded_instrument(),
            condition: run.condition.clone(),
            background,
            settings: run.settings.clone(),
        }
    }
}

/// The results of the passes at full speed so far.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// The rate at which the target took frames in the latest pass.
    rate: ByteRate,
    /// The number of bytes that went into its cache, the most of all passes.
    cache: Bytes,
}

impl Trials {
    /// Adds a sample of a recording. It counts if it is a trial, or a pass at full speed.
    pub fn add(&mut self, run: &RecordingRun, key: Key, sample: &Sample) {
        let Some(ingest) = &sample.ingest else { return };
        if ingest.goal == Goal::Limit && sample.invalid.is_none() && ingest.readers.is_empty() {
            let of = LimitOf::new(run, key.target);
            let known = self.limit(&of).map_or(Bytes(0), |limit| limit.cache);
            let cache = step(&sample.series).map_or(Bytes(0), |step| step.volume);
            self.limits.retain(|(other, _)| *other != of);
            self.limits.push((of, Limit { rate: sample.rate(), cache: known.max(cache) }));
        }
        if let Some(trial) = Trial::of(sample).filter(|_| ingest.goal.searches()) {
            self.made.insert(key, trial);
        }
    }

    fn limit(&self, of: &LimitOf) -> Option<&Limit> {
        self.limits.iter().find(|(known, _)| known == of).map(|(_, limit)| limit)
    }

    /// Returns when a pass of a cell at full speed may end, from earlier ones on the target.
    pub(crate) fn pass(&self, cell: &RecordingRun, target: usize) -> Pass {
        match self.limit(&LimitOf::new(cell, target)) {
            None => Pass::Whole,
            Some(limit) => Pass::after(limit.cache),
        }
    }

    /// The next trial of a search, and the number of trials before. `None` if the search is over, or if a trial
    /// could not begin: the next would be the same.
    pub(crate) fn next(
        &self,
        done: &Done,
        run: &RecordingRun,
        cell: usize,
        target: usize,
    ) -> Option<(u32, RecordingRun)> {
        let made = self.count(cell, target);
        if done.keys().filter(|key| (key.cell, key.target) == (cell, target)).count() > made as usize {
            return None;
        }
        match self.advise(run, cell, target) {
            Advice::Next(next) => Some((made, next)),
            Advice::Found(_) => None,
        }
    }

    /// The result of a search, if it is over.
    pub(crate) fn found(&self, run: &RecordingRun, cell: usize, target: usize) -> Option<Found> {
        match self.advise(run, cell, target) {
            Advice::Next(_) => None,
            Advice::Found(found) => Some(found),
        }
    }

    /// The number of trials of a search so far.
    pub(crate) fn count(&self, cell: usize, target: usize) -> u32 {
        self.made.keys().filter(|key| (key.cell, key.target) == (cell, target)).count() as u32
    }

    fn advise(&self, run: &RecordingRun, cell: usize, target: usize) -> Advice<RecordingRun, Found> {
        let mut made: Vec<(&Key, &Trial)> =
            self.made.iter().filter(|(key, _)| (key.cell, key.target) == (cell, target)).collect();
        made.sort_by_key(|(key, _)| key.repeat);
        let trials: Vec<Trial> = made.into_iter().map(|(_, trial)| *trial).collect();
        let known = self.limit(&LimitOf::new(run, target));
        advise(run, known.map_or(run.rate(), |limit| limit.rate), &trials)
    }
}

/// Returns true if the rest of a cell can't be measured after such a sample.
pub(crate) fn is_broken(invalid: &Invalid) -> bool {
    matches!(invalid, Invalid::Hung | Invalid::Errors | Invalid::Refused(_))
}

/// Every repeat of every cell on every target, in the order in which they run. They run in rounds, each in the
/// order of a hash of seed, round, cell and target. Recordings come last: they are long, and the other results
/// help to interpret them.
pub(crate) fn turns(resolved: &PlannedCampaign) -> Vec<ScheduledRepeat> {
    let plan = &resolved.plan;
    let round: Vec<ScheduledRepeat> =
        plan.workloads().flat_map(|(cell, _, run)| of_workload(resolved, cell, run.volumes)).collect();
    let mut turns = Vec::new();
    for repeat in 0..plan.warm_up + plan.repeats {
        let seed = Seed(plan.seed).named("order").part(u64::from(repeat));
        let mut round: Vec<ScheduledRepeat> =
            round.iter().map(|turn| ScheduledRepeat { repeat, ..turn.clone() }).collect();
        // The tool by itself gives the same result each time: once is enough, behind the first round that
        // counts.
        round.retain(|turn| !is_ceiling(resolved, turn) || repeat == plan.warm_up);
        round.sort_by_key(|turn| {
            (is_ceiling(resolved, turn), seed.part(turn.cell as u64).part(turn.targets[0] as u64).0)
        });
        turns.extend(round);
    }
    turns.extend(Purpose::ALL.into_iter().flat_map(|purpose| recordings(resolved, purpose)));
    turns
}

/// Returns true if the turn measures the tool by itself.
pub(crate) fn is_ceiling(resolved: &PlannedCampaign, turn: &ScheduledRepeat) -> bool {
    turn.targets.iter().any(|&target| resolved.ceiling == Some(target))
}

/// The purposes of recordings, in their order: a campaign that ends early has then lost the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Can the storage record the instrument at its own pace?
    Answer,
    /// By what margin, and what is the cost of readers? Frames come as fast as the storage takes them.
    Limit,
    /// Where does loss begin? Searches begin at the limit.
    Search,
    /// How do both change in a condition? The user's commands make the condition, and may fail to take it back.
    Condition,
}

impl Purpose {
    const ALL: [Purpose; 4] = [Purpose::Answer, Purpose::Limit, Purpose::Search, Purpose::Condition];

    fn of(cell: &RecordingRun) -> Self {
        match cell.goal {
            _ if cell.condition.is_some() => Purpose::Condition,
            Goal::Pace => Purpose::Answer,
            Goal::Limit => Purpose::Limit,
            Goal::Search | Goal::Buffer => Purpose::Search,
        }
    }
}

/// The recordings for a purpose, in rounds: a repeat of each on each target. Single recordings keep the plan's
/// order. Repeated ones are compared, so each round draws their order anew: drift then affects all alike.
fn recordings(resolved: &PlannedCampaign, purpose: Purpose) -> Vec<ScheduledRepeat> {
    let plan = &resolved.plan;
    let is_first = |cell: usize| company(plan, cell).first().is_some_and(|(first, _)| *first == cell);
    let of_purpose = plan.recordings().filter(|(_, run)| Purpose::of(run) == purpose);
    let cells: Vec<(usize, u32)> =
        of_purpose.filter(|(cell, _)| is_first(*cell)).map(|(cell, run)| (cell, run.repeats)).collect();
    let rounds = cells.iter().map(|(_, repeats)| *repeats).max().unwrap_or(0);
    let mut turns = Vec::new();
    for repeat in 0..rounds {
        let seed = Seed(plan.seed).named("recordings").part(u64::from(repeat));
        let made = cells.iter().copied().filter(|(_, repeats)| *repeats > repeat);
        let (repeated, once): (Vec<_>, Vec<_>) = made.partition(|(_, repeats)| *repeats > 1);
        // Repeats below `warm_up` count for nothing, and a recording has no warm-up.
        let on_all = |cells: Vec<(usize, u32)>| -> Vec<ScheduledRepeat> {
            let turns = cells.iter().map(|(cell, _)| on_each_target(resolved, *cell, plan.warm_up + repeat));
            turns.flatten().collect()
        };
        let mut drawn = on_all(repeated);
        drawn.sort_by_key(|turn| seed.part(turn.cell as u64).part(turn.targets[0] as u64).0);
        turns.extend(on_all(once));
        turns.extend(drawn);
    }
    turns
}

/// A repeat of a recording, and of those that run at the same time, on each target that all of them apply to.
fn on_each_target(resolved: &PlannedCampaign, cell: usize, repeat: u32) -> Vec<ScheduledRepeat> {
    let members = company(&resolved.plan, cell);
    let applies = |target: &usize| members.iter().all(|(member, _)| resolved.applies(*member, *target));
    let targets = (0..resolved.targets.len()).filter(applies);
    targets.map(|target| ScheduledRepeat { targets: vec![target], cell, repeat }).collect()
}

/// The recordings that run at the same time as this one, itself included. They are one turn, that of the first.
pub(crate) fn company(plan: &ResolvedPlan, cell: usize) -> Vec<(usize, &RecordingRun)> {
    let Some(run) = plan.cells[cell].as_recording() else { return Vec::new() };
    match run.company {
        None => vec![(cell, run)],
        company => plan.recordings().filter(|(_, other)| other.company == company).collect(),
    }
}

/// The turns of a workload in the first round: each target by itself, or those that are measured at once. The
/// tool by itself is measured separately.
fn of_workload(resolved: &PlannedCampaign, cell: usize, volumes: Volumes) -> Vec<ScheduledRepeat> {
    let turn = |targets| ScheduledRepeat { targets, cell, repeat: 0 };
    let alone = (0..resolved.targets.len()).filter(|&target| resolved.applies(cell, target));
    if volumes == Volumes::Alone {
        return alone.map(|target| turn(vec![target])).collect();
    }
    let ceiling = alone.filter(|&target| resolved.ceiling == Some(target)).map(|target| vec![target]);
    let groups = std::iter::once(resolved.at_once(cell)).chain(ceiling);
    groups.filter(|targets| !targets.is_empty()).map(turn).collect()
}

#[cfg(test)]
mod tests;
