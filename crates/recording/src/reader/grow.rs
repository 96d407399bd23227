//! Follows a recording in progress: reads the records that its journals have gained. It holds no lock on the
//! recording while it waits for disks, so a disk that hangs blocks nobody else.

use std::{collections::BTreeSet, io, path::PathBuf, sync::Arc};

use super::{Found, Index, Recording, Stem, Trust, journals_in, parts_of, pieces::gained, read_heads};
use crate::{
    journal::{Entry, Head},
    recording_storage::RecordingStorage,
};

/// A request for new records: journals, with the position in each.
#[derive(Debug)]
pub(crate) struct Look {
    storage: Arc<dyn RecordingStorage>,
    recording: u64,
    name: String,
    lanes: Vec<LaneTail>,
    /// Directories in which journals of further lanes may appear, if some are unknown, and the known lanes.
    directories: Arc<[PathBuf]>,
    known: BTreeSet<u32>,
}

/// The journal of a lane from a record on.
#[derive(Debug)]
struct LaneTail {
    lane: usize,
    journal: PathBuf,
    head: Head,
    /// The owner of the journal.
    user: u32,
    /// Number of records taken so far.
    taken: u64,
}

impl LaneTail {
    fn read(&self, storage: &dyn RecordingStorage) -> io::Result<(usize, u64, Vec<Entry>)> {
        let entries = gained(storage, &self.journal, &self.head, self.user, self.taken)?;
        Ok((self.lane, self.taken, entries))
    }
}

/// New records in the journals.
#[derive(Debug)]
pub(crate) struct News {
    /// For each lane its index, the number of its first new record, and the records.
    lanes: Vec<(usize, u64, Vec<Entry>)>,
    others: Vec<Found>,
}

impl Look {
    /// Reads the new records. A journal that can't be read any more counts as unchanged.
    pub(crate) fn read(&self) -> News {
        let lanes = self.lanes.iter().filter_map(|lane| lane.read(&*self.storage).ok());
        News { lanes: lanes.collect(), others: self.others() }
    }

    /// Reads the new records, but fails if a journal can't be read.
    pub(crate) fn read_each(&self) -> io::Result<News> {
        let lanes = self.lanes.iter().map(|lane| lane.read(&*self.storage)).collect::<io::Result<_>>()?;
        Ok(News { lanes, others: self.others() })
    }

    /// Finds journals of further lanes.
    fn others(&self) -> Vec<Found> {
        let there = self.directories.iter().filter_map(|path| journals_in(&*self.storage, path).ok());
        let there = there.flatten();
        let named = there.filter(|(lane, path)| {
            let ours = parts_of(path).is_some_and(|(name, _)| name == self.name);
            let known = self.known.iter().any(|known| u64::from(*known) == *lane);
            ours && !known
        });
        let mut found = read_heads(&*self.storage, named).0;
        found.retain(|found| found.head.recording == self.recording);
        found
    }
}

impl News {
    /// Returns true if there are no new records.
    pub(crate) fn is_empty(&self) -> bool {
        self.others.is_empty() && self.lanes.iter().all(|(_, _, entries)| entries.is_empty())
    }
}

impl Recording {
    /// Prepares to read all journals, and to find those of unknown lanes.
    pub(crate) fn look(&self) -> Look {
        let missing = self.index.heads.len() < self.head().lanes as usize;
        Look {
            storage: self.storage.clone(),
            recording: self.head().recording,
            name: self.name().to_owned(),
            lanes: (0..self.stems.len()).filter_map(|lane| self.tail(lane)).collect(),
            directories: if missing { self.directories.clone() } else { Arc::default() },
            known: self.index.heads.iter().map(|head| head.lane).collect(),
        }
    }

    /// Prepares to read the journal of one lane.
    pub(crate) fn look_at(&self, lane: usize) -> Look {
        Look {
            storage: self.storage.clone(),
            recording: self.head().recording,
            name: self.name().to_owned(),
            lanes: self.tail(lane).into_iter().collect(),
            directories: Arc::default(),
            known: BTreeSet::new(),
        }
    }

    /// Prepares to read on in the journal of a lane. `None` if there is no journal.
    fn tail(&self, lane: usize) -> Option<LaneTail> {
        self.foreign().is_none().then(|| LaneTail {
            lane,
            journal: self.journal(lane),
            head: self.index.heads[lane],
            user: self.user(lane),
            taken: self.index.records(lane),
        })
    }

    /// Adds the new records and returns true if they change the recording. Every acknowledged frame counts. A
    /// known lane keeps its index, even if other lanes appear later, because open files and locations refer to
    /// it.
    pub(crate) fn take_in(&mut self, news: News) -> bool {
        let state = |index: &Index| (index.frames.len(), index.ended);
        let known = state(&self.index);
        let mut gained = false;
        for (lane, from, entries) in &news.lanes {
            gained |= self.index.follow(*lane, *from, entries, &mut |_| {}) > 0;
        }
        for found in news.others {
            self.add_lane(&found);
        }
        // Records in front of the first frame add no content.
        gained && !self.index.frames.is_empty() || state(&self.index) != known
    }

    /// Adds a lane after the known ones.
    fn add_lane(&mut self, found: &Found) {
        let known = self.index.heads.iter().any(|head| head.lane == found.head.lane);
        let ours = !known && found.head.recording == self.head().recording;
        let Some(stem) = Stem::of(found).filter(|_| ours) else { return };
        // If it can't be read now, the next look tries again.
        drop(self.index.join_journal(&*self.storage, found, Trust::Acknowledged));
        self.index.prune();
        self.stems.push(stem);
    }

    /// Adds directories in which to look for journals of unknown lanes.
    pub(crate) fn look_in(&mut self, directories: &[PathBuf]) {
        let new = directories.iter().filter(|directory| !self.directories.contains(directory));
        let new: Vec<_> = new.cloned().collect();
        if !new.is_empty() {
            self.directories = self.directories.iter().cloned().chain(new).collect();
        }
    }

    /// Returns true if the recording ended in order, so that it gains no more frames.
    pub fn is_over(&self) -> bool {
        self.index.due.is_some() || self.index.ended >= self.head().lanes as usize
    }

    /// The journal of a lane, or its first file of frames if it has no journal.
    pub fn journal(&self, lane: usize) -> PathBuf {
        if let Some(first) = self.foreign_files(lane).first() {
            return first.clone();
        }
        let name = self.index.heads[lane].journal_name(self.name());
        self.directory(lane).join(name)
    }
}
