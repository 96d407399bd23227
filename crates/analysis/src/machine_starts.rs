//! The load average and the disk I/O of each machine just before the repeats of a figure.

use std::collections::BTreeMap;

use nilometer_model::{Activity, ByteRate, NodeStart, Sample, statistics::Summary};
use nilometer_plan::{Measured, Results};

use crate::letter;

/// The state of the machines just before a figure's repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineStarts {
    /// The machines, in the order of their names.
    pub machines: Vec<MachineStart>,
    /// The load averages over machines. The standard error is `None` for a single machine.
    pub load: Summary,
    /// The disks' bytes a second over machines; `None` if a machine was not observed.
    pub disks: Option<Summary>,
}

/// The state of one machine: means over the repeats of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineStart {
    /// The name of the machine.
    pub name: String,
    /// The load average over a minute.
    pub load: f64,
    /// Bytes a second of all its disks; `None` if they were not observed in each repeat.
    pub disks: Option<f64>,
}

impl MachineStart {
    fn of(name: &str, starts: &[&NodeStart]) -> Self {
        MachineStart { name: name.to_owned(), load: load(starts), disks: disks(starts) }
    }
}

impl MachineStarts {
    /// Returns the state before these repeats. `None` if a repeat has none, as in records up to schema 9.
    pub(crate) fn of(samples: &[&Sample]) -> Option<Self> {
        let mut nodes: BTreeMap<&str, Vec<&NodeStart>> = BTreeMap::new();
        for sample in samples {
            if sample.node_starts.is_empty() {
                return None;
            }
            for start in &sample.node_starts {
                nodes.entry(&start.node).or_default().push(start);
            }
        }
        let machines: Vec<MachineStart> =
            nodes.into_iter().map(|(node, starts)| MachineStart::of(node, &starts)).collect();
        let loads: Vec<f64> = machines.iter().map(|machine| machine.load).collect();
        let rates: Option<Vec<f64>> = machines.iter().map(|machine| machine.disks).collect();
        let load = Summary::of(&loads)?;
        let disks = rates.as_deref().and_then(Summary::of);
        Some(MachineStarts { machines, load, disks })
    }

    /// The state as a part of a sentence. One machine has no standard error.
    pub fn words(&self) -> String {
        let load = |load: f64| format!("{load:.2}");
        let rate = |rate: f64| ByteRate(rate).to_string();
        let most = self.most(|machine| Some(machine.load), load);
        let loads =
            with_error(format!("load average {}", load(self.load.mean)), self.load.sem.map(load), most);
        let disks = match &self.disks {
            Some(Summary { mean, sem, .. }) => {
                let most = self.most(|machine| machine.disks, rate);
                with_error(format!("disks at {}", rate(*mean)), sem.map(rate), most)
            }
            None => "disks not observed".into(),
        };
        let over = if self.machines.len() == 1 { "on the one machine" } else { "a machine" };
        format!("{loads} and {disks} {over} just before")
    }

    /// `node2: 4 MB/s`, the machine with the highest figure. `None` for a single machine, or if all are alike.
    fn most(
        &self,
        figure: impl Fn(&MachineStart) -> Option<f64>,
        show: impl Fn(f64) -> String,
    ) -> Option<String> {
        let figures = self.machines.iter().filter_map(|machine| Some((&machine.name, figure(machine)?)));
        let (name, most) = figures.clone().max_by(|one, other| one.1.total_cmp(&other.1))?;
        let is_above = figures.clone().any(|(_, figure)| figure < most);
        is_above.then(|| format!("{name}: {}", show(most)))
    }
}

/// The samples whose machines just before do not add up to the activity of all of them, a sentence each. A record
/// keeps both, so that a change of one shows.
pub fn contradictory_starts(results: &Results) -> Vec<String> {
    let wrong = results.samples.iter().filter(|measured| !adds_up(&measured.sample));
    wrong.map(|measured| contradiction(results, measured)).collect()
}

fn contradiction(results: &Results, measured: &Measured) -> String {
    let key = measured.key;
    format!(
        "{}, {}, {}, repeat {}: the I/O of its machines just before (node_start) is not that of all of them (activity)",
        letter(key.target),
        results.cells[key.cell],
        key.phase.name(),
        key.repeat
    )
}

/// Returns true if the counters of all machines are those of the sample, or if it has no machines.
fn adds_up(sample: &Sample) -> bool {
    let sum = |counter: fn(&Activity) -> u64| {
        sample.node_starts.iter().map(|start| counter(&start.before)).fold(0, u64::saturating_add)
    };
    let counters: [fn(&Activity) -> u64; 4] = [
        |activity| activity.disk_read,
        |activity| activity.disk_written,
        |activity| activity.received,
        |activity| activity.sent,
    ];
    sample.node_starts.is_empty()
        || counters.into_iter().all(|counter| sum(counter) == counter(&sample.before))
}

fn with_error(figure: String, error: Option<String>, most: Option<String>) -> String {
    let error = error.map(|error| format!("standard error {error}"));
    let more: Vec<String> = error.into_iter().chain(most.map(|most| format!("most {most}"))).collect();
    if more.is_empty() { figure } else { format!("{figure} ({})", more.join(", ")) }
}

/// The mean load average over the repeats of a machine.
fn load(starts: &[&NodeStart]) -> f64 {
    starts.iter().map(|start| start.load).sum::<f64>() / starts.len() as f64
}

/// The mean rate of a machine's disks over its repeats.
fn disks(starts: &[&NodeStart]) -> Option<f64> {
    let rates: Option<Vec<f64>> = starts.iter().map(|start| Some(start.disk_rate()?.0)).collect();
    Some(Summary::of(&rates?)?.mean)
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, Phase};
    use nilometer_plan::Key;

    use super::*;
    use crate::made_up::writes;

    #[test]
    fn machines_that_do_not_add_up_to_the_activity_of_all_are_named() {
        let start = |node: &str, sent| NodeStart {
            node: node.into(),
            load: 0.5,
            before: Activity { sent, disk_written: 7, ..Activity::default() },
        };
        let before = Activity { sent: 30, disk_written: 14, ..Activity::default() };
        let node_starts = vec![start("a", 10), start("b", 20)];
        let sample = Sample { before, node_starts, ..Sample::new(Nanos(0)) };
        let key = Key { target: 0, cell: 0, repeat: 2, phase: Phase::Write };
        let mut results = Results {
            cells: vec![writes("files", "1 MiB", 1)],
            samples: vec![Measured { key, sample }],
            ..Results::default()
        };
        assert_eq!(contradictory_starts(&results), Vec::<String>::new());
        results.samples[0].sample.node_starts[1].before.sent = 21;
        let found = contradictory_starts(&results);
        assert!(
            found.len() == 1 && found[0].contains("write, repeat 2: the I/O of its machines"),
            "{found:?}"
        );
        results.samples[0].sample.node_starts.clear();
        assert_eq!(contradictory_starts(&results), Vec::<String>::new(), "one process has none");
    }
}
