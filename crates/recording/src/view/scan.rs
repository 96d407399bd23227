//! Summary of a recording, from its journals and first and last frames, or from all frames.

use std::{collections::BTreeSet, iter::Peekable, ops::Range, slice::Iter};

use super::{
    Continuity, RecordingView, Survey,
    continuity::Jump,
    sources::{Hole, SourceLoss},
    survey::is_near,
};
use crate::{Gap, reader::Index};
use nilometer_wire::Stamp;

/// Summary of a recording.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Threads and frame rate of the stream.
    pub survey: Survey,
    /// Number and stamp of the first frame with a time.
    pub first: Option<(u64, Stamp)>,
    /// Number and stamp of the last frame with a time.
    pub last: Option<(u64, Stamp)>,
    /// Number of all frames, including those that fill gaps.
    pub frames: u64,
    /// Bytes of all frames.
    pub bytes: u64,
    /// Number of frames that fill gaps, by the journals.
    pub filled: u64,
    /// Number of missing frames that are left out, by the journals.
    pub left_out: u64,
    /// Missing blocks, as ranges: first and count.
    pub missing: Vec<(u64, u64)>,
    /// Frames in the missing blocks.
    pub missing_frames: u64,
    /// Gaps in the stream.
    pub gaps: Vec<Hole>,
    /// Missing packets of each sender and thread.
    pub sources: Vec<SourceLoss>,
    /// Findings from reading all frames, if requested.
    pub read: Option<Read>,
}

/// Findings from reading all frames.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// Number of frames marked as invalid.
    pub invalid: u64,
    /// Number of frames without a header of the stream.
    pub unknown: u64,
    /// Number of times that a thread skipped frames that the journals don't list as missing.
    pub jumps: u64,
    /// The first jumps.
    pub first_jumps: Vec<Jump>,
    /// Stations and threads found.
    pub lanes: BTreeSet<(u16, u16)>,
}

/// Number of blocks at the end in which to look for a frame.
const LAST: u64 = 4096;
/// Bytes per read.
const AT_ONCE: u64 = 4 << 20;

impl Scan {
    /// Scans the journals and a few frames.
    pub fn of(whole: &RecordingView) -> Self {
        let first = whole.first_stamp().and_then(|frame| Some((frame, whole.stamp(frame)?)));
        let begin = whole.first_block();
        let (gaps, missing) =
            whole.recording(|recording| (holes(whole, begin, &recording.index), recording.index.missing()));
        let parts = whole.packets_of_frame();
        let frames = |filled: bool| -> u64 {
            let those = gaps.iter().filter(|gap| gap.filled == filled);
            those.map(|gap| gap.packets.div_ceil(parts)).fold(0, u64::saturating_add)
        };
        let blocks: u64 = missing.iter().map(|(_, count)| count).sum();
        Scan {
            survey: whole.survey(),
            first,
            last: last_stamp(whole),
            frames: whole.frames(),
            bytes: whole.length(),
            filled: frames(true),
            left_out: frames(false),
            missing_frames: blocks * whole.frames_of_block(),
            missing,
            sources: SourceLoss::of(whole, &gaps),
            gaps,
            read: None,
        }
    }

    /// Reads all existing frames and reports the bytes done to `tell` every few frames. Frames of a block that
    /// is missing or can't be read count as invalid. Their number follows from the block's size, so this makes
    /// none of them.
    #[must_use]
    pub fn read_all(self, whole: &RecordingView, mut tell: impl FnMut(u64)) -> Self {
        let mut reading = Reading::of(&self, whole);
        let mut next = 0;
        let end = self.frames * whole.frame_size;
        let mut block = whole.first_block();
        while let Some(number) = whole.next_there(block) {
            let range = whole.range_of(number);
            reading.pass(next..range.start);
            reading.block(number, range.clone(), &mut tell);
            next = range.end;
            block = number + 1;
        }
        reading.pass(next..end);
        let lanes = reading.continuity.lanes().collect();
        let Continuity { invalid, unknown, jumps, first_jumps, .. } = reading.continuity;
        Scan { read: Some(Read { invalid, unknown, jumps, first_jumps, lanes }), ..self }
    }

    /// Returns the duration in seconds by the times of the frames, including the last one. `None` if the times
    /// do not increase.
    pub fn seconds(&self) -> Option<f64> {
        let ((_, first), (_, last)) = self.first.zip(self.last)?;
        let rate = self.survey.frames_per_second?;
        // Times in forged frames may decrease.
        let frames = (last.count(rate) + 1).checked_sub(first.count(rate)).filter(|frames| *frames > 0)?;
        Some(frames as f64 / rate as f64)
    }
}

/// Reads all frames of a recording in order.
struct Reading<'a> {
    whole: &'a RecordingView,
    continuity: Continuity,
    left_out: Peekable<Iter<'a, Hole>>,
    packets_of_frame: u64,
    /// True if frames that fill gaps have a header that marks them as invalid.
    fills: bool,
    bytes: Vec<u8>,
}

impl<'a> Reading<'a> {
    fn of(scan: &'a Scan, whole: &'a RecordingView) -> Self {
        Reading {
            whole,
            continuity: Continuity::new(scan.survey.frames_per_second),
            left_out: scan.gaps.iter().peekable(),
            packets_of_frame: whole.packets_of_frame(),
            fills: whole.stamps.is_some() && whole.wire().is_some(),
            bytes: Vec::new(),
        }
    }

    /// Skips the frames that begin in a missing byte range.
    fn pass(&mut self, range: Range<u64>) {
        let size = self.whole.frame_size;
        let frames = range.end.div_ceil(size).saturating_sub(range.start.div_ceil(size));
        if frames > 0 {
            self.continuity.absent(frames, self.fills);
        }
    }

    /// Reads the frames of a block as far as possible, a few at once.
    fn block(&mut self, number: u64, range: Range<u64>, tell: &mut impl FnMut(u64)) {
        let size = self.whole.frame_size;
        let mut at = range.start;
        while at < range.end {
            // Read whole frames, or a part of a frame that is larger.
            let most = if size > AT_ONCE { AT_ONCE.min(size - at % size) } else { AT_ONCE / size * size };
            let length = most.min(range.end - at) as usize;
            self.bytes.resize(self.bytes.len().max(length), 0);
            let mut bytes = std::mem::take(&mut self.bytes);
            self.whole.read_at(at, &mut bytes[..length]);
            let readable = !self.whole.is_faulted(number);
            if readable {
                self.frames(at, &bytes[..length]);
            }
            self.bytes = bytes;
            if !readable {
                return self.pass(at..range.end);
            }
            at += length as u64;
            tell(at);
        }
    }

    /// Checks the frames that begin in bytes read from `offset` on.
    fn frames(&mut self, offset: u64, bytes: &[u8]) {
        let size = self.whole.frame_size;
        for at in (offset.next_multiple_of(size)..offset + bytes.len() as u64).step_by(size as usize) {
            let number = at / size;
            while let Some(gap) = self.left_out.next_if(|gap| gap.filled || gap.frame <= number) {
                let frames = if gap.filled { 0 } else { gap.packets / self.packets_of_frame };
                self.continuity.left_out(frames);
            }
            let frame = &bytes[(at - offset) as usize..];
            let frame = &frame[..frame.len().min(size as usize)];
            self.continuity.frame(number, self.whole.read_stamp(frame));
        }
    }
}

impl RecordingView {
    /// Packets per frame, 1 if frames did not come in packets.
    pub fn packets_of_frame(&self) -> u64 {
        self.recording(|recording| {
            recording.index.stream.as_ref().map_or(1, |stream| stream.packets_of_frame().max(1) as u64)
        })
    }
}

/// Returns the last frame with a readable header. One that is marked as invalid counts only if its time is near that
/// of the last valid one.
pub(super) fn last_stamp(whole: &RecordingView) -> Option<(u64, Stamp)> {
    whole.stamps?;
    let frames = whole.frames();
    let step = whole.frames_of_block().max(1);
    // Try every frame of the last two blocks (at most `LAST`), and before these one frame per block.
    let near = 1..=(2 * step).min(LAST);
    let far = (2..=LAST).map(|blocks| blocks * step);
    let candidates = near.chain(far).filter(|back| *back <= frames);
    let mut stamps =
        candidates.map(|back| frames - back).filter_map(|frame| Some((frame, whole.stamp(frame)?)));
    let last = stamps.next()?;
    let valid = if last.1.invalid { stamps.find(|(_, stamp)| !stamp.invalid) } else { None };
    Some(valid.filter(|(_, valid)| !is_near(&last.1, valid)).unwrap_or(last))
}

/// Returns the gaps of all blocks from `begin` on, with adjacent ones joined.
fn holes(whole: &RecordingView, begin: u64, index: &Index) -> Vec<Hole> {
    let parts = index.stream.as_ref().map_or(1, |stream| stream.packets_of_frame().max(1) as u64);
    let mut holes: Vec<(Hole, u64)> = Vec::new();
    for (&block, gaps) in index.gaps.range(begin..) {
        for &Gap { at, count, filled, sender } in gaps {
            let first = (block - begin) * whole.frames_of_block() * parts + u64::from(at);
            match holes.last_mut() {
                Some((hole, end)) if hole.filled && filled && hole.sender == sender && *end == first => {
                    hole.packets = hole.packets.saturating_add(count);
                    *end = first + count;
                }
                _ => {
                    let hole = Hole { frame: first / parts, packets: count, filled, sender };
                    holes.push((hole, first + count));
                }
            }
        }
    }
    holes.into_iter().map(|(hole, _)| hole).collect()
}
