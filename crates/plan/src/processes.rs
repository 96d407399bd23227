//! `nodes` and `processes`: which of a campaign's processes a cell uses, and on which machines they are.

use std::collections::BTreeMap;

use nilometer_model::MpiIoImplementation;
use serde::{Deserialize, Serialize};

use super::{RecordingRun, ResolvedPlan, WorkloadRun};

/// The number of processes that a cell asks for, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskedProcesses {
    /// Number of machines, the first ones.
    pub nodes: Option<u32>,
    /// Number of processes on each of them, the first ones.
    pub processes: Option<u32>,
    /// The implementation of MPI-IO that they need.
    pub mpi_io: Option<MpiIoImplementation>,
}

impl From<&WorkloadRun> for AskedProcesses {
    fn from(run: &WorkloadRun) -> Self {
        AskedProcesses { nodes: run.nodes, processes: run.processes, mpi_io: run.asked_of_mpi_io() }
    }
}

impl From<&RecordingRun> for AskedProcesses {
    fn from(run: &RecordingRun) -> Self {
        AskedProcesses { nodes: run.swept.nodes, processes: run.swept.processes, mpi_io: None }
    }
}

/// The node of each process of a campaign: its node's number, by rank. Nodes are numbered in the order of the
/// first rank on each, so that rank 0 is on node 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankNodes {
    nodes: Vec<u32>,
    /// The implementation of MPI-IO by rank; `None` if it is unknown or missing.
    mpi_io: Vec<Option<MpiIoImplementation>>,
}

impl RankNodes {
    /// The only process of a campaign.
    pub fn alone() -> Self {
        RankNodes { nodes: vec![0], mpi_io: Vec::new() }
    }

    /// Finds the nodes from the names of the processes' machines, by rank.
    pub fn of(names: &[String]) -> Self {
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(names.len());
        for name in names {
            let next = known.len() as u32;
            nodes.push(*known.entry(name).or_insert(next));
        }
        RankNodes { nodes, mpi_io: Vec::new() }
    }

    /// Adds the implementation of MPI-IO of each rank.
    #[must_use]
    pub fn with_mpi_io(self, by_rank: Vec<Option<MpiIoImplementation>>) -> Self {
        RankNodes { mpi_io: by_rank, ..self }
    }

    /// For each implementation of MPI-IO, the number of processes on each node that have it.
    pub fn mpi_io_counts(&self) -> BTreeMap<MpiIoImplementation, Vec<u32>> {
        let nodes = 0..self.counts().len() as u32;
        let on = |node, which| self.on(node).filter(|rank| self.has(*rank, which)).count() as u32;
        let counts = |which| nodes.clone().map(|node| on(node, which)).collect::<Vec<_>>();
        let all = MpiIoImplementation::ALL.into_iter().map(|which| (which, counts(which)));
        all.filter(|(_, counts)| counts.iter().any(|count| *count > 0)).collect()
    }

    fn has(&self, rank: u32, which: MpiIoImplementation) -> bool {
        self.mpi_io.get(rank as usize) == Some(&Some(which))
    }

    /// The number of processes on each node.
    pub fn counts(&self) -> Vec<u32> {
        let nodes = self.nodes.iter().max().map_or(0, |last| last + 1);
        (0..nodes).map(|node| self.on(node).count() as u32).collect()
    }

    /// The ranks on a node, in order.
    fn on(&self, node: u32) -> impl Iterator<Item = u32> {
        (0..).zip(&self.nodes).filter(move |(_, of)| **of == node).map(|(rank, _)| rank)
    }

    /// Returns true if no lower rank is on its node.
    pub fn is_first_on_node(&self, rank: u32) -> bool {
        let node = self.nodes.get(rank as usize);
        self.nodes.iter().position(|of| Some(of) == node) == Some(rank as usize)
    }

    /// The ranks of `count` pieces of work, one after the other: spread over the nodes, and in turn if there are more
    /// pieces than ranks.
    pub fn spread(&self, count: u32) -> Vec<u32> {
        let nodes = 0..self.counts().len() as u32;
        let all: Vec<u32> = nodes.flat_map(|node| self.on(node).collect::<Vec<_>>()).collect();
        let ranks = all.len();
        let count = count as usize;
        let place = |number: usize| if count > ranks { number % ranks } else { number * ranks / count };
        (0..count).map(|number| all[place(number)]).collect()
    }

    /// Returns true if no two ranks on different nodes have equal values.
    pub fn share_nothing<T: PartialEq>(&self, of_rank: impl Fn(u32) -> T) -> bool {
        let all: Vec<T> = (0..self.nodes.len() as u32).map(of_rank).collect();
        let same = |one: usize, other: usize| self.nodes[one] != self.nodes[other] && all[one] == all[other];
        !(0..all.len()).any(|one| (0..one).any(|other| same(one, other)))
    }

    /// The ranks that run a cell, those of a node one after the other: of its first nodes the first processes of each.
    pub fn used_by(&self, asked: impl Into<AskedProcesses>) -> Vec<u32> {
        let AskedProcesses { nodes, processes, mpi_io } = asked.into();
        let most = processes.unwrap_or(u32::MAX) as usize;
        let used = (0..self.counts().len() as u32).take(nodes.unwrap_or(u32::MAX) as usize);
        let has = |rank: &u32| mpi_io.is_none_or(|which| self.has(*rank, which));
        used.flat_map(|node| self.on(node).filter(has).take(most).collect::<Vec<_>>()).collect()
    }

    /// The sender of the packets of an instrument that a rank records. It is a rank on another node: in turn
    /// those that do not record it, or else the counterpart on the next node. `None` if all are on one node.
    pub fn sender_to(&self, rank: u32, run: &RecordingRun) -> Option<u32> {
        self.sender_among(rank, &self.used_by(run), &self.recorded_by(run))
    }

    fn sender_among(&self, rank: u32, used: &[u32], recorders: &[u32]) -> Option<u32> {
        let place = used.iter().position(|one| *one == rank)?;
        let mut nodes: Vec<u32> = used.iter().map(|&rank| self.nodes[rank as usize]).collect();
        nodes.dedup();
        let step = used.len().div_ceil(nodes.len().max(1));
        let further = (step..used.len()).chain(1..step).map(|step| used[(place + step) % used.len()]);
        let elsewhere: Vec<u32> =
            further.filter(|&other| self.nodes[other as usize] != self.nodes[rank as usize]).collect();
        let idle: Vec<u32> = used.iter().copied().filter(|rank| !recorders.contains(rank)).collect();
        let idle: Vec<u32> = idle.into_iter().filter(|rank| elsewhere.contains(rank)).collect();
        let in_turn = recorders.iter().position(|one| *one == rank)?;
        idle.get(in_turn % idle.len().max(1)).or(elsewhere.first()).copied()
    }

    /// The ranks that record an instrument together: no more than can, spread over the nodes.
    pub fn recorded_by(&self, run: &RecordingRun) -> Vec<u32> {
        let used = self.used_by(run);
        let recorders = used.len().min(run.most_processes() as usize);
        (0..recorders).map(|number| used[number * used.len() / recorders]).collect()
    }
}

impl ResolvedPlan {
    /// The number of processes on each node, or of those with this implementation of MPI-IO.
    fn processes_there(&self, mpi_io: Option<MpiIoImplementation>) -> Vec<u32> {
        let all = if self.node_ranks.is_empty() { vec![self.ranks.max(1)] } else { self.node_ranks.clone() };
        match mpi_io {
            Some(which) => self.mpi_io_ranks.get(&which).cloned().unwrap_or_else(|| vec![0; all.len()]),
            None => all,
        }
    }

    /// The number of processes on each of its nodes that a cell uses.
    pub fn processes_a_node(&self, asked: impl Into<AskedProcesses>) -> Vec<u32> {
        let AskedProcesses { nodes, processes, mpi_io } = asked.into();
        let most = processes.unwrap_or(u32::MAX);
        let nodes = nodes.unwrap_or(u32::MAX) as usize;
        self.processes_there(mpi_io).into_iter().take(nodes).map(|count| count.min(most)).collect()
    }

    /// The number of processes that a cell uses.
    pub fn processes_of(&self, asked: impl Into<AskedProcesses>) -> u32 {
        self.processes_a_node(asked).into_iter().fold(0, u32::saturating_add)
    }

    /// The number of processes that record an instrument together: at most those that can.
    pub fn recorders_of(&self, run: &RecordingRun) -> u32 {
        self.processes_of(run).min(run.most_processes())
    }

    /// The number of recorders on each of its nodes; they are spread over the nodes.
    pub fn recorders_a_node(&self, run: &RecordingRun) -> Vec<u32> {
        let counts = self.processes_a_node(run);
        let nodes = (0..counts.len()).flat_map(|node| vec![node; counts[node] as usize]);
        let nodes: Vec<usize> = nodes.collect();
        let recorders = self.recorders_of(run) as usize;
        let mut there = vec![0; counts.len()];
        for number in 0..recorders {
            there[nodes[number * nodes.len() / recorders]] += 1;
        }
        there
    }

    /// Describes the processes if they are too few for a cell.
    pub fn too_few_processes(&self, asked: impl Into<AskedProcesses>) -> Option<String> {
        let AskedProcesses { nodes, processes, mpi_io } = asked.into();
        let there = self.processes_there(mpi_io);
        let nodes = nodes.map_or(there.len(), |nodes| nodes as usize);
        let enough = |count: &u32| *count >= processes.unwrap_or(1);
        let too_few = there.len() < nodes || !there.iter().take(nodes).all(enough);
        too_few.then(|| in_words(&there))
    }
}

/// `5 processes on 2 nodes, the fewest 2 on one`.
fn in_words(there: &[u32]) -> String {
    let all: u32 = there.iter().sum();
    let plural =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let processes = plural(all as usize, "process", "processes");
    let nodes = plural(there.len(), "node", "nodes");
    let fewest = there.iter().min().copied().unwrap_or(0);
    let fewest = if there.len() > 1 { format!(", the fewest {fewest} on one") } else { String::new() };
    format!("{processes} on {nodes}{fewest}")
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const PLAN: &str = r#"
title = "a test"
[[stage]]
name = "files"
nodes = [1, 2]
processes = [1, 2]
workers = [1, 4]
[stage.workload.walk]
levels = 1
branching = 1
files = 1
"#;

    fn plan(counts: &[u32]) -> ResolvedPlan {
        let plan = parse(PLAN, "my.toml", 1.0).expect("a valid plan");
        ResolvedPlan { ranks: counts.iter().sum(), node_ranks: counts.into(), ..plan }
    }

    fn nodes(names: &str) -> RankNodes {
        RankNodes::of(&names.chars().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn threads_processes_and_nodes_are_one_matrix() {
        let cells: Vec<String> = plan(&[2, 2]).cells.iter().map(ToString::to_string).collect();
        assert_eq!(cells.len(), 8);
        assert!(cells[0].ends_with("1 worker, 1 process a node, 1 node"), "{}", cells[0]);
        assert!(cells[7].ends_with("4 workers, 2 processes a node, 2 nodes"), "{}", cells[7]);
        let refused = parse(&PLAN.replace("nodes = [1, 2]", "nodes = 0"), "my.toml", 1.0);
        assert!(refused.expect_err("no node").to_string().contains("nodes = 0: write 1 to"));
    }

    #[test]
    fn a_cell_uses_the_first_processes_of_the_first_nodes() {
        // The orders of launchers: by slot, or by node in turn.
        for (names, expected) in [("aabb", [[0, 2], [0, 1]]), ("abab", [[0, 1], [0, 2]])] {
            let of = |cell: usize| {
                let plan = plan(&[2, 2]);
                nodes(names).used_by(plan.cells[cell].as_workload().expect("a workload"))
            };
            assert_eq!(of(0), [0], "one process");
            // One node and two processes, two nodes and one process.
            let by_cell: Vec<Vec<u32>> = (0..8).map(of).filter(|used| used.len() == 2).collect();
            assert!(by_cell.contains(&expected[0].to_vec()) && by_cell.contains(&expected[1].to_vec()));
            assert_eq!(of(7).len(), 4, "all of them");
        }
        assert_eq!(nodes("abcab").counts(), [2, 2, 1]);
        assert_eq!(nodes("abcab").used_by(&everything()), [0, 3, 1, 4, 2], "those of a node in a row");
        assert_eq!(RankNodes::alone().counts(), [1]);
        let first: Vec<u32> = (0..6).filter(|&rank| nodes("abcab").is_first_on_node(rank)).collect();
        assert_eq!(first, [0, 1, 2]);
    }

    /// A cell that says neither.
    fn everything() -> WorkloadRun {
        let text = PLAN.replace("nodes = [1, 2]\nprocesses = [1, 2]\n", "");
        let plan = parse(&text, "my.toml", 1.0).expect("a valid plan");
        plan.cells[0].as_workload().expect("a workload").clone()
    }

    #[test]
    fn recorders_are_spread_over_the_nodes() {
        let text = "name = \"c\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10]\npixel = \"int32\"\nframe_rate = \"60 Hz\"\n";
        let instrument = nilometer_model::Instrument::parse(text, "c").expect("valid");
        let run = |recorders| RecordingRun { recorders, ..RecordingRun::new(instrument.clone()) };
        for (names, most, expected) in
            [("aaaabbbb", Some(4), [2, 2]), ("aaab", Some(2), [2, 0]), ("aaab", None, [3, 1])]
        {
            let counts = nodes(names).counts();
            let there = plan(&counts).recorders_a_node(&run(most));
            let of_ranks = nodes(names).recorded_by(&run(most));
            let on_first = of_ranks.iter().filter(|rank| names.as_bytes()[**rank as usize] == b'a').count();
            assert_eq!((there, on_first as u32), (expected.to_vec(), expected[0]), "{names}");
        }
    }

    #[test]
    fn packets_come_from_the_next_node() {
        let senders = |names: &str, used: &[u32]| -> Vec<Option<u32>> {
            used.iter().map(|&rank| nodes(names).sender_among(rank, used, used)).collect()
        };
        assert_eq!(senders("abc", &[0, 1, 2]), [Some(1), Some(2), Some(0)]);
        assert_eq!(senders("abab", &[0, 2, 1, 3]), [Some(1), Some(3), Some(0), Some(2)]);
        assert_eq!(senders("aab", &[0, 1, 2]), [Some(2), Some(2), Some(1)], "never from the own node");
        assert_eq!(senders("aa", &[0, 1]), [None, None]);
        let spared = |names: &str, recorders: &[u32]| -> Vec<Option<u32>> {
            let used: Vec<u32> = (0..names.len() as u32).collect();
            recorders.iter().map(|&rank| nodes(names).sender_among(rank, &used, recorders)).collect()
        };
        assert_eq!(spared("abc", &[0, 1]), [Some(2), Some(2)], "the third records nothing");
        assert_eq!(spared("abcd", &[0, 2]), [Some(1), Some(3)]);
        assert_eq!(spared("aab", &[0, 2]), [Some(2), Some(1)], "on its own node it is no use");
    }

    #[test]
    fn too_few_are_counted_and_what_is_used_is_known() {
        let cell = |plan: &ResolvedPlan| plan.cells[7].as_workload().expect("a workload").clone();
        for (there, words) in [
            (&[4][..], Some("4 processes on 1 node")),
            (&[2, 1], Some("3 processes on 2 nodes, the fewest 1 on one")),
            (&[2, 2], None),
            (&[3, 2, 1], None),
        ] {
            let plan = plan(there);
            assert_eq!(plan.too_few_processes(&cell(&plan)).as_deref(), words, "{there:?}");
            assert_eq!(plan.too_few_processes(&everything()), None);
            assert_eq!(plan.processes_of(&everything()), there.iter().sum::<u32>());
        }
        let plan = plan(&[3, 2, 1]);
        assert_eq!((plan.processes_a_node(&cell(&plan)), plan.processes_of(&cell(&plan))), (vec![2, 2], 4));
    }
}
