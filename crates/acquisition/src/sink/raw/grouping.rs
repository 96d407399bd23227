//! Small frames are written together (write coalescing): a write costs the storage about as much for 1 KiB as
//! for 64 KiB.
//!
//! Frames that follow each other in a file are copied side by side into a group, which is one write. For
//! example, frames of 100 B in files of 16 frames, and groups of 350 B:
//!
//! ```text
//! frame       12    13    14    15    16    17 ..
//! file        0     0     0     0     1     1
//! offset      1200  1300  1400  1500  0     100 B
//! group       [12    13    14] [15]  [16    17 ..
//!
//! [12 13 14]  300 B at 1200 of file 0: full, because a fourth frame would be 400 B
//! [15]        100 B at 1500 of file 0: complete, because file 0 is over
//! [16 17 ..   still takes frames
//! ```
//!
//! A group is complete when it is full, when the next frame does not follow its last one, or when the file is
//! over. Otherwise it is written as soon as no frame waits and no other write is in flight. At a low rate each
//! frame is therefore written when it arrives. The more the storage falls behind, the larger the writes become.
//! A copy of a few KiB costs less than the system call that it saves.

use std::mem::size_of;

use nilometer_ring::Frame;
use nilometer_storage::{Arena, Buffer, Slot};

use super::{FileOffset, RawLayout};

/// The group that takes frames, and the memory of others.
#[derive(Debug)]
pub(super) struct Grouping {
    open: Option<FrameGroup>,
    /// The open group is complete: it takes no more frames, and is to be written.
    complete: bool,
    spare: Vec<FrameGroup>,
}

/// Consecutive frames of a file that are one write.
#[derive(Debug)]
pub(super) struct FrameGroup {
    /// The file and offset at which the first frame begins.
    pub(super) begin: FileOffset,
    /// The slot of their file.
    pub(super) file: Slot,
    /// The frames one behind the other.
    pub(super) bytes: Buffer,
    /// How many bytes of it are filled.
    pub(super) length: u32,
    /// Frames of the group. They keep their slots of the ring until they are acknowledged, or go elsewhere.
    pub(super) frames: Vec<Frame>,
}

/// Number of groups with memory: one takes frames while others are in flight.
const GROUPS: usize = 4;

/// Bytes of all groups of a lane with this layout, with their lists of frames.
pub(super) fn memory(layout: &RawLayout) -> u64 {
    let size = u64::from(layout.together);
    let frames = size / layout.head.stride.max(1);
    GROUPS as u64 * (size + frames * size_of::<Frame>() as u64)
}

impl Grouping {
    /// Makes groups for a layout whose frames are small enough to be written together.
    pub(super) fn of(layout: &RawLayout) -> Option<Self> {
        (layout.together > 0).then(|| Grouping::new(layout.together, layout.head.stride))
    }

    /// Groups of `size` bytes, for frames that begin every `stride` bytes in their file.
    pub(super) fn new(size: u32, stride: u64) -> Self {
        let (_, buffers) = Arena::shared_out(GROUPS, size as usize);
        let frames = size as usize / stride as usize;
        let spare = buffers.into_iter().map(|bytes| FrameGroup::new(bytes, Vec::with_capacity(frames)));
        Grouping { open: None, complete: false, spare: spare.collect() }
    }

    /// Returns true if another frame can be taken.
    pub(super) fn has_room(&self) -> bool {
        // A complete group that is not issued yet is in the way of the next frame: its write comes first.
        self.is_open() || (self.open.is_none() && !self.spare.is_empty())
    }

    fn is_open(&self) -> bool {
        self.open.is_some() && !self.complete
    }

    /// No frame is collected that is not issued.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    /// The open group takes no more frames.
    pub(super) fn complete(&mut self) {
        self.complete = self.open.is_some();
    }

    /// Makes room for a frame of `bytes` bytes at `begin`: in the open group, or in a new one. Returns false if
    /// an earlier group has to be written first, or if no group has memory left.
    pub(super) fn make_room(&mut self, begin: FileOffset, file: Slot, bytes: u32) -> bool {
        // A frame that does not follow the last one would leave a hole in the write.
        if self.open.as_ref().is_some_and(|group| !group.continues_at(begin, file, bytes)) {
            self.complete();
        }
        if self.open.is_none() {
            self.open = self.spare.pop().map(|group| FrameGroup { begin, file, ..group });
        }
        self.is_open()
    }

    /// Adds a frame with `bytes` bytes to write; `make_room` returned true for it.
    pub(super) fn add(&mut self, frame: Frame, bytes: u32) {
        let group = self.open.as_mut().expect("room was made");
        group.add(frame, bytes);
        // The next frame is probably as large as this one. If it would not fit, the write need not wait for it.
        if group.length as usize + bytes as usize > group.bytes.len() {
            self.complete = true;
        }
    }

    /// Takes the group to be written: a complete one, or `any` that has frames.
    pub(super) fn take(&mut self, any: bool) -> Option<FrameGroup> {
        if !self.complete && !any {
            return None;
        }
        self.complete = false;
        self.open.take()
    }

    /// Takes back the memory of a group that was written, and its list of frames, which is empty.
    pub(super) fn give_back(&mut self, bytes: Buffer, frames: Vec<Frame>) {
        self.spare.push(FrameGroup::new(bytes, frames));
    }

    /// Gives up the frames that were collected and not issued: they go elsewhere.
    pub(super) fn abandon(&mut self) -> Vec<Frame> {
        self.take(true).map(|group| group.frames).unwrap_or_default()
    }
}

impl FrameGroup {
    /// Makes a group without frames; its first frame sets its position.
    fn new(bytes: Buffer, frames: Vec<Frame>) -> Self {
        FrameGroup { begin: FileOffset { file: 0, offset: 0 }, file: Slot(0), bytes, length: 0, frames }
    }

    /// Returns true if a frame at `begin` follows the last one here, and its bytes have room.
    fn continues_at(&self, begin: FileOffset, file: Slot, bytes: u32) -> bool {
        let next = FileOffset { offset: self.begin.offset + u64::from(self.length), ..self.begin };
        let room = self.bytes.len() - self.length as usize;
        next == begin && self.file == file && bytes as usize <= room
    }

    fn add(&mut self, frame: Frame, bytes: u32) {
        let start = self.length as usize;
        let length = bytes as usize;
        self.bytes[start..start + length].copy_from_slice(&frame.data[..length]);
        self.length += bytes;
        self.frames.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Nanos;

    const FILE: Slot = Slot(2);

    fn frame(number: u64) -> Frame {
        let mut data = Buffer::alone(100);
        data.fill(number as u8);
        Frame::new(number, Nanos(number), Nanos(number), data)
    }

    fn begin(number: u64) -> FileOffset {
        FileOffset { file: 0, offset: 100 * number }
    }

    fn collect(grouping: &mut Grouping, number: u64) -> bool {
        let room = grouping.make_room(begin(number), FILE, 100);
        if room {
            grouping.add(frame(number), 100);
        }
        room
    }

    #[test]
    fn neighbours_are_one_write_until_it_is_full() {
        let mut grouping = Grouping::new(350, 100);
        assert!((5..8).all(|number| collect(&mut grouping, number)));
        assert!(!grouping.has_room(), "another does not fit");
        let group = grouping.take(false).expect("it is full");
        assert_eq!((group.begin, group.length, group.frames.len()), (begin(5), 300, 3));
        let bytes: Vec<u8> = group.bytes[..300].chunks(100).map(|frame| frame[0]).collect();
        assert_eq!(bytes, [5, 6, 7]);
        assert!(grouping.is_empty() && grouping.has_room());
    }

    #[test]
    fn what_does_not_follow_begins_a_group_of_its_own() {
        for other in [begin(9), FileOffset { file: 1, offset: 100 }] {
            let mut grouping = Grouping::new(1000, 100);
            assert!(collect(&mut grouping, 0));
            assert!(grouping.take(false).is_none(), "more may come");
            assert!(!grouping.make_room(other, FILE, 100), "the first is to be written before");
            assert_eq!(grouping.take(false).map(|group| group.frames.len()), Some(1));
            assert!(grouping.make_room(other, FILE, 100));
        }
    }

    #[test]
    fn a_larger_frame_that_finds_no_room_is_written_later() {
        let at = |number: u64| FileOffset { file: 0, offset: 30 * number };
        let mut grouping = Grouping::new(100, 10);
        for number in [0, 1] {
            assert!(grouping.make_room(at(number), FILE, 30));
            grouping.add(frame(number), 30);
        }
        assert!(!grouping.make_room(at(2), FILE, 50), "40 bytes are left");
        assert_eq!(grouping.take(false).map(|group| group.length), Some(60));
        assert!(grouping.make_room(at(2), FILE, 50));
    }

    #[test]
    fn no_more_is_collected_than_there_is_memory_for() {
        let mut grouping = Grouping::new(100, 100);
        let mut flying = Vec::new();
        for number in 0..GROUPS as u64 {
            assert!(grouping.has_room() && collect(&mut grouping, number));
            flying.extend(grouping.take(false));
        }
        assert!(!grouping.has_room() && !collect(&mut grouping, 4));
        let FrameGroup { bytes, mut frames, .. } = flying.pop().expect("some are in flight");
        frames.clear();
        grouping.give_back(bytes, frames);
        assert!(grouping.has_room() && collect(&mut grouping, 4));
        assert_eq!(grouping.abandon().len(), 1);
        assert!(grouping.is_empty());
    }
}
