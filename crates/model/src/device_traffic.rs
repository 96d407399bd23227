//! What came to the block device below a target.

use serde::{Deserialize, Serialize};

/// What a block device did over some time, whoever asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Times that it was told to put its cache onto what lasts; none where it has no cache that a loss of power empties, or
    /// where the kernel does not count that.
    pub flushes: Option<u64>,
}

impl DeviceTraffic {
    /// What came to another device too.
    pub(crate) fn and(self, other: DeviceTraffic) -> Self {
        DeviceTraffic {
            read: self.read + other.read,
            written: self.written + other.written,
            flushes: self.flushes.zip(other.flushes).map(|(one, another)| one + another),
        }
    }

    /// What came after `earlier`.
    #[must_use]
    pub fn since(self, earlier: DeviceTraffic) -> Self {
        let flushes = self.flushes.zip(earlier.flushes);
        DeviceTraffic {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
            flushes: flushes.map(|(is, was)| is.saturating_sub(was)),
        }
    }
}
