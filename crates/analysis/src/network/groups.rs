//! The rates of clients and servers that exchange data at once, and their shares of the links of both sides.

use std::ops::Range;

use nilometer_model::{ByteRate, NetworkResults, NetworkSample, TrafficPattern, statistics::Summary};

/// The rates of a pattern with clients and servers. Means are over the repeats without a failed flow.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRates {
    /// All flows together.
    pub rate: Summary,
    /// Each client.
    pub clients: Vec<MachineRate>,
    /// Each server.
    pub servers: Vec<MachineRate>,
    /// The speed of all clients' links together; `None` if that of a client is unknown.
    pub client_links: Option<ByteRate>,
    /// The speed of all servers' links together; `None` if that of a server is unknown.
    pub server_links: Option<ByteRate>,
}

/// One of the two groups of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSide {
    /// The clients.
    Clients,
    /// The servers.
    Servers,
}

/// The sum of all flows as a share of one side's links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideShare {
    /// The side.
    pub side: GroupSide,
    /// The speed of its links together.
    pub links: ByteRate,
    /// The mean share.
    pub share: f64,
    /// The half width of its 95 % interval; `None` for a single repeat.
    pub half_width: Option<f64>,
}

impl GroupSide {
    /// Its word in JSON and in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            GroupSide::Clients => "clients",
            GroupSide::Servers => "servers",
        }
    }
}

/// The rate of all flows from or to one machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineRate {
    /// The index of the machine.
    pub machine: usize,
    /// Bytes per second that the receivers got.
    pub rate: ByteRate,
}

impl GroupRates {
    /// The rates of a pattern over these repeats; `None` for patterns without clients, and without repeats.
    pub(super) fn of(
        results: &NetworkResults,
        pattern: TrafficPattern,
        valid: &[&NetworkSample],
    ) -> Option<Self> {
        let groups = pattern.groups()?;
        let sums: Vec<f64> = valid.iter().map(|sample| sample.rate().0).collect();
        let rate = |machine| MachineRate { machine, rate: machine_rate(results, machine, valid) };
        Some(GroupRates {
            rate: Summary::of(&sums)?,
            clients: groups.clients().map(rate).collect(),
            servers: groups.servers().map(rate).collect(),
            client_links: links_of(results, groups.clients()),
            server_links: links_of(results, groups.servers()),
        })
    }

    /// The share of a side's links; `None` if a link's speed is unknown.
    pub fn share(&self, side: GroupSide) -> Option<SideShare> {
        let links = match side {
            GroupSide::Clients => self.client_links,
            GroupSide::Servers => self.server_links,
        };
        let links = links.filter(|links| links.0 > 0.0)?;
        let share = self.rate.mean / links.0;
        let half_width = self.rate.half_width().map(|half| half / links.0);
        Some(SideShare { side, links, share, half_width })
    }

    /// The side whose links together are slower, which limits the sum of all flows. `None` if a link's speed is
    /// unknown, or both sides are alike.
    pub fn slower_side(&self) -> Option<GroupSide> {
        let clients = self.client_links?.0;
        let servers = self.server_links?.0;
        match clients.total_cmp(&servers) {
            std::cmp::Ordering::Less => Some(GroupSide::Clients),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(GroupSide::Servers),
        }
    }
}

/// The speed of these machines' links together; `None` if one is unknown.
fn links_of(results: &NetworkResults, machines: Range<usize>) -> Option<ByteRate> {
    let speeds = machines.map(|machine| Some(results.machines.get(machine)?.link_speed?.0));
    speeds.sum::<Option<f64>>().map(ByteRate)
}

/// The mean rate over the repeats of all flows from or to a machine.
fn machine_rate(results: &NetworkResults, machine: usize, valid: &[&NetworkSample]) -> ByteRate {
    let ranks = results.machines.get(machine).map_or(&[][..], |machine| machine.ranks.as_slice());
    let flows = valid.iter().flat_map(|sample| &sample.flows);
    let own = flows.filter(|flow| ranks.contains(&flow.from) || ranks.contains(&flow.to));
    ByteRate(own.map(|flow| flow.rate().0).sum::<f64>() / valid.len() as f64)
}

#[cfg(test)]
mod tests {
    use nilometer_model::{
        FlowEnd, FlowSample, FlowSettings, MachineGroups, Nanos, NetworkCell, NetworkMachine, NetworkProtocol,
    };

    use super::*;
    use crate::network_outcomes;

    /// A client sends to two servers with links of 1000 bytes a second, or of unknown speed.
    fn results(link_speed: Option<ByteRate>) -> NetworkResults {
        let machine = |(rank, name): (u32, &str)| NetworkMachine {
            name: name.into(),
            ranks: vec![rank],
            link_speed,
            ..NetworkMachine::default()
        };
        let pattern = TrafficPattern::ClientsToServers(MachineGroups { clients: 1, servers: 2 });
        let settings = FlowSettings::default();
        let cell = NetworkCell { pattern, protocol: NetworkProtocol::Tcp, flows: 1, settings };
        let flow = |to, bytes| FlowSample {
            from: 0,
            to,
            received: FlowEnd { bytes, last: Nanos(1_000_000_000), ..FlowEnd::default() },
            ..FlowSample::default()
        };
        let sample = |repeat| NetworkSample {
            cell: 0,
            repeat,
            asked: None,
            flows: vec![flow(1, 900), flow(2, 700 + 100 * u64::from(repeat))],
            intervals: Vec::new(),
        };
        NetworkResults {
            machines: (0..).zip(["c", "s1", "s2"]).map(machine).collect(),
            cells: vec![cell],
            samples: vec![sample(0), sample(1)],
        }
    }

    #[test]
    fn each_client_and_server_has_its_rate_and_all_have_a_share_of_the_links_of_both_sides() {
        let of = |speed| network_outcomes(&results(speed)).remove(0).groups.expect("a pattern of clients");
        let known = of(Some(ByteRate(1000.0)));
        assert_eq!(known.clients, [MachineRate { machine: 0, rate: ByteRate(1650.0) }]);
        let servers: Vec<f64> = known.servers.iter().map(|server| server.rate.0).collect();
        assert_eq!(servers, [900.0, 750.0]);
        let share = known.share(GroupSide::Servers).expect("it is known");
        assert_eq!((share.links, share.share), (ByteRate(2000.0), 0.825));
        // Two repeats of 1600 and 1700: 12.7 standard errors of 50.
        let half_width = share.half_width.expect("two repeats") * 2000.0;
        assert!((half_width - 12.706 * 50.0).abs() < 0.1, "{half_width}");
        assert_eq!(known.share(GroupSide::Clients).map(|share| share.share), Some(1.65));
        assert_eq!(known.slower_side(), Some(GroupSide::Clients));
        let mut of_one_server = results(Some(ByteRate(1000.0)));
        of_one_server.machines[1].link_speed = None;
        let groups = network_outcomes(&of_one_server).remove(0).groups.expect("a pattern of clients");
        assert_eq!((groups.share(GroupSide::Servers), groups.slower_side()), (None, None));
        assert_eq!(groups.client_links, Some(ByteRate(1000.0)), "that of the client is known");
        let unknown = of(None);
        assert_eq!((unknown.server_links, unknown.client_links), (None, None));
    }
}
