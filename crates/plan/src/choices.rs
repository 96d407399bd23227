//! The choices of a plan: access, durability of data, content of buffers.

use serde::{Deserialize, Serialize};

/// Through the page cache or past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// `O_DIRECT`.
    Direct,
    /// `O_DIRECT` if the target really supports it, else through the page cache.
    Best,
}

/// The time, inside the measured time, at which written data become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Never: the figure is that of the cache, and reports name it so.
    None,
    /// Once, before the file is closed.
    Close,
    /// After this many blocks of a worker, and before the file is closed.
    Every(u32),
}

impl Access {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Buffered => "buffered",
            Access::Direct => "direct",
            Access::Best => "O_DIRECT if supported",
        }
    }
}

/// The content of write buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferData {
    /// Random data, which no storage can compress.
    #[default]
    Random,
    /// Zeros, except for a few bytes a page that distinguish blocks. Storage that compresses writes almost
    /// nothing.
    Zeros,
}

impl BufferData {
    /// True for the default.
    pub const fn is_random(&self) -> bool {
        matches!(self, BufferData::Random)
    }
}
