//! The places of recordings that a user gives: mounted directories, or URLs on a server.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Result, bail};
use nilometer_model::{TargetAddress, TargetUrl};
use nilometer_recording::{
    reader::{OpenError, Recording, RecordingsFound, Trust, Unreadable, with_below},
    recording_storage::{MountedDirectories, RecordingStorage, TargetDirectories},
};
use nilometer_remote::recording_at;

/// Directories of recordings, and the storage that opens them.
#[derive(Debug)]
pub(crate) struct StoredAt {
    storage: Arc<dyn RecordingStorage>,
    directories: Vec<PathBuf>,
    is_remote: bool,
}

impl StoredAt {
    /// Reads these paths or URLs.
    ///
    /// # Errors
    /// A URL is malformed, or its server does not answer; or some are URLs and some are not.
    pub(crate) fn named(paths: &[PathBuf]) -> Result<Self> {
        let addresses = paths.iter().map(|path| TargetAddress::of_named(path));
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        let urls: Vec<&TargetUrl> = addresses.iter().filter_map(TargetAddress::url).collect();
        if urls.is_empty() {
            let storage = Arc::new(MountedDirectories);
            return Ok(StoredAt { storage, directories: paths.to_vec(), is_remote: false });
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
        Ok(StoredAt { storage: Arc::new(TargetDirectories::new(targets)?), directories, is_remote: true })
    }

    /// Opens the recording in all of them.
    pub(crate) fn open(&self, trust: Trust) -> Result<Recording, OpenError> {
        Recording::open_on(self.storage.clone(), &self.directories, trust)
    }

    /// Finds each recording in them, at least one, and reads it when the caller comes to it. Also returns
    /// unreadable directories and journals that belong to no known recording.
    pub(crate) fn open_those_named(
        &self,
        trust: Trust,
    ) -> Result<(Box<dyn ExactSizeIterator<Item = Recording>>, Unreadable), OpenError> {
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
    pub(crate) fn open_each(&self, trust: Trust) -> Result<(RecordingsFound, Unreadable), OpenError> {
        let directories =
            if self.is_remote { self.directories.clone() } else { with_below(&self.directories)? };
        Recording::open_each_on(&self.storage, &directories, trust)
    }
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
