//! Work that may never come back, because a system call on storage that hangs doesn't: it is done on a thread of its own,
//! which is left to itself when nobody wants to wait for it any longer.

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

/// How long a file system may take to answer, or to make a directory.
pub const PATIENCE: Nanos = Nanos::from_millis(30_000);

/// A task on a detached thread. Dropping it leaves the thread to itself, wherever it is.
#[derive(Debug)]
pub struct DetachedTask<T>(Receiver<T>);

/// Why there is no outcome of a [`DetachedTask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOutcome {
    /// It is still at work, or hangs.
    Unfinished,
    /// It panicked, or its outcome was taken before.
    Gone,
}

impl<T: Send + 'static> DetachedTask<T> {
    /// Begins it on a thread of this name.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub fn begin(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        // An outcome that nobody waits for any more is dropped.
        Self::begin_reporting(name, move |outcome| drop(outcome.send(work())))
    }

    /// Begins one that sends its outcome itself, because what nobody waits for any more has to be undone.
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

    /// The outcome, if there is one by now.
    ///
    /// # Errors
    ///
    /// There is none: see [`NoOutcome`].
    pub fn outcome(&self) -> Result<T, NoOutcome> {
        self.0.try_recv().map_err(|error| match error {
            TryRecvError::Empty => NoOutcome::Unfinished,
            TryRecvError::Disconnected => NoOutcome::Gone,
        })
    }

    /// The outcome, as soon as there is one, and at the latest after this time.
    ///
    /// # Errors
    ///
    /// There is none within this time: see [`NoOutcome`].
    pub fn outcome_within(&self, limit: Nanos) -> Result<T, NoOutcome> {
        self.0.recv_timeout(limit.duration()).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoOutcome::Unfinished,
            RecvTimeoutError::Disconnected => NoOutcome::Gone,
        })
    }
}

/// What `ask` says of the target.
///
/// # Errors
///
/// It takes longer than `limit`, and is left where it hangs; or no thread can be started.
pub fn within<T: Send + 'static>(
    limit: Nanos,
    target: &Arc<dyn Target>,
    ask: impl FnOnce(&dyn Target) -> T + Send + 'static,
) -> Result<T, TargetError> {
    let path = target.description().address.to_string().into();
    let target = target.clone();
    in_time(limit, path, move || ask(target.as_ref()))
}

/// What `ask`, which looks at a path, says.
///
/// # Errors
///
/// It takes longer than `limit`, and is left where it hangs; or no thread can be started.
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
    fn storage_that_hangs_is_named_with_the_time_it_was_given() {
        let (_release, held) = sync_channel::<()>(1);
        let error = in_time(Nanos(1), "/hangs".into(), move || held.recv()).expect_err("it hangs");
        assert!(matches!(&error, TargetError::Hung { path, limit: Nanos(1) } if path == "/hangs"), "{error}");
    }
}
