//! A plan as cells.

use std::collections::BTreeMap;

use nilometer_model::{Bytes, FileSystemKind, MpiIoImplementation, Nanos, StripeControl};
use serde::{Deserialize, Serialize};

use crate::{
    Acceptance, AppliedSetting, BackgroundLoad, Cell, Measurement, NetworkRun, RecordingRun, Volumes,
    WorkloadRun,
};

/// A plan as cells, ready to be resolved against targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// The plan's title.
    pub title: String,
    /// The number of measurements of each cell.
    pub repeats: u32,
    /// Rounds before those, which count for nothing.
    pub warm_up: u32,
    /// No difference smaller than this counts as one, in percent.
    pub margin: f64,
    /// Cells are repeated further until half of the interval of each figure is within this percentage of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Rounds with these together, at the most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats_most: u32,
    /// The campaign ends after this time at the latest.
    pub time_limit: Nanos,
    /// No cell may need more space than this.
    pub space_limit: Option<Bytes>,
    /// The expected file systems of targets: one for all, or one for each; empty means any.
    #[serde(default)]
    pub expect: Vec<FileSystemKind>,
    /// The source directory of copies.
    pub source: Option<String>,
    /// The directory that recordings are copied to while they are made.
    #[serde(default)]
    pub copy_to: Option<String>,
    /// The factor for sizes.
    pub scale: f64,
    /// The seed of all random decisions.
    pub seed: u64,
    /// Space that stays free on each target.
    pub reserve: Bytes,
    /// Processes that measure together, each with the workers of a cell: as many as a launcher started.
    #[serde(default = "one_rank")]
    pub ranks: u32,
    /// The number of processes on each node, in the order of the first rank on each. If it is empty, all are
    /// on one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_ranks: Vec<u32>,
    /// Number of ranks on each node with each implementation of MPI-IO, if a cell asks for one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mpi_io_ranks: BTreeMap<MpiIoImplementation, Vec<u32>>,
    /// The longest silence of a phase beyond its limit.
    pub hang_after: Nanos,
    /// The criteria for accepting a target.
    #[serde(default, skip_serializing_if = "Acceptance::is_empty")]
    pub accept: Acceptance,
    /// Cells left out because they do the same work as another one at this scale: each in words, with its
    /// substitute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// Every combination, in the order of the plan. Recordings are made after all rounds, in this order.
    pub cells: Vec<Cell>,
    /// The network measurements, once for all targets, a stage each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkRun>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

const fn one_rank() -> u32 {
    1
}

impl ResolvedPlan {
    /// Its workloads, each with the index of its cell and its stage.
    pub fn workloads(&self) -> impl Iterator<Item = (usize, &str, &WorkloadRun)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.stage.as_str(), cell.as_workload()?)))
    }

    /// True if a load copies from the targets to other storage.
    pub fn migrates(&self) -> bool {
        self.cells.iter().filter_map(Cell::background).any(BackgroundLoad::migrates)
    }

    /// Measures each cell so often, and makes each of its recordings so often.
    pub fn set_repeats(&mut self, repeats: u32) {
        self.repeats = repeats;
        for cell in &mut self.cells {
            if let Measurement::Recording(run) = &mut cell.measurement {
                run.repeats = repeats;
            }
        }
    }

    /// Number of its workloads that equal others if the layout of files can't be chosen.
    pub fn cells_by_layout(&self) -> usize {
        self.workloads().filter(|(cell, ..)| !self.applies(*cell, None)).count()
    }

    /// The settings under which its cells are measured.
    pub fn settings(&self) -> impl Iterator<Item = &AppliedSetting> {
        self.cells.iter().flat_map(Cell::settings)
    }

    /// True if some cell uses MPI-IO.
    pub fn uses_mpi_io(&self) -> bool {
        self.workloads().any(|(_, _, run)| run.mpi_io.is_some())
    }

    /// Its recordings, each with the index of its cell.
    pub fn recordings(&self) -> impl Iterator<Item = (usize, &RecordingRun)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.as_recording()?)))
    }

    /// Returns true if a cell is measured on a target with this way to choose layouts, or none. Cells that
    /// differ only in choices missing there are one; the first stands for all.
    pub fn applies(&self, cell: usize, control: Option<StripeControl>) -> bool {
        let chosen = |index: usize| {
            let cell = self.cells.get(index)?;
            Some((&cell.stage, cell.as_workload()?.where_chosen_by(control)))
        };
        let this = chosen(cell);
        let is_whole = self.cells.get(cell).and_then(Cell::as_workload) == this.as_ref().map(|(_, run)| run);
        is_whole || !(0..cell).any(|earlier| chosen(earlier) == this)
    }

    /// Returns true if a workload is measured when `able` targets can do it.
    ///
    /// A workload for the first N at once needs N targets. With exactly N it is skipped if another cell of
    /// the stage does the same for all at once.
    pub fn is_measured_on(&self, cell: usize, able: usize) -> bool {
        let Some(run) = self.cells.get(cell).and_then(Cell::as_workload) else { return false };
        let Volumes::First(count) = run.volumes else { return able > 0 };
        let count = count as usize;
        let all = WorkloadRun { volumes: Volumes::Together, ..run.clone() };
        let stage = &self.cells[cell].stage;
        let said_so = || self.workloads().any(|(_, of, other)| of == stage && *other == all);
        count < able || count == able && !said_so()
    }
}

impl ResolvedPlan {
    /// The number of machines of its processes.
    pub fn machines(&self) -> usize {
        self.node_ranks.len().max(1)
    }

    /// The number of machines between which a plan's stage measures the network. If nobody started them yet, it is
    /// the least number that the stage needs.
    pub fn network_machines(&self, run: &NetworkRun) -> usize {
        self.machines().max(run.machines_least())
    }

    /// The least time that measuring the network of a stage takes.
    pub fn network_stage_time(&self, run: &NetworkRun) -> Nanos {
        run.least_time(self.network_machines(run), self.warm_up + self.repeats)
    }

    /// The least time that measuring the network takes.
    pub(super) fn network_time(&self) -> Nanos {
        let times = self.network.iter().map(|run| self.network_stage_time(run));
        times.fold(Nanos(0), |sum, time| Nanos(sum.0.saturating_add(time.0)))
    }
}
