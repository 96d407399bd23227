//! The rates of interfaces and the segments sent again during trials of the network, as charts and as sentences.

use nilometer_analysis::{IntervalFigure, LinkOverTime, TrafficOverTime, traffic_over_time};
use nilometer_model::{ByteRate, NetworkResults};

use super::latency::time_axis;
use crate::{
    chart::{Axis, Chart, LETTERS, Line, Plot, Point, Style, Unit, clipped},
    document::Block,
};

/// Width in pixels.
const WIDTH: f64 = 720.0;
/// Letters at the end of a line.
const NAME_LETTERS: usize = 24;
/// Nanoseconds of an axis without an interval.
const AXIS_LEAST: f64 = 1.0;

/// A paragraph for each trial that a report shows over time, each behind its charts.
pub(super) fn over_time(results: &NetworkResults, has_charts: bool) -> Vec<Block> {
    let trials = traffic_over_time(results);
    let mut blocks = Vec::new();
    if has_charts && !trials.is_empty() {
        blocks.push(Block::charts(trials.iter().flat_map(|trial| charts(results, trial)).collect()));
    }
    let sentences: Vec<String> = trials.iter().map(|trial| sentence(results, trial)).collect();
    blocks.extend((!sentences.is_empty()).then(|| Block::list(sentences)));
    blocks
}

/// `Over time, node1 to node2, TCP, one flow, round 2 of 5, intervals of 1 s: least even node1 eth0, 3 to 9 Gbit/s
/// sent; ...`.
fn sentence(results: &NetworkResults, trial: &TrafficOverTime) -> String {
    let names = results.names();
    let cell = results.cells[trial.cell].words(&names);
    let link = trial.least_even().map_or_else(
        || "no traffic at any interface".into(),
        |link| {
            let [least, most] = link.range().map(|rate| ByteRate(rate).bits());
            format!("least even {}, {least} to {most} {}", link_name(&names, link), link.way.name())
        },
    );
    let lost = trial
        .datagrams
        .map_or_else(|| again(&names, trial), |of| format!("{} of {} packets lost", of.lost, of.sent));
    format!("Over time, {cell}, {}intervals of {}: {link}; {lost}", which(trial), trial.interval)
}

/// The trial among those of its cell, with a comma behind it. Empty if there is one.
fn which(trial: &TrafficOverTime) -> String {
    let TrafficOverTime { repeat, trials, datagrams, .. } = trial;
    let number = repeat + 1;
    match datagrams {
        Some(of) => format!("trial {number} of {trials} with {} offered, ", of.offered.bits()),
        None if *trials > 1 => format!("round {number} of {trials}, "),
        None => String::new(),
    }
}

/// The segments sent again. A machine that does not count them is not one without.
fn again(names: &[String], trial: &TrafficOverTime) -> String {
    let TrafficOverTime { machines, sent_again, .. } = trial;
    let whose = if sent_again.len() == *machines {
        "these machines".to_owned()
    } else {
        format!("{} of {machines} machines (nobody counted on the others)", sent_again.len())
    };
    match (trial.all_sent_again(), trial.worst_interval()) {
        (None, _) => "the kernels do not count segments sent again".to_owned(),
        (Some(_), None) => format!("no TCP connection of {whose} sent a segment again"),
        (Some(all), Some((machine, worst))) => {
            let name = names.get(machine).map_or("", String::as_str);
            format!(
                "all TCP connections of {whose} sent {all:.0} segments again, at most {:.0} in an interval ({name})",
                worst.value
            )
        }
    }
}

fn link_name(names: &[String], link: &LinkOverTime) -> String {
    let machine = names.get(link.machine).map_or("", String::as_str);
    format!("{machine} {}", link.name)
}

/// The rates of a trial, and below them the segments sent again if there were any.
fn charts(results: &NetworkResults, trial: &TrafficOverTime) -> Vec<Chart> {
    let names = results.names();
    let cell = results.cells[trial.cell].words(&names);
    let rates = trial.links.iter().enumerate().map(|(series, link)| {
        let name = format!("{} {}", link_name(&names, link), link.way.name());
        line(series, &name, &link.rates)
    });
    let again = trial
        .sent_again
        .iter()
        .enumerate()
        .map(|(series, of)| line(series, names.get(of.machine).map_or("", String::as_str), &of.counts));
    let mut charts = vec![chart(&cell, "rates of interfaces", Unit::ByteRate, rates.collect())];
    if trial.worst_interval().is_some() {
        charts.push(chart(&cell, "segments sent again in an interval", Unit::Count(""), again.collect()));
    }
    charts
}

fn line(series: usize, name: &str, figures: &[IntervalFigure]) -> Line {
    let step = |of: &IntervalFigure| {
        [of.from, of.until].map(|at| Point { x: at.0 as f64, y: of.value, ..Point::default() })
    };
    let points = figures.iter().flat_map(step).collect();
    Line { series, name: clipped(name, NAME_LETTERS), points, style: Style::Plain }
}

fn chart(cell: &str, subject: &str, unit: Unit, lines: Vec<Line>) -> Chart {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|point| point.y).fold(0.0, f64::max);
    let end = points().map(|point| point.x).fold(AXIS_LEAST, f64::max);
    Chart::Plot(Plot {
        title: clipped(&format!("{cell}: {subject}"), LETTERS),
        description: format!("{subject} over the time of a trial, {cell}"),
        x: time_axis(end),
        y: Axis::from_zero(unit, most),
        lines,
        spans: Vec::new(),
        width: WIDTH,
    })
}

#[cfg(test)]
mod tests {
    use nilometer_analysis::made_up::network_stage;
    use nilometer_model::{LinkTraffic, Nanos, TrafficInterval};

    use super::*;

    /// A trial of two seconds. The first machine sent 1 GB, then 0.5 GB.
    fn results(again: u64) -> NetworkResults {
        let mut results = network_stage(500).results;
        let interval = |second: u64, sent_bytes: u64| TrafficInterval {
            machine: 0,
            from: Nanos::from_millis(1000 * second),
            until: Nanos::from_millis(1000 * (second + 1)),
            retransmitted: Some(again * second),
            links: vec![LinkTraffic { name: "eth0".into(), received_bytes: 0, sent_bytes }],
        };
        results.samples[0].intervals = vec![interval(0, 1_000_000_000), interval(1, 500_000_000)];
        results
    }

    #[test]
    fn a_trial_of_udp_has_its_offer_and_its_packets() {
        let mut results = results(7);
        results.samples[0].asked = Some(1_000_000_000);
        let trial = traffic_over_time(&results).remove(0);
        let words = sentence(&results, &trial);
        assert!(words.contains(" offered, intervals") && words.ends_with(" packets lost"), "{words}");
        assert!(!words.contains("segment"), "{words}");
    }

    #[test]
    fn a_trial_has_a_sentence_and_a_chart_and_one_more_if_segments_were_sent_again() {
        let quiet = results(0);
        let trial = traffic_over_time(&quiet).remove(0);
        assert_eq!(
            sentence(&quiet, &trial),
            "Over time, node1 to node2, TCP, one flow, round 1 of 3, intervals of 1 s: least even node1 eth0, 4 Gbit/s to 8 Gbit/s sent; \
             no TCP connection of 1 of 2 machines (nobody counted on the others) sent a segment again"
        );
        assert_eq!(charts(&quiet, &trial).len(), 1);
        let lossy = results(7);
        let trial = traffic_over_time(&lossy).remove(0);
        let words = sentence(&lossy, &trial);
        assert!(words.ends_with("sent 7 segments again, at most 7 in an interval (node1)"), "{words}");
        assert_eq!(charts(&lossy, &trial).len(), 2);
        assert_eq!(over_time(&lossy, false).len(), 1, "the text has no charts");
    }
}
