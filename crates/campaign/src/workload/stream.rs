//! `stream`: turns its parameters into the workload of a worker.

use nilometer_model::Phase;
use nilometer_plan::{DataSource, FileLayout, StreamCell};
use nilometer_storage::{Open, Workload};

use super::{Copy, Direction, Names, Order, Transfer, WorkerPart, WorkerPlace, Writing, laid_out, names};

/// The workload of one worker in one phase.
pub(super) fn build(cell: &StreamCell, phase: Phase, part: WorkerPart) -> Box<dyn Workload> {
    let sources = source_names(cell, part.place);
    let names = target_names(cell, part.place);
    match phase {
        // A copy, too, reads its source through the page cache.
        Phase::LayOut | Phase::Source => {
            let part = WorkerPart { direct: false, ..part.of_whole_files() };
            let (block, direction) = match phase {
                Phase::LayOut => (laid_out(cell.file_size, cell.block_size), Direction::Write(Writing::NEW)),
                _ => (cell.block_size, Direction::Read),
            };
            Box::new(Transfer::new(sources, Order::sequential(cell.file_size, block), direction, part))
        }
        Phase::Write | Phase::Rewrite => {
            let part = of_pass(phase, part);
            let order = order(cell, &part);
            let writing = writing(cell, phase, &part);
            let direction = match phase {
                Phase::Rewrite => Direction::Rewrite(writing),
                _ => Direction::Write(writing),
            };
            match cell.source {
                DataSource::Memory => Box::new(Transfer::new(names, order, direction, part)),
                DataSource::Disk => Box::new(Copy::new(sources, names, order, writing, part)),
            }
        }
        _ => read(cell, part),
    }
}

/// A rewrite writes other bytes than those in the file: some file systems notice identical ones, and write
/// nothing.
fn of_pass(phase: Phase, part: WorkerPart) -> WorkerPart {
    let seed = if phase == Phase::Rewrite { part.seed.named("rewrite") } else { part.seed };
    WorkerPart { seed, ..part }
}

/// Reads a worker's own files as far as it wrote them; those of others whole.
fn read(cell: &StreamCell, part: WorkerPart) -> Box<dyn Workload> {
    let writer = part.place.further(cell.shift, 1);
    let order = order_of(cell, writer, part.place.total());
    let names = names_of(cell, part.place, writer);
    let own = writer == part.place.number();
    let part = if own { part } else { part.of_whole_files() };
    Box::new(Transfer::new(names, order, Direction::Read, part))
}

/// The files that must be cold, see [`super::files_of`].
pub(super) fn files(cell: &StreamCell, phase: Phase, place: WorkerPlace) -> Box<dyn Iterator<Item = String>> {
    let copies = cell.source == DataSource::Disk;
    match phase {
        Phase::Source | Phase::Write | Phase::Rewrite if copies => Box::new(source_names(cell, place).all()),
        // A file that all share is dropped from the cache once on the node of each process.
        Phase::Read if cell.layout == FileLayout::Own || place.worker == 0 => {
            Box::new(names_of(cell, place, place.further(cell.shift, 1)).all())
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn source_names(cell: &StreamCell, place: WorkerPlace) -> Names {
    Names::new(place.name(), cell.files_of(place.number(), place.total()))
}

fn target_names(cell: &StreamCell, place: WorkerPlace) -> Names {
    names_of(cell, place, place.number())
}

/// The names of the files that the worker of this number writes.
fn names_of(cell: &StreamCell, place: WorkerPlace, writer: u32) -> Names {
    match cell.layout {
        FileLayout::Own => Names::new(place.name_of(writer), cell.files_of(writer, place.total())),
        FileLayout::Segmented | FileLayout::Strided => Names::from(&*place.shared(names::SHARED)),
    }
}

fn order(cell: &StreamCell, part: &WorkerPart) -> Order {
    order_of(cell, part.place.number(), part.place.total())
}

/// The blocks that the worker of this number writes.
fn order_of(cell: &StreamCell, writer: u32, workers: u32) -> Order {
    let StreamCell { file_size, block_size, .. } = *cell;
    match cell.layout {
        FileLayout::Own => Order::sequential(file_size, block_size),
        FileLayout::Segmented => Order::segmented(file_size, block_size, writer),
        FileLayout::Strided => Order::strided(file_size, block_size, writer, workers),
    }
}

/// The first worker to open a shared file makes it; the worker with number 0 reserves the space of all.
fn writing(cell: &StreamCell, phase: Phase, part: &WorkerPart) -> Writing {
    if phase == Phase::Rewrite {
        return Writing { open: Open::WRITE, reserve: None, sync: cell.sync };
    }
    let (open, reserved) = match cell.layout {
        FileLayout::Own => (Open::CREATE, Some(cell.file_size.0)),
        _ if part.place.number() == 0 => {
            (Open::SHARED, Some(cell.file_size.0.saturating_mul(u64::from(part.place.total()))))
        }
        _ => (Open::SHARED, None),
    };
    Writing { open, reserve: reserved.filter(|_| cell.preallocate), sync: cell.sync }
}
