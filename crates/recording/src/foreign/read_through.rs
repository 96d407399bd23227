//! Reads a whole recording without a journal, and checks all that its headers show.

use super::frame_walk::{FrameFindings, FrameWalk};
use crate::view::RecordingView;

/// Bytes per read.
const AT_ONCE: u64 = 4 << 20;

/// Reads every byte that exists, and passes the number of bytes done to `tell`. `None` if the frames have no
/// headers: then all bytes that can be read are as good as any others.
pub fn read_through(whole: &RecordingView, mut tell: impl FnMut(u64)) -> Option<FrameFindings> {
    let rate = whole.survey().frames_per_second;
    let mut walk = whole.stamps().map(|stamps| FrameWalk::new(stamps, whole.frame_size(), rate));
    let mut bytes = vec![0; AT_ONCE as usize];
    let mut next = 0;
    let mut block = whole.first_block();
    while let Some(number) = whole.next_there(block) {
        let range = whole.range_of(number);
        absent(&mut walk, range.start - next);
        let mut at = range.start;
        while at < range.end {
            let piece = &mut bytes[..AT_ONCE.min(range.end - at) as usize];
            let faults = whole.faults().count;
            whole.read_at(at, piece);
            at += piece.len() as u64;
            if whole.faults().count > faults {
                absent(&mut walk, piece.len() as u64);
            } else if let Some(walk) = &mut walk {
                walk.take(piece);
            }
            tell(at);
        }
        next = range.end;
        block = number + 1;
    }
    absent(&mut walk, whole.length() - next);
    walk.map(FrameWalk::end)
}

/// Passes bytes that are not there.
fn absent(walk: &mut Option<FrameWalk>, length: u64) {
    if let Some(walk) = walk {
        walk.absent(length);
    }
}
