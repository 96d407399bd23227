//! What a plan chooses among: access, when data are made durable, what is in buffers.

use serde::{Deserialize, Serialize};

/// Through the page cache or past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// `O_DIRECT`.
    Direct,
    /// `O_DIRECT` where the target really has it, else through the page cache.
    Best,
}

/// When written data is made durable inside the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Never: the figure is that of the cache, and is named so.
    None,
    /// Once, before the file is closed.
    Close,
    /// After so many blocks of a worker, and before the file is closed.
    Every(u32),
}

impl Access {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Buffered => "buffered",
            Access::Direct => "direct",
            Access::Best => "direct if real",
        }
    }
}

/// What is in buffers that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferData {
    /// What no storage can make smaller.
    #[default]
    Random,
    /// Zeros but for a few bytes a page, which tell blocks apart: what storage that compresses hardly has to write.
    Zeros,
}

impl BufferData {
    /// Nothing was said.
    pub const fn is_random(&self) -> bool {
        matches!(self, BufferData::Random)
    }
}
