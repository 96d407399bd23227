//! Number of ring slots for a given memory. Each slot costs its bytes and the recorder's data about it, which
//! exceed the slot itself if frames are tiny.
//!
//! The buffer limits the bytes of the slots. The data about them may take a sixteenth of the buffer more. For
//! large frames they take far less; for small ones they limit the number of slots. For example, with a buffer
//! of 64 MiB, and 256 B of data about each slot:
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

/// The share of the buffer by which slots and their data may exceed it: one part in this number.
const BESIDE_SHARE: u64 = 16;
/// A ring has at least two slots, one to fill while the other is stored.
const SLOTS_MIN: u64 = 2;
/// Bytes that the allocator adds to a frame's description.
const ALLOCATION: usize = 32;

/// Memory of a slot of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotMemory {
    /// Bytes from one slot to the next.
    pub(super) slot: u64,
    /// True if writers keep lists of frames by chunk or by file, besides the ring's own list.
    pub(super) is_listed: bool,
}

impl SlotMemory {
    /// Upper bound on the bytes that the recorder keeps about a slot. They are its places among free and
    /// waiting slots, its frame's description, and its places in the writers' lists, which grow by doubling.
    pub(super) fn beside(self) -> u64 {
        let lists = if self.is_listed { 3 } else { 1 };
        (size_of::<Buffer>() + lists * size_of::<Frame>() + size_of::<Packed>() + ALLOCATION) as u64
    }

    /// Number of slots for this buffer, at least two.
    pub(super) fn slots(self, buffer: Bytes) -> u64 {
        let all = buffer.0.saturating_add(buffer.0 / BESIDE_SHARE);
        (buffer.0 / self.slot).min(all / (self.slot + self.beside())).max(SLOTS_MIN)
    }

    /// Returns the smallest buffer with this number of slots.
    pub(super) fn buffer_for(self, slots: u64) -> Bytes {
        let in_slots = slots.saturating_mul(self.slot);
        let all = slots.saturating_mul(self.slot + self.beside());
        // Find the smallest `b` for which `b + b / 16`, rounded down, reaches `all`.
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
        /// Checks the account for any frames, and that the smallest buffer is the smallest.
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
