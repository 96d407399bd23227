//! A recording, as a file: how long it is shown to be while it grows, stands still and ends.

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

/// See the module.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) whole: Arc<RecordingView>,
    pub(crate) recording: u64,
    /// Whom it is shown to, where others than the user who mounts it may read: those who may read its files.
    pub(crate) shown_to: Option<ReadAccess>,
    /// Who looks at its journals: its disks may stand still, and those of others go on.
    pub(crate) looks: Crew,
    /// Who opens it.
    pub(crate) opens: Crew,
    shown: Mutex<Shown>,
    /// When it was recorded: that of its last journal.
    time: Mutex<SystemTime>,
    /// Blocks that can't be read and that were told of.
    told: Mutex<usize>,
    /// Looks in a row at which there was nothing new.
    quiet: AtomicU64,
    /// As long it was at the last look.
    length: AtomicU64,
    /// Journals of it turned up.
    more: AtomicBool,
}

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Whole pages, so that the kernel holds no part of one.
    Growing,
    /// So many bytes: all that there were when nothing had come for long.
    Held(u64),
    /// All: nothing comes any more.
    All,
}

/// A recording that was not ended and has had nothing new for so many looks is not made any more: its recorder died.
const QUIET: u64 = 1200;
const PAGE: u64 = 4096;
/// Requests of one recording that wait for its disks at the same time.
const OPENS: usize = 4;

impl Entry {
    /// Of a recording with this number.
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

    /// Whether there may be something to look at.
    pub(crate) fn is_to_be_looked_at(&self) -> bool {
        let more = self.more.load(Ordering::Relaxed);
        more || !self.is_over() || self.whole.faulted() > *lock(&self.told)
    }

    /// Has the journals in more directories taken in at the next look.
    pub(crate) fn look_in(&self, directories: &[PathBuf]) {
        self.whole.look_in(directories);
        self.more.store(true, Ordering::Relaxed);
    }

    /// Takes in what it gained. What the kernel keeps of it and is not right any more is to be forgotten.
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
        // Who opens a file takes in news too.
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

    /// It never becomes shorter. Of a page in which it ended, the kernel keeps zeroes behind that: it forgets them before it hears
    /// of more, and what it reads anew has all that is there.
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

    /// Whether nothing comes any more.
    pub(crate) fn is_over(&self) -> bool {
        *lock(&self.shown) == Shown::All
    }

    /// How long the file is now, in bytes.
    pub(crate) fn length(&self) -> u64 {
        match *lock(&self.shown) {
            Shown::Growing => whole_pages(self.whole.length()),
            Shown::Held(end) => end,
            Shown::All => self.whole.length(),
        }
    }

    /// When it was recorded, as far as its disks said.
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
