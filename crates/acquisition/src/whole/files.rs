//! The files of a recording that are open, the last ones that were read.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
        self.with(whole, place, Cache::Through, |file| file.read_exact_at(into, at))?;
        whole.stays(place)
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
        let read = self.with(whole, place, Cache::Past, |file| read_pages(file, at, into))?;
        whole.stays(place).map(|()| read)
    }

    /// Reads from the file of a place. One that was open already and fails is opened again: its disk may have been mounted anew.
    fn with<T>(
        &self,
        whole: &Whole,
        place: Place,
        cache: Cache,
        mut read: impl FnMut(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        let (lane, number) = whole.state().recording.index.file_of(place);
        let key = (lane, number, cache);
        if let Some(file) = self.opened(key) {
            match read(&file) {
                Ok(done) => return Ok(done),
                Err(_) => self.forget(&file),
            }
        }
        let file = open(whole, place, |path| cache.open(path))?;
        let done = read(&file)?;
        self.keep(key, file);
        Ok(done)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Arc<File>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, key: Key) -> Option<Arc<File>> {
        let mut open = self.lock();
        let at = open.iter().position(|(kept, _)| *kept == key)?;
        // The one that was used last stands last.
        let kept = open.remove(at)?;
        let file = kept.1.clone();
        open.push_back(kept);
        Some(file)
    }

    fn forget(&self, file: &Arc<File>) {
        self.lock().retain(|(_, kept)| !Arc::ptr_eq(kept, file));
    }

    fn keep(&self, key: Key, file: File) {
        let mut open = self.lock();
        // Another thread may have opened it meanwhile.
        open.retain(|(kept, _)| *kept != key);
        if open.len() == OPEN {
            open.pop_front();
        }
        open.push_back((key, Arc::new(file)));
    }
}

/// Reads as many whole pages as there are, up to so many.
fn read_pages(file: &File, at: u64, into: &mut [u8]) -> io::Result<usize> {
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

/// Opens the file of a place. In a recording that is still made, a file may be renamed and another get its name: then the
/// lane's journal says so before, whoever takes that in.
pub(super) fn open(
    whole: &Whole,
    place: Place,
    open: impl Fn(&Path) -> io::Result<File>,
) -> io::Result<File> {
    let mut names_stay = whole.is_over();
    let mut path = whole.path(place);
    loop {
        let file = open(&path);
        if names_stay {
            return file;
        }
        names_stay = whole.is_over();
        whole.gain(|recording| recording.look_at(place.lane));
        let now = whole.path(place);
        if now == path {
            return file;
        }
        path = now;
    }
}
