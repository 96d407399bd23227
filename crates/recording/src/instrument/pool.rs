//! Frames made by all processors before the clock starts, and delivered in turn with a stamp.

use std::{
    fmt,
    num::NonZero,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use nilometer_codec::{
    ChunkCodec, Compression, ElementSize,
    packed12::{numbers_bytes, unpack_12},
};
use nilometer_model::{Data, PixelType};

use super::{
    Origin,
    stamp::{PAGE, Stamp},
};

/// Prepared frames. Frame `number` is the prepared frame at index `number` modulo their count, stamped.
#[derive(Clone)]
pub struct FramePool {
    frames: Arc<[Vec<u8>]>,
    stamp: Stamp,
    ratio: f64,
    /// `None` for the user's own files.
    origin: Option<Origin>,
}

impl fmt::Debug for FramePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FramePool { frames, stamp, ratio, .. } = self;
        let mut written = f.debug_struct("Pool");
        written.field("distinct", &frames.len()).field("frame_size", &self.frame_size());
        written.field("stamp", stamp).field("ratio", ratio).finish()
    }
}

impl FramePool {
    /// Creates a pool of frames. Takes at least one, and all must have the same length.
    pub(super) fn new(frames: Vec<Vec<u8>>, stamp: Stamp) -> Self {
        assert!(
            frames.iter().all(|frame| frame.len() == frames[0].len()),
            "frames of an instrument are alike"
        );
        let mut pool = FramePool { frames: frames.into(), stamp, ratio: 1.0, origin: None };
        pool.ratio = pool.measured();
        pool
    }

    /// Adds the frames' origin. `data` leaves no choice open.
    pub(super) fn with_origin(mut self, data: Data, shape: &[u64], pixel: PixelType) -> Self {
        let sums = by_all_processors(self.distinct(), |frame| crc32fast::hash(&self.frames[frame]));
        let sums: Vec<u8> = sums.into_iter().flat_map(u32::to_le_bytes).collect();
        let shape = shape.to_vec();
        let seed = self.stamp.seed.0;
        let checksum = crc32fast::hash(&sums);
        let head = self.stamp.head;
        self.origin = Some(Origin { data, shape, pixel, seed, checksum, head });
        self
    }

    /// Returns the recipe that makes the frames again. `None` for the user's own files.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.frames[0].len()
    }

    /// Number of frames that differ in more than their stamps.
    pub fn distinct(&self) -> usize {
        self.frames.len()
    }

    /// Returns the ratio by which bitshuffle with LZ4 shrinks these frames with their stamps, measured on all
    /// of them.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Makes frame `number` in the slot. Leaves the bytes after the frame alone.
    #[inline]
    pub fn fill(&self, number: u64, slot: &mut [u8]) {
        let frame = self.frame(number);
        let pages = slot[..frame.len()].chunks_mut(PAGE).zip(frame.chunks(PAGE)).enumerate();
        for (index, (page, prepared)) in pages {
            page.copy_from_slice(prepared);
            self.stamp.put(number, index, page);
        }
    }

    /// Makes frame `number` in a slot that holds frame `before`. Works in place if both come from the same
    /// prepared frame.
    #[inline]
    pub fn change(&self, before: u64, number: u64, slot: &mut [u8]) {
        if !before.abs_diff(number).is_multiple_of(self.frames.len() as u64) {
            return self.fill(number, slot);
        }
        for (index, page) in slot[..self.frame_size()].chunks_mut(PAGE).enumerate() {
            self.stamp.change(before, number, index, page);
        }
    }

    /// Checks that these bytes are frame `number`. The error is the index of the first wrong page.
    pub fn verify(&self, number: u64, bytes: &[u8]) -> Result<(), usize> {
        let frame = self.frame(number);
        if bytes.len() != frame.len() {
            return Err(bytes.len().min(frame.len()) / PAGE);
        }
        let mut expected = [0; PAGE];
        for (index, (page, prepared)) in bytes.chunks(PAGE).zip(frame.chunks(PAGE)).enumerate() {
            let expected = &mut expected[..page.len()];
            expected.copy_from_slice(prepared);
            self.stamp.put(number, index, expected);
            if page != expected {
                return Err(index);
            }
        }
        Ok(())
    }

    fn frame(&self, number: u64) -> &[u8] {
        &self.frames[(number % self.frames.len() as u64) as usize]
    }

    fn measured(&self) -> f64 {
        let lengths = by_all_processors(self.distinct(), |index| {
            let mut frame = vec![0; self.frame_size()];
            self.fill(index as u64, &mut frame);
            compressed_bytes(&frame, self.stamp.unit)
        });
        (self.distinct() * self.frame_size()) as f64 / lengths.into_iter().sum::<usize>() as f64
    }
}

/// Bytes of two samples of 12 bits, which are packed together.
pub(super) const PAIR_12: usize = 3;

/// Returns the bytes of the chunk that bitshuffle with LZ4 makes of these pixels of `unit` bytes each. Samples of 12
/// bits are unpacked first, as the recorder does. Treats other packed pixels as bytes, and ignores an incomplete
/// pixel at the end.
pub(super) fn compressed_bytes(pixels: &[u8], unit: usize) -> usize {
    if unit == PAIR_12 {
        let mut numbers = vec![0; numbers_bytes(pixels.len() as u64) as usize];
        unpack_12(pixels, &mut numbers);
        return compressed_bytes(&numbers, ElementSize::Two.bytes());
    }
    let element = ElementSize::of(unit as u64).unwrap_or(ElementSize::One);
    let whole = &pixels[..pixels.len() / element.bytes() * element.bytes()];
    let compression = Compression::BitshuffleLz4;
    let mut chunk = vec![0; compression.most_bytes(whole.len())];
    let size = ChunkCodec::new(compression, element).encode(whole, &mut chunk);
    size.expect("these are whole pixels, and there is room for them")
}

/// Does `work` for 0 to `count` - 1 on all processors. The results are in order.
pub(super) fn by_all_processors<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(count);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work_off(count, &next, &work, &results));
        }
    });
    let mut results = results.into_inner().expect("all threads ended in order");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Takes the next number that no thread has started and does its work, until all `count` are done.
fn work_off<T>(
    count: usize,
    next: &AtomicUsize,
    work: &impl Fn(usize) -> T,
    results: &Mutex<Vec<(usize, T)>>,
) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            break;
        }
        let result = work(index);
        results.lock().expect("nobody panics while holding it").push((index, result));
    }
}
