//! A plan with the storage that it is to be carried out on: what a record keeps of it.

use serde::{Deserialize, Serialize};

use super::{ResolvedPlan, Volumes};
use crate::{Capability, TargetDescription};

/// A plan that fits its targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCampaign {
    /// The plan.
    pub plan: ResolvedPlan,
    /// Described in the order of the command line.
    pub targets: Vec<TargetDescription>,
    /// Where copies come from, if there are any.
    pub source: Option<TargetDescription>,
    /// Where recordings are copied to while they are made, if any are.
    pub archive: Option<TargetDescription>,
    /// The index of the target that keeps nothing and was not asked for: what the tool itself can do in each workload, which
    /// reports hold the figures of the others against. The last one, if there is one.
    #[serde(default)]
    pub ceiling: Option<usize>,
}

impl PlannedCampaign {
    /// A plan on these targets, without a source, an archive or a ceiling.
    pub fn new(plan: ResolvedPlan, targets: Vec<TargetDescription>) -> Self {
        PlannedCampaign { plan, targets, source: None, archive: None, ceiling: None }
    }

    /// The indices of the targets that the user named.
    pub fn asked(&self) -> std::ops::Range<usize> {
        0..self.ceiling.unwrap_or(self.targets.len())
    }

    /// Whether some cell copies.
    pub fn copies(&self) -> bool {
        self.plan.workloads().any(|(_, _, run)| run.copies())
    }

    /// What a target would have to be able to do for a cell, and can't.
    pub fn lacking(&self, cell: usize, target: usize) -> Vec<Capability> {
        self.targets[target].capabilities.lacking(&self.plan.cells[cell].needs())
    }

    /// Whether a target is one of those that a cell can be measured on. The tool's own ceiling is that of workloads.
    pub fn suits(&self, cell: usize, target: usize) -> bool {
        let able = self.lacking(cell, target).is_empty();
        let asked = self.ceiling != Some(target) || self.plan.cells[cell].has_ceiling();
        able && asked && self.plan.applies(cell, self.targets[target].striping)
    }

    /// Whether a cell is measured on a target: of a workload for the first targets at once, on these. The ceiling of several
    /// at once is measured as soon as they are.
    pub fn applies(&self, cell: usize, target: usize) -> bool {
        if !self.suits(cell, target) {
            return false;
        }
        let volumes = self.plan.cells[cell].as_workload().map_or(Volumes::Alone, |run| run.volumes);
        volumes == Volumes::Alone
            || self.ceiling == Some(target) && !self.at_once(cell).is_empty()
            || self.at_once(cell).contains(&target)
    }

    /// The targets that a workload is measured on at the same time; empty where each is measured by itself.
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
