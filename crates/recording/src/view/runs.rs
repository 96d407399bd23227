//! Runs of a recording: parts that are contiguous in one file, so one read can fetch them.

use std::ops::Range;

use super::{RecordingView, State};
use crate::{journal::Encoding, reader::FrameLocation};

/// Consecutive bytes of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Location of its first block, which identifies the file.
    pub(super) place: FrameLocation,
    /// Offset in the file.
    pub(super) at: u64,
}

impl RecordingView {
    /// Cuts a range into parts of at most `most` bytes. Each part lies in one file, cut at multiples of `most`
    /// in that file, or is spread over several files, or missing. A run shorter than a quarter of `most` gets
    /// no part of its own.
    pub(super) fn runs(&self, range: Range<u64>, most: u64) -> Vec<(Range<u64>, Option<Run>)> {
        let state = &*self.state();
        let hidden = self.part.start;
        let range = self.among_all(range);
        let end = range.end.min(state.blocks.length());
        let mut parts = Vec::new();
        let mut next = range.start.min(end);
        let runs = state.consecutive(next..end);
        for (range, run) in runs.into_iter().filter(|(range, _)| range.end - range.start >= most / 4) {
            cut(&mut parts, next..range.start, None, most);
            next = range.end;
            cut(&mut parts, range, Some(run), most);
        }
        cut(&mut parts, next..end, None, most);
        for (range, _) in &mut parts {
            *range = range.start - hidden..range.end - hidden;
        }
        parts
    }

    /// Number of lanes that hold blocks.
    pub(super) fn lanes(&self) -> usize {
        self.state().recording.index.heads.len()
    }

    /// Returns the distance ahead of a reader that includes bytes of every lane.
    pub(super) fn side_by_side(&self) -> u64 {
        let state = self.state();
        let head = state.recording.head();
        if !head.storing.is_chunked() {
            return 0;
        }
        [head.frames_per_file, u64::from(head.lanes)].into_iter().fold(head.stride, u64::saturating_mul)
    }
}

impl State {
    /// Returns the existing blocks, joined if they are contiguous in a file.
    fn consecutive(&self, range: Range<u64>) -> Vec<(Range<u64>, Run)> {
        let State { recording, blocks, .. } = self;
        let mut runs: Vec<(Range<u64>, Run)> = Vec::new();
        if range.is_empty() {
            return runs;
        }
        let among = blocks.at(range.start)..blocks.at(range.end - 1) + 1;
        // Decoding a frame needs all its bytes, so encoded frames form no runs.
        let raw = |(_, place): &(u64, FrameLocation)| place.extent.encoding == Encoding::Raw;
        for (block, place) in recording.index.frames.range(among).filter(raw) {
            let begin = blocks.begin(block).max(range.start);
            let end = blocks.begin(block + 1).min(range.end);
            let at = place.extent.offset.saturating_add(begin - blocks.begin(block));
            let file = |place| recording.index.file_of(place);
            let follows = |(range, run): &(Range<u64>, Run)| {
                let next = (range.end, run.at + (range.end - range.start));
                next == (begin, at) && file(run.place) == file(place)
            };
            match runs.last_mut().filter(|run| follows(run)) {
                Some((range, _)) => range.end = end,
                None => runs.push((begin..end, Run { place, at })),
            }
        }
        runs
    }
}

fn cut(parts: &mut Vec<(Range<u64>, Option<Run>)>, range: Range<u64>, run: Option<Run>, most: u64) {
    let mut begin = range.start;
    while begin < range.end {
        let run = run.map(|run| Run { at: run.at + (begin - range.start), ..run });
        let length = most - run.map_or(0, |run| run.at % most);
        let end = (begin + length).min(range.end);
        parts.push((begin..end, run));
        begin = end;
    }
}
