//! A transfer on a thread of its own, with the figures that replies show.

use std::{
    io,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::{DetachedTask, NoOutcome};

use crate::{console::Console, error::OperatorLog, state::ServiceState};

/// The pause between two looks at a condition.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// The longest that the end of a transfer is awaited by the command that ends it.
const PATIENCE: Nanos = Nanos::from_millis(1000);

/// The figures of a transfer, which its thread and replies share.
#[derive(Debug)]
pub(crate) struct TransferProgress {
    console: Console,
    connected: AtomicBool,
    stopped: AtomicBool,
    /// The first byte of the part to move, and the end of the part.
    start: AtomicU64,
    end: AtomicU64,
    /// Bytes moved so far.
    moved: AtomicU64,
    /// A doubt about a transfer that ended without a failure.
    remark: OnceLock<&'static str>,
}

impl TransferProgress {
    pub(super) fn new(console: Console) -> Self {
        TransferProgress {
            console,
            connected: AtomicBool::default(),
            stopped: AtomicBool::default(),
            start: AtomicU64::default(),
            end: AtomicU64::default(),
            moved: AtomicU64::default(),
            remark: OnceLock::new(),
        }
    }

    /// Notes that the other recorder is connected.
    pub(crate) fn connect(&self) {
        self.connected.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Sets the part to move.
    pub(crate) fn begin(&self, part: &Range<u64>) {
        self.start.store(part.start, Ordering::Relaxed);
        self.end.store(part.end, Ordering::Relaxed);
    }

    /// The part to move.
    pub(crate) fn part(&self) -> Range<u64> {
        self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes moved so far.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Notes a doubt about the transfer, for the log. The first one counts.
    pub(super) fn remark(&self, remark: &'static str) {
        self.remark.get_or_init(|| remark);
    }

    /// Asks the thread to end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Fails if a command has ended the transfer.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("a command ended it"));
        }
        Ok(())
    }

    /// Waits while the recorder records, so that a copy never takes the disks and the network of a recording. It
    /// fails if a command has ended the transfer.
    pub(crate) fn give_way(&self) -> io::Result<()> {
        self.check()?;
        while self.console.report().state == ServiceState::Recording {
            thread::sleep(TICK);
            self.check()?;
        }
        Ok(())
    }
}

/// A transfer that runs or has ended. Dropping it asks its thread to end.
#[derive(Debug)]
pub(crate) struct PeerTransfer {
    progress: Arc<TransferProgress>,
    task: DetachedTask<Result<(), String>>,
    outcome: Option<Result<(), String>>,
}

impl PeerTransfer {
    /// Begins the work on a thread. A failure goes into the log, after the transfer's name.
    pub(crate) fn begin(
        name: String,
        console: Console,
        log: OperatorLog,
        work: impl FnOnce(&TransferProgress) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let progress = Arc::new(TransferProgress::new(console));
        let shared = progress.clone();
        let task = DetachedTask::begin("peer", move || {
            let outcome = work(&shared).map_err(|error| error.to_string());
            let remark = shared.remark.get().map(|remark| (*remark).to_owned());
            if let Some(words) = outcome.as_ref().err().cloned().or(remark) {
                log(&format!("{name}: {words}"));
            }
            outcome
        })?;
        Ok(PeerTransfer { progress, task, outcome: None })
    }

    pub(crate) fn progress(&self) -> &TransferProgress {
        &self.progress
    }

    /// The outcome, or `None` while it runs.
    pub(crate) fn outcome(&mut self) -> Option<&Result<(), String>> {
        if self.outcome.is_none() {
            self.outcome = match self.task.outcome() {
                Ok(outcome) => Some(outcome),
                Err(NoOutcome::Unfinished) => None,
                Err(NoOutcome::Gone) => Some(Err("internal error, see the log".into())),
            };
        }
        self.outcome.as_ref()
    }

    /// Ends it, and waits a moment until its port is free again.
    pub(crate) fn end(mut self) {
        if self.outcome().is_none() {
            self.progress.stop();
            // A thread that waits for storage ends by itself later.
            drop(self.task.outcome_within(PATIENCE));
        }
    }
}

impl Drop for PeerTransfer {
    fn drop(&mut self) {
        self.progress.stop();
    }
}
