//! A recording read back: the journals of all lanes united, frame by frame.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::journal::{self, Entry, Head};

/// What must have survived for a frame to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The process may have died: acknowledged frames are there.
    Acknowledged,
    /// The machine may have lost power: durable frames are there.
    Durable,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the lane's head in [`Index::heads`].
    pub lane: usize,
    /// Which file of the lane.
    pub file: u64,
    /// Which frame of the file.
    pub position: u64,
}

/// Which frames there are, and where: pure, from the journals' bytes.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The lanes whose journals belong together.
    pub heads: Vec<Head>,
    /// By frame number.
    pub frames: BTreeMap<u64, Place>,
    /// Lanes that were ended in order.
    pub ended: usize,
}

impl Index {
    /// Unites journals. Those of another recording than the first valid one's are left out.
    pub fn unite<'a>(journals: impl IntoIterator<Item = &'a [u8]>, trust: Trust) -> Self {
        let mut index = Index::default();
        for journal in journals {
            let entries = journal::prefix(journal);
            let Some(&Entry::Head(head)) = entries.first() else { continue };
            if index.heads.first().is_some_and(|first| first.recording != head.recording) {
                continue;
            }
            index.heads.push(head);
            index.add(&entries, trust);
        }
        index
    }

    fn add(&mut self, entries: &[Entry], trust: Trust) {
        let lane = self.heads.len() - 1;
        let removed: BTreeSet<u64> = entries.iter().filter_map(|entry| removed(*entry)).collect();
        let durable = entries.iter().filter_map(|entry| durable(*entry)).max();
        for entry in entries {
            match *entry {
                Entry::Frame { number, file, position, .. } => {
                    let trusted = trust == Trust::Acknowledged || durable.is_some_and(|last| file <= last);
                    if trusted && !removed.contains(&file) {
                        self.frames.insert(number, Place { lane, file, position });
                    }
                }
                Entry::End => self.ended += 1,
                _ => {}
            }
        }
    }

    /// Numbers that are missing below the last frame, as ranges: first and count.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut next = 0;
        for &number in self.frames.keys() {
            if number > next {
                missing.push((next, number - next));
            }
            next = number + 1;
        }
        missing
    }
}

fn removed(entry: Entry) -> Option<u64> {
    if let Entry::Removed { file } = entry { Some(file) } else { None }
}

fn durable(entry: Entry) -> Option<u64> {
    if let Entry::Durable { file } = entry { Some(file) } else { None }
}

/// A recording in mounted directories.
#[derive(Debug)]
pub struct Recording {
    /// Which frames there are.
    pub index: Index,
    /// By lane: the names of its files without number and suffix.
    stems: Vec<PathBuf>,
}

impl Recording {
    /// Finds the journals `<name>.<lane>.journal` in the directories and unites them.
    pub fn open(directories: &[PathBuf], name: &str, trust: Trust) -> io::Result<Self> {
        let mut journals = Vec::new();
        for directory in directories {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if let Some(stem) = stem_of(&path, name) {
                    journals.push((stem, fs::read(&path)?));
                }
            }
        }
        // In the order of lanes, whatever the directories list first.
        journals.sort();
        let index = Index::unite(journals.iter().map(|(_, bytes)| bytes.as_slice()), trust);
        let belongs = |bytes: &[u8]| {
            let head = journal::prefix(bytes).first().copied();
            index.heads.iter().any(|known| Some(Entry::Head(*known)) == head)
        };
        let stems =
            journals.iter().filter(|(_, bytes)| belongs(bytes)).map(|(stem, _)| stem.clone()).collect();
        Ok(Recording { index, stems })
    }

    /// The bytes of a frame; none if it is not there.
    pub fn frame(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(&Place { lane, file, position }) = self.index.frames.get(&number) else { return Ok(None) };
        let Head { frame_size, stride, .. } = self.index.heads[lane];
        let mut name = self.stems[lane].clone().into_os_string();
        name.push(format!(".{file:08}.raw"));
        let mut bytes = vec![0; frame_size as usize];
        File::open(name)?.read_exact_at(&mut bytes, position * stride)?;
        Ok(Some(bytes))
    }
}

/// `directory/name.lane` of a journal of this recording.
fn stem_of(path: &Path, name: &str) -> Option<PathBuf> {
    let file = path.file_name()?.to_str()?;
    let lane = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".journal")?;
    lane.parse::<u64>().ok()?;
    Some(path.with_file_name(format!("{name}.{lane}")))
}
