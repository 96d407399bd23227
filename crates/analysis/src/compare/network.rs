//! Network rates in several records: between the same machines by name, and between clients and servers by their
//! numbers. A record measures its network once for all targets, so the rates belong to its first subject.

use std::collections::BTreeMap;

use nilometer_model::{
    MachineGroups, NetworkCell, NetworkProtocol, NetworkResults, TrafficPattern, statistics::Summary,
};
use nilometer_plan::Results;

use super::{
    CellDifference, LoneCells, NamedRecord, PairBasis, Subject, SubjectPair,
    pair::{CellLogs, unpaired},
    question::{agreeing_pairs, by_means},
};
use crate::{LossFreeRate, by_round::RoundLog, loss_free_rates};

/// A network stage of one or more records.
#[derive(Debug, Clone)]
pub struct AlignedNetwork {
    /// Its name.
    pub stage: String,
    /// Rows in the order of the records.
    pub rows: Vec<AlignedTraffic>,
    /// Subjects that are compared by their TCP rates, the fastest first.
    pub order: Vec<usize>,
    /// All pairs of at most three subjects, else each with the fastest.
    pub pairs: Vec<SubjectPair>,
    /// Rows that some subjects lack although they measured the stage.
    pub lone: Vec<LoneCells>,
}

/// Traffic between machines, with the results of all subjects.
#[derive(Debug, Clone)]
pub struct AlignedTraffic {
    /// `node1 to node2, TCP, 4 flows`.
    pub words: String,
    /// Rates by subject; `None` if it was not measured.
    pub rates: Vec<Option<NetworkRates>>,
    key: TrafficKey,
}

/// The rates of a row in one record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkRates {
    /// Bytes per second of each TCP repeat without a failed flow.
    pub repeats: Vec<f64>,
    /// Number of all repeats, including failed ones; for a search, of its trials.
    pub samples: usize,
    /// The first failure, if there is one.
    pub failed: Option<String>,
    /// True for a search with UDP.
    pub is_search: bool,
    /// The result of a search with UDP. It is made once, so its scatter is unknown.
    pub loss_free: Option<LossFreeRate>,
}

/// The key of a row. For patterns of one machine with all others, it includes these. Patterns of all machines, or of
/// clients and servers, have the number of machines: it is the load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TrafficKey {
    words: String,
    machines: Vec<String>,
}

/// The stages of all records, in order.
pub(super) fn aligned(
    records: &[NamedRecord<'_>],
    subjects: &[Subject],
    shown: &[usize],
) -> Vec<AlignedNetwork> {
    let mut all: Vec<AlignedNetwork> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let Some(subject) = subjects.iter().position(|subject| subject.record == index) else { continue };
        for (number, stage) in record.results.network.iter().enumerate() {
            let names = row_names(records, index, number);
            let place = all.iter().position(|known| known.stage == stage.stage).unwrap_or_else(|| {
                all.push(AlignedNetwork::new(&stage.stage));
                all.len() - 1
            });
            all[place].put(&stage.results, &names, subject, subjects.len());
        }
    }
    for network in &mut all {
        network.name_apart();
        network.lone = network.lone();
        network.compare(shown);
    }
    all
}

/// The names of a stage's machines in rows. A study and its repetition have no machine in common. If records of a
/// stage have other machines, rows name their roles, as far as each plan tells clients from servers.
fn row_names(records: &[NamedRecord<'_>], index: usize, number: usize) -> Vec<String> {
    let stage = &records[index].results.network[number];
    let own = stage.results.names();
    let mut has_others = false;
    for record in records {
        for (of_record, other) in record.results.network.iter().enumerate() {
            if other.stage != stage.stage {
                continue;
            }
            if roles(record.results, of_record).is_none() {
                return own;
            }
            has_others |= sorted(other.results.names()) != sorted(own.clone());
        }
    }
    let roles = roles(records[index].results, number);
    roles.filter(|_| has_others).unwrap_or(own)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// `client 1`, `server 1`, ... for the machines of a stage; `None` if its plan does not tell clients from servers.
fn roles(results: &Results, stage: usize) -> Option<Vec<String>> {
    let machines = results.network[stage].results.machines.len();
    let run = results.campaign.as_ref()?.plan.network.get(stage)?;
    let MachineGroups { clients, .. } = Some(run.groups(machines)).filter(|_| run.has_groups())?;
    let role = |machine: usize| match machine.checked_sub(clients) {
        None => format!("client {}", machine + 1),
        Some(server) => format!("server {}", server + 1),
    };
    Some((0..machines).map(role).collect())
}

impl TrafficKey {
    fn of(cell: &NetworkCell, names: &[String]) -> Self {
        let machines = match cell.pattern {
            TrafficPattern::OneToMany { .. } | TrafficPattern::ManyToOne { .. } => sorted(names.to_vec()),
            TrafficPattern::AllToAll => vec![format!("{} machines", names.len())],
            _ => Vec::new(),
        };
        TrafficKey { words: words(cell, names), machines }
    }
}

/// The same words, whichever of two machines a record names first.
fn words(cell: &NetworkCell, names: &[String]) -> String {
    let pattern = match cell.pattern {
        TrafficPattern::BothWays { one, other } if names[other] < names[one] => {
            TrafficPattern::BothWays { one: other, other: one }
        }
        pattern => pattern,
    };
    match cell.protocol {
        NetworkProtocol::Tcp => NetworkCell { pattern, ..*cell }.words(names),
        NetworkProtocol::Udp => format!("{}, UDP without loss", pattern.words(names)),
    }
}

impl NetworkRates {
    fn of(results: &NetworkResults, number: usize) -> Self {
        let cell = results.cells[number];
        let samples = || results.of_cell(number);
        let whole = samples().filter(|sample| sample.failed().is_none());
        let is_stream = cell.protocol == NetworkProtocol::Tcp;
        let rates = whole.map(|sample| sample.rate().0).filter(|rate| is_stream && *rate > 0.0);
        let ends = |found: &LossFreeRate| TrafficPattern::Pair { from: found.from, to: found.to };
        let found = loss_free_rates(results).into_iter().find(|found| ends(found) == cell.pattern);
        NetworkRates {
            repeats: rates.collect(),
            samples: samples().count(),
            failed: samples().find_map(|sample| sample.failed()).map(Into::into),
            is_search: !is_stream,
            loss_free: found.filter(|_| !is_stream),
        }
    }

    /// The rates of a stream, over the repeats without a failed flow.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.repeats)
    }

    /// Repeats do not share rounds with another record; these numbers only tell them apart.
    fn logs(&self) -> Vec<RoundLog> {
        (0..).zip(&self.repeats).map(|(round, rate)| RoundLog { round, log: rate.ln() }).collect()
    }
}

impl AlignedTraffic {
    /// The rates of a subject.
    pub fn of(&self, subject: usize) -> Option<&NetworkRates> {
        self.rates.get(subject)?.as_ref()
    }
}

impl AlignedNetwork {
    fn new(stage: &str) -> Self {
        AlignedNetwork {
            stage: stage.into(),
            rows: Vec::new(),
            order: Vec::new(),
            pairs: Vec::new(),
            lone: Vec::new(),
        }
    }

    fn put(&mut self, results: &NetworkResults, names: &[String], subject: usize, subjects: usize) {
        for (number, cell) in results.cells.iter().enumerate() {
            let key = TrafficKey::of(cell, names);
            let place = self.rows.iter().position(|row| row.key == key).unwrap_or_else(|| {
                let words = key.words.clone();
                self.rows.push(AlignedTraffic { words, rates: vec![None; subjects], key });
                self.rows.len() - 1
            });
            self.rows[place].rates[subject] = Some(NetworkRates::of(results, number));
        }
    }

    /// Adds the machines to the names of patterns with the same name but other machines.
    fn name_apart(&mut self) {
        let mut called: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.rows {
            *called.entry(row.key.words.clone()).or_insert(0) += 1;
        }
        for row in self.rows.iter_mut().filter(|row| called[&row.key.words] > 1) {
            row.words = format!("{}, {}", row.key.words, row.key.machines.join(" "));
        }
    }

    /// The subjects with results in this stage.
    pub fn subjects(&self) -> Vec<usize> {
        let count = self.rows.first().map_or(0, |row| row.rates.len());
        (0..count).filter(|subject| self.rows.iter().any(|row| row.of(*subject).is_some())).collect()
    }

    /// Rows that some subjects lack although they measured the stage, by the subjects that have them.
    fn lone(&self) -> Vec<LoneCells> {
        let all = self.subjects();
        let mut found: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        for row in &self.rows {
            let having: Vec<usize> =
                all.iter().copied().filter(|subject| row.of(*subject).is_some()).collect();
            if having.len() < all.len() {
                found.entry(having).or_default().push(row.words.clone());
            }
        }
        found.into_iter().map(|(subjects, cells)| LoneCells { subjects, cells }).collect()
    }

    fn compare(&mut self, shown: &[usize]) {
        let means = |row: &AlignedTraffic| {
            let mean = |subject: &usize| Summary::of(&logs(row.of(*subject)?)).map(|logs| logs.mean);
            shown.iter().map(mean).collect::<Vec<_>>()
        };
        let order = by_means(shown, self.rows.iter().map(means));
        let (order, pairs) = agreeing_pairs(order, |first, second| self.pair(first, second));
        self.order = order;
        self.pairs = pairs;
    }

    fn pair(&self, first: usize, second: usize) -> Option<SubjectPair> {
        let found = unpaired(&self.cells(first, second))?;
        let cells = found.cells.iter();
        let cells = cells.map(|(row, cell)| CellDifference { row: *row, effect: cell.effect() });
        Some(SubjectPair {
            first,
            second,
            basis: PairBasis::Repeats,
            effect: found.overall.effect(),
            cells: cells.collect(),
        })
    }

    /// The repeats of both subjects in each row that both have.
    pub(super) fn cells(&self, first: usize, second: usize) -> Vec<CellLogs> {
        let logs =
            |row: &AlignedTraffic, subject| row.of(subject).map(NetworkRates::logs).unwrap_or_default();
        let rows = self.rows.iter().enumerate();
        rows.map(|(row, of)| CellLogs { row, first: logs(of, first), second: logs(of, second) })
            .filter(|cell| !cell.first.is_empty() && !cell.second.is_empty())
            .collect()
    }

    /// The repeats of a subject in each row, and the mean of each of several earlier runs.
    pub(super) fn cells_of_runs(&self, now: usize, runs: &[usize]) -> Vec<CellLogs> {
        let of_run = |row: &AlignedTraffic, (round, &run): (u32, &usize)| {
            let log = Summary::of(&logs(row.of(run)?))?.mean;
            Some(RoundLog { round, log })
        };
        let rows = self.rows.iter().enumerate();
        rows.map(|(row, of)| CellLogs {
            row,
            first: of.of(now).map(NetworkRates::logs).unwrap_or_default(),
            second: (0..).zip(runs).filter_map(|run| of_run(of, run)).collect(),
        })
        .filter(|cell| !cell.first.is_empty() && !cell.second.is_empty())
        .collect()
    }

    /// The effect of a row: the second subject against the first.
    pub fn effect(&self, row: usize, first: usize, second: usize) -> Option<crate::effect::Effect> {
        let is_of = |pair: &&SubjectPair| [pair.first, pair.second] == [first, second];
        let is_reversed = |pair: &&SubjectPair| [pair.first, pair.second] == [second, first];
        let cell =
            |pair: &SubjectPair| pair.cells.iter().find(|cell| cell.row == row).map(|cell| cell.effect);
        let reversed = self.pairs.iter().find(is_reversed).and_then(cell);
        reversed.or_else(|| self.pairs.iter().find(is_of).and_then(cell).map(|effect| effect.reversed()))
    }
}

fn logs(rates: &NetworkRates) -> Vec<f64> {
    rates.logs().iter().map(|round| round.log).collect()
}
