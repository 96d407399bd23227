//! A plan with the storage that it is to be carried out on: what a record keeps of it.

use serde::{Deserialize, Serialize};

use super::ResolvedPlan;
use crate::TargetDescription;

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
}

impl PlannedCampaign {
    /// Whether some cell copies.
    pub fn copies(&self) -> bool {
        self.plan.workloads().any(|(_, _, run)| run.copies())
    }

    /// Whether a cell is measured on a target.
    pub fn applies(&self, cell: usize, target: usize) -> bool {
        self.plan.applies(cell, self.targets[target].striping.is_some())
    }
}
