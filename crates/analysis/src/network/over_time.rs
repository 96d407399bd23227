//! The traffic of trials over time: the rate of each interface, and the segments that TCP sends again, by
//! intervals.

use std::collections::BTreeSet;

use nilometer_model::{ByteRate, Nanos, NetworkResults, NetworkSample, TrafficInterval};

/// A trial's traffic over time, by the kernel's counters of its machines.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficOverTime {
    /// Index of the cell.
    pub cell: usize,
    /// Number of the round; in a search, of the trial.
    pub repeat: u32,
    /// Number of trials of the cell.
    pub trials: usize,
    /// The packets, if it sent UDP.
    pub datagrams: Option<OfferedDatagrams>,
    /// Number of machines that take part.
    pub machines: usize,
    /// The busiest ways of interfaces, the busiest first.
    pub links: Vec<LinkOverTime>,
    /// Segments sent again on each machine, in the order of machines. A machine whose kernel does not count them is
    /// absent.
    pub sent_again: Vec<SentAgainOverTime>,
    /// The median length of an interval.
    pub interval: Nanos,
}

/// The packets of a trial with UDP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfferedDatagrams {
    /// The rate handed to the network, over all flows.
    pub offered: ByteRate,
    /// Packets sent.
    pub sent: u64,
    /// Packets sent and not received.
    pub lost: u64,
}

/// The rate of one way of an interface over time.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkOverTime {
    /// Index of the machine.
    pub machine: usize,
    /// The interface's name on the machine.
    pub name: String,
    /// The way of the bytes.
    pub way: LinkWay,
    /// The rate of each interval, in bytes a second.
    pub rates: Vec<IntervalFigure>,
}

/// A way of an interface's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkWay {
    /// From the network.
    Received,
    /// To the network.
    Sent,
}

/// The segments that a machine sent again over time.
#[derive(Debug, Clone, PartialEq)]
pub struct SentAgainOverTime {
    /// Index of the machine.
    pub machine: usize,
    /// The number of each interval.
    pub counts: Vec<IntervalFigure>,
}

/// A figure of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalFigure {
    /// Its begin, from the start of the trial.
    pub from: Nanos,
    /// Its end.
    pub until: Nanos,
    /// The figure.
    pub value: f64,
}

/// The most trials of a stage that reports show over time: those with the most pairs of machines.
const TRIALS_MOST: usize = 6;
/// The most lines of a trial.
const LINKS_MOST: usize = 12;
/// An interface with less than this share of the busiest one's bytes is left out: the traffic of others, and answers.
const SHARE_LEAST: f64 = 0.05;

impl LinkWay {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            LinkWay::Received => "received",
            LinkWay::Sent => "sent",
        }
    }
}

impl LinkOverTime {
    /// The least and the greatest rate. An interval of less than half the longest one's length is left out, since it
    /// says little about a rate.
    pub fn range(&self) -> [f64; 2] {
        let length = |of: &IntervalFigure| of.until.since(of.from);
        let longest = self.rates.iter().map(length).max().unwrap_or_default();
        let is_whole = |of: &&IntervalFigure| length(of).0 >= longest.0 / 2;
        let rates = || self.rates.iter().filter(is_whole).map(|of| of.value);
        [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)]
    }

    /// The least rate as a share of the greatest; 0 without traffic.
    fn evenness(&self) -> f64 {
        let [least, most] = self.range();
        if most > 0.0 { least / most } else { 0.0 }
    }

    fn bytes(&self) -> f64 {
        self.rates.iter().map(|of| of.value * of.until.since(of.from).seconds()).sum()
    }
}

impl TrafficOverTime {
    /// The way of an interface whose rate varies most; `None` without interfaces.
    pub fn least_even(&self) -> Option<&LinkOverTime> {
        self.links.iter().min_by(|one, other| one.evenness().total_cmp(&other.evenness()))
    }

    /// All segments sent again; `None` if no kernel counts them.
    pub fn all_sent_again(&self) -> Option<f64> {
        let counts = self.sent_again.iter().flat_map(|machine| &machine.counts);
        (!self.sent_again.is_empty()).then(|| counts.map(|of| of.value).sum())
    }

    /// The machine and the interval with the most segments sent again; `None` if there were none.
    pub fn worst_interval(&self) -> Option<(usize, IntervalFigure)> {
        let all = self.sent_again.iter();
        let counts = all.flat_map(|of| of.counts.iter().map(|count| (of.machine, *count)));
        let worst = counts.max_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        worst.filter(|(_, count)| count.value > 0.0)
    }
}

/// The trials of a stage over time: one of each cell with the most pairs of machines. They are in the order of the
/// cells. Records before schema 11 have none.
pub fn traffic_over_time(results: &NetworkResults) -> Vec<TrafficOverTime> {
    let pairs = |cell: &usize| results.cells[*cell].pattern.pairs(results.machines.len()).len();
    let mut cells: Vec<usize> =
        (0..results.cells.len()).filter(|cell| shown(results, *cell).is_some()).collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(pairs(cell)));
    cells.truncate(TRIALS_MOST);
    cells.sort_unstable();
    cells
        .into_iter()
        .filter_map(|cell| shown(results, cell))
        .map(|sample| over_time(results, sample))
        .collect()
}

/// The valid trial of a cell, of those with several intervals, in which most segments were sent again. The first of
/// equal ones.
fn shown(results: &NetworkResults, cell: usize) -> Option<&NetworkSample> {
    let has_several = |sample: &&NetworkSample| {
        let first = sample.intervals.first().map(|interval| interval.machine);
        sample.intervals.iter().filter(|interval| Some(interval.machine) == first).count() > 1
    };
    let again = |sample: &&NetworkSample| {
        let counts = sample.intervals.iter().filter_map(|interval| interval.retransmitted);
        // Trials of UDP have connections of others only.
        if sample.asked.is_some() { 0 } else { counts.sum::<u64>() }
    };
    let valid = results.of_cell(cell).filter(|sample| sample.failed().is_none());
    valid.filter(has_several).min_by_key(|sample| std::cmp::Reverse(again(sample)))
}

fn over_time(results: &NetworkResults, sample: &NetworkSample) -> TrafficOverTime {
    let mut lengths: Vec<Nanos> =
        sample.intervals.iter().map(|interval| interval.until.since(interval.from)).collect();
    lengths.sort_unstable();
    TrafficOverTime {
        cell: sample.cell,
        repeat: sample.repeat,
        trials: results.of_cell(sample.cell).count(),
        datagrams: sample.asked.map(|_| datagrams(sample)),
        machines: machines_of(results, sample.cell),
        links: links(&sample.intervals),
        sent_again: sent_again(&sample.intervals),
        interval: lengths.get(lengths.len() / 2).copied().unwrap_or_default(),
    }
}

fn datagrams(sample: &NetworkSample) -> OfferedDatagrams {
    let sent = sample.flows.iter().filter_map(|flow| flow.sent.packets).map(|counts| counts.packets);
    OfferedDatagrams { offered: sample.offered(), sent: sent.sum(), lost: sample.lost() }
}

/// Number of machines that take part in the trials of a cell.
fn machines_of(results: &NetworkResults, cell: usize) -> usize {
    let pairs = results.cells[cell].pattern.pairs(results.machines.len());
    let ends: BTreeSet<_> = pairs.iter().flat_map(|&(from, to)| [from, to]).collect();
    ends.len()
}

/// The busiest ways of interfaces, the busiest first.
fn links(intervals: &[TrafficInterval]) -> Vec<LinkOverTime> {
    let mut links: Vec<LinkOverTime> = Vec::new();
    for interval in intervals {
        for link in &interval.links {
            for (way, bytes) in [(LinkWay::Received, link.received_bytes), (LinkWay::Sent, link.sent_bytes)] {
                let value = interval.rate_of(bytes).0;
                let figure = IntervalFigure { from: interval.from, until: interval.until, value };
                add(&mut links, interval.machine, &link.name, way, figure);
            }
        }
    }
    links.sort_by(|one, other| other.bytes().total_cmp(&one.bytes()));
    let least = SHARE_LEAST * links.first().map_or(0.0, LinkOverTime::bytes);
    links.retain(|link| link.bytes() > 0.0 && link.bytes() >= least);
    links.truncate(LINKS_MOST);
    links
}

fn add(links: &mut Vec<LinkOverTime>, machine: usize, name: &str, way: LinkWay, figure: IntervalFigure) {
    let is_it = |of: &&mut LinkOverTime| of.machine == machine && of.name == name && of.way == way;
    match links.iter_mut().find(is_it) {
        Some(link) => link.rates.push(figure),
        None => links.push(LinkOverTime { machine, name: name.to_owned(), way, rates: vec![figure] }),
    }
}

fn sent_again(intervals: &[TrafficInterval]) -> Vec<SentAgainOverTime> {
    let mut machines: Vec<SentAgainOverTime> = Vec::new();
    for interval in intervals {
        let Some(count) = interval.retransmitted else { continue };
        let TrafficInterval { machine, from, until, .. } = *interval;
        let figure = IntervalFigure { from, until, value: count as f64 };
        match machines.iter_mut().find(|of| of.machine == machine) {
            Some(of) => of.counts.push(figure),
            None => machines.push(SentAgainOverTime { machine, counts: vec![figure] }),
        }
    }
    machines.sort_by_key(|of| of.machine);
    machines
}

#[cfg(test)]
mod tests {
    use nilometer_model::LinkTraffic;

    use super::*;
    use crate::made_up::network_stage;

    /// An interval of a second, in which a machine received and sent these bytes.
    fn interval(
        machine: usize,
        second: u64,
        [received, sent]: [u64; 2],
        again: Option<u64>,
    ) -> TrafficInterval {
        let link = |name: &str, received_bytes, sent_bytes| LinkTraffic {
            name: name.into(),
            received_bytes,
            sent_bytes,
        };
        TrafficInterval {
            machine,
            from: Nanos::from_millis(1000 * second),
            until: Nanos::from_millis(1000 * (second + 1)),
            retransmitted: again,
            links: vec![link("eth0", received, sent), link("eth1", 1, 1)],
        }
    }

    #[test]
    fn the_busy_ways_of_interfaces_have_a_rate_in_each_interval_and_idle_ones_none() {
        let mut results = network_stage(500).results;
        assert_eq!(traffic_over_time(&results), [], "a record without intervals");
        results.samples[0].intervals = vec![
            interval(0, 0, [9, 1000], Some(0)),
            interval(1, 0, [1000, 9], None),
            interval(0, 1, [9, 400], Some(7)),
            interval(1, 1, [900, 9], None),
        ];
        let [found] = &traffic_over_time(&results)[..] else { panic!("one trial has intervals") };
        assert_eq!((found.cell, found.repeat, found.interval), (0, 0, Nanos::from_millis(1000)));
        let ways: Vec<_> = found.links.iter().map(|link| (link.machine, link.way, link.range())).collect();
        let expected = [(1, LinkWay::Received, [900.0, 1000.0]), (0, LinkWay::Sent, [400.0, 1000.0])];
        assert_eq!(ways, expected);
        assert_eq!(found.least_even().map(|link| link.machine), Some(0));
        assert_eq!((found.all_sent_again(), found.machines, found.sent_again.len()), (Some(7.0), 2, 1));
        assert_eq!(found.worst_interval().map(|(machine, count)| (machine, count.value)), Some((0, 7.0)));
    }

    #[test]
    fn the_trial_with_the_most_segments_sent_again_is_shown() {
        let mut results = network_stage(500).results;
        let cell = results.samples[0].cell;
        let trial = |repeat: u32, again: u64| NetworkSample {
            repeat,
            intervals: [0, 1].map(|second| interval(0, second, [9, 1000], Some(again * second))).into(),
            ..results.samples[0].clone()
        };
        let trials: Vec<_> =
            [0, 20, 20, 3].into_iter().zip(0..).map(|(again, repeat)| trial(repeat, again)).collect();
        results.samples = trials;
        let found = traffic_over_time(&results).remove(0);
        assert_eq!((found.cell, found.repeat, found.trials), (cell, 1, 4));
        assert_eq!((found.all_sent_again(), found.datagrams), (Some(20.0), None));
    }

    #[test]
    fn kernels_that_count_no_segments_do_not_count_as_none_sent_again() {
        let mut results = network_stage(500).results;
        let all = [0, 1].map(|second| interval(0, second, [9, 1000], None));
        results.samples[0].intervals = all.into();
        let found = traffic_over_time(&results).remove(0);
        assert_eq!((found.all_sent_again(), found.worst_interval()), (None, None));
    }
}
