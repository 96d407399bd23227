//! Recognizes the frames of a file that nobody described.
//!
//! A VDIF header has no sync word. Among the small numbers of a detector's pixels, two headers that agree stand in
//! every file. A run of headers whose frames count on stands only among frames:
//!
//! ```text
//! 1. somewhere in the first MiB, headers that go on         | 40 | 41 | 42 | 43 | .. 16 of them, or to the end
//! 2. the first two headers of that stream in front of them  | 0 | 1 | damage | 3 | ..
//! ```
//!
//! A damaged recording is thus recognized by its whole part, and begins where its first frames are.

use std::{cell::Cell, io};

use nilometer_wire::{Stamps, vdif::VdifHeader};

use super::shape::{StreamShape, goes_on, has_byte_before, is_fill, may_be, read_up_to};
use crate::recording_storage::StoredFile;

/// Looks for the first frame of a file. Returns its shape and its offset; `None` if nothing shows that the file has
/// frames.
pub(super) fn recognized(file: &dyn StoredFile) -> io::Result<Option<(StreamShape, u64)>> {
    let reads = Cell::new(READS_MOST);
    let proves = |shape: &StreamShape, at: u64| -> io::Result<bool> {
        Ok(shape.is_followed(file, at + shape.frame_size, at == 0)? && is_proven(file, shape, at, &reads)?)
    };
    let Some(found) = StreamShape::find_where(file, 0, proves)? else { return Ok(None) };
    let is_of_it = |shape: &StreamShape, at: u64| -> io::Result<bool> {
        Ok(is_same_stream(shape, &found.0) && shape.is_followed(file, at + shape.frame_size, at == 0)?)
    };
    let begin = StreamShape::find_where(file, 0, is_of_it)?;
    Ok(Some(begin.filter(|(_, at)| *at < found.1).unwrap_or(found)))
}

/// Returns true if two headers may be of one stream: threads may have frames of different sizes.
fn is_same_stream(one: &StreamShape, other: &StreamShape) -> bool {
    let marks = |header: &VdifHeader| (header.version, header.epoch, header.extended.is_some());
    one.format == other.format && one.header.as_ref().map(marks) == other.header.as_ref().map(marks)
}

/// Returns true if the headers from offset `at` on are those of frames. Mark5B frames have a sync word: two suffice.
///
/// Each look at a header takes one of the `reads` that are left, for all places of a file together. Without any left
/// nothing is proven.
fn is_proven(file: &dyn StoredFile, shape: &StreamShape, at: u64, reads: &Cell<u64>) -> io::Result<bool> {
    let Some(first) = shape.header else { return Ok(true) };
    let mut run = HeaderRun::from(&first);
    let mut next = at + shape.frame_size;
    loop {
        let Some(left) = reads.get().checked_sub(1) else { return Ok(false) };
        reads.set(left);
        let mut head = [0; Stamps::BYTES];
        let length = read_up_to(file, &mut head, next)?;
        if length < VdifHeader::LEGACY_SIZE {
            let is_whole = length == 0 && has_byte_before(file, next)?;
            return Ok(run.is_enough_at_end(Beginning { at, is_whole }));
        }
        next += run.take(&head[..length]);
        // The space behind the frames was reserved.
        if run.fill > HEADERS_MOST {
            return Ok(run.is_enough_at_end(Beginning { at, is_whole: false }));
        }
        // In a short file, its end decides.
        if run.is_proven() || run.is_refuted() && (at > 0 || run.headers > SHORT) {
            return Ok(run.is_proven());
        }
    }
}

/// Most looks at headers in a file. Pixels need some thousands.
const READS_MOST: u64 = 1 << 18;
/// Headers behind the first one that prove a stream.
const HEADERS_LEAST: u64 = 15;
/// Number of them that count on from an earlier header of their thread.
const ORDERED_LEAST: u64 = 8;
/// At most 1 / `BAD_PART` of the headers may be damaged.
const BAD_PART: u64 = 4;
/// Headers after which nothing is proved any more: those of two frames of each possible thread.
const HEADERS_MOST: u64 = 2048;
/// Headers of a short file, whose first two suffice.
const SHORT: u64 = 16;
/// Headers, all good, that prove a stream if the file ends in a frame.
const HEADERS_TO_CUT: u64 = 6;

/// The offset of the first frame, and if the file ends with its last one.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    at: u64,
    is_whole: bool,
}

/// The headers found so far, each where the frame before it ends.
struct HeaderRun {
    first: VdifHeader,
    /// The last good header.
    last: VdifHeader,
    /// The last good header of each station and thread.
    threads: Vec<VdifHeader>,
    /// Headers behind the first one, without fill.
    headers: u64,
    /// Headers that count on in their thread.
    ordered: u64,
    /// Places without a header that goes on.
    bad: u64,
    /// Frames of fill or zeros, one after the other.
    fill: u64,
    /// Headers of the first one's form.
    alike: u64,
    /// True if the second header is one of them, and counts on from the first one.
    begins_alike: bool,
}

/// The form of all frames of a thread: bytes, bits of a sample, channels, and if samples are complex.
fn form(header: &VdifHeader) -> (usize, u8, u8, bool) {
    (header.length, header.bits, header.channels_log2, header.complex)
}

impl HeaderRun {
    fn from(first: &VdifHeader) -> Self {
        HeaderRun {
            first: *first,
            last: *first,
            threads: vec![*first],
            headers: 0,
            ordered: 0,
            bad: 0,
            fill: 0,
            alike: 0,
            begins_alike: false,
        }
    }

    /// Takes the bytes at the place of the next header. Returns the bytes of its frame.
    fn take(&mut self, head: &[u8]) -> u64 {
        if is_fill(head) || is_unwritten(head) {
            self.fill += 1;
            return self.last.length as u64;
        }
        self.fill = 0;
        self.headers += 1;
        let header = VdifHeader::parse(head).filter(|header| may_be(header, head));
        let good = header.filter(|header| header.epoch == self.first.epoch && goes_on(&self.last, header));
        let Some(good) = good.filter(|good| self.counts_on(good)) else {
            self.bad += 1;
            return self.last.length as u64;
        };
        if form(&good) == form(&self.first) {
            self.alike += 1;
            self.begins_alike |= self.headers == 1 && self.ordered == 1;
        }
        self.last = good;
        good.length as u64
    }

    /// Notes a header of a thread. Returns false if it does not follow the thread's last one.
    fn counts_on(&mut self, header: &VdifHeader) -> bool {
        let thread = |of: &VdifHeader| (of.station, of.thread);
        let Some(last) = self.threads.iter_mut().find(|last| thread(last) == thread(header)) else {
            self.threads.push(*header);
            return true;
        };
        let time = |of: &VdifHeader| (of.second, of.frame);
        if form(last) != form(header) || time(last) >= time(header) {
            return false;
        }
        *last = *header;
        self.ordered += 1;
        true
    }

    fn is_mostly_good(&self) -> bool {
        self.bad * BAD_PART <= self.headers
    }

    fn is_proven(&self) -> bool {
        self.headers >= HEADERS_LEAST && self.ordered >= ORDERED_LEAST && self.is_mostly_good()
    }

    /// Returns true if more headers can't prove anything.
    fn is_refuted(&self) -> bool {
        self.bad * BAD_PART > self.headers.max(HEADERS_LEAST + 1) || self.headers > HEADERS_MOST
    }

    /// Returns true if the headers show a stream although the file has no more of them.
    fn is_enough_at_end(&self, Beginning { at, is_whole }: Beginning) -> bool {
        // Threads of other sizes are possible, and among pixels the usual thing.
        let all_good = self.bad == 0 && self.alike == self.headers;
        let begins_in_frame = at < self.first.length as u64;
        match self.headers {
            // One frame, or two of a thread at the very beginning of a file are no chance find.
            0 => at == 0,
            _ if at == 0 && self.begins_alike => true,
            // Nor are some of one form, most of them good, as many threads have.
            _ if at == 0 && self.alike >= HEADERS_TO_CUT => self.is_mostly_good(),
            1 => all_good && is_whole && begins_in_frame,
            headers => all_good && (is_whole || headers >= HEADERS_TO_CUT),
        }
    }
}

/// Returns true if nothing was written here, as in reserved space.
fn is_unwritten(head: &[u8]) -> bool {
    head.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{InMemory, mark5b_frame, vdif_frame};
    use nilometer_model::{Format, Seed};

    const SIZE: usize = 1032;

    fn found(bytes: Vec<u8>) -> Option<(Format, u64, u64)> {
        let found = recognized(&InMemory(bytes)).expect("memory can be read");
        found.map(|(shape, at)| (shape.format, shape.frame_size, at))
    }

    fn frames(count: u64) -> Vec<u8> {
        (0..count).flat_map(|number| vdif_frame(number, 0, SIZE, false)).collect()
    }

    /// Counts of photons below `most`.
    fn counts(seed: u64, most: f64, count: usize) -> impl Iterator<Item = u32> {
        let mut stream = Seed(seed).stream();
        #[expect(clippy::cast_sign_loss, reason = "no count is below zero")]
        let pixel = move |_| (stream.unit() * most) as u32;
        (0..count).map(pixel)
    }

    /// The same, in pixels of four bytes.
    fn pixels(seed: u64, most: f64, count: usize) -> Vec<u8> {
        counts(seed, most, count).flat_map(u32::to_le_bytes).collect()
    }

    /// Regression test: `verify` called the exported frames of a detector a damaged recording of VDIF.
    #[test]
    fn pixels_are_not_taken_for_frames() {
        let mut by_two_headers = 0;
        for (seed, most) in [(1, 3.0), (2, 8.0), (3, 20.0), (4, 200.0), (5, 3000.0)] {
            let image = pixels(seed, most, 1 << 20);
            let file = InMemory(image.clone());
            by_two_headers += u32::from(StreamShape::find(&file, 0).expect("memory can be read").is_some());
            assert_eq!(found(image), None, "counts below {most}");
        }
        assert!(by_two_headers > 0, "two headers in a row stand among pixels");
    }

    /// In pixels of two bytes, small counts make lengths of a MiB: few headers stand in a file.
    #[test]
    fn small_pixels_of_short_files_are_not_taken_for_frames() {
        let mut by_two_headers = 0;
        for seed in 0..100 {
            let most = [3.0, 4.0, 8.0][seed as usize % 3];
            let image = counts(seed, most, 2 << 20).flat_map(|count| (count as u16).to_le_bytes());
            let image: Vec<u8> = image.collect();
            let file = InMemory(image.clone());
            by_two_headers += u32::from(StreamShape::find(&file, 0).expect("memory can be read").is_some());
            assert_eq!(found(image), None, "seed {seed}, counts below {most}");
        }
        assert!(by_two_headers > 0, "two headers in a row stand among pixels");
    }

    #[test]
    fn frames_of_any_number_and_beginning_are_recognized() {
        for count in [1, 2, 3, 9, 40] {
            assert_eq!(found(frames(count)), Some((Format::Vdif, 1032, 0)), "{count} frames");
        }
        assert_eq!(found(frames(9).split_off(700)), Some((Format::Vdif, 1032, 332)), "begins in a frame");
        let mut cut = frames(40);
        cut.truncate(39 * SIZE + 500);
        assert_eq!(found(cut.split_off(700)), Some((Format::Vdif, 1032, 332)), "and ends in one");
        let legacy: Vec<u8> = (0..30).flat_map(|number| vdif_frame(number, 5, 1016, true)).collect();
        assert_eq!(found(legacy), Some((Format::Vdif, 1016, 0)));
        let mut scattered: Vec<u8> = [162, 87, 80, 81, 133, 134, 50, 51, 245]
            .into_iter()
            .flat_map(|thread| vdif_frame(7, thread, SIZE, false))
            .collect();
        scattered.extend(vdif_frame(3, 9, SIZE, false));
        assert_eq!(
            found(scattered),
            Some((Format::Vdif, 1032, 0)),
            "a frame of each thread, the last one late"
        );
        let mark5b: Vec<u8> = (0..3).flat_map(mark5b_frame).collect();
        assert_eq!(found(mark5b), Some((Format::Mark5b, 10_016, 0)));
        let threads = (0..300).flat_map(|number| vdif_frame(number / 60, number as u16 % 60, SIZE, false));
        assert_eq!(found(threads.collect()), Some((Format::Vdif, 1032, 0)), "60 threads");
    }

    #[test]
    fn damaged_files_are_recognized_and_begin_with_their_first_frames() {
        let whole = frames(60);
        let expected = Some((Format::Vdif, 1032, 0));
        let mut bad_headers = whole.clone();
        for number in [2, 5, 6, 11, 30] {
            bad_headers[number * SIZE..][..32].fill(0xee);
        }
        assert_eq!(found(bad_headers), expected, "five damaged headers");
        let slipped = [&whole[..2 * SIZE], &[0x55; 77], &whole[2 * SIZE..]].concat();
        assert_eq!(found(slipped), expected, "77 B more behind two frames");
        let lost = [&whole[..3 * SIZE], &whole[3 * SIZE + 400..]].concat();
        assert_eq!(found(lost), expected, "400 B less");
        let hole = [&whole[..4 * SIZE], &[0; 3 * SIZE], &whole[7 * SIZE..]].concat();
        assert_eq!(found(hole), expected, "a hole of zeros");
        let short = [&whole[..2 * SIZE], &[0x55; 77], &whole[2 * SIZE..5 * SIZE + 300]].concat();
        assert_eq!(found(short), expected, "few frames, with all of this");
        let first = [&[0xee; 32], &whole[32..]].concat();
        assert_eq!(found(first), Some((Format::Vdif, 1032, 1032)), "the first header is damaged");
    }

    /// A file of frames behind which its size was reserved, and nothing written.
    #[derive(Debug)]
    struct Reserved(InMemory);

    impl StoredFile for Reserved {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let read = self.0.read_at(into, offset)?;
            into[read..].fill(0);
            Ok(into.len())
        }
    }

    /// Regression test: a few frames before reserved space were no known format.
    #[test]
    fn frames_before_reserved_space_are_recognized_at_once() {
        for count in [2, 5, 40] {
            let file = Reserved(InMemory(frames(count)));
            let found = recognized(&file).expect("memory can be read");
            assert_eq!(found.map(|(shape, at)| (shape.frame_size, at)), Some((1032, 0)), "{count} frames");
        }
    }

    #[test]
    fn no_bytes_break_the_recognition() {
        let corpus = vec![frames(20), frames(2), pixels(1, 8.0, 4000), mark5b_frame(0)];
        nilometer_fuzz::fuzz("recognition of frames", corpus, |bytes| {
            let length = bytes.len() as u64;
            let found = recognized(&InMemory(bytes.to_vec())).expect("memory can be read");
            assert!(found.is_none_or(|(shape, at)| at < length && shape.frame_size > 0));
        });
    }
}
