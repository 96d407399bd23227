//! How many slots a ring has in so much memory. Each slot costs its bytes and what the recorder keeps beside it, which is more
//! than the slot itself if frames are tiny.
//!
//! The buffer bounds the slots. What stands beside them may take a sixteenth of the buffer more: of large frames it takes far
//! less, and of small ones there are as many slots as that leaves room for. For example with a buffer of 64 MiB, and 256 B beside
//! each slot:
//!
//! ```text
//! bytes of a slot   slots      in slots    beside them
//!         1 MiB        64      64 MiB      16 KiB
//!         4 KiB    16 384      64 MiB      4 MiB
//!          64 B   222 822      14 MiB      54 MiB
//! ```

use std::mem::size_of;

use nilometer_model::Bytes;
use nilometer_recording::Packed;
use nilometer_ring::Frame;
use nilometer_storage::Buffer;

/// Of the buffer, one part in so many may stand beside the slots.
const BESIDE_SHARE: u64 = 16;
/// A ring has two slots at least: one is filled while the other is stored.
const SLOTS_MIN: u64 = 2;
/// Bytes that the allocator adds to what a frame is put together from.
const ALLOCATION: usize = 32;

/// Memory of a slot of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotMemory {
    /// Bytes from one slot to the next.
    pub(super) slot: u64,
    /// The writers keep lists of frames by chunk or by file, beside the ring's own list.
    pub(super) is_listed: bool,
}

impl SlotMemory {
    /// Bytes that the recorder keeps beside a slot, at the most: its place among the free ones and among those that wait, what
    /// its frame was put together from, and its places in the lists of writers, which grow by doubling.
    pub(super) fn beside(self) -> u64 {
        let lists = if self.is_listed { 3 } else { 1 };
        (size_of::<Buffer>() + lists * size_of::<Frame>() + size_of::<Packed>() + ALLOCATION) as u64
    }

    /// How many slots such a buffer has, at least two.
    pub(super) fn slots(self, buffer: Bytes) -> u64 {
        let all = buffer.0.saturating_add(buffer.0 / BESIDE_SHARE);
        (buffer.0 / self.slot).min(all / (self.slot + self.beside())).max(SLOTS_MIN)
    }

    /// The smallest buffer that has so many slots.
    pub(super) fn buffer_for(self, slots: u64) -> Bytes {
        let in_slots = slots.saturating_mul(self.slot);
        let all = slots.saturating_mul(self.slot + self.beside());
        // Of `b + b / 16`, rounded down, as small a `b` as reaches all of it.
        let reaching = all.saturating_mul(BESIDE_SHARE).div_ceil(BESIDE_SHARE + 1);
        let least = (reaching.saturating_sub(1)..=reaching.saturating_add(1))
            .find(|buffer| buffer + buffer / BESIDE_SHARE >= all);
        Bytes(in_slots.max(least.unwrap_or(reaching)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn large_frames_have_the_whole_buffer_and_small_ones_what_stands_beside_leaves() {
        let memory = |slot| SlotMemory { slot, is_listed: false };
        assert_eq!(memory(1 << 20).slots(Bytes(64 << 20)), 64);
        let small = memory(64);
        let slots = small.slots(Bytes(64 << 20));
        let taken = slots * (64 + small.beside());
        assert!((67 << 20..=68 << 20).contains(&taken), "{slots} slots take {taken} B");
        assert_eq!(memory(1 << 20).slots(Bytes(1)), 2);
    }

    proptest! {
        /// The account holds whatever frames are like, and the smallest buffer is the smallest.
        #[test]
        fn slots_and_what_is_beside_them_stay_within_the_buffer_and_its_share(
            slot in (6_u32..34).prop_flat_map(|bits| (1_u64 << bits)..(2_u64 << bits)),
            buffer in (12_u32..45).prop_flat_map(|bits| (1_u64 << bits)..(2_u64 << bits)),
            is_listed: bool, wanted in 2_u64..1_000_000,
        ) {
            let memory = SlotMemory { slot, is_listed };
            let slots = memory.slots(Bytes(buffer));
            prop_assert!(slots == 2 || slots * (slot + memory.beside()) <= buffer + buffer / 16);
            prop_assert!(slots == 2 || slots * slot <= buffer);
            let least = memory.buffer_for(wanted);
            prop_assert!(memory.slots(least) >= wanted);
            prop_assert!(wanted == 2 || memory.slots(Bytes(least.0 - 1)) < wanted);
        }
    }
}
