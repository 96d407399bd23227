//! The recordings in the mounted directories.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use nilometer_recording::{
    foreign::foreign_sources,
    reader::{OpenError, Recording, Trust, Unreadable, journals_below, with_below},
    view::{Extent, PartLimitError, PartLimits, RecordingView},
};

use crate::{MountError, MountReaders, crew::Crew, entry::Entry};

/// The list of recordings, updated while it is mounted.
#[derive(Debug)]
pub(crate) struct Catalogue {
    directories: Vec<PathBuf>,
    journals: Mutex<Journals>,
    entries: RwLock<Entries>,
    looks: AtomicU64,
    /// The thread that looks for new recordings: a disk may hang.
    finder: Crew,
    /// Recordings whose faults have been reported.
    told: Mutex<BTreeSet<usize>>,
    /// Unreadable journals that have not been reported yet, and why.
    unreadable: Mutex<Vec<String>>,
    readers: MountReaders,
    /// The part of each recording to show.
    limits: PartLimits,
    /// True once a recording without the part was reported. One in progress may get it.
    told_outside: AtomicBool,
}

/// The files, in the order in which they were found, with indices by name and by recording.
#[derive(Debug, Default)]
struct Entries {
    all: Vec<Arc<Entry>>,
    by_name: BTreeMap<String, usize>,
    by_recording: BTreeMap<u64, usize>,
}

impl Entries {
    fn push(&mut self, entry: Arc<Entry>) {
        let number = self.all.len();
        self.by_name.entry(entry.name.clone()).or_insert(number);
        self.by_recording.entry(entry.recording).or_insert(number);
        self.all.push(entry);
    }
}

/// The journals seen so far.
#[derive(Debug, Default)]
struct Journals {
    shown: BTreeSet<PathBuf>,
    /// Journals without a recording to show, with their state at that time.
    passed_over: BTreeMap<PathBuf, State>,
}

/// Length of a journal in bytes, and its modification time.
type State = Option<(u64, SystemTime)>;

/// Makes the kernel drop a cached range of a file.
pub(crate) type Forget = Arc<dyn Fn(usize, Range<u64>) + Send + Sync>;

/// One in this many looks is for new recordings.
const FOR_NEW: u64 = 20;

impl Catalogue {
    /// Finds the recordings in these directories and their subdirectories.
    pub(crate) fn new(
        directories: &[PathBuf],
        limits: PartLimits,
        readers: MountReaders,
    ) -> Result<Self, MountError> {
        let catalogue = Catalogue {
            directories: directories.to_vec(),
            journals: Mutex::default(),
            entries: RwLock::default(),
            looks: AtomicU64::new(0),
            finder: Crew::new(1),
            told: Mutex::default(),
            unreadable: Mutex::default(),
            readers,
            limits,
            told_outside: AtomicBool::new(false),
        };
        let outside = catalogue.find()?;
        outside.map_or(Ok(()), Err)?;
        for source in foreign_sources(directories)? {
            // They do not grow, so one look is enough.
            catalogue.show(source.open()?, &[])?;
        }
        Ok(catalogue)
    }

    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file with this number, from 0.
    pub(crate) fn entry(&self, number: usize) -> Option<Arc<Entry>> {
        self.entries().all.get(number).cloned()
    }

    /// The file with this name, and its number.
    pub(crate) fn named(&self, name: &str) -> Option<(usize, Arc<Entry>)> {
        let entries = self.entries();
        let number = *entries.by_name.get(name)?;
        Some((number, entries.all[number].clone()))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names_from(0, usize::MAX)
    }

    /// At most `count` names, beginning with the entry `number`.
    pub(crate) fn names_from(&self, number: usize, count: usize) -> Vec<String> {
        self.entries().all.iter().skip(number).take(count).map(|entry| entry.name.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().all.is_empty()
    }

    /// Unreadable journals, and the first fault of each recording, if not reported before.
    pub(crate) fn news_of_faults(&self) -> Vec<String> {
        let first = |(number, entry): (usize, &Arc<Entry>)| Some((number, entry.whole.faults().first?));
        let found: Vec<_> = self.entries().all.iter().enumerate().filter_map(first).collect();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let unreadable = std::mem::take(&mut *self.unreadable());
        let first = found.into_iter().filter_map(|(number, fault)| told.insert(number).then_some(fault));
        unreadable.into_iter().chain(first).collect()
    }

    /// Starts looks for growth of recordings, and from time to time for new ones. It waits for none of them:
    /// a look that has not returned is waiting for a disk.
    pub(crate) fn look(self: &Arc<Self>, forget: &Forget) {
        if self.looks.fetch_add(1, Ordering::Relaxed) % FOR_NEW == FOR_NEW - 1 && self.finder.is_done() {
            let catalogue = self.clone();
            // A missing disk has no news.
            self.finder.ask(Box::new(move || catalogue.find_more()));
        }
        for (number, entry) in self.entries().all.iter().enumerate() {
            if entry.is_to_be_looked_at() && entry.looks.is_done() {
                let looked = entry.clone();
                let forget = forget.clone();
                entry.looks.ask(Box::new(move || looked.look(&|range| forget(number, range))));
            }
        }
    }

    /// Adds recordings and journals as [`Catalogue::find`] does, and reports the first recording without the part.
    fn find_more(&self) {
        if let Ok(Some(outside)) = self.find()
            && !self.told_outside.swap(true, Ordering::Relaxed)
        {
            self.unreadable().push(outside.to_string());
        }
    }

    /// Adds recordings that are new and have content, and new journals of known ones. Returns why the first
    /// recording without the part has none.
    fn find(&self) -> Result<Option<PartLimitError>, OpenError> {
        let directories = with_below(&self.directories)?;
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let news = journals.news(journals_below(&directories));
        let paths: Vec<_> = news.keys().cloned().collect();
        journals.passed_over.extend(news);
        let (recordings, unreadable) = Recording::open_journals(&paths, &directories, Trust::Acknowledged);
        self.note(&unreadable);
        let mut outside = None;
        for recording in recordings {
            self.note(&recording.unreadable);
            let own: Vec<_> = (0..recording.index.heads.len()).map(|lane| recording.journal(lane)).collect();
            match self.show(recording, &own) {
                Ok(true) => journals.shown.extend(own),
                Ok(false) => {}
                Err(error) => outside = outside.or(Some(error)),
            }
        }
        Ok(outside)
    }

    fn unreadable(&self) -> MutexGuard<'_, Vec<String>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, unreadable: &Unreadable) {
        let told = |(path, error): &(PathBuf, io::Error)| format!("{}: {error}", path.display());
        self.unreadable().extend(unreadable.iter().map(told));
    }

    /// Shows a recording with these journals. Returns false if it has no content yet.
    fn show(&self, recording: Recording, journals: &[PathBuf]) -> Result<bool, PartLimitError> {
        let id = recording.head().recording;
        if let Some(entry) = self.of_recording(id) {
            let directories: Vec<_> =
                journals.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
            entry.look_in(&directories);
            return Ok(true);
        }
        let has_frames = !recording.index.frames.is_empty();
        if has_frames {
            let whole = RecordingView::new(recording, Extent::Mark).limited(&self.limits)?;
            self.add(Arc::new(whole), id);
        }
        Ok(has_frames)
    }

    fn of_recording(&self, recording: u64) -> Option<Arc<Entry>> {
        let entries = self.entries();
        entries.by_recording.get(&recording).map(|number| entries.all[*number].clone())
    }

    fn add(&self, whole: Arc<RecordingView>, recording: u64) {
        let suffix = whole.format().name();
        let plain = format!("{}.{suffix}", whole.name());
        // Recordings with the same name get their numbers as a suffix.
        let taken = self.named(&plain).is_some();
        let name = if taken { format!("{}-{recording:016x}.{suffix}", whole.name()) } else { plain };
        // This reads from its disks before a reader has to wait for them.
        let entry = Arc::new(Entry::new(name, whole, recording, self.readers));
        self.entries.write().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}

impl Journals {
    /// Journals that are not shown, and that are new or have changed since the last look.
    fn news(&self, there: Vec<PathBuf>) -> BTreeMap<PathBuf, State> {
        let others = there.into_iter().filter(|path| !self.shown.contains(path));
        let states = others.map(|path| (state(&path), path)).map(|(state, path)| (path, state));
        states.filter(|(path, state)| self.passed_over.get(path) != Some(state)).collect()
    }
}

fn state(journal: &Path) -> State {
    let status = fs::symlink_metadata(journal).ok()?;
    Some((status.len(), status.modified().ok()?))
}

#[cfg(test)]
mod tests;
