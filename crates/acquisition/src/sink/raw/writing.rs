//! Frames into writes: the position of each frame, and the grouping of small ones.

use nilometer_model::Nanos;
use nilometer_ring::{Encoded, Frame, StoredAs};
use nilometer_storage::Operation;

use super::{
    Carried, EncodedSlot, FileOffset, FrameGroup, FrameWrite, LaneFiles, file_steps::FileStep,
    layout::THROUGH,
};

impl LaneFiles {
    /// The next write of frames, if one may be issued now.
    pub(super) fn write(&mut self) -> Option<(Operation, Nanos)> {
        self.collect();
        if self.placement.appends() && !self.in_flight.is_empty() {
            // A write behind the end of the file can't be appended.
            return None;
        }
        self.group().or_else(|| self.frame())
    }

    /// Adds the waiting frame to the group, if it may be grouped.
    fn collect(&mut self) {
        let (Some(grouping), Some(frame)) = (&mut self.grouping, &self.waiting) else { return };
        let bytes = self.layout.written(frame.packed.as_deref());
        if self.layout.is_odd(bytes) {
            // The last block goes through another slot of the file.
            return grouping.complete();
        }
        let Some((file, issued)) = self.files.next() else { return };
        let begin = FileOffset { file, offset: self.placement.offset(file, issued, frame.number) };
        if !grouping.make_room(begin, self.placement.slot(file), bytes) {
            return;
        }
        grouping.add(self.waiting.take().expect("a frame waits"), bytes);
        if self.put(begin, bytes) {
            self.complete_group();
        }
    }

    /// Completes the group: its frames become a write of their own.
    pub(super) fn complete_group(&mut self) {
        if let Some(grouping) = &mut self.grouping {
            grouping.complete();
        }
    }

    /// The write of the group, if it is time for it.
    fn group(&mut self) -> Option<(Operation, Nanos)> {
        let any = self.finishing || self.flush && self.in_flight.is_empty();
        let FrameGroup { begin, file, bytes, length, frames } = self.grouping.as_mut()?.take(any)?;
        let due = frames.first().map_or(Nanos(0), |frame| frame.due);
        let tag = self.in_flight.insert(FrameWrite { begin, frames: Carried::Group(frames) });
        Some((Operation::write(file, begin.offset, length, bytes).tagged(tag), due))
    }

    /// The write of the waiting frame, if it is a write of its own.
    fn frame(&mut self) -> Option<(Operation, Nanos)> {
        let (file, issued) = self.files.next()?;
        let written = self.layout.written(self.waiting.as_ref()?.packed.as_deref());
        let through = self.layout.is_odd(written);
        if through && !self.opens_through(file) || !through && self.grouping.is_some() {
            return None;
        }
        let Frame { number, due, arrived, mut data, packed, encoded, came_as, checksum, message, stack } =
            self.waiting.take()?;
        let (buffer, length, slot) = match (encoded.map(|encoded| *encoded), came_as) {
            (Some(Encoded { mut bytes, stored_as, finished }), _) => {
                let padded = self.layout.padded(stored_as.length, &mut bytes);
                (bytes, padded, Some(EncodedSlot { data, stored_as, finished }))
            }
            (None, Some(StoredAs { length, .. })) => {
                let padded = self.layout.padded(length, &mut data);
                (data, padded, None)
            }
            (None, None) => (data, written, None),
        };
        let room = self.index.as_mut().and_then(|index| index.allocate(file, number, length));
        let offset = room.unwrap_or_else(|| self.placement.offset(file, issued, number));
        let begin = FileOffset { file, offset };
        let file_slot = if through { THROUGH } else { self.placement.slot(file) };
        let frames = Carried::One { number, due, arrived, packed, came_as, checksum, message, stack, slot };
        let tag = self.in_flight.insert(FrameWrite { begin, frames });
        self.put(begin, written);
        Some((Operation::write(file_slot, begin.offset, length, buffer).tagged(tag), due))
    }

    /// Counts a frame of `written` bytes as put at `begin`. Returns true if that filled its file.
    fn put(&mut self, begin: FileOffset, written: u32) -> bool {
        let begins = self.placement.is_many_files() && self.files.last().1 == 0;
        let before = if begins { 0 } else { self.end };
        self.end = before.max(begin.offset + u64::from(written));
        if let Some(chunks) = &mut self.chunks {
            chunks.issue(begin);
        }
        let full = self.files.roll();
        if full {
            self.add_complete(begin.file);
            if self.placement.makes_ahead() {
                self.add_make(begin.file + 2);
            }
        }
        full
    }

    /// Returns true if the file is open a second time, through the cache. If it isn't, this adds the step that
    /// opens it.
    fn opens_through(&mut self, file: u64) -> bool {
        if !std::mem::replace(&mut self.through, true) {
            self.program.add([FileStep::OpenThrough(file)]);
        }
        self.program.through_is_open()
    }
}
