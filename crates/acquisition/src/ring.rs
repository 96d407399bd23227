//! Slots between an instrument that does not wait and lanes that sometimes must: a pool of free slots and a bounded
//! queue of full ones. Buffers travel, data do not.
//!
//! One lock, held for a few instructions, taken once a frame by the source and once by a writer. The ring also keeps
//! the books: frames lost, the most slots ever in use, and the mark.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Wake};

use crate::Mark;

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame {
    /// Counted from 0 by the instrument.
    pub number: u64,
    /// When the instrument delivered it.
    pub due: Nanos,
    /// Its slot: the frame's bytes, and room up to the slot's size.
    pub data: Buffer,
}

/// Shared by one source and any number of writers.
pub struct Ring {
    state: Mutex<State>,
}

struct State {
    free: Vec<Buffer>,
    full: VecDeque<Frame>,
    mark: Mark,
    closed: bool,
    in_use: usize,
    books: Books,
    writers: Vec<Seat>,
    source: Seat,
}

/// Where a stage waits.
#[derive(Default)]
struct Seat {
    waker: Option<Arc<dyn Wake>>,
    waits: bool,
    left: bool,
}

/// What the ring counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Slots in all.
    pub slots: usize,
    /// The most slots that were in use at once.
    pub high: usize,
    /// Frames that found no free slot, or that no lane could take any more.
    pub lost: u64,
}

/// What a writer got.
#[derive(Debug)]
pub enum Taken {
    /// A frame to be stored.
    Frame(Frame),
    /// Nothing now; the writer will be woken.
    Nothing,
    /// Nothing any more.
    Closed,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("books", &self.books()).finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring of these slots for `writers` writers.
    pub fn new(slots: Vec<Buffer>, writers: usize) -> Arc<Self> {
        let books = Books { slots: slots.len(), ..Books::default() };
        let state = State {
            full: VecDeque::with_capacity(slots.len()),
            free: slots,
            mark: Mark::default(),
            closed: false,
            in_use: 0,
            books,
            writers: (0..writers).map(|_| Seat::default()).collect(),
            source: Seat::default(),
        };
        Arc::new(Ring { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the source is woken.
    pub fn seat_source(&self, waker: Arc<dyn Wake>) {
        self.lock().source.waker = Some(waker);
    }

    /// How a writer is woken.
    pub fn seat_writer(&self, writer: usize, waker: Arc<dyn Wake>) {
        self.lock().writers[writer].waker = Some(waker);
    }

    /// A free slot for the source. If there is none and the source means to wait, it is woken when there is one.
    pub fn claim(&self, waits: bool) -> Option<Buffer> {
        let mut state = self.lock();
        let slot = state.free.pop();
        state.source.waits = slot.is_none() && waits;
        slot
    }

    /// Puts a full slot in; the next free slot, if there is one.
    #[inline]
    pub fn put(&self, frame: Frame) -> Option<Buffer> {
        let mut state = self.lock();
        state.in_use += 1;
        state.books.high = state.books.high.max(state.in_use);
        state.full.push_back(frame);
        if state.writers.iter().all(|seat| seat.left) {
            state.lose_all();
        }
        wake_writers(&mut state);
        state.free.pop()
    }

    /// A frame that was due found no free slot.
    pub fn lose(&self, number: u64) {
        let mut state = self.lock();
        state.books.lost += 1;
        state.mark.settle(number);
    }

    /// No frame comes any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        wake_writers(&mut state);
    }

    /// Gives acknowledged frames' slots back, and takes the next full one.
    #[inline]
    pub fn exchange(&self, writer: usize, acknowledged: &mut Vec<(u64, Buffer)>) -> Taken {
        let mut state = self.lock();
        state.release(acknowledged);
        match state.full.pop_front() {
            Some(frame) => Taken::Frame(frame),
            // A lane that fails gives frames back: while another may still do so, the end is not reached.
            None if state.closed && state.in_use == 0 => {
                wake_writers(&mut state);
                Taken::Closed
            }
            None => {
                state.writers[writer].waits = true;
                Taken::Nothing
            }
        }
    }

    /// Gives acknowledged frames' slots back without taking another.
    pub fn release(&self, acknowledged: &mut Vec<(u64, Buffer)>) {
        let mut state = self.lock();
        state.release(acknowledged);
        if state.closed && state.in_use == 0 {
            wake_writers(&mut state);
        }
    }

    /// A lane failed: its frame goes to another, before all that came later. Lost if none is left.
    pub fn give_back(&self, frame: Frame) {
        let mut state = self.lock();
        state.full.push_front(frame);
        if state.writers.iter().all(|seat| seat.left) {
            state.lose_all();
        }
        wake_writers(&mut state);
    }

    /// A writer takes no more frames.
    pub fn leave(&self, writer: usize) {
        let mut state = self.lock();
        state.writers[writer].left = true;
        if state.writers.iter().all(|seat| seat.left) {
            state.lose_all();
        }
        wake_writers(&mut state);
    }

    /// Below this number every frame is acknowledged or known to be lost.
    pub fn mark(&self) -> u64 {
        self.lock().mark.below()
    }

    /// What was counted so far.
    pub fn books(&self) -> Books {
        self.lock().books
    }

    /// Every writer has left.
    pub fn is_abandoned(&self) -> bool {
        self.lock().writers.iter().all(|seat| seat.left)
    }
}

impl State {
    fn release(&mut self, acknowledged: &mut Vec<(u64, Buffer)>) {
        if acknowledged.is_empty() {
            return;
        }
        self.in_use -= acknowledged.len();
        for (number, slot) in acknowledged.drain(..) {
            self.mark.settle(number);
            self.free.push(slot);
        }
        if std::mem::take(&mut self.source.waits) {
            self.source.wake();
        }
    }

    /// Nobody is left to store what waits.
    fn lose_all(&mut self) {
        self.books.lost += self.full.len() as u64;
        let mut lost: Vec<_> = self.full.drain(..).map(|frame| (frame.number, frame.data)).collect();
        self.release(&mut lost);
    }
}

impl Seat {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

fn wake_writers(state: &mut State) {
    for seat in &mut state.writers {
        if std::mem::take(&mut seat.waits) {
            seat.wake();
        }
    }
}
