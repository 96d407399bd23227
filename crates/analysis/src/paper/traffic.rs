//! Finds the trials of a record that measured a line of a network table again, and adds them up.

use nilometer_model::{
    ByteRate, CongestionControl, FlowSample, NetworkCell, NetworkProtocol, NetworkResults, NetworkSample,
    TrafficPattern, statistics::Summary,
};

use crate::{GroupRates, GroupSide, NetworkOutcome, network_outcomes};

/// The values of a line's parameters: the trials of its stage that have its figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LineTraffic {
    is_back: bool,
    flows: Option<u32>,
    processes: Option<u32>,
    /// The number of processes that the gain of the others is over.
    pub(super) over_processes: Option<u32>,
    congestion: Option<CongestionControl>,
    /// The number of a client, from 0; `None` means all.
    client: Option<usize>,
}

/// The figures of a line, summed over its cells. Each cell has the mean of its trials.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OwnTraffic {
    /// Bytes a second that receivers got.
    pub(super) rate: f64,
    /// Segments of TCP sent again.
    pub(super) sent_again: f64,
    /// The share of packets lost, for UDP; `None` for TCP.
    pub(super) lost_share: Option<f64>,
    /// The half width of the rate's 95 % interval, for a line of one cell; `None` for a single trial.
    pub(super) half_width: Option<f64>,
    /// The speed of all servers' links; `None` if that of one is unknown, and for pairs of machines.
    pub(super) server_links: Option<ByteRate>,
    /// The speed of all clients' links, if they are slower than those of the servers.
    pub(super) slower_client_links: Option<ByteRate>,
    /// Trials that count.
    pub(super) valid: usize,
    /// All trials.
    pub(super) all: usize,
}

/// The reason why a record has no figure of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TrafficGap {
    /// A machine lacks something.
    LeftOut(String),
    /// A flow failed in each trial.
    Failed(String),
    /// The campaign made no trial, or its plan has none.
    NotMeasured(String),
}

impl TrafficGap {
    /// The words in the figure's place.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            TrafficGap::LeftOut(_) => "left out",
            TrafficGap::Failed(_) => "FAILED",
            TrafficGap::NotMeasured(_) => "not measured",
        }
    }

    /// The same with the reason.
    pub(super) fn sentence(&self) -> String {
        let (TrafficGap::LeftOut(why) | TrafficGap::Failed(why) | TrafficGap::NotMeasured(why)) = self;
        format!("{}: {why}", self.word())
    }
}

impl LineTraffic {
    /// Reads the values of a line's parameters. The files of studies are part of the program: a test reads each line.
    pub(super) fn of(values: &[(String, String)]) -> Self {
        let mut line = LineTraffic::default();
        for (name, text) in values {
            let number = || text.parse::<u32>().unwrap_or_else(|error| panic!("{name} = {text}: {error}"));
            match name.as_str() {
                "way" if text == "there" => line.is_back = false,
                "way" if text == "back" => line.is_back = true,
                "flows" => line.flows = Some(number()),
                "processes" => line.processes = Some(number()),
                "over_processes" => line.over_processes = Some(number()),
                "congestion" => line.congestion = text.parse().ok(),
                "client" => line.client = (number() as usize).checked_sub(1),
                _ => panic!("a line of the network has {name} = {text}"),
            }
        }
        line
    }

    /// The line that the gain of this one is over; `None` if it has no gain.
    pub(super) fn base(&self) -> Option<Self> {
        let processes = Some(self.over_processes?);
        Some(LineTraffic { processes, over_processes: None, ..self.clone() })
    }

    /// Returns true if a cell's trials belong to the line.
    pub(super) fn has(&self, cell: &NetworkCell) -> bool {
        let settings = &cell.settings;
        self.flows.is_none_or(|flows| flows == cell.flows)
            && self.processes.is_none_or(|count| Some(count) == settings.processes)
            && self.congestion.is_none_or(|control| Some(control) == settings.congestion)
            && self.has_way(cell.pattern)
    }

    /// Clients are the first machines, so that flows to a server go to a machine with a higher number.
    fn has_way(&self, pattern: TrafficPattern) -> bool {
        let is_of_client = |client: usize| self.client.is_none_or(|wanted| wanted == client);
        match pattern {
            TrafficPattern::Pair { from, to } => (from > to) == self.is_back && is_of_client(from.min(to)),
            TrafficPattern::ClientsToServers(_) => !self.is_back,
            TrafficPattern::ServersToClients(_) => self.is_back,
            _ => false,
        }
    }

    /// The figures of the line in a stage.
    pub(super) fn measured(&self, results: &NetworkResults) -> Result<OwnTraffic, TrafficGap> {
        let cells = results.cells.iter().enumerate().filter(|(_, cell)| self.has(cell));
        let mut sum = OwnTraffic::default();
        let mut packets = PacketCounts::default();
        let mut count = 0;
        for (number, cell) in cells {
            count += 1;
            let of_cell = self.of_cell(results, number, cell, &mut packets)?;
            sum.rate += of_cell.rate;
            sum.sent_again += of_cell.sent_again;
            sum.valid += of_cell.valid;
            sum.all += of_cell.all;
            sum.server_links = of_cell.server_links;
            sum.slower_client_links = of_cell.slower_client_links;
            sum.half_width = of_cell.half_width.filter(|_| count == 1);
        }
        if count == 0 {
            return Err(TrafficGap::NotMeasured("the record has no such trials".into()));
        }
        sum.lost_share = packets.lost_share();
        Ok(sum)
    }

    fn of_cell(
        &self,
        results: &NetworkResults,
        number: usize,
        cell: &NetworkCell,
        packets: &mut PacketCounts,
    ) -> Result<OwnTraffic, TrafficGap> {
        let all: Vec<&NetworkSample> = match cell.protocol {
            NetworkProtocol::Tcp => results.of_cell(number).collect(),
            // The first trial of a search sends as fast as it can.
            NetworkProtocol::Udp => results.of_cell(number).take(1).collect(),
        };
        let valid: Vec<&NetworkSample> =
            all.iter().copied().filter(|sample| sample.failed().is_none()).collect();
        if valid.is_empty() {
            return Err(gap(results, number, &all));
        }
        let of_sample = |sample: &&NetworkSample| {
            let own = sample.flows.iter().filter(|flow| self.has_flow(results, flow));
            own.map(|flow| flow.rate().0).sum::<f64>()
        };
        let rates = Summary::of(&valid.iter().map(of_sample).collect::<Vec<_>>());
        let mut found = OwnTraffic { valid: valid.len(), all: all.len(), ..OwnTraffic::default() };
        found.rate = rates.as_ref().map_or(0.0, |rates| rates.mean);
        found.half_width = rates.and_then(|rates| rates.half_width());
        for flow in valid.iter().flat_map(|sample| &sample.flows).filter(|flow| self.has_flow(results, flow))
        {
            let again = flow.sent.connection.as_ref().map_or(0, |connection| connection.retransmitted);
            found.sent_again += again as f64 / valid.len() as f64;
            packets.add(flow);
        }
        if let Some(groups) = groups(results, number) {
            let is_slower = groups.slower_side() == Some(GroupSide::Clients);
            found.slower_client_links = groups.client_links.filter(|_| is_slower);
            found.server_links = groups.server_links;
        }
        Ok(found)
    }

    /// Returns true if a flow is to or from the line's client, or if the line is of all clients.
    fn has_flow(&self, results: &NetworkResults, flow: &FlowSample) -> bool {
        let Some(client) = self.client else { return true };
        let ranks = results.machines.get(client).map_or(&[][..], |machine| machine.ranks.as_slice());
        ranks.contains(&flow.from) || ranks.contains(&flow.to)
    }
}

/// Packets of UDP over all cells of a line.
#[derive(Debug, Default)]
struct PacketCounts {
    sent: u64,
    received: u64,
}

impl PacketCounts {
    fn add(&mut self, flow: &FlowSample) {
        self.sent += flow.sent.packets.map_or(0, |counts| counts.packets);
        self.received += flow.received.packets.map_or(0, |counts| counts.packets);
    }

    fn lost_share(&self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.received);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }
}

fn gap(results: &NetworkResults, number: usize, all: &[&NetworkSample]) -> TrafficGap {
    let failed = all.iter().find_map(|sample| sample.failed());
    match (failed, results.lacking(number)) {
        (Some(why), _) => TrafficGap::Failed(why.into()),
        (None, Some(why)) => TrafficGap::LeftOut(why),
        (None, None) => TrafficGap::NotMeasured("the campaign ended before it".into()),
    }
}

/// The rates and links of clients and servers that exchange data at once.
fn groups(results: &NetworkResults, number: usize) -> Option<GroupRates> {
    let outcomes: Vec<NetworkOutcome> = network_outcomes(results);
    outcomes.into_iter().find(|outcome| outcome.number == number)?.groups
}

#[cfg(test)]
mod tests {
    use nilometer_model::{
        DatagramCounts, FlowEnd, FlowSettings, MachineGroups, Nanos, NetworkMachine, TcpFindings,
    };

    use super::*;

    fn line(values: &[(&str, &str)]) -> LineTraffic {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        LineTraffic::of(&values.iter().map(owned).collect::<Vec<_>>())
    }

    fn flow(from: u32, to: u32, bytes: u64, again: u64) -> FlowSample {
        let end = FlowEnd { bytes, last: Nanos(1_000_000_000), ..FlowEnd::default() };
        let connection = Some(TcpFindings { retransmitted: again, ..TcpFindings::default() });
        FlowSample { from, to, sent: FlowEnd { connection, ..end.clone() }, received: end }
    }

    /// Two clients and a server, whose link carries 1000 bytes a second.
    fn results(pattern: TrafficPattern, protocol: NetworkProtocol, flows: Vec<FlowSample>) -> NetworkResults {
        let machine = |rank: u32| NetworkMachine {
            name: format!("node-{rank}"),
            ranks: vec![rank],
            link_speed: Some(ByteRate(1000.0)),
            congestion: vec!["cubic".parse().expect("a name")],
            ..NetworkMachine::default()
        };
        let settings = FlowSettings { congestion: "cubic".parse().ok(), ..FlowSettings::default() };
        let cell = NetworkCell { pattern, protocol, flows: 1, settings };
        let mut other = cell;
        other.settings.congestion = "htcp".parse().ok();
        NetworkResults {
            machines: (0..3).map(machine).collect(),
            cells: vec![cell, other],
            samples: vec![NetworkSample { cell: 0, repeat: 0, asked: None, flows, intervals: Vec::new() }],
        }
    }

    #[test]
    fn a_client_has_its_own_flows_and_all_clients_have_a_share_of_the_servers_links() {
        let pattern = TrafficPattern::ClientsToServers(MachineGroups { clients: 2, servers: 1 });
        let results = results(pattern, NetworkProtocol::Tcp, vec![flow(0, 2, 500, 3), flow(1, 2, 300, 4)]);
        let rate =
            |values: &[(&str, &str)]| line(values).measured(&results).map(|of| (of.rate, of.sent_again));
        let cubic = ("congestion", "cubic");
        assert_eq!(rate(&[cubic]), Ok((800.0, 7.0)));
        assert_eq!(rate(&[cubic, ("client", "2")]), Ok((300.0, 4.0)));
        let links = line(&[cubic]).measured(&results).map(|of| of.server_links);
        assert_eq!(links, Ok(Some(ByteRate(1000.0))));
        let lacking = "node-0 has no congestion control htcp, but cubic".to_owned();
        assert_eq!(rate(&[("congestion", "htcp")]), Err(TrafficGap::LeftOut(lacking)));
        let none = Err(TrafficGap::NotMeasured("the record has no such trials".into()));
        assert_eq!(rate(&[("way", "back")]), none);
    }

    #[test]
    fn packets_have_the_share_that_the_first_trial_of_a_search_lost() {
        let mut sent = flow(0, 2, 700, 0);
        let counts = |packets| Some(DatagramCounts { packets, reordered: 0 });
        (sent.sent.packets, sent.received.packets) = (counts(10), counts(7));
        let pattern = TrafficPattern::Pair { from: 0, to: 2 };
        let mut results = results(pattern, NetworkProtocol::Udp, vec![sent.clone()]);
        sent.received.bytes = 1;
        results.samples.push(NetworkSample {
            cell: 0,
            repeat: 1,
            asked: Some(1),
            flows: vec![sent],
            intervals: Vec::new(),
        });
        let found = line(&[("client", "1"), ("congestion", "cubic")]).measured(&results).expect("measured");
        assert_eq!((found.rate, found.lost_share, found.all), (700.0, Some(0.3), 1));
        assert_eq!(found.server_links, None, "a pair of machines is no group");
    }

    #[test]
    fn a_gain_is_over_the_same_line_with_other_processes() {
        let gain = line(&[("processes", "6"), ("over_processes", "1"), ("flows", "6")]);
        assert_eq!(gain.base(), Some(line(&[("processes", "1"), ("flows", "6")])));
        assert_eq!(line(&[("processes", "6")]).base(), None);
    }
}
