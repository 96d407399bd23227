//! Connects the processes of a campaign by messages between two of them along a tree. Even with thousands of
//! ranks each one exchanges messages with about ten others at most.
//!
//! ```text
//! 0 -+- 4 -+- 6 --- 7        what rank 0 decides goes down, what all report comes up,
//!    |     +- 5              the offset of a clock is measured against the rank above,
//!    +- 2 --- 3              and those of the ranks between add up
//!    +- 1
//! ```

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Cluster, ClusterDecision, MpiFiles, NO_MPI, RankReport, node_name,
    offset::{ClockOffset, RoundTrip},
};

/// Byte messages between two processes, delivered in the order of sending. No method blocks.
pub trait RankMessages: Debug + Send {
    /// Returns the number of this process, from 0.
    fn rank(&self) -> u32;
    /// Returns the number of processes.
    fn size(&self) -> u32;
    /// Returns the name of this process's machine.
    fn node(&self) -> String {
        node_name()
    }
    /// Returns files through the same library, or the reason why there are none.
    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        Err(NO_MPI.into())
    }
    /// Prepares to end without the others, which may no longer answer.
    fn part(&mut self) {}
    /// Starts to send a message.
    fn send(&mut self, to: u32, bytes: Vec<u8>);
    /// Returns true if all messages have left.
    fn has_sent(&mut self) -> bool;
    /// Returns the next message from a process, if there is one.
    fn receive(&mut self, from: u32) -> Option<Vec<u8>>;
}

/// A cluster of processes that exchange messages along a tree.
#[derive(Debug)]
pub struct MessageCluster<M> {
    messages: Mutex<M>,
    rank: u32,
    size: u32,
    node: String,
    ahead: AtomicI64,
    uncertainty: AtomicU64,
    /// True after [`Cluster::part`].
    is_apart: AtomicBool,
}

/// First pause of a waiting process.
const LOOK_FIRST: Duration = Duration::from_micros(50);
/// Longest pause of a waiting process. Pauses grow, so that waiting costs other processes nothing.
const LOOK_LAST: Duration = Duration::from_millis(5);
/// A pause is this part of the time waited so far. Early messages are found at once, and an hour of waiting
/// costs a fifth of a second of processor time.
const WAITED_PART: u32 = 8;

/// Number of round trips to compare two clocks. The first only wakes the other process.
const ROUND_TRIPS: usize = 17;
/// Time for a start to reach the ranks one step down the tree.
const HEARD_WITHIN: Nanos = Nanos::from_millis(2);

impl<M: RankMessages> MessageCluster<M> {
    /// Makes a cluster of the processes that these messages connect.
    pub fn new(messages: M) -> Self {
        let rank = messages.rank();
        let size = messages.size();
        let node = messages.node();
        let messages = Mutex::new(messages);
        MessageCluster {
            messages,
            rank,
            size,
            node,
            ahead: AtomicI64::new(0),
            uncertainty: AtomicU64::new(0),
            is_apart: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, M> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn above(&self) -> Option<u32> {
        (self.rank > 0).then(|| self.rank & (self.rank - 1))
    }

    /// Returns the direct children of this rank in the tree, the one with the most descendants first.
    fn below(&self) -> impl Iterator<Item = u32> + use<M> {
        let Self { rank, size, .. } = *self;
        let steps = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
        let steps = if self.is_apart.load(Ordering::Relaxed) { 0 } else { steps };
        (0..steps)
            .rev()
            .filter_map(move |step| rank.checked_add(1 << step))
            .filter(move |below| *below < size)
    }

    /// Returns the depth of the tree.
    fn depth(&self) -> u32 {
        u32::BITS - (self.size.max(1) - 1).leading_zeros()
    }

    fn send(&self, to: u32, said: &impl Serialize) {
        let bytes = serde_json::to_vec(said).expect("messages of ranks have only maps with texts as keys");
        self.lock().send(to, bytes);
        patiently(|| self.lock().has_sent().then_some(()));
    }

    fn receive<T: DeserializeOwned>(&self, from: u32) -> T {
        let bytes = patiently(|| self.lock().receive(from));
        serde_json::from_slice(&bytes).expect("all ranks run one program, and send the expected message next")
    }

    /// Receives without sleeping, for the time of one answer. If there are more processes than processors, it
    /// yields to the other process.
    fn receive_at_once<T: DeserializeOwned>(&self, from: u32) -> T {
        loop {
            if let Some(bytes) = self.lock().receive(from) {
                return serde_json::from_slice(&bytes)
                    .expect("all ranks run one program, and send the expected message next");
            }
            thread::yield_now();
        }
    }

    /// Passes rank 0's message down to all ranks.
    fn down<T: Serialize + DeserializeOwned>(&self, said: Option<T>) -> T {
        let said =
            said.unwrap_or_else(|| self.receive(self.above().expect("only rank 0 has something to say")));
        self.below().for_each(|below| self.send(below, &said));
        said
    }

    /// Collects the messages of all ranks at rank 0, sorted by rank.
    fn up<T: Serialize + DeserializeOwned>(&self, mine: T) -> Vec<(u32, T)> {
        let mut all = vec![(self.rank, mine)];
        for below in self.below() {
            all.append(&mut self.receive::<Vec<(u32, T)>>(below));
        }
        match self.above() {
            None => all.sort_by_key(|(rank, _)| *rank),
            Some(above) => {
                self.send(above, &all);
                all.clear();
            }
        }
        all
    }

    /// Returns by how much this process's clock is ahead of rank 0's clock. The parent rank measures it and
    /// adds its own offset.
    fn compare_clocks(&self, clock: &Clock) -> ClockOffset {
        let mine = self.above().map_or_else(ClockOffset::default, |above| {
            for trip in 0..ROUND_TRIPS {
                let _: u8 = if trip == 0 { self.receive(above) } else { self.receive_at_once(above) };
                self.send(above, &clock.now().0);
            }
            let (ahead, uncertainty) = self.receive(above);
            ClockOffset { ahead, uncertainty }
        });
        for below in self.below() {
            let trips: Vec<_> = (0..ROUND_TRIPS).map(|_| self.round_trip(below, clock)).collect();
            let offset = ClockOffset::of(&trips[1..]).behind(mine);
            self.send(below, &(offset.ahead, offset.uncertainty));
        }
        mine
    }

    fn round_trip(&self, below: u32, clock: &Clock) -> RoundTrip {
        let asked = clock.now();
        self.send(below, &0_u8);
        let answered = Nanos(self.receive_at_once(below));
        RoundTrip { asked, answered, back: clock.now() }
    }
}

/// Polls until `look` finds something, and sleeps in between.
fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(found) = look() {
            return found;
        }
        let pause = (waited / WAITED_PART).clamp(LOOK_FIRST, LOOK_LAST);
        thread::sleep(pause);
        waited += pause;
    }
}

impl<M: RankMessages> Cluster for MessageCluster<M>
where
    MessageCluster<M>: Sync,
{
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn node(&self) -> String {
        self.node.clone()
    }

    fn clock_offset(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    fn clock_uncertainty(&self) -> u64 {
        self.uncertainty.load(Ordering::Relaxed)
    }

    fn barrier(&self) {
        self.up(());
        self.down((self.rank == 0).then_some(()));
    }

    fn agree_start(&self, clock: &Clock) -> Nanos {
        let begun = clock.now();
        let offset = self.compare_clocks(clock);
        self.ahead.store(offset.ahead, Ordering::Relaxed);
        self.up(());
        let soon = HEARD_WITHIN.0 * u64::from(self.depth() + 1);
        let start = (self.rank == 0).then(|| (clock.now() + Nanos(soon)).0);
        // All ranks are here and the start comes at once. A sleeping rank might receive it too late.
        let start = start.unwrap_or_else(|| self.receive_at_once(self.above().expect("rank 0 says it")));
        self.below().for_each(|below| self.send(below, &start));
        let at = offset.here(Nanos(start));
        let offset = offset.aged(at.since(begun), self.rank.count_ones());
        self.uncertainty.store(offset.uncertainty, Ordering::Relaxed);
        at
    }

    fn gather(&self, mine: RankReport) -> Vec<RankReport> {
        self.up(mine).into_iter().map(|(_, report)| report).collect()
    }

    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision {
        self.down(decision)
    }

    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        self.lock().files()
    }

    fn part(&self) {
        self.is_apart.store(true, Ordering::Relaxed);
        self.lock().part();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::thread_ranks;

    /// Runs `does` on `size` ranks in parallel, and returns the results by rank.
    fn each<T: Send>(size: u32, does: impl Fn(&dyn Cluster) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let ranks: Vec<_> = thread_ranks(size)
                .into_iter()
                .map(|messages| scope.spawn(|| does(&MessageCluster::new(messages))))
                .collect();
            ranks.into_iter().map(|rank| rank.join().expect("it ends")).collect()
        })
    }

    #[test]
    fn every_rank_but_the_first_has_one_above_and_is_below_it() {
        for size in [1, 2, 3, 7, 8, 9, 100] {
            let ranks: Vec<_> = thread_ranks(size).into_iter().map(MessageCluster::new).collect();
            let mut found: Vec<u32> = ranks.iter().flat_map(MessageCluster::below).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(1..size), "{size}");
            for rank in &ranks {
                assert!(rank.below().all(|below| ranks[below as usize].above() == Some(rank.rank)));
                assert!(rank.rank.count_ones() <= rank.depth(), "{size}: rank {}", rank.rank);
            }
        }
    }

    #[test]
    fn what_is_reported_is_in_the_order_of_ranks_and_what_is_decided_comes_to_all() {
        for size in [1, 2, 5, 12] {
            let said = each(size, |cluster| {
                let mine = RankReport::Joined(Err(cluster.rank().to_string()));
                let reports = cluster.gather(mine);
                cluster.barrier();
                let decided = (cluster.rank() == 0).then_some(ClusterDecision::Cancel);
                (reports, cluster.broadcast(decided))
            });
            let joined = |report: &RankReport| match report {
                RankReport::Joined(Err(why)) => why.parse::<u32>().ok(),
                _ => None,
            };
            let found: Option<Vec<u32>> = said[0].0.iter().map(joined).collect();
            assert_eq!(found, Some((0..size).collect()));
            assert!(said[1..].iter().all(|(reports, _)| reports.is_empty()));
            assert!(said.iter().all(|(_, decided)| *decided == ClusterDecision::Cancel));
        }
    }

    /// Returns by how much `clock` is behind `common`, and the error bound: of several readings, the one that
    /// took the least time.
    fn behind(clock: &Clock, common: &Clock) -> [i64; 2] {
        let readings = (0..100).map(|_| {
            let [early, other, late] =
                [clock.now(), common.now(), clock.now()].map(|time| time.0.cast_signed());
            [other - early, late - early]
        });
        readings.min_by_key(|[_, span]| *span).expect("there are some")
    }

    #[test]
    fn a_start_is_the_same_moment_on_clocks_that_began_at_other_times() {
        let common = Clock::start();
        let starts = each(6, |cluster| {
            // Each clock began some milliseconds after the one before.
            thread::sleep(Duration::from_millis(3 * u64::from(cluster.rank())));
            let clock = Clock::start();
            let start = cluster.agree_start(&clock);
            assert!(start.0 > 0, "it is on a clock that has begun");
            let [behind, span] = behind(&clock, &common);
            // A thread that waits for a processor makes a round trip longer, and the cluster's uncertainty
            // includes that.
            let wrong = cluster.clock_uncertainty().cast_signed() + span;
            [start.0.cast_signed() + behind, cluster.clock_offset(), behind, wrong]
        });
        let [first, of_first, first_behind, first_wrong] = starts[0];
        assert_eq!(of_first, 0);
        for (rank, [start, offset, behind, wrong]) in starts.into_iter().enumerate().skip(1) {
            let allowed = wrong + first_wrong;
            assert!((start - first).abs() <= allowed, "rank {rank}: {} ns of {allowed} apart", start - first);
            let really = first_behind - behind;
            assert!(
                (offset - really).abs() <= allowed,
                "rank {rank} is {really} ns ahead, and {offset} was found, {allowed} ns are allowed"
            );
        }
    }
}
