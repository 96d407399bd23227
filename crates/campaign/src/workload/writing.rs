//! How a file is opened, made to have room, and made durable: what all workloads that write large files share.

use nilometer_plan::SyncPolicy;
use nilometer_storage::{Buffer, OpKind, Open, Operation, Slot};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writing {
    /// Whether it is there before.
    pub open: Open,
    /// Space that is reserved before the first write. Where the file system can't, data are written all the same; an
    /// observer sees the refusal.
    pub reserve: Option<u64>,
    /// When data are made durable. Before a sync nothing is in flight.
    pub sync: SyncPolicy,
}

/// How it stands with a file when no more blocks are to be moved now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Others follow.
    Amid,
    /// All that were to be moved are.
    AtEnd,
    /// An operation failed.
    Failed,
}

impl Pause {
    /// After an operation that failed, or not; where time and blocks are left, it goes on.
    pub(super) fn of(failed: bool, goes_on: bool) -> Self {
        match (failed, goes_on) {
            (true, _) => Pause::Failed,
            (false, true) => Pause::Amid,
            (false, false) => Pause::AtEnd,
        }
    }
}

impl Writing {
    /// A new file, durable before it is closed.
    pub const NEW: Writing = Writing { open: Open::CREATE, reserve: None, sync: SyncPolicy::Close };
    /// An existing file, durable before it is closed.
    pub const OVER: Writing = Writing { open: Open::WRITE, ..Writing::NEW };
    /// An existing file that is only read.
    pub(super) const NOT: Writing = Writing { open: Open::READ, reserve: None, sync: SyncPolicy::None };

    /// After how many blocks of a file the moving pauses next, when so many are moved of so many.
    pub(super) fn next_pause(&self, moved: u64, end: u64) -> u64 {
        match self.sync {
            SyncPolicy::Every(blocks) => end.min(moved + u64::from(blocks)),
            SyncPolicy::None | SyncPolicy::Close => end,
        }
    }

    /// What is done in a pause.
    pub(super) fn in_pause(&self, pause: Pause) -> OpKind {
        match (self.sync, pause) {
            (SyncPolicy::Every(_), Pause::Amid) => OpKind::SyncData,
            (SyncPolicy::None, _) | (_, Pause::Failed) => OpKind::Close,
            (SyncPolicy::Every(_) | SyncPolicy::Close, _) => OpKind::Sync,
        }
    }

    /// An operation on an open file that moves no data.
    pub(super) fn operation(&self, kind: OpKind, file: Slot, buffer: Buffer) -> Operation {
        let offset = self.reserve.filter(|_| kind == OpKind::Allocate).unwrap_or(0);
        Operation { offset, ..Operation::on(kind, file, buffer) }
    }
}
