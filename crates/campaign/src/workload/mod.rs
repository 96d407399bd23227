//! What the workers do: pure state machines that name the next operation and are told how it went.
//!
//! Operations in flight have no order among themselves, whatever the engine: a workload that needs one thing done
//! before another waits for its completion.

mod build;
mod content;
mod copy;
mod crew_share;
mod descent;
mod file_pass;
mod frames;
mod hot_file;
mod name;
mod names;
mod nothing;
mod one_by_one;
mod open_files;
mod order;
mod paced;
mod permutation;
mod place;
mod published;
mod random;
mod small_writes;
mod source_tree;
mod stonewall;
mod stream;
mod transfer;
mod tree;
mod unpack;
mod wait;
mod walk;
mod writing;

pub use build::{Build, BuildPlan, BuildQueue};
pub use content::{BlockContent, Pieces, stamp};
pub use copy::Copy;
pub use crew_share::CrewShare;
pub use frames::{Course, Frames, Piece};
pub use names::Names;
pub use one_by_one::{OneByOne, Steps};
pub use open_files::OpenFiles;
pub use order::Order;
pub use paced::{Paced, WorkerPace};
pub use permutation::Permutation;
pub use place::WorkerPlace;
pub use published::{LookFor, Looked, Publish, PublishedFile};
pub use source_tree::{SourceTree, TreeDirectory};
pub use stonewall::Stonewall;
pub use transfer::{Direction, Transfer};
pub use tree::Tree;
pub use unpack::Unpack;
pub use wait::TimedWaits;
pub use walk::{FoundEntries, NEEDLE, Walk, WalkTask};
pub use writing::Writing;

use std::sync::{Arc, atomic::AtomicU64};

use nilometer_model::{Bytes, Nanos, Phase, Seed};
use nilometer_plan::{Access, WalkCell, WorkloadCell, WorkloadRun};
use nilometer_storage::{Buffer, Counted, OpKind, Operation, Step, Wait, Workload};

/// What a worker needs to build its workload for a phase.
#[derive(Debug)]
pub struct WorkerPart {
    /// Which worker of the cell it is.
    pub place: WorkerPlace,
    /// Of this repeat of the cell; each worker and purpose derives its own.
    pub seed: Seed,
    /// `O_DIRECT`.
    pub direct: bool,
    /// No data operation is issued from here on.
    pub stop_at: Nanos,
    /// How many blocks this worker has written in the cell, [`EVERY_BLOCK`] as long as nobody said: a phase that writes
    /// says so when it is done, since a time limit may have ended it, and one that reads goes no further.
    pub reached: Arc<AtomicU64>,
    /// What the workers of a process have together.
    pub share: CrewShare,
    /// Others make the same calls on the same files together with it: it makes all of them, whatever comes of each.
    pub keeps_step: bool,
    /// Its memory; all of it comes back when the workload is dropped.
    pub buffers: Vec<Buffer>,
}

impl WorkerPart {
    /// Of a worker that may work through the page cache for as long as it likes, with all that there is to be read.
    pub fn new(place: WorkerPlace, seed: Seed, buffers: Vec<Buffer>) -> Self {
        let reached = Arc::new(AtomicU64::new(EVERY_BLOCK));
        let share = CrewShare::default();
        let keeps_step = false;
        WorkerPart { place, seed, direct: false, stop_at: Nanos::MAX, reached, share, keeps_step, buffers }
    }

    /// A seed of the worker's own for a purpose.
    fn seed_for(&self, purpose: &str) -> Seed {
        self.seed.named(purpose).part(u64::from(self.place.number()))
    }

    /// For files that are laid out whole, perhaps in other blocks than they are read in.
    fn of_whole_files(self) -> Self {
        WorkerPart { reached: Arc::new(AtomicU64::new(EVERY_BLOCK)), ..self }
    }
}

/// More blocks than any file has.
pub const EVERY_BLOCK: u64 = u64::MAX;

/// The files that workers of a process read in a phase of a cell and that must be cold on its node before: of a copy
/// those on the source, else those on the target.
pub fn files_of<'a>(
    cell: &'a WorkloadCell,
    phase: Phase,
    places: impl Iterator<Item = WorkerPlace> + 'a,
) -> Box<dyn Iterator<Item = String> + 'a> {
    match (cell, phase) {
        (WorkloadCell::Stream(cell), phase) => {
            Box::new(places.flat_map(move |place| stream::files(cell, phase, place)))
        }
        (WorkloadCell::Random(_), Phase::Read | Phase::Mix) => Box::new(places.map(WorkerPlace::name)),
        (WorkloadCell::Frames(cell), Phase::Read) => {
            Box::new(places.take(1).flat_map(move |place| frames::files(cell, place)))
        }
        (WorkloadCell::HotFile(_), phase) => {
            Box::new(places.filter_map(move |place| hot_file::files(phase, place)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// The least size of a worker's buffers: what an operation of the phase moves, or the longest name.
pub fn buffer_size(cell: &WorkloadCell, phase: Phase) -> usize {
    let block = match cell {
        WorkloadCell::Stream(cell) if phase == Phase::LayOut => laid_out(cell.file_size, cell.block_size),
        WorkloadCell::Random(cell) if phase == Phase::LayOut => laid_out(cell.file_size, cell.block_size),
        WorkloadCell::HotFile(cell) if phase == Phase::LayOut => laid_out(cell.file_size, cell.block_size),
        WorkloadCell::SmallWrites(cell) => small_writes::buffer_size(cell),
        _ => cell.parameters().block_size(),
    };
    (block.0 as usize).max(512)
}

/// How many buffers a worker has. Whoever writes small blocks has more than are in flight and takes turns among them, so
/// that a file system which compresses many blocks together finds no two alike.
pub fn buffer_count(cell: &WorkloadRun, phase: Phase) -> usize {
    let depth = cell.depth as usize;
    let turns = (1 << 20) / buffer_size(&cell.workload, phase);
    match (&cell.workload, phase) {
        (WorkloadCell::SmallWrites(cell), _) => depth + small_writes::pools(cell),
        (
            WorkloadCell::Stream(_)
            | WorkloadCell::Random(_)
            | WorkloadCell::HotFile(_)
            | WorkloadCell::Walk(_)
            | WorkloadCell::Search(_)
            | WorkloadCell::OpenFiles(_),
            Phase::LayOut | Phase::Write | Phase::Rewrite | Phase::Mix,
        )
        | (WorkloadCell::Unpack(_) | WorkloadCell::Build(_), _) => depth.max(turns.min(256)),
        _ => depth,
    }
}

/// The workload of one worker in one phase.
pub fn build(cell: &WorkloadCell, phase: Phase, part: WorkerPart) -> Box<dyn Workload> {
    let name = part.place.name();
    match (cell, phase) {
        (WorkloadCell::Frames(frames), phase) => Box::new(Frames::new(frames, phase, SLOTS, part)),
        (WorkloadCell::Tree(tree), phase) => Box::new(Tree::new(tree, phase, SLOTS, part)),
        (WorkloadCell::Build(build), phase) => build::build(build, phase, part),
        (WorkloadCell::Walk(_) | WorkloadCell::Search(_) | WorkloadCell::OpenFiles(_), Phase::LayOut)
        | (WorkloadCell::Unpack(_), _) => {
            let durable = matches!(cell, WorkloadCell::Unpack(unpack) if unpack.durable);
            Box::new(Unpack::new(part.share.tree(cell), &name, durable, part))
        }
        (WorkloadCell::Walk(walk), _) => Box::new(walked(walk, part)),
        (WorkloadCell::Search(_), _) => {
            Box::new(Walk::new(&name, WalkTask::Search, SLOTS, part.stop_at, part.buffers))
        }
        (WorkloadCell::OpenFiles(opened), _) => {
            Box::new(OpenFiles::new(part.share.tree(cell), &name, opened.operations, part))
        }
        (WorkloadCell::Stream(cell), phase) => stream::build(cell, phase, part),
        (WorkloadCell::HotFile(cell), phase) => hot_file::build(cell, phase, part),
        (WorkloadCell::Random(cell), phase) => Box::new(random::build(cell, phase, part)),
        (WorkloadCell::SmallWrites(cell), _) => Box::new(small_writes::build(cell, part)),
        (WorkloadCell::Visibility(_) | WorkloadCell::Locks(_), _) => {
            unreachable!("its phase is a conversation of processes, see `crate::conversation`")
        }
        (WorkloadCell::Wait(cell), _) => Box::new(TimedWaits::new(cell, &part)),
    }
}

fn walked(cell: &WalkCell, part: WorkerPart) -> Walk {
    let maker = part.place.name_of(part.place.further(cell.shift, 1));
    Walk::new(&maker, WalkTask::Look(cell.command), SLOTS, part.stop_at, part.buffers)
}

/// The step that comes of a decision: an operation, or none for now, and the buffer back.
#[inline]
fn decided(
    decided: Result<Operation, Buffer>,
    buffers: &mut Vec<Buffer>,
    flying: &mut u32,
    now: Nanos,
) -> Step {
    match decided {
        Ok(operation) => {
            *flying += 1;
            Step::Issue(operation, now)
        }
        Err(buffer) => {
            buffers.push(buffer);
            if *flying > 0 { Step::Wait(Wait::ForOne) } else { Step::Done }
        }
    }
}

/// What an operation is in a phase, see [`Phase`].
pub fn counted(phase: Phase) -> Counted {
    match phase {
        Phase::MakeTree | Phase::MakeDirectories => Counted::Kind(OpKind::MakeDir),
        Phase::StatDirectories | Phase::StatFiles => Counted::Kind(OpKind::Stat),
        Phase::RemoveTree | Phase::RemoveDirectories => Counted::Kind(OpKind::RemoveDir),
        Phase::CreateFiles
        | Phase::ReadFiles
        | Phase::Unpack
        | Phase::Search
        | Phase::OpenFiles
        | Phase::Build => Counted::Files,
        Phase::RenameFiles => Counted::Kind(OpKind::Rename),
        Phase::RemoveFiles => Counted::Kind(OpKind::Unlink),
        Phase::LayOut
        | Phase::Source
        | Phase::Write
        | Phase::Rewrite
        | Phase::Read
        | Phase::ReadAgain
        | Phase::Mix
        | Phase::Walk
        | Phase::DiskUsage
        | Phase::Visibility
        | Phase::Locks
        | Phase::Wait
        | Phase::Given
        | Phase::Ingest => Counted::All,
    }
}

/// Open files a worker may have.
pub const SLOTS: u32 = 1024;

/// A file that a later phase needs is written in the largest whole number of its blocks up to 1 MiB that divides it.
fn laid_out(file: Bytes, Bytes(block): Bytes) -> Bytes {
    let blocks = file.0 / block;
    let whole = (1..=(1 << 20) / block).rev().find(|&count| blocks.is_multiple_of(count));
    Bytes(block * whole.unwrap_or(1))
}

/// Whether a cell goes past the page cache on a target where `O_DIRECT` is real, or not.
pub fn is_direct(access: Option<Access>, direct_is_real: bool) -> bool {
    match access {
        Some(Access::Direct) => true,
        Some(Access::Best) => direct_is_real,
        Some(Access::Buffered) | None => false,
    }
}

/// Bytes that a cell's workers hold in memory.
pub fn memory(cell: &WorkloadRun) -> Bytes {
    let of_phase = |phase| buffer_size(&cell.workload, phase) as u64 * buffer_count(cell, phase) as u64;
    let largest = cell.phases().into_iter().map(of_phase).max().unwrap_or(0);
    Bytes(largest.saturating_mul(u64::from(cell.at_work())))
}
