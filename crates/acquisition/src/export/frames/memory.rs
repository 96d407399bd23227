//! Memory of an export into HDF5: enough slots to keep all threads busy, but no more than there is room for.

use nilometer_model::Bytes;
use nilometer_storage::{
    buffer::ALIGNMENT,
    process::{available_memory, processors},
};

use super::{FLYING, FrameStacks, RecordedFrames};

/// Number of frames that are being written or wait for their record.
const WRITTEN: u64 = 8;
/// The same number for stacks.
const STACKS_WRITTEN: u64 = 2;
/// Slots take at most this part of the available memory.
const MEMORY_SHARE: u64 = 4;
/// Frames read but not yet in their stack take at most this part.
const READING_SHARE: u64 = 8;

impl RecordedFrames {
    /// Returns the number of ring slots that keep all threads busy: slots for reading, and slots for encoding
    /// and writing. With little memory it is lower, but at least two blocks.
    ///
    /// # Errors
    /// If there is no room for two blocks, with a message. A journal may claim any number of frames per block.
    pub fn slots(&self) -> Result<usize, String> {
        let memory = available_memory().unwrap_or(Bytes(u64::MAX));
        let threads = processors().len() as u64;
        let of_block = self.whole.frames_of_block();
        let slot = self.slot_size() as u64;
        if self.stack <= 1 {
            return slots_within(memory, of_block, slot, threads);
        }
        blocks_within(memory, of_block, self.room_size(), threads)?;
        let spanned = FrameStacks::most_of(of_block, self.stack);
        stack_slots_within(memory, spanned, slot, threads)
    }

    /// Bytes of memory for a frame that is read.
    fn room_size(&self) -> u64 {
        self.whole.frame_size().next_multiple_of(ALIGNMENT as u64)
    }
}

/// Returns the number of blocks to read at once for stacks. If there is no room for one,
/// [`RecordedFrames::slots`] has returned an error before.
pub(super) fn blocks_read(recorded: &RecordedFrames) -> usize {
    let memory = available_memory().unwrap_or(Bytes(u64::MAX));
    let threads = processors().len() as u64;
    let blocks = blocks_within(memory, recorded.whole.frames_of_block(), recorded.room_size(), threads);
    blocks.unwrap_or(1)
}

/// Returns the slots of `slot` bytes that fit into this memory, for blocks of `of_block` frames.
fn slots_within(memory: Bytes, of_block: u64, slot: u64, threads: u64) -> Result<usize, String> {
    let room = memory.0 / MEMORY_SHARE / slot;
    let least = of_block.saturating_mul(2);
    if least > room {
        return Err(format!(
            "by its journals {of_block} frames are read at once; twice that number takes {} of memory, more than a \
             quarter of {memory}",
            Bytes(least.saturating_mul(slot))
        ));
    }
    let busy = of_block.saturating_mul((FLYING as u64 + 2) * threads).saturating_add(WRITTEN);
    Ok(busy.min(room) as usize)
}

/// Returns the number of blocks that can be read at once into this memory, with `of_block` frames of `size`
/// bytes each.
fn blocks_within(memory: Bytes, of_block: u64, size: u64, threads: u64) -> Result<usize, String> {
    let block = of_block.saturating_mul(size);
    match memory.0 / READING_SHARE / block {
        0 => Err(format!(
            "by its journals {of_block} frames are read at once, which take {} of memory, more than an eighth of \
             {memory}",
            Bytes(block)
        )),
        room => Ok(room.min(FLYING as u64 * threads) as usize),
    }
}

/// Returns the slots of `slot` bytes that fit into this memory for stacks, if a block spans `spanned` stacks.
/// Their compressed chunks may take as much memory again.
fn stack_slots_within(memory: Bytes, spanned: u64, slot: u64, threads: u64) -> Result<usize, String> {
    let room = memory.0 / MEMORY_SHARE / slot;
    let least = spanned.saturating_mul(2);
    if least > room {
        return Err(format!(
            "chunks of several frames need memory for {least} frames of {}, more than a quarter of {memory}: put \
             fewer frames into one",
            Bytes(slot)
        ));
    }
    let busy = least.saturating_add(threads + STACKS_WRITTEN);
    Ok(busy.min(room) as usize)
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

    #[test]
    fn stacks_take_a_quarter_of_the_memory_and_what_is_read_an_eighth() {
        let memory = Bytes(4 << 30);
        assert_eq!(stack_slots_within(memory, 1, 64 << 20, 2), Ok(6));
        assert_eq!(stack_slots_within(memory, 1, 300 << 20, 2), Ok(3));
        assert_eq!(stack_slots_within(memory, 9, 1 << 20, 2), Ok(22));
        let error = stack_slots_within(memory, 1, 600 << 20, 2).expect_err("two have more than 1 GiB");
        assert!(error.contains("600 MiB") && error.contains("put fewer frames into one"), "{error}");
        assert_eq!(blocks_within(memory, 1, 1 << 20, 2), Ok(4));
        assert_eq!(blocks_within(memory, 200, 1 << 20, 2), Ok(2));
        let error = blocks_within(memory, 1 << 32, 4096, 2).expect_err("nobody has so much memory");
        assert!(error.contains("4294967296 frames"), "{error}");
        assert!(blocks_within(memory, u64::MAX, u64::MAX, 2).is_err());
    }
}
