//! Which recordings there are, and what they gain.

use std::{
    collections::BTreeSet,
    fs,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use nilometer_acquisition::{
    reader::{OpenError, Recording, Trust, journals_below, with_below},
    whole::{Extent, Whole},
};

/// A recording, as a file.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) whole: Arc<Whole>,
    recording: u64,
    journals: Vec<PathBuf>,
    /// Blocks that can't be read and that were told of.
    told: Mutex<usize>,
    /// Looks in a row at which there was nothing new.
    quiet: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Catalogue {
    directories: Vec<PathBuf>,
    /// Journals that were seen: of recordings that are shown.
    seen: Mutex<BTreeSet<PathBuf>>,
    entries: RwLock<Vec<Arc<Entry>>>,
    looks: AtomicU64,
}

/// A recording that was not ended and has had nothing new for so many looks is not made any more: its recorder died.
const QUIET: u64 = 1200;
/// At every so many looks, one is for new recordings.
const FOR_NEW: u64 = 20;
/// A file that still grows ends at a page, so that the kernel holds no part of one.
const PAGE: u64 = 4096;

impl Catalogue {
    /// Of these directories, and those in them.
    pub(crate) fn new(directories: &[PathBuf]) -> Result<Self, OpenError> {
        let catalogue = Catalogue {
            directories: directories.to_vec(),
            seen: Mutex::default(),
            entries: RwLock::default(),
            looks: AtomicU64::new(0),
        };
        catalogue.find()?;
        Ok(catalogue)
    }

    fn entries(&self) -> RwLockReadGuard<'_, Vec<Arc<Entry>>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// By its number, from 0 on.
    pub(crate) fn entry(&self, number: usize) -> Option<Arc<Entry>> {
        self.entries().get(number).cloned()
    }

    /// By its name, with its number.
    pub(crate) fn named(&self, name: &str) -> Option<(usize, Arc<Entry>)> {
        let entries = self.entries();
        let (number, entry) = entries.iter().enumerate().find(|(_, entry)| entry.name == name)?;
        Some((number, entry.clone()))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.entries().iter().map(|entry| entry.name.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.entries().iter().filter_map(|entry| entry.whole.faults().first).collect()
    }

    /// Where recordings turned out to be unreadable since this was asked last: their numbers, and ranges of bytes.
    pub(crate) fn news_of_faults(&self) -> Vec<(usize, Range<u64>)> {
        let entries = self.entries().clone();
        let of = |(number, entry): (usize, &Arc<Entry>)| {
            entry.news_of_faults().into_iter().map(move |range| (number, range)).collect::<Vec<_>>()
        };
        entries.iter().enumerate().flat_map(of).collect()
    }

    /// Looks what recordings gained, and now and then for new ones.
    pub(crate) fn look(&self) {
        if self.looks.fetch_add(1, Ordering::Relaxed) % FOR_NEW == FOR_NEW - 1 {
            // A disk that is gone has nothing new.
            drop(self.find());
        }
        let entries = self.entries().clone();
        for entry in &entries {
            entry.look();
        }
    }

    /// Adds recordings that were not shown yet and have something to be shown.
    fn find(&self) -> Result<(), OpenError> {
        let directories = with_below(&self.directories)?;
        let there: BTreeSet<PathBuf> = journals_below(&directories).into_iter().collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if there.is_subset(&seen) {
            return Ok(());
        }
        for recording in Recording::open_each(&directories, Trust::Acknowledged)? {
            let id = recording.head().recording;
            let journals: Vec<_> =
                (0..recording.index.heads.len()).map(|lane| recording.journal(lane)).collect();
            let known = self.entries().iter().any(|entry| entry.recording == id);
            if !known && recording.index.frames.is_empty() {
                continue;
            }
            seen.extend(journals.iter().cloned());
            if !known {
                let whole = Arc::new(Whole::new(recording, Extent::Mark));
                self.add(Entry {
                    name: String::new(),
                    whole,
                    recording: id,
                    journals,
                    told: Mutex::default(),
                    quiet: AtomicU64::new(0),
                });
            }
        }
        Ok(())
    }

    fn add(&self, entry: Entry) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let suffix = entry.whole.format().name();
        let plain = format!("{}.{suffix}", entry.whole.name());
        // Two of one name are told apart by their numbers.
        let taken = entries.iter().any(|other| other.name == plain);
        let name =
            if taken { format!("{}-{:016x}.{suffix}", entry.whole.name(), entry.recording) } else { plain };
        entries.push(Arc::new(Entry { name, ..entry }));
    }
}

impl Entry {
    fn look(&self) {
        if self.is_over() {
            return;
        }
        if self.whole.refresh() {
            self.quiet.store(0, Ordering::Relaxed);
        } else if self.quiet.fetch_add(1, Ordering::Relaxed) + 1 == QUIET {
            self.whole.settle();
        }
    }

    fn news_of_faults(&self) -> Vec<Range<u64>> {
        self.whole.faulted_since(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether nothing comes any more.
    pub(crate) fn is_over(&self) -> bool {
        self.whole.is_over()
    }

    /// How long the file is now.
    pub(crate) fn length(&self) -> u64 {
        let over = self.is_over() || self.quiet.load(Ordering::Relaxed) >= QUIET;
        let length = self.whole.length();
        if over { length } else { length / PAGE * PAGE }
    }

    /// When it was recorded: that of its last journal.
    pub(crate) fn time(&self) -> SystemTime {
        let times = self.journals.iter().filter_map(|path| fs::metadata(path).ok()?.modified().ok());
        times.max().unwrap_or(SystemTime::UNIX_EPOCH)
    }
}
