//! The rates of clients and servers that exchange data at once, and their share of the servers' links.

use nilometer_model::{ByteRate, MachineGroups, NetworkResults, NetworkSample, TrafficPattern};

/// The rates of a pattern with clients and servers. Means are over the repeats without a failed flow.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRates {
    /// Each client.
    pub clients: Vec<MachineRate>,
    /// Each server.
    pub servers: Vec<MachineRate>,
    /// The speed of all servers' links together; `None` if that of a server is unknown.
    pub server_links: Option<ByteRate>,
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
        let groups = pattern.groups().filter(|_| !valid.is_empty())?;
        let rate = |machine| MachineRate { machine, rate: machine_rate(results, machine, valid) };
        Some(GroupRates {
            clients: groups.clients().map(rate).collect(),
            servers: groups.servers().map(rate).collect(),
            server_links: server_links(results, groups),
        })
    }

    /// The sum of all flows as a share of the servers' links; `None` if a link's speed is unknown.
    pub fn share(&self) -> Option<f64> {
        let sum: f64 = self.clients.iter().map(|client| client.rate.0).sum();
        self.server_links.filter(|links| links.0 > 0.0).map(|links| sum / links.0)
    }
}

fn server_links(results: &NetworkResults, groups: MachineGroups) -> Option<ByteRate> {
    let speeds = groups.servers().map(|server| Some(results.machines.get(server)?.link_speed?.0));
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
        FlowEnd, FlowSample, FlowSettings, Nanos, NetworkCell, NetworkMachine, NetworkProtocol,
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
    fn each_client_and_server_has_its_rate_and_all_have_a_share_of_the_servers_links() {
        let of = |speed| network_outcomes(&results(speed)).remove(0).groups.expect("a pattern of clients");
        let known = of(Some(ByteRate(1000.0)));
        assert_eq!(known.clients, [MachineRate { machine: 0, rate: ByteRate(1650.0) }]);
        let servers: Vec<f64> = known.servers.iter().map(|server| server.rate.0).collect();
        assert_eq!(servers, [900.0, 750.0]);
        assert_eq!((known.server_links, known.share()), (Some(ByteRate(2000.0)), Some(0.825)));
        let unknown = of(None);
        assert_eq!((unknown.server_links, unknown.share()), (None, None));
    }
}
