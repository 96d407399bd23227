//! The traffic of the block device below a target.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// The work that a block device did over some time, for any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Number of cache flushes. `None` if the device has no volatile cache, or the kernel does not count
    /// flushes.
    pub flushes: Option<u64>,
    /// How busy the device was; `None` if the kernel does not count that.
    pub use_of: Option<DeviceUse>,
}

/// How long a device had requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Time with at least one request.
    pub busy: Nanos,
    /// Time weighted by the number of requests in progress.
    pub queue: Nanos,
}

/// The kernel counts how long a device is busy in milliseconds, and in 32 bits.
const COUNTED_TO: u64 = 1_000_000 << 32;

impl DeviceUse {
    /// The difference from `earlier`, if the counters wrapped around at most once.
    fn since(self, earlier: DeviceUse) -> Self {
        let since = |is: Nanos, was: Nanos| {
            if is < was { Nanos(is.0 + COUNTED_TO).since(was) } else { is.since(was) }
        };
        DeviceUse { busy: since(self.busy, earlier.busy), queue: since(self.queue, earlier.queue) }
    }

    /// Combines two devices: the busy time of the busier one, and the queues of both.
    fn and(self, other: DeviceUse) -> Self {
        DeviceUse { busy: self.busy.max(other.busy), queue: self.queue + other.queue }
    }
}

impl DeviceTraffic {
    /// Adds the traffic of another device.
    #[must_use]
    pub fn and(self, other: DeviceTraffic) -> Self {
        DeviceTraffic {
            read: self.read + other.read,
            written: self.written + other.written,
            flushes: self.flushes.zip(other.flushes).map(|(one, another)| one + another),
            use_of: match (self.use_of, other.use_of) {
                (Some(one), Some(another)) => Some(one.and(another)),
                (one, another) => one.or(another),
            },
        }
    }

    /// The traffic after `earlier`.
    #[must_use]
    pub fn since(self, earlier: DeviceTraffic) -> Self {
        let flushes = self.flushes.zip(earlier.flushes);
        DeviceTraffic {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
            flushes: flushes.map(|(is, was)| is.saturating_sub(was)),
            use_of: self.use_of.zip(earlier.use_of).map(|(is, was)| is.since(was)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_32_bits_may_begin_anew() {
        let at = |busy, queue| DeviceTraffic {
            use_of: Some(DeviceUse { busy: Nanos::from_millis(busy), queue: Nanos::from_millis(queue) }),
            ..DeviceTraffic::default()
        };
        assert_eq!(at(1500, 9000).since(at(500, 1000)), at(1000, 8000));
        assert_eq!(at(20, 9000).since(at((1 << 32) - 30, 1000)), at(50, 8000));
        assert_eq!(at(10, 20).since(DeviceTraffic::default()).use_of, None, "nobody knows when it began");
        assert_eq!(at(10, 20).and(at(30, 1)), at(30, 21));
    }
}
