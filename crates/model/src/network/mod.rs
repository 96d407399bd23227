//! What the network between machines carried: which flows there were at the same time, and what came of each.

mod link;
mod pattern;
mod subnet;

pub use link::{BondMember, LinkBond, NetworkLink};
pub use pattern::{EACH_PAIR_MAX, PatternKind, TrafficPattern};
pub use subnet::{Subnet, SubnetError};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Nanos};

/// How data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkProtocol {
    /// As fast as the other end takes them.
    #[default]
    Tcp,
    /// At a rate that is given.
    Udp,
}

impl NetworkProtocol {
    /// The word in plans and in the record.
    pub const fn name(self) -> &'static str {
        match self {
            NetworkProtocol::Tcp => "tcp",
            NetworkProtocol::Udp => "udp",
        }
    }
}

impl fmt::Display for NetworkProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NetworkProtocol::Tcp => "TCP",
            NetworkProtocol::Udp => "UDP",
        })
    }
}

/// What is measured at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NetworkCell {
    /// Between which machines.
    pub pattern: TrafficPattern,
    /// How.
    pub protocol: NetworkProtocol,
    /// Flows from each machine to each other.
    pub flows: u32,
}

impl NetworkCell {
    /// In words, with the names of machines: `node1 to node2, TCP, 4 flows`.
    pub fn words(&self, names: &[String]) -> String {
        let flows = if self.flows == 1 { "one flow".into() } else { format!("{} flows", self.flows) };
        format!("{}, {}, {flows}", self.pattern.words(names), self.protocol)
    }
}

/// One flow that is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkFlow {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
}

/// What all ranks do at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkTraffic {
    /// All flows.
    pub flows: Vec<NetworkFlow>,
    /// How they go.
    pub protocol: NetworkProtocol,
    /// How long data are sent.
    pub duration: Nanos,
    /// Of UDP, the bytes a second that each flow is sent at.
    pub rate: u64,
    /// What its flows are known by.
    pub trial: u64,
    /// Machines are reached by version 6 of IP, not 4.
    pub version_six: bool,
}

/// What came of one flow, as its two ends saw it. Times are from the agreed start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// Which of the cell's flows.
    pub flow: usize,
    /// Bytes that the receiver got; of an end that sends, those that it handed over.
    pub bytes: u64,
    /// When the last of them came, or was handed over.
    pub last: Nanos,
    /// Processor time of the thread of this end; where it serves several flows, this one's share by what they carried.
    pub processor: Nanos,
    /// What the kernel says of the connection, at the end that sends.
    pub connection: Option<TcpFindings>,
    /// What is known of packets, where they are counted.
    pub packets: Option<DatagramCounts>,
    /// Why it did not come to its end.
    pub failed: Option<String>,
}

/// What the kernel says of a TCP connection at its end (`TCP_INFO`, linux/tcp.h).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFindings {
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// The smoothed round trip time, under load.
    pub round_trip: Nanos,
    /// The shortest round trip that was seen.
    pub least_round_trip: Nanos,
    /// Bytes of a segment.
    pub segment: u32,
    /// The congestion control.
    pub congestion: String,
    /// Room of the sender in the kernel, in bytes.
    pub send_buffer: u64,
}

/// Packets of a UDP flow; who sends says how many it sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Sent, or come.
    pub packets: u64,
    /// Came after one with a higher number.
    pub reordered: u64,
}

/// Both ends of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The rank that sent.
    pub from: u32,
    /// The rank that received.
    pub to: u32,
    /// At the end that sent.
    pub sent: FlowEnd,
    /// At the end that received.
    pub received: FlowEnd,
}

impl FlowSample {
    /// What came, over the time until its last byte had come.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.received.bytes, self.received.last)
    }

    /// Why it must not be used, if so.
    pub fn failed(&self) -> Option<&str> {
        self.sent.failed.as_deref().or(self.received.failed.as_deref())
    }
}

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// One repeat of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkSample {
    /// Which of the cells.
    pub cell: usize,
    /// Which repeat; of a search, which of its trials.
    pub repeat: u32,
    /// Of UDP, the bytes a second that each flow was to be sent at.
    pub asked: Option<u64>,
    /// All flows.
    pub flows: Vec<FlowSample>,
}

impl NetworkSample {
    /// Of all flows together. All are sent for the same time; each has its rate until its own last byte had come, so that
    /// one that waits in a slow link's queue behind the end makes the others no slower.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.flows.iter().map(|flow| flow.rate().0).sum())
    }

    /// Whole bytes a second of the fastest flow.
    pub fn fastest_flow(&self) -> u64 {
        let whole =
            |flow: &FlowSample| flow.received.bytes.saturating_mul(NANOS) / flow.received.last.0.max(1);
        self.flows.iter().map(whole).max().unwrap_or(0)
    }

    /// What was handed to the network, of all flows together: less than what was asked where a sender can't do it.
    pub fn offered(&self) -> ByteRate {
        ByteRate(self.flows.iter().map(|flow| ByteRate::of(flow.sent.bytes, flow.sent.last).0).sum())
    }

    /// Why it must not be used, if so: the first flow that failed.
    pub fn failed(&self) -> Option<&str> {
        self.flows.iter().find_map(FlowSample::failed)
    }

    /// Packets that were sent and did not come.
    pub fn lost(&self) -> u64 {
        let count = |end: &FlowEnd| end.packets.map_or(0, |counts| counts.packets);
        self.flows.iter().map(|flow| count(&flow.sent).saturating_sub(count(&flow.received))).sum()
    }

    /// Segments that were sent again.
    pub fn retransmitted(&self) -> u64 {
        let of = |flow: &FlowSample| flow.sent.connection.as_ref().map_or(0, |found| found.retransmitted);
        self.flows.iter().map(of).sum()
    }
}

/// A machine, with the ranks on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkMachine {
    /// Its host name.
    pub name: String,
    /// Its ranks, the least first.
    pub ranks: Vec<u32>,
    /// The addresses at which it receives.
    pub addresses: Vec<String>,
}

/// All that was measured of the network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkResults {
    /// In the order of their least ranks.
    pub machines: Vec<NetworkMachine>,
    /// In the order of their numbers.
    pub cells: Vec<NetworkCell>,
    /// In the order in which they were measured.
    pub samples: Vec<NetworkSample>,
}

impl NetworkResults {
    /// The names of the machines.
    pub fn names(&self) -> Vec<String> {
        self.machines.iter().map(|machine| machine.name.clone()).collect()
    }

    /// The samples of a cell.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &NetworkSample> {
        self.samples.iter().filter(move |sample| sample.cell == cell)
    }
}

/// What a stage of a plan measured of the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkStage {
    /// The stage's name.
    pub stage: String,
    /// What was measured, without rounds that count for nothing.
    pub results: NetworkResults,
}

/// A machine of a campaign, and what it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignMachine {
    /// Its host name.
    pub name: String,
    /// Facts about it, key and value; of the first machine none, as they stand in [`crate::Results::environment`].
    pub facts: Vec<(String, String)>,
    /// Its links to others.
    pub links: Vec<NetworkLink>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_came_until_the_last_byte_had_come_and_those_of_flows_add_up() {
        let end = |bytes, last| FlowEnd { bytes, last: Nanos(last), ..FlowEnd::default() };
        let flow = |bytes, last| FlowSample { received: end(bytes, last), ..FlowSample::default() };
        let sample = NetworkSample {
            cell: 0,
            repeat: 0,
            asked: None,
            flows: vec![flow(300, 1_000_000_000), flow(100, 2_000_000_000)],
        };
        assert!((sample.rate().0 - 350.0).abs() < 1e-9);
        assert!((sample.flows[0].rate().0 - 300.0).abs() < 1e-9);
    }
}
