//! Maps each operation of a worker to a piece of a file: arithmetic only.
//!
//! A file of three dimensions holds frame after frame, each at a multiple of the frame's stride. A frame holds
//! module after module, and a module row after row. With a file for each frame, each frame begins at 0.

use nilometer_model::Phase;
use nilometer_plan::{FrameFile, FrameRead, FramesCell, Split};

/// One worker's part of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    cell: FramesCell,
    workers: u32,
    /// The module that it writes.
    module: u32,
    what: What,
    /// The first frame it visits; or the first row of a frame, if it takes a row through all frames.
    first: u64,
    step: u64,
    count: u64,
}

/// The shape of the data that one operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// A module of each frame.
    Module,
    /// A frame, in one piece if nothing lies between its modules.
    Frame,
    /// A row of each frame, then the next row.
    Row,
    /// A part of some rows of a frame.
    Region,
}

/// The bytes that one operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The frame they belong to.
    pub frame: u64,
    /// Their position in the file.
    pub offset: u64,
    /// Their number.
    pub length: u32,
}

impl Course {
    /// The part of worker `worker` out of `workers` in the phase.
    pub fn of(cell: &FramesCell, phase: Phase, worker: u32, workers: u32) -> Self {
        let what = match (phase, cell.read) {
            (Phase::Write, _) if cell.split == Split::Module => What::Module,
            (Phase::Write, _) | (_, FrameRead::Frame) => What::Frame,
            (_, FrameRead::Row) => What::Row,
            (_, FrameRead::Region) => What::Region,
        };
        let k = u64::from(worker);
        let n = u64::from(workers);
        let frames = cell.frames;
        let turns = |all: u64| (k, n, all.saturating_sub(k).div_ceil(n));
        let (first, step, count) = match (what, cell.split) {
            (What::Module, _) => (0, 1, frames),
            (What::Row, _) => turns(u64::from(cell.rows)),
            (_, Split::Blocks) => {
                let edge = |part: u64| (u128::from(frames) * u128::from(part) / u128::from(n)) as u64;
                (edge(k), 1, edge(k + 1) - edge(k))
            }
            _ => turns(frames),
        };
        Course { cell: *cell, workers, module: worker, what, first, step, count }
    }

    /// The number of pieces.
    pub fn pieces(&self) -> u64 {
        self.count * if self.what == What::Row { self.cell.frames } else { self.pieces_of_frame() }
    }

    /// The number of consecutive pieces that lie in the same file.
    pub fn pieces_of_file(&self) -> u64 {
        match (self.cell.file, self.what) {
            (FrameFile::One, _) => self.pieces(),
            (FrameFile::Each, What::Row) => 1,
            (FrameFile::Each, _) => self.pieces_of_frame(),
        }
    }

    fn pieces_of_frame(&self) -> u64 {
        match self.what {
            What::Module | What::Row => 1,
            What::Frame => u64::from(self.cell.parts(self.workers)),
            What::Region => u64::from(self.cell.region().0),
        }
    }

    /// The piece of this number, which must be less than the number of pieces.
    #[inline]
    pub fn piece(&self, number: u64) -> Piece {
        let FramesCell { rows, row_size, frames, .. } = self.cell;
        let each = self.pieces_of_frame();
        let visited = |number: u64| self.first + number / each * self.step;
        let (frame, offset, length) = match self.what {
            What::Module => (visited(number), self.module_offset(self.module), self.module_size()),
            What::Frame => {
                let part = (number % each) as u32;
                (visited(number), self.module_offset(part), self.cell.frame_size() / each)
            }
            What::Row => {
                let row = self.first + number / frames * self.step;
                (number % frames, self.row_offset(row), row_size.0)
            }
            What::Region => {
                let (_, columns) = self.cell.region();
                let row = u64::from(rows / 4) + number % each;
                (visited(number), self.row_offset(row) + row_size.0 / 4, columns)
            }
        };
        let start =
            if self.cell.file == FrameFile::One { frame * self.cell.frame_stride(self.workers) } else { 0 };
        Piece { frame, offset: start + offset, length: length as u32 }
    }

    fn module_size(&self) -> u64 {
        self.cell.frame_size() / u64::from(self.cell.modules(self.workers))
    }

    /// The offset of a module in its frame.
    fn module_offset(&self, module: u32) -> u64 {
        u64::from(module) * self.cell.module_stride(self.workers)
    }

    /// The offset of a row in its frame.
    fn row_offset(&self, row: u64) -> u64 {
        let rows = u64::from(self.cell.rows / self.cell.modules(self.workers));
        self.module_offset((row / rows) as u32) + row % rows * self.cell.row_size.0
    }
}
