//! The files of a recording that are open, the last ones that were read.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    num::NonZero,
    os::unix::fs::FileExt,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{Advice, fadvise};

use super::Whole;
use crate::reader::Place;

/// How many are kept open.
const OPEN: usize = 64;
/// The kernel heeds so much of what it is asked for at once, unless it was set to less; the rest it forgets.
const ASKED: u64 = 128 << 10;

type Key = (usize, u64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Mutex<VecDeque<(Key, Arc<File>)>>,
}

impl Files {
    pub(super) fn new() -> Self {
        Files::default()
    }

    /// Reads all of `into` from the file of a place, at this offset of it.
    pub(super) fn read(&self, whole: &Whole, place: Place, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file(whole, place)?.read_exact_at(into, at)
    }

    /// Has the kernel read so much from there, without waiting for it.
    pub(super) fn fetch(&self, whole: &Whole, place: Place, at: u64, length: u64) -> io::Result<()> {
        let file = self.file(whole, place)?;
        for begin in (at..at + length).step_by(ASKED as usize) {
            let length = ASKED.min(at + length - begin);
            fadvise(&file, begin, NonZero::new(length), Advice::WillNeed)?;
        }
        Ok(())
    }

    fn file(&self, whole: &Whole, place: Place) -> io::Result<Arc<File>> {
        let key = (place.lane, place.file);
        match self.opened(key) {
            Some(file) => Ok(file),
            None => Ok(self.keep(key, open(whole, place)?)),
        }
    }

    fn opened(&self, key: Key) -> Option<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|(kept, _)| *kept == key)?;
        // The one that was used last stands last.
        let kept = open.remove(at)?;
        let file = kept.1.clone();
        open.push_back(kept);
        Some(file)
    }

    fn keep(&self, key: Key, file: File) -> Arc<File> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == OPEN {
            open.pop_front();
        }
        let file = Arc::new(file);
        open.push_back((key, file.clone()));
        file
    }
}

/// Opens the file of a place. In a recording that is still made, a file may be renamed and another get its name: then the
/// journals say so before.
fn open(whole: &Whole, place: Place) -> io::Result<File> {
    let mut path = whole.state().recording.path(place);
    loop {
        let file = File::open(&path);
        if whole.is_over() || !whole.refresh() {
            return file;
        }
        let now = whole.state().recording.path(place);
        if now == path {
            return file;
        }
        path = now;
    }
}
