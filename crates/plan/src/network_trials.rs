//! Chooses the next trial from the plan and the results so far. A campaign can thus continue after an
//! interruption, even within a search. Pure.

use nilometer_model::{NetworkProtocol, NetworkResults, NetworkSample, Seed, TrafficPattern};

use crate::NetworkRun;

/// The trials of the network, and their number.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkTrials {
    /// The measurement.
    pub run: NetworkRun,
    /// Rounds, those that count for nothing too.
    pub rounds: u32,
    /// The order of trials follows from it.
    pub seed: Seed,
    /// For packets, the bytes a second of each flow in every round; `None` searches the highest rate without
    /// loss.
    pub packet_rate: Option<u64>,
}

/// One trial to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkTrial {
    /// The cell.
    pub cell: usize,
    /// The round; in a search, the number of the trial.
    pub repeat: u32,
    /// For packets, the bytes a second of each flow.
    pub rate: Option<u64>,
}

/// The rate of a sender without limit; the record has room for this number.
const UNLIMITED: u64 = i64::MAX as u64;
/// A sender that reaches less than this share of the request is at its limit.
const SENT: f64 = 0.95;
/// Trials of a search: they narrow the range to a 128th of its start.
const HALVINGS: usize = 8;

impl NetworkTrials {
    /// The next trial of the first `rounds` rounds; searches come after the last round.
    pub fn next(&self, results: &NetworkResults, rounds: u32) -> Option<NetworkTrial> {
        let rounds = rounds.min(self.rounds);
        let streams = (0..rounds).find_map(|round| self.next_of_round(results, round));
        streams.or_else(|| if rounds == self.rounds { self.next_of_packets(results) } else { None })
    }

    /// At a rate that is given as often as there are rounds, else searched for.
    fn next_of_packets(&self, results: &NetworkResults) -> Option<NetworkTrial> {
        let Some(rate) = self.packet_rate else { return next_of_searches(results) };
        let made = |cell: usize| results.of_cell(cell).count() as u32;
        let cells = of_protocol(results, NetworkProtocol::Udp).map(|cell| (cell, made(cell)));
        let (cell, repeat) = cells.filter(|(_, made)| *made < self.rounds).min_by_key(|(_, made)| *made)?;
        Some(NetworkTrial { cell, repeat, rate: Some(rate) })
    }

    /// The number of finished trials, and of all; a search counts as one.
    pub fn progress(&self, results: &NetworkResults) -> [usize; 2] {
        match self.packet_rate {
            Some(_) => [results.samples.len(), results.cells.len() * self.rounds as usize],
            None => [NetworkTrials::made(results), NetworkTrials::planned(results, self.rounds)],
        }
    }

    /// Number of trials in this many rounds; each search counts as one.
    pub fn planned(results: &NetworkResults, rounds: u32) -> usize {
        let streams = of_protocol(results, NetworkProtocol::Tcp).count();
        streams * rounds as usize + of_protocol(results, NetworkProtocol::Udp).count()
    }

    /// Number of these trials that are complete; a search counts when it has ended.
    pub fn made(results: &NetworkResults) -> usize {
        let streams = of_protocol(results, NetworkProtocol::Tcp).map(|cell| results.of_cell(cell).count());
        let searches = of_protocol(results, NetworkProtocol::Udp)
            .filter(|cell| next_of_search(results, *cell).is_none());
        streams.sum::<usize>() + searches.count()
    }

    /// Another order in each round, so that drift hits all cells alike.
    fn next_of_round(&self, results: &NetworkResults, round: u32) -> Option<NetworkTrial> {
        let seed = self.seed.named("network").part(u64::from(round));
        let mut order: Vec<usize> = of_protocol(results, NetworkProtocol::Tcp).collect();
        order.sort_by_key(|cell| seed.part(*cell as u64).0);
        let is_there = |cell: &usize| results.of_cell(*cell).any(|sample| sample.repeat == round);
        let cell = order.into_iter().find(|cell| !is_there(cell))?;
        Some(NetworkTrial { cell, repeat: round, rate: None })
    }
}

/// The cells of a protocol that the machines can measure.
fn of_protocol(results: &NetworkResults, protocol: NetworkProtocol) -> impl Iterator<Item = usize> {
    let cells = results.cells.iter().enumerate();
    let of_it = cells.filter(move |(_, cell)| cell.protocol == protocol).map(|(number, _)| number);
    of_it.filter(|number| results.lacking(*number).is_none())
}

fn next_of_searches(results: &NetworkResults) -> Option<NetworkTrial> {
    of_protocol(results, NetworkProtocol::Udp).find_map(|cell| next_of_search(results, cell))
}

fn next_of_search(results: &NetworkResults, cell: usize) -> Option<NetworkTrial> {
    let made: Vec<&NetworkSample> = results.of_cell(cell).collect();
    let rate = next_rate(&made, fastest(results, results.cells[cell].pattern))?;
    Some(NetworkTrial { cell, repeat: made.len() as u32, rate: Some(rate) })
}

/// The highest rate of a stream with the same pattern; unlimited if there is none.
fn fastest(results: &NetworkResults, pattern: TrafficPattern) -> u64 {
    let alike =
        of_protocol(results, NetworkProtocol::Tcp).filter(|cell| results.cells[*cell].pattern == pattern);
    let rates = alike.flat_map(|cell| results.of_cell(cell)).filter(|sample| sample.failed().is_none());
    let most = rates.map(NetworkSample::fastest_flow).max().unwrap_or(0);
    if most > 0 { most } else { UNLIMITED }
}

/// The rate of the next trial of a search: half way between the highest without loss and the lowest with
/// loss. `None` when the search has ended.
fn next_rate(made: &[&NetworkSample], fastest: u64) -> Option<u64> {
    if made.len() >= HALVINGS {
        return None;
    }
    let mut whole: u64 = 0;
    let mut lossy: Option<u64> = None;
    for sample in made {
        let asked = sample.asked?;
        let offered = sample.offered().0;
        let is_sent = offered >= SENT * asked as f64;
        if sample.failed().is_some() || sample.lost() > 0 {
            #[expect(clippy::cast_sign_loss, reason = "a rate is not negative")]
            let offered = offered as u64;
            lossy = Some(if is_sent || offered == 0 { asked } else { offered });
        } else if lossy.is_none() || !is_sent {
            return None;
        } else {
            whole = asked;
        }
    }
    let rate = lossy.map_or(fastest, |lossy| whole.midpoint(lossy));
    (rate > 0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{DatagramCounts, FlowEnd, FlowSample, Nanos, NetworkMachine};

    const SECOND: Nanos = Nanos(1_000_000_000);

    /// Two machines: there, back and both ways by streams, and a search each way.
    fn begun() -> (NetworkTrials, NetworkResults) {
        let protocols = vec![NetworkProtocol::Tcp, NetworkProtocol::Udp];
        let run = NetworkRun { protocols, flows: vec![1], ..NetworkRun::usual("network") };
        let results = NetworkResults { cells: run.cells(2), ..NetworkResults::default() };
        (NetworkTrials { run, rounds: 2, seed: Seed(7), packet_rate: None }, results)
    }

    /// A sample of a network with capacity `carries` and a sender with capacity `sends`, in bytes a second.
    fn sample(next: NetworkTrial, carries: u64, sends: u64) -> NetworkSample {
        let sent = next.rate.map_or(carries, |rate| rate.min(sends));
        let counts = |bytes: u64| Some(DatagramCounts { packets: bytes, reordered: 0 });
        let end = |bytes: u64| FlowEnd {
            bytes,
            last: SECOND,
            packets: next.rate.and_then(|_| counts(bytes)),
            ..FlowEnd::default()
        };
        let flow = FlowSample { sent: end(sent), received: end(sent.min(carries)), ..FlowSample::default() };
        NetworkSample {
            cell: next.cell,
            repeat: next.repeat,
            asked: next.rate,
            flows: vec![flow],
            intervals: Vec::new(),
        }
    }

    /// The results of all trials on such a network.
    fn measured(carries: u64, sends: u64) -> NetworkResults {
        let (trials, mut results) = begun();
        while let Some(next) = trials.next(&results, 2) {
            let sample = sample(next, carries, sends);
            results.samples.push(sample);
            assert!(results.samples.len() < 100, "it ends");
        }
        results
    }

    #[test]
    fn a_round_comes_after_the_other_and_searches_behind_them() {
        let (trials, mut results) = begun();
        let mut rounds = Vec::new();
        while let Some(next) = trials.next(&results, 2) {
            rounds.push(next.rate.map_or(next.repeat, |_| 9));
            results.samples.push(sample(next, 1000, 2000));
        }
        assert_eq!(rounds, [0, 0, 0, 1, 1, 1, 9, 9], "no search goes above what a stream carried");
        assert_eq!((NetworkTrials::planned(&results, 2), NetworkTrials::made(&results)), (8, 8));
    }

    #[test]
    fn what_is_there_is_not_measured_again_wherever_it_was_interrupted() {
        let all = measured(1000, 2000);
        let (trials, _) = begun();
        for cut in 0..all.samples.len() {
            let mut rest = NetworkResults { samples: all.samples[..cut].into(), ..all.clone() };
            while let Some(next) = trials.next(&rest, 2) {
                rest.samples.push(sample(next, 1000, 2000));
            }
            assert_eq!(rest.samples, all.samples, "from {cut} on");
        }
    }

    #[test]
    fn only_the_first_rounds_are_measured_until_the_next_is_due() {
        let (trials, mut results) = begun();
        while let Some(next) = trials.next(&results, 1) {
            results.samples.push(sample(next, 1000, 2000));
        }
        assert_eq!((NetworkTrials::planned(&results, 2), NetworkTrials::made(&results)), (8, 3));
        assert!(results.samples.len() == 3 && results.samples.iter().all(|sample| sample.repeat == 0));
    }

    #[test]
    fn packets_at_a_given_rate_are_sent_in_each_round_and_nothing_is_searched() {
        let (trials, mut results) = begun();
        let trials = NetworkTrials { packet_rate: Some(600), ..trials };
        let mut packets = Vec::new();
        while let Some(next) = trials.next(&results, 2) {
            packets.extend(next.rate.map(|rate| (next.cell, next.repeat, rate)));
            results.samples.push(sample(next, 1000, 2000));
        }
        assert_eq!(packets, [(3, 0, 600), (4, 0, 600), (3, 1, 600), (4, 1, 600)]);
        assert_eq!(trials.progress(&results), [10, 10]);
    }

    #[test]
    fn a_cell_that_a_machine_can_not_measure_is_no_trial() {
        let (mut trials, _) = begun();
        trials.run.processes = vec![1, 2];
        trials.run.flows = vec![2];
        let machine = |name: &str, ranks: &[u32]| NetworkMachine {
            name: name.into(),
            ranks: ranks.into(),
            ..NetworkMachine::default()
        };
        let machines = vec![machine("a", &[0, 1]), machine("b", &[2])];
        let mut results = NetworkResults { machines, cells: trials.run.cells(2), samples: Vec::new() };
        while let Some(next) = trials.next(&results, 2) {
            assert_ne!(results.cells[next.cell].settings.processes, Some(2), "b has one process");
            results.samples.push(sample(next, 1000, 2000));
        }
        assert_eq!((NetworkTrials::planned(&results, 2), NetworkTrials::made(&results)), (8, 8));
    }

    #[test]
    fn a_search_without_streams_begins_with_all_that_can_be_sent() {
        let made = |samples: &[NetworkSample]| next_rate(&samples.iter().collect::<Vec<_>>(), UNLIMITED);
        let next = |rate| NetworkTrial { cell: 0, repeat: 0, rate: Some(rate) };
        assert_eq!(made(&[]), Some(UNLIMITED));
        assert_eq!(made(&[sample(next(UNLIMITED), 5000, 2000)]), None, "nothing was lost at the most");
        // The rate sent bounds it, not the request.
        let mut samples = vec![sample(next(UNLIMITED), 1500, 2000)];
        assert_eq!(made(&samples), Some(1000));
        samples.push(sample(next(1000), 1500, 2000));
        assert_eq!(made(&samples), Some(1500));
        samples.push(sample(next(1500), 1500, 2000));
        assert_eq!(made(&samples), Some(1750));
    }
}
