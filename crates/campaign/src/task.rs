//! What a phase works on: the campaign that goes on, and the cell and the targets that are measured.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_cluster::{CampaignRanks, Cluster};
use nilometer_model::{DeviceTraffic, Nanos, Phase, Seed};
use nilometer_plan::WorkloadRun;
use nilometer_storage::{Clock, Target};

use crate::{
    baseline::Baseline,
    workload::{self},
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

    /// The blocks of one worker on one target.
    pub(crate) fn of(&self, target: usize, worker: u32) -> Arc<AtomicU64> {
        self.0[&(target, worker)].clone()
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
    pub(crate) fn may_end_early(&self) -> bool {
        self.cell.workload.parameters().may_end_early(self.phase)
    }

    /// Names and inodes are to come from the storage too.
    pub(crate) fn drops_caches(&self) -> bool {
        self.cell.workload.parameters().drops_caches(self.phase)
    }

    /// Where the phase works: what copies come from is made and read where it lies.
    pub(crate) fn at_work<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let elsewhere = self.cell.copies() && matches!(self.phase, Phase::LayOut | Phase::Source);
        target.source().filter(|_| elsewhere).unwrap_or(target)
    }

    /// What the phase reads: a copy is written to one target and read from another.
    pub(crate) fn read_from<'a>(&self, target: &'a Arc<dyn Target>) -> &'a Arc<dyn Target> {
        let copied = self.cell.copies() && matches!(self.phase, Phase::Write | Phase::Rewrite);
        target.source().filter(|_| copied).unwrap_or_else(|| self.at_work(target))
    }
}

/// What came to the device below since `was`.
pub(crate) fn traffic_since(was: Option<DeviceTraffic>, target: &dyn Target) -> Option<DeviceTraffic> {
    let (was, is) = was.zip(target.traffic())?;
    Some(is.since(was))
}
