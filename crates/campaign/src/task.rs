//! The context of a phase: the running campaign, and the cell and the targets that the phase measures.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_cluster::{CampaignRanks, Cluster};
use nilometer_model::{DeviceTraffic, Nanos, Phase, Seed};
use nilometer_plan::{BackgroundLoad, WorkloadRun};
use nilometer_storage::{Clock, Target};

use crate::{
    baseline::Baseline,
    load_share::LoadShare,
    workload::{self, WorkerPlace},
};

/// State that stays the same throughout a campaign.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The clock of all engines.
    pub(crate) clock: Clock,
    /// How long a worker may be silent beyond its time limit before it counts as hung.
    pub(crate) hang_after: Nanos,
    /// Another thread sets it to end the campaign.
    pub(crate) stop: Arc<AtomicBool>,
    /// The latest time at which the campaign ends.
    pub(crate) ends: Nanos,
    /// The number of dirty bytes that the machine has anyway.
    pub(crate) usual: Baseline,
}

/// The number of blocks that each worker wrote in a repeat of a cell, by target and worker. Reading back goes
/// no further.
#[derive(Debug)]
pub(crate) struct Reached(BTreeMap<(usize, u32), Arc<AtomicU64>>);

impl Reached {
    /// Begins with every block of every worker as written.
    pub(crate) fn new(targets: &[usize], workers: u32) -> Self {
        let places = targets.iter().flat_map(|&target| (0..workers).map(move |worker| (target, worker)));
        Reached(places.map(|place| (place, Arc::new(AtomicU64::new(workload::EVERY_BLOCK)))).collect())
    }

    /// The number of blocks of one worker on one target.
    pub(crate) fn of(&self, target: usize, worker: u32) -> Arc<AtomicU64> {
        self.0[&(target, worker)].clone()
    }
}

impl Run {
    /// True if no more operations may be issued.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.ends
    }
}

/// A phase of a cell on its targets, as this process runs it.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// The targets, with their numbers in the plan.
    pub(crate) targets: &'a [(usize, Arc<dyn Target>)],
    pub(crate) cell: &'a WorkloadRun,
    pub(crate) phase: Phase,
    pub(crate) seed: Seed,
    /// The number of this repeat among all that several processes make together; 0 if there is one process.
    pub(crate) attempt: u32,
    /// How far the workers of this process came in the earlier phases.
    pub(crate) reached: &'a Reached,
    /// The processes of the campaign.
    pub(crate) cluster: &'a dyn Cluster,
    /// The nodes that the processes run on.
    pub(crate) ranks: &'a CampaignRanks,
    /// The share of this process in a load, if the cell is one; `None` in a measurement.
    pub(crate) share: Option<&'a LoadShare>,
}

impl Task<'_> {
    /// True if the phase may end before its work is complete. A phase whose files a later phase needs may not.
    pub(crate) fn may_end_early(&self) -> bool {
        self.cell.workload.parameters().may_end_early(self.phase)
    }

    /// True if the phase must get names and inodes from the storage too, and not from a cache.
    pub(crate) fn drops_caches(&self) -> bool {
        self.cell.workload.parameters().drops_caches(self.phase)
    }

    /// The numbers of its targets in the plan.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.targets.iter().map(|(number, _)| *number)
    }

    /// The load beside this phase, over all processes; `None` without one.
    pub(crate) fn load(&self) -> Option<&BackgroundLoad> {
        self.cell.background.as_deref().filter(|_| !self.phase.is_setup())
    }

    /// The place of a worker among all that have the cell's rate together.
    pub(crate) fn paced(&self, place: WorkerPlace) -> WorkerPlace {
        self.share.map_or(place, |share| share.paced(place))
    }

    /// The target that the phase works on. The phases that lay out or read the source of a copy work on the
    /// source itself.
    pub(crate) fn at_work<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let elsewhere = self.cell.copies() && matches!(self.phase, Phase::LayOut | Phase::Source);
        target.source().filter(|_| elsewhere).unwrap_or(target)
    }

    /// The target that the phase reads: a copy is written to one target and read from another.
    pub(crate) fn read_from<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let copied =
            self.cell.copies() && matches!(self.phase, Phase::Write | Phase::Rewrite | Phase::Unpack);
        target.source().filter(|_| copied).unwrap_or_else(|| self.at_work(target))
    }
}

/// The traffic at the device below the target since `was`.
pub(crate) fn traffic_since(was: Option<DeviceTraffic>, target: &dyn Target) -> Option<DeviceTraffic> {
    let (was, is) = was.zip(target.traffic())?;
    Some(is.since(was))
}
