//! The workloads of the workers: pure state machines. A workload names the next operation and then gets its
//! result.
//!
//! Operations in flight have no order among themselves, whatever the engine. A workload that needs one thing
//! done before another waits for its completion.

mod build;
mod content;
mod copied_tree;
mod copy;
mod crew_share;
mod descent;
mod file_pass;
mod frames;
mod hot_file;
mod like_census;
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
pub use copied_tree::CopiedTree;
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

/// The inputs from which a worker builds its workload for a phase.
#[derive(Debug)]
pub struct WorkerPart {
    /// The worker's place among all workers of the cell.
    pub place: WorkerPlace,
    /// The seed of this repeat of the cell; each worker and purpose derives its own.
    pub seed: Seed,
    /// True for `O_DIRECT`.
    pub direct: bool,
    /// No data operation is issued from this time on.
    pub stop_at: Nanos,
    /// The number of blocks that this worker has written in the cell; [`EVERY_BLOCK`] until a phase stores
    /// another. A phase that writes stores it when it is done, since a time limit may have ended it early. A
    /// phase that reads goes no further.
    pub reached: Arc<AtomicU64>,
    /// Data that the workers of a process share.
    pub share: CrewShare,
    /// True if others make the same calls on the same files together with it. It then makes all of them,
    /// whatever their results.
    pub keeps_step: bool,
    /// Its memory; all of it comes back when the workload is dropped.
    pub buffers: Vec<Buffer>,
}

impl WorkerPart {
    /// The part of a worker that uses the page cache, has no time limit, and may read every block.
    pub fn new(place: WorkerPlace, seed: Seed, buffers: Vec<Buffer>) -> Self {
        let reached = Arc::new(AtomicU64::new(EVERY_BLOCK));
        let share = CrewShare::default();
        let keeps_step = false;
        WorkerPart { place, seed, direct: false, stop_at: Nanos::MAX, reached, share, keeps_step, buffers }
    }

    /// A seed of this worker's own for a purpose.
    fn seed_for(&self, purpose: &str) -> Seed {
        self.seed.named(purpose).part(u64::from(self.place.number()))
    }

    /// Turns it into a part for files that are laid out whole, perhaps in other blocks than those of the later
    /// reads.
    fn of_whole_files(self) -> Self {
        WorkerPart { reached: Arc::new(AtomicU64::new(EVERY_BLOCK)), ..self }
    }
}

/// More blocks than any file has.
pub const EVERY_BLOCK: u64 = u64::MAX;

/// The files that workers of a process read in a phase of a cell. They must be cold on its node before. For a
/// copy these are the files on the source, else those on the target.
pub fn files_of<'a>(
    cell: &'a WorkloadCell,
    phase: Phase,
    places: impl Iterator<Item = WorkerPlace> + 'a,
) -> Box<dyn Iterator<Item = String> + 'a> {
    match (cell, phase) {
        (WorkloadCell::Stream(cell), phase) => {
            Box::new(places.flat_map(move |place| stream::files(cell, phase, place)))
        }
        (WorkloadCell::Unpack(unpack), Phase::Unpack) if unpack.is_copied() => {
            Box::new(places.flat_map(|place| copied_tree::files(unpack, place)))
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

/// The least size of a worker's buffers: the size of the phase's operations, or the longest name.
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

/// The number of a worker's buffers. A worker that writes small blocks has more buffers than blocks in flight
/// and uses them in turn. A file system that compresses many blocks together then finds no two alike.
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
            let tree = part.share.tree(cell);
            match cell {
                WorkloadCell::Unpack(unpack) if unpack.is_copied() && phase != Phase::LayOut => {
                    Box::new(CopiedTree::new(tree, &name, unpack.durable, part))
                }
                // The source of a copy is synced: only clean pages leave the cache.
                WorkloadCell::Unpack(unpack) => {
                    Box::new(Unpack::new(tree, &name, unpack.durable || unpack.is_copied(), part))
                }
                _ => Box::new(Unpack::new(tree, &name, false, part)),
            }
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

/// The step that follows from a decision: issue the operation; or, if there is none, take the buffer back and
/// wait.
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

/// The operations that count for a cell in a phase: of a copy, those that write.
pub fn counted_of(cell: &WorkloadCell, phase: Phase) -> Counted {
    match phase {
        Phase::Write | Phase::Rewrite if cell.copies() => Counted::Copied,
        Phase::Unpack if cell.migrates() => Counted::CopiedFiles,
        _ => counted(phase),
    }
}

/// The operations that count in a phase, see [`Phase`].
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

/// The number of files that a worker may have open.
pub const SLOTS: u32 = 1024;

/// The block size for laying out a file that a later phase needs. It is the largest multiple of its blocks, up
/// to 1 MiB, that divides the file.
fn laid_out(file: Bytes, Bytes(block): Bytes) -> Bytes {
    let blocks = file.0 / block;
    let whole = (1..=(1 << 20) / block).rev().find(|&count| blocks.is_multiple_of(count));
    Bytes(block * whole.unwrap_or(1))
}

/// Returns true if a cell bypasses the page cache. `direct_is_real` is true if the target supports `O_DIRECT`.
pub fn is_direct(access: Option<Access>, direct_is_real: bool) -> bool {
    match access {
        Some(Access::Direct) => true,
        Some(Access::Best) => direct_is_real,
        Some(Access::Buffered) | None => false,
    }
}

/// The memory that a cell's workers hold.
pub fn memory(cell: &WorkloadRun) -> Bytes {
    let of_phase = |phase| buffer_size(&cell.workload, phase) as u64 * buffer_count(cell, phase) as u64;
    let largest = cell.phases().into_iter().map(of_phase).max().unwrap_or(0);
    Bytes(largest.saturating_mul(u64::from(cell.at_work())))
}
