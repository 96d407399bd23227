//! Properties of frames, other than their positions, from the journals. The reader reads them again frame by
//! frame instead of keeping them all.

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

/// The properties of a frame in its journal, other than its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRecord {
    /// Time when it was due, on the recording's clock.
    pub due: Nanos,
    /// CRC-32 (ISO-HDLC) of its bytes. `None` if the recording has no checksums.
    pub checksum: Option<u32>,
}

/// Checksums of frames. Ask for them in the order of frame numbers, because this reads each journal once, a
/// piece at a time.
#[derive(Debug)]
pub struct Checksums {
    lanes: Vec<LaneChecksums>,
}

#[derive(Debug)]
struct LaneChecksums {
    storage: Arc<dyn RecordingStorage>,
    journal: PathBuf,
    head: Head,
    /// The owner of the journal.
    user: u32,
    open: Option<Box<dyn StoredFile>>,
    /// Number of records read.
    taken: u64,
    /// Frames in the records read.
    read: VecDeque<(Key, FrameRecord)>,
    /// Frames that the reader passed before the caller asked for them.
    passed: BTreeMap<Key, FrameRecord>,
}

/// Number, file and offset of a frame.
type Key = (u64, u64, u64);

impl Recording {
    /// Returns a reader of its frames' checksums.
    pub fn checksums(&self) -> Checksums {
        let lanes = if self.foreign().is_some() { 0..0 } else { 0..self.index.heads.len() };
        Checksums { lanes: lanes.map(|lane| LaneChecksums::new(self, lane)).collect() }
    }
}

impl Checksums {
    /// Returns the CRC-32 (ISO-HDLC) of the bytes of the frame at a location. `None` if the recording has no
    /// checksums.
    ///
    /// Fails for a number lower than one of an earlier call.
    pub fn of(&mut self, number: u64, place: FrameLocation) -> io::Result<Option<u32>> {
        Ok(self.record_of(number, place)?.checksum)
    }

    /// Returns the frame's checksum and the other properties in its record.
    pub fn record_of(&mut self, number: u64, place: FrameLocation) -> io::Result<FrameRecord> {
        match self.lanes.get_mut(place.lane) {
            Some(lane) => lane.of(number, place.extent.file, place.extent.offset),
            // Without a journal there are no records.
            None => Ok(FrameRecord { due: Nanos(0), checksum: None }),
        }
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
                // The caller no longer asks for frames before this one.
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

    /// Reads more records and returns their number.
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
