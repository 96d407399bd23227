//! The frames of a recording that is there, into the ring of a recorder that makes another of them: read, decoded and compared
//! with what the journals say by as many threads as there are processors.
//!
//! ```text
//! journals -> FrameSupply: blocks in order, with free slots -> threads: read, decode, compare -> FrameSupply -> ring
//! ```
//!
//! A chunk that is compressed as it is to be goes into its slot as it is, and is decoded beside that to be compared.

mod block;

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TryRecvError},
    },
    thread,
};

use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_recording::{
    journal::Encoding,
    reader::{Checksums, Recording},
    view::RecordingView,
};
use nilometer_storage::{
    Buffer, Completion, Step, Wait, Workload,
    buffer::ALIGNMENT,
    engine::Wake,
    process::{available_memory, processors},
};

use crate::{Frame, Ring};
use block::{BlockJob, BlockPlace, BlockRead, BlockReader};

/// Frames of a recording that another one is made of.
#[derive(Debug)]
pub struct RecordedFrames {
    /// The recording, all that is known of it.
    pub whole: Arc<RecordingView>,
    /// What is stored of each: those that are so already go in as they are.
    pub encoding: Encoding,
    /// Read no faster than this, in bytes of frames.
    pub at_most: Option<ByteRate>,
    /// What was read, for those who look at it meanwhile.
    pub read: Arc<FramesRead>,
}

/// What was read of a recording so far.
#[derive(Debug, Default)]
pub struct FramesRead {
    bytes: AtomicU64,
    damaged: Mutex<DamagedFrames>,
}

/// Frames that can't be read, or are other than they were: how many, and what is wrong with the first.
#[derive(Debug, Clone, Default)]
pub struct DamagedFrames {
    /// All of them.
    pub count: u64,
    /// The first, with what is wrong with each.
    pub first: Vec<(u64, String)>,
}

/// So many damaged frames are named.
const NAMED: usize = 20;

impl FramesRead {
    /// Bytes of frames.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Frames that are not as they should be.
    pub fn damaged(&self) -> DamagedFrames {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, bytes: u64, damaged: Option<(u64, u64, String)>) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let Some((first, frames, why)) = damaged else { return };
        let mut all = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        for number in first..first + frames {
            all.count += 1;
            if all.first.len() < NAMED {
                all.first.push((number, why.clone()));
            }
        }
        all.first.sort_unstable();
    }
}

impl RecordedFrames {
    /// Bytes of a frame.
    pub(crate) fn frame_size(&self) -> usize {
        self.whole.frame_size() as usize
    }

    /// Bytes of a slot that any frame fits into as it is stored.
    pub(crate) fn slot_size(&self) -> usize {
        let size = self.whole.frame_size();
        (self.encoding.length_max(size).max(size) as usize).next_multiple_of(ALIGNMENT)
    }

    /// How many frames there are to be, those that are missing with them: all numbers are below.
    pub fn due(&self) -> u64 {
        let before = self.whole.first_block().saturating_mul(self.whole.frames_of_block());
        before.saturating_add(self.whole.frames())
    }

    /// Slots of a ring that keep all threads busy: those that are read into, and those that are encoded and written. Fewer
    /// where memory has no room for so many, and two blocks at least.
    ///
    /// # Errors
    /// If there is no room for two, in words: journals may say anything of how many frames are read at once.
    pub fn slots(&self) -> Result<usize, String> {
        let memory = available_memory().unwrap_or(Bytes(u64::MAX));
        slots_within(memory, self.whole.frames_of_block(), self.slot_size() as u64, processors().len() as u64)
    }
}

/// The slots for blocks of so many frames, of so many bytes each, that this memory has room for.
fn slots_within(memory: Bytes, of_block: u64, slot: u64, threads: u64) -> Result<usize, String> {
    let room = memory.0 / MEMORY_SHARE / slot;
    let least = of_block.saturating_mul(2);
    if least > room {
        return Err(format!(
            "its journals say that {of_block} frames are read at once, of which two times as many take {} of memory, and a \
             quarter of {memory} is there for them",
            Bytes(least.saturating_mul(slot))
        ));
    }
    let busy = of_block.saturating_mul((FLYING as u64 + 2) * threads).saturating_add(WRITTEN);
    Ok(busy.min(room) as usize)
}

/// Frames that are written or wait for their record.
const WRITTEN: u64 = 8;
/// Of the memory that is available, one part in so many.
const MEMORY_SHARE: u64 = 4;
/// Blocks that are read or wait to be, for each thread.
const FLYING: usize = 2;
/// How often it is looked whether an end is asked for, while nothing comes.
const LOOK: Nanos = Nanos::from_millis(100);

/// See the module. A workload that issues nothing: it has blocks read, and closes the ring behind the last.
pub(crate) struct FrameSupply {
    recorded: RecordedFrames,
    ring: Arc<Ring>,
    stop: Arc<AtomicBool>,
    /// The threads end when it is gone.
    jobs: SyncSender<BlockJob>,
    read: Receiver<BlockRead>,
    records: Checksums,
    threads: usize,
    /// The block that is to be read next, or a later one.
    next: u64,
    /// Blocks that threads have.
    flying: usize,
    room: Vec<Buffer>,
    full: Vec<Frame>,
    begun: Option<Nanos>,
    /// Bytes of frames that threads were given to read.
    given: u64,
}

impl FrameSupply {
    /// Into a ring, until all is read or it is to stop; who waits for it is woken.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub(crate) fn new(
        recorded: RecordedFrames,
        ring: Arc<Ring>,
        stop: Arc<AtomicBool>,
        waker: &Arc<dyn Wake>,
    ) -> io::Result<Self> {
        let threads = processors().len().max(1);
        let (jobs, to_do) = mpsc::sync_channel(FLYING * threads);
        let (give, read) = mpsc::sync_channel(FLYING * threads);
        let to_do = Arc::new(Mutex::new(to_do));
        let reader = BlockReader::new(recorded.whole.clone(), recorded.encoding);
        for number in 0..threads {
            let reader = reader.clone();
            let to_do = to_do.clone();
            let give = give.clone();
            let waker = waker.clone();
            let work = move || reader.run(&to_do, &give, &*waker);
            thread::Builder::new().name(format!("read {number}")).spawn(work)?;
        }
        Ok(FrameSupply {
            records: recorded.whole.recording(Recording::checksums),
            next: recorded.whole.first_block(),
            recorded,
            ring,
            stop,
            jobs,
            read,
            threads,
            flying: 0,
            room: Vec::new(),
            full: Vec::new(),
            begun: None,
            given: 0,
        })
    }

    /// Takes in what threads have read.
    fn gather(&mut self) {
        loop {
            match self.read.try_recv() {
                Ok(BlockRead { mut frames, mut slots, bytes, damaged }) => {
                    self.flying -= 1;
                    self.full.append(&mut frames);
                    self.room.append(&mut slots);
                    self.recorded.read.add(bytes, damaged);
                }
                Err(TryRecvError::Empty) => return,
                // None of them ends before this does.
                Err(TryRecvError::Disconnected) => unreachable!("the threads wait for blocks"),
            }
        }
    }

    /// Puts into the ring what is read, and gets free slots for a block.
    fn put(&mut self, now: Nanos) {
        let mut spares = Vec::new();
        let waits = self.room.len() < self.frames_of_block();
        while !self.full.is_empty() || waits {
            self.ring.put(now, &mut self.full, &mut spares, waits);
            let came = spares.len();
            self.room.append(&mut spares);
            if came == 0 || self.room.len() >= self.frames_of_block() {
                return;
            }
        }
    }

    fn frames_of_block(&self) -> usize {
        self.recorded.whole.frames_of_block() as usize
    }

    /// When the next block may be read.
    fn due(&mut self, now: Nanos) -> Nanos {
        let begun = *self.begun.get_or_insert(now);
        let rate = self.recorded.at_most;
        rate.map_or(now, |rate| begun + Nanos::from_seconds(self.given as f64 / rate.0))
    }

    /// Has a block read.
    fn give(&mut self, block: u64) {
        let whole = &self.recorded.whole;
        let range = whole.range_of(block);
        self.given += range.end - range.start;
        let records = &mut self.records;
        let places = whole.places(block).into_iter().map(|at| BlockPlace {
            at,
            record: records.record_of(block, at).map_err(|error| error.to_string()),
        });
        let places = places.collect();
        let slots = self.room.split_off(self.room.len() - self.frames_of_block());
        self.next = block + 1;
        self.flying += 1;
        let given = self.jobs.try_send(BlockJob { block, slots, places });
        given.expect("there is room for as many as fly, and the threads wait for them");
    }
}

impl Workload for FrameSupply {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            self.gather();
            let stopped = self.stop.load(Ordering::Relaxed) || self.ring.is_abandoned();
            let block = if stopped { None } else { self.recorded.whole.next_there(self.next) };
            if block.is_some() || !self.full.is_empty() {
                self.put(now);
            }
            let Some(block) = block else {
                // Storage that hangs is not waited for once an end is asked for.
                if self.flying > 0 && !stopped {
                    return Step::Wait(Wait::Until(now + LOOK));
                }
                self.ring.close(self.recorded.due());
                return Step::Done;
            };
            if self.flying >= FLYING * self.threads || self.room.len() < self.frames_of_block() {
                return Step::Wait(Wait::Until(now + LOOK));
            }
            let due = self.due(now);
            if due > now {
                return Step::Wait(Wait::Until(due.min(now + LOOK)));
            }
            self.give(block);
        }
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("it issues nothing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_many_as_memory_has_room_for_and_two_blocks_at_least() {
        let memory = Bytes(4 << 30);
        assert_eq!(slots_within(memory, 1, 1 << 20, 2), Ok(16));
        assert_eq!(slots_within(memory, 1, 100 << 20, 8), Ok(10));
        assert_eq!(slots_within(memory, 500, 1 << 20, 8), Ok(1024));
        let error = slots_within(memory, 1 << 32, 4096, 2).expect_err("nobody has so much memory");
        assert!(error.contains("4294967296 frames") && error.contains("4 GiB"), "{error}");
        assert!(slots_within(memory, u64::MAX, u64::MAX, 2).is_err());
    }
}
