//! Feeds the frames of an existing recording into the ring of a recorder that makes another one from them. One
//! thread per processor reads and decodes the frames, and compares them with the journals.
//!
//! ```text
//! journals -> FrameSupply: blocks in order, with free slots -> threads: read, decode, compare -> FrameSupply -> ring
//! ```
//!
//! A chunk that already has the right compression goes into its slot unchanged, and is decoded beside it for
//! the comparison.
//!
//! If a chunk holds several frames, the threads read them into buffers beside the ring. The supply copies them
//! into the slot of their stack.

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

/// Frames of a recording from which a recorder makes another one.
#[derive(Debug)]
pub struct RecordedFrames {
    /// The recording.
    pub whole: Arc<RecordingView>,
    /// Encoding of the new recording. Frames that already have it go in unchanged, unless a chunk holds
    /// several.
    pub encoding: Encoding,
    /// Number of frames that a chunk has parts of, 1 if a chunk belongs to one frame.
    pub stack: u64,
    /// Limit on the rate of reading, in bytes of frames.
    pub at_most: Option<ByteRate>,
    /// Progress, for other threads.
    pub read: Arc<FramesRead>,
}

/// Progress of reading a recording.
#[derive(Debug, Default)]
pub struct FramesRead {
    bytes: AtomicU64,
    frames: AtomicU64,
    damaged: Mutex<DamagedFrames>,
    /// Proofs of the frames read, if the copy will be read back.
    proofs: Option<Mutex<BTreeMap<u64, ReadProof>>>,
}

/// Proof of an intact frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadProof {
    /// CRC-32 (ISO-HDLC) of its bytes.
    pub(super) checksum: u32,
    pub(super) said: StackedFrame,
}

/// Frames that can't be read or have changed.
#[derive(Debug, Clone, Default)]
pub struct DamagedFrames {
    /// Number of all such frames.
    pub count: u64,
    /// The first of them, with the damage of each.
    pub first: Vec<(u64, String)>,
}

/// Limit on the damaged frames listed.
const NAMED: usize = 20;

impl FramesRead {
    /// Creates the progress for frames that will be read back. It keeps about 60 B of memory for each.
    pub fn proving() -> Self {
        FramesRead { proofs: Some(Mutex::default()), ..FramesRead::default() }
    }

    /// Returns the proofs of the frames read, by number.
    pub(super) fn proofs(&self) -> Option<MutexGuard<'_, BTreeMap<u64, ReadProof>>> {
        Some(self.proofs.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that this frame of `size` bytes was read.
    pub(super) fn came(&self, frame: &Frame, size: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let Some(mut proofs) = self.proofs() else { return };
        let checksum = frame.checksum.unwrap_or_else(|| crc32fast::hash(&frame.data[..size]));
        let said = StackedFrame { number: frame.number, due: frame.due, missing: frame.missing() };
        proofs.insert(frame.number, ReadProof { checksum, said });
    }

    /// Bytes of the frames read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of intact frames.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Returns the damaged frames.
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
    /// Bytes of a frame as the recorder sees it, which is a whole stack.
    pub(crate) fn frame_size(&self) -> usize {
        self.whole.frame_size() as usize * self.stack as usize
    }

    /// Bytes of a slot that has room for any frame as stored.
    pub(crate) fn slot_size(&self) -> usize {
        let size = self.frame_size() as u64;
        let stored = if self.stack > 1 { 0 } else { self.encoding.length_max(size) };
        (stored.max(size) as usize).next_multiple_of(ALIGNMENT)
    }

    /// Number of frames due, including missing ones. All frame numbers are below it.
    pub fn due(&self) -> u64 {
        frames_due(&self.whole)
    }

    /// Number of frames due as the recorder counts them, with a stack as one frame.
    pub(crate) fn due_slots(&self) -> u64 {
        self.due().div_ceil(self.stack)
    }

    /// The frames of a block.
    fn frames_in(&self, block: u64) -> Range<u64> {
        let of_block = self.whole.frames_of_block();
        block * of_block..(block + 1) * of_block
    }
}

/// Number of blocks per thread that it reads or that wait for it.
const FLYING: usize = 2;
/// Interval at which to check for a stop request while no blocks arrive.
const LOOK: Nanos = Nanos::from_millis(100);

/// Supplies the frames of a recording to a ring. A workload without operations: it has threads read blocks, and
/// closes the ring after the last.
pub(crate) struct FrameSupply {
    recorded: RecordedFrames,
    ring: Arc<Ring>,
    stop: Arc<AtomicBool>,
    /// The threads end when this sender is dropped.
    jobs: SyncSender<BlockJob>,
    read: Receiver<BlockRead>,
    records: Checksums,
    /// The open stacks, if a chunk holds several frames.
    stacks: Option<FrameStacks>,
    /// Limit on the blocks that threads have.
    flying_max: usize,
    /// Every block below this number was handed out or does not exist.
    next: u64,
    /// Number of blocks that threads have.
    flying: usize,
    room: Vec<Buffer>,
    full: Vec<Frame>,
    begun: Option<Nanos>,
    /// Bytes of the frames handed to threads.
    given: u64,
}

impl FrameSupply {
    /// Creates a supply for a ring. It ends when all blocks are read or `stop` is set, and wakes the waiting
    /// thread through `waker`.
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
        // With stacks, the ring's slots go to `FrameStacks`.
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

    /// Takes the blocks that threads have read.
    fn gather(&mut self) {
        loop {
            match self.read.try_recv() {
                Ok(read) => self.take(read),
                Err(TryRecvError::Empty) => return,
                // The threads outlive this.
                Err(TryRecvError::Disconnected) => unreachable!("the threads wait for blocks"),
            }
        }
    }

    /// Takes a block that a thread has read.
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

    /// Puts finished frames into the ring, and gets free slots for block `next`.
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

    /// Returns true if there is room for the frames of this block.
    fn has_room(&mut self, block: u64) -> bool {
        let frames = self.recorded.frames_in(block);
        self.flying < self.flying_max
            && self.room.len() >= self.frames_of_block()
            && self.stacks.as_mut().is_none_or(|stacks| stacks.begin(frames))
    }

    fn frames_of_block(&self) -> usize {
        self.recorded.whole.frames_of_block() as usize
    }

    /// Returns the time from which the next block may be read.
    fn due(&mut self, now: Nanos) -> Nanos {
        let begun = *self.begun.get_or_insert(now);
        let rate = self.recorded.at_most;
        rate.map_or(now, |rate| begun + Nanos::from_seconds(self.given as f64 / rate.0))
    }

    /// Hands a block to the threads.
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
                // After a stop request, don't wait for storage that may hang.
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
