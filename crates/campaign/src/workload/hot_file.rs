//! `hot_file`: the first of all workers makes the file, and all workers read it.

use nilometer_model::Phase;
use nilometer_plan::HotFileCell;
use nilometer_storage::Workload;

use super::{
    Direction, Order, Transfer, WorkerPart, WorkerPlace, Writing, laid_out, names, nothing::Nothing,
};

/// The workload of one worker in one phase.
pub(super) fn build(cell: &HotFileCell, phase: Phase, part: WorkerPart) -> Box<dyn Workload> {
    let part = part.of_whole_files();
    let name = part.place.shared(names::SHARED);
    let HotFileCell { file_size, block_size, .. } = *cell;
    if phase != Phase::LayOut {
        let order = Order::sequential(file_size, block_size);
        return Box::new(Transfer::new(&*name, order, Direction::Read, part));
    }
    if part.place.number() > 0 {
        return Box::new(Nothing);
    }
    let order = Order::sequential(file_size, laid_out(file_size, block_size));
    Box::new(Transfer::new(&*name, order, Direction::Write(Writing::NEW), part))
}

/// The file that must be cold at first, once for all workers of a process. See [`super::files_of`].
pub(super) fn files(phase: Phase, place: WorkerPlace) -> Option<String> {
    (phase == Phase::Read && place.worker == 0).then(|| place.shared(names::SHARED))
}
