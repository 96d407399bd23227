//! `small_writes`: turns its parameters into the workload of a worker.
//!
//! A program makes its output piece by piece and copies each piece, into the buffer of the write itself or to
//! the end of the collected output. The baseline, which writes all at once, copies no pieces.

use nilometer_model::Bytes;
use nilometer_plan::{SmallWritesCell, Way};

use super::{BlockContent, Direction, Names, Order, Pieces, Transfer, WorkerPart, Writing};

/// Longer than the unit that file systems compress at a time.
const POOL: Bytes = Bytes(1 << 20);

/// The size of a buffer; one of them is the pool.
pub(super) fn buffer_size(cell: &SmallWritesCell) -> Bytes {
    match cell.way {
        Way::Each | Way::Collected => POOL,
        Way::AtOnce => cell.call_size(),
    }
}

/// The number of buffers that no operation needs.
pub(super) fn pools(cell: &SmallWritesCell) -> usize {
    usize::from(cell.way != Way::AtOnce)
}

/// The workload of one worker. The last buffer becomes the pool, unless the whole file is written at once.
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
