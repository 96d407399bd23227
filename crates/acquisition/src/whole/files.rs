//! The files of a recording that are open, the last ones that were read.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use nilometer_storage::buffer::ALIGNMENT;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::Whole;
use crate::reader::Place;

/// How many are kept open.
const OPEN: usize = 64;

/// Whether what is read stays in the kernel's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Through,
    Past,
}

/// Lane, file of it, and how it is read.
type Key = (usize, u64, Cache);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Mutex<VecDeque<(Key, Arc<File>)>>,
}

impl Cache {
    fn open(self, path: &Path) -> io::Result<File> {
        if self == Cache::Through {
            return File::open(path);
        }
        match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT, Mode::empty()) {
            Err(Errno::INVAL) => File::open(path),
            opened => Ok(opened?.into()),
        }
    }
}

impl Files {
    pub(super) fn new() -> Self {
        Files::default()
    }

    /// Reads all of `into` from the file of a place, at this offset of it.
    pub(super) fn read(&self, whole: &Whole, place: Place, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file(whole, place, Cache::Through)?.read_exact_at(into, at)
    }

    /// Reads from there, past the cache where the file system can: how much, less than asked for at the end of the file.
    /// Memory, offset and length are multiples of pages.
    pub(super) fn read_past_cache(
        &self,
        whole: &Whole,
        place: Place,
        at: u64,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let file = self.file(whole, place, Cache::Past)?;
        let mut done = 0;
        while done < into.len() {
            match file.read_at(&mut into[done..], at + done as u64)? {
                0 => break,
                // What is not a whole page is the end.
                read if read % ALIGNMENT != 0 => return Ok(done + read),
                read => done += read,
            }
        }
        Ok(done)
    }

    fn file(&self, whole: &Whole, place: Place, cache: Cache) -> io::Result<Arc<File>> {
        let (lane, number) = whole.state().recording.index.file_of(place);
        let key = (lane, number, cache);
        match self.opened(key) {
            Some(file) => Ok(file),
            None => Ok(self.keep(key, open(whole, place, cache)?)),
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
fn open(whole: &Whole, place: Place, cache: Cache) -> io::Result<File> {
    let mut path = whole.state().recording.path(place);
    loop {
        let file = cache.open(&path);
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
