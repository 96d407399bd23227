//! The encode stage of a lane encodes frames on its own threads, between the ring and the sink. The lane's
//! thread therefore only issues operations. Frames leave the stage in the order in which they arrived.
//!
//! ```text
//! ring -> writer: taken -> [encode stage: threads] -> sink -> operations
//!                               | wakes the writer when a frame is encoded
//! ```
//!
//! Frames that arrive as messages and already encoded are only checked here. A damaged frame is stored as it
//! arrived, but not counted as whole.
//!
//! A frame keeps its slot of the ring. Its encoded bytes ([`Encoded`]) go with it and come back with it.
//! Without threads, frames are encoded when they are submitted: for virtual time.

use std::{
    collections::VecDeque,
    fmt::{self, Debug},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use nilometer_model::Nanos;
use nilometer_ring::{Encoded, Frame, FrameEncoder, MessageDamage};
use nilometer_storage::{Arena, Buffer, buffer::Alignment, engine::Wake, process::Usage};
use nilometer_wire::stream1::digest_of;

/// Encoded frames that wait for the storage, in addition to those being encoded.
const READY: usize = 4;

/// Scratch of a thread, in frames. It suffices for incompressible bytes: byte offset and LZ4 make them longer
/// than a frame.
const SCRATCH_FRAMES: u64 = 2;

/// Encodes the frames of a lane on threads.
pub struct EncodeStage {
    shared: Arc<Shared>,
    threads: usize,
    /// Free memory for encoded frames. Each buffer has room for the longest; unused pages are never touched.
    buffers: Vec<Buffer>,
    /// Order of the next frame to enter the stage, and of the next to leave it.
    next: u64,
    first: u64,
    scratch: Vec<u8>,
    encoder: Arc<dyn FrameEncoder>,
}

/// State that the threads share.
struct Shared {
    encoder: Arc<dyn FrameEncoder>,
    state: Mutex<State>,
    /// Signals that a frame waits to be encoded, or that the stage is gone.
    work: Condvar,
    /// Signals that a frame is encoded.
    done: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<EncodeJob>,
    /// Encoded frames, in no order.
    ready: Vec<(u64, Frame)>,
    waker: Option<Arc<dyn Wake>>,
    /// Processor time of each thread.
    spent: Vec<Usage>,
    closed: bool,
}

/// A frame to be encoded, or to be checked if it arrived encoded.
struct EncodeJob {
    /// Order of arrival.
    order: u64,
    frame: Frame,
    /// Memory for the encoded frame. `None` if it arrived encoded.
    into: Option<Buffer>,
}

impl EncodeJob {
    fn run(self, encoder: &dyn FrameEncoder, scratch: &mut Vec<u8>) -> (u64, Frame) {
        let EncodeJob { order, frame, into } = self;
        let frame = match into {
            Some(into) => encoded(encoder, frame, into, scratch),
            None => looked_over(encoder, frame),
        };
        (order, frame)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes frames until the stage is gone.
    fn run(&self, thread: usize) {
        let mut scratch = Vec::new();
        let mut state = self.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                if state.closed {
                    return;
                }
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let done = job.run(self.encoder.as_ref(), &mut scratch);
            let spent = Usage::of_thread();
            state = self.lock();
            state.spent[thread] = spent;
            state.ready.push(done);
            self.done.notify_all();
            let waker = state.waker.clone();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            state = self.lock();
        }
    }
}

fn encoded(encoder: &dyn FrameEncoder, mut frame: Frame, mut into: Buffer, scratch: &mut Vec<u8>) -> Frame {
    if let Some(message) = &mut frame.message {
        // The hash of a frame that was unpacked since it came was compared before.
        let sent = &frame.data[..message.bytes as usize];
        message.compare(|| digest_of(sent));
    }
    let stored_as = encoder.encode(frame.number, &frame.data, scratch, &mut into);
    let stored = Encoded { bytes: into, stored_as, finished: Nanos(0) };
    Frame { encoded: Some(Box::new(stored)), ..frame }
}

/// Checks a frame that arrived encoded as a message, and notes if it is damaged. Other frames stay as they are.
fn looked_over(encoder: &dyn FrameEncoder, frame: Frame) -> Frame {
    let (Some(came_as), Some(mut message)) = (frame.came_as, frame.message) else { return frame };
    let stored = &frame.data[..came_as.length as usize];
    if encoder.is_damaged(came_as, stored) {
        message.damage = Some(MessageDamage::Packing);
    }
    // A header that the recorder added stands before the sender's bytes.
    let sent = &stored[stored.len().saturating_sub(message.bytes as usize)..];
    message.compare(|| digest_of(sent));
    Frame { message: Some(message), ..frame }
}

/// Most bytes of a stage with `threads` threads for frames with `slot` bytes, if `waiting` more encoded frames
/// may wait behind it. Each thread also keeps its scratch ([`SCRATCH_FRAMES`]).
pub(super) fn stage_memory(encoder: &dyn FrameEncoder, slot: u64, threads: usize, waiting: usize) -> u64 {
    let buffer = Arena::distance(encoder.length_max(), Alignment::Page) as u64;
    let buffers = (threads + READY + waiting) as u64;
    buffers.saturating_mul(buffer).saturating_add((threads as u64).saturating_mul(SCRATCH_FRAMES * slot))
}

impl EncodeStage {
    /// Starts the stage with `threads` threads; 0 is for virtual time. `waiting` more encoded frames may wait
    /// in addition to those on their way to the storage.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn new(encoder: Arc<dyn FrameEncoder>, threads: usize, waiting: usize) -> std::io::Result<Self> {
        let (_, buffers) = Arena::shared_out(threads + READY + waiting, encoder.length_max());
        let spent = vec![Usage::default(); threads];
        let work = Condvar::new();
        let done = Condvar::new();
        let shared = Arc::new(Shared {
            encoder: encoder.clone(),
            state: Mutex::new(State { spent, ..State::default() }),
            work,
            done,
        });
        // If a thread can't be started, dropping the stage ends those already running.
        let stage = EncodeStage { shared, threads, buffers, next: 0, first: 0, scratch: Vec::new(), encoder };
        for number in 0..threads {
            let shared = stage.shared.clone();
            thread::Builder::new().name(format!("encode {number}")).spawn(move || shared.run(number))?;
        }
        Ok(stage)
    }

    /// Bytes of its buffers.
    pub(crate) fn memory(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// Gives the stage the waker of the writer, which it wakes when a frame is encoded.
    pub fn seat(&mut self, waker: Arc<dyn Wake>) {
        self.shared.lock().waker = Some(waker);
    }

    /// Processor time of its threads.
    pub fn usage(&self) -> Usage {
        self.shared.lock().spent.iter().copied().fold(Usage::default(), Usage::and)
    }

    /// Returns true if the stage takes another frame now.
    pub(crate) fn has_room(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// Returns true if no frame is in the stage.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Takes a frame; only called if there is room. A frame that arrived encoded passes unchanged in its turn,
    /// except that a message is checked for damage.
    pub(crate) fn submit(&mut self, frame: Frame) {
        let order = self.next;
        self.next += 1;
        if frame.came_as.is_some() && frame.message.is_none() {
            self.shared.lock().ready.push((order, frame));
            return;
        }
        let into =
            frame.came_as.is_none().then(|| self.buffers.pop().expect("only called when there is room"));
        let job = EncodeJob { order, frame, into };
        if self.threads == 0 {
            let done = job.run(self.encoder.as_ref(), &mut self.scratch);
            self.shared.lock().ready.push(done);
        } else {
            self.shared.lock().jobs.push_back(job);
            self.shared.work.notify_one();
        }
    }

    /// The next frame, if it is encoded.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<Frame> {
        let ready = &mut self.shared.lock().ready;
        let at = ready.iter().position(|(order, _)| *order == self.first)?;
        self.first += 1;
        let (_, mut frame) = ready.swap_remove(at);
        if let Some(encoded) = &mut frame.encoded {
            // The writer may have read its clock before the frame came.
            encoded.finished = now.max(frame.arrived);
        }
        Some(frame)
    }

    /// Takes back the buffer with a frame's encoded bytes, once they are written or will not be.
    pub(crate) fn strip(&mut self, frame: &mut Frame) {
        self.buffers.extend(frame.encoded.take().map(|encoded| encoded.bytes));
    }

    /// Takes back all frames in the stage as they arrived. It waits for those being encoded, which takes little
    /// time.
    pub(crate) fn abandon(&mut self) -> Vec<Frame> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let mut frames = Vec::new();
        for EncodeJob { frame, into, .. } in state.jobs.drain(..) {
            self.first += 1;
            self.buffers.extend(into);
            frames.push(frame);
        }
        loop {
            for (_, mut frame) in std::mem::take(&mut state.ready) {
                self.first += 1;
                self.strip(&mut frame);
                frames.push(frame);
            }
            if self.is_empty() {
                return frames;
            }
            state = shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for EncodeStage {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl Debug for EncodeStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EncodeStage { encoder, threads, first, next, .. } = self;
        write!(formatter, "EncodeStage({encoder:?}, {threads} threads, frames {first}..{next})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_recording::journal::Encoding;
    use nilometer_ring::{FrameMessage, StoredAs};

    /// Encodes to the first byte, twice. The first frames take longest.
    #[derive(Debug)]
    struct Twice;

    impl FrameEncoder for Twice {
        fn length_max(&self) -> usize {
            2
        }
        fn encode(&self, number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs {
            for _ in 0..(20_u64.saturating_sub(number)) {
                scratch.clear();
                scratch.resize(1 << 16, number as u8);
            }
            into.fill(slot[0]);
            StoredAs { encoding: Encoding::Cbf, length: into.len() as u32 }
        }
    }

    fn frame(number: u64) -> Frame {
        let mut data = Buffer::alone(8);
        data.fill(number as u8);
        Frame::new(number, Nanos(number), Nanos(number), data)
    }

    #[test]
    fn frames_leave_in_the_order_in_which_they_came_whoever_is_faster() {
        for threads in [0, 1, 3] {
            let mut stage = EncodeStage::new(Arc::new(Twice), threads, 0).expect("threads");
            let (mut submitted, mut came) = (0, Vec::new());
            while came.len() < 50 {
                while submitted < 50 && stage.has_room() {
                    stage.submit(frame(submitted));
                    submitted += 1;
                }
                let Some(mut frame) = stage.next(Nanos(0)) else { continue };
                let encoded = frame.encoded.as_ref().expect("it is encoded");
                assert_eq!(encoded.bytes[..], [frame.number as u8; 2]);
                stage.strip(&mut frame);
                came.push(frame.number);
            }
            assert!(came.into_iter().eq(0..50) && stage.is_empty(), "{threads} threads");
        }
    }

    /// Marks bytes that begin with 9 as damaged.
    #[derive(Debug)]
    struct Nine;

    impl FrameEncoder for Nine {
        fn length_max(&self) -> usize {
            8
        }
        fn encode(&self, _: u64, _: &[u8], _: &mut Vec<u8>, _: &mut [u8]) -> StoredAs {
            unreachable!("all frames came encoded")
        }
        fn is_damaged(&self, came_as: StoredAs, bytes: &[u8]) -> bool {
            assert_eq!(bytes.len(), came_as.length as usize);
            bytes[0] == 9
        }
    }

    #[test]
    fn frames_that_came_encoded_are_looked_over_and_keep_their_order() {
        for threads in [0, 3] {
            let mut stage = EncodeStage::new(Arc::new(Nine), threads, 0).expect("threads");
            for number in 0..20 {
                let came_as = Some(StoredAs { encoding: Encoding::Cbf, length: 5 });
                // Every second frame arrived as a message; the stage checks only those.
                let message = (number % 2 == 1).then_some(FrameMessage::new(5, None));
                stage.submit(Frame { came_as, message, ..frame(number) });
            }
            let mut damaged = Vec::new();
            let mut came = Vec::new();
            while came.len() < 20 {
                let Some(frame) = stage.next(Nanos(0)) else { continue };
                damaged.extend(frame.is_damaged().then_some(frame.number));
                came.push(frame.number);
            }
            assert!(came.into_iter().eq(0..20), "{threads} threads");
            assert_eq!(damaged, [9], "{threads} threads");
        }
    }

    #[test]
    fn what_is_in_it_is_given_back_as_it_came() {
        for threads in [0, 2] {
            let mut stage = EncodeStage::new(Arc::new(Twice), threads, 0).expect("threads");
            let room = threads + READY;
            (0..room as u64).for_each(|number| stage.submit(frame(number)));
            assert!(!stage.has_room());
            let mut numbers: Vec<u64> = stage
                .abandon()
                .into_iter()
                .inspect(|frame| assert!(frame.encoded.is_none()))
                .map(|frame| frame.number)
                .collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..room as u64) && stage.is_empty() && stage.has_room());
            assert_eq!(stage.buffers.len(), room);
        }
    }
}
