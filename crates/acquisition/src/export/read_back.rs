//! Verifies a copy of a recording: reads it back block by block and compares it with the journals.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use nilometer_recording::{
    instrument::{Content, ContentError, Origin},
    reader::{Checksums, FrameLocation, Recording},
    view::RecordingView,
};

/// Findings about a copy.
#[derive(Debug, Default)]
pub struct ExportReadBack {
    /// CRC-32 (ISO-HDLC) of all its bytes.
    pub checksum: u32,
    /// True if frames were made again from the seed, for comparison.
    pub made_again: bool,
    /// The reason why the frames could not be made again although the journal states their origin.
    pub not_made_again: Option<ContentError>,
    /// Number of intact blocks.
    pub right: u64,
    /// Number of these that were read without a fault but have no checksum or origin for comparison.
    pub unchecked: u64,
    /// Missing blocks that were due, as ranges: first and count.
    pub missing: Vec<(u64, u64)>,
    /// Damaged blocks.
    pub damaged: DamagedBlocks,
    /// True if the recording ended in order, so that its journal states the number of blocks due.
    pub ended: bool,
}

/// Damaged blocks, with the damage of the first.
#[derive(Debug, Default)]
pub struct DamagedBlocks {
    /// Number of all damaged blocks.
    pub count: u64,
    /// The first of them, with the damage of each.
    pub first: Vec<(u64, &'static str)>,
}

/// Limit on the damaged blocks listed.
const NAMED: usize = 20;
/// Bytes per read.
const AT_ONCE: u64 = 4 << 20;

impl DamagedBlocks {
    fn add(&mut self, block: u64, why: &'static str) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((block, why));
        }
    }
}

impl ExportReadBack {
    /// Returns true if every block due is there and intact, as far as there is a reference for comparison.
    pub fn is_whole(&self) -> bool {
        self.ended && self.missing.is_empty() && self.damaged.count == 0
    }
}

/// Reads a copy of the view's present content. Reports the bytes read to `tell` every few bytes; an error of
/// `tell` ends the read.
pub fn read_back(
    whole: &RecordingView,
    copy: &File,
    mut tell: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<ExportReadBack> {
    let (due, content) = whole.recording(|recording| {
        let index = &recording.index;
        (index.due.is_some(), index.origin.as_ref().map(Origin::content))
    });
    let missing = whole.missing_blocks();
    let ended = due || whole.is_part() && whole.is_complete();
    let mut copied = ExportReadBack { missing, ended, ..ExportReadBack::default() };
    let content = match content {
        Some(Ok(content)) => Some(content),
        Some(Err(why)) => {
            copied.not_made_again = Some(why);
            None
        }
        None => None,
    };
    copied.made_again = content.is_some();
    let checksums = whole.recording(Recording::checksums);
    let all = crc32fast::Hasher::new();
    let mut reading = Reading { copy, content, checksums, all, bytes: Vec::new(), tell: &mut tell };
    let mut next = 0;
    let mut block = whole.first_block();
    while let Some(number) = whole.next_there(block) {
        let range = whole.range_of(number);
        reading.pass(next..range.start)?;
        let found = match whole.hidden_of(number) {
            Ok(hidden) => reading.block(number, range.clone(), &hidden, &whole.places(number))?,
            Err(_) => Found::Wrong("can't be read where it is recorded"),
        };
        match found {
            _ if whole.is_faulted(number) => copied.damaged.add(number, "can't be read where it is recorded"),
            Found::Right => copied.right += 1,
            Found::Unchecked => {
                copied.right += 1;
                copied.unchecked += 1;
            }
            Found::Wrong(why) => copied.damaged.add(number, why),
        }
        next = range.end;
        block = number + 1;
    }
    reading.pass(next..whole.length())?;
    copied.checksum = reading.all.finalize();
    Ok(copied)
}

/// Result for a block of a copy.
enum Found {
    Right,
    Unchecked,
    Wrong(&'static str),
}

/// A copy that is read in order.
struct Reading<'a> {
    copy: &'a File,
    content: Option<Content>,
    checksums: Checksums,
    all: crc32fast::Hasher,
    bytes: Vec<u8>,
    tell: &'a mut dyn FnMut(u64) -> io::Result<()>,
}

impl Reading<'_> {
    /// Reads bytes that belong to no existing block.
    fn pass(&mut self, range: Range<u64>) -> io::Result<()> {
        self.read(range, |_| {})
    }

    /// Reads the bytes of a block in the copy, and checks them together with those before and after that the
    /// copy lacks on purpose.
    fn block(
        &mut self,
        number: u64,
        range: Range<u64>,
        hidden: &[Vec<u8>; 2],
        places: &[FrameLocation],
    ) -> io::Result<Found> {
        if self.content.is_some() {
            return self.made_again(number, range, hidden);
        }
        let [before, after] = hidden;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(before);
        self.read(range, |bytes| hasher.update(bytes))?;
        hasher.update(after);
        let checksum = hasher.finalize();
        let noted = places.iter().map(|place| self.checksums.of(number, *place));
        let Ok(noted) = noted.collect::<io::Result<Vec<_>>>() else {
            return Ok(Found::Wrong("its checksum can't be read in the journal any more"));
        };
        let noted: Vec<u32> = noted.into_iter().flatten().collect();
        // A block is intact if it matches one of its places.
        Ok(match &noted[..] {
            [] => Found::Unchecked,
            _ if noted.contains(&checksum) => Found::Right,
            _ => Found::Wrong("its checksum is another than the journal's"),
        })
    }

    /// Compares a frame with the one that the simulated instrument delivered.
    fn made_again(&mut self, number: u64, range: Range<u64>, hidden: &[Vec<u8>; 2]) -> io::Result<Found> {
        let [before, after] = hidden;
        let mut frame = before.clone();
        self.read(range, |bytes| frame.extend_from_slice(bytes))?;
        frame.extend_from_slice(after);
        let right = self.content.as_ref().is_some_and(|content| content.verify(number, &frame).is_ok());
        Ok(if right {
            Found::Right
        } else {
            Found::Wrong("it differs from the frame of the simulated instrument")
        })
    }

    fn read(&mut self, range: Range<u64>, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(AT_ONCE) as usize;
            self.bytes.resize(self.bytes.len().max(length), 0);
            let bytes = &mut self.bytes[..length];
            self.copy.read_exact_at(bytes, at)?;
            self.all.update(bytes);
            take(bytes);
            at += length as u64;
            (self.tell)(at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use nilometer_model::Storing;

    use super::*;
    use nilometer_recording::view::{
        Extent,
        laid_out::{PACKET_CASES, laid_out},
    };

    #[test]
    fn what_is_missing_damaged_or_not_known_is_named() {
        let blocks: Vec<_> = (0..40).map(|block| Some(block % 2).filter(|_| block != 7)).collect();
        let (lanes, reference) = laid_out(PACKET_CASES[0], Storing::Files, 2, &blocks, 3);
        let whole = lanes.whole(Extent::All);
        let found = |bytes: &[u8]| {
            let mut copy = tempfile::tempfile().expect("room");
            copy.write_all(bytes).expect("room");
            let mut told = 0;
            let copied = read_back(&whole, &copy, |done| {
                told = done;
                Ok(())
            });
            let copied = copied.expect("it is long enough");
            assert_eq!((copied.checksum, told), (crc32fast::hash(bytes), bytes.len() as u64));
            copied
        };
        let copied = found(&reference);
        assert_eq!((copied.right, copied.unchecked, copied.missing.as_slice()), (39, 0, &[(7, 1)][..]));
        assert!(copied.ended && copied.damaged.count == 0 && !copied.is_whole());
        let mut torn = reference.clone();
        for block in 10..40 {
            torn[whole.range_of(block).start as usize + 5] ^= 1;
        }
        let damaged = found(&torn).damaged;
        assert_eq!((damaged.count, damaged.first.len(), damaged.first[0].0), (30, NAMED, 10));
    }

    #[test]
    fn a_copy_of_all_is_whole() {
        let (lanes, reference) = laid_out(PACKET_CASES[0], Storing::Growing, 1, &[Some(0); 9], 4);
        let mut copy = tempfile::tempfile().expect("room");
        copy.write_all(&reference).expect("room");
        let copied = read_back(&lanes.whole(Extent::All), &copy, |_| Ok(())).expect("it can be read");
        assert!(copied.is_whole() && copied.right == 9, "{copied:?}");
        copy.set_len(reference.len() as u64 - 1).expect("it is ours");
        assert!(read_back(&lanes.whole(Extent::All), &copy, |_| Ok(())).is_err(), "it is too short");
    }
}
