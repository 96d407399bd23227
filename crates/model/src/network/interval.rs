//! The traffic of machines during a trial of the network, interval by interval.

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Nanos};

/// An interval of a trial on a machine, by its kernel's counters. Times are from the agreed start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficInterval {
    /// The index of the machine.
    pub machine: usize,
    /// The first reading of the counters.
    pub from: Nanos,
    /// The second reading.
    pub until: Nanos,
    /// Segments that all TCP connections of the machine sent again; `None` if its kernel does not count them.
    pub retransmitted: Option<u64>,
    /// The interfaces by name, without the loopback.
    pub links: Vec<LinkTraffic>,
}

/// The traffic of an interface in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTraffic {
    /// Its name on the machine.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

impl TrafficInterval {
    /// The rate at which this number of bytes passes in the interval.
    pub fn rate_of(&self, bytes: u64) -> ByteRate {
        ByteRate::of(bytes, self.until.since(self.from))
    }
}
