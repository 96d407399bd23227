//! Checks or copies a frame after reading it. A look at the journal first shows if its file still stands.

use nilometer_model::{Nanos, Storing};
use nilometer_recording::reader::FrameLocation;
use nilometer_ring::Frame;
use nilometer_storage::{Buffer, Completion};

use super::{Follower, PendingFrame, Purpose, tail::decode};

/// The result of reading a frame.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// The frame can't be read completely.
    Failed,
    /// The frame differs from the one that the instrument delivered.
    Wrong,
    /// The frame is complete, and nothing shows that it is another one.
    Whole(FrameBytes),
}

/// The bytes read for a frame.
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
        // A copy can't compare the frame, so first check the journal if the file may be overwritten during the
        // read.
        let may_be_overwritten = self.lanes[lane].layout.head.storing == Storing::Ring;
        if may_be_overwritten && matches!(self.purpose, Purpose::Copy(_)) {
            return self.judge(frame, ReadOutcome::Whole(bytes), true);
        }
        self.deliver(frame, bytes);
    }

    /// Checks or copies a frame.
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

    /// Judges a frame that was read. The recorder may have removed or overwritten its file during the read. It
    /// journals that before it does so, so this decides only when the journal has no `more` earlier records.
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

    /// Discards the bytes read, and frees their buffer for the next frame.
    pub(super) fn failed(&mut self, outcome: ReadOutcome) -> ReadOutcome {
        if let ReadOutcome::Whole(bytes) = outcome {
            self.room.push(bytes.data);
        }
        ReadOutcome::Failed
    }

    /// Checks or copies a frame. Returns true if it is intact.
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
