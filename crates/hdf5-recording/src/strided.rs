//! A lane's part of one HDF5 file that several lanes write at once, of one process or of several on any machines.
//!
//! The lanes agree on positions without messages or locks. They divide the file into strides of one size: stride
//! `k` of lane `l` among `n` lanes is the file's stride `k * n + l`. Each lane packs its frames into its own
//! strides, compressed or not. If a frame does not fit into the rest of a stride, the lane begins its next one.
//!
//! ```text
//! bytes      head | stride 0 | stride 1 | stride 2 | stride 3 | stride 4 | stride 5 | index
//! lane            |    0     |    1     |    2     |    0     |    1     |    2     |
//! frames          | 0 3 6 .. | 1 4 7 .. | 2 5 8 .. | 9 12 ..  |          |          |
//! ```
//!
//! A lane writes no index: a frame is acknowledged when the lane's journal has its position. When all lanes have
//! ended, one process reads these positions and writes the index of the whole file ([`crate::SharedDatasetFile`]).
//! Until then the file has no superblock, so that no program takes it for whole.

use std::mem;

use nilometer_model::Nanos;
use nilometer_recording::journal::Head;
use nilometer_ring::{FileIndex, Frame, IndexReservation, MemoryAccount, WrittenFrame};
use nilometer_storage::{Buffer, Errno, Slot};

use crate::FrameBoundaries;

/// Bytes of a stride at the least: large enough for long sequential writes of each lane.
const STRIDE_LEAST: u64 = 64 << 20;
/// A stride has at least this many times the bytes of a frame. Tiles at the edges may make a stored frame up to
/// four times larger, and compression may add a little.
const FRAMES_LEAST: u64 = 8;
/// Bytes in front of the first stride: the superblock, and no frame.
const HEAD: u64 = 4096;

/// The strides of a lane in a file, and its next free byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneStrides {
    lane: u64,
    lanes: u64,
    /// Position of the first stride.
    begin: u64,
    /// Bytes of a stride.
    stride: u64,
    boundaries: FrameBoundaries,
    /// Number of the lane's stride that is being filled, from 0.
    filling: u64,
    /// Bytes taken of it.
    taken: u64,
}

impl LaneStrides {
    /// The strides of the lane with this head. They follow from the number of lanes and the size of a frame, which
    /// all processes know. The boundaries may differ: one machine may know the stripes, and another one not.
    pub fn of(head: &Head, boundaries: FrameBoundaries) -> Self {
        let least = STRIDE_LEAST.max(head.frame_size.saturating_mul(FRAMES_LEAST));
        LaneStrides {
            lane: head.lane.into(),
            lanes: head.lanes.max(1).into(),
            begin: HEAD,
            stride: least.next_multiple_of(HEAD),
            boundaries,
            filling: 0,
            taken: 0,
        }
    }

    /// Takes `bytes` bytes, and returns their position in the file.
    fn take(&mut self, bytes: u32) -> u64 {
        let alignment = self.boundaries.before(bytes);
        let length = u64::from(bytes);
        debug_assert!(length <= self.stride, "a stride has room for some of the largest frames");
        let offset = self.fitting(length, alignment).unwrap_or_else(|| {
            self.filling += 1;
            self.taken = 0;
            // If stripes are longer than strides, a frame may find none in its stride.
            self.fitting(length, alignment).unwrap_or_else(|| self.base())
        });
        self.taken = offset + length - self.base();
        offset
    }

    /// Position of the stride that is being filled.
    fn base(&self) -> u64 {
        self.begin + (self.filling * self.lanes + self.lane) * self.stride
    }

    /// The next aligned position of the stride with this number of free bytes behind it.
    fn fitting(&self, length: u64, alignment: u64) -> Option<u64> {
        let offset = (self.base() + self.taken).next_multiple_of(alignment);
        (offset + length <= self.base() + self.stride).then_some(offset)
    }
}

/// The file as one of its lanes sees it: positions for its frames, and no index.
#[derive(Debug)]
pub struct StridedFile {
    strides: LaneStrides,
    /// The slot of an index, through which this lane writes nothing.
    slot: Slot,
    /// Written frames without a record in the journal.
    unrecorded: Vec<WrittenFrame>,
    /// Written frames whose records are next.
    recording: Vec<WrittenFrame>,
}

impl StridedFile {
    /// A file with these strides.
    pub fn new(strides: LaneStrides, slot: Slot) -> Self {
        StridedFile { strides, slot, unrecorded: Vec::new(), recording: Vec::new() }
    }
}

impl FileIndex for StridedFile {
    /// It has no index in memory.
    fn account(&mut self, _account: &MemoryAccount) {}

    fn count_memory(&mut self) {}

    fn slot(&self, _part: u64) -> Slot {
        self.slot
    }

    fn begin(&mut self, _part: u64, _position: Option<u32>) -> Result<(), Errno> {
        Ok(())
    }

    fn allocate(&mut self, _part: u64, _number: u64, bytes: u32) -> Option<u64> {
        Some(self.strides.take(bytes))
    }

    fn land(&mut self, written: WrittenFrame) {
        self.unrecorded.push(written);
    }

    fn waiting(&self) -> usize {
        self.unrecorded.len() + self.recording.len()
    }

    fn has_places(&self) -> bool {
        false
    }

    fn place(&mut self, _now: Nanos, _over: bool) -> Vec<u64> {
        Vec::new()
    }

    fn look_at(&self) -> Option<Nanos> {
        None
    }

    fn behind(&self) -> Vec<u64> {
        self.unrecorded.first().map(|written| written.begin.file).into_iter().collect()
    }

    /// Takes the frames of all parts: they are in the same file.
    fn flush(&mut self, _part: u64) -> Result<(), Errno> {
        self.recording.append(&mut self.unrecorded);
        Ok(())
    }

    fn write(&mut self, _part: u64, _buffer: &mut Buffer) -> Option<(u64, u32)> {
        None
    }

    fn put_back(&mut self, _slot: Slot, _offset: u64, _bytes: Vec<u8>) -> bool {
        false
    }

    fn take_torn(&mut self) -> Option<u64> {
        None
    }

    fn indexed(&mut self, _part: u64) -> Vec<WrittenFrame> {
        mem::take(&mut self.recording)
    }

    fn synced(&mut self, _part: u64, _now: Nanos) {}

    fn next_reservation(&mut self) -> Option<IndexReservation> {
        None
    }

    fn over(&mut self, _due: Option<u64>) {}

    fn seal(&mut self, _part: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn size(&mut self, _part: u64) -> Option<u64> {
        None
    }

    fn is_full(&self, _part: u64) -> bool {
        true
    }

    fn closed(&mut self, _part: u64) {}

    fn is_quiet(&self) -> bool {
        self.waiting() == 0
    }

    fn abandon(&mut self) -> Vec<Frame> {
        let written = self.recording.drain(..).chain(self.unrecorded.drain(..));
        written.map(|written| written.frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{FileNames, Format, Storing};
    use proptest::prelude::*;

    use super::*;

    fn strides(lane: u32, lanes: u32, stripe: u64) -> LaneStrides {
        let head = Head {
            recording: 1,
            lane,
            lanes,
            frame_size: 10_000_000,
            stride: 10_000_000,
            frames_per_file: 4,
            storing: Storing::Shared,
            format: Format::Hdf5,
            names: FileNames::default(),
        };
        LaneStrides::of(&head, FrameBoundaries { each: 8, stripe })
    }

    #[test]
    fn a_lane_fills_its_own_strides_one_after_the_other() {
        let mut lane = strides(1, 3, 0);
        assert_eq!(lane.stride, 80_003_072, "eight frames, in whole pages");
        let taken: Vec<_> = (0..9).map(|_| lane.take(10_000_000)).collect();
        assert_eq!(taken[..2], [4096 + lane.stride, 4096 + lane.stride + 10_000_000]);
        assert_eq!(taken[8], 4096 + 4 * lane.stride, "stride 1 of the lane is stride 4 of the file");
    }

    proptest! {
        /// No two frames of any lanes overlap, even if some lanes know no stripes. Large ones begin at a stripe.
        #[test]
        fn frames_of_all_lanes_lie_apart(
            lanes in 1_u32..6,
            stripes in prop::collection::vec(prop::sample::select(vec![0, 1 << 20, 1 << 24, 1 << 30]), 6),
            sizes in prop::collection::vec((0_u32..6, 1_u32..40_000_000), 1..60),
        ) {
            let mut all: Vec<_> =
                (0..lanes).map(|lane| strides(lane, lanes, stripes[lane as usize])).collect();
            let mut taken = Vec::new();
            for (lane, bytes) in sizes {
                let lane = (lane % lanes) as usize;
                let (offset, stripe) = (all[lane].take(bytes), stripes[lane]);
                prop_assert!(stripe == 0 || u64::from(bytes) < stripe || offset.is_multiple_of(stripe));
                taken.push((offset, u64::from(bytes)));
            }
            taken.sort_unstable();
            prop_assert!(taken[0].0 >= HEAD);
            prop_assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        }
    }
}
