//! Goes through the bytes of a stream of frames whose files no journal describes, and counts everything that is
//! no frame of the stream, with its place. Pure: the caller passes the bytes in order, in pieces of any size.
//!
//! ```text
//! | frame | frame | other size  | frame | ?????? no frames ?????? | frame | fill | frame | fra
//!                 ^ other_sizes         ^ strange: from here, until a header follows      ^ cut
//! ```
//!
//! Bytes that are no frame may be damage, or bytes that another program put in. A header of the stream ends
//! them: same format, length and epoch, at any offset.

use std::ops::Range;

use nilometer_wire::{Stamp, Stamps, mark5b::Mark5bHeader, vdif::VdifHeader};

use super::shape::is_fill;
use crate::view::Continuity;

/// Limit on the places listed of each kind.
const LISTED_MAX: usize = 100;
/// Bytes of a header that this keeps until it decides.
const HEAD: usize = Stamps::BYTES;
/// Bytes searched at once: few, because a header may follow soon.
const SEARCHED_AT_ONCE: usize = 4096;
/// The first word of a Mark5B header.
const SYNC: u32 = 0xabad_deed;

/// Bytes that are no frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangeBytes {
    /// The bytes, by their offsets in the stream.
    pub range: Range<u64>,
    /// True if all of them are zero, as in a hole of a file.
    pub is_zero: bool,
}

/// Findings from the headers of a whole stream.
#[derive(Debug, Clone, Default)]
pub struct FrameFindings {
    /// Time and threads of the frames with a header of the stream.
    pub continuity: Continuity,
    /// Number of whole frames with a header of the stream.
    pub frames: u64,
    /// Number of frames by which a recorder replaced missing ones without their times.
    pub fill: u64,
    /// Offset of the first of them.
    pub first_fill: Option<u64>,
    /// Number of frames of another size.
    pub other_sizes: u64,
    /// Offset and bytes of the first of them.
    pub first_other_sizes: Vec<(u64, u64)>,
    /// Number of runs of bytes that are no frame.
    pub strange: u64,
    /// All of these bytes.
    pub strange_bytes: u64,
    /// The first of these runs.
    pub first_strange: Vec<StrangeBytes>,
    /// The last frame, if the stream ends in it: its bytes that are there.
    pub cut: Option<Range<u64>>,
    /// Bytes of missing or unreadable blocks.
    pub absent_bytes: u64,
}

/// Walks through a stream, header by header.
#[derive(Debug)]
pub(super) struct FrameWalk {
    stamps: Stamps,
    frame_size: u64,
    /// The last VDIF header of the stream.
    last: Option<VdifHeader>,
    /// Offset of the next byte that the caller passes.
    at: u64,
    /// The first bytes of the next frame, as far as they came.
    head: Vec<u8>,
    /// Bytes left of the current frame, and its range.
    left: u64,
    current: Range<u64>,
    /// True if the current frame has a header of the stream.
    is_counted: bool,
    /// The run of bytes that are no frame, if it goes on.
    lost: Option<StrangeBytes>,
    walked: FrameFindings,
}

/// A header as the walk takes it.
enum FoundHeader {
    Frame(Stamp),
    OtherSize(u64),
    Fill,
    Strange,
}

impl FrameWalk {
    /// Starts at the first frame of a stream.
    pub(super) fn new(stamps: Stamps, frame_size: u64, frames_per_second: Option<u64>) -> Self {
        FrameWalk {
            stamps,
            frame_size,
            last: None,
            at: 0,
            head: Vec::new(),
            left: 0,
            current: 0..0,
            is_counted: false,
            lost: None,
            walked: FrameFindings {
                continuity: Continuity::new(frames_per_second),
                ..FrameFindings::default()
            },
        }
    }

    /// Takes the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = match (self.lost.is_some(), self.left) {
                (true, _) => self.search(bytes),
                (false, 0) => self.gather(bytes),
                (false, left) => {
                    let length = left.min(bytes.len() as u64);
                    self.left -= length;
                    length as usize
                }
            };
            self.at += length as u64;
            bytes = &bytes[length..];
            if self.head.len() == HEAD {
                self.decide();
            }
        }
    }

    /// Takes bytes of the next header. Returns their number.
    fn gather(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(HEAD - self.head.len());
        self.head.extend(&bytes[..length]);
        length
    }

    /// Looks for a header of the stream in the next bytes, and keeps it. Returns the number of bytes taken.
    fn search(&mut self, bytes: &[u8]) -> usize {
        let kept = self.head.len();
        let bytes = &bytes[..bytes.len().min(SEARCHED_AT_ONCE)];
        let joined = [&self.head, bytes].concat();
        let begin = self.at - kept as u64;
        let heads = joined.windows(HEAD).enumerate();
        let found = heads.filter(|(_, head)| self.has_mark(head)).find(|(at, head)| {
            let is_in_step = self.lost.as_ref().is_some_and(|run| self.is_in_step(run, begin + *at as u64));
            match self.header(head) {
                FoundHeader::Strange => false,
                FoundHeader::Fill => is_in_step,
                FoundHeader::Frame(_) | FoundHeader::OtherSize(_) => true,
            }
        });
        // The last bytes may begin a header.
        let end = found.map_or((joined.len() + 1).saturating_sub(HEAD), |(at, _)| at);
        if let Some(run) = &mut self.lost {
            run.range.end = begin + end as u64;
            run.is_zero &= joined[..end].iter().all(|byte| *byte == 0);
        }
        let next = (end + HEAD).min(joined.len());
        self.head = joined[end..next].to_vec();
        next - kept
    }

    /// Returns true if whole frames fit between the beginning of a run and an offset.
    fn is_in_step(&self, run: &StrangeBytes, at: u64) -> bool {
        (at - run.range.start).is_multiple_of(self.frame_size)
    }

    /// Returns false if these bytes are surely no header: this costs less than reading it.
    fn has_mark(&self, head: &[u8]) -> bool {
        let length = (self.frame_size / 8) as u32 & 0xff_ffff;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        match self.stamps {
            Stamps::Vdif => word(8) & 0xff_ffff == length || is_fill(&head[..4]),
            Stamps::Mark5b { .. } => word(0) == SYNC || is_fill(&head[..4]),
        }
    }

    /// Passes bytes of missing or unreadable blocks.
    pub(super) fn absent(&mut self, length: u64) {
        if length == 0 {
            return;
        }
        self.walked.absent_bytes += length;
        if self.lost.is_some() {
            self.end_strange(self.at);
            self.head.clear();
        }
        // Frames go on in step behind the gap, as far as anybody knows.
        let begun = self.head.len() as u64;
        let behind = begun + length.saturating_sub(self.left);
        let frames = behind.div_ceil(self.frame_size);
        self.walked.continuity.left_out(frames);
        self.head.clear();
        self.at += length;
        self.left = frames * self.frame_size - behind + self.left.saturating_sub(length);
        self.current = self.at..self.at + self.left;
        self.is_counted = false;
    }

    /// Ends the walk at the end of the stream.
    pub(super) fn end(mut self) -> FrameFindings {
        self.end_short_frames();
        if let Some(run) = &mut self.lost {
            // No header follows any more.
            run.is_zero &= self.head.iter().all(|byte| *byte == 0);
            self.end_strange(self.at);
        } else if !self.head.is_empty() {
            self.walked.cut = Some(self.at - self.head.len() as u64..self.at);
        } else if self.left > 0 {
            self.walked.cut = Some(self.current.start..self.at);
            self.walked.frames -= u64::from(self.is_counted);
        }
        self.walked
    }

    /// Counts the last frames, if they are shorter than the bytes kept for a header.
    fn end_short_frames(&mut self) {
        while self.lost.is_none() && self.left == 0 && self.head.len() as u64 >= self.frame_size {
            let found = self.header(&self.head);
            if matches!(found, FoundHeader::Strange) {
                return;
            }
            self.frame(self.at - self.head.len() as u64, &found);
        }
    }

    /// Decides by a whole header what begins here.
    fn decide(&mut self) {
        let begin = self.at - HEAD as u64;
        match self.header(&self.head) {
            FoundHeader::Strange => {
                self.lost = Some(StrangeBytes { range: begin..begin, is_zero: true });
                let first = self.head.remove(0);
                self.lost.iter_mut().for_each(|run| run.is_zero = first == 0);
            }
            found => {
                self.end_strange(begin);
                self.frame(begin, &found);
            }
        }
    }

    /// Counts a frame that begins at this offset, and passes it.
    fn frame(&mut self, begin: u64, found: &FoundHeader) {
        let number = begin / self.frame_size;
        let size = match *found {
            FoundHeader::OtherSize(size) => size,
            _ => self.frame_size,
        };
        match *found {
            FoundHeader::Frame(stamp) => {
                self.walked.frames += 1;
                self.walked.continuity.frame(number, Some(stamp));
                self.last = VdifHeader::parse(&self.head);
            }
            FoundHeader::Fill => {
                self.walked.fill += 1;
                self.walked.first_fill.get_or_insert(begin);
                self.walked.continuity.left_out(1);
            }
            FoundHeader::OtherSize(_) | FoundHeader::Strange => {
                self.walked.other_sizes += 1;
                if self.walked.first_other_sizes.len() < LISTED_MAX {
                    self.walked.first_other_sizes.push((begin, size));
                }
            }
        }
        self.current = begin..begin + size;
        self.is_counted = matches!(found, FoundHeader::Frame(_));
        // A frame may be shorter than the bytes kept for its header.
        let known = (self.head.len() as u64).min(size);
        self.left = size - known;
        self.head.drain(..known as usize);
    }

    /// Ends the run of bytes that are no frame before this offset.
    fn end_strange(&mut self, end: u64) {
        let Some(StrangeBytes { range, is_zero }) = self.lost.take() else { return };
        let range = range.start..end;
        let length = range.end - range.start;
        self.walked.strange += 1;
        self.walked.strange_bytes += length;
        // Frames may have been there, at most as many as fit.
        self.walked.continuity.left_out(length / self.frame_size);
        if self.walked.first_strange.len() < LISTED_MAX {
            self.walked.first_strange.push(StrangeBytes { range, is_zero });
        }
    }

    /// Reads the first bytes of what may be a frame.
    fn header(&self, head: &[u8]) -> FoundHeader {
        if is_fill(head) {
            return FoundHeader::Fill;
        }
        match self.stamps {
            Stamps::Vdif => self.vdif(head),
            Stamps::Mark5b { .. } => match self.stamps.read(head, self.frame_size) {
                Some(stamp) => FoundHeader::Frame(stamp),
                None => FoundHeader::Strange,
            },
        }
    }

    fn vdif(&self, head: &[u8]) -> FoundHeader {
        let Some(header) = VdifHeader::parse(head) else { return FoundHeader::Strange };
        let stamp = self.stamps.read(head, self.frame_size);
        match stamp {
            // The reference recorder replaces missing frames by ones without a time, a thread and a station.
            Some(_) if is_timeless(&header) && self.last.is_some_and(|last| !is_timeless(&last)) => {
                FoundHeader::Fill
            }
            Some(stamp) if self.is_of_stream(&header) => FoundHeader::Frame(stamp),
            None if self.lost.is_none() && self.is_other(&header) => {
                FoundHeader::OtherSize(header.length as u64)
            }
            _ => FoundHeader::Strange,
        }
    }

    /// Returns true if a frame of the right length belongs to the stream. Behind bytes that are no frame, its
    /// time must be near.
    fn is_of_stream(&self, header: &VdifHeader) -> bool {
        let Some(last) = self.last.filter(|_| self.lost.is_some()) else { return true };
        let is_alike = header.version == last.version && header.extended.is_some() == last.extended.is_some();
        is_alike && header.elapsed().abs_diff(last.elapsed()) <= DAY
    }

    /// Returns true if the header is that of a frame of another size, recorded at the same time.
    fn is_other(&self, header: &VdifHeader) -> bool {
        let is_near = |last: VdifHeader| header.elapsed().abs_diff(last.elapsed()) <= 1;
        header.length > header.size() && header.version <= 1 && self.last.is_some_and(is_near)
    }
}

/// Longest time that bytes without frames may take in a stream, in seconds.
const DAY: u64 = 86_400;

fn is_timeless(header: &VdifHeader) -> bool {
    let VdifHeader { second, frame, thread, station, .. } = *header;
    (second, frame, thread, station) == (0, 0, 0, 0)
}

impl FrameFindings {
    /// Returns true if it has bytes that are no frames of the stream's size.
    pub fn has_other_bytes(&self) -> bool {
        self.other_sizes > 0 || self.strange > 0
    }
}

/// Bytes of the longest header.
const _: () = assert!(HEAD >= VdifHeader::SIZE && HEAD >= Mark5bHeader::SIZE);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{RATE, mark5b_frame, vdif_frame};

    const SIZE: usize = 232;

    fn walk(stamps: Stamps, size: u64, bytes: &[u8], at_once: usize) -> FrameFindings {
        let mut walk = FrameWalk::new(stamps, size, Some(RATE));
        bytes.chunks(at_once).for_each(|piece| walk.take(piece));
        walk.end()
    }

    fn walked(bytes: &[u8]) -> FrameFindings {
        let all = walk(Stamps::Vdif, SIZE as u64, bytes, usize::MAX);
        for at_once in [1, 63, 64, 65, 1000] {
            let same = walk(Stamps::Vdif, SIZE as u64, bytes, at_once);
            assert_eq!(format!("{same:?}"), format!("{all:?}"), "in pieces of {at_once} B");
        }
        all
    }

    fn frame(number: u64) -> Vec<u8> {
        vdif_frame(number, 0, SIZE, false)
    }

    #[test]
    fn a_whole_stream_has_no_findings() {
        let walked = walked(&(0..25).flat_map(frame).collect::<Vec<_>>());
        assert_eq!((walked.frames, walked.continuity.jumps, walked.continuity.unknown), (25, 0, 0));
        assert!(walked.cut.is_none() && !walked.has_other_bytes() && walked.fill == 0);
    }

    #[test]
    fn everything_that_is_no_frame_is_counted_with_its_place() {
        let mut bytes: Vec<u8> = (0..3).flat_map(frame).collect();
        bytes.extend(vdif_frame(3, 1, 400, false));
        bytes.extend(frame(3));
        bytes.extend([7; 101]);
        bytes.extend(frame(4));
        bytes.extend(vec![0; 2 * SIZE]);
        bytes.extend(frame(7));
        bytes.extend(0x1122_3344_u32.to_le_bytes().repeat(SIZE / 4));
        let mut timeless = frame(9);
        VdifHeader {
            second: 0,
            frame: 0,
            epoch: 0,
            thread: 0,
            station: 0,
            ..VdifHeader::parse(&timeless).expect("whole")
        }
        .write(&mut timeless);
        bytes.extend(timeless);
        bytes.extend(frame(10));
        bytes.extend(&frame(11)[..100]);
        let walked = walked(&bytes);
        let size = SIZE as u64;
        assert_eq!(walked.first_other_sizes, [(3 * size, 400)]);
        let strange = [
            StrangeBytes { range: 4 * size + 400..4 * size + 501, is_zero: false },
            StrangeBytes { range: 5 * size + 501..7 * size + 501, is_zero: true },
        ];
        assert_eq!(walked.first_strange, strange);
        assert_eq!((walked.frames, walked.fill, walked.first_fill), (7, 2, Some(8 * size + 501)));
        assert_eq!(walked.continuity.jumps, 0, "the bytes explain the gaps");
        assert_eq!(walked.cut, Some(11 * size + 501..11 * size + 601));
    }

    #[test]
    fn lost_frames_are_jumps_and_so_are_those_that_come_twice() {
        let numbers = [0, 1, 2, 5, 6, 6, 7];
        let walked = walked(&numbers.into_iter().flat_map(frame).collect::<Vec<_>>());
        assert_eq!((walked.frames, walked.continuity.jumps), (7, 2));
        assert_eq!(walked.continuity.first_jumps[0].frame, 3);
    }

    #[test]
    fn missing_blocks_explain_a_gap_and_the_walk_goes_on_behind_them() {
        let mut walk = FrameWalk::new(Stamps::Vdif, SIZE as u64, Some(RATE));
        (0..3).for_each(|number| walk.take(&frame(number)));
        walk.take(&frame(3)[..30]);
        walk.absent(SIZE as u64 - 30 + 2 * SIZE as u64);
        (6..9).for_each(|number| walk.take(&frame(number)));
        let walked = walk.end();
        assert_eq!((walked.frames, walked.continuity.jumps, walked.strange), (6, 0, 0));
        assert_eq!(walked.absent_bytes, 3 * SIZE as u64 - 30);
    }

    #[test]
    fn frames_shorter_than_a_header_that_is_kept_are_counted_to_the_last() {
        let bytes: Vec<u8> = (0..7).flat_map(|number| vdif_frame(number, 0, 24, true)).collect();
        let walked = walk(Stamps::Vdif, 24, &bytes, 10);
        assert_eq!((walked.frames, walked.cut), (7, None));
    }

    #[test]
    fn mark5b_goes_on_behind_damage() {
        let mut bytes: Vec<u8> = (0..4).flat_map(mark5b_frame).collect();
        bytes[10_016] ^= 1;
        let walked = walk(Stamps::Mark5b { near: 800_000_000 }, 10_016, &bytes, 4096);
        assert_eq!((walked.frames, walked.strange, walked.strange_bytes), (3, 1, 10_016));
        assert_eq!(walked.continuity.jumps, 0);
    }

    #[test]
    fn no_bytes_break_the_walk() {
        let corpus = vec![
            (0..3).flat_map(frame).collect(),
            [frame(0), vdif_frame(1, 0, 40, true), vec![0; 300], frame(2)].concat(),
            mark5b_frame(0),
        ];
        nilometer_fuzz::fuzz("walk over frames", corpus, |bytes| {
            for stamps in [Stamps::Vdif, Stamps::Mark5b { near: 0 }] {
                let walked = walk(stamps, SIZE as u64, bytes, 100);
                let cut = walked.cut.map_or(0, |cut| cut.end - cut.start);
                assert!(walked.strange_bytes + cut <= bytes.len() as u64);
            }
        });
    }
}
