//! What becomes of a frame that was read: it is checked or copied, after a look whether its file still stands.

use nilometer_model::{Nanos, Storing};
use nilometer_recording::reader::FrameLocation;
use nilometer_ring::Frame;
use nilometer_storage::{Buffer, Completion};

use super::{Follower, PendingFrame, Purpose, tail::decode};

/// What came of reading a frame.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// It can't be read whole.
    Failed,
    /// It is not what the instrument delivered.
    Wrong,
    /// It is whole, and is not known to be another.
    Whole(FrameBytes),
}

/// The bytes of a frame, as they were read.
#[derive(Debug)]
pub(super) struct FrameBytes {
    data: Buffer,
    issued: Nanos,
    finished: Nanos,
}

impl Follower {
    pub(super) fn read(&mut self, frame: PendingFrame, completion: Completion) {
        let Completion { operation, result, finished, issued, .. } = completion;
        let FrameLocation { lane, extent } = frame.location;
        let mut data = operation.buffer;
        let is_whole = result.is_ok_and(|read| decode(&extent, read, &mut data));
        if !is_whole {
            self.room.push(data);
            return self.judge(frame, ReadOutcome::Failed, true);
        }
        let bytes = FrameBytes { data, issued, finished };
        // A copy has nothing to compare it with: what may be written over while it is read is made sure of first.
        let may_be_overwritten = self.lanes[lane].layout.head.storing == Storing::Ring;
        if may_be_overwritten && matches!(self.purpose, Purpose::Copy(_)) {
            return self.judge(frame, ReadOutcome::Whole(bytes), true);
        }
        self.deliver(frame, bytes);
    }

    /// Does with a frame what it was read for.
    fn deliver(&mut self, frame: PendingFrame, bytes: FrameBytes) {
        let FrameBytes { data, issued, finished } = bytes;
        if !self.put(frame, data, finished) {
            return self.judge(frame, ReadOutcome::Wrong, true);
        }
        self.totals.frames += 1;
        self.totals.bytes += u64::from(frame.location.extent.size);
        self.late.add(finished.since(frame.due).0);
        self.totals.wall = finished.since(*self.first.get_or_insert(issued));
        self.was_read(frame.number);
    }

    /// A frame was read. Its file may have been removed, or written over, meanwhile: that is noted before it is done, so
    /// that nothing is said while the journal has `more` that was written before.
    pub(super) fn judge(&mut self, frame: PendingFrame, outcome: ReadOutcome, more: bool) {
        if self.index.is_gone(frame.location) {
            self.failed(outcome);
            self.totals.missed += 1;
            return;
        }
        if more {
            self.current = Some(frame);
            self.suspect = Some(outcome);
            return;
        }
        match outcome {
            ReadOutcome::Failed => self.totals.failed += 1,
            ReadOutcome::Wrong => {
                self.totals.wrong += 1;
                self.was_read(frame.number);
            }
            ReadOutcome::Whole(bytes) => self.deliver(frame, bytes),
        }
    }

    /// What was read is not used: its buffer is free for the next frame.
    pub(super) fn failed(&mut self, outcome: ReadOutcome) -> ReadOutcome {
        if let ReadOutcome::Whole(bytes) = outcome {
            self.room.push(bytes.data);
        }
        ReadOutcome::Failed
    }

    /// Does with a frame what it was read for: whether it is right.
    fn put(&mut self, frame: PendingFrame, data: Buffer, now: Nanos) -> bool {
        let PendingFrame { number, location, due } = frame;
        let length = location.extent.size as usize;
        let gaps = self.index.gaps.remove(&number).unwrap_or_default();
        match &self.purpose {
            Purpose::Check(expected) => {
                let before = self.left_out.range(..number).map(|(_, count)| count).sum();
                let right = expected.verify(number, &data[..length], &gaps, before).is_ok();
                self.room.push(data);
                right
            }
            Purpose::Copy(ring) => {
                let stream = self.lanes[location.lane].layout.stream.as_ref();
                let packed = stream.map(|stream| Box::new(stream.packed(length, gaps)));
                let frame = Frame { packed, ..Frame::new(number, due, due, data) };
                ring.put(now, &mut vec![frame], &mut self.room, false);
                true
            }
        }
    }
}
