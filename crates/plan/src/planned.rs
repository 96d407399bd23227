//! A plan with the storage for it, as a record keeps it.

use nilometer_model::{Capabilities, Capability, TargetAddress, TargetDescription};
use serde::{Deserialize, Serialize};

use super::{RecordingRun, ResolvedPlan, Volumes};

/// A plan that fits its targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCampaign {
    /// The plan.
    pub plan: ResolvedPlan,
    /// Described in the order of the command line, and behind them those that are several of these at once.
    pub targets: Vec<TargetDescription>,
    /// The source of copies, if there are any.
    pub source: Option<TargetDescription>,
    /// The destination for copies of recordings meanwhile, if there are any.
    pub archive: Option<TargetDescription>,
    /// The index of the target that discards data and that the user did not ask for. It shows the limit of
    /// the tool itself in each workload; reports compare other figures with it. It is the last target, if
    /// there is one.
    #[serde(default)]
    pub ceiling: Option<usize>,
}

impl PlannedCampaign {
    /// A plan on these targets, without a source, an archive or a ceiling.
    pub fn new(plan: ResolvedPlan, targets: Vec<TargetDescription>) -> Self {
        PlannedCampaign { plan, targets, source: None, archive: None, ceiling: None }
    }

    /// The indices of the targets that the user named, and of those that are several of them at once.
    pub fn asked(&self) -> std::ops::Range<usize> {
        0..self.ceiling.unwrap_or(self.targets.len())
    }

    /// The indices of the targets that the user named.
    pub fn named(&self) -> impl Iterator<Item = usize> + '_ {
        self.asked().filter(|&target| self.targets.get(target).is_some_and(|target| !target.is_joined()))
    }

    /// The targets that one recording lies on at once, if a target is several.
    pub fn members(&self, target: usize) -> Vec<usize> {
        let addresses = self.targets.get(target).into_iter().flat_map(|target| target.address.members());
        let place =
            |address: &TargetAddress| self.named().find(|&named| self.targets[named].address == *address);
        addresses.filter_map(place).collect()
    }

    /// The description of a target, or those of the several that it is.
    pub fn described(&self, target: usize) -> Vec<TargetDescription> {
        let members = self.members(target);
        let places = if members.is_empty() { vec![target] } else { members };
        places.into_iter().map(|place| self.targets[place].clone()).collect()
    }

    /// The sets of targets that a recording stripes over: the first of those that can do it, for each number
    /// in its plan.
    pub fn recorded_over(&self, run: &RecordingRun) -> Vec<Vec<usize>> {
        let mounted = Capabilities::of(&[Capability::Mounted]);
        let is_able = |target: &usize| {
            let description = &self.targets[*target];
            let can = |needs: &Capabilities| description.capabilities.lacking(needs).is_empty();
            description.is_on_storage() && can(&mounted) && can(&run.needs())
        };
        let able: Vec<usize> = self.named().filter(is_able).collect();
        run.at_once(able.len()).into_iter().map(|count| able[..count].to_vec()).collect()
    }

    /// Returns true if a cell applies to such a target: a recording over several targets applies to their
    /// union, all else to each.
    pub fn is_about(&self, cell: usize, target: usize) -> bool {
        let run = self.plan.cells[cell].as_recording();
        if self.targets[target].is_joined() {
            let members = self.members(target);
            return run.is_some_and(|run| self.recorded_over(run).contains(&members));
        }
        run.is_none_or(RecordingRun::is_onto_each)
    }

    /// Returns true if some cell copies.
    pub fn copies(&self) -> bool {
        self.plan.workloads().any(|(_, _, run)| run.copies())
    }

    /// The capabilities that a target lacks for a cell.
    pub fn lacking(&self, cell: usize, target: usize) -> Vec<Capability> {
        self.targets[target].capabilities.lacking(&self.plan.cells[cell].needs())
    }

    /// Returns true if a cell can be measured on a target. The tool's own ceiling is for workloads only.
    pub fn suits(&self, cell: usize, target: usize) -> bool {
        let able = self.lacking(cell, target).is_empty();
        let asked = self.ceiling != Some(target) || self.plan.cells[cell].has_ceiling();
        able && asked && self.is_about(cell, target) && self.plan.applies(cell, self.targets[target].striping)
    }

    /// Returns true if a cell is measured on a target. A workload for the first targets at once is measured
    /// on these. The ceiling of several at once is measured as soon as they are.
    pub fn applies(&self, cell: usize, target: usize) -> bool {
        if !self.suits(cell, target) {
            return false;
        }
        let volumes = self.plan.cells[cell].as_workload().map_or(Volumes::Alone, |run| run.volumes);
        volumes == Volumes::Alone
            || self.ceiling == Some(target) && !self.at_once(cell).is_empty()
            || self.at_once(cell).contains(&target)
    }

    /// The targets of a workload that are measured at the same time; empty if each is measured by itself.
    pub fn at_once(&self, cell: usize) -> Vec<usize> {
        let volumes = self.plan.cells[cell].as_workload().map_or(Volumes::Alone, |run| run.volumes);
        let able: Vec<usize> = self.asked().filter(|&target| self.suits(cell, target)).collect();
        if volumes == Volumes::Alone || !self.plan.is_measured_on(cell, able.len()) {
            return Vec::new();
        }
        let count = volumes.at_once(able.len()).unwrap_or(0);
        able.into_iter().take(count).collect()
    }
}
