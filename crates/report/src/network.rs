//! Network rates as text and as JSON, for `nilometer network` and for the report of a campaign that measured
//! them.

use nilometer_model::{
    ByteRate, CampaignMachine, FlowSettings, Nanos, NetworkCell, NetworkLink, NetworkMachine,
    NetworkProtocol, NetworkResults, TrafficPattern,
};
use nilometer_plan::Results;
use serde_json::{Value, json};

use nilometer_analysis::{
    GroupRates, GroupSide, LossFreeRate, MachineRate, NetworkOutcome, NetworkShare, OddLink, PacedLoss,
    SideShare, loss_free_rates, network_outcomes, odd_links, paced_losses,
};

/// The headings of the columns, the most important first.
pub(super) const COLUMNS: [&str; 6] =
    ["", "rate", "slowest flow", "round trip", "sent again", "processor s/GB"];

/// The explanation of the columns.
pub(super) const LEGEND: &str = "received rate of all flows together; slowest flow's share of the mean; \
                                 smoothed round trip under load; retransmitted segments; processor time of \
                                 senders and receivers";

/// `node1  10.1.0.1 (2 processes)`.
pub(super) fn machine_words(machine: &NetworkMachine) -> String {
    let count = machine.ranks.len();
    let processes = if count == 1 { "process" } else { "processes" };
    format!("{}  {} ({count} {processes})", machine.name, machine.addresses.join(", "))
}

/// All patterns with the same number of flows.
#[derive(Debug)]
pub(super) struct NetworkTable {
    pub(super) heading: String,
    /// In the order of [`COLUMNS`].
    pub(super) rows: Vec<[String; 6]>,
}

/// One for each number of flows with each of their settings.
pub(super) fn tables(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> Vec<NetworkTable> {
    let names = results.names();
    let table = |alike: &[NetworkOutcome]| NetworkTable {
        heading: heading(&alike[0].cell),
        rows: alike.iter().map(|outcome| row(outcome, &names)).collect(),
    };
    outcomes.chunk_by(|one, other| one.cell.has_load_of(&other.cell)).map(table).collect()
}

fn heading(cell: &NetworkCell) -> String {
    let of = flows_words(cell.flows, &FlowSettings::default());
    format!("TCP, {of} from each machine to each other that it sends to{}", cell.settings_words())
}

/// `one flow` or `4 flows, htcp`: the flows between two machines with their settings.
pub(super) fn load_words(cell: &NetworkCell) -> String {
    flows_words(cell.flows, &cell.settings)
}

fn flows_words(flows: u32, settings: &FlowSettings) -> String {
    let flows = if flows == 1 { "one flow".into() } else { format!("{flows} flows") };
    if settings.is_default() { flows } else { format!("{flows}, {settings}") }
}

fn row(outcome: &NetworkOutcome, names: &[String]) -> [String; 6] {
    let time = |seconds: f64| Nanos::from_seconds(seconds).to_string();
    [
        outcome.cell.pattern.words(names),
        rate_words(outcome),
        outcome.slowest.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share)),
        outcome.round_trip.map_or_else(String::new, time),
        format!("{:.0}", outcome.retransmitted),
        outcome.processor.map_or_else(String::new, |[send, receive]| format!("{send:.2} + {receive:.2}")),
    ]
}

/// `9.4 Gbit/s ± 1 %`.
pub(super) fn rate_words(outcome: &NetworkOutcome) -> String {
    let Some(rate) = &outcome.rate else { return without_rate(outcome).into() };
    let width = rate.half_width().map(|half| format!(" ± {:.0} %", 100.0 * half / rate.mean));
    format!("{}{}", ByteRate(rate.mean).bits(), width.unwrap_or_default())
}

/// The word for a pattern without a rate.
fn without_rate(outcome: &NetworkOutcome) -> &'static str {
    match (&outcome.failed, &outcome.left_out) {
        (Some(_), _) => "FAILED",
        (None, Some(_)) => "left out",
        (None, None) => "not measured",
    }
}

/// The conclusions from the figures, the trials left out, and the failures. `left_out` has the trials that the plan
/// leaves out by itself.
pub(super) fn sentences(
    results: &NetworkResults,
    outcomes: &[NetworkOutcome],
    left_out: &[String],
) -> Vec<String> {
    let names = results.names();
    let mut sentences: Vec<String> =
        odd_links(outcomes).iter().map(|odd| odd_sentence(odd, &names)).collect();
    sentences.extend(group_sentences(outcomes, &names));
    sentences.extend(loss_free_rates(results).iter().map(|found| loss_sentence(*found, &names)));
    sentences.extend(paced_losses(results).iter().map(|found| paced_sentence(*found, &names)));
    let lacking = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.left_out.as_ref()?)));
    sentences.extend(lacking.map(|(outcome, why)| {
        format!("LEFT OUT: {}, {}: {why}", outcome.cell.pattern.words(&names), load_words(&outcome.cell))
    }));
    sentences.extend(left_out.iter().map(|why| format!("LEFT OUT: {why}")));
    for (number, cell) in results.cells.iter().enumerate() {
        let why = results.of_cell(number).find_map(|sample| sample.failed());
        sentences.extend(why.map(|why| format!("FAILED: {}: {why}", cell.words(&names))));
    }
    sentences
}

fn odd_sentence(odd: &OddLink, names: &[String]) -> String {
    let OddLink { from, to, flows, settings, share } = odd;
    format!(
        "ODD: {} to {} carries {:.0} % of the median rate of all links, with {}",
        names[*from],
        names[*to],
        100.0 * share,
        flows_words(*flows, settings)
    )
}

/// For each pattern of clients the share of the links, and the rate of each client and each server. If links are
/// unknown, one sentence says that.
fn group_sentences(outcomes: &[NetworkOutcome], names: &[String]) -> Vec<String> {
    let grouped = || outcomes.iter().filter_map(|outcome| Some((outcome, outcome.groups.as_ref()?)));
    let has_no =
        |links: fn(&GroupRates) -> Option<ByteRate>| grouped().any(|(_, groups)| links(groups).is_none());
    let unknown = if has_no(|groups| groups.server_links) {
        Some("The speed of a server's link is unknown, and so is the share of the servers' links")
    } else if has_no(|groups| groups.client_links) {
        Some("The speed of a client's link is unknown, and so is the side with the slower links")
    } else {
        None
    };
    let known = grouped().map(|(outcome, groups)| group_sentence(outcome, groups, names));
    known.chain(unknown.map(str::to_owned)).collect()
}

/// `2 clients to 9 servers, one flow: 92.4 ± 0.8 % of the servers' links (90 Gbit/s), which are the slower side; ..;
/// clients: ..; servers: ..`.
fn group_sentence(outcome: &NetworkOutcome, groups: &GroupRates, names: &[String]) -> String {
    let each = |machines: &[MachineRate]| {
        let words = |of: &MachineRate| format!("{} {}", names[of.machine], of.rate.bits());
        machines.iter().map(words).collect::<Vec<_>>().join(", ")
    };
    let mut parts: Vec<String> =
        SIDES.iter().filter_map(|side| Some(share_words(groups, groups.share(*side)?))).collect();
    parts.push(format!("clients: {}", each(&groups.clients)));
    parts.push(format!("servers: {}", each(&groups.servers)));
    format!("{}, {}: {}", outcome.cell.pattern.words(names), load_words(&outcome.cell), parts.join("; "))
}

/// The order of the sides in sentences and in JSON: studies give the share of the servers' links.
const SIDES: [GroupSide; 2] = [GroupSide::Servers, GroupSide::Clients];

/// `92.4 ± 0.8 % of the servers' links (90 Gbit/s), the slower side`.
fn share_words(groups: &GroupRates, share: SideShare) -> String {
    let SideShare { side, links, share, half_width } = share;
    let half_width = half_width.map(|half| format!(" ± {:.1}", 100.0 * half)).unwrap_or_default();
    let slower = if groups.slower_side() == Some(side) { ", the slower side" } else { "" };
    format!("{:.1}{half_width} % of the {}' links ({}){slower}", 100.0 * share, side.name(), links.bits())
}

fn loss_sentence(found: LossFreeRate, names: &[String]) -> String {
    let LossFreeRate { from, to, whole, lossy } = found;
    let way = format!("UDP, {} to {}", names[from], names[to]);
    match (whole, lossy) {
        (Some(whole), None) => format!("{way}: no packet lost at {}, the highest rate sent", whole.bits()),
        (Some(whole), Some(lossy)) => {
            format!("{way}: no packet lost at {}, some at {}", whole.bits(), lossy.bits())
        }
        (None, Some(lossy)) => format!("{way}: packets lost at {} and above", lossy.bits()),
        (None, None) => format!("{way}: not measured"),
    }
}

fn paced_sentence(found: PacedLoss, names: &[String]) -> String {
    let PacedLoss { from, to, rate, rounds, sent, lost, reordered } = found;
    let share = 100.0 * lost as f64 / sent.max(1) as f64;
    let rounds = if rounds == 1 { "one round".into() } else { format!("{rounds} rounds") };
    let overtaken = if reordered > 0 { format!(", {reordered} overtaken") } else { String::new() };
    format!(
        "UDP, {} to {}: {lost} of {sent} packets lost at {} ({share:.2} %){overtaken}, {rounds}",
        names[from],
        names[to],
        rate.bits()
    )
}

/// Returns the links of all machines, each named `node1 eth0`, or `eth0` if there is only one machine.
pub(super) fn links(machines: &[CampaignMachine]) -> Vec<(String, &NetworkLink)> {
    let mut links = Vec::new();
    for machine in machines {
        let before = if machines.len() > 1 { format!("{} ", machine.name) } else { String::new() };
        links.extend(machine.links.iter().map(|link| (format!("{before}{}", link.name), link)));
    }
    links
}

/// Returns the derived figures and all samples as JSON. `left_out` has the trials that the plan leaves out by itself.
pub fn network_json(results: &NetworkResults, left_out: &[String]) -> Value {
    let names = results.names();
    let outcomes = network_outcomes(results);
    let odd = odd_links(&outcomes);
    let figures: Vec<Value> = outcomes.iter().map(|outcome| figure(outcome, &names)).collect();
    let odd: Vec<Value> = odd.iter().map(|odd| odd_object(odd, &names)).collect();
    let loss_free = loss_free_rates(results);
    let loss_free: Vec<Value> = loss_free.iter().map(|found| loss_free_object(*found, &names)).collect();
    json!({
        "figures": figures,
        "odd_links": odd,
        "left_out": left_out,
        "loss_free": loss_free,
        "paced": paced_losses(results).iter().map(|found| paced_object(*found, &names)).collect::<Vec<_>>(),
        "machines": super::units_in_keys(json!(results.machines)),
        "cells": super::units_in_keys(json!(results.cells)),
        "samples": super::units_in_keys(json!(results.samples)),
    })
}

/// Returns one object for each of a campaign's stages that measured the network.
pub(super) fn network_stages(results: &Results) -> Vec<Value> {
    let stages = results.network.iter().enumerate().map(|(number, stage)| {
        let mut object = network_json(&stage.results, &left_out_by_plan(results, number));
        object["stage"] = json!(stage.stage);
        object
    });
    stages.collect()
}

/// The trials that the plan leaves out by itself in one of its stages of the network.
pub(super) fn left_out_by_plan(results: &Results, stage: usize) -> Vec<String> {
    let machines = results.network[stage].results.machines.len();
    let run = results.campaign.as_ref().and_then(|campaign| campaign.plan.network.get(stage));
    run.map_or_else(Vec::new, |run| run.left_out(machines))
}

/// The machines with their links.
pub(super) fn machines_json(results: &Results) -> Value {
    results.machines.iter().map(machine_json).collect()
}

fn machine_json(machine: &CampaignMachine) -> Value {
    let facts: serde_json::Map<String, Value> =
        machine.facts.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "name": machine.name,
        "environment": facts,
        "links": super::units_in_keys(json!(machine.links)),
    })
}

/// Returns, for targets behind a network, their shares of the network's rate.
pub(super) fn shares_json(shares: &[NetworkShare]) -> Vec<Value> {
    shares.iter().map(share_json).collect()
}

fn share_json(share: &NetworkShare) -> Value {
    json!({
        "target": nilometer_analysis::letter(share.target),
        "stage": share.stage,
        "phase": share.phase.name(),
        "bytes_per_second": share.rate.0,
        "machines": share.machines,
        "share": share.share(),
        "is_network": share.is_network(),
        "sentence": share.to_string(),
    })
}

fn odd_object(odd: &OddLink, names: &[String]) -> Value {
    let OddLink { from, to, flows, settings, share } = odd;
    json!({
        "from": names[*from],
        "to": names[*to],
        "flows": flows,
        "processes": settings.processes,
        "congestion": settings.congestion,
        "buffer_bytes": settings.buffer.map(|bytes| bytes.0),
        "share": share,
    })
}

fn loss_free_object(found: LossFreeRate, names: &[String]) -> Value {
    json!({
        "from": names[found.from],
        "to": names[found.to],
        "loss_free_bytes_per_second": found.whole.map(|rate| rate.0),
        "lossy_bytes_per_second": found.lossy.map(|rate| rate.0),
    })
}

fn paced_object(found: PacedLoss, names: &[String]) -> Value {
    json!({
        "from": names[found.from],
        "to": names[found.to],
        "asked_bytes_per_second": found.rate.0,
        "rounds": found.rounds,
        "sent": found.sent,
        "lost": found.lost,
        "reordered": found.reordered,
    })
}

fn groups_object(groups: &GroupRates, names: &[String]) -> Value {
    let each = |machines: &[MachineRate]| {
        let object = |of: &MachineRate| json!({ "name": names[of.machine], "bytes_per_second": of.rate.0 });
        machines.iter().map(object).collect::<Vec<_>>()
    };
    let share = |side| groups.share(side);
    json!({
        "clients": each(&groups.clients),
        "servers": each(&groups.servers),
        "client_links_bytes_per_second": groups.client_links.map(|links| links.0),
        "client_links_share": share(GroupSide::Clients).map(|of| of.share),
        "client_links_share_half_width": share(GroupSide::Clients).and_then(|of| of.half_width),
        "server_links_bytes_per_second": groups.server_links.map(|links| links.0),
        "server_links_share": share(GroupSide::Servers).map(|of| of.share),
        "server_links_share_half_width": share(GroupSide::Servers).and_then(|of| of.half_width),
        "slower_links": groups.slower_side().map(GroupSide::name),
    })
}

fn figure(outcome: &NetworkOutcome, names: &[String]) -> Value {
    let ends = match outcome.cell.pattern {
        TrafficPattern::Pair { from, to } => json!({ "from": names[from], "to": names[to] }),
        _ => Value::Null,
    };
    json!({
        "pattern": outcome.cell.pattern.words(names),
        "pair": ends,
        "protocol": NetworkProtocol::Tcp,
        "flows": outcome.cell.flows,
        "processes": outcome.cell.settings.processes,
        "congestion": outcome.cell.settings.congestion,
        "buffer_bytes": outcome.cell.settings.buffer.map(|bytes| bytes.0),
        "groups": outcome.groups.as_ref().map(|groups| groups_object(groups, names)),
        "bytes_per_second": outcome.rate.map(|rate| rate.mean),
        "half_width_bytes_per_second": outcome.rate.and_then(|rate| rate.half_width()),
        "repeats": outcome.rate.map_or(0, |rate| rate.count),
        "slowest_flow_share": outcome.slowest,
        "retransmitted": outcome.retransmitted,
        "round_trip_seconds": outcome.round_trip,
        "sending_processor_seconds_per_gigabyte": outcome.processor.map(|[sending, _]| sending),
        "receiving_processor_seconds_per_gigabyte": outcome.processor.map(|[_, receiving]| receiving),
        "failed": outcome.failed,
        "left_out": outcome.left_out,
    })
}

#[cfg(test)]
mod tests {
    use nilometer_model::{
        FlowEnd, FlowSample, FlowSettings, MachineGroups, NetworkMachine, NetworkSample, TrafficPattern,
    };

    use super::*;

    /// A client sends to two servers with links of 10 Gbit/s.
    fn results(link_speed: Option<ByteRate>) -> NetworkResults {
        let machine = |(rank, name): (u32, &str)| NetworkMachine {
            name: name.into(),
            ranks: vec![rank],
            link_speed,
            ..NetworkMachine::default()
        };
        let received = FlowEnd { bytes: 1_000_000_000, last: Nanos(1_000_000_000), ..FlowEnd::default() };
        let flow = |to| FlowSample { from: 0, to, received: received.clone(), ..FlowSample::default() };
        let pattern = TrafficPattern::ClientsToServers(MachineGroups { clients: 1, servers: 2 });
        let congestion = Some("htcp".parse().expect("a name"));
        let settings = FlowSettings { congestion, ..FlowSettings::default() };
        NetworkResults {
            machines: (0..).zip(["c", "s1", "s2"]).map(machine).collect(),
            cells: vec![NetworkCell { pattern, protocol: NetworkProtocol::Tcp, flows: 1, settings }],
            samples: vec![NetworkSample {
                cell: 0,
                repeat: 0,
                asked: None,
                flows: vec![flow(1), flow(2)],
                intervals: Vec::new(),
            }],
        }
    }

    #[test]
    fn repeats_give_a_share_its_interval_and_a_failed_flow_is_named_with_its_settings() {
        let mut of_repeats = results(Some(ByteRate(1.25e9)));
        let mut again = of_repeats.samples[0].clone();
        again.repeat = 1;
        again.flows[0].received.bytes = 950_000_000;
        let mut failed = again.clone();
        failed.repeat = 2;
        failed.flows[0].sent.failed = Some("gone".into());
        of_repeats.samples.extend([again, failed]);
        let said = sentences(&of_repeats, &network_outcomes(&of_repeats), &[]);
        assert!(said[0].contains(": 79.0 ± 12.7 % of the servers' links (20 Gbit/s); "), "{said:?}");
        assert_eq!(said[1], "FAILED: 1 client to 2 servers, TCP, one flow, htcp: gone");
        let groups = &network_json(&of_repeats, &[])["figures"][0]["groups"];
        let half_width = groups["server_links_share_half_width"].as_f64().expect("two repeats");
        assert!((half_width - 0.12706).abs() < 1e-4, "{half_width}");
    }

    #[test]
    fn links_that_differ_by_a_setting_alone_are_told_apart() {
        let settings = |name: &str| FlowSettings {
            congestion: Some(name.parse().expect("a name")),
            ..FlowSettings::default()
        };
        let names = ["a".to_owned(), "b".to_owned()];
        let odd = |name| OddLink { from: 0, to: 1, flows: 4, settings: settings(name), share: 0.25 };
        assert_eq!(
            odd_sentence(&odd("reno"), &names),
            "ODD: a to b carries 25 % of the median rate of all links, with 4 flows, reno"
        );
        assert_eq!(odd_object(&odd("htcp"), &names)["congestion"], "htcp");
    }

    #[test]
    fn clients_and_servers_have_their_share_of_the_links_unless_a_link_is_unknown() {
        let known = results(Some(ByteRate(1.25e9)));
        let said = sentences(&known, &network_outcomes(&known), &[]);
        let words = "1 client to 2 servers, one flow, htcp: 80.0 % of the servers' links (20 Gbit/s); 160.0 % of the \
                     clients' links (10 Gbit/s), the slower side; clients: c 16 Gbit/s; servers: s1 8 Gbit/s, s2 8 Gbit/s";
        assert_eq!(said, [words]);
        let json = network_json(&known, &["some".into()]);
        assert_eq!(json["left_out"], json!(["some"]));
        let groups = &json["figures"][0]["groups"];
        assert_eq!(
            (&groups["server_links_share"], &groups["clients"][0]["name"]),
            (&json!(0.8), &json!("c"))
        );
        assert_eq!(
            (&groups["client_links_share"], &groups["slower_links"]),
            (&json!(1.6), &json!("clients"))
        );
        assert_eq!(json["figures"][0]["congestion"], "htcp");
        let unknown = results(None);
        let said = sentences(&unknown, &network_outcomes(&unknown), &["some trials".into()]);
        assert_eq!((said.len(), said[2].as_str()), (3, "LEFT OUT: some trials"), "{said:?}");
        assert!(said[1].starts_with("The speed of a server's link is unknown"), "{said:?}");
        assert!(network_json(&unknown, &[])["figures"][0]["groups"]["server_links_share"].is_null());
    }
}
