//! The space of a recording's directories. Storage may not answer, so a thread of its own queries it. Only one
//! query runs at a time: repeated commands leave at most one thread behind.

use std::{io, path::PathBuf};

use nilometer_model::Bytes;
use nilometer_storage::{DetachedTask, NoOutcome};

use crate::storage_space::{FreeSpace, PATIENCE, space_of};

/// Queries the space, one query at a time.
#[derive(Debug, Default)]
pub(super) struct SpaceQuery {
    /// A query that storage has not answered yet.
    pending: Option<DetachedTask<io::Result<FreeSpace>>>,
}

const SILENT: &str = "the storage does not answer";

impl SpaceQuery {
    /// The space of these directories, or the reason why it is unknown.
    pub(super) fn ask(&mut self, directories: Vec<PathBuf>, reserve: Bytes) -> Result<FreeSpace, String> {
        let before = self.pending.as_ref().map(DetachedTask::outcome);
        if matches!(before, Some(Err(NoOutcome::Unfinished))) {
            return Err(SILENT.into());
        }
        self.pending = None;
        let task = DetachedTask::begin("space", move || space_of(&directories, reserve));
        let task = task.map_err(|error| format!("can't start a thread: {error}"))?;
        let answer = task.outcome_within(PATIENCE);
        if answer.is_err() {
            self.pending = Some(task);
        }
        answer.map_or_else(|_| Err(SILENT.into()), |space| space.map_err(|error| error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_file_system_count_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut query = SpaceQuery::default();
        let at = directory.path().to_path_buf();
        let one = query.ask(vec![at.clone()], Bytes(0)).expect("it answers");
        let two = query.ask(vec![at.clone(), at.clone()], Bytes(0)).expect("it answers");
        // Other programs may write there meanwhile, but not as much as the file system holds.
        assert_eq!(one.size, two.size);
        assert!(two.recordable.0 < one.recordable.0 / 2 * 3, "{two:?} where {one:?} is");
        let none = query.ask(vec![at.clone()], Bytes(u64::MAX)).expect("it answers");
        assert_eq!(none.recordable, Bytes(0));
        assert!(query.ask(vec![at.join("gone")], Bytes(0)).is_err());
        assert_eq!(query.ask(Vec::new(), Bytes(0)), Ok(FreeSpace::default()));
    }

    #[test]
    fn storage_that_is_silent_is_asked_once() {
        let (answer, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let silent = move || {
            wait.recv().map_err(io::Error::other)?;
            Ok(FreeSpace::default())
        };
        let pending = DetachedTask::begin("space", silent).ok();
        let mut query = SpaceQuery { pending };
        assert_eq!(query.ask(Vec::new(), Bytes(0)), Err(SILENT.into()));
        drop(answer);
        while query.ask(Vec::new(), Bytes(0)).is_err() {
            std::thread::yield_now();
        }
    }
}
