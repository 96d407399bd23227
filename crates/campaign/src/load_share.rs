//! The share of a process in a load of all processes, whether or not the cell uses the process. Each works in a
//! place of its own, as a load of one process does.

use nilometer_cluster::CampaignRanks;
use nilometer_plan::BackgroundLoad;

use crate::workload::WorkerPlace;

/// The share of one process in a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadShare {
    /// The rank of the process.
    rank: u32,
    /// The number of processes.
    ranks: u32,
    /// The numbers of the instruments that it records; empty if the load is a workload.
    pub(crate) instruments: Vec<u32>,
}

impl LoadShare {
    /// The share of this rank. Each process has all workers of a workload. Instruments are spread over the
    /// processes: each is recorded once.
    pub(crate) fn of(rank: u32, ranks: &CampaignRanks, load: &BackgroundLoad) -> Self {
        let count = load.recording().map_or(0, |run| run.count);
        let recorders = (0..).zip(ranks.nodes.spread(count));
        let instruments = recorders.filter(|(_, by)| *by == rank).map(|(number, _)| number).collect();
        LoadShare { rank, ranks: ranks.nodes.counts().iter().sum(), instruments }
    }

    /// The rank of the process.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// The place of a worker of this process among those of all. All of them together have the load's rate.
    pub(crate) fn paced(&self, place: WorkerPlace) -> WorkerPlace {
        WorkerPlace { rank: self.rank, ranks: self.ranks, ..place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Instrument;
    use nilometer_plan::{RankNodes, parse_with};

    fn load(text: &str) -> BackgroundLoad {
        let head = "title = \"t\"\n[[stage]]\nname = \"files\"\n[stage.workload.walk]\nlevels = 1\nbranching = 1\nfiles = 1\n";
        let named = |name: &str| {
            let text =
                std::fs::read_to_string(format!("../../instruments/{name}.toml")).expect("it is there");
            Instrument::parse(&text, name).map_err(|error| error.to_string())
        };
        let text = format!("{head}[stage.background]\n{text}");
        let plan = parse_with(&text, "test.toml", 1.0, &named).expect("a valid plan");
        plan.cells[0].background().expect("it has one").clone()
    }

    #[test]
    fn each_instrument_is_recorded_once_and_neighbours_are_on_different_machines() {
        let names = ["a", "a", "b", "b"].map(String::from);
        let ranks = CampaignRanks { nodes: RankNodes::of(&names), apart: Vec::new() };
        let shares = |count: u32| {
            let load =
                load(&format!("count = {count}\n[stage.background.ingest]\ninstrument = \"pco-edge\"\n"));
            [0, 1, 2, 3].map(|rank| LoadShare::of(rank, &ranks, &load).instruments)
        };
        assert_eq!(shares(1), [vec![0], vec![], vec![], vec![]]);
        assert_eq!(shares(2), [vec![0], vec![], vec![1], vec![]]);
        assert_eq!(shares(5), [vec![0, 4], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn the_workers_of_all_processes_take_turns_at_one_rate() {
        let ranks = CampaignRanks { nodes: RankNodes::of(&["a", "b"].map(String::from)), apart: Vec::new() };
        let load = load(
            "workers = 2\nrate = \"10 MB/s\"\n[stage.background.workload.stream]\nfile_size = \"1 MiB\"\n\
             block_size = \"1 MiB\"\naccess = \"buffered\"\n",
        );
        let places = [0, 1].map(|rank| {
            let share = LoadShare::of(rank, &ranks, &load);
            let own = WorkerPlace::of_rank(0, 1, 2).map(|place| share.paced(place));
            own.map(|place| (place.number(), place.total())).collect::<Vec<_>>()
        });
        assert_eq!(places, [[(0, 4), (1, 4)], [(2, 4), (3, 4)]]);
    }
}
