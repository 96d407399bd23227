//! `random`: turns its parameters into the workload of a worker.

use nilometer_model::Phase;
use nilometer_plan::{Coverage, Mode, RandomCell};

use super::{Direction, Order, Transfer, WorkerPart, Writing, laid_out};

/// The workload of one worker in one phase.
pub(super) fn build(cell: &RandomCell, phase: Phase, part: WorkerPart) -> Transfer {
    let name = part.place.name();
    let part = part.of_whole_files();
    if phase == Phase::LayOut {
        let order = Order::sequential(cell.file_size, laid_out(cell.file_size, cell.block_size));
        return Transfer::new(&*name, order, Direction::Write(Writing::NEW), part);
    }
    let RandomCell { file_size, block_size, operations, .. } = *cell;
    let order = match cell.coverage {
        Coverage::Uniform => {
            Order::uniform(file_size, block_size, operations, part.seed_for("offsets").stream())
        }
        Coverage::Full => Order::full(file_size, block_size, operations, part.seed_for("offsets")),
    };
    let direction = match cell.mode {
        Mode::Read => Direction::Read,
        Mode::Write => Direction::Write(Writing::OVER),
        Mode::Mix => Direction::Mix { reads: cell.reads },
    };
    Transfer::new(&*name, order, direction, part)
}
