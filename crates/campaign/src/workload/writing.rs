//! Opens a file, reserves its space, and makes it durable: shared by all workloads that write large files.

use nilometer_plan::SyncPolicy;
use nilometer_storage::{Buffer, OpKind, Open, Operation, Slot};

/// The way in which a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writing {
    /// How it is opened, which tells if it exists before.
    pub open: Open,
    /// The space to reserve before the first write. If the file system can't, data are written all the same; an
    /// observer sees the refusal.
    pub reserve: Option<u64>,
    /// The time at which data are made durable. Before a sync nothing is in flight.
    pub sync: SyncPolicy,
}

/// The state of a file in a pause, when no more blocks move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// More blocks follow.
    Amid,
    /// All blocks were moved.
    AtEnd,
    /// An operation failed.
    Failed,
}

impl Pause {
    /// The state after an operation; `failed` if it failed. Blocks follow if time and blocks are left
    /// (`goes_on`).
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

    /// The number of blocks of a file at which moving pauses next, after `moved` of `end` blocks.
    pub(super) fn next_pause(&self, moved: u64, end: u64) -> u64 {
        match self.sync {
            SyncPolicy::Every(blocks) => end.min(moved + u64::from(blocks)),
            SyncPolicy::None | SyncPolicy::Close => end,
        }
    }

    /// The operation in a pause.
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
