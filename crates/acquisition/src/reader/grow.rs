//! A recording that is still made: what the journals gained since they were read.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{Index, Recording, Trust, find, head_of, journals_in, removed};
use crate::journal::{Entry, Head, RECORD};

/// Records that are read of a journal at once.
const AT_ONCE: usize = 4096;

impl Recording {
    /// Takes in what the journals gained since they were read: whether there was anything. Every frame that is acknowledged
    /// counts. A journal that can't be read any more says nothing new.
    pub fn refresh(&mut self) -> bool {
        let known = self.index.frames.len();
        let missing = self.index.heads.len() < self.head().lanes as usize;
        if self.index.frames.is_empty() || missing && self.has_another_lane() {
            self.open_again();
        }
        let gained = (0..self.stems.len()).filter(|lane| self.refresh_lane(*lane).unwrap_or(false)).count();
        gained > 0 || self.index.frames.len() > known
    }

    /// Whether it was ended in order: nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.index.due.is_some() || self.index.ended >= self.head().lanes as usize
    }

    /// Whether there is a journal of it that was not there before.
    fn has_another_lane(&self) -> bool {
        let known: Vec<PathBuf> = (0..self.stems.len()).map(|lane| self.journal(lane)).collect();
        let there = self.directories.iter().filter_map(|directory| journals_in(directory).ok()).flatten();
        let mut others = there.map(|(_, path)| path).filter(|path| !known.contains(path));
        others.any(|path| head_at(&path).is_some_and(|head| head.recording == self.head().recording))
    }

    /// All from the beginning: there are more lanes, or half of what stands in front of the first frame was there.
    fn open_again(&mut self) {
        let Ok((found, _)) = find(&self.directories) else { return };
        let recording = self.head().recording;
        let ours: Vec<_> = found.into_iter().filter(|found| found.head.recording == recording).collect();
        if ours.len() >= self.stems.len() {
            let directories = std::mem::take(&mut self.directories);
            let unreadable = std::mem::take(&mut self.unreadable);
            *self = Recording::of(&ours, unreadable, &directories, Trust::Acknowledged);
        }
    }

    fn refresh_lane(&mut self, lane: usize) -> io::Result<bool> {
        let path = self.journal(lane);
        let file = File::open(path)?;
        let mut news = false;
        loop {
            let entries = read_from(&file, self.taken[lane])?;
            let settled = settled(&entries);
            self.index.follow(lane, &entries[..settled]);
            self.taken[lane] += settled as u64;
            news |= settled > 0;
            if entries.len() < AT_ONCE || settled == 0 {
                return Ok(news);
            }
        }
    }

    /// The journal of a lane.
    pub fn journal(&self, lane: usize) -> PathBuf {
        let name = self.index.heads[lane].journal_name(self.name());
        self.directory(lane).join(name)
    }
}

impl Index {
    fn follow(&mut self, lane: usize, entries: &[Entry]) {
        let removed: BTreeSet<u64> = entries.iter().filter_map(|entry| removed(*entry)).collect();
        if !removed.is_empty() {
            self.forget(lane, &removed);
        }
        self.take(lane, entries, &removed, Some(u64::MAX));
    }

    /// The frames of files that were removed are gone, but for those that are in another lane too.
    fn forget(&mut self, lane: usize, files: &BTreeSet<u64>) {
        let gone = self.frames.iter().filter(|(_, place)| place.lane == lane && files.contains(&place.file));
        let gone: Vec<u64> = gone.map(|(number, _)| *number).collect();
        for number in gone {
            if let Some(copy) = self.copies.get_mut(&number).and_then(Vec::pop) {
                self.frames.insert(number, copy);
            } else {
                self.frames.remove(&number);
                self.removed.insert(number);
            }
        }
    }
}

/// What a journal begins with.
fn head_at(journal: &Path) -> Option<Head> {
    let mut record = [0; RECORD];
    File::open(journal).ok()?.read_exact_at(&mut record, 0).ok()?;
    head_of(&record)
}

/// The records behind the first so many that are whole.
fn read_from(journal: &File, taken: u64) -> io::Result<Vec<Entry>> {
    let mut bytes = vec![0; AT_ONCE * RECORD];
    let mut length = 0;
    loop {
        match journal.read_at(&mut bytes[length..], taken * RECORD as u64 + length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    let records = bytes[..length].chunks_exact(RECORD).zip(taken..);
    Ok(records.map_while(|(record, sequence)| Entry::take(sequence, record)).collect())
}

/// How many of these records can be taken: gaps wait for the block that they are in.
pub(super) fn settled(entries: &[Entry]) -> usize {
    entries.iter().rposition(|entry| !matches!(entry, Entry::Gap { .. })).map_or(0, |last| last + 1)
}
