//! Work that may never finish, because a system call on hung storage does not. It runs on a thread of its
//! own, which is abandoned once nobody wants to wait any longer.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    },
    thread,
};

use nilometer_model::Nanos;

use crate::{Target, TargetError};

/// The time a file system has to answer, or to make a directory.
pub const PATIENCE: Nanos = Nanos::from_millis(30_000);

/// The parts in which a wait is counted, so that a halt of the process is no silence of the storage.
const SLICE: Nanos = Nanos::from_millis(200);

/// A task on a detached thread. Dropping it abandons the thread, wherever it is.
#[derive(Debug)]
pub struct DetachedTask<T>(Receiver<T>);

/// Why a [`DetachedTask`] has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOutcome {
    /// It is still running, or hangs.
    Unfinished,
    /// It panicked, or an earlier call took its outcome.
    Gone,
}

impl<T: Send + 'static> DetachedTask<T> {
    /// Starts the work on a thread of this name.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub fn begin(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        // An outcome that nobody waits for is dropped.
        Self::begin_reporting(name, move |outcome| drop(outcome.send(work())))
    }

    /// Starts work that sends its outcome itself, so that it can undo the work if nobody waits any more.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub fn begin_reporting(
        name: &str,
        work: impl FnOnce(&SyncSender<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, outcome) = sync_channel(1);
        thread::Builder::new().name(name.into()).spawn(move || work(&sender))?;
        Ok(DetachedTask(outcome))
    }

    /// Returns the outcome, if there is one yet.
    ///
    /// # Errors
    ///
    /// There is no outcome; [`NoOutcome`] gives the reason.
    pub fn outcome(&self) -> Result<T, NoOutcome> {
        self.0.try_recv().map_err(|error| match error {
            TryRecvError::Empty => NoOutcome::Unfinished,
            TryRecvError::Disconnected => NoOutcome::Gone,
        })
    }

    /// Waits up to `limit` for the outcome. A halt of this process counts as [`SLICE`] at most.
    ///
    /// # Errors
    ///
    /// There is no outcome within the limit; [`NoOutcome`] gives the reason.
    pub fn outcome_within(&self, limit: Nanos) -> Result<T, NoOutcome> {
        let mut left = limit;
        loop {
            let slice = left.min(SLICE);
            left = left.since(slice);
            match self.0.recv_timeout(slice.duration()) {
                Ok(outcome) => return Ok(outcome),
                Err(RecvTimeoutError::Disconnected) => return Err(NoOutcome::Gone),
                Err(RecvTimeoutError::Timeout) if left == Nanos(0) => return Err(NoOutcome::Unfinished),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Runs a query on the target within a time limit.
///
/// # Errors
///
/// The query takes longer than `limit` and is left where it hangs, or no thread can be started.
pub fn within<T: Send + 'static>(
    limit: Nanos,
    target: &Arc<dyn Target>,
    ask: impl FnOnce(&dyn Target) -> T + Send + 'static,
) -> Result<T, TargetError> {
    let path = target.description().address.to_string().into();
    let target = target.clone();
    in_time(limit, path, move || ask(target.as_ref()))
}

/// Runs a query on a path within a time limit.
///
/// # Errors
///
/// The query takes longer than `limit` and is left where it hangs, or no thread can be started.
pub fn in_time<T: Send + 'static>(
    limit: Nanos,
    path: PathBuf,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TargetError> {
    let task = match DetachedTask::begin("target", ask) {
        Ok(task) => task,
        Err(source) => return Err(TargetError::Io { path, action: "start a thread for", source }),
    };
    task.outcome_within(limit).map_err(|none| match none {
        NoOutcome::Unfinished => TargetError::Hung { path, limit },
        NoOutcome::Gone => unreachable!("the thread answers, or the panic was ours"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Nanos = Nanos::from_millis(60_000);

    #[test]
    fn an_outcome_is_told_once_and_a_panic_is_no_outcome() {
        let task = DetachedTask::begin("test", || 7).expect("a thread");
        assert_eq!(task.outcome_within(LONG), Ok(7));
        assert_eq!(task.outcome_within(LONG), Err(NoOutcome::Gone));
        assert_eq!(task.outcome(), Err(NoOutcome::Gone));
        let broken = DetachedTask::<u8>::begin("test", || panic!("of the test")).expect("a thread");
        assert_eq!(broken.outcome_within(LONG), Err(NoOutcome::Gone));
    }

    #[test]
    fn one_that_hangs_is_left_and_its_late_outcome_comes_back_to_it() {
        let (release, held) = sync_channel::<()>(1);
        let (undo, undone) = sync_channel(1);
        let task = DetachedTask::begin_reporting("test", move |outcome| {
            assert!(held.recv().is_ok(), "the test releases it");
            if outcome.send(7).is_err() {
                undo.send(7).expect("the test waits");
            }
        });
        let task = task.expect("a thread");
        assert_eq!(task.outcome(), Err(NoOutcome::Unfinished));
        assert_eq!(task.outcome_within(Nanos(1)), Err(NoOutcome::Unfinished));
        drop(task);
        release.send(()).expect("it waits");
        assert_eq!(undone.recv_timeout(LONG.duration()), Ok(7));
    }

    #[test]
    fn a_wait_of_several_slices_ends_with_the_outcome_or_after_them() {
        let (release, held) = sync_channel::<()>(1);
        let task = DetachedTask::begin("test", move || held.recv().is_ok()).expect("a thread");
        assert_eq!(task.outcome_within(Nanos(2 * SLICE.0 + 1)), Err(NoOutcome::Unfinished));
        release.send(()).expect("it waits");
        assert_eq!(task.outcome_within(LONG), Ok(true));
    }

    #[test]
    fn storage_that_hangs_is_named_with_the_time_it_was_given() {
        let (_release, held) = sync_channel::<()>(1);
        let error = in_time(Nanos(1), "/hangs".into(), move || held.recv()).expect_err("it hangs");
        assert!(matches!(&error, TargetError::Hung { path, limit: Nanos(1) } if path == "/hangs"), "{error}");
    }
}
