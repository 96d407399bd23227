//! The ring: slots of memory between an instrument that does not wait and lanes that sometimes must. It has a
//! pool of free slots and a bounded queue of full ones. Buffers move; data are not copied.
//!
//! One lock is held for a few instructions. Small frames go in and out in batches ([`batch`]), large ones one
//! by one. A slot returns as soon as its frame is acknowledged. The ring also counts lost frames and the most
//! slots ever in use, and keeps the watermark.
//!
//! For example, with 4 slots, frames of 1 MiB (a batch is one frame) and two writers A, B:
//!
//! ```text
//!                                 free  waiting  taken      watermark
//! frames 0, 1 and 2 come          1     0 1 2    -          0
//! A takes one, B takes one        1     2        A:0 B:1    0
//! frame 3 comes                   0     2 3      A:0 B:1    0
//! frame 4 is due: no free slot    0     2 3      A:0 B:1    0    `DropNewest`: 4 is lost
//! B acknowledges 1                1     2 3      A:0        0    0 is not acknowledged yet
//! A acknowledges 0                2     2 3      -          2
//! both take and acknowledge       4     -        -          5    4 is known to be lost
//! ```
//!
//! Numbers in the ring have no gaps. If recorders take frames in turn ([`FrameTurn`]), they are the numbers
//! of one recorder; lanes receive and return the instrument's numbers.
//!
//! With `DropOldest`, 4 would have taken the slot of 2, the oldest waiting frame, and 2 would be lost.

mod chunk_leases;
mod counters;
mod frame;
mod seat;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_model::Nanos;
use nilometer_recording::Due;
use nilometer_storage::{Buffer, Wake};

use crate::{Chronicle, FrameTurn, Watermark, watermark::Settled};
use chunk_leases::{Asked, ChunkLeases};
pub use counters::{RingCounters, RingSnapshot};
pub use frame::{Frame, FrameMessage, MessageDamage, StackedFrame};
use seat::{Seat, WriterSeats};

/// The number of frames of this size, in bytes, that move at once: 256 KiB of them, 1 to 16.
pub(crate) const fn batch(frame_size: usize) -> usize {
    match (256 << 10) / (frame_size + 1) {
        0 => 1,
        many if many > 16 => 16,
        some => some,
    }
}

/// Back-pressure: the treatment of a frame that is due while no slot is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The recording ends cleanly and is complete up to there.
    Stop,
    /// The due frame is lost. Waiting frames are stored.
    #[default]
    DropNewest,
    /// The oldest waiting frame is lost and the due one takes its slot, for live viewing. If lanes hold every
    /// frame, the due one is lost.
    DropOldest,
}

impl WhenFull {
    /// All variants.
    pub const ALL: [WhenFull; 3] = [WhenFull::Stop, WhenFull::DropNewest, WhenFull::DropOldest];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            WhenFull::Stop => "stop",
            WhenFull::DropNewest => "drop-newest",
            WhenFull::DropOldest => "drop-oldest",
        }
    }
}

/// Shared by one source and any number of writers.
pub struct Ring {
    state: Apart,
    turn: FrameTurn,
    batch: usize,
    abandoned: AtomicBool,
}

/// The state on cache lines of its own, which both sides write constantly. Fields that they only read for
/// each frame are on other lines, which no write invalidates.
#[repr(align(128))]
struct Apart(Mutex<State>);

struct State {
    free: Vec<Buffer>,
    /// Frames that wait for any writer, oldest first.
    full: VecDeque<Frame>,
    /// Frames that wait for one writer each, if writers get leases.
    leases: Option<ChunkLeases>,
    mark: Watermark,
    /// The number of frames due in all, once no more come.
    closed: Option<u64>,
    /// The number and bytes of the last block of packets received.
    last: Option<(u64, u32)>,
    in_use: usize,
    books: RingCounters,
    chronicle: Chronicle,
    writers: WriterSeats,
    source: Seat,
}

/// The answer to a writer that requests frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// At least one frame to store.
    Frames,
    /// At least one frame; the first begins a chunk, and the previous chunk is over.
    Chunk,
    /// No frame yet, and the chunk is over.
    Over,
    /// No frame now; the ring will wake the writer.
    Nothing,
    /// No frame now; the ring will wake the writer, which also asks again at this time.
    Later(Nanos),
    /// No more frames.
    Closed(Due),
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("books", &self.books()).finish_non_exhaustive()
    }
}

impl Ring {
    /// Creates a ring of these slots for `writers` writers, with a new chronicle.
    pub fn new(slots: Vec<Buffer>, writers: usize, chronicle: Chronicle) -> Arc<Self> {
        Ring::in_turn(slots, writers, chronicle, None, FrameTurn::ALL)
    }

    /// Creates a ring with chunk leases of `size` consecutive numbers: a writer gets frames of one lease
    /// until it is over. A lease occupies as many slots as its writer falls behind meanwhile.
    pub fn of_leases(slots: Vec<Buffer>, writers: usize, chronicle: Chronicle, size: u64) -> Arc<Self> {
        Ring::in_turn(slots, writers, chronicle, Some(size), FrameTurn::ALL)
    }

    /// Creates either kind, for a recorder that takes an instrument's frames in turn with others.
    pub fn in_turn(
        slots: Vec<Buffer>,
        writers: usize,
        chronicle: Chronicle,
        lease: Option<u64>,
        turn: FrameTurn,
    ) -> Arc<Self> {
        let books = RingCounters { slots: slots.len(), ..RingCounters::default() };
        let batch = batch(slots.first().map_or(0, |slot| slot.len()));
        let state = State {
            full: VecDeque::with_capacity(slots.len()),
            free: slots,
            leases: lease.map(|size| ChunkLeases::new(size, writers)),
            mark: Watermark::default(),
            closed: None,
            last: None,
            in_use: 0,
            books,
            chronicle,
            writers: WriterSeats::new(writers),
            source: Seat::default(),
        };
        Arc::new(Ring { state: Apart(Mutex::new(state)), turn, batch, abandoned: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the waker of the source.
    pub fn seat_source(&self, waker: Arc<dyn Wake>) {
        self.lock().source.waker = Some(waker);
    }

    /// Sets the waker of a writer.
    pub fn seat_writer(&self, writer: usize, waker: Arc<dyn Wake>) {
        self.lock().writers.seats[writer].waker = Some(waker);
    }

    /// Returns true if writers get leases of consecutive frames.
    pub fn gives_leases(&self) -> bool {
        self.lock().leases.is_some()
    }

    /// Returns the number of frames that move at once.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Takes in all of `frames` and fills `spares` up to a batch of free slots. If it finds none and the
    /// source intends to wait, the ring wakes the source once there is one.
    pub fn put(&self, now: Nanos, frames: &mut Vec<Frame>, spares: &mut Vec<Buffer>, waits: bool) {
        let mut state = self.lock();
        if !frames.is_empty() {
            state.take_in(now, frames);
        }
        let wanted = self.batch.saturating_sub(spares.len());
        // Take from the end: the most recently used slots may still be in the processor's cache.
        let left = state.free.len().saturating_sub(wanted);
        spares.extend(state.free.drain(left..));
        state.source.waits = spares.is_empty() && waits;
    }

    /// Notes that the thread that takes frames in did not run for this long.
    pub fn halted(&self, length: Nanos) {
        self.lock().chronicle.halted(length);
    }

    /// Loses a due frame that found no free slot.
    pub fn lose(&self, now: Nanos, number: u64) {
        let mut state = self.lock();
        state.books.refused += 1;
        state.lose(now, number);
    }

    /// Takes the slot of the oldest frame that waits for a lane; that frame is lost. `None` if lanes hold all
    /// frames.
    pub fn displace(&self, now: Nanos) -> Option<Buffer> {
        let mut state = self.lock();
        let Frame { number, data, .. } = state.pop_oldest()?;
        state.books.displaced += 1;
        state.in_use -= 1;
        state.lose(now, number);
        Some(data)
    }

    /// Closes the ring: no more frames come; `due` were due in all.
    pub fn close(&self, due: u64) {
        let mut state = self.lock();
        state.closed = Some(due);
        if let Some(leases) = &mut state.leases {
            leases.close();
        }
        state.writers.wake();
    }

    /// Takes the next full slots: at most a batch, and no more than leaves an equal share for each of the
    /// other writers.
    pub fn take(&self, now: Nanos, writer: usize, frames: &mut VecDeque<Frame>) -> Taken {
        let before = frames.len();
        let mut state = self.lock();
        let taken = state.take(now, writer, self.batch, frames);
        if !matches!(taken, Taken::Nothing | Taken::Later(_)) {
            self.number_for_lanes(frames.range_mut(before..));
            return taken;
        }
        // A failing lane gives frames back: the end is not reached while another lane may still do so.
        if let (Some(frames), 0) = (state.closed, state.in_use) {
            state.writers.wake();
            let last = state.last.filter(|(number, _)| number + 1 == frames);
            let frames = self.turn.delivered(frames);
            return Taken::Closed(Due { frames, last: last.map(|(_, length)| length) });
        }
        state.writers.seats[writer].waits = true;
        taken
    }

    /// Frees the slots of acknowledged frames.
    pub fn release(&self, now: Nanos, acknowledged: &mut Vec<Frame>) {
        self.number_own(acknowledged.iter_mut());
        let mut state = self.lock();
        if state.release(now, acknowledged) {
            state.writers.wake();
        }
        if state.closed.is_some() && state.in_use == 0 {
            state.writers.wake();
        }
    }

    /// Returns a frame of a lane that takes no more. It goes to another lane, before all later frames. It is
    /// lost if no lane is left.
    pub fn give_back(&self, now: Nanos, mut frame: Frame) {
        self.number_own(std::iter::once(&mut frame));
        let mut state = self.lock();
        state.give_back(now, frame);
        if self.is_abandoned() {
            state.lose_all(now);
        }
        state.writers.wake();
    }

    /// Gives frames the instrument's numbers.
    fn number_for_lanes<'a>(&self, frames: impl Iterator<Item = &'a mut Frame>) {
        if !self.turn.is_all() {
            frames.for_each(|frame| frame.number = self.turn.of_instrument(frame.number));
        }
    }

    /// Gives frames their numbers within the ring.
    fn number_own<'a>(&self, frames: impl Iterator<Item = &'a mut Frame>) {
        if !self.turn.is_all() {
            frames.for_each(|frame| frame.number = self.turn.own(frame.number));
        }
    }

    /// Notes that a writer takes no more frames.
    pub fn leave(&self, now: Nanos, writer: usize) {
        let mut state = self.lock();
        state.writers.seats[writer].left = true;
        if let Some(leases) = &mut state.leases {
            let waiting = leases.leave(writer);
            state.full.extend(waiting);
            // They may be older than unclaimed frames, which others take in order.
            state.full.make_contiguous().sort_unstable_by_key(|frame| frame.number);
        }
        if state.writers.seats.iter().all(|seat| seat.left) {
            self.abandoned.store(true, Ordering::Release);
            state.lose_all(now);
        }
        state.writers.wake();
    }

    /// Returns true if no more frames come, except those that a lane gives back.
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Returns the watermark: every frame below it is acknowledged or known to be lost.
    pub fn mark(&self) -> u64 {
        self.lock().mark.below()
    }

    /// Returns the fullness, work and stalls so far.
    pub fn chronicle(&self) -> Chronicle {
        self.lock().chronicle.clone()
    }

    /// Returns the counters so far.
    pub fn books(&self) -> RingCounters {
        self.lock().books
    }

    /// Returns the counters and use now, with a stall that lasts until now. It is cheap enough for many calls
    /// a second.
    pub fn glance(&self, now: Nanos) -> RingSnapshot {
        let state = self.lock();
        let (stalled, longest_stall) = state.chronicle.stalls_until(now);
        let Chronicle { halted, longest_halt, .. } = state.chronicle;
        RingSnapshot {
            books: state.books,
            in_use: state.in_use,
            stalled,
            longest_stall,
            halted,
            longest_halt,
        }
    }

    /// Returns true if every writer has left.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}

impl State {
    fn take_in(&mut self, now: Nanos, frames: &mut Vec<Frame>) {
        self.in_use += frames.len();
        self.chronicle.came(now, self.in_use);
        self.books.high = self.books.high.max(self.in_use);
        let last = frames.last().and_then(|frame| Some((frame.number, frame.packed.as_ref()?.length)));
        self.last = self.last.max(last);
        match &mut self.leases {
            None => self.full.extend(frames.drain(..)),
            Some(_) => frames.drain(..).for_each(|frame| self.give_back(now, frame)),
        }
        if self.writers.seats.iter().all(|seat| seat.left) {
            self.lose_all(now);
        }
        self.writers.wake();
    }

    /// Puts a frame back among the waiting ones, in order.
    fn give_back(&mut self, now: Nanos, frame: Frame) {
        let number = frame.number;
        let unclaimed = match &mut self.leases {
            Some(leases) => {
                leases.pass(number);
                leases.route(now, frame)
            }
            None => Some(frame),
        };
        if let Some(frame) = unclaimed {
            let at = self.full.partition_point(|waiting| waiting.number < number);
            self.full.insert(at, frame);
        }
    }

    fn take(&mut self, now: Nanos, writer: usize, batch: usize, frames: &mut VecDeque<Frame>) -> Taken {
        let Some(leases) = &mut self.leases else {
            // One writer must not take all waiting frames: the other remaining writers write at the same
            // time.
            let there = self.writers.seats.iter().filter(|seat| !seat.left).count();
            let fair = self.full.len() / there.max(1);
            let count = fair.clamp(1, batch).min(self.full.len());
            frames.extend(self.full.drain(..count));
            return if count > 0 { Taken::Frames } else { Taken::Nothing };
        };
        let pressed = 4 * self.in_use >= 3 * self.books.slots;
        let closed = self.closed.is_some();
        let asked = Asked { now, writer, batch, mark: self.mark.below(), pressed, closed };
        leases.take(asked, &mut self.full, frames)
    }

    /// Takes the oldest waiting frame.
    fn pop_oldest(&mut self) -> Option<Frame> {
        let oldest = self.leases.as_ref().and_then(ChunkLeases::oldest);
        match (oldest, self.full.front()) {
            (Some(claimed), front) if front.is_none_or(|front| claimed < front.number) => {
                self.leases.as_mut()?.pop_oldest()
            }
            _ => self.full.pop_front(),
        }
    }

    /// Frees the slots of acknowledged frames. Returns true if writers may get frames because of it.
    fn release(&mut self, now: Nanos, acknowledged: &mut Vec<Frame>) -> bool {
        if acknowledged.is_empty() {
            return false;
        }
        self.in_use -= acknowledged.len();
        self.chronicle.acknowledged(now, acknowledged.iter().map(|frame| frame.due), self.in_use);
        let mut news = false;
        // The watermark may pass frames that were acknowledged earlier: only then can they be read.
        for Frame { number, due, data, .. } in acknowledged.drain(..) {
            if let Some(leases) = &mut self.leases {
                news |= leases.settle(now, number);
            }
            self.settle(now, number, Settled::Stored(due));
            self.free.push(data);
        }
        self.source.wake();
        news
    }

    fn settle(&mut self, now: Nanos, number: u64, settled: Settled) {
        let State { mark, chronicle, .. } = self;
        mark.settle(number, settled, |settled| {
            if let Settled::Stored(due) = settled {
                chronicle.readable(now, due);
            }
        });
    }

    fn lose(&mut self, now: Nanos, number: u64) {
        if let Some(leases) = &mut self.leases {
            leases.pass(number);
        }
        self.chronicle.lost(now, self.in_use);
        self.settle(now, number, Settled::Lost);
    }

    /// Loses all waiting frames, because no writer is left.
    fn lose_all(&mut self, now: Nanos) {
        // Every writer left and gave up the frames that waited for it.
        while let Some(Frame { number, data, .. }) = self.full.pop_front() {
            self.books.stranded += 1;
            self.in_use -= 1;
            self.free.push(data);
            self.lose(now, number);
        }
        self.source.wake();
    }
}
