//! What the journals say of frames beside where they are. They are asked again, frame by frame, rather than kept for all.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::PathBuf,
    sync::Arc,
};

use nilometer_model::Nanos;

use super::{
    FrameLocation, Recording,
    pieces::{AT_ONCE, read_from},
};
use crate::{
    journal::{Entry, Head},
    recording_file::PageCache,
    recording_storage::{RecordingStorage, StoredFile},
};

/// What a journal says of a frame beside where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRecord {
    /// When it was due, on the clock of the recording.
    pub due: Nanos,
    /// CRC-32 (ISO-HDLC) of its bytes; none if the recording was to have none.
    pub checksum: Option<u32>,
}

/// Checksums of frames, asked for in the order of numbers: each journal is read once, a piece at a time.
#[derive(Debug)]
pub struct Checksums {
    lanes: Vec<LaneChecksums>,
}

#[derive(Debug)]
struct LaneChecksums {
    storage: Arc<dyn RecordingStorage>,
    journal: PathBuf,
    head: Head,
    /// To whom it belongs.
    user: u32,
    open: Option<Box<dyn StoredFile>>,
    /// Records of it that were read.
    taken: u64,
    /// Frames of these.
    read: VecDeque<(Key, FrameRecord)>,
    /// Frames that were met before they were asked for.
    passed: BTreeMap<Key, FrameRecord>,
}

/// Number, file and offset of a frame.
type Key = (u64, u64, u64);

impl Recording {
    /// The checksums of its frames.
    pub fn checksums(&self) -> Checksums {
        let lanes = 0..self.index.heads.len();
        Checksums { lanes: lanes.map(|lane| LaneChecksums::new(self, lane)).collect() }
    }
}

impl Checksums {
    /// CRC-32 (ISO-HDLC) of the bytes of the frame that is in a place; none if the recording was to have none. A number lower
    /// than one that was asked for before is not found.
    pub fn of(&mut self, number: u64, place: FrameLocation) -> io::Result<Option<u32>> {
        Ok(self.record_of(number, place)?.checksum)
    }

    /// The same, and what else the record of the frame says.
    pub fn record_of(&mut self, number: u64, place: FrameLocation) -> io::Result<FrameRecord> {
        self.lanes[place.lane].of(number, place.extent.file, place.extent.offset)
    }
}

impl LaneChecksums {
    fn new(recording: &Recording, lane: usize) -> Self {
        LaneChecksums {
            storage: recording.storage.clone(),
            journal: recording.journal(lane),
            head: recording.index.heads[lane],
            user: recording.user(lane),
            open: None,
            taken: 0,
            read: VecDeque::new(),
            passed: BTreeMap::new(),
        }
    }

    fn of(&mut self, number: u64, file: u64, offset: u64) -> io::Result<FrameRecord> {
        let key = (number, file, offset);
        if let Some(record) = self.passed.remove(&key) {
            return Ok(record);
        }
        loop {
            while let Some((other, record)) = self.read.pop_front() {
                if other == key {
                    return Ok(record);
                }
                // Those before are not asked for any more.
                if other.0 >= number {
                    self.passed.insert(other, record);
                }
            }
            self.passed = self.passed.split_off(&(number, 0, 0));
            if self.read_on()? == 0 {
                let why = format!("{}: frame {number} is not in it any more", self.journal.display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        }
    }

    /// Reads more records: how many.
    fn read_on(&mut self) -> io::Result<usize> {
        let journal = match &mut self.open {
            Some(journal) => journal,
            none => none.insert(self.storage.open_of(&self.journal, self.user, PageCache::Through)?.file),
        };
        let (entries, _) = read_from(&**journal, &self.head, self.taken, AT_ONCE)?;
        self.taken += entries.len() as u64;
        self.read.extend(entries.iter().filter_map(|entry| match *entry {
            Entry::Frame { number, extent, due, checksum } => {
                let record = FrameRecord { due: Nanos(due), checksum };
                Some(((number, extent.file, extent.offset), record))
            }
            _ => None,
        }));
        Ok(entries.len())
    }
}
