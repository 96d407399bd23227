//! A reader that follows a recording while it is made: it knows what is there from the lanes' journals, as a reader on
//! another machine would, and reads each frame a given time after it was due.
//!
//! What it reads it checks against what the instrument delivered, or puts into a second ring, whose writers make a copy:
//! so a copy is a recording like the first, with a journal of its own.

mod names;
mod tail;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_model::{ByteRate, Histogram, Nanos, ReaderTotals};
use nilometer_storage::{Arena, Buffer, Completion, Errno, OpKind, Operation, Step, Wait, Workload};

use crate::{
    Expected, Frame, Gap, Ranges, Ring,
    journal::{Entry, FrameExtent},
    sink::RawLayout,
};
use tail::{Tail, decode};

/// What a follower does with frames.
#[derive(Debug)]
pub enum Purpose {
    /// Reads them, and checks that each is what the instrument delivered.
    Check(Expected),
    /// Puts them into another ring, of slots with [`Follower::room`] at least, that has writers.
    Copy(Arc<Ring>),
}

/// How a follower follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Following {
    /// A frame is read so long after it was due, at the earliest.
    pub distance: Nanos,
    /// From the begin of one read to that of the next, at the least.
    pub gap: Nanos,
}

impl Following {
    /// At a rate of so many bytes a second at the most.
    #[must_use]
    pub fn at_most(self, rate: ByteRate, frame_size: u64) -> Self {
        Following { gap: Nanos::from_seconds(frame_size as f64 / rate.0), ..self }
    }
}

/// See the module. A workload with one operation in flight; `slots` says how many files it has open.
#[derive(Debug)]
pub struct Follower {
    lanes: Vec<Tail>,
    purpose: Purpose,
    following: Following,
    over: Arc<AtomicBool>,
    /// Acknowledged and not read yet, by number.
    pending: BTreeMap<u64, PendingFrame>,
    /// What did not come of blocks that were not read yet.
    gaps: BTreeMap<u64, Vec<Gap>>,
    /// Packets that were left out in blocks.
    left_out: BTreeMap<u64, u64>,
    /// Numbers of the frames that were read: one that a lane gave back when it failed may be in the journals of two.
    seen: Ranges,
    /// Frames of files that were not there when they were to be read, by lane and file, until the journal says why.
    gone: BTreeMap<(usize, u64), u64>,
    /// The frame that is being read.
    current: Option<(u64, PendingFrame)>,
    /// The lane whose journal is looked at next, if one is, and whether there was anything new in this round.
    looking: Option<(usize, bool)>,
    look_at: Nanos,
    read_at: Nanos,
    /// For names and records.
    scratch: Option<Buffer>,
    /// Where the next frames go, if there is room.
    room: Vec<Buffer>,
    /// How many frames were due, as far as the journals say.
    due: Option<u64>,
    first: Option<Nanos>,
    totals: ReaderTotals,
    late: Histogram,
}

/// A frame that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingFrame {
    lane: usize,
    extent: FrameExtent,
    due: Nanos,
}

/// How often journals are looked at while nothing new is in them.
const LOOK: Nanos = Nanos::from_millis(2);
const SCRATCH: usize = 4096;

impl Follower {
    /// A follower of the lanes of a recording. It ends when all lanes have ended in order and every frame is read, or when
    /// `over` is set.
    pub fn new(lanes: Vec<RawLayout>, purpose: Purpose, following: Following, over: Arc<AtomicBool>) -> Self {
        let room = Follower::room(&lanes);
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
            pending: BTreeMap::new(),
            gaps: BTreeMap::new(),
            left_out: BTreeMap::new(),
            seen: Ranges::default(),
            gone: BTreeMap::new(),
            current: None,
            looking: None,
            look_at: Nanos(0),
            read_at: Nanos(0),
            scratch: one(SCRATCH),
            room,
            due: None,
            first: None,
            totals: ReaderTotals { copies, ..ReaderTotals::default() },
            late: Histogram::default(),
        }
    }

    /// Slots for open files that a follower of so many lanes needs.
    pub const fn slots(lanes: u32) -> u32 {
        1 + 2 * lanes
    }

    /// Bytes of memory that any frame of these lanes can be read into: where it is compressed, its file may be larger than
    /// the frame.
    pub fn room(lanes: &[RawLayout]) -> u64 {
        lanes.iter().map(tail::room).max().unwrap_or(1)
    }

    /// What was read so far.
    pub fn totals(&self) -> ReaderTotals {
        self.totals
    }

    /// From when frames were due until they were read and found right.
    pub fn late(&self) -> &Histogram {
        &self.late
    }

    /// The next operation for the frame that is being read.
    fn go_on(&mut self, place: PendingFrame) -> Option<Operation> {
        let lane = &mut self.lanes[place.lane];
        match lane.open {
            _ if lane.names.is_in_doubt() => Some(lane.look(self.scratch.take()?)),
            Some(file) if file == place.extent.file && !lane.names.is_stale() => {
                Some(lane.read(&place.extent, self.room.pop()?))
            }
            Some(_) => {
                let (slot, buffer) = (lane.frames, self.scratch.take()?);
                lane.closed();
                Some(Operation::on(OpKind::Close, slot, buffer))
            }
            None => Some(lane.open(place.extent.file, self.scratch.take()?)),
        }
    }

    /// When the next frame may be read.
    fn next_read(&self) -> Option<Nanos> {
        let (_, place) = self.pending.first_key_value()?;
        Some(self.read_at.max(place.due + self.following.distance))
    }

    /// Whether there is room for another frame.
    fn has_room(&mut self, now: Nanos) -> bool {
        if let (Purpose::Copy(ring), true) = (&self.purpose, self.room.is_empty()) {
            ring.put(now, &mut Vec::new(), &mut self.room, true);
        }
        !self.room.is_empty()
    }

    fn is_over(&self) -> bool {
        let read = self.pending.is_empty() && self.lanes.iter().all(|lane| lane.ended);
        read || self.over.load(Ordering::Relaxed)
    }

    fn note(&mut self, number: u64, gap: Gap) {
        if !gap.filled {
            *self.left_out.entry(number).or_default() += gap.count;
        }
        self.gaps.entry(number).or_default().push(gap);
    }

    /// What is new in the journals.
    fn take(&mut self, lane: usize, entries: Vec<Entry>) {
        for entry in entries {
            match entry {
                Entry::Frame { number, .. } if self.seen.contains(number) => {}
                Entry::Frame { number, extent, due, .. } => {
                    self.pending.insert(number, PendingFrame { lane, extent, due: Nanos(due) });
                }
                Entry::Removed { file } => {
                    self.totals.missed += self.gone.remove(&(lane, file)).unwrap_or_default();
                    self.totals.missed += self.forget(lane, file);
                }
                Entry::End { due } => self.due = self.due.max(due.map(|due| due.frames)),
                Entry::Gap { number, gap } => self.note(number, gap),
                Entry::Head(_)
                | Entry::Origin(_)
                | Entry::Stream(_)
                | Entry::Chunk { .. }
                | Entry::Checkpoint { .. }
                | Entry::Boot(_)
                | Entry::Durable { .. } => {}
            }
        }
    }

    /// The frames of a file can't be read any more: how many there were.
    fn forget(&mut self, lane: usize, file: u64) -> u64 {
        let before = self.pending.len();
        self.pending.retain(|_, place| (place.lane, place.extent.file) != (lane, file));
        (before - self.pending.len()) as u64
    }

    /// What became of files that were not there: where the journals end, every removal is in them.
    fn account_for_gone(&mut self) {
        let gone: u64 = std::mem::take(&mut self.gone).into_values().sum();
        if self.lanes.iter().all(|lane| lane.ended) {
            self.totals.failed += gone;
        } else {
            self.totals.missed += gone;
        }
    }

    fn looked(&mut self, lane: usize, completion: Completion) {
        let Completion { operation, result, finished, .. } = completion;
        let tail = &mut self.lanes[lane];
        let mut news = false;
        match (operation.kind, result) {
            (OpKind::Read, Ok(length)) => {
                let entries = tail.take(&operation.buffer[..length as usize]);
                news = !entries.is_empty();
                self.take(lane, entries);
            }
            (_, Ok(_)) => {
                tail.opened();
                news = true;
            }
            // It will be there.
            (_, Err(Errno::ENOENT)) => {}
            // It is looked at every 2 ms: one fault, however long it lasts.
            (_, Err(_)) => self.totals.failed += u64::from(!std::mem::replace(&mut tail.fails, true)),
        }
        self.lanes[lane].fails &= result.is_err();
        self.scratch = Some(operation.buffer);
        let news = self.looking.is_some_and(|(_, before)| before) || news;
        self.looking = (lane + 1 < self.lanes.len()).then_some((lane + 1, news));
        if self.looking.is_none() {
            self.look_at = if news { finished } else { finished + LOOK };
        }
    }

    fn opened(&mut self, (number, place): (u64, PendingFrame), completion: Completion) {
        self.scratch = Some(completion.operation.buffer);
        match completion.result {
            Ok(_) => {
                self.lanes[place.lane].opened_file(place.extent.file, true);
                self.current = Some((number, place));
            }
            Err(Errno::ENOENT) if self.lanes[place.lane].opened_file(place.extent.file, false) => {
                self.current = Some((number, place));
            }
            Err(Errno::ENOENT) => self.is_gone(place),
            Err(_) => self.totals.failed += 1,
        }
    }

    /// The file of the frame that is read is not there, nor are those in it.
    fn is_gone(&mut self, place: PendingFrame) {
        let frames = 1 + self.forget(place.lane, place.extent.file);
        *self.gone.entry((place.lane, place.extent.file)).or_default() += frames;
    }

    /// The journal of a lane was looked at to see whether the right file is open.
    fn made_sure(&mut self, (number, place): (u64, PendingFrame), completion: Completion) {
        let Completion { operation, result, .. } = completion;
        let lane = &mut self.lanes[place.lane];
        let entries = lane.take(&operation.buffer[..result.unwrap_or(0) as usize]);
        self.scratch = Some(operation.buffer);
        self.current = Some((number, place));
        if entries.is_empty() && !lane.names.make_sure(place.extent.file, lane.open.is_some()) {
            self.current = None;
            self.is_gone(place);
        }
        self.take(place.lane, entries);
    }

    fn read(&mut self, (number, place): (u64, PendingFrame), completion: Completion) {
        let Completion { operation, result, finished, .. } = completion;
        let (lane, due, mut data) = (&self.lanes[place.lane], place.due, operation.buffer);
        let length = place.extent.size as usize;
        let whole = result.is_ok_and(|read| decode(&place.extent, read, &mut data));
        let gaps = self.gaps.remove(&number).unwrap_or_default();
        let right = match &self.purpose {
            Purpose::Check(expected) if whole => {
                let before = self.left_out.range(..number).map(|(_, count)| count).sum();
                expected.verify(number, &data[..length], &gaps, before).is_ok()
            }
            _ => true,
        };
        match &self.purpose {
            Purpose::Copy(ring) if whole => {
                let stream = lane.layout.stream.as_ref();
                let packed = stream.map(|stream| Box::new(stream.packed(length, gaps)));
                ring.put(
                    finished,
                    &mut vec![Frame { number, due, data, packed, encoded: None }],
                    &mut self.room,
                    false,
                );
            }
            _ => self.room.push(data),
        }
        self.totals.failed += u64::from(!whole);
        self.totals.wrong += u64::from(!right);
        if whole {
            self.seen.add(number);
        }
        if whole && right {
            self.totals.frames += 1;
            self.totals.bytes += length as u64;
            self.late.add(finished.since(due).0);
            self.totals.wall = finished.since(*self.first.get_or_insert(completion.issued));
        }
    }

    /// What to wait for when nothing can be done.
    fn wait(&self, now: Nanos) -> Step {
        let read = self.next_read().filter(|read| *read > now);
        Step::Wait(Wait::Until(read.map_or(self.look_at, |read| read.min(self.look_at)).max(now + Nanos(1))))
    }
}

impl Workload for Follower {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            if let Some((_, place)) = self.current {
                let operation = self.go_on(place);
                return operation.map_or(Step::Wait(Wait::ForOne), |operation| Step::Issue(operation, now));
            }
            if self.scratch.is_none() {
                return Step::Wait(Wait::ForOne);
            }
            if self.is_over() {
                self.account_for_gone();
                if let Purpose::Copy(ring) = &self.purpose {
                    ring.close(self.due.unwrap_or(self.totals.frames));
                }
                return Step::Done;
            }
            if let Some((lane, _)) = self.looking {
                let buffer = self.scratch.take().expect("it was there just now");
                return Step::Issue(self.lanes[lane].look(buffer), now);
            }
            if self.next_read().is_some_and(|read| read <= now) && self.has_room(now) {
                self.current = self.pending.pop_first();
                self.read_at = now + self.following.gap;
            } else if now >= self.look_at {
                self.looking = Some((0, false));
            } else {
                return self.wait(now);
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        match (self.current, completion.operation.kind) {
            (None, _) => {
                let (lane, _) = self.looking.expect("what completes was issued");
                self.looked(lane, completion);
            }
            (Some(_), OpKind::Close) => self.scratch = Some(completion.operation.buffer),
            (Some((_, place)), OpKind::Read) if self.lanes[place.lane].is_journal(&completion.operation) => {
                let current = self.current.take().expect("it was there just now");
                self.made_sure(current, completion);
            }
            (Some(_), OpKind::Read) => {
                let current = self.current.take().expect("it was there just now");
                self.read(current, completion);
            }
            (Some(_), _) => {
                let current = self.current.take().expect("it was there just now");
                self.opened(current, completion);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        instrument::{Content, Pattern},
        journal::{Encoding, Head},
    };
    use nilometer_model::{Format, Seed, Storing};

    fn follower() -> Follower {
        let head = |lane| Head {
            recording: 1,
            lane,
            lanes: 2,
            frame_size: 16,
            stride: 16,
            frames_per_file: 10,
            storing: Storing::Files,
            format: Format::Raw,
        };
        let lanes = [0, 1].map(|lane| RawLayout::suited("n".into(), head(lane), false));
        let purpose = Purpose::Check(Expected::Frames(Content::Pattern(Pattern::new(Seed(1), 16))));
        Follower::new(lanes.into(), purpose, Following::default(), Arc::default())
    }

    fn frame(number: u64, file: u64) -> Entry {
        let extent = FrameExtent { file, offset: 0, length: 16, encoding: Encoding::Raw, size: 16 };
        Entry::Frame { number, extent, due: 0, checksum: None }
    }

    fn done(operation: Operation, result: Result<u32, Errno>) -> Completion {
        Completion { operation, result, due: Nanos(0), issued: Nanos(0), finished: Nanos(1) }
    }

    /// Gives the follower's next operation this result.
    fn answer(follower: &mut Follower, result: Result<u32, Errno>) -> OpKind {
        let Step::Issue(operation, _) = follower.next(Nanos(1)) else { panic!("it has something to do") };
        let kind = operation.kind;
        follower.completed(done(operation, result));
        kind
    }

    #[test]
    fn a_frame_that_two_lanes_have_is_read_once() {
        let mut follower = follower();
        follower.take(0, vec![frame(5, 0)]);
        assert!(matches!(answer(&mut follower, Ok(0)), OpKind::Open(_)));
        assert_eq!(answer(&mut follower, Ok(16)), OpKind::Read);
        follower.take(1, vec![frame(5, 0), frame(6, 0)]);
        assert_eq!(follower.pending.keys().collect::<Vec<_>>(), [&6]);
        // One that could not be read where it was first may be read where it went then.
        assert!(matches!(answer(&mut follower, Err(Errno::EIO)), OpKind::Open(_)));
        follower.take(0, vec![frame(6, 1)]);
        assert_eq!(follower.pending.keys().collect::<Vec<_>>(), [&6]);
    }

    #[test]
    fn a_file_that_is_gone_was_removed_only_if_the_journal_says_so() {
        for (removed, expected) in [(true, (2, 0)), (false, (0, 2))] {
            let mut follower = follower();
            follower.take(0, vec![frame(0, 7), frame(1, 7)]);
            assert!(matches!(answer(&mut follower, Err(Errno::ENOENT)), OpKind::Open(_)));
            follower.take(0, removed.then_some(Entry::Removed { file: 7 }).into_iter().collect());
            follower.lanes.iter_mut().for_each(|lane| lane.ended = true);
            assert!(matches!(follower.next(Nanos(1)), Step::Done));
            assert_eq!((follower.totals.missed, follower.totals.failed), expected, "removed: {removed}");
        }
    }
}
