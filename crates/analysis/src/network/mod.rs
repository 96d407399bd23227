//! Results from network samples: the rate of each pattern with its interval, the odd link, and the rate at which
//! packet loss begins.

mod groups;
mod over_time;
mod reached;

pub use groups::{GroupRates, GroupSide, MachineRate, SideShare};
pub use over_time::{
    IntervalFigure, LinkOverTime, LinkWay, OfferedDatagrams, SentAgainOverTime, TrafficOverTime,
    traffic_over_time,
};
pub(crate) use reached::network_shares;
pub use reached::{NetworkLimit, NetworkShare};

use nilometer_model::{
    ByteRate, FlowSettings, NetworkCell, NetworkProtocol, NetworkResults, NetworkSample, TrafficPattern,
    statistics::{Summary, median},
};

/// The result of a cell. Means are over the repeats without a failed flow.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOutcome {
    /// Index of the cell.
    pub number: usize,
    /// The cell.
    pub cell: NetworkCell,
    /// Bytes per second, all flows together; `None` if every repeat failed.
    pub rate: Option<Summary>,
    /// The rate of each client and each server, for patterns with clients.
    pub groups: Option<GroupRates>,
    /// The slowest flow's share of the mean; 1 if all are equal, `None` for a single flow.
    pub slowest: Option<f64>,
    /// Retransmitted segments per repeat.
    pub retransmitted: f64,
    /// The median of the flows' smoothed round trip times, in seconds.
    pub round_trip: Option<f64>,
    /// Processor seconds per GB of the sending and of the receiving threads.
    pub processor: Option<[f64; 2]>,
    /// The first failure, if there is one.
    pub failed: Option<String>,
    /// The reason why the machines could not make its trials; `None` if they could.
    pub left_out: Option<String>,
}

/// A link that carries less than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct OddLink {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
    /// Number of simultaneous flows.
    pub flows: u32,
    /// Settings of the flows.
    pub settings: FlowSettings,
    /// Its rate as a share of the median of all links.
    pub share: f64,
}

/// The rate at which packet loss begins between two machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossFreeRate {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
    /// The highest rate sent without loss; `None` if every rate had loss.
    pub whole: Option<ByteRate>,
    /// The lowest rate with loss; `None` if no rate had loss.
    pub lossy: Option<ByteRate>,
}

/// Packet loss between two machines at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacedLoss {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
    /// The requested rate.
    pub rate: ByteRate,
    /// Number of repeats.
    pub rounds: usize,
    /// Packets sent in all rounds.
    pub sent: u64,
    /// Packets among them that did not arrive.
    pub lost: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
}

/// A link is odd if the upper end of its interval is below this share of the median of all.
const ODD: f64 = 0.8;

/// The results of each TCP cell.
pub fn network_outcomes(results: &NetworkResults) -> Vec<NetworkOutcome> {
    let streams = results.cells.iter().enumerate().filter(|(_, cell)| cell.protocol == NetworkProtocol::Tcp);
    streams.map(|(number, cell)| outcome(results, number, *cell)).collect()
}

fn outcome(results: &NetworkResults, number: usize, cell: NetworkCell) -> NetworkOutcome {
    let all: Vec<&NetworkSample> = results.of_cell(number).collect();
    let valid: Vec<&NetworkSample> = all.iter().copied().filter(|sample| sample.failed().is_none()).collect();
    let rates: Vec<f64> = valid.iter().map(|sample| sample.rate().0).collect();
    let again: Vec<f64> = valid.iter().map(|sample| sample.retransmitted() as f64).collect();
    NetworkOutcome {
        number,
        cell,
        rate: Summary::of(&rates),
        groups: GroupRates::of(results, cell.pattern, &valid),
        slowest: mean(valid.iter().filter_map(|sample| slowest(sample))),
        retransmitted: mean(again.into_iter()).unwrap_or(0.0),
        round_trip: median(&round_trips(&valid)),
        processor: processor(&valid),
        failed: all.iter().find_map(|sample| sample.failed()).map(Into::into),
        left_out: results.lacking(number),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    Summary::of(&values.collect::<Vec<_>>()).map(|summary| summary.mean)
}

/// The slowest flow of a repeat.
fn slowest(sample: &NetworkSample) -> Option<f64> {
    let rates: Vec<f64> = sample.flows.iter().map(|flow| flow.rate().0).collect();
    let summary = Summary::of(&rates).filter(|summary| summary.count > 1 && summary.mean > 0.0)?;
    Some(summary.range.0 / summary.mean)
}

fn round_trips(samples: &[&NetworkSample]) -> Vec<f64> {
    let flows = samples.iter().flat_map(|sample| &sample.flows);
    flows.filter_map(|flow| Some(flow.sent.connection.as_ref()?.round_trip.seconds())).collect()
}

fn processor(samples: &[&NetworkSample]) -> Option<[f64; 2]> {
    let flows = || samples.iter().flat_map(|sample| &sample.flows);
    let gigabytes = flows().map(|flow| flow.received.bytes).sum::<u64>() as f64 / 1e9;
    let sending: f64 = flows().map(|flow| flow.sent.processor.seconds()).sum();
    let receiving: f64 = flows().map(|flow| flow.received.processor.seconds()).sum();
    (gigabytes > 0.0).then(|| [sending / gigabytes, receiving / gigabytes])
}

/// Links between single pairs that are certainly slower than others with as many flows.
pub fn odd_links(outcomes: &[NetworkOutcome]) -> Vec<OddLink> {
    let mut odd = Vec::new();
    for outcome in outcomes {
        let TrafficPattern::Pair { from, to } = outcome.cell.pattern else { continue };
        let NetworkCell { flows, settings, .. } = outcome.cell;
        let alike = outcomes.iter().filter(|other| {
            other.cell.has_load_of(&outcome.cell) && matches!(other.cell.pattern, TrafficPattern::Pair { .. })
        });
        let rates: Vec<f64> = alike.filter_map(|other| Some(other.rate?.mean)).collect();
        let Some(usual) = median(&rates).filter(|_| rates.len() > 2) else { continue };
        let Some(rate) = outcome.rate else { continue };
        let Some(half_width) = rate.half_width() else { continue };
        if rate.mean + half_width < ODD * usual {
            odd.push(OddLink { from, to, flows, settings, share: rate.mean / usual });
        }
    }
    odd
}

/// The loss of each pair to which packets were sent at one rate.
pub fn paced_losses(results: &NetworkResults) -> Vec<PacedLoss> {
    let cells = results.cells.iter().enumerate().filter(|(_, cell)| cell.protocol == NetworkProtocol::Udp);
    let found = cells.filter_map(|(number, cell)| {
        let TrafficPattern::Pair { from, to } = cell.pattern else { return None };
        let samples: Vec<_> = results.of_cell(number).filter(|sample| sample.failed().is_none()).collect();
        let rate = paced_at(&samples)?;
        let flows = || samples.iter().flat_map(|sample| &sample.flows);
        let sent = flows().filter_map(|flow| flow.sent.packets).map(|packets| packets.packets).sum();
        let reordered =
            flows().filter_map(|flow| flow.received.packets).map(|packets| packets.reordered).sum();
        let lost = samples.iter().map(|sample| sample.lost()).sum();
        Some(PacedLoss {
            from,
            to,
            rate: ByteRate(rate as f64),
            rounds: samples.len(),
            sent,
            lost,
            reordered,
        })
    });
    found.collect()
}

/// The common rate of these samples, unless they are a search: a search changes the rate after loss, and ends
/// without loss.
fn paced_at(samples: &[&NetworkSample]) -> Option<u64> {
    let rate = samples.first()?.asked?;
    let is_one = samples.iter().all(|sample| sample.asked == Some(rate));
    let is_search = samples.len() == 1 && samples[0].lost() == 0;
    (is_one && !is_search).then_some(rate)
}

/// The loss-free rate of each searched pair.
pub fn loss_free_rates(results: &NetworkResults) -> Vec<LossFreeRate> {
    let searched = results.cells.iter().enumerate().filter(|(_, cell)| cell.protocol == NetworkProtocol::Udp);
    let is_paced = |number| {
        let samples: Vec<_> = results.of_cell(number).filter(|sample| sample.failed().is_none()).collect();
        paced_at(&samples).is_some()
    };
    let found = searched.filter(|(number, _)| !is_paced(*number)).filter_map(|(number, cell)| {
        let TrafficPattern::Pair { from, to } = cell.pattern else { return None };
        let of = |is_whole: bool| {
            let samples = results.of_cell(number).filter(move |sample| sample.failed().is_none());
            let alike = samples.filter(move |sample| (sample.lost() == 0) == is_whole);
            alike.map(|sample| sample.offered().0)
        };
        let lossy = of(false).reduce(f64::min);
        let whole = of(true).filter(|whole| lossy.is_none_or(|lossy| *whole < lossy)).reduce(f64::max);
        Some(LossFreeRate { from, to, whole: whole.map(ByteRate), lossy: lossy.map(ByteRate) })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use nilometer_model::{DatagramCounts, FlowEnd, FlowSample, Nanos};

    use super::*;

    /// A repeat of a cell with one flow that carried `bytes` in a second.
    fn sample(cell: usize, repeat: u32, bytes: u64) -> NetworkSample {
        let received = FlowEnd { bytes, last: Nanos(1_000_000_000), ..FlowEnd::default() };
        let flow = FlowSample { from: 0, to: 1, received, ..FlowSample::default() };
        NetworkSample { cell, repeat, asked: None, flows: vec![flow], intervals: Vec::new() }
    }

    fn pairs(rates: &[(usize, usize, u64)], repeats: u32) -> NetworkResults {
        let cell = |&(from, to, _): &(usize, usize, u64)| NetworkCell {
            pattern: TrafficPattern::Pair { from, to },
            protocol: NetworkProtocol::Tcp,
            flows: 1,
            settings: FlowSettings::default(),
        };
        let of = |(number, &(_, _, rate)): (usize, &(usize, usize, u64))| {
            (0..repeats).map(move |repeat| sample(number, repeat, rate + u64::from(repeat)))
        };
        NetworkResults {
            cells: rates.iter().map(cell).collect(),
            samples: rates.iter().enumerate().flat_map(of).collect(),
            ..NetworkResults::default()
        }
    }

    #[test]
    fn packets_at_one_rate_are_counted_and_are_no_search() {
        let counted = |packets| FlowEnd {
            packets: Some(DatagramCounts { packets, reordered: 1 }),
            ..FlowEnd::default()
        };
        let of = |asked: &[(u64, u64)]| {
            let cell = NetworkCell {
                pattern: TrafficPattern::Pair { from: 0, to: 1 },
                protocol: NetworkProtocol::Udp,
                flows: 1,
                settings: FlowSettings::default(),
            };
            let sample = |(repeat, &(rate, came)): (u32, &(u64, u64))| {
                let flow = FlowSample { from: 0, to: 1, sent: counted(10), received: counted(came) };
                NetworkSample { cell: 0, repeat, asked: Some(rate), flows: vec![flow], intervals: Vec::new() }
            };
            let samples = (0..).zip(asked).map(sample).collect();
            let results = NetworkResults { cells: vec![cell], samples, ..NetworkResults::default() };
            (paced_losses(&results), loss_free_rates(&results).len())
        };
        let (paced, searched) = of(&[(5, 10), (5, 8)]);
        let expected =
            PacedLoss { from: 0, to: 1, rate: ByteRate(5.0), rounds: 2, sent: 20, lost: 2, reordered: 2 };
        assert_eq!((paced, searched), (vec![expected], 0));
        assert_eq!(of(&[(9, 8), (5, 10)]), (Vec::new(), 1));
        assert_eq!(of(&[(9, 10)]), (Vec::new(), 1), "a search that found no loss");
    }

    #[test]
    fn the_link_that_carries_less_is_named_and_no_other() {
        let rates = [(0, 1, 1000), (1, 0, 990), (0, 2, 1010), (2, 0, 100), (1, 2, 1005), (2, 1, 900)];
        let odd = |repeats| odd_links(&network_outcomes(&pairs(&rates, repeats)));
        let found = odd(3);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].from, found[0].to, found[0].flows), (2, 0, 1));
        assert!((found[0].share - 0.1).abs() < 0.01, "{found:?}");
        assert!(odd(1).is_empty(), "one repeat has no interval");
    }

    #[test]
    fn a_repeat_in_which_a_flow_failed_does_not_count() {
        let mut results = pairs(&[(0, 1, 1000)], 2);
        let mut lost = sample(0, 2, 1);
        lost.flows[0].received.failed = Some("gone".into());
        results.samples.push(lost);
        let outcome = network_outcomes(&results).remove(0);
        assert_eq!(outcome.rate.map(|rate| rate.count), Some(2));
        assert_eq!(outcome.failed.as_deref(), Some("gone"));
    }

    #[test]
    fn loss_begins_between_the_highest_rate_without_and_the_lowest_with() {
        let mut results = pairs(&[(0, 1, 1000)], 0);
        results.cells[0].protocol = NetworkProtocol::Udp;
        let trial = |asked, came| {
            let counts = |packets| Some(DatagramCounts { packets, reordered: 0 });
            let mut sample = sample(0, 0, 1);
            sample.asked = Some(2 * asked);
            let sent = FlowEnd { bytes: asked, last: Nanos(1_000_000_000), ..FlowEnd::default() };
            sample.flows[0].sent = sent;
            (sample.flows[0].sent.packets, sample.flows[0].received.packets) = (counts(100), counts(came));
            sample
        };
        results.samples =
            [trial(800, 90), trial(400, 100), trial(600, 99), trial(500, 100), trial(700, 100)].into();
        let found = loss_free_rates(&results);
        assert_eq!(found[0].whole, Some(ByteRate(500.0)), "what is lossless above a rate with loss was luck");
        assert_eq!(found[0].lossy, Some(ByteRate(600.0)));
    }
}
