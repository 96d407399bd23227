//! The progress of a dump: its thread writes it, and the service reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool};

use super::report::DumpReport;

/// The parts of a dump that its thread and the service share.
#[derive(Debug, Clone, Default)]
pub(super) struct DumpProgress {
    report: Arc<Mutex<DumpReport>>,
    /// True if the dump is to end.
    pub(super) stop: Arc<AtomicBool>,
}

impl DumpProgress {
    pub(super) fn new(report: DumpReport) -> Self {
        DumpProgress { report: Arc::new(Mutex::new(report)), stop: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, DumpReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self) -> DumpReport {
        self.lock().clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut DumpReport)) {
        change(&mut self.lock());
    }
}
