//! Which worker of a campaign a worker is, over all its processes: names, seeds and parts of shared work follow from its
//! number among all, so that no two processes write the same file, or the same bytes, but on purpose.

/// The place of a worker among those of all ranks. In a campaign of one process its number is that of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPlace {
    /// Its process, from 0.
    pub rank: u32,
    /// Processes of the campaign.
    pub ranks: u32,
    /// Which worker of its process, from 0.
    pub worker: u32,
    /// Workers of each process.
    pub workers: u32,
}

impl WorkerPlace {
    /// A worker of a campaign of one process.
    pub const fn alone(worker: u32, workers: u32) -> Self {
        WorkerPlace { rank: 0, ranks: 1, worker, workers }
    }

    /// All workers of a process, in order.
    pub fn of_rank(rank: u32, ranks: u32, workers: u32) -> impl Iterator<Item = Self> {
        (0..workers).map(move |worker| WorkerPlace { rank, ranks, worker, workers })
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
}
