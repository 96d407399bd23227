//! Entries as records of 64 bytes, and back.

use std::io;

use nilometer_model::{FileNames, Format, Storing, observed::ClockReading};
use nilometer_storage::process::BootId;

use super::{DatasetPlace, Encoding, Entry, FrameExtent, Head, TEXT};
use crate::{Due, Gap, GapSender};

/// Bytes of a record.
pub const RECORD: usize = 64;

fn numbers_of(text: [u8; TEXT]) -> [u64; 6] {
    let (words, _) = text.as_chunks();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

fn text_of(numbers: [u64; 6]) -> [u8; TEXT] {
    let mut text = [0; TEXT];
    for (place, number) in text.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    text
}

/// Version of journals that this program writes and reads. From this version on, every version stays readable
/// (CONTRIBUTING.md).
pub const JOURNAL_VERSION: u32 = 8;

/// The error for a journal of a version that this program does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "has journal version {found}; this program reads version {JOURNAL_VERSION}: record again, or use the program that wrote it"
)]
pub struct UnreadVersion {
    /// The version in its head.
    pub found: u32,
}

impl From<UnreadVersion> for io::Error {
    fn from(version: UnreadVersion) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, version)
    }
}

/// Kind of a journal's first record.
const HEAD: u32 = 1;

/// Bits of the file number that shares a word with the encoding.
const FILE_BITS: u32 = 48;
const FILE_MASK: u64 = (1 << FILE_BITS) - 1;

/// Packs two numbers into one.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Entry {
    fn parts(self) -> (u32, [u64; 6]) {
        match self {
            Entry::Head(Head {
                recording,
                lane,
                lanes,
                frame_size,
                stride,
                frames_per_file,
                storing,
                format,
                names,
            }) => {
                let names = u32::from(names == FileNames::Dectris) << 31;
                let version = pair(JOURNAL_VERSION, storing as u32 | format.number() << 16 | names);
                (HEAD, [recording, pair(lane, lanes), frame_size, stride, frames_per_file, version])
            }
            Entry::Frame { number, extent, due, checksum } => {
                let FrameExtent { file, offset, length, encoding, size } = extent;
                let checksum = checksum.map_or(0, |checksum| pair(checksum, 1));
                let file = file | encoding.number() << FILE_BITS;
                (12, [number, file, offset, due, checksum, pair(length, size)])
            }
            Entry::Gap { number, gap: Gap { at, count, filled, sender } } => {
                let [sender, address] = GapSender::numbers(sender);
                (7, [number, u64::from(at), count, u64::from(filled), sender, address])
            }
            Entry::Durable { file } => (3, [file, 0, 0, 0, 0, 0]),
            Entry::Removed { file } => (4, [file, 0, 0, 0, 0, 0]),
            Entry::End { due: Some(Due { frames, last }) } => {
                (5, [1, frames, u64::from(last.unwrap_or(0)), 0, 0, 0])
            }
            Entry::End { due: None } => (5, [0; 6]),
            Entry::Origin(text) => (6, numbers_of(text)),
            Entry::Stream(text) => (8, numbers_of(text)),
            Entry::Contents(text) => (13, numbers_of(text)),
            Entry::Plugin(text) => (14, numbers_of(text)),
            Entry::Placed { number, place: DatasetPlace { dataset, index } } => {
                (15, [number, dataset.into(), index, 0, 0, 0])
            }
            Entry::Chunk { file, number } => {
                (9, [file, number.map_or(0, |number| u64::from(number) + 1), 0, 0, 0, 0])
            }
            Entry::Checkpoint { records } => (10, [records, 0, 0, 0, 0, 0]),
            Entry::Boot { id: BootId(id), clock } => {
                let low = id as u64;
                let high = (id >> 64) as u64;
                let [state, error, offset, estimate] = clock.map_or([0; 4], ClockReading::numbers);
                (11, [low, high, state, error, offset, estimate])
            }
        }
    }

    #[expect(clippy::many_single_char_names, reason = "the module's table has their meanings, by kind")]
    fn from_parts(kind: u32, [a, b, c, d, e, f]: [u64; 6]) -> Option<Self> {
        match kind {
            HEAD if f as u32 == JOURNAL_VERSION => Some(Entry::Head(Head {
                recording: a,
                lane: b as u32,
                lanes: (b >> 32) as u32,
                frame_size: c,
                stride: d,
                frames_per_file: e,
                storing: *Storing::STORED.get((f >> 32) as usize & 0xffff)?,
                format: *Format::STORED.get((f >> 48) as usize & 0x7fff)?,
                names: if f >> 63 == 1 { FileNames::Dectris } else { FileNames::Recorder },
            })),
            3 => Some(Entry::Durable { file: a }),
            4 => Some(Entry::Removed { file: a }),
            5 => {
                let last = u32::try_from(c).ok().filter(|length| *length > 0);
                Some(Entry::End { due: (a == 1).then_some(Due { frames: b, last }) })
            }
            6 => Some(Entry::Origin(text_of([a, b, c, d, e, f]))),
            7 => {
                let sender = GapSender::of_numbers([e, f]);
                let gap = Gap { at: u32::try_from(b).ok()?, count: c, filled: d == 1, sender };
                Some(Entry::Gap { number: a, gap })
            }
            8 => Some(Entry::Stream(text_of([a, b, c, d, e, f]))),
            9 => {
                let number = b.checked_sub(1).map(u32::try_from).transpose().ok()?;
                Some(Entry::Chunk { file: a, number })
            }
            10 => Some(Entry::Checkpoint { records: a }),
            11 => {
                let id = BootId(u128::from(a) | u128::from(b) << 64);
                Some(Entry::Boot { id, clock: ClockReading::of_numbers([c, d, e, f]) })
            }
            12 => {
                let file = b & FILE_MASK;
                let length = f as u32;
                let size = (f >> 32) as u32;
                let encoding = Encoding::numbered(b >> FILE_BITS)?;
                let extent = FrameExtent { file, offset: c, length, encoding, size };
                let checksum = (e >> 32 == 1).then_some(e as u32);
                Some(Entry::Frame { number: a, extent, due: d, checksum })
            }
            13 => Some(Entry::Contents(text_of([a, b, c, d, e, f]))),
            15 => {
                let place = DatasetPlace { dataset: u32::try_from(b).ok()?, index: c };
                Some(Entry::Placed { number: a, place })
            }
            14 => Some(Entry::Plugin(text_of([a, b, c, d, e, f]))),
            _ => None,
        }
    }

    /// Writes the entry as the record with this sequence number.
    pub fn put(self, sequence: u64, record: &mut [u8]) {
        let (kind, numbers) = self.parts();
        record[4..8].copy_from_slice(&kind.to_le_bytes());
        record[8..16].copy_from_slice(&sequence.to_le_bytes());
        for (place, number) in record[16..RECORD].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&record[4..RECORD]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a record. `None` if it is torn or has another sequence number.
    pub fn read(sequence: u64, record: &[u8]) -> Option<Self> {
        let (kind, numbers) = checked(sequence, record)?;
        Entry::from_parts(kind, numbers)
    }
}

impl Head {
    /// Reads the head of a journal. `None` if the record is torn or is no head.
    ///
    /// # Errors
    /// If the head has a version that this program does not read.
    pub fn read(record: &[u8]) -> Result<Option<Self>, UnreadVersion> {
        let Some((HEAD, numbers)) = checked(0, record) else { return Ok(None) };
        let found = numbers[5] as u32;
        if found != JOURNAL_VERSION {
            return Err(UnreadVersion { found });
        }
        Ok(match Entry::from_parts(HEAD, numbers) {
            Some(Entry::Head(head)) => Some(head),
            _ => None,
        })
    }
}

/// Returns kind and numbers of a record. `None` if it is torn or has another sequence number.
fn checked(sequence: u64, record: &[u8]) -> Option<(u32, [u64; 6])> {
    let (checksum, rest) = record.get(..RECORD)?.split_first_chunk()?;
    let word = |at: usize| rest.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    if u32::from_le_bytes(*checksum) != crc32fast::hash(rest) || word(4)? != sequence {
        return None;
    }
    let kind = u32::from_le_bytes(*rest.first_chunk()?);
    let mut numbers = [0; 6];
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = word(12 + 8 * index)?;
    }
    Some((kind, numbers))
}

/// Reads consecutive records, the first with this sequence number, up to the first torn one.
pub(super) fn entries(first: u64, records: &[u8]) -> Vec<Entry> {
    let records = records.chunks_exact(RECORD).zip(first..);
    records.map_while(|(record, sequence)| Entry::read(sequence, record)).collect()
}

/// Returns the longest valid prefix of a journal. It is empty unless it begins with a head.
pub fn prefix(bytes: &[u8]) -> Vec<Entry> {
    match Head::read(bytes) {
        Ok(Some(_)) => entries(0, bytes),
        Ok(None) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record of any kind.
    fn written(sequence: u64, kind: u32, numbers: [u64; 6]) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[4..8].copy_from_slice(&kind.to_le_bytes());
        record[8..16].copy_from_slice(&sequence.to_le_bytes());
        for (place, number) in record[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&record[4..]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
        record
    }

    #[test]
    fn another_version_is_refused_and_what_is_no_head_is_none() {
        for found in [7, 9] {
            let journal = written(0, HEAD, [1, 1 << 32, 1000, 4096, 2, pair(found, 0)]);
            let refused = Head::read(&journal).expect_err("another version");
            assert_eq!(refused, UnreadVersion { found });
            let said = format!("has journal version {found}; this program reads version 8: ");
            assert!(refused.to_string().starts_with(&said), "{refused}");
            assert_eq!(prefix(&journal), []);
        }
        let frame = written(0, 12, [7, 3, 0, 70, 0, pair(1, 1)]);
        assert_eq!(Head::read(&frame), Ok(None));
        assert_eq!(prefix(&frame), [], "a frame without a head");
        let head = written(0, HEAD, [1, 1 << 32, 1000, 4096, 2, pair(JOURNAL_VERSION, 0)]);
        assert_eq!(prefix(&head).len(), 1);
        let kind_of_version_5 = written(1, 2, [7, 3, 0, 70, 0, 0]);
        assert_eq!(prefix(&[head, kind_of_version_5].concat()).len(), 1, "no kind of today");
        let unknown_storing = written(0, HEAD, [1, 1 << 32, 1000, 4096, 2, pair(JOURNAL_VERSION, 99)]);
        assert_eq!(Head::read(&unknown_storing), Ok(None));
    }
}
