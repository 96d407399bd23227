//! The results of measuring the network between machines: simultaneous flows, and the data of each.

mod flow_settings;
mod interval;
mod link;
mod pattern;
mod subnet;

pub use flow_settings::{CongestionControl, CongestionControlError, FlowSettings};
pub use interval::{LinkTraffic, TrafficInterval};
pub use link::{BondMember, LinkBond, NetworkLink};
pub use pattern::{EACH_PAIR_MAX, GROUP_PAIRS_MAX, MachineGroups, PatternKind, TrafficPattern};
pub use subnet::{Subnet, SubnetError};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Nanos};

/// The protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkProtocol {
    /// TCP: as fast as the receiver takes the data.
    #[default]
    Tcp,
    /// UDP: at a given rate.
    Udp,
}

impl NetworkProtocol {
    /// Its word in plans and in the record.
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

/// Flows that are measured at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NetworkCell {
    /// The machines that send and receive.
    pub pattern: TrafficPattern,
    /// The protocol.
    pub protocol: NetworkProtocol,
    /// Number of flows from each machine to each other.
    pub flows: u32,
    /// Settings of the flows.
    #[serde(default, skip_serializing_if = "FlowSettings::is_default")]
    pub settings: FlowSettings,
}

impl NetworkCell {
    /// In words, with the names of machines: `node1 to node2, TCP, 4 flows`.
    pub fn words(&self, names: &[String]) -> String {
        let flows = if self.flows == 1 { "one flow".into() } else { format!("{} flows", self.flows) };
        format!("{}, {}, {flows}{}", self.pattern.words(names), self.protocol, self.settings_words())
    }

    /// Returns true if the other has as many flows between two machines, with the same settings.
    pub fn has_load_of(&self, other: &Self) -> bool {
        self.flows == other.flows && self.settings == other.settings
    }

    /// The settings behind a comma, or nothing.
    pub fn settings_words(&self) -> String {
        if self.settings.is_default() { String::new() } else { format!(", {}", self.settings) }
    }
}

/// A planned flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkFlow {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
}

/// The traffic that all ranks produce at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkTraffic {
    /// All flows.
    pub flows: Vec<NetworkFlow>,
    /// The protocol.
    pub protocol: NetworkProtocol,
    /// How long the senders send.
    pub duration: Nanos,
    /// For UDP, the bytes a second of each flow.
    pub rate: u64,
    /// Settings of the flows.
    pub settings: FlowSettings,
    /// The number that identifies its flows.
    pub trial: u64,
    /// True if machines use version 6 of IP, not 4.
    pub version_six: bool,
    /// The ranks that read their machine's counters meanwhile: one of each machine that takes part.
    pub observers: Vec<u32>,
}

/// The result of one flow at one of its ends. Times are from the agreed start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// The index of the flow in the cell.
    pub flow: usize,
    /// Bytes that the receiver got; at the sending end, the bytes handed to the network.
    pub bytes: u64,
    /// The time of the last byte received, or handed over.
    pub last: Nanos,
    /// Processor time of the thread of this end. A thread that serves several flows is divided by their
    /// bytes.
    pub processor: Nanos,
    /// The kernel's report on the connection, at the sending end.
    pub connection: Option<TcpFindings>,
    /// Packet counts, if the protocol has them.
    pub packets: Option<DatagramCounts>,
    /// The reason why it did not finish.
    pub failed: Option<String>,
}

/// The kernel's report on a TCP connection at its end (`TCP_INFO`, linux/tcp.h).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFindings {
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// The smoothed round trip time, under load.
    pub round_trip: Nanos,
    /// The shortest round trip.
    pub least_round_trip: Nanos,
    /// Bytes of a segment.
    pub segment: u32,
    /// The congestion control.
    pub congestion: String,
    /// The sender's socket buffer, in bytes.
    pub send_buffer: u64,
}

/// Packets of a UDP flow; the sender reports how many it sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Packets sent, or received.
    pub packets: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
}

/// Both ends of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The rank that sent.
    pub from: u32,
    /// The rank that received.
    pub to: u32,
    /// The sending end.
    pub sent: FlowEnd,
    /// The receiving end.
    pub received: FlowEnd,
}

impl FlowSample {
    /// The rate of bytes received, until the last one had arrived.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.received.bytes, self.received.last)
    }

    /// The reason to reject it, if there is one.
    pub fn failed(&self) -> Option<&str> {
        self.sent.failed.as_deref().or(self.received.failed.as_deref())
    }
}

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// One repeat of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkSample {
    /// The index of the cell.
    pub cell: usize,
    /// The number of the repeat; in a search, of the trial.
    pub repeat: u32,
    /// For UDP, the requested bytes a second of each flow.
    pub asked: Option<u64>,
    /// All flows.
    pub flows: Vec<FlowSample>,
    /// The traffic of each machine that took part, interval by interval; empty if nobody observed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<TrafficInterval>,
}

impl NetworkSample {
    /// The rate of all flows together.
    ///
    /// All flows send for the same time, and each counts until its own last byte. A flow that waits in a slow
    /// link's queue after the end therefore slows down no other.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.flows.iter().map(|flow| flow.rate().0).sum())
    }

    /// The rate of the fastest flow, in whole bytes a second.
    pub fn fastest_flow(&self) -> u64 {
        let whole =
            |flow: &FlowSample| flow.received.bytes.saturating_mul(NANOS) / flow.received.last.0.max(1);
        self.flows.iter().map(whole).max().unwrap_or(0)
    }

    /// The rate handed to the network, over all flows; below the request if a sender is too slow.
    pub fn offered(&self) -> ByteRate {
        ByteRate(self.flows.iter().map(|flow| ByteRate::of(flow.sent.bytes, flow.sent.last).0).sum())
    }

    /// The reason to reject it, if there is one: that of the first flow that failed.
    pub fn failed(&self) -> Option<&str> {
        self.flows.iter().find_map(FlowSample::failed)
    }

    /// Packets sent but not received.
    pub fn lost(&self) -> u64 {
        let count = |end: &FlowEnd| end.packets.map_or(0, |counts| counts.packets);
        self.flows.iter().map(|flow| count(&flow.sent).saturating_sub(count(&flow.received))).sum()
    }

    /// Retransmitted segments.
    pub fn retransmitted(&self) -> u64 {
        let of = |flow: &FlowSample| flow.sent.connection.as_ref().map_or(0, |found| found.retransmitted);
        self.flows.iter().map(of).sum()
    }
}

/// A machine, with the ranks on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkMachine {
    /// Its host name.
    pub name: String,
    /// Its ranks, the least first.
    pub ranks: Vec<u32>,
    /// The addresses for receiving.
    pub addresses: Vec<String>,
    /// The speed of the link that has the address; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_speed: Option<ByteRate>,
    /// The congestion controls that its processes may use; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<CongestionControl>,
}

impl NetworkMachine {
    /// The setting of flows that this machine lacks, in words.
    fn lacking(&self, settings: &FlowSettings) -> Option<String> {
        let NetworkMachine { name, ranks, congestion: known, .. } = self;
        let asked = settings.processes.map_or(0, |count| count as usize);
        if asked > ranks.len() {
            return Some(format!("{name} has {} of {asked} processes", ranks.len()));
        }
        let control = settings.congestion.filter(|control| !known.is_empty() && !known.contains(control))?;
        let known: Vec<&str> = known.iter().map(CongestionControl::name).collect();
        Some(format!("{name} has no congestion control {control}, but {}", known.join(", ")))
    }
}

/// All results of the network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkResults {
    /// The machines, in the order of their least ranks.
    pub machines: Vec<NetworkMachine>,
    /// The cells, in the order of their numbers.
    pub cells: Vec<NetworkCell>,
    /// The samples, in the order of their measurement.
    pub samples: Vec<NetworkSample>,
}

impl NetworkResults {
    /// The names of the machines.
    pub fn names(&self) -> Vec<String> {
        self.machines.iter().map(|machine| machine.name.clone()).collect()
    }

    /// The reason why these machines can't make a cell's trials, with the first machine that lacks something. `None`
    /// if they can, or if the record does not tell.
    pub fn lacking(&self, cell: usize) -> Option<String> {
        let NetworkCell { pattern, settings, .. } = self.cells.get(cell)?;
        let ends = pattern.pairs(self.machines.len());
        let machines = ends.into_iter().flat_map(|(from, to)| [from, to]);
        machines
            .filter_map(|machine| self.machines.get(machine))
            .find_map(|machine| machine.lacking(settings))
    }

    /// The samples of a cell.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &NetworkSample> {
        self.samples.iter().filter(move |sample| sample.cell == cell)
    }
}

/// The network results of a stage of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkStage {
    /// The stage's name.
    pub stage: String,
    /// The results, without warm-up rounds.
    pub results: NetworkResults,
}

/// A machine of a campaign, with its description.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignMachine {
    /// Its host name.
    pub name: String,
    /// Facts about it, key and value. The first machine has none here: its facts are in `environment` of the
    /// campaign's results.
    pub facts: Vec<(String, String)>,
    /// Its links to others.
    pub links: Vec<NetworkLink>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_whose_settings_a_machine_lacks_is_named_with_the_machine() {
        let machine = |name: &str, ranks: &[u32]| NetworkMachine {
            name: name.into(),
            ranks: ranks.into(),
            congestion: vec!["cubic".parse().expect("a name")],
            ..NetworkMachine::default()
        };
        let cell = |processes: u32, congestion: &str| NetworkCell {
            pattern: TrafficPattern::Pair { from: 0, to: 1 },
            protocol: NetworkProtocol::Tcp,
            flows: 6,
            settings: FlowSettings {
                processes: Some(processes),
                congestion: Some(congestion.parse().expect("a name")),
                buffer: None,
            },
        };
        let results = NetworkResults {
            machines: vec![machine("a", &[0, 1]), machine("b", &[2])],
            cells: vec![cell(1, "cubic"), cell(2, "cubic"), cell(1, "htcp")],
            samples: Vec::new(),
        };
        let lacking = [0, 1, 2, 3].map(|cell| results.lacking(cell));
        let why = |text: &str| Some(text.to_owned());
        assert_eq!(
            lacking,
            [None, why("b has 1 of 2 processes"), why("a has no congestion control htcp, but cubic"), None]
        );
        let mut silent = results;
        silent.machines.iter_mut().for_each(|machine| machine.congestion.clear());
        assert_eq!(silent.lacking(2), None, "a record without the names does not tell");
    }

    #[test]
    fn a_rate_is_what_came_until_the_last_byte_had_come_and_those_of_flows_add_up() {
        let end = |bytes, last| FlowEnd { bytes, last: Nanos(last), ..FlowEnd::default() };
        let flow = |bytes, last| FlowSample { received: end(bytes, last), ..FlowSample::default() };
        let sample = NetworkSample {
            cell: 0,
            repeat: 0,
            asked: None,
            flows: vec![flow(300, 1_000_000_000), flow(100, 2_000_000_000)],
            intervals: Vec::new(),
        };
        assert!((sample.rate().0 - 350.0).abs() < 1e-9);
        assert!((sample.flows[0].rate().0 - 300.0).abs() < 1e-9);
    }
}
