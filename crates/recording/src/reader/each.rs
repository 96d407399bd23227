//! Many recordings, read one after the other: memory holds the heads of all journals, and the index of one recording.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, vec::IntoIter};

use super::{Found, Recording, Trust, parts_of};
use crate::recording_storage::RecordingStorage;

/// Recordings found by their journals, sorted by name. The iterator reads a recording's journals when it
/// reaches it.
#[derive(Debug)]
pub struct RecordingsFound {
    storage: Arc<dyn RecordingStorage>,
    /// The journals of each recording, in the order of lanes.
    journals: IntoIter<Vec<Found>>,
    directories: Arc<[PathBuf]>,
    trust: Trust,
}

impl RecordingsFound {
    /// Groups journals, sorted by lane, by recording.
    pub(super) fn of(
        storage: &Arc<dyn RecordingStorage>,
        found: Vec<Found>,
        directories: &[PathBuf],
        trust: Trust,
    ) -> Self {
        let mut by_recording: BTreeMap<(String, u64), Vec<Found>> = BTreeMap::new();
        for found in found {
            let name = parts_of(&found.path).map_or("", |(name, _)| name).to_owned();
            by_recording.entry((name, found.head.recording)).or_default().push(found);
        }
        let journals: Vec<Vec<Found>> = by_recording.into_values().collect();
        let directories = directories.into();
        RecordingsFound { storage: storage.clone(), journals: journals.into_iter(), directories, trust }
    }
}

impl Iterator for RecordingsFound {
    type Item = Recording;

    fn next(&mut self) -> Option<Recording> {
        let found = self.journals.next()?;
        let RecordingsFound { storage, directories, trust, .. } = self;
        Some(Recording::of(storage.clone(), &found, Vec::new(), directories.clone(), *trust))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.journals.size_hint()
    }
}

impl ExactSizeIterator for RecordingsFound {}
