//! A figure that several processes reached together: the share of each machine, and the process behind all
//! others.

use std::collections::BTreeMap;

use nilometer_model::{
    Nanos, RankPart, Sample,
    statistics::{Summary, median},
};

use crate::{CellOutcome, Quantity, machine_starts::MachineStarts};

/// The machines and processes behind a figure, as means over its valid repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct AcrossMachines {
    /// Number of processes.
    pub ranks: usize,
    /// Each machine's own rate, by its name: its work over the time until its last process was done.
    pub machines: Vec<(String, f64)>,
    /// The mean rate of a machine.
    pub mean: f64,
    /// The standard error of that mean, over machines; `None` for a single machine.
    pub standard_error: Option<f64>,
    /// The delay of the last process after the agreed start: the worst of all repeats.
    pub start_skew: Nanos,
    /// The uncertainty of the clocks behind that delay, in nanoseconds: the worst of all repeats.
    pub clock_uncertainty: u64,
    /// The process that finished last, if it was behind the others in every repeat.
    pub straggler: Option<Straggler>,
    /// The state of the machines just before; `None` if the record does not have it for each machine.
    pub starts: Option<MachineStarts>,
}

/// A process that took longer than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Straggler {
    /// Its rank, from 0.
    pub rank: u32,
    /// Its machine.
    pub node: String,
    /// Its time as a multiple of the median of all processes: the mean over repeats.
    pub times: f64,
}

/// A process is behind if its time is at least this multiple of the median, in every repeat.
const BEHIND: f64 = 1.2;

impl AcrossMachines {
    /// The machines behind a figure in this quantity; `None` if a single process reached it.
    pub fn of(outcome: &CellOutcome<'_>, quantity: Quantity) -> Option<Self> {
        Self::of_samples(outcome.samples.iter().map(|measured| &measured.sample), quantity)
    }

    /// The machines behind the repeats of a figure.
    pub(crate) fn of_samples<'a>(
        samples: impl Iterator<Item = &'a Sample>,
        quantity: Quantity,
    ) -> Option<Self> {
        let valid: Vec<_> =
            samples.filter(|sample| sample.invalid.is_none() && sample.parts.len() > 1).collect();
        let ranks = valid.first()?.parts.len();
        let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for sample in &valid {
            for (node, rate) in rates_of(sample, quantity) {
                rates.entry(node).or_default().push(rate);
            }
        }
        let means =
            rates.iter().filter_map(|(node, rates)| Some(((*node).to_owned(), Summary::of(rates)?.mean)));
        let machines: Vec<(String, f64)> = means.collect();
        let all: Vec<f64> = machines.iter().map(|(_, rate)| *rate).collect();
        let summary = Summary::of(&all)?;
        let parts = || valid.iter().flat_map(|sample| &sample.parts);
        Some(AcrossMachines {
            ranks,
            machines,
            mean: summary.mean,
            standard_error: summary.sem,
            start_skew: parts().map(|part| part.began).max().unwrap_or_default(),
            clock_uncertainty: parts().map(|part| part.clock_uncertainty).max().unwrap_or(0),
            straggler: straggler(&valid),
            starts: MachineStarts::of(&valid),
        })
    }

    /// The result as a sentence without its end.
    pub fn words(&self, quantity: Quantity) -> String {
        let AcrossMachines { ranks, ref machines, mean, standard_error, ref straggler, .. } = *self;
        let mut parts = vec![format!("{ranks} processes on {}", machines_in_words(machines.len()))];
        parts.extend(
            standard_error.map(|error| {
                format!("{} each, standard error {}", quantity.show(mean), quantity.show(error))
            }),
        );
        let least = machines.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let least = least.filter(|_| machines.len() > 1);
        parts.extend(least.map(|(node, rate)| format!("least {node}: {}", quantity.show(*rate))));
        parts.extend(self.starts.as_ref().map(MachineStarts::words));
        parts.extend(self.start_in_words());
        parts.extend(straggler.as_ref().map(|Straggler { rank, node, times }| {
            format!("process {rank} on {node} took {times:.1} times as long as the median of all")
        }));
        parts.join(", ")
    }
}

impl AcrossMachines {
    /// `None` if the start of processes was not recorded.
    fn start_in_words(&self) -> Option<String> {
        let AcrossMachines { start_skew, clock_uncertainty, .. } = *self;
        let clocks = Nanos(clock_uncertainty);
        (start_skew.0 > 0)
            .then(|| format!("begun within {start_skew} of the agreed start (clocks known to {clocks})"))
    }
}

fn machines_in_words(count: usize) -> String {
    if count == 1 { "one machine".into() } else { format!("{count} machines") }
}

/// The rate of each machine in a repeat.
fn rates_of(sample: &Sample, quantity: Quantity) -> BTreeMap<&str, f64> {
    let mut nodes: BTreeMap<&str, (u64, Nanos)> = BTreeMap::new();
    for part in &sample.parts {
        let (work, done) = nodes.entry(&part.node).or_default();
        *work += match quantity {
            Quantity::Bytes => part.bytes,
            Quantity::Operations | Quantity::Time => part.operations,
        };
        *done = part.last_done.max(*done);
    }
    let of = |(work, done): (u64, Nanos)| if done.0 == 0 { 0.0 } else { work as f64 / done.seconds() };
    nodes.into_iter().map(|(node, did)| (node, of(did))).collect()
}

fn straggler(samples: &[&Sample]) -> Option<Straggler> {
    let mut behind: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        let done: Vec<f64> = sample.parts.iter().map(|part| part.last_done.seconds()).collect();
        let middle = median(&done).filter(|middle| *middle > 0.0)?;
        for part in &sample.parts {
            behind.entry(part.rank).or_default().push(part.last_done.seconds() / middle);
        }
    }
    let always = behind.iter().filter(|(_, times)| times.iter().all(|times| *times >= BEHIND));
    let means = always.filter_map(|(rank, times)| Some((*rank, Summary::of(times)?.mean)));
    let (rank, times) = means.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let is_it = |part: &&RankPart| part.rank == rank;
    let node = samples.first()?.parts.iter().find(is_it)?.node.clone();
    Some(Straggler { rank, node, times })
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Activity, NodeStart, Phase};
    use nilometer_plan::{Key, Measured, Results};

    use super::*;
    use crate::{made_up::writes, outcomes};

    /// A repeat in which each process wrote 100 MB in its number of milliseconds; two are on each machine.
    fn repeat(number: u32, millis: &[u64]) -> Measured {
        let part = |(rank, millis): (u32, &u64)| RankPart {
            rank,
            node: format!("node{}", rank / 2),
            bytes: 100_000_000,
            operations: 100,
            last_done: Nanos::from_millis(*millis),
            began: Nanos(*millis * 10),
            clock_uncertainty: 1000 + u64::from(rank),
            ..RankPart::default()
        };
        let before = Activity {
            over: Nanos(1_000_000_000),
            disk_written: 3_000_000 * u64::from(number),
            ..Activity::default()
        };
        let start = |at: u32| NodeStart { node: format!("node{at}"), load: f64::from(at + number), before };
        let node_starts = (0..millis.len() as u32 / 2).map(start).collect();
        let parts: Vec<_> = (0..).zip(millis).map(part).collect();
        let wall = parts.iter().map(|part| part.last_done).max().unwrap_or_default();
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let sample = Sample { parts, node_starts, wall, bytes, operations: 400, ..Sample::new(Nanos(0)) };
        let key = Key { target: 0, cell: 0, repeat: number, phase: Phase::Write };
        Measured { key, sample }
    }

    fn across(repeats: &[[u64; 4]]) -> AcrossMachines {
        let samples = (0..).zip(repeats).map(|(number, millis)| repeat(number, millis)).collect();
        let results = Results { samples, cells: vec![writes("s", "1 MiB", 1)], ..Results::default() };
        let outcomes = outcomes(&results);
        AcrossMachines::of(&outcomes[0], Quantity::Bytes).expect("there are several")
    }

    #[test]
    fn each_machine_has_its_rate_and_the_mean_its_error_over_machines() {
        let across = across(&[[500, 450, 1000, 500], [500, 450, 500, 1000]]);
        let machines = [("node0", 4e8), ("node1", 2e8)];
        assert_eq!(across.machines.len(), machines.len());
        for ((found, rate), (node, wanted)) in across.machines.iter().zip(machines) {
            assert!(found == node && (rate - wanted).abs() < 1.0, "{across:?}");
        }
        assert!((across.mean - 3e8).abs() < 1.0);
        assert!(across.standard_error.is_some_and(|error| (error - 1e8).abs() < 1.0), "{across:?}");
        let starts = across.starts.as_ref().expect("each machine has a state");
        let found: Vec<_> = starts.machines.iter().map(|of| (of.name.as_str(), of.load, of.disks)).collect();
        assert_eq!(found, [("node0", 0.5, Some(1.5e6)), ("node1", 1.5, Some(1.5e6))]);
        let words = across.words(Quantity::Bytes);
        let said = "load average 1.00 (standard error 0.50, most node1: 1.50) and disks at 1.5 MB/s (standard error 0 B/s) a machine just before";
        assert!(words.contains(said), "{words}");
        assert_eq!(across.straggler, None, "each of two is behind in one repeat only");
    }

    #[test]
    fn a_process_that_is_always_behind_is_named() {
        let across = across(&[[500, 500, 500, 1500], [500, 550, 500, 1500]]);
        let straggler = across.straggler.clone().expect("the last one");
        assert_eq!((straggler.rank, straggler.node.as_str()), (3, "node1"));
        let words = across.words(Quantity::Bytes);
        assert!(words.starts_with("4 processes on 2 machines, "), "{words}");
        assert_eq!((across.start_skew, across.clock_uncertainty), (Nanos(15_000), 1003));
        assert!(words.contains("begun within 15 us of the agreed start (clocks known to 1 us)"), "{words}");
        assert!(words.contains("process 3 on node1 took 2.9 times as long"), "{words}");
    }
}
