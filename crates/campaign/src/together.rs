//! Selects the processes and workers that take part in a phase, and derives how cold their reads are.

use nilometer_cluster::{Cluster, ClusterDecision, RankReport, failed_on_any, loads_of_all, measured_by_all};
use nilometer_model::{Coldness, Nanos, RankSample, Sample};
use nilometer_plan::WorkloadRun;

use crate::{
    background::{Loads, LoadsBeside},
    task::{Run, Task},
    workload::WorkerPlace,
};

impl Task<'_> {
    /// The places of this process's workers among all; none if the cell uses fewer processes.
    pub(crate) fn places(&self) -> impl Iterator<Item = WorkerPlace> + use<> {
        let used = self.ranks.nodes.used_by(self.cell);
        let ours = used.iter().position(|rank| *rank == self.cluster.rank());
        let like = processes_to_next_node(self.cell, used.len() as u32, &self.ranks.nodes.counts());
        let of_rank = |ours| WorkerPlace::of_rank(ours as u32, used.len() as u32, self.cell.workers);
        let places = ours.map(of_rank).into_iter().flatten();
        let attempt = self.attempt;
        let lone = self.cell.lone_worker;
        let places = places.filter(move |place| lone.is_none_or(|lone| lone == place.worker));
        places.map(move |place| place.with_nodes_of(like).in_attempt(attempt))
    }

    /// The name in this repeat of a file or directory that all processes share.
    pub(crate) fn shared_name(&self, stem: &str) -> String {
        WorkerPlace::alone(0, 1).in_attempt(self.attempt).shared(stem)
    }

    /// Returns true if only other processes run the phase, and this one sleeps.
    pub(crate) fn is_idle(&self) -> bool {
        !self.ranks.nodes.used_by(self.cell).contains(&self.cluster.rank())
    }

    /// Returns true if no file that this phase reads on a target can be in the cache of the client here.
    /// Another client then wrote all of it, and no process of this node has touched it since.
    pub(crate) fn never_saw(&self, target: usize) -> bool {
        let takes = self.cell.workload.parameters().reads_what_others_wrote(self.phase);
        let nodes = self.ranks.nodes.counts().len().min(self.cell.nodes.unwrap_or(u32::MAX) as usize);
        takes && nodes > 1 && self.ranks.apart.get(target).is_some_and(|apart| *apart)
    }

    /// The sample of this process, as a report to rank 0.
    pub(crate) fn of_rank(&self, sample: Sample, began: Nanos) -> RankSample {
        of_rank(self.cluster, sample, began)
    }

    /// The coldness of the files to read; `chilled` is the result of dropping them from the cache.
    pub(crate) fn coldness(&self, target: usize, chilled: Option<Coldness>) -> Option<Coldness> {
        if self.never_saw(target) { Some(Coldness::NeverSeen) } else { chilled }
    }
}

/// The sample of a process, as a report to rank 0.
pub(crate) fn of_rank(cluster: &dyn Cluster, sample: Sample, began: Nanos) -> RankSample {
    RankSample {
        rank: cluster.rank(),
        node: cluster.node(),
        clock_offset: cluster.clock_offset(),
        clock_uncertainty: cluster.clock_uncertainty(),
        began,
        sample,
    }
}

/// The number of processes from one to its match on the next node. With different numbers of processes on nodes
/// there is no match; with one node it is the next process.
fn processes_to_next_node(cell: &WorkloadRun, used: u32, counts: &[u32]) -> u32 {
    let nodes = cell.nodes.unwrap_or(u32::MAX).min(counts.len() as u32);
    if nodes > 1 { used.div_ceil(nodes) } else { 1 }
}

/// At rank 0, decides if a phase begins, and on which targets not; `None` elsewhere. If a rank is not ready on
/// a target, none measures it.
pub(crate) fn decided(run: &Run, cluster: &dyn Cluster, reports: Vec<RankReport>) -> Option<ClusterDecision> {
    let begins = || ClusterDecision::Begin(failed_on_any(reports));
    (cluster.rank() == 0).then(|| if run.is_over() { ClusterDecision::Cancel } else { begins() })
}

/// Merges the samples of all ranks, at rank 0, into one for each target. `None` elsewhere, and if the phase was
/// interrupted.
pub(crate) fn united(cluster: &dyn Cluster, reports: Vec<RankReport>) -> Option<Vec<Sample>> {
    let loads = loads_of_all(&reports);
    let by_target = measured_by_all(reports).filter(|_| cluster.rank() == 0)?;
    let mut samples: Vec<Sample> = by_target.into_iter().map(Sample::united).collect();
    for (sample, load) in samples.iter_mut().zip(loads) {
        load.put(sample);
    }
    Some(samples)
}

/// The part of a process without workers in a phase. It sends only the messages it must. Except for its share of a
/// load it touches neither the targets nor, while others measure, the processor. Returns the result of
/// [`united`].
pub(crate) fn sleep_through(run: &Run, task: &Task<'_>, loads: &mut Loads) -> Option<Vec<Sample>> {
    let mut beside = LoadsBeside::renewed(loads, task.cluster, task.load(), run);
    let Task { cluster, targets, .. } = task;
    let ready = cluster.gather(RankReport::Ready(vec![None; targets.len()]));
    let decided = decided(run, *cluster, ready);
    if !matches!(cluster.broadcast(decided), ClusterDecision::Begin(_)) {
        return None;
    }
    beside.begin();
    cluster.barrier();
    cluster.agree_start(&run.clock);
    beside.count();
    let loads = beside.ended(task.numbers());
    united(*cluster, cluster.gather(RankReport::Measured { whole: true, samples: Vec::new(), loads }))
}
