//! What the workers do: pure state machines that name the next operation and are told how it went.
//!
//! Operations in flight have no order among themselves, whatever the engine: a workload that needs one thing done
//! before another waits for its completion.

mod frames;
mod make_tree;
mod name;
mod transfer;
mod tree;
mod walk;

pub use frames::{Course, Frames, Piece};
pub use make_tree::MakeTree;
pub use transfer::{Direction, Order, Transfer, stamp};
pub use tree::Tree;
pub use walk::Walk;

use nilometer_model::{
    Bytes, Nanos, Seed,
    plan::{Access, Cell, Phase, RandomCell, StreamCell, SyncPolicy, WorkloadCell},
};
use nilometer_storage::{Buffer, Counted, OpKind, Workload};

/// What a worker needs to build its workload for a phase.
#[derive(Debug)]
pub struct Part {
    /// Which worker of the cell, from 0.
    pub worker: u32,
    /// Workers of the cell.
    pub workers: u32,
    /// Of this repeat of the cell; each worker and purpose derives its own.
    pub seed: Seed,
    /// `O_DIRECT`.
    pub direct: bool,
    /// No data operation is issued from here on.
    pub stop_at: Nanos,
    /// Its memory; all of it comes back when the workload is dropped.
    pub buffers: Vec<Buffer>,
}

/// The name of a worker's file or directory in the run's directory.
pub fn name_of(worker: u32) -> String {
    format!("n_w{worker}")
}

/// The names of the files that a cell's read phase reads.
pub fn files(cell: &Cell) -> Box<dyn Iterator<Item = String>> {
    match &cell.workload {
        WorkloadCell::Frames(frames) => frames::files(frames),
        _ => Box::new((0..cell.workers).map(name_of)),
    }
}

/// The least size of a worker's buffers: what an operation of the phase moves, or the longest name.
pub fn buffer_size(cell: &WorkloadCell, phase: Phase) -> usize {
    let block = match (cell, phase) {
        (WorkloadCell::Random(random), Phase::LayOut) => laid_out_block(random),
        _ => cell.parameters().block_size(),
    };
    (block.0 as usize).max(512)
}

/// The workload of one worker in one phase.
pub fn build(cell: &WorkloadCell, phase: Phase, part: Part) -> Box<dyn Workload> {
    let name = name_of(part.worker);
    match (cell, phase) {
        (WorkloadCell::Frames(frames), phase) => Box::new(Frames::new(frames, phase, SLOTS, part)),
        (WorkloadCell::Tree(tree), phase) => Box::new(Tree::new(tree, phase, SLOTS, part)),
        (WorkloadCell::Walk(walk), Phase::LayOut) => Box::new(MakeTree::new(&name, walk, part.buffers)),
        (WorkloadCell::Walk(_), _) => Box::new(Walk::new(&name, SLOTS, part.stop_at, part.buffers)),
        (WorkloadCell::Stream(stream), phase) => {
            Box::new(Transfer::new(&name, stream_order(stream), direction(phase, stream.sync), part))
        }
        (WorkloadCell::Random(random), Phase::LayOut) => {
            Box::new(Transfer::new(&name, laid_out(random), Direction::Write { sync: true }, part))
        }
        (WorkloadCell::Random(random), _) => {
            let order = Order::Random {
                size: random.file_size,
                block: random.block_size,
                operations: random.operations,
                stream: part.seed.named("offsets").part(u64::from(part.worker)).stream(),
            };
            Box::new(Transfer::new(&name, order, Direction::Read, part))
        }
    }
}

/// What an operation is in a phase, see [`Phase`].
pub fn counted(phase: Phase) -> Counted {
    match phase {
        Phase::MakeTree | Phase::MakeDirectories => Counted::Kind(OpKind::MakeDir),
        Phase::StatDirectories | Phase::StatFiles => Counted::Kind(OpKind::Stat),
        Phase::RemoveTree | Phase::RemoveDirectories => Counted::Kind(OpKind::RemoveDir),
        Phase::CreateFiles | Phase::ReadFiles => Counted::Files,
        Phase::RenameFiles => Counted::Kind(OpKind::Rename),
        Phase::RemoveFiles => Counted::Kind(OpKind::Unlink),
        Phase::LayOut
        | Phase::Source
        | Phase::Write
        | Phase::Read
        | Phase::Mix
        | Phase::Walk
        | Phase::Ingest => Counted::All,
    }
}

/// Open files a worker may have.
pub const SLOTS: u32 = 1024;

fn direction(phase: Phase, sync: SyncPolicy) -> Direction {
    match phase {
        Phase::Write => Direction::Write { sync: sync == SyncPolicy::Close },
        _ => Direction::Read,
    }
}

fn stream_order(stream: &StreamCell) -> Order {
    Order::Sequential { size: stream.file_size, block: stream.block_size }
}

fn laid_out(random: &RandomCell) -> Order {
    Order::Sequential { size: random.file_size, block: laid_out_block(random) }
}

/// The file of random reads is written in the largest whole number of its blocks up to 1 MiB that divides it.
fn laid_out_block(random: &RandomCell) -> Bytes {
    let Bytes(block) = random.block_size;
    let blocks = random.file_size.0 / block;
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
pub fn memory(cell: &Cell) -> Bytes {
    let largest =
        cell.phases().into_iter().map(|phase| buffer_size(&cell.workload, phase)).max().unwrap_or(0);
    Bytes(largest as u64 * u64::from(cell.depth) * u64::from(cell.workers))
}
