//! `small_writes`: what its parameters mean for a worker.
//!
//! Either way a program makes its output piece by piece, which is a copy of each piece: into the buffer of the write
//! itself, or to the end of what it has collected. What all at once is compared with pays for no pieces.

use nilometer_model::Bytes;
use nilometer_plan::{SmallWritesCell, Way};

use super::{BlockContent, Direction, Names, Order, Pieces, Transfer, WorkerPart, Writing};

/// Longer than what file systems compress at a time.
const POOL: Bytes = Bytes(1 << 20);

/// Bytes of a buffer, of which one is the pool.
pub(super) fn buffer_size(cell: &SmallWritesCell) -> Bytes {
    match cell.way {
        Way::Each | Way::Collected => POOL,
        Way::AtOnce => cell.call_size(),
    }
}

/// Buffers that no operation needs.
pub(super) fn pools(cell: &SmallWritesCell) -> usize {
    usize::from(cell.way != Way::AtOnce)
}

/// The workload of one worker. The last buffer becomes the pool, unless all is written at once.
pub(super) fn build(cell: &SmallWritesCell, mut part: WorkerPart) -> Transfer {
    let names = Names::from(&*part.place.name());
    let seed = part.seed_for("content");
    let content = if pools(cell) > 0 {
        let pool = part.buffers.pop().expect("one buffer more than are in flight");
        BlockContent::Pieces(Pieces::new(pool, cell.write_size.0 as usize, seed))
    } else {
        BlockContent::Stamped(seed)
    };
    let order = Order::sequential(cell.total, cell.call_size());
    Transfer::with_content(names, order, Direction::Write(Writing::NEW), content, part)
}
