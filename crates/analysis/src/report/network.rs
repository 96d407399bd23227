//! What the network carried, as text and as JSON.

use nilometer_model::{ByteRate, Nanos, NetworkMachine, NetworkProtocol, NetworkResults, TrafficPattern};
use serde_json::{Value, json};

use crate::{LossFreeRate, NetworkOutcome, OddLink, loss_free_rates, network_outcomes, odd_links};

/// What stands above the columns.
const COLUMNS: [&str; 6] = ["", "rate", "slowest flow", "round trip", "sent again", "processor s/GB"];

/// The figures of all patterns, a line each, and what follows from them.
pub fn network_text(results: &NetworkResults) -> String {
    let names = results.names();
    let outcomes = network_outcomes(results);
    let mut lines = vec!["THE NETWORK BETWEEN MACHINES".to_owned()];
    lines.extend(results.machines.iter().map(machine_line));
    let mut flows: Vec<u32> = outcomes.iter().map(|outcome| outcome.cell.flows).collect();
    flows.dedup();
    for count in flows {
        let rows = outcomes.iter().filter(|outcome| outcome.cell.flows == count);
        lines.extend([String::new(), heading(count)]);
        lines.extend(table(rows.map(|outcome| row(outcome, &names))));
    }
    lines.push(String::new());
    lines.extend(sentences(results, &outcomes).iter().map(|sentence| format!("  {sentence}")));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn machine_line(machine: &NetworkMachine) -> String {
    let count = machine.ranks.len();
    let processes = if count == 1 { "process" } else { "processes" };
    format!("  {}  {} ({count} {processes})", machine.name, machine.addresses.join(", "))
}

fn heading(flows: u32) -> String {
    let of = if flows == 1 { "one flow" } else { &format!("{flows} flows") };
    format!("TCP, {of} from each machine to each other that it sends to")
}

fn row(outcome: &NetworkOutcome, names: &[String]) -> [String; 6] {
    let rate = outcome.rate.as_ref().map(|rate| {
        let width = rate.half_width().map(|half| format!(" ± {:.0} %", 100.0 * half / rate.mean));
        format!("{}{}", ByteRate(rate.mean).bits(), width.unwrap_or_default())
    });
    let time = |seconds: f64| Nanos::from_seconds(seconds).to_string();
    [
        outcome.cell.pattern.words(names),
        rate.unwrap_or_else(|| "FAILED".into()),
        outcome.slowest.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share)),
        outcome.round_trip.map_or_else(String::new, time),
        format!("{:.0}", outcome.retransmitted),
        outcome.processor.map_or_else(String::new, |[send, receive]| format!("{send:.2} + {receive:.2}")),
    ]
}

/// Lines of columns as wide as what is in them.
fn table(rows: impl Iterator<Item = [String; 6]>) -> Vec<String> {
    let mut all = vec![COLUMNS.map(String::from)];
    all.extend(rows);
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    all.iter().map(|row| line(row, &widths)).collect()
}

/// The first column stands to the left.
fn line(row: &[String; 6], widths: &[usize; 6]) -> String {
    let [first, rest @ ..] = row;
    let mut line = format!("  {first:<width$}", width = widths[0]);
    line.extend(rest.iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}")));
    line.trim_end().to_owned()
}

fn sentences(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> Vec<String> {
    let names = results.names();
    let mut sentences: Vec<String> =
        odd_links(outcomes).iter().map(|odd| odd_sentence(odd, &names)).collect();
    sentences.extend(loss_free_rates(results).iter().map(|found| loss_sentence(*found, &names)));
    for (number, cell) in results.cells.iter().enumerate() {
        let why = results.of_cell(number).find_map(|sample| sample.failed());
        sentences.extend(
            why.map(|why| format!("FAILED: {}, {}: {why}", cell.pattern.words(&names), cell.protocol)),
        );
    }
    sentences
}

fn odd_sentence(odd: &OddLink, names: &[String]) -> String {
    let flows = if odd.flows == 1 { "one flow".into() } else { format!("{} flows", odd.flows) };
    format!(
        "ODD: {} to {} carries {:.0} % of what the middle one of all links does, with {flows}",
        names[odd.from],
        names[odd.to],
        100.0 * odd.share
    )
}

fn loss_sentence(found: LossFreeRate, names: &[String]) -> String {
    let LossFreeRate { from, to, whole, lossy } = found;
    let way = format!("UDP, {} to {}", names[from], names[to]);
    match (whole, lossy) {
        (Some(whole), None) => format!("{way}: no packet lost at {}, the most that was sent", whole.bits()),
        (Some(whole), Some(lossy)) => {
            format!("{way}: no packet lost at {}, some at {}", whole.bits(), lossy.bits())
        }
        (None, Some(lossy)) => format!("{way}: packets lost at {} and above", lossy.bits()),
        (None, None) => format!("{way}: not measured"),
    }
}

/// The same for programs: derived figures, and all samples.
pub fn network_json(results: &NetworkResults) -> Value {
    let names = results.names();
    let outcomes = network_outcomes(results);
    let odd = odd_links(&outcomes);
    let figures: Vec<Value> = outcomes.iter().map(|outcome| figure(outcome, &names)).collect();
    let odd: Vec<Value> = odd
        .iter()
        .map(|odd| json!({ "from": names[odd.from], "to": names[odd.to], "flows": odd.flows, "share": odd.share }))
        .collect();
    let loss_free = loss_free_rates(results);
    let loss_free: Vec<Value> = loss_free.iter().map(|found| loss_free_object(*found, &names)).collect();
    json!({
        "figures": figures,
        "odd_links": odd,
        "loss_free": loss_free,
        "machines": super::units_in_keys(json!(results.machines)),
        "cells": super::units_in_keys(json!(results.cells)),
        "samples": super::units_in_keys(json!(results.samples)),
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
        "bytes_per_second": outcome.rate.map(|rate| rate.mean),
        "half_width_bytes_per_second": outcome.rate.and_then(|rate| rate.half_width()),
        "repeats": outcome.rate.map_or(0, |rate| rate.count),
        "slowest_flow_share": outcome.slowest,
        "retransmitted": outcome.retransmitted,
        "round_trip_seconds": outcome.round_trip,
        "sending_processor_seconds_per_gigabyte": outcome.processor.map(|[sending, _]| sending),
        "receiving_processor_seconds_per_gigabyte": outcome.processor.map(|[_, receiving]| receiving),
        "failed": outcome.failed,
    })
}
