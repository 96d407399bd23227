//! The loads of this process beside one phase. They begin before all processes agree on a start, and end after all
//! of them have come to the end of the phase. A process that ended early would leave the storage to the others.

use std::collections::BTreeMap;

use nilometer_cluster::{Cluster, LoadReport};
use nilometer_model::{BackgroundDone, Invalid};
use nilometer_plan::BackgroundLoad;

use super::{Loads, on_machine};
use crate::task::Run;

/// The loads of this process beside a phase.
#[derive(Debug)]
pub(crate) struct LoadsBeside<'a> {
    loads: &'a mut Loads,
    cluster: &'a dyn Cluster,
    /// True if the phase has a load, which may be on other processes only.
    has_load: bool,
    /// The reasons of those that don't work, by the number of the target.
    failed: BTreeMap<usize, Invalid>,
    /// The work done before the phase.
    before: BTreeMap<usize, BackgroundDone>,
    /// The work until the end of a target's own measurement in this process.
    own: BTreeMap<usize, BackgroundDone>,
}

impl<'a> LoadsBeside<'a> {
    /// Makes the loads ready again. `load` is that of the cell, the same at all processes; `None` in a phase
    /// without one.
    pub(crate) fn renewed(
        loads: &'a mut Loads,
        cluster: &'a dyn Cluster,
        load: Option<&BackgroundLoad>,
        run: &Run,
    ) -> Self {
        let failed = loads.renew(run);
        let has_load = load.is_some_and(|load| !load.is_none());
        LoadsBeside { loads, cluster, has_load, failed, before: BTreeMap::new(), own: BTreeMap::new() }
    }

    /// Starts the loads, and waits until each has done something.
    pub(crate) fn begin(&mut self) {
        self.failed.append(&mut self.loads.begin());
    }

    /// Counts their work from now on.
    pub(crate) fn count(&mut self) {
        self.before = self.loads.all_done();
    }

    /// Notes that this process has measured a target. Returns the work of the load meanwhile; `None` without one.
    pub(crate) fn measured(&mut self, target: usize) -> Option<BackgroundDone> {
        let done = self.done(target)?;
        self.own.insert(target, done);
        Some(done)
    }

    /// The work of a load since its count began; `None` without a load on this target.
    fn done(&self, target: usize) -> Option<BackgroundDone> {
        Some(self.loads.done(target)?.since(*self.before.get(&target)?))
    }

    /// Waits for the ends of all processes, and ends the loads. Returns a report for each of these targets, or
    /// none if the phase has no load.
    pub(crate) fn ended(mut self, targets: impl IntoIterator<Item = usize>) -> Vec<LoadReport> {
        if self.has_load {
            self.cluster.barrier();
        }
        let targets: Vec<usize> = targets.into_iter().collect();
        // With several processes the measurement ends with that of the last one.
        let alone = self.cluster.size() == 1;
        let done = |target| if alone { self.own.get(target).copied() } else { self.done(*target) };
        let done: Vec<_> = targets.iter().map(done).collect();
        self.cut();
        if !self.has_load {
            return Vec::new();
        }
        let report = |(target, done): (&usize, _)| LoadReport { done, failed: self.failed(*target) };
        targets.iter().zip(done).map(report).collect()
    }

    /// Ends the loads without the others, after a phase that counts for none.
    pub(crate) fn cut(&mut self) {
        self.failed.append(&mut self.loads.end());
    }

    fn failed(&self, target: usize) -> Option<Invalid> {
        self.failed.get(&target).map(|why| on_machine(why.clone(), self.cluster))
    }
}
