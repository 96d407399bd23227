//! One combination of a stage's parameters: what a repeat measures on a target.

use std::fmt;

use serde::Serialize;

use super::{Access, EngineKind, RandomSweep, StreamSweep, SyncPolicy, WalkSweep, WorkloadSweep};
use crate::{Bytes, Instrument, Nanos};

/// A workload with one value for each parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// What the workers do.
    pub workload: WorkloadCell,
}

/// A part of a cell that is measured by itself, with a barrier before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// New files are written.
    Write,
    /// They are read, cold.
    Read,
    /// Directories and files are made.
    Create,
    /// Every directory is listed, every entry is looked at.
    Walk,
    /// The recorder takes an instrument's frames.
    Ingest,
}

impl Phase {
    /// The opposite of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Phase::Write, Phase::Read, Phase::Create, Phase::Walk, Phase::Ingest];
        all.into_iter().find(|phase| phase.name() == name)
    }

    /// The word in the record and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Write => "write",
            Phase::Read => "read",
            Phase::Create => "create",
            Phase::Walk => "walk",
            Phase::Ingest => "ingest",
        }
    }
}

/// One combination of a workload's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadCell {
    /// Sequential write of a file a worker, then a cold sequential read.
    Stream(StreamCell),
    /// Aligned random reads of a file a worker.
    Random(RandomCell),
    /// List every directory, stat every entry.
    Walk(WalkCell),
}

/// See [`StreamSweep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StreamCell {
    /// Bytes a file.
    pub file_size: Bytes,
    /// Bytes an operation.
    pub block_size: Bytes,
    /// Through the page cache or past it.
    pub access: Access,
    /// When written data is made durable.
    pub sync: SyncPolicy,
}

/// See [`RandomSweep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RandomCell {
    /// Bytes a file.
    pub file_size: Bytes,
    /// Bytes an operation.
    pub block_size: Bytes,
    /// Through the page cache or past it.
    pub access: Access,
    /// Operations a worker.
    pub operations: u64,
}

/// See [`WalkSweep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WalkCell {
    /// Levels of directories below the first.
    pub levels: u32,
    /// Directories in each directory but the lowest.
    pub branching: u32,
    /// Files in each directory.
    pub files: u32,
}

/// An instrument to be recorded: once as fast as the storage takes its frames, or at its own pace.
#[derive(Debug, Clone, Serialize)]
pub struct IngestCell {
    /// What delivers frames.
    pub instrument: Instrument,
    /// Frames come when due; otherwise as fast as they are taken.
    pub paced: bool,
    /// How long frames come.
    pub duration: Nanos,
    /// Memory of the ring.
    pub buffer: Bytes,
    /// Older frames are removed when the recording is larger than this.
    pub keep: Bytes,
    /// How often it is measured.
    pub repeats: u32,
}

impl fmt::Display for IngestCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instrument { name, .. } = &self.instrument;
        let pace = if self.paced {
            format!("at {}", self.instrument.rate())
        } else {
            "as fast as it is taken".into()
        };
        write!(f, "{name} {pace} for {}, buffer {}", self.duration, self.buffer)
    }
}

impl WalkCell {
    /// Directories of the whole tree, the first included.
    pub fn directories(&self) -> u64 {
        (0..=self.levels)
            .map(|level| u64::from(self.branching).saturating_pow(level))
            .fold(0, u64::saturating_add)
    }

    /// Files of the whole tree.
    pub fn all_files(&self) -> u64 {
        self.directories().saturating_mul(u64::from(self.files))
    }
}

impl WorkloadSweep {
    /// The matrix of the workload's own parameters.
    pub(super) fn cells(&self) -> Vec<WorkloadCell> {
        match self {
            WorkloadSweep::Stream(sweep) => sweep.cells().into_iter().map(WorkloadCell::Stream).collect(),
            WorkloadSweep::Random(sweep) => sweep.cells().into_iter().map(WorkloadCell::Random).collect(),
            WorkloadSweep::Walk(sweep) => sweep.cells().into_iter().map(WorkloadCell::Walk).collect(),
        }
    }
}

impl StreamSweep {
    fn cells(&self) -> Vec<StreamCell> {
        let (file_size, block_size) = (Bytes(0), Bytes(0));
        let cells =
            vec![StreamCell { file_size, block_size, access: Access::Direct, sync: SyncPolicy::Close }];
        let cells = self.file_size.over(cells, |cell, value| cell.file_size = value);
        let cells = self.block_size.over(cells, |cell, value| cell.block_size = value);
        let cells = self.access.over(cells, |cell, value| cell.access = value);
        self.sync.over(cells, |cell, value| cell.sync = value)
    }
}

impl RandomSweep {
    fn cells(&self) -> Vec<RandomCell> {
        let (file_size, block_size) = (Bytes(0), Bytes(0));
        let cells = vec![RandomCell { file_size, block_size, access: Access::Direct, operations: 0 }];
        let cells = self.file_size.over(cells, |cell, value| cell.file_size = value);
        let cells = self.block_size.over(cells, |cell, value| cell.block_size = value);
        let cells = self.access.over(cells, |cell, value| cell.access = value);
        self.operations.over(cells, |cell, value| cell.operations = value)
    }
}

impl WalkSweep {
    fn cells(&self) -> Vec<WalkCell> {
        let cells = vec![WalkCell { levels: 0, branching: 0, files: 0 }];
        let cells = self.levels.over(cells, |cell, value| cell.levels = value);
        let cells = self.branching.over(cells, |cell, value| cell.branching = value);
        self.files.over(cells, |cell, value| cell.files = value)
    }
}

impl WorkloadCell {
    /// The phases, in order.
    pub fn phases(&self) -> &'static [Phase] {
        match self {
            WorkloadCell::Stream(_) | WorkloadCell::Random(_) => &[Phase::Write, Phase::Read],
            WorkloadCell::Walk(_) => &[Phase::Create, Phase::Walk],
        }
    }

    /// Whether a phase is reported, or only lays out what the next one needs.
    pub fn is_setup(&self, phase: Phase) -> bool {
        matches!(
            (self, phase),
            (WorkloadCell::Random(_), Phase::Write) | (WorkloadCell::Walk(_), Phase::Create)
        )
    }

    /// The workload's word in plans and reports.
    pub fn name(&self) -> &'static str {
        match self {
            WorkloadCell::Stream(_) => "stream",
            WorkloadCell::Random(_) => "random",
            WorkloadCell::Walk(_) => "walk",
        }
    }

    /// Bytes an operation needs in memory.
    pub fn block_size(&self) -> Bytes {
        match self {
            WorkloadCell::Stream(stream) => stream.block_size,
            WorkloadCell::Random(random) => random.block_size,
            WorkloadCell::Walk(_) => Bytes(32 << 10),
        }
    }

    /// Through the page cache or past it; none where no data is moved.
    pub fn access(&self) -> Option<Access> {
        match self {
            WorkloadCell::Stream(stream) => Some(stream.access),
            WorkloadCell::Random(random) => Some(random.access),
            WorkloadCell::Walk(_) => None,
        }
    }

    /// Bytes and files that one worker leaves on the target.
    pub fn footprint(&self) -> (Bytes, u64) {
        match self {
            WorkloadCell::Stream(stream) => (stream.file_size, 1),
            WorkloadCell::Random(random) => (random.file_size, 1),
            WorkloadCell::Walk(walk) => {
                let files = walk.all_files().saturating_add(walk.directories());
                (Bytes(files.saturating_mul(4096)), files)
            }
        }
    }

    /// What makes no sense on any target.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            WorkloadCell::Stream(stream) => whole_blocks(stream.file_size, stream.block_size),
            WorkloadCell::Random(random) => whole_blocks(random.file_size, random.block_size),
            WorkloadCell::Walk(walk) if walk.all_files() > 100_000_000 => Err(format!(
                "levels, branching and files make {} files: at most 100 million",
                walk.all_files()
            )),
            WorkloadCell::Walk(_) => Ok(()),
        }
    }
}

fn whole_blocks(file: Bytes, block: Bytes) -> Result<(), String> {
    if block.0 == 0 || block.0 > 1 << 30 {
        return Err(format!("block_size = \"{block}\": write 1 B to 1 GiB"));
    }
    if file.0 == 0 || !file.0.is_multiple_of(block.0) {
        return Err(format!("file_size = \"{file}\" is not a whole number of blocks of \"{block}\""));
    }
    Ok(())
}

impl fmt::Display for WorkloadCell {
    /// The parameters, as reports name the cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadCell::Stream(StreamCell { file_size, block_size, access, sync }) => {
                let sync = if *sync == SyncPolicy::None { ", never synced" } else { "" };
                write!(f, "{file_size} by {block_size}, {}{sync}", access.name())
            }
            WorkloadCell::Random(RandomCell { block_size, access, .. }) => {
                write!(f, "{block_size}, {}", access.name())
            }
            WorkloadCell::Walk(walk) => {
                write!(f, "{} files in {} directories", walk.all_files(), walk.directories())
            }
        }
    }
}

impl fmt::Display for Cell {
    /// The whole cell in a line, as the record's key within its plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.workload, plural(self.workers, "worker"))?;
        match (self.engine, self.depth) {
            (EngineKind::Sync, _) => Ok(()),
            (engine, depth) => write!(f, ", {} depth {depth}", engine.name()),
        }
    }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}

impl Access {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Buffered => "buffered",
            Access::Direct => "direct",
            Access::Best => "direct if real",
        }
    }
}

impl EngineKind {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::Sync => "sync",
            EngineKind::IoUring => "io_uring",
            EngineKind::Pool => "pool",
        }
    }
}
