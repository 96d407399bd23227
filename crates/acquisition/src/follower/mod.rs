//! Follows a recording in progress. Like a reader on another machine, the follower learns from the lanes'
//! journals which frames exist. It reads each frame a given time after it was due.
//!
//! It compares the frames with those that the instrument delivered, or puts them into a second ring whose
//! writers make a copy. The copy is a recording like the first, with its own journals.

mod names;
mod outcome;
mod tail;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_intake::Expected;
use nilometer_model::{ByteRate, Histogram, Nanos, ReaderTotals};
use nilometer_recording::{
    Ranges,
    journal::Entry,
    reader::{Change, FrameLocation, Index},
};
use nilometer_ring::Ring;
use nilometer_storage::{Arena, Buffer, Completion, Errno, OpKind, Operation, Step, Wait, Workload};

use crate::sink::RawLayout;
use outcome::ReadOutcome;
use tail::{RefusalSpan, Tail};

/// The use of the frames that a follower reads.
#[derive(Debug)]
pub enum Purpose {
    /// Reads them, and checks that each is the one that the instrument delivered.
    Check(Expected),
    /// Puts them into another ring that has writers. Its slots must have at least [`Follower::room`] bytes.
    Copy(Arc<Ring>),
}

/// Timing of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Following {
    /// Shortest time between a frame being due and being read.
    pub distance: Nanos,
    /// Shortest time between the starts of two reads.
    pub gap: Nanos,
}

impl Following {
    /// Limits reading to this rate.
    #[must_use]
    pub fn at_most(self, rate: ByteRate, frame_size: u64) -> Self {
        Following { gap: Nanos::from_seconds(frame_size as f64 / rate.0), ..self }
    }
}

/// Follows a recording in progress. A workload with one operation in flight; [`Follower::slots`] is its number
/// of open files.
#[derive(Debug)]
pub struct Follower {
    lanes: Vec<Tail>,
    purpose: Purpose,
    following: Following,
    over: Arc<AtomicBool>,
    /// The journals' records of frames not yet read.
    index: Index,
    /// Due times of the frames to read, by number.
    pending: BTreeMap<u64, Nanos>,
    /// Number of packets left out, by block.
    left_out: BTreeMap<u64, u64>,
    /// Numbers of the frames read. If a failed lane gave a frame back, the journals of two lanes may have it.
    seen: Ranges,
    /// Frames whose file was missing at the read, until the journal gives the reason.
    gone: BTreeSet<u64>,
    /// The frame that is being read.
    current: Option<PendingFrame>,
    /// The result of the read. It stands unless the lane's journal now reports the file as removed or
    /// overwritten.
    suspect: Option<ReadOutcome>,
    /// The lane whose journal is read next, if any, and true if this round found new records.
    looking: Option<(usize, bool)>,
    look_at: Nanos,
    read_at: Nanos,
    /// The time for which storage has refused to open files of frames.
    refused: RefusalSpan,
    /// Buffer for names and records.
    scratch: Option<Buffer>,
    /// Buffers for the next frames.
    room: Vec<Buffer>,
    first: Option<Nanos>,
    totals: ReaderTotals,
    late: Histogram,
}

/// A frame to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingFrame {
    number: u64,
    location: FrameLocation,
    due: Nanos,
}

/// Interval between looks at journals without new records.
const LOOK: Nanos = Nanos::from_millis(2);
const SCRATCH: usize = 4096;

impl Follower {
    /// Creates a follower of the lanes of a recording. It ends when all lanes have ended in order and it has
    /// read every frame, or when `over` is set.
    pub fn new(lanes: Vec<RawLayout>, purpose: Purpose, following: Following, over: Arc<AtomicBool>) -> Self {
        let room = Follower::room(&lanes);
        let mut index = Index::default();
        for layout in &lanes {
            index.add_lane(layout.head).expect("lanes of one recording are followed");
        }
        let lanes: Vec<_> =
            lanes.into_iter().zip(0..).map(|(layout, number)| Tail::new(layout, number)).collect();
        let one = |size| Arena::shared_out(1, size).1.pop();
        let copies = matches!(purpose, Purpose::Copy(_));
        let room = one(room as usize).filter(|_| !copies).into_iter().collect();
        Follower {
            lanes,
            purpose,
            following,
            over,
            index,
            pending: BTreeMap::new(),
            left_out: BTreeMap::new(),
            seen: Ranges::default(),
            gone: BTreeSet::new(),
            current: None,
            suspect: None,
            looking: None,
            look_at: Nanos(0),
            read_at: Nanos(0),
            refused: RefusalSpan::default(),
            scratch: one(SCRATCH),
            room,
            first: None,
            totals: ReaderTotals { copies, ..ReaderTotals::default() },
            late: Histogram::default(),
        }
    }

    /// Number of slots for open files that a follower of `lanes` lanes needs.
    pub const fn slots(lanes: u32) -> u32 {
        1 + 2 * lanes
    }

    /// Bytes of memory for reading any frame of these lanes. The file of a compressed frame may be larger than
    /// the frame.
    pub fn room(lanes: &[RawLayout]) -> u64 {
        lanes.iter().map(tail::room).max().unwrap_or(1)
    }

    /// Totals of the frames read so far.
    pub fn totals(&self) -> ReaderTotals {
        self.totals
    }

    /// Times from a frame being due to being read and found intact.
    pub fn late(&self) -> &Histogram {
        &self.late
    }

    /// Returns the next operation for the frame that is being read.
    fn go_on(&mut self, frame: PendingFrame) -> Option<Operation> {
        let FrameLocation { lane, extent } = frame.location;
        let records = self.index.records(lane);
        let tail = &mut self.lanes[lane];
        match tail.open {
            _ if tail.names.is_in_doubt() || self.suspect.is_some() => {
                Some(tail.look(records, self.scratch.take()?))
            }
            Some(file) if file == extent.file && !tail.names.is_stale() => {
                Some(tail.read(&extent, self.room.pop()?))
            }
            Some(_) => {
                let buffer = self.scratch.take()?;
                tail.closed();
                Some(Operation::on(OpKind::Close, tail.frames, buffer))
            }
            None => {
                let names = self.index.file_names(&tail.layout.name, frame.location);
                Some(tail.open(names, self.scratch.take()?))
            }
        }
    }

    /// Returns the time from which the next frame may be read.
    fn next_read(&self) -> Option<Nanos> {
        let (_, due) = self.pending.first_key_value()?;
        Some(self.read_at.max(*due + self.following.distance))
    }

    /// Returns true if there is a buffer for another frame.
    fn has_room(&mut self, now: Nanos) -> bool {
        if let (Purpose::Copy(ring), true) = (&self.purpose, self.room.is_empty()) {
            ring.put(now, &mut Vec::new(), &mut self.room, true);
        }
        !self.room.is_empty()
    }

    /// Takes out the next frame to read.
    fn take_pending(&mut self) -> Option<PendingFrame> {
        let (number, due) = self.pending.pop_first()?;
        let location = self.index.frames.get(number)?;
        Some(PendingFrame { number, location, due })
    }

    /// Returns true if all journals were read to their ends, or as far as possible.
    fn has_ended(&self) -> bool {
        let broken = self.lanes.iter().filter(|lane| lane.is_broken).count();
        self.index.ended + broken >= self.lanes.len()
    }

    fn is_over(&self) -> bool {
        let read = self.pending.is_empty() && self.has_ended();
        read || self.over.load(Ordering::Relaxed)
    }

    /// Takes in bytes read from a lane's journal. Returns true if they hold new records. A torn record is still
    /// being written.
    fn take_records(&mut self, lane: usize, bytes: &[u8]) -> bool {
        let from = self.index.records(lane);
        let tail = &mut self.lanes[lane];
        let (entries, within_limits) = tail.layout.head.entries_within_limits(from, bytes);
        if within_limits.is_err() {
            let broken_before = std::mem::replace(&mut tail.is_broken, true);
            self.totals.failed += u64::from(!broken_before);
        }
        self.take(lane, &entries);
        !entries.is_empty()
    }

    /// Takes in new records of a lane's journal.
    fn take(&mut self, lane: usize, entries: &[Entry]) {
        let from = self.index.records(lane);
        let mut changes = Vec::new();
        self.index.follow(lane, from, entries, &mut |change| changes.push(change));
        for change in changes {
            self.changed(change);
        }
    }

    fn changed(&mut self, change: Change) {
        match change {
            Change::Added { number, due, left_out } => {
                if left_out > 0 {
                    self.left_out.insert(number, left_out);
                }
                if self.seen.contains(number) {
                    self.index.forget(number);
                } else {
                    self.gone.remove(&number);
                    self.pending.insert(number, due);
                }
            }
            Change::Removed { number } => {
                let awaited = self.pending.remove(&number).is_some() || self.gone.remove(&number);
                self.totals.missed += u64::from(awaited);
            }
        }
    }

    /// Counts the frames of missing files. At the end of the journals every removal is in them.
    fn account_for_gone(&mut self) {
        let gone = std::mem::take(&mut self.gone).len() as u64;
        if self.has_ended() {
            self.totals.failed += gone;
        } else {
            self.totals.missed += gone;
        }
    }

    fn looked(&mut self, lane: usize, completion: Completion) {
        let Completion { operation, result, finished, .. } = completion;
        let mut news = false;
        match (operation.kind, result) {
            (OpKind::Read, Ok(length)) => {
                news = self.take_records(lane, &operation.buffer[..length as usize]);
            }
            (_, Ok(_)) => {
                self.lanes[lane].opened();
                news = true;
            }
            // The file is not there yet.
            (_, Err(Errno::ENOENT)) => {}
            // The follower retries every 2 ms. One that lasts counts once.
            (_, Err(_)) => self.totals.failed += u64::from(self.lanes[lane].fault.lasts(finished)),
        }
        if result.is_ok() {
            self.lanes[lane].fault = RefusalSpan::default();
        }
        self.scratch = Some(operation.buffer);
        let news = self.looking.is_some_and(|(_, before)| before) || news;
        self.looking = (lane + 1 < self.lanes.len()).then_some((lane + 1, news));
        if self.looking.is_none() {
            self.look_at = if news { finished } else { finished + LOOK };
        }
    }

    fn opened(&mut self, frame: PendingFrame, completion: Completion) {
        let finished = completion.finished;
        self.scratch = Some(completion.operation.buffer);
        let FrameLocation { lane, extent } = frame.location;
        let may_be_renamed = self.index.chunks.contains_key(&(lane, extent.file));
        let tail = &mut self.lanes[lane];
        match completion.result {
            Ok(_) => {
                self.refused = RefusalSpan::default();
                tail.opened_file(extent.file, true, may_be_renamed);
                self.current = Some(frame);
            }
            Err(Errno::ENOENT) => {
                tail.opened_file(extent.file, false, may_be_renamed);
                if may_be_renamed {
                    self.current = Some(frame);
                } else {
                    self.is_gone(frame);
                }
            }
            Err(_) => self.refused_to_open(frame, finished),
        }
    }

    /// Tries again to open a file that storage refuses for a moment, as some do until the writer's close reaches their
    /// server. The frame fails if storage still refuses it after [`PATIENCE`].
    fn refused_to_open(&mut self, frame: PendingFrame, now: Nanos) {
        self.refused.lasts(now);
        if self.refused.is_counted {
            self.totals.failed += 1;
        } else {
            self.pending.insert(frame.number, frame.due);
            self.read_at = self.read_at.max(now + LOOK);
        }
    }

    /// Handles a missing file: neither this frame nor the others in the file can be read.
    fn is_gone(&mut self, frame: PendingFrame) {
        let file = self.index.file_of(frame.location);
        let Follower { index, pending, .. } = self;
        let lost = pending.extract_if(.., |number, _| {
            index.frames.get(*number).is_none_or(|location| index.file_of(location) == file)
        });
        let lost = lost.map(|(number, _)| number).chain([frame.number]);
        if index.is_gone(frame.location) {
            self.totals.missed += lost.count() as u64;
        } else {
            self.gone.extend(lost);
        }
    }

    /// Takes the look at a lane's journal that shows if the right file is open.
    fn made_sure(&mut self, frame: PendingFrame, completion: Completion) {
        let Completion { operation, result, .. } = completion;
        let lane = frame.location.lane;
        let length = result.unwrap_or(0) as usize;
        let is_all = length < operation.length as usize;
        let news = self.take_records(lane, &operation.buffer[..length]);
        self.scratch = Some(operation.buffer);
        if let Some(outcome) = self.suspect.take() {
            // Without the look, the outcome is neither wrong nor right.
            let outcome = if result.is_ok() { outcome } else { self.failed(outcome) };
            self.judge(frame, outcome, news && !is_all);
            return;
        }
        self.current = Some(frame);
        let names = self.index.file_names(&self.lanes[lane].layout.name, frame.location);
        let tail = &mut self.lanes[lane];
        tail.names.update(names);
        if !news && !tail.names.make_sure(tail.open.is_some()) {
            self.current = None;
            self.is_gone(frame);
        }
    }

    /// Marks a frame as read, so that it is not read again.
    fn was_read(&mut self, number: u64) {
        self.seen.add(number);
        // Another lane may have recorded it in the meantime.
        self.pending.remove(&number);
        self.index.forget(number);
    }

    /// Returns the event to wait for when there is nothing to do.
    fn wait(&self, now: Nanos) -> Step {
        let read = self.next_read().filter(|read| *read > now);
        Step::Wait(Wait::Until(read.map_or(self.look_at, |read| read.min(self.look_at)).max(now + Nanos(1))))
    }
}

impl Workload for Follower {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            if let Some(frame) = self.current {
                let operation = self.go_on(frame);
                return operation.map_or(Step::Wait(Wait::ForOne), |operation| Step::Issue(operation, now));
            }
            if self.scratch.is_none() {
                return Step::Wait(Wait::ForOne);
            }
            if self.is_over() {
                self.account_for_gone();
                if let Purpose::Copy(ring) = &self.purpose {
                    ring.close(self.index.due.unwrap_or(self.totals.frames));
                }
                return Step::Done;
            }
            if let Some((lane, _)) = self.looking {
                let buffer = self.scratch.take().expect("it was there just now");
                return Step::Issue(self.lanes[lane].look(self.index.records(lane), buffer), now);
            }
            if self.next_read().is_some_and(|read| read <= now) && self.has_room(now) {
                self.current = self.take_pending();
                self.read_at = now + self.following.gap;
            } else if now >= self.look_at {
                self.looking = Some((0, false));
            } else {
                return self.wait(now);
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        let Some(frame) = self.current else {
            let (lane, _) = self.looking.expect("a completed operation was issued");
            return self.looked(lane, completion);
        };
        if completion.operation.kind == OpKind::Close {
            self.scratch = Some(completion.operation.buffer);
            return;
        }
        self.current = None;
        match completion.operation.kind {
            OpKind::Read if self.lanes[frame.location.lane].is_journal(&completion.operation) => {
                self.made_sure(frame, completion);
            }
            OpKind::Read => self.read(frame, completion),
            _ => self.opened(frame, completion),
        }
    }
}

#[cfg(test)]
mod tests;
