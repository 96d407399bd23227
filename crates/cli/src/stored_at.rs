//! The places of recordings that a user gives: mounted directories, or URLs on a server.

use std::{io::ErrorKind, path::PathBuf, sync::Arc, vec::IntoIter};

use anyhow::{Result, bail};
use nilometer_model::{TargetAddress, TargetUrl};
use nilometer_recording::{
    foreign::{ForeignSource, ForeignWish, foreign_sources},
    reader::{OpenError, Recording, RecordingsFound, Trust, Unreadable, unreadable_below, with_below},
    recording_storage::{MountedDirectories, RecordingStorage, TargetDirectories},
};
use nilometer_remote::recording_at;

/// Directories of recordings, and the storage that opens them.
#[derive(Debug)]
pub(crate) struct StoredAt {
    storage: Arc<dyn RecordingStorage>,
    directories: Vec<PathBuf>,
    is_remote: bool,
    /// The frames of files without a journal, as far as the user names them.
    wish: ForeignWish,
}

impl StoredAt {
    /// Reads these paths or URLs.
    ///
    /// # Errors
    /// A URL is malformed, or its server does not answer; or some are URLs and some are not.
    pub(crate) fn named(paths: &[PathBuf]) -> Result<Self> {
        let wish = ForeignWish::default();
        let addresses = paths.iter().map(|path| TargetAddress::of_named(path));
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        let urls: Vec<&TargetUrl> = addresses.iter().filter_map(TargetAddress::url).collect();
        if urls.is_empty() {
            let storage = Arc::new(MountedDirectories);
            return Ok(StoredAt { storage, directories: paths.to_vec(), is_remote: false, wish });
        }
        if urls.len() < paths.len() {
            bail!(
                "{}: name directories, or URLs, and not both: copy the one beside the other first",
                urls[0]
            );
        }
        let mut targets = Vec::new();
        for url in urls {
            targets.push((PathBuf::from(url.to_string()), recording_at(url)?));
        }
        let directories = targets.iter().map(|(path, _)| path.clone()).collect();
        let storage = Arc::new(TargetDirectories::new(targets)?);
        Ok(StoredAt { storage, directories, is_remote: true, wish })
    }

    /// Reads these frames of files without a journal.
    pub(crate) fn with_wish(self, wish: ForeignWish) -> Self {
        StoredAt { wish, ..self }
    }

    /// Opens the recording in all of them. If no journal is there, it may be one without.
    pub(crate) fn open(&self, trust: Trust) -> Result<Recording, OpenError> {
        if self.are_files() {
            return only(&foreign_sources(&self.directories)?, &self.wish);
        }
        match Recording::open_on(self.storage.clone(), &self.directories, trust) {
            Err(OpenError::NotARecording { directories }) if !self.is_remote => {
                match foreign_sources(&self.directories)?.as_slice() {
                    [] => Err(OpenError::NotARecording { directories: self.and_below(directories) }),
                    sources => only(sources, &self.wish),
                }
            }
            opened => opened,
        }
    }

    /// Adds the recordings directly below, for an error.
    fn and_below(&self, directories: String) -> String {
        let all = with_below(&self.directories).unwrap_or_default();
        let below = all.into_iter().filter(|path| !self.directories.contains(path));
        let names: Vec<String> = below.map(|path| path.display().to_string()).collect();
        let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        match names.len() {
            0 => directories,
            count if count <= NAMED => format!("{directories} itself, but in {shown}"),
            count => format!("{directories} itself, but in {shown} and {} more", count - NAMED),
        }
    }

    /// Returns true if the user named a file, and not only directories.
    pub(crate) fn are_files(&self) -> bool {
        !self.is_remote && self.directories.iter().any(|path| path.is_file())
    }

    /// Finds each recording in them, at least one, and reads it when the caller comes to it. Also returns
    /// unreadable directories and journals that belong to no known recording.
    pub(crate) fn open_those_named(
        &self,
        trust: Trust,
    ) -> Result<(Box<dyn ExactSizeIterator<Item = Recording>>, Unreadable), OpenError> {
        if self.are_files() {
            let each = foreign_sources(&self.directories)?
                .iter()
                .map(|source| source.open_as(&self.wish))
                .collect::<Result<Vec<_>, _>>()?;
            return Ok((Box::new(each.into_iter()), Unreadable::new()));
        }
        match self.open(trust) {
            Err(OpenError::Several { .. }) => {
                let (each, unreadable) = Recording::open_each_on(&self.storage, &self.directories, trust)?;
                Ok((Box::new(each), unreadable))
            }
            one => Ok((Box::new(std::iter::once(one?)), Unreadable::new())),
        }
    }

    /// Finds each recording in them, and below them if they are mounted, and reads it when the caller comes
    /// to it. Also returns unreadable directories and journals.
    pub(crate) fn open_each(&self, trust: Trust) -> Result<(EachRecording, Unreadable), OpenError> {
        let directories =
            if self.is_remote { self.directories.clone() } else { with_below(&self.directories)? };
        let without_journal = if self.is_remote { Vec::new() } else { foreign_sources(&self.directories)? };
        let are_directories = |path: &PathBuf| self.is_remote || !path.is_file();
        let directories: Vec<_> = directories.into_iter().filter(are_directories).collect();
        let (journals, mut unreadable) = Recording::open_each_on(&self.storage, &directories, trust)?;
        if !self.is_remote {
            unreadable.extend(unreadable_below(&self.directories));
        }
        Ok((EachRecording { journals, foreign: without_journal.into_iter(), wish: self.wish }, unreadable))
    }
}

/// Directories that an error names.
const NAMED: usize = 3;

/// Opens the only recording without a journal.
fn only(sources: &[ForeignSource], wish: &ForeignWish) -> Result<Recording, OpenError> {
    match sources {
        [only] => only.open_as(wish),
        [first, other, ..] => {
            Err(OpenError::Several { first: first.first_file(), other: other.first_file() })
        }
        [] => Err(OpenError::NotARecording { directories: String::new() }),
    }
}

/// Recordings, of which each is opened when the caller comes to it: those with a journal first.
#[derive(Debug)]
pub(crate) struct EachRecording {
    journals: RecordingsFound,
    foreign: IntoIter<ForeignSource>,
    wish: ForeignWish,
}

impl EachRecording {
    pub(crate) fn is_empty(&self) -> bool {
        self.journals.len() == 0 && self.foreign.len() == 0
    }
}

impl Iterator for EachRecording {
    type Item = Result<Recording, OpenError>;

    fn next(&mut self) -> Option<Self::Item> {
        let journaled = self.journals.next().map(Ok);
        journaled.or_else(|| Some(self.foreign.next()?.open_as(&self.wish)))
    }
}

/// Refuses a path that does not exist. Commands call this before they look at options that suit only some
/// recordings.
pub(crate) fn refuse_missing(paths: &[PathBuf]) -> Result<(), OpenError> {
    let is_url = |path: &PathBuf| path.to_str().is_some_and(TargetUrl::is_one);
    for path in paths.iter().filter(|path| !is_url(path)) {
        match path.metadata() {
            Err(source) if source.kind() == ErrorKind::NotFound => {
                return Err(OpenError::Directory { path: path.clone(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses URLs for commands that need mounted directories.
pub(crate) fn refuse_urls<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    for path in paths {
        if path.to_str().is_some_and(TargetUrl::is_one) {
            bail!("{}: this needs a directory that is mounted: name one", path.display());
        }
    }
    Ok(())
}
