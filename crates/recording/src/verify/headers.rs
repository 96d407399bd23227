//! Checks the headers in blocks of packets. Each must belong to the stream, time must continue from frame to
//! frame, and frames missing by the journal must be marked as invalid.

use crate::{
    Gap, Ranges,
    view::{Continuity, RecordingView},
};
use nilometer_wire::{Stamp, Stamps};

/// Checks the headers in blocks of packets, block by block.
#[derive(Debug, Clone)]
pub struct Headers {
    stamps: Stamps,
    frame_size: usize,
    frames_of_block: u64,
    parts: u64,
    /// The first block of the recording, and the next one.
    first: u64,
    next: u64,
    /// Findings so far.
    pub continuity: Continuity,
    /// Number of frames missing according to the journal.
    pub noted: u64,
}

impl Headers {
    /// Starts the check of a recording whose frames have headers. `None` if they have none.
    pub(super) fn of(whole: &RecordingView) -> Option<Self> {
        Some(Headers {
            stamps: whole.stamps()?,
            frame_size: whole.frame_size() as usize,
            frames_of_block: whole.frames_of_block(),
            parts: whole.packets_of_frame(),
            first: whole.first_block(),
            next: whole.first_block(),
            continuity: Continuity::new(whole.survey().frames_per_second),
            noted: 0,
        })
    }

    /// Takes the next readable block with its gaps, or returns its error. Blocks skipped are missing or
    /// damaged.
    pub(super) fn take(&mut self, block: u64, bytes: &[u8], gaps: &[Gap]) -> Result<(), String> {
        let stamps = self.read(bytes, gaps)?;
        self.continuity.left_out((block - self.next) * self.frames_of_block);
        self.next = block + 1;
        let mut left_out = gaps.iter().filter(|gap| !gap.filled).peekable();
        for (at, stamp) in (0..).zip(stamps) {
            while let Some(gap) = left_out.next_if(|gap| u64::from(gap.at) / self.parts <= at) {
                self.continuity.left_out(gap.count / self.parts);
            }
            self.continuity.frame((block - self.first) * self.frames_of_block + at, stamp);
        }
        left_out.for_each(|gap| self.continuity.left_out(gap.count / self.parts));
        Ok(())
    }

    /// Reads the headers of a block. All must belong to the stream, except in missing frames.
    fn read(&mut self, bytes: &[u8], gaps: &[Gap]) -> Result<Vec<Option<Stamp>>, String> {
        let mut stamps = Vec::new();
        let mut noted = 0;
        let mut absent = Ranges::default();
        for gap in gaps.iter().filter(|gap| gap.filled) {
            absent.add_all(u64::from(gap.at)..u64::from(gap.at) + gap.count);
        }
        for (at, frame) in (0..).zip(bytes.chunks(self.frame_size)) {
            let head = &frame[..frame.len().min(Stamps::BYTES)];
            let stamp = self.stamps.read(head, frame.len() as u64);
            // A frame without its first packet has only the header that the recorder made for it.
            let gone = absent.contains(at * self.parts);
            noted += u64::from(gone);
            match stamp {
                None if !gone => return Err(format!("has no header of the stream in its frame {at}")),
                Some(stamp) if gone && !stamp.invalid => {
                    return Err(format!(
                        "has a frame {at} that did not come, by the journal, and is not marked as invalid"
                    ));
                }
                _ => stamps.push(stamp),
            }
        }
        self.noted += noted;
        Ok(stamps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_wire::vdif;

    fn headers() -> Headers {
        Headers {
            stamps: Stamps::Vdif,
            frame_size: 64,
            frames_of_block: 4,
            parts: 1,
            first: 0,
            next: 0,
            continuity: Continuity::new(Some(10)),
            noted: 0,
        }
    }

    fn block(counts: &[u32], invalid: &[usize]) -> Vec<u8> {
        let mut bytes = vec![0; counts.len() * 64];
        for (at, (frame, count)) in bytes.chunks_exact_mut(64).zip(counts).enumerate() {
            let header = vdif::VdifHeader::parse(&[0; 32]).expect("it is whole");
            let (second, frame_of) = (count / 10, count % 10);
            vdif::VdifHeader {
                second,
                frame: frame_of,
                length: 64,
                invalid: invalid.contains(&at),
                ..header
            }
            .write(frame);
        }
        bytes
    }

    #[test]
    fn blocks_that_are_missing_explain_a_jump_and_nothing_else_does() {
        let mut headers = headers();
        headers.take(0, &block(&[7, 8, 9, 10], &[]), &[]).expect("right");
        headers.take(2, &block(&[15, 16, 17, 18], &[]), &[]).expect("right");
        assert_eq!(headers.continuity.jumps, 0);
        headers.take(3, &block(&[19, 20, 22, 23], &[]), &[]).expect("its headers are some");
        assert_eq!((headers.continuity.jumps, headers.continuity.first_jumps[0].frame), (1, 14));
        let left_out = |at, count| Gap { at, count, filled: false, sender: None };
        headers
            .take(4, &block(&[25, 26, 30, 31], &[]), &[left_out(0, 1), left_out(2, 3), left_out(4, 5)])
            .expect("right");
        headers.take(5, &block(&[37], &[]), &[]).expect("right");
        assert_eq!((headers.continuity.jumps, headers.continuity.frames), (1, 17));
    }

    #[test]
    fn what_did_not_come_must_be_marked_and_what_came_must_have_a_header() {
        let (mut headers, gap) = (headers(), [Gap { at: 1, count: 2, filled: true, sender: None }]);
        headers.take(0, &block(&[0, 1, 2, 3], &[1, 2]), &gap).expect("right");
        assert_eq!((headers.noted, headers.continuity.invalid), (2, 2));
        let why =
            headers.take(1, &block(&[4, 5, 6, 7], &[1]), &gap).expect_err("the second of them is not marked");
        assert!(why.contains("frame 2"), "{why}");
        let mut torn = block(&[4, 5, 6, 7], &[]);
        torn[3 * 64 + 8] ^= 1;
        let why = headers.take(1, &torn, &[]).expect_err("the length is another");
        assert!(why.contains("frame 3"), "{why}");
        let why = headers.take(1, &block(&[4, 5], &[])[..100], &[]).expect_err("half a frame");
        assert!(why.contains("frame 1"), "{why}");
    }
}
