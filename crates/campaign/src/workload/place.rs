//! The place of a worker among all workers of a campaign, over all processes. Names, seeds and parts of shared
//! work follow from its number. Two processes write the same file, or the same bytes, only on purpose.

use nilometer_plan::Shift;

/// The place of a worker among those of all ranks. In a campaign of one process its number is that of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPlace {
    /// The process, among those that run the cell, from 0. The processes of a node follow each other.
    pub rank: u32,
    /// The number of processes that run the cell.
    pub ranks: u32,
    /// The worker's number in its process, from 0.
    pub worker: u32,
    /// The number of workers of each process.
    pub workers: u32,
    /// The number of this repeat among all that the campaign makes; see [`WorkerPlace::name_of`].
    pub attempt: u32,
    /// The distance, in processes, to the matching process on the next node. If all are on one node that is the
    /// next process.
    pub next_node: u32,
}

impl WorkerPlace {
    /// A worker of a campaign of one process.
    pub const fn alone(worker: u32, workers: u32) -> Self {
        WorkerPlace { rank: 0, ranks: 1, worker, workers, attempt: 0, next_node: 1 }
    }

    /// All workers of a process, in order.
    pub fn of_rank(rank: u32, ranks: u32, workers: u32) -> impl Iterator<Item = Self> {
        (0..workers).map(move |worker| WorkerPlace { rank, ranks, worker, workers, attempt: 0, next_node: 1 })
    }

    /// The same place in this repeat.
    #[must_use]
    pub const fn in_attempt(self, attempt: u32) -> Self {
        WorkerPlace { attempt, ..self }
    }

    /// The name of the worker's file or directory in the run's directory.
    pub fn name(self) -> String {
        self.name_of(self.number())
    }

    /// The name for the worker of this number.
    ///
    /// If several processes work, each repeat has names of its own. Rank 0 removes the files of others, and
    /// clients of network file systems may cache a file that another client has removed. `GlusterFS` then fails
    /// to make a file of the same name.
    pub fn name_of(self, number: u32) -> String {
        self.shared(&format!("n_w{number}"))
    }

    /// The same for a file or directory that all workers share.
    pub fn shared(self, stem: &str) -> String {
        if self.attempt == 0 { stem.into() } else { format!("{stem}_a{}", self.attempt) }
    }

    /// The same place if each node has this number of processes.
    #[must_use]
    pub const fn with_nodes_of(self, processes: u32) -> Self {
        WorkerPlace { next_node: processes, ..self }
    }

    /// The number of the worker that is this number of shifts further.
    pub fn further(self, shift: Shift, shifts: u32) -> u32 {
        let step = match shift {
            Shift::Workers(count) => count,
            // A single process has no match on another node; its own workers stand in.
            Shift::Node if self.ranks == 1 => 1,
            Shift::Node => self.next_node * self.workers,
        };
        let further = u64::from(self.number()) + u64::from(shifts) * u64::from(step);
        (further % u64::from(self.total().max(1))) as u32
    }

    /// Its number among the workers of all processes, from 0.
    pub const fn number(self) -> u32 {
        self.rank * self.workers + self.worker
    }

    /// Workers of all processes.
    pub const fn total(self) -> u32 {
        self.ranks * self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_has_a_number_of_its_own_and_alone_it_is_the_worker_s() {
        for (ranks, workers) in [(1, 4), (3, 2), (5, 1)] {
            let of_rank = |rank| WorkerPlace::of_rank(rank, ranks, workers);
            let numbers: Vec<u32> = (0..ranks).flat_map(of_rank).map(WorkerPlace::number).collect();
            assert!(numbers.iter().copied().eq(0..ranks * workers), "{numbers:?}");
            assert!((0..ranks).flat_map(of_rank).all(|place| place.total() == ranks * workers));
        }
        let alone: Vec<WorkerPlace> = WorkerPlace::of_rank(0, 1, 3).collect();
        assert_eq!(alone, [0, 1, 2].map(|worker| WorkerPlace::alone(worker, 3)));
    }

    #[test]
    fn a_shift_by_a_node_leads_to_the_same_place_on_the_next_one_and_every_file_is_taken_once() {
        // Three nodes of two processes with two workers each.
        let places = |processes: u32| {
            (0..6).flat_map(move |rank| {
                WorkerPlace::of_rank(rank, 6, 2).map(move |place| place.with_nodes_of(processes))
            })
        };
        let taken: Vec<u32> = places(2).map(|place| place.further(Shift::Node, 1)).collect();
        assert_eq!(taken, [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3]);
        let taken: Vec<u32> = places(1).map(|place| place.further(Shift::Node, 1)).collect();
        assert_eq!(taken, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1], "on one node the next process");
        let alone: Vec<u32> =
            (0..3).map(|worker| WorkerPlace::alone(worker, 3).further(Shift::Node, 1)).collect();
        assert_eq!(alone, [1, 2, 0], "in one process the next worker");
        let last = WorkerPlace::alone(2, 3);
        assert_eq!([0, 1, 2].map(|shifts| last.further(Shift::Workers(2), shifts)), [2, 1, 0]);
        assert_eq!(last.further(Shift::OWN, 3), 2);
    }
}
