//! A recording that is still made: what the journals gained since they were read. Nothing of the recording is held while
//! disks are asked: one that hangs keeps nobody else waiting.

use std::{collections::BTreeSet, io, path::PathBuf, sync::Arc};

use super::{Found, Index, Recording, Stem, Trust, journals_in, parts_of, pieces::gained, read_heads};
use crate::{
    journal::{Entry, Head},
    recording_storage::RecordingStorage,
};

/// Which journals are asked, and from where on.
#[derive(Debug)]
pub(crate) struct Look {
    storage: Arc<dyn RecordingStorage>,
    recording: u64,
    name: String,
    lanes: Vec<LaneTail>,
    /// Where the journals of other lanes may turn up, if some are not known; which are.
    directories: Arc<[PathBuf]>,
    known: BTreeSet<u32>,
}

/// The journal of a lane from a record on.
#[derive(Debug)]
struct LaneTail {
    lane: usize,
    journal: PathBuf,
    head: Head,
    /// To whom it belongs.
    user: u32,
    /// How many records of it were taken.
    taken: u64,
}

impl LaneTail {
    fn read(&self, storage: &dyn RecordingStorage) -> io::Result<(usize, u64, Vec<Entry>)> {
        let entries = gained(storage, &self.journal, &self.head, self.user, self.taken)?;
        Ok((self.lane, self.taken, entries))
    }
}

/// What they said.
#[derive(Debug)]
pub(crate) struct News {
    /// Lanes, from which record on, and the records.
    lanes: Vec<(usize, u64, Vec<Entry>)>,
    others: Vec<Found>,
}

impl Look {
    /// Asks the disks. A journal that can't be read any more says nothing new.
    pub(crate) fn read(&self) -> News {
        let lanes = self.lanes.iter().filter_map(|lane| lane.read(&*self.storage).ok());
        News { lanes: lanes.collect(), others: self.others() }
    }

    /// The same, but whoever says that there is nothing new could be asked.
    pub(crate) fn read_each(&self) -> io::Result<News> {
        let lanes = self.lanes.iter().map(|lane| lane.read(&*self.storage)).collect::<io::Result<_>>()?;
        Ok(News { lanes, others: self.others() })
    }

    /// Journals of other lanes.
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
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.others.is_empty() && self.lanes.iter().all(|(_, _, entries)| entries.is_empty())
    }
}

impl Recording {
    /// At all journals, and for those of lanes that are not known.
    pub(crate) fn look(&self) -> Look {
        let missing = self.index.heads.len() < self.head().lanes as usize;
        Look {
            storage: self.storage.clone(),
            recording: self.head().recording,
            name: self.name().to_owned(),
            lanes: (0..self.stems.len()).map(|lane| self.tail(lane)).collect(),
            directories: if missing { self.directories.clone() } else { Arc::default() },
            known: self.index.heads.iter().map(|head| head.lane).collect(),
        }
    }

    /// At the journal of one lane.
    pub(crate) fn look_at(&self, lane: usize) -> Look {
        Look {
            storage: self.storage.clone(),
            recording: self.head().recording,
            name: self.name().to_owned(),
            lanes: vec![self.tail(lane)],
            directories: Arc::default(),
            known: BTreeSet::new(),
        }
    }

    fn tail(&self, lane: usize) -> LaneTail {
        LaneTail {
            lane,
            journal: self.journal(lane),
            head: self.index.heads[lane],
            user: self.user(lane),
            taken: self.index.records(lane),
        }
    }

    /// Takes in what the journals said: whether there was anything new. Every frame that is acknowledged counts. What is known
    /// of a lane stays at its index, whichever turns up later: files are open and places are kept by it.
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
        // What stands in front of the first frame shows nothing.
        gained && !self.index.frames.is_empty() || state(&self.index) != known
    }

    /// Behind those that are known.
    fn add_lane(&mut self, found: &Found) {
        let known = self.index.heads.iter().any(|head| head.lane == found.head.lane);
        let ours = !known && found.head.recording == self.head().recording;
        let Some(stem) = Stem::of(found).filter(|_| ours) else { return };
        // What can't be read now is looked for again.
        drop(self.index.join_journal(&*self.storage, found, Trust::Acknowledged));
        self.index.prune();
        self.stems.push(stem);
    }

    /// Has the journals of lanes that are not known looked for in these directories too.
    pub(crate) fn look_in(&mut self, directories: &[PathBuf]) {
        let new = directories.iter().filter(|directory| !self.directories.contains(directory));
        let new: Vec<_> = new.cloned().collect();
        if !new.is_empty() {
            self.directories = self.directories.iter().cloned().chain(new).collect();
        }
    }

    /// Whether it was ended in order: nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.index.due.is_some() || self.index.ended >= self.head().lanes as usize
    }

    /// The journal of a lane.
    pub fn journal(&self, lane: usize) -> PathBuf {
        let name = self.index.heads[lane].journal_name(self.name());
        self.directory(lane).join(name)
    }
}
