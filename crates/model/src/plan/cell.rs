//! One combination of a stage's parameters: what a repeat measures on a target.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, EngineKind, Footprint, Phase, WorkloadCell};
use crate::{Bytes, Nanos};

/// A workload with one value for each parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The stage it belongs to.
    pub stage: String,
    /// Threads.
    pub workers: u32,
    /// How operations are issued.
    pub engine: EngineKind,
    /// Operations in flight a worker.
    pub depth: u32,
    /// A phase ends after this time at the latest.
    pub time_limit: Option<Nanos>,
    /// A phase ends for all workers when the first has done its part.
    pub stonewall: bool,
    /// Each target by itself, or all at the same time.
    pub volumes: Volumes,
    /// Storage devices a file is spread over, where the target can; its default if none.
    pub stripe_count: Option<u32>,
    /// What the workers do.
    pub workload: WorkloadCell,
}

/// Whether targets are measured one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Volumes {
    /// Each target by itself.
    #[default]
    Alone,
    /// All at the same time, each with its workers.
    Together,
}

impl Cell {
    /// The phases, in order.
    pub fn phases(&self) -> Vec<Phase> {
        self.workload.parameters().phases()
    }

    /// The most bytes that an operation moves.
    pub fn block_size(&self) -> Bytes {
        self.workload.parameters().block_size()
    }

    /// Through the page cache or past it; none where no data are moved.
    pub fn access(&self) -> Option<Access> {
        self.workload.parameters().access()
    }

    /// Data come from files in the plan's source directory.
    pub fn copies(&self) -> bool {
        self.workload.copies()
    }

    /// What the cell leaves on a target until it is cleared.
    pub fn footprint(&self) -> Footprint {
        self.workload.parameters().footprint(self.workers)
    }
}

impl fmt::Display for Cell {
    /// The whole cell in a line, as the record's key within its plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.workload, plural(self.workers, "worker"))?;
        if self.engine != EngineKind::Sync {
            write!(f, ", {} depth {}", self.engine.name(), self.depth)?;
        }
        if let Some(count) = self.stripe_count {
            write!(f, ", stripe count {count}")?;
        }
        if self.volumes == Volumes::Together {
            f.write_str(", all at once")?;
        }
        if self.stonewall {
            f.write_str(", stonewall")?;
        }
        Ok(())
    }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}
