//! A trial of the network between machines as a row beside the samples of targets. It fills the columns that
//! apply to it too, and some of its own.

use nilometer_model::{
    FlowEnd, FlowSample, LinkTraffic, Nanos, NetworkCell, NetworkProtocol, NetworkSample, NetworkStage,
    TrafficInterval, statistics::median,
};

type NetworkColumn = (&'static str, fn(&NetworkCell, &NetworkSample) -> String);

/// Behind all others; empty for all but the network.
pub(super) const COLUMNS: [NetworkColumn; 11] = [
    ("network_protocol", |cell, _| cell.protocol.name().into()),
    ("network_flows", |_, sample| sample.flows.len().to_string()),
    ("network_asked_bytes_per_s_a_flow", |_, sample| {
        sample.asked.map_or_else(String::new, |rate| rate.to_string())
    }),
    ("network_offered_bytes_per_s", |_, sample| sample.offered().0.to_string()),
    ("network_slowest_flow_bytes_per_s", |_, sample| {
        let rates = sample.flows.iter().map(|flow| flow.rate().0);
        rates.reduce(f64::min).map_or_else(String::new, |rate| rate.to_string())
    }),
    ("network_round_trip_s", |_, sample| {
        let found = sample.flows.iter().filter_map(|flow| flow.sent.connection.as_ref());
        let times: Vec<f64> = found.map(|found| found.round_trip.seconds()).collect();
        median(&times).map_or_else(String::new, |time| time.to_string())
    }),
    ("network_segments_sent_again", |cell, sample| {
        let is_known = cell.protocol == NetworkProtocol::Tcp;
        if is_known { sample.retransmitted().to_string() } else { String::new() }
    }),
    ("network_packets_sent", |_, sample| packets(sample, |flow| &flow.sent)),
    ("network_processes", |cell, _| setting(cell.settings.processes)),
    ("network_congestion", |cell, _| setting(cell.settings.congestion)),
    ("network_buffer_bytes", |cell, _| setting(cell.settings.buffer.map(|bytes| bytes.0))),
];

/// Behind those; empty for all rows but those of intervals.
pub(super) const INTERVAL_COLUMNS: [&str; 7] = [
    "network_machine",
    "network_link",
    "network_interval_from_s",
    "network_interval_until_s",
    "network_link_received_bytes",
    "network_link_sent_bytes",
    "network_machine_segments_sent_again",
];

/// The phase of rows of intervals.
const INTERVAL: &str = "network interval";

/// A row for each interface in each interval of a trial, and one for the segments that the machine sent again, which
/// names no interface.
pub(super) fn interval_rows(
    stage: &NetworkStage,
    sample: &NetworkSample,
    header: &[String],
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for interval in &sample.intervals {
        let row = |own: &[(&str, String)]| interval_row(stage, sample, interval, header, own);
        if let Some(count) = interval.retransmitted {
            rows.push(row(&[("network_machine_segments_sent_again", count.to_string())]));
        }
        for LinkTraffic { name, received_bytes, sent_bytes } in &interval.links {
            let own = [
                ("network_link", name.clone()),
                ("network_link_received_bytes", received_bytes.to_string()),
                ("network_link_sent_bytes", sent_bytes.to_string()),
            ];
            rows.push(row(&own));
        }
    }
    rows
}

fn interval_row(
    stage: &NetworkStage,
    sample: &NetworkSample,
    interval: &TrafficInterval,
    header: &[String],
    own: &[(&str, String)],
) -> Vec<String> {
    let machine = stage.results.machines.get(interval.machine);
    let of_interval = [
        ("phase", INTERVAL.to_owned()),
        ("network_machine", machine.map_or_else(String::new, |machine| machine.name.clone())),
        ("network_interval_from_s", seconds(interval.from)),
        ("network_interval_until_s", seconds(interval.until)),
    ];
    let known = |name: &str| of_interval.iter().chain(own).find(|(known, _)| *known == name);
    let value = |name: &String| match name.as_str() {
        "stage" | "cell" | "repeat" => field(stage, sample, name),
        name => known(name).map_or_else(String::new, |(_, text)| text.clone()),
    };
    header.iter().map(value).collect()
}

/// Empty if the kernel decides.
fn setting(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A row with the columns of these names, and the columns above.
pub(super) fn fields(stage: &NetworkStage, sample: &NetworkSample, names: &[String]) -> Vec<String> {
    let cell = &stage.results.cells[sample.cell];
    let own = COLUMNS.iter().map(|(_, value)| value(cell, sample));
    let none = INTERVAL_COLUMNS.iter().map(|_| String::new());
    names.iter().map(|name| field(stage, sample, name)).chain(own).chain(none).collect()
}

fn field(stage: &NetworkStage, sample: &NetworkSample, name: &str) -> String {
    let cell = &stage.results.cells[sample.cell];
    match name {
        "stage" => stage.stage.clone(),
        "cell" => cell.words(&stage.results.names()),
        "phase" => "network".into(),
        "repeat" => sample.repeat.to_string(),
        name => figure(cell, sample, name).unwrap_or_default(),
    }
}

/// The value of a target's column for a trial; `None` if the column does not apply.
fn figure(cell: &NetworkCell, sample: &NetworkSample, name: &str) -> Option<String> {
    let received = || sample.flows.iter().map(|flow| &flow.received);
    let sum =
        |time: fn(&FlowSample) -> Nanos| seconds(Nanos(sample.flows.iter().map(|flow| time(flow).0).sum()));
    let is_packets = cell.protocol == NetworkProtocol::Udp;
    Some(match name {
        "bytes" => received().map(|end| end.bytes).sum::<u64>().to_string(),
        "wall_s" => seconds(received().map(|end| end.last).max()?),
        "rate_bytes_per_s" => sample.rate().0.to_string(),
        "sending_cpu_s" => sum(|flow| flow.sent.processor),
        "receiving_cpu_s" => sum(|flow| flow.received.processor),
        "invalid_code" => sample.failed().map(|_| "failed".into())?,
        "invalid" => sample.failed()?.to_owned(),
        "packets_came" => packets(sample, |flow| &flow.received),
        "packets_lost" if is_packets => sample.lost().to_string(),
        "packets_reordered" if is_packets => reordered(sample).to_string(),
        _ => return None,
    })
}

/// The packets of all flows together; empty if nobody counted packets.
fn packets(sample: &NetworkSample, end: fn(&FlowSample) -> &FlowEnd) -> String {
    let counts: Vec<u64> = sample.flows.iter().filter_map(|flow| Some(end(flow).packets?.packets)).collect();
    if counts.is_empty() { String::new() } else { counts.iter().sum::<u64>().to_string() }
}

fn reordered(sample: &NetworkSample) -> u64 {
    sample.flows.iter().filter_map(|flow| Some(flow.received.packets?.reordered)).sum()
}

pub(super) fn seconds(time: Nanos) -> String {
    time.seconds().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nilometer_model::{DatagramCounts, TcpFindings};
    use nilometer_plan::Results;

    use super::*;
    use crate::csv;
    use nilometer_analysis::{Study, made_up::network_stage};

    /// The rows by the names of their columns.
    fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let row = |line: &str| {
            // The only quoted field is the cell, which has two commas.
            let parts: Vec<&str> = line.split('"').collect();
            let [before, cell, behind] = parts[..] else { panic!("one is quoted: {line}") };
            let before = before.trim_end_matches(',').split(',');
            let behind = behind.strip_prefix(',').expect("more fields").split(',');
            let fields: Vec<String> = before.chain([cell]).chain(behind).map(str::to_owned).collect();
            assert_eq!(fields.len(), names.len(), "{line}");
            names.iter().map(|name| (*name).to_owned()).zip(fields).collect()
        };
        lines.map(row).collect()
    }

    /// Two machines, one flow of each protocol with known counts, and one that failed.
    fn stage() -> NetworkStage {
        let mut stage = network_stage(500);
        stage.results.cells[1].protocol = NetworkProtocol::Udp;
        stage.results.samples.truncate(3);
        let [stream, search, broken] = &mut stage.results.samples[..] else { panic!("three") };
        stream.flows[0].sent.connection =
            Some(TcpFindings { retransmitted: 7, round_trip: Nanos(2_000_000), ..TcpFindings::default() });
        stream.flows[0].sent.processor = Nanos(250_000_000);
        search.asked = Some(600);
        let counts = |packets, reordered| Some(DatagramCounts { packets, reordered });
        (search.flows[0].sent.packets, search.flows[0].received.packets) = (counts(100, 0), counts(97, 2));
        broken.flows[0].received.failed = Some("gone".into());
        stage
    }

    #[test]
    fn a_trial_is_a_row_in_the_columns_that_say_the_same_and_in_its_own() {
        let mut stage = stage();
        stage.results.samples[2].intervals = vec![TrafficInterval {
            machine: 1,
            until: Nanos(500_000_000),
            retransmitted: Some(3),
            links: vec![LinkTraffic { name: "eth0".into(), received_bytes: 40, sent_bytes: 50 }],
            ..TrafficInterval::default()
        }];
        let results = Results { network: vec![stage], ..Results::default() };
        let rows = rows(&csv(&Study::of(&results)));
        let has = |row: usize, fields: &[(&str, &str)]| {
            for (name, value) in fields {
                assert_eq!(rows[row][*name], *value, "{name} of row {row}: {:?}", rows[row]);
            }
        };
        assert_eq!(rows.len(), 3 + 2, "an interval has a row of the machine and one of its interface");
        has(3, &[("phase", "network interval"), ("network_machine", "node2"), ("network_link", "")]);
        has(3, &[("network_machine_segments_sent_again", "3"), ("repeat", "1"), ("bytes", "")]);
        has(4, &[("network_link", "eth0"), ("network_interval_until_s", "0.5"), ("network_flows", "")]);
        has(4, &[("network_link_received_bytes", "40"), ("network_link_sent_bytes", "50")]);
        has(0, &[("stage", "between"), ("cell", "node1 to node2, TCP, one flow"), ("phase", "network")]);
        has(0, &[("target", ""), ("repeat", "0"), ("bytes", "500"), ("wall_s", "1")]);
        has(0, &[("rate_bytes_per_s", "500"), ("sending_cpu_s", "0.25"), ("network_protocol", "tcp")]);
        has(0, &[("network_segments_sent_again", "7"), ("network_round_trip_s", "0.002")]);
        has(0, &[("packets_lost", ""), ("invalid", ""), ("network_flows", "1")]);
        has(1, &[("packets_came", "97"), ("packets_lost", "3"), ("packets_reordered", "2")]);
        has(1, &[("network_asked_bytes_per_s_a_flow", "600"), ("network_packets_sent", "100")]);
        has(1, &[("network_segments_sent_again", ""), ("network_protocol", "udp")]);
        has(2, &[("invalid_code", "failed"), ("invalid", "gone"), ("repeat", "1")]);
    }
}
