//! Steps of a lane for files with an index, besides writing their frames: see
//! [`FileIndex`](nilometer_ring::FileIndex).

use nilometer_model::Nanos;
use nilometer_ring::{FileOffset, Frame, IndexReservation, WrittenFrame};
use nilometer_storage::{Errno, Operation};

use super::{LaneFiles, file_steps::FileStep};

impl LaneFiles {
    /// Returns true if a file's number of places for frames is final. A chunk that is not full may be the last
    /// of the recording, unless the lane has begun another.
    pub(super) fn may_seal(&self, file: u64) -> bool {
        let is_full = self.index.as_ref().is_none_or(|index| index.is_full(file));
        self.finishing || self.files.last() > (file + 1, 0) || is_full
    }

    /// Does a step of an index that costs no operation.
    pub(super) fn step_of_index(&mut self, step: FileStep) -> Result<(), Errno> {
        let Some(index) = &mut self.index else { return Ok(()) };
        match step {
            FileStep::BeginIndex(file) => {
                let position = self.chunks.as_ref().and_then(|chunks| chunks.number(file));
                index.begin(file, position)?;
            }
            FileStep::FlushIndex(file) => index.flush(file)?,
            FileStep::SealIndex(file) => index.seal(file)?,
            FileStep::Indexed(file) => {
                for written in index.indexed(file) {
                    self.queue_record(written);
                }
            }
            _ => {}
        }
        if let Some(index) = &mut self.index {
            index.count_memory();
        }
        Ok(())
    }

    /// Adds the steps that put written frames into the indices, if no other steps are left. Returns true if it
    /// added any.
    pub(super) fn add_flush_of_index(&mut self) -> bool {
        let Some(index) = &mut self.index else { return false };
        if !self.program.is_done() {
            return false;
        }
        if self.layout.preallocate
            && let Some(IndexReservation { file, upto, more }) = index.next_reservation()
            && self.gauge.claim(more)
        {
            self.program.add([FileStep::ReserveIndexed(file, upto)]);
        }
        for file in index.behind() {
            self.program.add([
                FileStep::FlushIndex(file),
                FileStep::WriteIndex(file),
                FileStep::Indexed(file),
            ]);
        }
        !self.program.is_done()
    }

    /// The write of the next piece of an index. The step is repeated until no piece is left.
    pub(super) fn write_of_index(&mut self, file: u64) -> Option<Operation> {
        let index = self.index.as_mut()?;
        let mut buffer =
            self.scratch.pop().expect("the journal and one step have one each, and there are more");
        let Some((offset, length)) = index.write(file, &mut buffer) else {
            self.scratch.push(buffer);
            return None;
        };
        self.program.do_again(FileStep::WriteIndex(file));
        Some(Operation::write(index.slot(file), offset, length, buffer))
    }

    /// Puts back the rest of a piece of an index that was written in part, as the next to be written. Half a
    /// block is unusable, and the next pieces refer to it. If nothing of the piece was written, the lane fails.
    pub(super) fn put_back_rest(
        &mut self,
        operation: &Operation,
        moved: Result<u32, Errno>,
    ) -> Result<(), Errno> {
        let Ok(moved) = moved else { return Ok(()) };
        if moved == operation.length {
            return Ok(());
        }
        let bytes = operation.buffer[moved as usize..operation.length as usize].to_vec();
        let offset = operation.offset + u64::from(moved);
        let known = self.index.as_mut().is_some_and(|index| index.put_back(operation.file, offset, bytes));
        if moved > 0 && known {
            return Ok(());
        }
        self.program.failed();
        Err(Errno::EIO)
    }

    /// Completes a piece of an index that was written in part, even after a failure.
    pub(super) fn rest_of_index(&mut self) -> Option<Operation> {
        if !self.program.is_quiet() {
            return None;
        }
        let file = self.index.as_mut()?.take_torn()?;
        self.write_of_index(file)
    }

    /// Takes a written frame of `length` bytes: it goes into the index, or gets its record at once.
    pub(super) fn land(&mut self, begin: FileOffset, frame: Frame, length: u32) {
        let written = WrittenFrame { begin, frame, length, place: None };
        match &mut self.index {
            Some(index) => index.land(written),
            None => self.queue_record(written),
        }
    }

    /// Returns true if written frames wait for their places in datasets.
    pub(super) fn waits_for_place(&self) -> bool {
        self.index.as_ref().is_some_and(|index| index.has_places())
    }

    /// Puts frames whose dataset is known into the index. A file is complete only when all its frames have
    /// their place.
    pub(super) fn place_in_datasets(&mut self, now: Nanos) {
        let Some(index) = &mut self.index else { return };
        for file in index.place(now, self.finishing) {
            self.files.landed(file);
        }
    }
}
