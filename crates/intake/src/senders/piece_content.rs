//! The frames of a piece of a merged block, and their gaps.

use std::ops::Range;

use nilometer_recording::{Gap, GapSender, Packed};

/// The shape of the blocks of a recording.
#[derive(Debug, Clone)]
pub(super) struct MergedShape {
    /// Bytes kept of each packet of a frame.
    pub(super) parts: Vec<usize>,
    /// Frames of a full block.
    pub(super) frames_of_block: u64,
    /// Frames of a block of a stream.
    pub(super) frames_of_piece: u64,
}

impl MergedShape {
    pub(super) fn frame_size(&self) -> usize {
        self.parts.iter().sum()
    }

    pub(super) fn per_frame(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Frames in a block.
    pub(super) fn frames_in(&self, packed: &Packed) -> u64 {
        u64::from(packed.length) / self.frame_size() as u64
    }

    /// The counts of a block with this many frames and these gaps.
    pub(super) fn packed(&self, frames: u64, gaps: Vec<Gap>) -> Packed {
        let per_frame = self.per_frame();
        let mut packets = frames * per_frame;
        let mut bytes = frames * self.frame_size() as u64;
        for gap in gaps.iter().filter(|gap| gap.filled) {
            packets -= gap.count;
            let places = u64::from(gap.at)..u64::from(gap.at) + gap.count;
            bytes -= places.map(|place| self.parts[(place % per_frame) as usize] as u64).sum::<u64>();
        }
        Packed { length: (frames * self.frame_size() as u64) as u32, packets, bytes, gaps }
    }

    /// The gaps in `count` of all `frames` frames beginning with frame `from`, counted from there. The last
    /// frames include the gaps after them.
    pub(super) fn cut(&self, gaps: &[Gap], frames: u64, from: u64, count: u64) -> Vec<Gap> {
        let places = from * self.per_frame()..(from + count) * self.per_frame();
        let is_last = from + count == frames;
        gaps.iter().filter_map(|gap| cut_gap(gap, &places, is_last)).collect()
    }
}

/// The part of a gap in these places, counted from the first. The last places of a block include the gaps
/// after them.
fn cut_gap(gap: &Gap, places: &Range<u64>, is_last: bool) -> Option<Gap> {
    let at = u64::from(gap.at);
    if !gap.filled {
        let is_here = places.contains(&at) || is_last && at >= places.end;
        return is_here.then(|| Gap { at: (at - places.start) as u32, ..*gap });
    }
    let first = at.max(places.start);
    let last = (at + gap.count).min(places.end);
    (first < last).then(|| Gap { at: (first - places.start) as u32, count: last - first, ..*gap })
}

/// Frames in a piece, and their gaps, counted from its beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct PieceContent {
    pub(super) frames: u64,
    pub(super) gaps: Vec<Gap>,
}

impl PieceContent {
    /// All frames of a block of this sender.
    pub(super) fn of(shape: &MergedShape, packed: &Packed, sender: GapSender) -> Self {
        let gaps = packed.gaps.iter().map(|gap| Gap { sender: Some(sender), ..*gap }).collect();
        PieceContent { frames: shape.frames_in(packed), gaps }
    }

    /// `count` of these frames beginning with frame `from`.
    pub(super) fn part(&self, shape: &MergedShape, from: u64, count: u64) -> Self {
        PieceContent { frames: count, gaps: shape.cut(&self.gaps, self.frames, from, count) }
    }
}
