//! A system call on storage may never come back: what the campaign's own thread needs to know is asked on another one.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread,
};

use nilometer_model::Nanos;
use nilometer_storage::{Target, target::TargetError};

/// What `ask` says of the target; an error if it takes longer than `limit`. Its thread is then given up where it hangs.
pub fn within<T: Send + 'static>(
    limit: Nanos,
    target: &Arc<dyn Target>,
    ask: impl FnOnce(&dyn Target) -> T + Send + 'static,
) -> Result<T, TargetError> {
    let path = target.description().address.to_string().into();
    let target = target.clone();
    in_time(limit, path, move || ask(target.as_ref()))
}

/// What `ask`, which looks at a path, says; an error if it takes longer than `limit`.
pub fn in_time<T: Send + 'static>(
    limit: Nanos,
    path: PathBuf,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TargetError> {
    let (sender, answer) = sync_channel(1);
    let work = move || drop(sender.send(ask()));
    if let Err(source) = thread::Builder::new().name("target".into()).spawn(work) {
        return Err(TargetError::Io { path, action: "start a thread for", source });
    }
    answer.recv_timeout(limit.duration()).map_err(|error| match error {
        RecvTimeoutError::Timeout => TargetError::Hung { path, limit },
        RecvTimeoutError::Disconnected => unreachable!("the thread answers, or the panic was ours"),
    })
}
