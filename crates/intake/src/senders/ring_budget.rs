//! Memory for the streams of several senders, in addition to the ring: a small ring for each.

use nilometer_model::{Bytes, Nanos};
use nilometer_ring::{Chronicle, Ring};
use nilometer_storage::Arena;

use crate::assembly::{Assembly, StreamRing};

/// Packets of a small block.
const SMALL: u64 = 16;
/// The small rings of all streams get one part in `RINGS_SHARE` of the ring's bytes. Each of them gets one
/// part in `RING_SHARE` of the rest.
const RINGS_SHARE: u64 = 4;
const RING_SHARE: u64 = 8;
/// Small blocks of a stream in addition to those of its reorder window. Candidates that are put down at once
/// need four.
const BESIDE_WINDOW: u64 = 8;
/// The tolerated stall of the small rings, which nothing reads.
const NO_ALLOWANCE: Nanos = Nanos(u64::MAX / 4);

/// The memory left for small rings: at first a quarter of the ring's bytes. Each stream gets at most an
/// eighth of the rest.
///
/// Its ring holds its reorder window if that fits into the share, and never less than nine blocks of 16
/// packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingBudget {
    left: u64,
}

impl RingBudget {
    /// The budget for a ring with this many bytes.
    pub fn of(ring: Bytes) -> Self {
        RingBudget { left: ring.0 / RINGS_SHARE }
    }

    /// Bytes left for further streams.
    pub fn left(self) -> Bytes {
        Bytes(self.left)
    }

    /// Makes a ring for one more stream with the same frames and reordering as this one.
    pub(super) fn ring(&mut self, like: &Assembly) -> StreamRing {
        let frames_of_block = (SMALL / like.packets_of_frame()).max(1);
        let packets = frames_of_block * like.packets_of_frame();
        let size = frames_of_block as usize * like.format(0).geometry().frame_size();
        let wanted = like.limits().0.window.div_ceil(packets) + BESIDE_WINDOW;
        let share = self.left / RING_SHARE / size as u64;
        let slots = share.min(wanted).max(BESIDE_WINDOW + 1);
        self.left = self.left.saturating_sub(slots * size as u64);
        let (_, buffers) = Arena::shared_out(slots as usize, size);
        let ring = Ring::new(buffers, 1, Chronicle::new(size as u64, NO_ALLOWANCE));
        StreamRing { ring, frames_of_block, window: (slots - BESIDE_WINDOW) * packets }
    }
}
