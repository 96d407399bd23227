//! What a recording is: from its journals and its first and last frames, or from all of them.

use std::collections::BTreeSet;

use super::{Continuity, Survey, Whole, continuity::Jump};
use crate::{Gap, format::Stamp, reader::Index};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Whose frames there are, and how many a second.
    pub survey: Survey,
    /// The first frame that has a time, and the last: numbers in the recording, and what they say.
    pub first: Option<(u64, Stamp)>,
    /// See `first`.
    pub last: Option<(u64, Stamp)>,
    /// Frames in all, those that stand for missing ones included.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Frames that stand for ones that did not come, by the journals.
    pub filled: u64,
    /// Frames that did not come and are left out, by the journals.
    pub left_out: u64,
    /// Blocks that are missing, as ranges: first and count.
    pub missing: Vec<(u64, u64)>,
    /// Frames of these.
    pub missing_frames: u64,
    /// Where frames did not come.
    pub gaps: Vec<Hole>,
    /// What reading all of it found, if that was asked for.
    pub read: Option<Read>,
}

/// Frames that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The first frame that stands for them, or that follows where they are left out: its number in the recording.
    pub frame: u64,
    /// Packets that did not come.
    pub packets: u64,
    /// Frames stand in their place.
    pub filled: bool,
}

/// What reading all of it found.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// Frames that are marked as invalid.
    pub invalid: u64,
    /// Frames without a header of the stream.
    pub unknown: u64,
    /// Times that a thread did not go on with its next frame, though the journals say nothing of it.
    pub jumps: u64,
    /// The first of these.
    pub first_jumps: Vec<Jump>,
    /// Stations and threads that were seen.
    pub lanes: BTreeSet<(u16, u16)>,
}

/// Blocks at the end in which a frame is looked for.
const LAST: u64 = 4096;
/// Bytes that are read at once.
const AT_ONCE: u64 = 4 << 20;

impl Scan {
    /// From the journals and a few frames.
    pub fn of(whole: &Whole) -> Self {
        let first = whole.first_stamp().and_then(|frame| Some((frame, whole.stamp(frame)?)));
        let begin = whole.first_block();
        let (gaps, missing) =
            whole.recording(|recording| (holes(whole, begin, &recording.index), recording.index.missing()));
        let parts = whole.packets_of_frame();
        let frames = |filled| -> u64 {
            gaps.iter().filter(|gap| gap.filled == filled).map(|gap| gap.packets.div_ceil(parts)).sum()
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
            gaps,
            read: None,
        }
    }

    /// Reads all frames, and tells after each few of them up to which byte it is.
    #[must_use]
    pub fn read_all(self, whole: &Whole, mut tell: impl FnMut(u64)) -> Self {
        let mut continuity = Continuity::new(self.survey.frames_per_second);
        let mut left_out = self.gaps.iter().filter(|gap| !gap.filled).peekable();
        let parts = whole.packets_of_frame();
        let at_once = (AT_ONCE / whole.frame_size).max(1);
        let mut bytes = vec![0; (at_once * whole.frame_size) as usize];
        for first in (0..self.frames).step_by(at_once as usize) {
            let length = whole.read_at(first * whole.frame_size, &mut bytes);
            for (number, frame) in (first..).zip(bytes[..length].chunks_exact(whole.frame_size as usize)) {
                while let Some(gap) = left_out.next_if(|gap| gap.frame <= number) {
                    continuity.left_out(gap.packets / parts);
                }
                continuity.frame(number, whole.read_stamp(frame));
            }
            tell(first * whole.frame_size + length as u64);
        }
        let lanes = continuity.lanes().collect();
        let Continuity { invalid, unknown, jumps, first_jumps, .. } = continuity;
        Scan { read: Some(Read { invalid, unknown, jumps, first_jumps, lanes }), ..self }
    }

    /// How long it lasts by the times of its frames, in seconds, the last frame included.
    pub fn seconds(&self) -> Option<f64> {
        let ((_, first), (_, last)) = self.first.zip(self.last)?;
        let rate = self.survey.frames_per_second?;
        Some((last.count(rate) + 1).checked_sub(first.count(rate))? as f64 / rate as f64)
    }
}

impl Whole {
    /// Packets of a frame; 1 where frames did not come in packets.
    pub fn packets_of_frame(&self) -> u64 {
        self.recording(|recording| {
            recording.index.stream.as_ref().map_or(1, |stream| stream.packets_of_frame().max(1) as u64)
        })
    }
}

/// The last frame whose header can be read.
fn last_stamp(whole: &Whole) -> Option<(u64, Stamp)> {
    whole.stamps?;
    let frames = whole.frames();
    let step = whole.frames_of_block().max(1);
    let candidates = (1..=LAST * step).take_while(|back| *back <= frames);
    // Within the last block each, further back one of each block.
    let candidates = candidates.filter(|back| *back <= 2 * step || back.is_multiple_of(step));
    candidates.map(|back| frames - back).find_map(|frame| Some((frame, whole.stamp(frame)?)))
}

/// The gaps of all blocks from this one on, those that touch as one.
fn holes(whole: &Whole, begin: u64, index: &Index) -> Vec<Hole> {
    let parts = index.stream.as_ref().map_or(1, |stream| stream.packets_of_frame().max(1) as u64);
    let mut holes: Vec<(Hole, u64)> = Vec::new();
    for (&block, gaps) in index.gaps.range(begin..) {
        for &Gap { at, count, filled } in gaps {
            let first = (block - begin) * whole.frames_of_block() * parts + u64::from(at);
            match holes.last_mut() {
                Some((hole, end)) if hole.filled && filled && *end == first => {
                    (hole.packets, *end) = (hole.packets + count, first + count);
                }
                _ => holes.push((Hole { frame: first / parts, packets: count, filled }, first + count)),
            }
        }
    }
    holes.into_iter().map(|(hole, _)| hole).collect()
}
