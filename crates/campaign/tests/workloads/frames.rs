//! `frames`: every byte is written once and read where it lies, however the work is split.

use std::{collections::BTreeMap, fs};

use nilometer_campaign::workload::{Course, Frames, Piece};
use nilometer_model::{Bytes, Phase};
use nilometer_plan::{
    Access, FrameFile, FrameRead, FramesCell, Parameters, Split, SyncPolicy, Work, WorkloadCell,
};
use nilometer_storage::{Arena, Completion, Drive, Engine, OpKind, testing::conformance::workload_suite};
use proptest::prelude::*;

use crate::{
    crew::{Real, Virtual},
    demands, part, run,
};

pub(crate) const CELL: FramesCell = FramesCell {
    rows: 6,
    row_size: Bytes(100),
    frames: 7,
    access: Access::Buffered,
    file: FrameFile::One,
    split: Split::Turns,
    align: Bytes(1),
    read: FrameRead::Frame,
    sync: SyncPolicy::Close,
};

const READS: [FrameRead; 3] = [FrameRead::Frame, FrameRead::Row, FrameRead::Region];

#[test]
fn both_phases_pass_the_suite() {
    for file in [FrameFile::One, FrameFile::Each] {
        for read in READS {
            let cell = FramesCell { file, read, ..CELL };
            let frames = |phase, slots, buffers| Frames::new(&cell, phase, slots, part(buffers));
            let lay_out = |engine: &mut dyn Engine| {
                run(&mut frames(Phase::Write, 64, Arena::shared_out(1, 600).1), engine);
            };
            for slots in [2, 3, 64] {
                workload_suite(demands(600, slots), &|_| {}, &mut |buffers| {
                    Box::new(frames(Phase::Write, slots, buffers))
                });
                workload_suite(demands(600, slots), &lay_out, &mut |buffers| {
                    Box::new(frames(Phase::Read, slots, buffers))
                });
            }
        }
    }
}

/// All cells that make sense with some number of workers.
fn cells() -> impl Strategy<Value = (FramesCell, u32)> {
    let shape = (1..9_u32, 1..40_u64, 1..12_u64, 1..7_u32);
    let choices = (
        prop_oneof![Just(FrameFile::One), Just(FrameFile::Each)],
        prop_oneof![Just(Split::Turns), Just(Split::Blocks), Just(Split::Module)],
        prop_oneof![Just(1_u64), Just(7), Just(64)],
        prop_oneof![Just(FrameRead::Frame), Just(FrameRead::Row), Just(FrameRead::Region)],
    );
    (shape, choices).prop_filter_map("a split that makes sense", |(shape, (file, split, align, read))| {
        let (rows, row_size, frames, workers) = shape;
        let (row_size, align) = (Bytes(row_size), Bytes(align));
        let cell = FramesCell { rows, row_size, frames, file, split, align, read, ..CELL };
        cell.check(workers).is_ok().then_some((cell, workers))
    })
}

/// How often each byte of each file is moved, in all workers' parts.
fn moved(cell: &FramesCell, phase: Phase, workers: u32) -> BTreeMap<(u64, u64), u32> {
    let mut bytes = BTreeMap::new();
    for worker in 0..workers {
        let course = Course::of(cell, phase, worker, workers);
        for Piece { frame, offset, length } in (0..course.pieces()).map(|number| course.piece(number)) {
            let file = if cell.file == FrameFile::One { 0 } else { frame };
            for byte in offset..offset + u64::from(length) {
                *bytes.entry((file, byte)).or_default() += 1;
            }
        }
    }
    bytes
}

/// Where a byte of a frame lies, by the definition: row by row, module by module, frame by frame.
fn place(cell: &FramesCell, workers: u32, (frame, row, column): (u64, u64, u64)) -> (u64, u64) {
    let modules = if cell.split == Split::Module { u64::from(workers) } else { 1 };
    let rows = u64::from(cell.rows) / modules;
    let module = (rows * cell.row_size.0).next_multiple_of(cell.align.0);
    let within = row / rows * module + row % rows * cell.row_size.0 + column;
    match cell.file {
        FrameFile::One => (0, frame * modules * module + within),
        FrameFile::Each => (frame, within),
    }
}

fn all_places(
    cell: &FramesCell,
    workers: u32,
    rows: std::ops::Range<u64>,
    columns: std::ops::Range<u64>,
) -> BTreeMap<(u64, u64), u32> {
    let mut places = BTreeMap::new();
    for frame in 0..cell.frames {
        for row in rows.clone() {
            for column in columns.clone() {
                places.insert(place(cell, workers, (frame, row, column)), 1);
            }
        }
    }
    places
}

proptest! {
    #[test]
    fn every_byte_is_written_once((cell, workers) in cells()) {
        let (rows, row) = (u64::from(cell.rows), cell.row_size.0);
        prop_assert_eq!(moved(&cell, Phase::Write, workers), all_places(&cell, workers, 0..rows, 0..row));
    }

    #[test]
    fn reads_hit_exactly_what_they_should((cell, workers) in cells()) {
        let (rows, row) = (u64::from(cell.rows), cell.row_size.0);
        let (rows, columns) = match cell.read {
            FrameRead::Frame | FrameRead::Row => (0..rows, 0..row),
            FrameRead::Region => {
                (rows / 4..rows / 4 + (rows / 2).max(1), row / 4..row / 4 + (row / 2).max(1))
            }
        };
        prop_assert_eq!(moved(&cell, Phase::Read, workers), all_places(&cell, workers, rows, columns));
    }

    #[test]
    fn work_and_alignments_are_those_of_the_pieces((cell, workers) in cells()) {
        for phase in [Phase::Write, Phase::Read] {
            let courses = (0..workers).map(|worker| Course::of(&cell, phase, worker, workers));
            let pieces: Vec<_> =
                courses.flat_map(|course| (0..course.pieces()).map(move |number| course.piece(number))).collect();
            let bytes: u64 = pieces.iter().map(|piece| u64::from(piece.length)).sum();
            let work = cell.work(phase, workers);
            prop_assert_eq!((work.operations, work.bytes), (pieces.len() as u64, bytes));
            // Whatever divides all that is stated divides all that is done.
            let stated = cell.alignments(workers).into_iter().map(|(_, size)| size.0).fold(0, divisor);
            for piece in pieces {
                prop_assert!(u64::from(piece.length).is_multiple_of(stated) && piece.offset.is_multiple_of(stated));
                prop_assert!(u64::from(piece.length) <= cell.block_size().0);
            }
        }
    }

    #[test]
    fn rows_are_read_one_by_one_through_all_frames((cell, workers) in cells()) {
        let cell = FramesCell { read: FrameRead::Row, ..cell };
        for worker in 0..workers {
            let course = Course::of(&cell, Phase::Read, worker, workers);
            for number in 0..course.pieces() {
                let row = u64::from(worker) + number / cell.frames * u64::from(workers);
                let expected = place(&cell, workers, (number % cell.frames, row, 0));
                prop_assert_eq!(course.piece(number).offset, expected.1);
            }
        }
    }
}

/// The greatest that divides both.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The cell by all splits, and with more workers than frames.
fn crews() -> Vec<(FramesCell, u32)> {
    let mut all = Vec::new();
    for file in [FrameFile::One, FrameFile::Each] {
        for split in [Split::Turns, Split::Blocks] {
            all.push((FramesCell { file, split, ..CELL }, 3));
            all.push((FramesCell { file, split, frames: 2, ..CELL }, 5));
        }
    }
    all.push((FramesCell { split: Split::Module, ..CELL }, 3));
    all.push((FramesCell { split: Split::Module, align: Bytes(512), ..CELL }, 2));
    all
}

/// What all workers of a phase did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    pieces: u64,
    bytes: u64,
    opened: u64,
    synced: u64,
}

impl Done {
    fn count(&mut self, completion: &Completion) {
        let kind = completion.operation.kind;
        self.opened += u64::from(matches!(kind, OpKind::Open(_)));
        self.synced += u64::from(kind == OpKind::Sync);
        if kind.is_data() {
            self.pieces += 1;
            self.bytes += u64::from(completion.result.unwrap_or(0));
        }
    }
}

/// Runs both phases and checks what was done.
fn check_at(cell: FramesCell, workers: u32, depth: usize) {
    let (simulated, word) = (Virtual::new(), WorkloadCell::Frames(cell));
    for phase in cell.phases() {
        let mut done = Done::default();
        simulated.run((&word, phase), (workers, depth), &mut |_, completion| done.count(completion));
        let Work { operations: pieces, bytes } = cell.work(phase, workers);
        // Who has no frame opens nothing.
        let active = |worker: &u32| Course::of(&cell, phase, *worker, workers).pieces() > 0;
        let opened = match (cell.file, phase, cell.read) {
            (FrameFile::One, ..) => (0..workers).filter(active).count() as u64,
            (FrameFile::Each, Phase::Read, FrameRead::Row) => pieces,
            (FrameFile::Each, ..) => cell.frames,
        };
        let synced = if phase == Phase::Write { opened } else { 0 };
        let expected = Done { pieces, bytes, opened, synced };
        assert_eq!(done, expected, "{cell:?}, {workers} workers, depth {depth}, {phase:?}");
    }
}

#[test]
fn workers_at_once_move_all_at_any_depth() {
    for (cell, workers) in crews() {
        for read in READS {
            for depth in [1, 4, 32] {
                check_at(FramesCell { read, ..cell }, workers, depth);
            }
        }
    }
}

#[test]
fn files_on_a_real_file_system_have_their_sizes() {
    for (cell, workers) in crews() {
        let (real, word) = (Real::new(), WorkloadCell::Frames(cell));
        for phase in cell.phases() {
            real.run(&word, phase, workers);
        }
        let size =
            |name: String| fs::metadata(real.target.directory().join(name)).map(|data| data.len()).ok();
        match cell.file {
            FrameFile::One => {
                let last = u64::from(cell.modules(workers)) - 1;
                let module = cell.frame_size() / u64::from(cell.modules(workers));
                let end = cell.frame_stride(workers) * (cell.frames - 1)
                    + last * cell.module_stride(workers)
                    + module;
                assert_eq!(size("n_frames".into()), Some(end), "{cell:?}");
            }
            FrameFile::Each => {
                let sizes = (0..cell.frames).map(|frame| size(format!("n_frame{frame}")));
                assert!(sizes.eq((0..cell.frames).map(|_| Some(600))), "{cell:?}");
            }
        }
    }
}

#[test]
fn a_time_limit_ends_the_part_which_still_syncs_and_closes() {
    let simulated = Virtual::new();
    let limited = nilometer_campaign::workload::WorkerPart {
        stop_at: nilometer_model::Nanos(4500),
        ..part(Arena::shared_out(1, 600).1)
    };
    let mut frames = Frames::new(&CELL, Phase::Write, 2, limited);
    let mut done = Vec::new();
    Drive::new(&mut frames, &mut simulated.target.attach(1, 2))
        .run(|completion| done.push(completion.operation.kind));
    let written = done.iter().filter(|kind| **kind == OpKind::Write).count();
    assert!(written > 0 && written < 7, "{done:?}");
    assert_eq!(done[done.len() - 2..], [OpKind::Sync, OpKind::Close]);
}
