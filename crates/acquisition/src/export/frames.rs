//! The frames of a recording that is there, into the ring of a recorder that makes another of them: read, decoded and compared
//! with what the journals say by as many threads as there are processors.
//!
//! ```text
//! journals -> FrameSupply: blocks in order, with free slots -> threads: read, decode, compare -> FrameSupply -> ring
//! ```
//!
//! A chunk that is compressed as it is to be goes into its slot as it is, and is decoded beside that to be compared. Where a
//! chunk is to have several frames, they are read into buffers beside the ring, and copied into the slot of their stack.

mod block;
mod memory;
mod stacks;

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TryRecvError},
    },
    thread,
};

use nilometer_hdf5_recording::frames_due;
use nilometer_model::{ByteRate, Nanos};
use nilometer_recording::{
    journal::Encoding,
    reader::{Checksums, Recording},
    view::RecordingView,
};
use nilometer_ring::{Frame, Ring, StackedFrame};
use nilometer_storage::{
    Arena, Buffer, Completion, Step, Wait, Workload, buffer::ALIGNMENT, engine::Wake, process::processors,
};

use block::{BlockJob, BlockPlace, BlockRead, BlockReader};
use memory::blocks_read;
use stacks::FrameStacks;

/// Frames of a recording that another one is made of.
#[derive(Debug)]
pub struct RecordedFrames {
    /// The recording, all that is known of it.
    pub whole: Arc<RecordingView>,
    /// What is stored of each: those that are so already go in as they are, unless several are to be in a chunk.
    pub encoding: Encoding,
    /// Frames that are put together: a chunk has something of all of them. 1 if of one.
    pub stack: u64,
    /// Read no faster than this, in bytes of frames.
    pub at_most: Option<ByteRate>,
    /// What was read, for those who look at it meanwhile.
    pub read: Arc<FramesRead>,
}

/// What was read of a recording so far.
#[derive(Debug, Default)]
pub struct FramesRead {
    bytes: AtomicU64,
    frames: AtomicU64,
    damaged: Mutex<DamagedFrames>,
    /// What was read of each frame, if it is to be read back.
    proofs: Option<Mutex<BTreeMap<u64, ReadProof>>>,
}

/// What is known of a frame that was read and is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadProof {
    /// CRC-32 (ISO-HDLC) of its bytes.
    pub(super) checksum: u32,
    pub(super) said: StackedFrame,
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
    /// Of frames that are to be read back: what they were is kept, some 60 B of memory each.
    pub fn proving() -> Self {
        FramesRead { proofs: Some(Mutex::default()), ..FramesRead::default() }
    }

    /// What was read of each frame, by number.
    pub(super) fn proofs(&self) -> Option<MutexGuard<'_, BTreeMap<u64, ReadProof>>> {
        Some(self.proofs.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// This frame of so many bytes was read.
    pub(super) fn came(&self, frame: &Frame, size: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let Some(mut proofs) = self.proofs() else { return };
        let checksum = frame.checksum.unwrap_or_else(|| crc32fast::hash(&frame.data[..size]));
        let said = StackedFrame { number: frame.number, due: frame.due, missing: frame.missing() };
        proofs.insert(frame.number, ReadProof { checksum, said });
    }

    /// Bytes of frames.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Frames that are there and right.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
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
    /// Bytes of what is one frame for the recorder.
    pub(crate) fn frame_size(&self) -> usize {
        self.whole.frame_size() as usize * self.stack as usize
    }

    /// Bytes of a slot that any frame fits into as it is stored.
    pub(crate) fn slot_size(&self) -> usize {
        let size = self.frame_size() as u64;
        let stored = if self.stack > 1 { 0 } else { self.encoding.length_max(size) };
        (stored.max(size) as usize).next_multiple_of(ALIGNMENT)
    }

    /// How many frames there are to be, those that are missing with them: all numbers are below.
    pub fn due(&self) -> u64 {
        frames_due(&self.whole)
    }

    /// The same for the recorder, for which a stack is a frame.
    pub(crate) fn due_slots(&self) -> u64 {
        self.due().div_ceil(self.stack)
    }

    /// The frames of a block.
    fn frames_in(&self, block: u64) -> Range<u64> {
        let of_block = self.whole.frames_of_block();
        block * of_block..(block + 1) * of_block
    }
}

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
    /// Where several frames are put together.
    stacks: Option<FrameStacks>,
    /// Blocks that threads have at the most.
    flying_max: usize,
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
        let of_block = recorded.whole.frames_of_block();
        let stacked = recorded.stack > 1;
        let size = recorded.whole.frame_size() as usize;
        let flying_max = if stacked { blocks_read(&recorded) } else { FLYING * threads };
        // Stacks have the slots of the ring.
        let room =
            if stacked { Arena::shared_out(flying_max * of_block as usize, size).1 } else { Vec::new() };
        let (jobs, to_do) = mpsc::sync_channel(flying_max);
        let (give, read) = mpsc::sync_channel(flying_max);
        let to_do = Arc::new(Mutex::new(to_do));
        let encoding = if stacked { Encoding::Raw } else { recorded.encoding };
        let reader = BlockReader::new(recorded.whole.clone(), encoding);
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
            stacks: stacked.then(|| FrameStacks::new(recorded.stack, size)),
            recorded,
            ring,
            stop,
            jobs,
            read,
            flying_max,
            flying: 0,
            room,
            full: Vec::new(),
            begun: None,
            given: 0,
        })
    }

    /// Takes in what threads have read.
    fn gather(&mut self) {
        loop {
            match self.read.try_recv() {
                Ok(read) => self.take(read),
                Err(TryRecvError::Empty) => return,
                // None of them ends before this does.
                Err(TryRecvError::Disconnected) => unreachable!("the threads wait for blocks"),
            }
        }
    }

    /// Takes in a block.
    fn take(&mut self, read: BlockRead) {
        let BlockRead { block, mut frames, mut slots, bytes, damaged } = read;
        self.flying -= 1;
        self.recorded.read.add(bytes, damaged);
        let size = self.recorded.whole.frame_size() as usize;
        for frame in &frames {
            self.recorded.read.came(frame, size);
        }
        self.room.append(&mut slots);
        let Some(stacks) = &mut self.stacks else { return self.full.append(&mut frames) };
        for frame in frames {
            stacks.add(&frame);
            self.room.push(frame.data);
        }
        stacks.end(self.recorded.frames_in(block).start);
    }

    /// Puts into the ring what is read, and gets free slots for a block, of which this is the next.
    fn put(&mut self, now: Nanos, next: Option<u64>) {
        let of_block = self.frames_of_block();
        let (room, enough) = match &mut self.stacks {
            None => (&mut self.room, of_block),
            Some(stacks) => {
                let next = next.map_or(u64::MAX, |block| self.recorded.frames_in(block).start);
                self.full.append(&mut stacks.complete(next));
                let enough = FrameStacks::most_of(of_block as u64, self.recorded.stack);
                (&mut stacks.free, enough as usize)
            }
        };
        let mut spares = Vec::new();
        let waits = room.len() < enough;
        while !self.full.is_empty() || waits {
            self.ring.put(now, &mut self.full, &mut spares, waits);
            let came = spares.len();
            room.append(&mut spares);
            if came == 0 || room.len() >= enough {
                return;
            }
        }
    }

    /// Whether there is room for the frames of this block.
    fn has_room(&mut self, block: u64) -> bool {
        let frames = self.recorded.frames_in(block);
        self.flying < self.flying_max
            && self.room.len() >= self.frames_of_block()
            && self.stacks.as_mut().is_none_or(|stacks| stacks.begin(frames))
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
            if block.is_some() || !self.full.is_empty() || self.stacks.is_some() {
                self.put(now, block);
            }
            let Some(block) = block else {
                // Storage that hangs is not waited for once an end is asked for.
                if self.flying > 0 && !stopped {
                    return Step::Wait(Wait::Until(now + LOOK));
                }
                self.ring.close(self.recorded.due_slots());
                return Step::Done;
            };
            let due = self.due(now);
            if due > now {
                return Step::Wait(Wait::Until(due.min(now + LOOK)));
            }
            if !self.has_room(block) {
                return Step::Wait(Wait::Until(now + LOOK));
            }
            self.give(block);
        }
    }

    fn completed(&mut self, _completion: Completion) {
        unreachable!("it issues nothing");
    }
}
