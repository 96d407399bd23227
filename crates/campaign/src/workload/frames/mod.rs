//! Frames of an instrument: two-dimensional. Many workers write them into one file of three dimensions, or into
//! a file each. They read them back by frame, by row through all frames, or by region.
//!
//! In a file for all, a worker's pieces overlap as deep as the engine goes, as in IOR with one shared file.
//! `turns` is IOR's strided pattern with a frame as block and transfer (-s), `blocks` its segmented one. With a
//! file for each frame, several files are in progress at once, each piece by piece.

mod course;

use nilometer_model::{Nanos, Phase, Seed};
use nilometer_plan::{FrameFile, FramesCell, SyncPolicy};
use nilometer_storage::{Buffer, Completion, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload};

use super::{
    WorkerPart, WorkerPlace, decided,
    name::{BUFFER_MIN, Name},
    stamp,
};
pub use course::{Course, Piece};

/// The workload of a worker that writes or reads frames.
#[derive(Debug)]
pub struct Frames {
    course: Course,
    file: FrameFile,
    /// See [`stem_of`].
    stem: String,
    open: Open,
    /// True if files are made durable before they are closed.
    sync: bool,
    frame_size: u64,
    content: Seed,
    stop_at: Nanos,
    buffers: Vec<Buffer>,
    /// The open files, by slot.
    visits: Vec<Visit>,
    free_slots: Vec<Slot>,
    /// Files of single frames with nothing in flight.
    turns: Vec<Slot>,
    /// The file for all, while it is open.
    shared: Option<Slot>,
    /// The number of the first piece of the next file.
    next: u64,
    flying: u32,
    failed: bool,
    /// True if nothing more is moved: an operation failed, or the time is over.
    over: bool,
}

/// An open file and its remaining pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    next: u64,
    end: u64,
    flying: u32,
    synced: bool,
}

/// The names of the files of a cell that is read.
pub(super) fn files(cell: &FramesCell, place: WorkerPlace) -> Box<dyn Iterator<Item = String>> {
    let stem = stem_of(cell.file, place);
    match cell.file {
        FrameFile::One => Box::new(std::iter::once(stem)),
        FrameFile::Each => Box::new((0..cell.frames).map(move |frame| format!("{stem}{frame}"))),
    }
}

/// The name of the file for all in this repeat; or the stem of file names, before the number of their frame.
fn stem_of(file: FrameFile, place: WorkerPlace) -> String {
    match file {
        FrameFile::One => place.shared(SHARED),
        FrameFile::Each if place.attempt == 0 => FRAME.to_owned(),
        // A separator keeps the number of the repeat apart from that of the frame.
        FrameFile::Each => format!("{}_", place.shared(FRAME)),
    }
}

/// The stem of the file for all.
const SHARED: &str = "n_frames";
/// The stem of a single frame's file, before its number.
const FRAME: &str = "n_frame";

impl Frames {
    /// A worker's part of a phase of the cell, with `slots` slots, the run's directory included: at least 2.
    /// One buffer is enough; each takes the largest piece and a name.
    pub fn new(cell: &FramesCell, phase: Phase, slots: u32, part: WorkerPart) -> Self {
        let writes = phase == Phase::Write;
        let open = match (writes, cell.file) {
            (false, _) => Open::READ,
            (true, FrameFile::One) => Open::SHARED,
            (true, FrameFile::Each) => Open::CREATE,
        };
        assert!(part.buffers.iter().all(|buffer| buffer.len() >= BUFFER_MIN), "see `workload::buffer_size`");
        Frames {
            course: Course::of(cell, phase, part.place.number(), part.place.total()),
            file: cell.file,
            stem: stem_of(cell.file, part.place),
            open: open.direct_if(part.direct),
            sync: writes && cell.sync == SyncPolicy::Close,
            frame_size: cell.frame_size(),
            content: part.seed.named("content"),
            stop_at: part.stop_at,
            visits: vec![Visit::default(); slots as usize],
            free_slots: (1..slots).rev().map(Slot).collect(),
            turns: Vec::with_capacity(part.buffers.len()),
            buffers: part.buffers,
            shared: None,
            next: 0,
            flying: 0,
            failed: false,
            over: false,
        }
    }

    #[inline]
    fn decide(&mut self, buffer: Buffer) -> Result<Operation, Buffer> {
        match self.turns.pop().or(self.shared) {
            Some(slot) => self.advance(slot, buffer),
            None => self.open_next(buffer),
        }
    }

    fn open_next(&mut self, mut buffer: Buffer) -> Result<Operation, Buffer> {
        if self.over || self.next >= self.course.pieces() {
            return Err(buffer);
        }
        let Some(slot) = self.free_slots.pop() else { return Err(buffer) };
        let name = match self.file {
            FrameFile::One => Name::of(&self.stem),
            FrameFile::Each => Name::numbered(&self.stem, self.course.piece(self.next).frame as u32),
        };
        let end = self.next + self.course.pieces_of_file();
        self.visits[slot.0 as usize] = Visit { next: self.next, end, ..Visit::default() };
        self.next = end;
        let length = name.put(&mut buffer);
        Ok(Operation {
            kind: OpKind::Open(self.open),
            file: slot,
            dir: ROOT,
            length,
            offset: 0,
            tag: 0,
            buffer,
        })
    }

    /// The next operation on an open file: a piece, then the end.
    #[inline]
    fn advance(&mut self, slot: Slot, buffer: Buffer) -> Result<Operation, Buffer> {
        let visit = &mut self.visits[slot.0 as usize];
        if visit.next < visit.end && !self.over {
            let piece = self.course.piece(visit.next);
            visit.next += 1;
            visit.flying += 1;
            return Ok(self.piece(slot, piece, buffer));
        }
        if visit.flying > 0 {
            return Err(buffer);
        }
        if self.sync && !visit.synced && !self.failed {
            visit.synced = true;
            visit.flying += 1;
            return Ok(Operation::on(OpKind::Sync, slot, buffer));
        }
        self.shared = None;
        Ok(Operation::on(OpKind::Close, slot, buffer))
    }

    #[inline]
    fn piece(&self, slot: Slot, piece: Piece, mut buffer: Buffer) -> Operation {
        let Piece { frame, offset, length } = piece;
        if !self.open.writes() {
            return Operation::read(slot, offset, length, buffer);
        }
        let own = if self.file == FrameFile::Each { frame * self.frame_size } else { 0 };
        stamp(&mut buffer[..length as usize], self.content, own + offset);
        Operation::write(slot, offset, length, buffer)
    }

    /// Lets the file continue: it has nothing in flight, or is for all.
    #[inline]
    fn go_on(&mut self, slot: Slot) {
        match self.file {
            FrameFile::One => self.shared = Some(slot),
            FrameFile::Each => self.turns.push(slot),
        }
    }
}

impl Workload for Frames {
    #[inline]
    fn next(&mut self, now: Nanos) -> Step {
        let Some(buffer) = self.buffers.pop() else { return Step::Wait(Wait::ForOne) };
        self.over |= self.failed || now >= self.stop_at;
        let operation = self.decide(buffer);
        decided(operation, &mut self.buffers, &mut self.flying, now)
    }

    #[inline]
    fn completed(&mut self, completion: Completion) {
        self.flying -= 1;
        let Completion { operation, result, .. } = completion;
        let Operation { kind, file, length, .. } = operation;
        self.failed |= if kind.is_data() { result != Ok(length) } else { result.is_err() };
        match kind {
            OpKind::Close => self.free_slots.push(file),
            OpKind::Open(_) if result.is_err() => self.free_slots.push(file),
            OpKind::Open(_) => self.go_on(file),
            _ => {
                self.visits[file.0 as usize].flying -= 1;
                self.go_on(file);
            }
        }
        self.buffers.push(operation.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repeat_of_several_processes_has_names_of_its_own() {
        let stem = |file, attempt| stem_of(file, WorkerPlace::alone(0, 1).in_attempt(attempt));
        assert_eq!([0, 1].map(|attempt| stem(FrameFile::One, attempt)), ["n_frames", "n_frames_a1"]);
        assert_eq!([0, 1].map(|attempt| stem(FrameFile::Each, attempt)), ["n_frame", "n_frame_a1_"]);
        // The longest must fit.
        Name::of(&stem(FrameFile::One, u32::MAX));
        Name::numbered(&stem(FrameFile::Each, u32::MAX), u32::MAX);
    }
}
