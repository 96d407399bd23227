//! The last files of a recording that were read, kept open, and the users who may read all of them.

use std::{
    collections::VecDeque,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nilometer_storage::buffer::ALIGNMENT;

use super::RecordingView;
use crate::{
    reader::{FrameLocation, Recording},
    recording_file::{PageCache, ReadAccess, RecordingFile},
    recording_storage::StoredFile,
};

/// Limit on the files kept open.
const OPEN: usize = 64;

/// Lane, file in it, and page cache mode.
type Key = (usize, u64, PageCache);

/// Cache of a recording's open files.
#[derive(Debug)]
pub(super) struct Files {
    open: Mutex<VecDeque<(Key, Arc<dyn StoredFile>)>>,
    access: Mutex<FileAccess>,
}

/// The users who may read the files opened so far.
#[derive(Debug)]
struct FileAccess {
    /// The users who may read all of them.
    all: ReadAccess,
    /// The users who see the data. The view opens no file that they may not read themselves.
    shown_to: Option<ReadAccess>,
}

impl Files {
    /// Starts with the access of the recording's journals.
    pub(super) fn new(journals: ReadAccess) -> Self {
        Files { open: Mutex::default(), access: Mutex::new(FileAccess { all: journals, shown_to: None }) }
    }

    fn access(&self) -> MutexGuard<'_, FileAccess> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `into` from the file at a location, from offset `at` in the file.
    pub(super) fn read(
        &self,
        whole: &RecordingView,
        place: FrameLocation,
        at: u64,
        into: &mut [u8],
    ) -> io::Result<()> {
        self.with(whole, place, PageCache::Through, |file| file.read_exact_at(into, at))?;
        whole.stays(place)
    }

    /// Reads from offset `at`, past the page cache if the file system can, and returns the bytes read. They are
    /// fewer than `into` has only at the end of the file. Memory, offset and length must be multiples of pages.
    pub(super) fn read_past_cache(
        &self,
        whole: &RecordingView,
        place: FrameLocation,
        at: u64,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let read = self.with(whole, place, PageCache::Past, |file| read_pages(file, at, into))?;
        whole.stays(place).map(|()| read)
    }

    /// Reads from the file at a location. If an open file fails, opens it again, because its disk may have been
    /// remounted.
    fn with<T>(
        &self,
        whole: &RecordingView,
        place: FrameLocation,
        cache: PageCache,
        mut read: impl FnMut(&dyn StoredFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let (lane, number) = whole.state().recording.index.file_of(place);
        let key = (lane, number, cache);
        if let Some(file) = self.opened(key) {
            match read(&*file) {
                Ok(done) => return Ok(done),
                Err(_) => self.forget(&file),
            }
        }
        let user = whole.recording(|recording| recording.user(place.lane));
        let storage = whole.storage();
        let file = open(whole, place, |path| storage.open_of(path, user, cache))?;
        let done = read(&*file)?;
        self.keep(key, file);
        Ok(done)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Arc<dyn StoredFile>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, key: Key) -> Option<Arc<dyn StoredFile>> {
        let mut open = self.lock();
        let at = open.iter().position(|(kept, _)| *kept == key)?;
        // The file used last comes last.
        let kept = open.remove(at)?;
        let file = kept.1.clone();
        open.push_back(kept);
        Some(file)
    }

    fn forget(&self, file: &Arc<dyn StoredFile>) {
        let mut open = self.lock();
        let at = open.iter().position(|(_, kept)| Arc::ptr_eq(kept, file));
        let forgotten = at.and_then(|at| open.remove(at));
        drop(open);
        // Close it without the lock, because closing may wait for a disk.
        drop(forgotten);
    }

    fn keep(&self, key: Key, file: Box<dyn StoredFile>) {
        let mut open = self.lock();
        // Another thread may have opened it in the meantime.
        let other = open.iter().position(|(kept, _)| *kept == key).and_then(|at| open.remove(at));
        let oldest = if open.len() == OPEN { open.pop_front() } else { None };
        open.push_back((key, Arc::from(file)));
        drop(open);
        // Close them without the lock, because closing may wait for a disk.
        drop((other, oldest));
    }
}

impl RecordingView {
    /// The users who may read its journals and all files of frames opened so far.
    pub fn access(&self) -> ReadAccess {
        let journals = self.recording(Recording::access);
        self.files.access().all.and(journals)
    }

    /// Declares that all users who may read its journals see the data, and returns these users. From now on,
    /// the view can't read a file of frames that one of them may not read.
    pub fn show_to_readers(&self) -> ReadAccess {
        let access = &mut *self.files.access();
        *access.shown_to.get_or_insert(access.all)
    }

    /// Returns an opened file of frames if its access allows that.
    pub(super) fn admit(&self, opened: RecordingFile) -> io::Result<Box<dyn StoredFile>> {
        let access = &mut *self.files.access();
        if access.shown_to.is_some_and(|shown| !shown.may_read(opened.access)) {
            let why =
                "fewer users may read it than its journal, so showing it here would reveal it to others";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        access.all = access.all.and(opened.access);
        Ok(opened.file)
    }
}

/// Reads whole pages until `into` is full or the file ends.
fn read_pages(file: &dyn StoredFile, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at + done as u64)? {
            0 => break,
            // An incomplete page is the end of the file.
            read if read % ALIGNMENT != 0 => return Ok(done + read),
            read => done += read,
        }
    }
    Ok(done)
}

/// Opens the file at a location. While a recording is in progress, the writer may rename a file and give its
/// name to another. The lane's journal states the new name first. This therefore reads the journal after it
/// opened the file. It starts over if the path has changed, even if another thread took in the records.
pub(super) fn open(
    whole: &RecordingView,
    place: FrameLocation,
    open: impl Fn(&Path) -> io::Result<RecordingFile>,
) -> io::Result<Box<dyn StoredFile>> {
    let mut names_stay = whole.is_over();
    let mut path = whole.path(place);
    loop {
        let opened = open(&path);
        if names_stay {
            return whole.admit(opened?);
        }
        names_stay = whole.is_over();
        whole.gain(|recording| recording.look_at(place.lane));
        let now = whole.path(place);
        if now == path {
            return whole.admit(opened?);
        }
        path = now;
    }
}
