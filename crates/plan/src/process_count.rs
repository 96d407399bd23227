//! `nodes` and `processes` of a plan: numbers, or `"all"` that a launcher started. The processes must run
//! before `"all"` has a number.

use std::{fmt, mem::take};

use serde::{Deserialize, Deserializer, de};

use super::{AskedProcesses, Cell, Measurement, ResolvedPlan};

/// The number of machines, or of processes on each of them, of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessCount {
    /// All machines or processes.
    All,
    /// The first N.
    First(u32),
}

impl ProcessCount {
    /// The number; none for all.
    pub const fn first(self) -> Option<u32> {
        match self {
            ProcessCount::All => None,
            ProcessCount::First(count) => Some(count),
        }
    }
}

impl<'de> Deserialize<'de> for ProcessCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountOrAll)
    }
}

struct CountOrAll;

impl de::Visitor<'_> for CountOrAll {
    type Value = ProcessCount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or `all`")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<ProcessCount, E> {
        match word {
            "all" => Ok(ProcessCount::All),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<ProcessCount, E> {
        let first = u32::try_from(count).map(ProcessCount::First);
        first.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(count), &self))
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<ProcessCount, E> {
        let first = u32::try_from(count).map(ProcessCount::First);
        first.map_err(|_| E::invalid_value(de::Unexpected::Signed(count), &self))
    }
}

impl ResolvedPlan {
    /// Resolves the plan for this many processes on each node. If a stage has cells with numbers and with
    /// `"all"`, the latter get the number too, and equal cells merge. By one process alone `[1, "all"]` is
    /// thus measured once.
    #[must_use]
    pub fn on_processes(mut self, node_ranks: &[u32]) -> Self {
        self.ranks = node_ranks.iter().sum::<u32>().max(1);
        self.node_ranks = if node_ranks.len() > 1 { node_ranks.into() } else { Vec::new() };
        let all = self.all_processes();
        let says_none = |cell: &Cell| cell.asked_processes() == AskedProcesses::default();
        if self.cells.iter().all(says_none) {
            return self;
        }
        let written = take(&mut self.cells);
        for cell in &written {
            let counted = cell.counted(&written, all);
            if !self.cells.contains(&counted) {
                self.cells.push(counted);
            }
        }
        self
    }

    /// Machines, and processes on each of them if they are as many on each.
    fn all_processes(&self) -> AskedProcesses {
        let counts = if self.node_ranks.is_empty() { vec![self.ranks] } else { self.node_ranks.clone() };
        let alike = counts.iter().all(|count| *count == counts[0]);
        AskedProcesses {
            nodes: Some(counts.len() as u32),
            processes: alike.then_some(counts[0]),
            mpi_io: None,
        }
    }
}

impl Cell {
    fn asked_processes(&self) -> AskedProcesses {
        match &self.measurement {
            Measurement::Workload(run) => run.into(),
            Measurement::Recording(run) => run.as_ref().into(),
            Measurement::Imported(_) => AskedProcesses::default(),
        }
    }

    /// The cell with numbers for all, if others of its stage have some.
    fn counted(&self, cells: &[Cell], all: AskedProcesses) -> Cell {
        let AskedProcesses { nodes, processes, .. } = self.asked_processes();
        let likes = || cells.iter().filter(|cell| cell.stage == self.stage).map(Cell::asked_processes);
        let nodes = in_numbers(nodes, likes().map(|like| like.nodes), all.nodes);
        let processes = in_numbers(processes, likes().map(|like| like.processes), all.processes);
        let mut counted = self.clone();
        match &mut counted.measurement {
            Measurement::Workload(run) => (run.nodes, run.processes) = (nodes, processes),
            Measurement::Recording(run) => (run.swept.nodes, run.swept.processes) = (nodes, processes),
            Measurement::Imported(_) => {}
        }
        counted
    }
}

/// The count to show for a cell, if cells of its stage have both numbers and all, and `all` is the total. A
/// count of 1 stays implicit if there is only one. Other stages show their cells' own counts.
fn in_numbers(this: Option<u32>, stage: impl Iterator<Item = Option<u32>>, all: Option<u32>) -> Option<u32> {
    let (numbers, alls): (Vec<_>, Vec<_>) = stage.partition(Option::is_some);
    if numbers.is_empty() || alls.is_empty() {
        return this;
    }
    this.or(all).filter(|count| !(*count == 1 && all == Some(1)))
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const PLAN: &str = r#"
title = "a test"
[[stage]]
name = "files"
nodes = [1, "all"]
processes = [1, 2, "all"]
[stage.workload.walk]
levels = 1
branching = 1
files = 1
"#;

    fn cells(node_ranks: &[u32]) -> Vec<[Option<u32>; 2]> {
        let plan = parse(PLAN, "my.toml", 1.0).expect("a valid plan").on_processes(node_ranks);
        assert_eq!(plan.ranks, node_ranks.iter().sum::<u32>());
        plan.workloads().map(|(_, _, run)| [run.nodes, run.processes]).collect()
    }

    #[test]
    fn all_are_as_many_as_there_are_and_what_is_the_same_is_one_cell() {
        let text = PLAN.replace("[1, 2, \"all\"]", "[1, \"all\"]");
        let alone = parse(&text, "my.toml", 1.0).expect("a valid plan").on_processes(&[1]);
        assert_eq!(alone.cells.len(), 1);
        assert!(alone.cells[0].to_string().ends_with("1 worker"), "{}", alone.cells[0]);
        let each = [Some(1), Some(2)];
        let nine = Some(9);
        assert_eq!(cells(&[2; 9]), [Some(1), nine].map(|nodes| each.map(|count| [nodes, count])).concat());
        // On nodes with different numbers of processes all of them are no number.
        let some = [Some(1), Some(2), None];
        assert_eq!(cells(&[3, 2]), [Some(1), Some(2)].map(|nodes| some.map(|count| [nodes, count])).concat());
        // The stage asks for more processes than there are; the error appears when the plan meets its
        // targets.
        let plan = parse(PLAN, "my.toml", 1.0).expect("a valid plan").on_processes(&[1]);
        assert!(plan.workloads().any(|(_, _, run)| plan.too_few_processes(run).is_some()));
    }

    #[test]
    fn numbers_by_themselves_stay_as_they_are_written() {
        let text = PLAN.replace("[1, \"all\"]", "[1, 2]").replace("[1, 2, \"all\"]", "\"all\"");
        let plan = parse(&text, "my.toml", 1.0).expect("a valid plan").on_processes(&[1, 1]);
        let nodes: Vec<_> = plan.workloads().map(|(_, _, run)| [run.nodes, run.processes]).collect();
        assert_eq!(nodes, [[Some(1), None], [Some(2), None]]);
        for wrong in ["\"some\"", "-1", "4294967296", "1.5"] {
            let text = PLAN.replace("\"all\"]\nproc", &format!("{wrong}]\nproc"));
            let error = parse(&text, "my.toml", 1.0).expect_err(wrong).to_string();
            assert!(error.contains("a whole number, or `all`"), "{error}");
        }
    }
}
