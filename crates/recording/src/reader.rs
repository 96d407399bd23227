//! A recording for reading: the united journals of all lanes, frame by frame.

mod below;
mod checksums;
mod each;
mod frame_location;
mod frames;
mod grow;
mod index;
mod labels;
mod pieces;
mod placements;
mod recent;

pub use below::{journals_below, unreadable_below, with_below};
pub use checksums::{Checksums, FrameRecord};
pub use each::RecordingsFound;
pub use frame_location::FrameLocation;
pub use frames::FrameReader;
pub(crate) use frames::read_encoded;
pub(crate) use grow::{Look, News};
pub use index::Change;
pub use index::{ChunkNames, Index, Trust};
pub use labels::Numbers;
pub use placements::Placements;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::geteuid;

use crate::{
    foreign_facts::{ForeignFacts, ForeignLane},
    journal::{Head, RECORD},
    recording_file::{PageCache, ReadAccess, RecordingFile},
    recording_storage::{MountedDirectories, RecordingStorage},
};

/// Directories and journals that can't be read, with the errors.
pub type Unreadable = Vec<(PathBuf, io::Error)>;

/// The reason why directories can't be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A directory does not exist, or the only source of the recording can't be read.
    #[error("{path}: {source}")]
    Directory {
        /// A directory as the user named it, or a journal.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The directories hold no journal.
    #[error("no recording in {directories}: name the directories in which the files *.journal are")]
    NotARecording {
        /// The directories as the user named them.
        directories: String,
    },
    /// All journals are shorter than a record.
    #[error(
        "{journal}: the recorder ended before it wrote the first record of the journal, or begins just now: nothing was \
         recorded, and nothing is lost"
    )]
    Empty {
        /// One of the journals.
        journal: PathBuf,
    },
    /// A file without a journal that is no recording, or a broken one.
    #[error("{path}: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The directories hold more than one recording.
    #[error("{first} and {other} are of different recordings: name the directories of one")]
    Several {
        /// A journal of one recording.
        first: PathBuf,
        /// A journal of another recording.
        other: PathBuf,
    },
}

/// A recording in directories, on any storage.
#[derive(Debug)]
pub struct Recording {
    /// The frames of the recording, with their positions.
    pub index: Index,
    /// Directories and journals that could not be read, with the errors. Frames that only these list are
    /// missing.
    pub unreadable: Unreadable,
    /// For each lane its directory, the recording's name and the owner of its journal.
    stems: Vec<Stem>,
    /// Storage that opens its files.
    storage: Arc<dyn RecordingStorage>,
    /// Directories searched for it. All recordings found there share one list.
    directories: Arc<[PathBuf]>,
    /// The known facts if it has no journal. `None` if it has one.
    foreign: Option<ForeignFacts>,
}

impl Recording {
    /// Joins an index that a reader made from the headers of files without a journal. `lanes` are the files of
    /// the index's lanes, in the same order.
    pub(crate) fn without_journal(
        index: Index,
        name: &str,
        lanes: Vec<ForeignLane>,
        storage: Arc<dyn RecordingStorage>,
        foreign: ForeignFacts,
    ) -> Self {
        let stem = |lane: ForeignLane| {
            let ForeignLane { directory, files, access } = lane;
            Stem { directory, name: name.to_owned(), access, files }
        };
        Recording {
            index,
            unreadable: Unreadable::new(),
            stems: lanes.into_iter().map(stem).collect(),
            storage,
            directories: Arc::default(),
            foreign: Some(foreign),
        }
    }

    /// The known facts of a recording without a journal. `None` if it has a journal.
    pub fn foreign(&self) -> Option<&ForeignFacts> {
        self.foreign.as_ref()
    }

    /// The files of a lane of a recording without a journal; empty if it has a journal.
    pub fn foreign_files(&self, lane: usize) -> &[PathBuf] {
        &self.stems[lane].files
    }

    /// Finds the journals `<name>.<lane>.journal` in the directories and unites them.
    ///
    /// A directory that exists but can't be read counts as a lost lane.
    pub fn open(directories: &[PathBuf], trust: Trust) -> Result<Self, OpenError> {
        Recording::open_on(Arc::new(MountedDirectories), directories, trust)
    }

    /// Does the same in directories of this storage.
    pub fn open_on(
        storage: Arc<dyn RecordingStorage>,
        directories: &[PathBuf],
        trust: Trust,
    ) -> Result<Self, OpenError> {
        let (found, mut unreadable) = find(&*storage, directories)?;
        if found.is_empty() && !unreadable.is_empty() {
            let (path, source) = unreadable.swap_remove(0);
            return Err(OpenError::Directory { path, source });
        }
        check_one(&*storage, directories, &found)?;
        Ok(Recording::of(storage, &found, unreadable, directories.into(), trust))
    }

    /// Finds the journals of any number of recordings in the directories. The iterator reads each recording
    /// when the caller asks for it. The second value lists directories and journals that can't be read, of any
    /// recording.
    pub fn open_each(
        directories: &[PathBuf],
        trust: Trust,
    ) -> Result<(RecordingsFound, Unreadable), OpenError> {
        Recording::open_each_on(
            &(Arc::new(MountedDirectories) as Arc<dyn RecordingStorage>),
            directories,
            trust,
        )
    }

    /// Does the same in directories of this storage.
    pub fn open_each_on(
        storage: &Arc<dyn RecordingStorage>,
        directories: &[PathBuf],
        trust: Trust,
    ) -> Result<(RecordingsFound, Unreadable), OpenError> {
        let (found, unreadable) = find(&**storage, directories)?;
        Ok((RecordingsFound::of(storage, found, directories, trust), unreadable))
    }

    /// Opens the recordings of these journals. Searches `directories`, which hold the journals, for other
    /// lanes. The second value lists journals that can't be read.
    pub fn open_journals(
        journals: &[PathBuf],
        directories: &[PathBuf],
        trust: Trust,
    ) -> (RecordingsFound, Unreadable) {
        let lane = |path: &PathBuf| parts_of(path).map(|(_, lane)| (lane, path.clone()));
        let (found, unreadable) = read_heads(&MountedDirectories, journals.iter().filter_map(lane));
        let storage: Arc<dyn RecordingStorage> = Arc::new(MountedDirectories);
        (RecordingsFound::of(&storage, found, directories, trust), unreadable)
    }

    fn of(
        storage: Arc<dyn RecordingStorage>,
        found: &[Found],
        mut unreadable: Unreadable,
        directories: Arc<[PathBuf]>,
        trust: Trust,
    ) -> Self {
        let mut index = Index::default();
        for found in found {
            let read = index.join_journal(&*storage, found, trust);
            unreadable.extend(read.err().map(|error| (found.path.clone(), error)));
        }
        index.prune();
        let stems = found.iter().filter_map(Stem::of).collect();
        Recording { index, unreadable, stems, storage, directories, foreign: None }
    }

    /// Opens the recording again from the present state of its journals, with this trust.
    ///
    /// # Errors
    /// If a directory or the recording no longer exists.
    pub fn opened_anew(&self, trust: Trust) -> Result<Self, OpenError> {
        let (mut found, unreadable) = find(&*self.storage, &self.directories)?;
        found.retain(|found| found.head.recording == self.head().recording);
        check_one(&*self.storage, &self.directories, &found)?;
        Ok(Recording::of(self.storage.clone(), &found, unreadable, self.directories.clone(), trust))
    }

    /// The recording's name.
    pub fn name(&self) -> &str {
        self.stems.first().map_or("", |stem| &stem.name)
    }

    /// The directory of a lane.
    pub fn directory(&self, lane: usize) -> &Path {
        &self.stems[lane].directory
    }

    /// The first lane's head. Its recording-wide properties apply to all lanes.
    pub fn head(&self) -> &Head {
        &self.index.heads[0]
    }

    /// The file of frames at a location.
    pub fn path(&self, place: FrameLocation) -> PathBuf {
        first_there(&*self.storage, self.paths(place))
    }

    /// Possible paths of that file, the most likely first.
    pub(crate) fn paths(&self, place: FrameLocation) -> Vec<PathBuf> {
        let Stem { directory, name, files, .. } = &self.stems[place.lane];
        if let Some(file) = files.get(place.file() as usize) {
            return vec![file.clone()];
        }
        let names = self.index.file_names(name, place).into_iter();
        names.map(|name| directory.join(name)).collect()
    }

    /// The owner of a lane's journal.
    pub(crate) fn user(&self, lane: usize) -> u32 {
        // Without a journal, nobody else's text names the files: the reader found them where the user said.
        if self.foreign.is_some() { geteuid().as_raw() } else { self.stems[lane].access.user }
    }

    /// The users who may read the journals of all lanes.
    pub(crate) fn access(&self) -> ReadAccess {
        let each = self.stems.iter().map(|stem| stem.access);
        each.reduce(ReadAccess::and).expect("a recording has a lane")
    }

    /// Opens the file of frames at a location.
    pub(crate) fn open_frames(&self, place: FrameLocation) -> io::Result<RecordingFile> {
        self.storage.open_of(&self.path(place), self.user(place.lane), PageCache::Through)
    }

    /// The storage that opens its files.
    pub(crate) fn storage(&self) -> &Arc<dyn RecordingStorage> {
        &self.storage
    }
}

/// Returns the first path that exists, or else the first. Give it at least one path.
pub(crate) fn first_there(storage: &dyn RecordingStorage, mut paths: Vec<PathBuf>) -> PathBuf {
    let there = if paths.len() > 1 { paths.iter().position(|path| storage.is_there(path)) } else { None };
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
    /// Reads a journal's head. `None` if the journal does not begin with one.
    ///
    /// # Errors
    /// If it can't be read, is of a version that this program does not read, or has numbers beyond their limits.
    fn read(storage: &dyn RecordingStorage, lane: u64, path: PathBuf) -> io::Result<Option<Self>> {
        let RecordingFile { file, access } = storage.open(&path)?;
        let mut record = [0; RECORD];
        match file.read_exact_at(&mut record, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let Some(head) = Head::read(&record)? else { return Ok(None) };
        head.check()?;
        Ok(Some(Found { lane, path, head, access }))
    }
}

/// Properties that a lane's files share.
#[derive(Debug)]
struct Stem {
    directory: PathBuf,
    name: String,
    /// The users who may read its journal.
    access: ReadAccess,
    /// The files of frames, if no journal names them; else empty.
    files: Vec<PathBuf>,
}

impl Stem {
    fn of(found: &Found) -> Option<Self> {
        let (name, _) = parts_of(&found.path)?;
        let directory = found.path.parent()?.to_owned();
        Some(Stem { directory, name: name.to_owned(), access: found.access, files: Vec::new() })
    }
}

/// Finds the journals, sorted by lane, and lists those that can't be read. A directory that exists but can't be
/// read counts as a lost lane.
fn find(
    storage: &dyn RecordingStorage,
    directories: &[PathBuf],
) -> Result<(Vec<Found>, Unreadable), OpenError> {
    let mut journals = Vec::new();
    let mut unreadable = Vec::new();
    for directory in directories {
        match journals_in(storage, directory) {
            Ok(paths) => journals.extend(paths),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Directory { path: directory.clone(), source });
            }
            Err(error) => unreadable.push((directory.clone(), error)),
        }
    }
    let (found, more) = read_heads(storage, journals.into_iter());
    unreadable.extend(more);
    Ok((found, unreadable))
}

/// Reads the journals that begin with a head, sorted by lane, and lists those that can't be read.
fn read_heads(
    storage: &dyn RecordingStorage,
    journals: impl Iterator<Item = (u64, PathBuf)>,
) -> (Vec<Found>, Unreadable) {
    let mut found = Vec::new();
    let mut unreadable = Vec::new();
    for (lane, path) in journals {
        match Found::read(storage, lane, path.clone()) {
            Ok(read) => found.extend(read),
            Err(error) => unreadable.push((path, error)),
        }
    }
    in_order(&mut found);
    (found, unreadable)
}

/// Sorts journals by lane, independent of the order of directories. A directory that the user named twice
/// counts once.
fn in_order(found: &mut Vec<Found>) {
    found.sort_by(|a, b| (a.lane, &a.path).cmp(&(b.lane, &b.path)));
    found.dedup_by(|a, b| a.head == b.head);
}

fn check_one(
    storage: &dyn RecordingStorage,
    directories: &[PathBuf],
    found: &[Found],
) -> Result<(), OpenError> {
    let Some(first) = found.first() else {
        if let Some(journal) = empty_journal(storage, directories) {
            return Err(OpenError::Empty { journal });
        }
        let names: Vec<_> = directories.iter().map(|path| path.display().to_string()).collect();
        return Err(OpenError::NotARecording { directories: names.join(", ") });
    };
    match found.iter().find(|other| other.head.recording != first.head.recording) {
        Some(other) => Err(OpenError::Several { first: first.path.clone(), other: other.path.clone() }),
        None => Ok(()),
    }
}

/// Returns one of the journals if all are shorter than a record.
fn empty_journal(storage: &dyn RecordingStorage, directories: &[PathBuf]) -> Option<PathBuf> {
    let journals: Vec<PathBuf> = directories
        .iter()
        .filter_map(|directory| journals_in(storage, directory).ok())
        .flatten()
        .map(|(_, path)| path)
        .collect();
    let is_empty = |path: &PathBuf| {
        let read = storage.open(path).and_then(|opened| opened.file.read_exact_at(&mut [0; RECORD], 0));
        read.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    };
    journals.iter().all(is_empty).then(|| journals.first().cloned()).flatten()
}

/// Lane and path of each journal `<name>.<lane>.journal` in a directory.
fn journals_in(storage: &dyn RecordingStorage, directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    storage.each_name(directory, &mut |name, _| {
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
