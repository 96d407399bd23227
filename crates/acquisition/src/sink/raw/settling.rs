//! Completions of a sink's operations. A frame whose write is done gets a record in the journal. It is
//! acknowledged when that record is written, and durable when its file or a checkpoint is synced.
//!
//! Writes come back in any order. In files of a fixed number of frames each is recorded at once. In chunks
//! frames are acknowledged in order, so that a chunk can be cut behind the last of them. For example, three
//! writes in flight into a chunk whose journal has 2 records so far:
//!
//! ```text
//! frame                    5               6               7
//! write of 7 comes back    -               -               landed         no record before that of 5
//! write of 5 comes back    record 2        -               landed         it is written to the journal
//! write of 6 comes back    in flight       record 3        record 4       one write of the journal at a time
//! journal comes back       acknowledged    in flight       in flight      records 3 and 4 are one write
//! journal comes back       acknowledged    acknowledged    acknowledged
//! ```
//!
//! Had the write of 6 failed while record 2 was in flight, 6 and 7 would go to another lane. When the journal
//! came back, 5 would be acknowledged and the file cut behind it. Every frame of a chunk is therefore in the
//! journal.

use nilometer_model::Nanos;
use nilometer_recording::journal::Entry;
use nilometer_ring::{Encoded, Frame, FrameCount};
use nilometer_storage::{Buffer, Completion, Errno, OpKind, Operation};

use super::{
    Carried, Chunks, Durability, EncodedSlot, FileOffset, FileStep, FrameWrite, LaneFiles, Log, Undurable,
    Unlogged, WrittenFrame, layout::STREAMER,
};
use crate::sink::Stored;

impl LaneFiles {
    /// Takes a write of one frame, or of a group, that came back. A write that moved fewer bytes than asked
    /// for failed.
    fn data_completed(&mut self, operation: Operation, moved: Result<u32, Errno>) -> Result<(), Errno> {
        let FrameWrite { begin, frames } = self.in_flight.remove(operation.tag);
        let length = operation.length;
        let whole = moved.and_then(|moved| if moved == length { Ok(()) } else { Err(Errno::EIO) });
        match frames {
            Carried::One { number, due, arrived, packed, came_as, checksum, message, stack, slot } => {
                // The operation's buffer is the slot itself, or the frame's encoded bytes.
                let (data, encoded) = match slot {
                    Some(EncodedSlot { data, stored_as, finished }) => {
                        let encoded = Encoded { bytes: operation.buffer, stored_as, finished };
                        (data, Some(Box::new(encoded)))
                    }
                    None => (operation.buffer, None),
                };
                let frame =
                    Frame { number, due, arrived, data, packed, encoded, came_as, checksum, message, stack };
                self.landed(begin, frame, length, whole.is_ok());
            }
            Carried::Group(frames) => self.group_landed(begin, frames, operation.buffer, whole.is_ok()),
        }
        whole
    }

    /// Takes frames that were written together; the first of them begins here.
    fn group_landed(&mut self, mut begin: FileOffset, mut frames: Vec<Frame>, bytes: Buffer, whole: bool) {
        for frame in frames.drain(..) {
            let length = self.layout.written(frame.packed.as_deref());
            self.landed(begin, frame, length, whole);
            begin.offset += u64::from(length);
        }
        if let Some(grouping) = &mut self.grouping {
            grouping.give_back(bytes, frames);
        }
    }

    /// Takes a frame whose write came back, with `length` bytes written if `whole`.
    fn landed(&mut self, begin: FileOffset, frame: Frame, length: u32, whole: bool) {
        if whole && self.layout.whole_files && self.failed.is_none() {
            self.files.landed(begin.file);
            self.unarrived.push(WrittenFrame { begin, frame, length, place: None });
            return;
        }
        if self.chunks.is_none() || self.index.is_some() {
            // The file may be closed and synced when no write is in flight to it. A chunk without an index
            // waits until its frames are acknowledged, because it may have to be cut.
            if !whole || !self.waits_for_place() {
                self.files.landed(begin.file);
            }
        }
        self.arrived(WrittenFrame { begin, frame, length, place: None }, whole);
    }

    /// Takes the frames of this file and of earlier ones: the storage has these files as a whole.
    fn file_arrived(&mut self, file: u64) {
        let (arrived, waiting) = self.unarrived.drain(..).partition(|written| written.begin.file <= file);
        self.unarrived = waiting;
        for written in arrived {
            self.arrived(written, true);
        }
    }

    /// Takes a frame that the storage has, if its write was whole.
    fn arrived(&mut self, written: WrittenFrame, whole: bool) {
        let WrittenFrame { begin, frame, length, .. } = written;
        match &mut self.chunks {
            // After a failure even a frame that is written goes elsewhere: no record is written any more.
            _ if !whole || self.failed.is_some() => self.returned.push(frame),
            Some(chunks) => {
                chunks.land(begin, frame, length);
                // This frame may be the one that others waited for.
                while let Some((begin, frame, length)) = self.chunks.as_mut().and_then(Chunks::next_landed) {
                    self.land(begin, frame, length);
                }
            }
            None => self.land(begin, frame, length),
        }
    }

    /// Queues the record of a frame written with `length` bytes. The frame is acknowledged when the record is
    /// written.
    pub(super) fn queue_record(&mut self, written: WrittenFrame) {
        let WrittenFrame { begin, frame, length, place } = written;
        let Frame { number, due, .. } = frame;
        let hash = || crc32fast::hash(self.layout.bytes(&frame));
        let checksum = self.layout.checksums.then(|| frame.checksum.unwrap_or_else(hash));
        self.written += u64::from(length);
        for &gap in frame.packed.iter().flat_map(|packed| &packed.gaps) {
            self.log.add(Entry::Gap { number, gap });
        }
        // Gaps and the place stand before their frame: a reader that finds its record knows all of it.
        if let Some(place) = place {
            self.log.add(Entry::Placed { number, place });
        }
        let extent = self.layout.extent(begin, &frame, length);
        let record = self.log.added();
        self.log.add(Entry::Frame { number, extent, due: due.0, checksum });
        let end = begin.offset + u64::from(length);
        self.unlogged.push_back(Unlogged { file: begin.file, end, record, frame });
    }

    /// Acknowledges the frames whose records were in a write of the journal that came back.
    fn journal_completed(
        &mut self,
        operation: Operation,
        moved: Result<u32, Errno>,
        stored: &mut Stored,
    ) -> Result<(), Errno> {
        let frames = self.log.written();
        let length = operation.length;
        self.scratch.push(operation.buffer);
        if moved? != length {
            return Err(Errno::EIO);
        }
        if self.failed.is_some() && self.chunks.is_none() {
            // Its frames were given back in the meantime.
            return Ok(());
        }
        // Records are queued in the order of `unlogged`, so the first of that list belong to this write.
        let synced = self.layout.durability == Durability::EachFile;
        for Unlogged { file, end, record, frame } in self.unlogged.drain(..frames) {
            let undurable =
                Undurable { file, record, frame: FrameCount::of(&frame, self.layout.head.frame_size) };
            self.undurable.extend(synced.then_some(undurable));
            if let Some(chunks) = &mut self.chunks {
                // Before this, a failure could have cut the file.
                if self.index.is_none() && !self.layout.whole_files {
                    self.files.landed(file);
                }
                chunks.acknowledge(file, end, self.layout.written(frame.packed.as_deref()).into());
            }
            stored.acknowledged.push(frame);
        }
        Ok(())
    }

    /// Takes a completed file step. Frames are now durable if their file is the last durable one or an earlier
    /// one, or if a durable checkpoint covers them.
    fn step_completed(&mut self, stored: &mut Stored, now: Nanos) {
        let done = self.program.completed();
        if let (Some(index), Some(FileStep::SyncFile(file) | FileStep::SyncPart(file))) =
            (&mut self.index, done)
        {
            index.synced(file, now);
        }
        if let Some(FileStep::SyncFile(file) | FileStep::Close(file)) = done {
            self.file_arrived(file);
        }
        self.chunk_step_completed(done);
        let last = self.program.durable();
        let records = self.program.durable_records();
        let is_durable = |undurable: &Undurable| {
            last.is_some_and(|last| undurable.file <= last) || undurable.record < records
        };
        // Writes of one file may land after those of the next, so that any frame may be durable, not only the
        // first. But this runs after every step, and a search rarely pays if the oldest is not durable.
        if self.undurable.front().is_some_and(is_durable) {
            self.undurable.retain(|undurable| {
                let durable = is_durable(undurable);
                stored.durable.extend(durable.then_some(undurable.frame));
                !durable
            });
        }
    }

    /// Takes any operation that came back. An error makes the lane fail.
    pub(super) fn settle(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno> {
        let Completion { operation, result, finished, .. } = completion;
        match (operation.kind, operation.file) {
            (OpKind::Write, Log::SLOT) => self.journal_completed(operation, result, stored),
            (OpKind::Write, slot) if slot < STREAMER => self.data_completed(operation, result),
            (kind, _) => {
                if kind == OpKind::Write && self.index.is_some() {
                    self.put_back_rest(&operation, result)?;
                }
                self.scratch.push(operation.buffer);
                match result {
                    // If space can't be reserved, files grow as they are written.
                    Err(Errno::EOPNOTSUPP | Errno::ENOSYS) if kind == OpKind::Allocate => {}
                    // An only file reserves more than it may need; a ring does not.
                    Err(Errno::ENOSPC)
                        if kind == OpKind::Allocate
                            && (self.index.is_some() || !self.placement.is_many_files())
                            && !self.placement.reserves_all() => {}
                    Err(errno) => {
                        self.program.failed();
                        return Err(errno);
                    }
                    Ok(_) => {}
                }
                if kind == OpKind::Allocate {
                    self.gauge.release();
                }
                self.step_completed(stored, finished);
                Ok(())
            }
        }
    }
}
