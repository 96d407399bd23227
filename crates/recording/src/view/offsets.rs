//! Offsets in a view: blocks, and the bytes that a view shows of them.
//!
//! ```text
//! all blocks      |  block 0  |  block 1  |  block 2  |
//! a part              |--------- shown --------|
//! offsets             0                        length
//! ```

use std::{io, ops::Range};

use super::{RecordingView, State};

impl RecordingView {
    /// Number of its first block. It is not 0 if older blocks had been overwritten when the view opened the
    /// recording, or if the view shows a part.
    pub fn first_block(&self) -> u64 {
        self.shown_blocks().start
    }

    /// Bytes of the whole view. They never decrease.
    pub fn length(&self) -> u64 {
        self.shown(self.state().blocks.length())
    }

    /// Frames of the whole view.
    pub fn frames(&self) -> u64 {
        self.length() / self.frame_size
    }

    /// Returns true if it shows a part of the recording only.
    pub fn is_part(&self) -> bool {
        self.part != (0..u64::MAX)
    }

    /// Returns true if it will not get longer: the recording is over, or has all of the part.
    pub fn is_complete(&self) -> bool {
        let state = self.state();
        state.over || state.blocks.length() >= self.part.end
    }

    /// The blocks of which it shows at least a byte.
    pub fn shown_blocks(&self) -> Range<u64> {
        let State { blocks, .. } = &*self.state();
        if !self.is_part() {
            return blocks.first()..blocks.end();
        }
        let end = self.part.end.min(blocks.length());
        if end <= self.part.start {
            return blocks.first()..blocks.first();
        }
        blocks.at(self.part.start)..blocks.at(end - 1) + 1
    }

    /// Missing blocks among those shown, as ranges: first and count.
    pub fn missing_blocks(&self) -> Vec<(u64, u64)> {
        let missing = self.recording(|recording| recording.index.missing());
        if !self.is_part() {
            return missing;
        }
        let Range { start, end } = self.shown_blocks();
        let within = |(first, count): (u64, u64)| {
            let from = first.max(start);
            let to = first.saturating_add(count).min(end);
            (from < to).then(|| (from, to - from))
        };
        missing.into_iter().filter_map(within).collect()
    }

    /// Number of blocks due among those shown.
    pub fn due_blocks(&self) -> u64 {
        if self.is_part() {
            let Range { start, end } = self.shown_blocks();
            return end - start;
        }
        self.recording(|recording| recording.index.expected() - recording.index.first())
    }

    /// Returns the first block at or after `block` that exists by the journals.
    pub fn next_there(&self, block: u64) -> Option<u64> {
        let end = self.shown_blocks().end;
        let State { recording, .. } = &*self.state();
        recording.index.frames.next(block).filter(|next| *next < end)
    }

    /// Returns the byte range that the view has of a block.
    pub fn range_of(&self, block: u64) -> Range<u64> {
        let all = self.range_among_all(block);
        self.shown(all.start)..self.shown(all.end)
    }

    /// Reads the bytes of a block before and after those that the view shows. Both are empty except at the ends
    /// of a part.
    ///
    /// # Errors
    /// If no location of the block can be read.
    pub fn hidden_of(&self, block: u64) -> io::Result<[Vec<u8>; 2]> {
        let Range { start, end } = self.range_among_all(block);
        let before = self.part.start.clamp(start, end) - start;
        let after = self.part.end.clamp(start, end) - start;
        let length = end - start;
        Ok([self.bytes_of(block, 0..before)?, self.bytes_of(block, after..length)?])
    }

    /// Reads bytes of a block from its first readable location.
    fn bytes_of(&self, block: u64, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if !bytes.is_empty() {
            let gone = || io::Error::from(io::ErrorKind::NotFound);
            self.head(block, range.start, &mut bytes).ok_or_else(gone)?;
        }
        Ok(bytes)
    }

    /// Returns the block with the byte at `offset`, the position in that block, and the bytes from there to its
    /// end.
    pub(super) fn piece(&self, offset: u64) -> (u64, u64, u64) {
        let blocks = &self.state().blocks;
        let offset = offset + self.part.start;
        let block = blocks.at(offset);
        (block, offset - blocks.begin(block), blocks.begin(block + 1) - offset)
    }

    /// Returns the parts of a range that are missing according to the journals.
    pub fn filled(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let State { recording, blocks, .. } = &*self.state();
        let range = self.among_all(range);
        let range = range.start..range.end.min(blocks.length());
        if range.is_empty() {
            return Vec::new();
        }
        let first = blocks.at(range.start);
        let last = blocks.at(range.end - 1);
        let mut filled = Vec::new();
        let mut next = first;
        let present = recording.index.frames.numbers(first..last + 1);
        for block in present.chain([last + 1]) {
            if block > next {
                let begin = blocks.begin(next).max(range.start);
                let end = blocks.begin(block).min(range.end);
                filled.push(self.shown(begin)..self.shown(end));
            }
            next = block + 1;
        }
        filled
    }

    /// Returns true if a part of a range was removed or overwritten since it was recorded. If so, a read before
    /// this call may have mixed old and new bytes, even within a frame.
    pub fn is_overwritten(&self, range: Range<u64>) -> bool {
        let State { recording, blocks, .. } = &*self.state();
        let range = self.among_all(range);
        let range = range.start..range.end.min(blocks.length());
        let among = |range: Range<u64>| blocks.at(range.start)..blocks.at(range.end - 1) + 1;
        !range.is_empty() && recording.index.removed.count_in(among(range)) > 0
    }

    /// Returns a range of the view as a range among the bytes of all blocks.
    pub(super) fn among_all(&self, range: Range<u64>) -> Range<u64> {
        let to = |offset: u64| offset.saturating_add(self.part.start).min(self.part.end);
        to(range.start)..to(range.end)
    }

    fn range_among_all(&self, block: u64) -> Range<u64> {
        let blocks = &self.state().blocks;
        blocks.begin(block)..blocks.begin(block + 1)
    }

    /// Returns the offset in the view of a byte among all blocks. Bytes outside the part get its nearest end.
    fn shown(&self, offset: u64) -> u64 {
        offset.clamp(self.part.start, self.part.end) - self.part.start
    }
}
