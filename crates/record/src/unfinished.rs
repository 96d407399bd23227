//! A record before it is whole: a file of its own under a name that nobody uses, beside the place where it is to be.

use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, fsync, linkat, openat, renameat_with, unlinkat},
    io::Errno,
};

use super::place::Place;

/// Removed when it is dropped, unless it was finished.
#[derive(Debug)]
pub(super) struct Unfinished {
    place: Place,
    directory: OwnedFd,
    name: OsString,
    is_there: bool,
}

impl Unfinished {
    /// An empty file, which SQLite takes for an empty database.
    pub(super) fn create(place: &Place) -> io::Result<Self> {
        let directory = place.open()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name: OsString = format!(".nilometer-{:x}-{now:x}.new", std::process::id()).into();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        openat(&directory, &name, flags, mode)?;
        Ok(Unfinished { place: place.clone(), directory, name, is_there: true })
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.place.directory.join(&self.name)
    }

    /// Gives it its name, also after a loss of power. Nothing that has the name by now is replaced.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let (directory, from, to) = (&self.directory, &self.name, &self.place.name);
        match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
            // A file system that can't rename so, as some network file systems, can link so.
            Err(Errno::INVAL | Errno::NOSYS) => linkat(directory, from, directory, to, AtFlags::empty())?,
            renamed => {
                renamed?;
                self.is_there = false;
            }
        }
        Ok(fsync(&self.directory)?)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_there {
            unlinkat(&self.directory, &self.name, AtFlags::empty()).ok();
        }
    }
}
