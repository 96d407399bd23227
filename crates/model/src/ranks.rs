//! Joins the results of several processes that measured a repeat together into one sample.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Nanos, NodeStart, RankPart, Sample};

/// The measurement of a phase on one target that a process sends to rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankSample {
    /// The rank of the process, from 0.
    pub rank: u32,
    /// The name of the machine that it ran on.
    pub node: String,
    /// How many nanoseconds its clock was ahead of rank 0's.
    pub clock_offset: i64,
    /// The uncertainty of `clock_offset`, in nanoseconds in either direction.
    pub clock_uncertainty: u64,
    /// How long after the agreed start, by its clock, the last of its workers began.
    pub began: Nanos,
    /// Its sample, with times from the agreed start.
    pub sample: Sample,
}

impl RankSample {
    fn start(&self) -> NodeStart {
        let Sample { load, before, .. } = self.sample;
        NodeStart { node: self.node.clone(), load, before }
    }

    fn part(&self) -> RankPart {
        let sample = &self.sample;
        let working = sample.workers.iter().filter(|worker| worker.operations > 0);
        RankPart {
            rank: self.rank,
            node: self.node.clone(),
            clock_offset: self.clock_offset,
            clock_uncertainty: self.clock_uncertainty,
            began: self.began,
            workers: sample.workers.len() as u32,
            bytes: sample.bytes,
            operations: sample.operations,
            first_done: working.map(|worker| worker.first_done).min().unwrap_or_default(),
            last_done: sample.wall,
            user: sample.user,
            system: sample.system,
            run_delay: sample.run_delay,
        }
    }
}

/// Returns the state of each node, in the order of the first rank on each.
fn node_starts(ranks: &[RankSample]) -> Vec<NodeStart> {
    let mut seen = BTreeSet::new();
    ranks.iter().filter(|rank| seen.insert(&rank.node)).map(RankSample::start).collect()
}

impl Sample {
    /// Joins the samples of several processes for the same phase, in the order of their ranks. A single
    /// process's sample stays as it is, without parts.
    ///
    /// - Bytes, operations, processor times, context switches, delays and errors add up; latencies and series
    ///   merge.
    /// - The wall time is from the agreed start to the last operation of all; filling and settling are the longest.
    /// - Figures of a machine (its activity, its client, its device) count once a node, from the first rank
    ///   there.
    /// - Each node keeps its state at the start, from the first rank there.
    /// - The worst coldness and the gravest reason not to use the figure hold for all.
    pub fn united(ranks: Vec<RankSample>) -> Sample {
        let parts: Vec<RankPart> = ranks.iter().map(RankSample::part).collect();
        let starts = node_starts(&ranks);
        let mut ranks = ranks.into_iter();
        let Some(RankSample { sample: mut whole, .. }) = ranks.next() else { return Sample::new(Nanos(0)) };
        let mut nodes: BTreeSet<String> = parts.first().map(|part| part.node.clone()).into_iter().collect();
        for rank in ranks {
            if nodes.insert(rank.node.clone()) {
                whole.add_machine(&rank.sample);
            }
            whole.add_rank(rank.sample);
        }
        if parts.len() > 1 {
            whole.parts = parts;
            whole.node_starts = starts;
        }
        whole
    }

    fn add_rank(&mut self, other: Sample) {
        self.bytes += other.bytes;
        self.operations += other.operations;
        self.wall = self.wall.max(other.wall);
        self.user += other.user;
        self.system += other.system;
        self.switches = self.switches.and(other.switches);
        self.run_delay += other.run_delay;
        self.filling = self.filling.max(other.filling);
        self.settling = self.settling.max(other.settling);
        self.load = self.load.max(other.load);
        self.latency.merge(&other.latency);
        self.lateness.merge(&other.lateness);
        self.series.merge(other.series);
        for (errno, count) in other.errors {
            *self.errors.entry(errno).or_default() += count;
        }
        self.workers.extend(other.workers);
        self.locks = match (self.locks.take(), other.locks) {
            (Some(one), Some(another)) => Some(one.and(&another)),
            (one, another) => one.or(another),
        };
        self.seen = match (self.seen.take(), other.seen) {
            (Some(one), Some(another)) => Some(one.and(&another)),
            (one, another) => one.or(another),
        };
        let findings = [self.coldness, other.coldness].into_iter().flatten();
        self.coldness = findings.max_by_key(|coldness| coldness.severity());
        self.invalid = Invalid::gravest(self.invalid.take(), other.invalid);
    }

    fn add_machine(&mut self, other: &Sample) {
        self.client += other.client;
        self.machine += other.machine;
        self.before = self.before.and(other.before);
        self.during = self.during.and(other.during);
        self.device = match (self.device, other.device) {
            (Some(one), Some(another)) => Some(one.and(another)),
            (one, another) => one.or(another),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activity, ByteRate, Coldness, DeviceTraffic, Waited, WorkerTotals};

    fn of_rank(rank: u32, node: &str, sample: Sample) -> RankSample {
        RankSample {
            rank,
            node: node.into(),
            clock_offset: i64::from(rank) * 10,
            clock_uncertainty: 3,
            began: Nanos(u64::from(rank)),
            sample,
        }
    }

    /// A rank's sample with `size` in every figure.
    fn sample(size: u64) -> Sample {
        let worker =
            WorkerTotals { bytes: size, operations: 1, first_done: Nanos(size), last_done: Nanos(size) };
        let machine = Activity { over: Nanos(100), busy: Nanos(size), sent: size, ..Activity::default() };
        let mut sample = Sample {
            bytes: size,
            operations: 1,
            wall: Nanos(size),
            user: Nanos(size),
            system: Nanos(size),
            client: Nanos(size),
            filling: Nanos(size),
            run_delay: Nanos(size),
            during: machine,
            load: size as f64,
            before: Activity { over: Nanos(size % 20), disk_read: 4 * size, disk_written: 160, ..machine },
            device: Some(DeviceTraffic { read: size, written: 1, flushes: Some(2), use_of: None }),
            workers: vec![worker],
            ..Sample::new(Nanos(7))
        };
        sample.latency.add(size);
        sample.series.add(Nanos(7 + size), size);
        sample.errors.insert(5, size);
        sample
    }

    #[test]
    fn what_one_measured_alone_is_its_sample() {
        let alone = Sample { invalid: Some(Invalid::WarmRead), ..sample(3) };
        let united = Sample::united(vec![of_rank(0, "a", alone.clone())]);
        assert_eq!(format!("{united:?}"), format!("{alone:?}"));
    }

    #[test]
    fn amounts_add_up_and_the_last_ends_it() {
        let ranks = [of_rank(0, "a", sample(10)), of_rank(1, "a", sample(30)), of_rank(2, "b", sample(20))];
        let whole = Sample::united(ranks.to_vec());
        assert_eq!((whole.bytes, whole.operations, whole.wall), (60, 3, Nanos(30)));
        assert_eq!((whole.user, whole.system, whole.run_delay), (Nanos(60), Nanos(60), Nanos(60)));
        assert_eq!((whole.filling, whole.latency.count(), whole.workers.len()), (Nanos(30), 3, 3));
        assert_eq!(whole.errors.get(&5), Some(&60));
        assert_eq!(whole.series.bins().iter().map(|bin| bin.bytes).sum::<u64>(), 60);
        // Two ranks were on one machine, which counts once.
        assert_eq!((whole.client, whole.during.busy, whole.during.sent), (Nanos(30), Nanos(30), 30));
        let device = DeviceTraffic { read: 30, written: 2, flushes: Some(4), use_of: None };
        assert_eq!((whole.device, whole.during.over), (Some(device), Nanos(100)));
        let parts: Vec<_> = whole.parts.iter().map(|part| (part.rank, &*part.node, part.bytes)).collect();
        assert_eq!(parts, [(0, "a", 10), (1, "a", 30), (2, "b", 20)]);
        let starts: Vec<_> = whole.node_starts.iter().map(|start| (&*start.node, start.load)).collect();
        assert_eq!(starts, [("a", 10.0), ("b", 20.0)], "the first rank of each machine");
        let rates: Vec<_> = whole.node_starts.iter().map(NodeStart::disk_rate).collect();
        assert_eq!(rates, [Some(ByteRate(20e9)), None], "nothing observed the second");
        let second = &whole.parts[1];
        assert_eq!((second.clock_offset, second.workers, second.last_done), (10, 1, Nanos(30)));
        assert_eq!((second.clock_uncertainty, second.began), (3, Nanos(1)));
    }

    #[test]
    fn the_worst_finding_holds_for_all() {
        let found = |coldness, invalid| Sample { coldness, invalid, ..sample(1) };
        let waited =
            |waited| Waited { waited: Nanos(waited), of: Nanos(9), allowed: Nanos(1), throttled: Nanos(0) };
        let starved = |time| Some(Invalid::Starved(Some(waited(time))));
        for (one, other, expected) in [
            (
                found(Some(Coldness::Proved), None),
                found(Some(Coldness::Contradicted), starved(3)),
                starved(3),
            ),
            (found(Some(Coldness::Contradicted), starved(3)), found(None, starved(5)), starved(5)),
            (
                found(Some(Coldness::Contradicted), Some(Invalid::Hung)),
                found(Some(Coldness::NotProvable), Some(Invalid::Errors)),
                Some(Invalid::Hung),
            ),
        ] {
            for ranks in [[one.clone(), other.clone()], [other, one]] {
                let [a, b] = ranks;
                let whole = Sample::united(vec![of_rank(0, "a", a), of_rank(1, "b", b)]);
                assert_eq!((whole.coldness, &whole.invalid), (Some(Coldness::Contradicted), &expected));
            }
        }
    }
}
