//! A plan against its targets: what can't work is said before anything starts.

use nilometer_model::{
    Bytes,
    plan::{Access, Cell, Cells, Footprint, IngestCell},
};
use nilometer_storage::target::{Description, Direct, Space};
use serde::Serialize;

use crate::{ingest::Shape, workload};

/// A plan that fits its targets.
#[derive(Debug, Clone, Serialize)]
pub struct Resolved {
    /// The plan.
    pub plan: Cells,
    /// Described in the order of the command line.
    pub targets: Vec<Description>,
}

/// A plan that can't run on a target. The message names stage, cell and what would do.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing can be written there.
    #[error("{path}: can't be written: name a directory that this user may write to")]
    ReadOnly {
        /// The target.
        path: String,
    },
    /// `O_DIRECT` can't take such blocks.
    #[error(
        "stage `{stage}`: {key} = \"{block}\" is no multiple of {alignment}, which O_DIRECT needs on {path}: \
         write a multiple, or access = \"buffered\""
    )]
    Alignment {
        /// The stage.
        stage: String,
        /// The parameter, or what follows from it.
        key: &'static str,
        /// Its size.
        block: Bytes,
        /// What it should be a multiple of.
        alignment: Bytes,
        /// The target.
        path: String,
    },
    /// There is no `O_DIRECT`.
    #[error(
        "stage `{stage}`: access = \"direct\" is not possible on {path} ({why}): write \"best\" or \"buffered\""
    )]
    NoDirect {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// What it does instead.
        why: String,
    },
    /// Too little space.
    #[error("stage `{stage}` needs {needed} on {path}, which has {free} free, and {reserve} must stay free")]
    Space {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// What a cell leaves there.
        needed: Bytes,
        /// What there is.
        free: Bytes,
        /// What the plan leaves alone.
        reserve: Bytes,
    },
    /// Too few inodes.
    #[error("stage `{stage}` needs {needed} inodes on {path}, which has {free} free")]
    Inodes {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// Files and directories of a cell.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// Too little memory.
    #[error("stage `{stage}` needs {needed} of buffers, this machine has {available} of memory available")]
    Memory {
        /// The stage.
        stage: String,
        /// Of all workers of a cell.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
}

/// Checks every cell against every target.
pub fn resolve(plan: Cells, targets: Vec<Description>) -> Result<Resolved, ResolveError> {
    for cell in &plan.cells {
        check_memory(&cell.stage, workload::memory(cell))?;
        for target in &targets {
            check_writable(target)?;
            let Footprint { bytes, entries } = cell.footprint();
            check_space(&cell.stage, bytes, entries, target, plan.reserve)?;
            check_access(cell, target)?;
        }
    }
    for cell in &plan.ingests {
        check_ingest(cell, &targets, plan.reserve)?;
    }
    Ok(Resolved { plan, targets })
}

fn check_writable(target: &Description) -> Result<(), ResolveError> {
    let path = target.path.display().to_string();
    if target.writable { Ok(()) } else { Err(ResolveError::ReadOnly { path }) }
}

fn check_access(cell: &Cell, target: &Description) -> Result<(), ResolveError> {
    let path = target.path.display().to_string();
    let stage = cell.stage.clone();
    match (cell.access(), &target.direct) {
        (Some(Access::Direct | Access::Best), &Direct::Real { alignment }) => {
            let sizes = cell.workload.parameters().alignments(cell.workers);
            let odd = sizes.into_iter().find(|(_, size)| !size.0.is_multiple_of(u64::from(alignment)));
            let Some((key, block)) = odd else { return Ok(()) };
            Err(ResolveError::Alignment { stage, key, block, alignment: Bytes(u64::from(alignment)), path })
        }
        (Some(Access::Direct), other) => Err(ResolveError::NoDirect { stage, path, why: other.to_string() }),
        _ => Ok(()),
    }
}

fn check_memory(stage: &str, needed: Bytes) -> Result<(), ResolveError> {
    match available_memory() {
        Some(available) if needed.0 > available.0 / 2 => {
            Err(ResolveError::Memory { stage: stage.into(), needed, available })
        }
        _ => Ok(()),
    }
}

fn check_space(
    stage: &str,
    needed: Bytes,
    files: u64,
    target: &Description,
    reserve: Bytes,
) -> Result<(), ResolveError> {
    let Space { free, free_inodes, .. } = target.space;
    let (stage, path) = (stage.to_owned(), target.path.display().to_string());
    if needed.0.saturating_add(reserve.0) > free.0 {
        return Err(ResolveError::Space { stage, path, needed, free, reserve });
    }
    match free_inodes {
        Some(free) if files + 2 > free => Err(ResolveError::Inodes { stage, path, needed: files + 2, free }),
        _ => Ok(()),
    }
}

fn check_ingest(cell: &IngestCell, targets: &[Description], reserve: Bytes) -> Result<(), ResolveError> {
    for target in targets {
        check_writable(target)?;
        let shape = Shape::of(cell, target.direct_alignment().is_some());
        // What lies in memory counts there too.
        let memory =
            if target.is_memory() { shape.memory().0 + shape.footprint().0 } else { shape.memory().0 };
        check_memory(&cell.instrument.name, Bytes(memory))?;
        check_space(&cell.instrument.name, shape.footprint(), 8, target, reserve)?;
    }
    Ok(())
}

/// `MemAvailable` (`proc_meminfo(5)`).
fn available_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse().ok().map(|kib: u64| Bytes(kib * 1024))
}
