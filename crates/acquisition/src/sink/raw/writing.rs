//! Frames into writes: which place each has, and which of them are written together.

use nilometer_model::{Nanos, Storing};
use nilometer_storage::Operation;

use super::{Carried, FrameGroup, FrameWrite, Place, RawFiles, chores::Chore, layout::THROUGH};
use crate::Frame;

impl RawFiles {
    /// The next write of frames, if one may be issued now.
    pub(super) fn write(&mut self) -> Option<(Operation, Nanos)> {
        self.collect();
        if self.layout.head.storing == Storing::Growing && !self.in_flight.is_empty() {
            // What is behind the end of the file can't be appended.
            return None;
        }
        self.group().or_else(|| self.frame())
    }

    /// Puts the frame that waits to those that are written together, if it may be.
    fn collect(&mut self) {
        let (Some(grouping), Some(frame)) = (&mut self.grouping, &self.waiting) else { return };
        let bytes = self.layout.written(frame.packed.as_deref());
        if self.layout.is_odd(bytes) {
            // By another slot of the file.
            return grouping.complete();
        }
        let Some((file, issued)) = self.files.next() else { return };
        let place = Place { file, position: self.layout.position(file, issued, frame.number) };
        if !grouping.make_room(place, self.layout.slot(file), bytes) {
            return;
        }
        grouping.add(self.waiting.take().expect("it was looked at"), bytes);
        if self.put(place, bytes) {
            self.complete_group();
        }
    }

    /// What is collected is a write of its own.
    pub(super) fn complete_group(&mut self) {
        if let Some(grouping) = &mut self.grouping {
            grouping.complete();
        }
    }

    /// The write of frames that were collected, if it is time for it.
    fn group(&mut self) -> Option<(Operation, Nanos)> {
        let any = self.finishing || self.flush && self.in_flight.is_empty();
        let FrameGroup { place, file, bytes, length, frames } = self.grouping.as_mut()?.take(any)?;
        let due = frames.first().map_or(Nanos(0), |frame| frame.due);
        let tag = self.in_flight.insert(FrameWrite { place, frames: Carried::Group(frames) });
        let offset = place.position * self.layout.head.stride;
        Some((Operation::write(file, offset, length, bytes).tagged(tag), due))
    }

    /// The write of the frame that waits, if it is one of its own.
    fn frame(&mut self) -> Option<(Operation, Nanos)> {
        let (file, issued) = self.files.next()?;
        let written = self.layout.written(self.waiting.as_ref()?.packed.as_deref());
        let through = self.layout.is_odd(written);
        if through && !self.opens_through(file) || !through && self.grouping.is_some() {
            return None;
        }
        let Frame { number, due, data, packed } = self.waiting.take()?;
        let place = Place { file, position: self.layout.position(file, issued, number) };
        let (buffer, length, slot) = match &mut self.packer {
            Some(packer) => {
                let (file, length) = packer.pack(number, &data[..self.layout.head.frame_size as usize]);
                (file, length, Some(data))
            }
            None => (data, written, None),
        };
        let file_slot = if through { THROUGH } else { self.layout.slot(file) };
        let frames = Carried::One { number, due, packed, slot };
        let tag = self.in_flight.insert(FrameWrite { place, frames });
        self.put(place, written);
        let offset = place.position * self.layout.head.stride;
        Some((Operation::write(file_slot, offset, length, buffer).tagged(tag), due))
    }

    /// A frame of so many bytes goes to this place; whether its file is full by that.
    fn put(&mut self, place: Place, written: u32) -> bool {
        let stride = self.layout.head.stride;
        self.cut += stride.saturating_sub(u64::from(written));
        self.end = self.end.max(place.position * stride + u64::from(written));
        if let Some(chunks) = &mut self.chunks {
            chunks.issue(place);
        }
        let full = self.files.roll();
        if full {
            self.add_complete(place.file);
            if !self.layout.is_scattered() {
                self.add_make(place.file + 2);
            }
        }
        full
    }

    /// Whether the file is open once more, through the cache; if not yet, it will be.
    fn opens_through(&mut self, file: u64) -> bool {
        if !std::mem::replace(&mut self.through, true) {
            self.program.add([Chore::OpenThrough(file)]);
        }
        self.program.through_is_open()
    }
}
