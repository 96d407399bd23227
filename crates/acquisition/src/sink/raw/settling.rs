//! What becomes of frames when operations come back.

use nilometer_storage::{Buffer, Completion, Errno, OpKind, Operation};

use super::{
    Carried, Chunks, Durability, FileOffset, FrameWrite, Log, RawFiles, Undurable, Unlogged, layout::STREAMER,
};
use crate::{
    Frame,
    journal::Entry,
    sink::{Encoded, FrameCount, Stored},
};

impl RawFiles {
    /// A write of frames came back.
    fn data_completed(&mut self, operation: Operation, moved: Result<u32, Errno>) -> Result<(), Errno> {
        let FrameWrite { begin, frames } = self.in_flight.remove(operation.tag);
        let length = operation.length;
        let whole = moved.and_then(|moved| if moved == length { Ok(()) } else { Err(Errno::EIO) });
        match frames {
            Carried::One { number, due, packed, slot } => {
                let (data, encoded) = match slot {
                    Some((slot, encoding)) => {
                        (slot, Some(Box::new(Encoded { bytes: operation.buffer, length, encoding })))
                    }
                    None => (operation.buffer, None),
                };
                let frame = Frame { number, due, data, packed, encoded };
                self.landed(begin, frame, length, whole.is_ok());
            }
            Carried::Group(frames) => self.group_landed(begin, frames, operation.buffer, whole.is_ok()),
        }
        whole
    }

    /// Frames that were written together came back; the first of them begins here.
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

    /// A frame came back, with so many bytes written if its write was whole.
    fn landed(&mut self, begin: FileOffset, frame: Frame, length: u32, whole: bool) {
        if self.chunks.is_none() {
            self.files.landed(begin.file);
        }
        match &mut self.chunks {
            _ if !whole || self.failed.is_some() => self.returned.push(frame),
            Some(chunks) => {
                chunks.land(begin, frame, length);
                while let Some((begin, frame, length)) = self.chunks.as_mut().and_then(Chunks::next_landed) {
                    self.queue_record(begin, frame, length);
                }
            }
            None => self.queue_record(begin, frame, length),
        }
    }

    /// A frame is written with so many bytes: it is acknowledged when its record is.
    fn queue_record(&mut self, begin: FileOffset, frame: Frame, length: u32) {
        let Frame { number, due, .. } = frame;
        let checksum = self.layout.checksums.then(|| crc32fast::hash(self.layout.bytes(&frame)));
        self.written += u64::from(length);
        for &gap in frame.packed.iter().flat_map(|packed| &packed.gaps) {
            self.log.add(Entry::Gap { number, gap });
        }
        let extent = self.layout.extent(begin, &frame, length);
        let record = self.log.added();
        self.log.add(Entry::Frame { number, extent, due: due.0, checksum });
        let end = begin.offset + u64::from(length);
        self.unlogged.push_back(Unlogged { file: begin.file, end, record, frame });
    }

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
            // Its frames were given back meanwhile.
            return Ok(());
        }
        let synced = self.layout.durability == Durability::EachFile;
        for Unlogged { file, end, record, frame } in self.unlogged.drain(..frames) {
            let undurable =
                Undurable { file, record, frame: FrameCount::of(&frame, self.layout.head.frame_size) };
            self.undurable.extend(synced.then_some(undurable));
            if let Some(chunks) = &mut self.chunks {
                // Until then a failure may cut the file.
                self.files.landed(file);
                chunks.acknowledge(file, end, self.layout.written(frame.packed.as_deref()).into());
            }
            stored.acknowledged.push(frame);
        }
        Ok(())
    }

    /// A step is done: the files up to the last durable one may have become so.
    fn step_completed(&mut self, stored: &mut Stored) {
        let done = self.program.completed();
        self.chunk_step_completed(done);
        let (last, records) = (self.program.durable(), self.program.durable_records());
        let is_durable = |undurable: &Undurable| {
            last.is_some_and(|last| undurable.file <= last) || undurable.record < records
        };
        // Writes of one file may land after those of the next.
        if self.undurable.front().is_some_and(is_durable) {
            self.undurable.retain(|undurable| {
                let durable = is_durable(undurable);
                stored.durable.extend(durable.then_some(undurable.frame));
                !durable
            });
        }
    }

    pub(super) fn settle(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno> {
        let Completion { operation, result, .. } = completion;
        match (operation.kind, operation.file) {
            (OpKind::Write, Log::SLOT) => self.journal_completed(operation, result, stored),
            (OpKind::Write, slot) if slot != STREAMER => self.data_completed(operation, result),
            (kind, _) => {
                self.scratch.push(operation.buffer);
                match result {
                    // Where space can't be reserved, files grow as they are written.
                    Err(Errno::EOPNOTSUPP | Errno::ENOSYS) if kind == OpKind::Allocate => {}
                    // Of an only file more is reserved than it may need, but not of a ring.
                    Err(Errno::ENOSPC)
                        if kind == OpKind::Allocate
                            && !self.placement.is_many_files()
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
                self.step_completed(stored);
                Ok(())
            }
        }
    }
}
