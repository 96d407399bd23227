//! Reading one block of a view, with the origin of the bytes. A reader of a ring in progress needs this to tell
//! frames that the recorder overwrote from frames that never arrived.

use super::RecordingView;
use crate::reader::Checksums;

/// The origin of the bytes that a read of a block returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockReading {
    /// The recording has the block, and these are its bytes. The recorder overwrote none of them before the end of
    /// the read.
    Stored,
    /// The recording never had the block. The view made frames that are marked as invalid.
    Missing,
    /// The recorder removed or overwrote the block, before or during the read. The view made such frames too.
    Overwritten,
    /// The storage failed. The view made such frames too.
    Unreadable,
}

impl RecordingView {
    /// Reads from `offset` to the end of the block that has this byte, but no more than `into` takes. Returns the
    /// bytes read and their origin. `offset` must be below [`RecordingView::length`].
    pub fn read_in_block(&self, offset: u64, into: &mut [u8]) -> (usize, BlockReading) {
        let left = self.length().saturating_sub(offset);
        let (block, within, rest) = self.piece(offset);
        let length = rest.min(left).min(into.len() as u64) as usize;
        (length, self.read_block(block, within, &mut into[..length]))
    }

    /// Compares a stored block with its checksum in the journal, and returns true if they differ. `read` are the bytes
    /// that [`RecordingView::read_in_block`] returned for `offset`. If they are a part of the block, this reads all of
    /// it again. `None` if there is no checksum, or the block can't be read again. Ask in the order of the blocks.
    pub fn is_damaged(&self, offset: u64, read: &[u8], checksums: &mut Checksums) -> Option<bool> {
        let (block, within, _) = self.piece(offset);
        let place = self.places(block).into_iter().next()?;
        let checksum = checksums.of(block, place).ok()??;
        if within == 0 && read.len() == place.extent.size as usize {
            return Some(crc32fast::hash(read) != checksum);
        }
        let mut whole = vec![0; place.extent.size as usize];
        self.read_place(place, 0, &mut whole).ok()?;
        Some(crc32fast::hash(&whole) != checksum)
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Storing;

    use super::*;
    use crate::view::{
        Extent,
        laid_out::{PACKET_CASES, laid_out, overtaken},
    };

    /// Reads the whole view block by block.
    fn read(view: &RecordingView) -> (Vec<u8>, Vec<BlockReading>) {
        let mut bytes = Vec::new();
        let mut readings = Vec::new();
        let mut buffer = vec![0; 1 << 20];
        while (bytes.len() as u64) < view.length() {
            let (length, reading) = view.read_in_block(bytes.len() as u64, &mut buffer);
            bytes.extend_from_slice(&buffer[..length]);
            readings.push(reading);
        }
        (bytes, readings)
    }

    #[test]
    fn a_read_tells_stored_blocks_from_missing_ones() {
        let there = [Some(0), None, Some(1), Some(0)];
        let (lanes, reference) = laid_out(PACKET_CASES[0], Storing::Files, 2, &there, 3);
        let (bytes, readings) = read(&lanes.whole(Extent::All));
        assert!(bytes == reference);
        let [stored, missing] = [BlockReading::Stored, BlockReading::Missing];
        assert_eq!(readings, [stored, missing, stored, stored]);
    }

    #[test]
    fn a_read_tells_blocks_that_the_recorder_overwrote() {
        let (_lanes, view) = overtaken();
        let (_, readings) = read(&view);
        assert!(readings.contains(&BlockReading::Overwritten), "{readings:?}");
    }
}
