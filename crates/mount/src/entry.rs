//! A recording as a file, and the length shown while it grows, stands still and ends.

use std::{
    fs,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use nilometer_recording::{recording_file::ReadAccess, view::RecordingView};

use crate::{MountReaders, crew::Crew};

/// A recording as a file.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) whole: Arc<RecordingView>,
    pub(crate) recording: u64,
    /// Permissions of the file if other users than the mounting one may read: those of the recording's files.
    pub(crate) shown_to: Option<ReadAccess>,
    /// The thread that reads its journals. It is separate, because its disks may hang while others work.
    pub(crate) looks: Crew,
    /// The threads that open it.
    pub(crate) opens: Crew,
    shown: Mutex<Shown>,
    /// When it was recorded: the time of its last journal.
    time: Mutex<SystemTime>,
    /// Number of unreadable blocks that have been reported.
    told: Mutex<usize>,
    /// Number of consecutive looks without news.
    quiet: AtomicU64,
    /// Its length at the last look.
    length: AtomicU64,
    /// True if new journals of it were found.
    more: AtomicBool,
}

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Whole pages, so that the kernel never caches part of one.
    Growing,
    /// This many bytes: all that there were after a long time without news.
    Held(u64),
    /// All of it: the recording is over.
    All,
}

/// A recorder counts as dead if its recording was not ended and had no news for this many looks.
const QUIET: u64 = 1200;
const PAGE: u64 = 4096;
/// Number of open requests of one recording that may wait for its disks at the same time.
const OPENS: usize = 4;

impl Entry {
    /// Makes the file of a recording with this number.
    pub(crate) fn new(
        name: String,
        whole: Arc<RecordingView>,
        recording: u64,
        readers: MountReaders,
    ) -> Self {
        let shown_to = (readers == MountReaders::All).then(|| whole.show_to_readers());
        let shown = if whole.is_over() { Shown::All } else { Shown::Growing };
        let entry = Entry {
            name,
            recording,
            shown_to,
            looks: Crew::new(1),
            opens: Crew::new(OPENS),
            shown: Mutex::new(shown),
            time: Mutex::new(SystemTime::UNIX_EPOCH),
            told: Mutex::default(),
            quiet: AtomicU64::new(0),
            length: AtomicU64::new(whole.length()),
            more: AtomicBool::new(false),
            whole,
        };
        entry.note_time();
        entry
    }

    /// Returns true if there may be news.
    pub(crate) fn is_to_be_looked_at(&self) -> bool {
        let more = self.more.load(Ordering::Relaxed);
        more || !self.is_over() || self.whole.faulted() > *lock(&self.told)
    }

    /// Includes journals in more directories at the next look.
    pub(crate) fn look_in(&self, directories: &[PathBuf]) {
        self.whole.look_in(directories);
        self.more.store(true, Ordering::Relaxed);
    }

    /// Reads the news of a recording, and drops outdated parts of it from the kernel's cache.
    pub(crate) fn look(&self, forget: &impl Fn(Range<u64>)) {
        let more = self.more.swap(false, Ordering::Relaxed);
        if more || !self.is_over() {
            self.refresh(forget);
        }
        if more {
            forget(0..i64::MAX as u64);
        }
        let faulted = self.whole.faulted_since(&mut lock(&self.told));
        faulted.into_iter().for_each(forget);
    }

    fn refresh(&self, forget: &impl Fn(Range<u64>)) {
        let news = self.whole.refresh();
        // Opening a file reads news too.
        let length = self.whole.length();
        if self.length.swap(length, Ordering::Relaxed) != length || news {
            self.quiet.store(0, Ordering::Relaxed);
            self.note_time();
        } else if self.quiet.fetch_add(1, Ordering::Relaxed) + 1 == QUIET {
            self.whole.settle();
            self.show(Shown::Held(self.whole.length()), forget);
        }
        let held = *lock(&self.shown);
        if self.whole.is_over() {
            self.show(Shown::All, forget);
        } else if matches!(held, Shown::Held(held) if whole_pages(self.whole.length()) > held) {
            self.show(Shown::Growing, forget);
        }
    }

    /// Changes the shown extent, which never becomes shorter. The kernel caches zeroes after the end in the
    /// last page. It drops that page before it learns about more bytes, and reads it anew.
    fn show(&self, next: Shown, forget: &impl Fn(Range<u64>)) {
        let before = *lock(&self.shown);
        if let Shown::Held(end) = before
            && end % PAGE != 0
            && self.whole.length() > end
        {
            forget(whole_pages(end)..end.next_multiple_of(PAGE));
        }
        *lock(&self.shown) = next;
    }

    /// Returns true if the recording is over.
    pub(crate) fn is_over(&self) -> bool {
        *lock(&self.shown) == Shown::All
    }

    /// The current length of the file in bytes.
    pub(crate) fn length(&self) -> u64 {
        match *lock(&self.shown) {
            Shown::Growing => whole_pages(self.whole.length()),
            Shown::Held(end) => end,
            Shown::All => self.whole.length(),
        }
    }

    /// When it was recorded, according to its disks.
    pub(crate) fn time(&self) -> SystemTime {
        *lock(&self.time)
    }

    fn note_time(&self) {
        let journals = self.whole.journals();
        let times = journals.iter().filter_map(|path| fs::symlink_metadata(path).ok()?.modified().ok());
        if let Some(last) = times.max() {
            *lock(&self.time) = last;
        }
    }
}

fn whole_pages(length: u64) -> u64 {
    length / PAGE * PAGE
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
