//! A recording read back: the journals of all lanes united, frame by frame.

mod below;
mod checksums;
mod frames;
mod grow;
mod labels;
mod pieces;
mod placements;
mod recent;

pub use below::{journals_below, with_below};
pub use checksums::Checksums;
pub use frames::FrameReader;
pub(crate) use frames::read_encoded;
pub(crate) use grow::{Look, News};
pub use labels::Numbers;
pub use placements::Placements;
pub(crate) use recent::Recent;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_model::Nanos;
use nilometer_storage::process::BootId;

use crate::{
    Gap, Ranges, Stream,
    instrument::Origin,
    journal::{self, Entry, FrameExtent, Head, RECORD},
    recording_file::{self, PageCache, ReadAccess, RecordingFile},
};
use pieces::Lasting;

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
pub struct FrameLocation {
    /// Index of the lane's head in [`Index::heads`].
    pub lane: usize,
    /// Where in the lane's files.
    pub extent: FrameExtent,
}

impl FrameLocation {
    /// Which file of the lane, or part of its only one.
    pub fn file(&self) -> u64 {
        self.extent.file
    }
}

/// Which frames there are, and where: pure, from the journals' bytes.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The lanes whose journals belong together.
    pub heads: Vec<Head>,
    /// What the frames are made from, if they are simulated and follow from a seed.
    pub origin: Option<Origin>,
    /// What packets its frames are blocks of, if they are.
    pub stream: Option<Stream>,
    /// Packets that are missing, by the block that they are missing in.
    pub gaps: BTreeMap<u64, Vec<Gap>>,
    /// The names of chunks, by lane and file: the number in the last one that was noted, and in the one before. A file has
    /// the last, or that before if the recorder died between noting and renaming.
    pub chunks: BTreeMap<(usize, u64), ChunkNames>,
    /// By frame number.
    pub frames: Placements,
    /// Those that were complete last.
    pub(crate) recent: Recent,
    /// A frame may be in two lanes, if the first failed when it was stored but not yet acknowledged.
    pub copies: BTreeMap<u64, Vec<FrameLocation>>,
    /// Frames that were removed to make room.
    pub removed: Numbers,
    /// By lane: the last of its files that was removed. Older ones were before.
    pub(crate) gone: BTreeMap<usize, u64>,
    /// How many frames the recording was due, if it was ended in order.
    pub due: Option<u64>,
    /// Bytes of the last one, if it is a block of packets and that is known.
    pub last: Option<u32>,
    /// Lanes that were ended in order.
    pub ended: usize,
    /// In which start of which machine it was recorded, if it says so.
    pub boot: Option<BootId>,
}

/// What the name of a chunk may be: by the number in it, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNames {
    /// As noted last.
    pub last: Option<u32>,
    /// As noted before, if ever.
    pub before: Option<Option<u32>>,
}

impl Index {
    /// Unites journals. Those of another recording than the first valid one's are left out.
    pub fn unite<'a>(journals: impl IntoIterator<Item = &'a [u8]>, trust: Trust) -> Self {
        let mut index = Index::default();
        for journal in journals {
            index.join_entries(&journal::prefix(journal), trust);
        }
        index.prune();
        index
    }

    /// What is in another lane is not removed.
    fn prune(&mut self) {
        let Index { frames, removed, .. } = self;
        if !removed.is_empty() {
            for number in frames.numbers(0..u64::MAX) {
                removed.remove(number);
            }
        }
    }

    /// What a lane's journal says behind the first so many records. Frames of files that were removed are gone, and of the
    /// others those that are `lasting` count.
    fn take(&mut self, (lane, before): (usize, u64), entries: &[Entry], removed: &Ranges, lasting: Lasting) {
        if let Some(last) = removed.last() {
            self.gone.insert(lane, last);
        }
        let mut gaps: BTreeMap<u64, Vec<Gap>> = BTreeMap::new();
        for (entry, record) in entries.iter().zip(before..) {
            match *entry {
                Entry::Frame { number, extent, .. } if removed.contains(extent.file) => {
                    self.removed.add(number);
                }
                Entry::Frame { number, extent, due, .. } if lasting.has(extent.file, record) => {
                    self.gaps.extend(gaps.remove_entry(&number));
                    self.recent.add(number, Nanos(due));
                    self.found(number, FrameLocation { lane, extent });
                }
                Entry::Chunk { file, number } => {
                    let before = self.chunks.get(&(lane, file)).map(|names| names.last);
                    self.chunks.insert((lane, file), ChunkNames { last: number, before });
                }
                Entry::Gap { number, gap } => gaps.entry(number).or_default().push(gap),
                Entry::End { due } => {
                    self.ended += 1;
                    self.due = self.due.max(due.map(|due| due.frames));
                    self.last = self.last.or(due.and_then(|due| due.last));
                }
                _ => {}
            }
        }
    }

    fn found(&mut self, number: u64, place: FrameLocation) {
        if let Some(other) = self.frames.insert(number, place) {
            self.copies.entry(number).or_default().push(other);
        }
    }

    /// What a file of frames may be called in a recording of this name, as it should be first.
    pub fn file_names(&self, name: &str, location: FrameLocation) -> Vec<String> {
        let (lane, file) = (location.lane, location.file());
        let head = &self.heads[lane];
        let named = |number: Option<u32>| {
            number.map_or_else(|| head.file_name(name, file), |number| head.chunk_name(name, number))
        };
        let Some(&ChunkNames { last, before }) = self.chunks.get(&(lane, file)) else {
            return vec![named(None)];
        };
        // Not if another chunk has that name meanwhile.
        let taken = |number| self.chunks.iter().any(|((of, _), names)| *of == lane && names.last == number);
        let before = before.filter(|number| number.is_none() || !taken(*number));
        [Some(last), before].into_iter().flatten().map(named).collect()
    }

    /// Which file of a lane a place is in: the same for all that are in one, whichever part of it that is.
    pub fn file_of(&self, location: FrameLocation) -> (usize, u64) {
        let many = self.heads[location.lane].storing.is_many_files();
        (location.lane, if many { location.file() } else { 0 })
    }

    /// Whether the file that a place was in is removed, or overwritten there.
    pub fn is_gone(&self, location: FrameLocation) -> bool {
        self.gone.get(&location.lane).is_some_and(|last| location.file() <= *last)
    }

    /// Every place where a frame is.
    pub fn places(&self, number: u64) -> impl Iterator<Item = FrameLocation> {
        let copies = self.copies.get(&number).into_iter().flatten();
        self.frames.get(number).into_iter().chain(copies.copied())
    }

    /// How many frames there should be, as far as is known: as many as were due, or up to the last that is there.
    pub fn expected(&self) -> u64 {
        let last = [self.frames.last(), self.removed.last()];
        let known = last.into_iter().flatten().max().map_or(0, |last| last + 1);
        self.due.unwrap_or(0).max(known)
    }

    /// The first frame from which on none was removed.
    pub fn first(&self) -> u64 {
        self.removed.last().map_or(0, |last| last + 1)
    }

    /// Numbers that are missing though they should be there, as ranges: first and count. None is missing before the last one
    /// that was removed to make room.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let (mut missing, mut next) = (Vec::new(), self.first());
        for number in self.frames.numbers(next..u64::MAX).chain([self.expected()]) {
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

/// What can't be read, and why: a directory, a journal.
pub type Unreadable = Vec<(PathBuf, io::Error)>;

/// Directories that can't be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A directory is not there, or nothing but this one, which can't be read.
    #[error("{path}: {source}")]
    Directory {
        /// A directory as it was named, or a journal.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No journal.
    #[error("no recording in {directories}: name the directories in which the files *.journal are")]
    NotARecording {
        /// As they were named.
        directories: String,
    },
    /// More than one recording.
    #[error("{first} and {other} are of different recordings: name the directories of one")]
    Several {
        /// A journal.
        first: PathBuf,
        /// One of another recording.
        other: PathBuf,
    },
}

/// A recording in mounted directories.
#[derive(Debug)]
pub struct Recording {
    /// Which frames there are.
    pub index: Index,
    /// Directories and journals that could not be read, and why: frames that only they know are missing.
    pub unreadable: Unreadable,
    /// By lane: its directory, the recording's name and the user to whom its journal belongs.
    stems: Vec<Stem>,
    /// Where it was looked for.
    directories: Vec<PathBuf>,
    /// By lane: how many records of its journal were taken.
    taken: Vec<u64>,
}

impl Recording {
    /// Finds the journals `<name>.<lane>.journal` in the directories and unites them. A directory that is there but can't
    /// be read is a lane that is lost.
    pub fn open(directories: &[PathBuf], trust: Trust) -> Result<Self, OpenError> {
        let (found, mut unreadable) = find(directories)?;
        if found.is_empty() && !unreadable.is_empty() {
            let (path, source) = unreadable.swap_remove(0);
            return Err(OpenError::Directory { path, source });
        }
        check_one(directories, &found)?;
        Ok(Recording::of(&found, unreadable, directories, trust))
    }

    /// The same, where the journals of many recordings may be: each by itself, in the order of their names; and what can't be
    /// read, of whichever recording that is.
    pub fn open_each(directories: &[PathBuf], trust: Trust) -> Result<(Vec<Self>, Unreadable), OpenError> {
        let (found, unreadable) = find(directories)?;
        Ok((Recording::each(found, directories, trust), unreadable))
    }

    /// Of these journals alone, which lie in some of these directories: there the other lanes are looked for. And those of them
    /// that can't be read.
    pub fn open_journals(
        journals: &[PathBuf],
        directories: &[PathBuf],
        trust: Trust,
    ) -> (Vec<Self>, Unreadable) {
        let lane = |path: &PathBuf| parts_of(path).map(|(_, lane)| (lane, path.clone()));
        let (found, unreadable) = read_heads(journals.iter().filter_map(lane));
        (Recording::each(found, directories, trust), unreadable)
    }

    fn each(found: Vec<Found>, directories: &[PathBuf], trust: Trust) -> Vec<Self> {
        let mut by_recording: BTreeMap<(String, u64), Vec<Found>> = BTreeMap::new();
        for found in found {
            let name = parts_of(&found.path).map_or("", |(name, _)| name).to_owned();
            by_recording.entry((name, found.head.recording)).or_default().push(found);
        }
        let each = by_recording.into_values();
        each.map(|found| Recording::of(&found, Vec::new(), directories, trust)).collect()
    }

    fn of(found: &[Found], mut unreadable: Unreadable, directories: &[PathBuf], trust: Trust) -> Self {
        let (mut index, mut taken) = (Index::default(), Vec::new());
        for found in found {
            let (records, read) = index.join_journal(found, trust);
            taken.push(records);
            unreadable.extend(read.err().map(|error| (found.path.clone(), error)));
        }
        index.prune();
        let stems = found.iter().filter_map(Stem::of).collect();
        Recording { index, unreadable, stems, directories: directories.to_vec(), taken }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.stems.first().map_or("", |stem| &stem.name)
    }

    /// Where a lane is.
    pub fn directory(&self, lane: usize) -> &Path {
        &self.stems[lane].directory
    }

    /// What its lanes have in common, and the first of them.
    pub fn head(&self) -> &Head {
        &self.index.heads[0]
    }

    /// The file of frames that a place is in.
    pub fn path(&self, place: FrameLocation) -> PathBuf {
        first_there(self.paths(place))
    }

    /// What that file may be called, as it should be first.
    pub(crate) fn paths(&self, place: FrameLocation) -> Vec<PathBuf> {
        let Stem { directory, name, .. } = &self.stems[place.lane];
        let names = self.index.file_names(name, place).into_iter();
        names.map(|name| directory.join(name)).collect()
    }

    /// The user to whom the journal of a lane belongs.
    pub(crate) fn user(&self, lane: usize) -> u32 {
        self.stems[lane].access.user
    }

    /// Who may read the journals of all lanes.
    pub(crate) fn access(&self) -> ReadAccess {
        let each = self.stems.iter().map(|stem| stem.access);
        each.reduce(ReadAccess::and).expect("a recording has a lane")
    }

    /// Opens the file of frames that a place is in.
    pub(crate) fn open_frames(&self, place: FrameLocation) -> io::Result<RecordingFile> {
        recording_file::open_of(&self.path(place), self.user(place.lane), PageCache::Through)
    }
}

/// Of names that a file may have, of which there is at least one: that which is there, or else the first.
pub(crate) fn first_there(mut paths: Vec<PathBuf>) -> PathBuf {
    let there =
        if paths.len() > 1 { paths.iter().position(|path| fs::symlink_metadata(path).is_ok()) } else { None };
    paths.swap_remove(there.unwrap_or(0))
}

/// A journal that begins with a head.
#[derive(Debug)]
struct Found {
    lane: u64,
    path: PathBuf,
    head: Head,
    access: ReadAccess,
}

impl Found {
    /// None if it does not begin with one.
    fn read(lane: u64, path: PathBuf) -> io::Result<Option<Self>> {
        let RecordingFile { file, access } = recording_file::open(&path)?;
        let mut record = [0; RECORD];
        match file.read_exact_at(&mut record, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let Some(head) = Head::read(&record) else { return Ok(None) };
        head.check()?;
        Ok(Some(Found { lane, path, head, access }))
    }
}

/// What a lane's files have in common.
#[derive(Debug)]
struct Stem {
    directory: PathBuf,
    name: String,
    /// Who may read its journal.
    access: ReadAccess,
}

impl Stem {
    fn of(found: &Found) -> Option<Self> {
        let (name, _) = parts_of(&found.path)?;
        let directory = found.path.parent()?.to_owned();
        Some(Stem { directory, name: name.to_owned(), access: found.access })
    }
}

/// The journals that are there, in the order of lanes, and what could not be read. A directory that is there but can't be read
/// is a lane that is lost.
fn find(directories: &[PathBuf]) -> Result<(Vec<Found>, Unreadable), OpenError> {
    let (mut journals, mut unreadable) = (Vec::new(), Vec::new());
    for directory in directories {
        match journals_in(directory) {
            Ok(paths) => journals.extend(paths),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Directory { path: directory.clone(), source });
            }
            Err(error) => unreadable.push((directory.clone(), error)),
        }
    }
    let (found, more) = read_heads(journals.into_iter());
    unreadable.extend(more);
    Ok((found, unreadable))
}

/// Those of the journals that begin with a head, in the order of lanes, and those that can't be read.
fn read_heads(journals: impl Iterator<Item = (u64, PathBuf)>) -> (Vec<Found>, Unreadable) {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for (lane, path) in journals {
        match Found::read(lane, path.clone()) {
            Ok(read) => found.extend(read),
            Err(error) => unreadable.push((path, error)),
        }
    }
    in_order(&mut found);
    (found, unreadable)
}

/// In the order of lanes, whatever the directories list first; a directory that was named twice counts once.
fn in_order(found: &mut Vec<Found>) {
    found.sort_by(|a, b| (a.lane, &a.path).cmp(&(b.lane, &b.path)));
    found.dedup_by(|a, b| a.head == b.head);
}

fn check_one(directories: &[PathBuf], found: &[Found]) -> Result<(), OpenError> {
    let Some(first) = found.first() else {
        let names: Vec<_> = directories.iter().map(|path| path.display().to_string()).collect();
        return Err(OpenError::NotARecording { directories: names.join(", ") });
    };
    match found.iter().find(|other| other.head.recording != first.head.recording) {
        Some(other) => Err(OpenError::Several { first: first.path.clone(), other: other.path.clone() }),
        None => Ok(()),
    }
}

/// Lane and path of each journal `<name>.<lane>.journal` in a directory.
fn journals_in(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    recording_file::each_name(directory, |name, _| {
        let path = directory.join(name);
        journals.extend(parts_of(&path).map(|(_, lane)| lane).map(|lane| (lane, path)));
    })?;
    Ok(journals)
}

/// The recording's name and the lane, from a journal's path.
fn parts_of(path: &Path) -> Option<(&str, u64)> {
    let (name, lane) = path.file_name()?.to_str()?.strip_suffix(".journal")?.rsplit_once('.')?;
    Some((name, lane.parse().ok()?))
}
