//! The engine that issues operations.

use serde::{Deserialize, Serialize};

/// How operations are issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// One system call at a time.
    #[default]
    Sync,
    /// Linux `io_uring`, with registered buffers and files.
    IoUring,
    /// Threads with a sync engine each.
    Pool,
    /// MPI-IO, by the MPI that started the processes.
    MpiIo,
}

impl EngineKind {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::Sync => "sync",
            EngineKind::IoUring => "io_uring",
            EngineKind::Pool => "pool",
            EngineKind::MpiIo => "mpi_io",
        }
    }
}
