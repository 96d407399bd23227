//! The processes of a campaign by messages between two of them, along a tree: so that with thousands none has more than some
//! ten others to speak with.
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

/// Messages of bytes between two processes, which come in the order in which they were sent. Nothing here waits.
pub trait RankMessages: Debug + Send {
    /// Which process this is, from 0.
    fn rank(&self) -> u32;
    /// How many there are.
    fn size(&self) -> u32;
    /// The name of this process's machine.
    fn node(&self) -> String {
        node_name()
    }
    /// Files by the same library; or why there are none, in words.
    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        Err(NO_MPI.into())
    }
    /// The others may answer no more: this process ends without them.
    fn part(&mut self) {}
    /// Begins to send.
    fn send(&mut self, to: u32, bytes: Vec<u8>);
    /// Whether all that was sent has left.
    fn has_sent(&mut self) -> bool;
    /// The next message of a process, if one is there.
    fn receive(&mut self, from: u32) -> Option<Vec<u8>>;
}

/// See the module.
#[derive(Debug)]
pub struct MessageCluster<M> {
    messages: Mutex<M>,
    rank: u32,
    size: u32,
    node: String,
    ahead: AtomicI64,
    uncertainty: AtomicU64,
    /// See [`Cluster::part`].
    is_apart: AtomicBool,
}

/// Who waits looks again after this at first.
const LOOK_FIRST: Duration = Duration::from_micros(50);
/// And then after a part of the time that was waited, at the most after this: it is to cost others nothing.
const LOOK_LAST: Duration = Duration::from_millis(5);
/// So that what comes at once is seen at once, and an hour costs a fifth of a second of processor time.
const WAITED_PART: u32 = 8;

/// Messages to and fro, by which a clock is compared. The first only wakes the other process.
const ROUND_TRIPS: usize = 17;
/// From when a start is said until all have heard it, for each step down the tree.
const HEARD_WITHIN: Nanos = Nanos::from_millis(2);

impl<M: RankMessages> MessageCluster<M> {
    /// Of the processes that these messages go between.
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

    /// The ranks below, the one with most below itself first.
    fn below(&self) -> impl Iterator<Item = u32> + use<M> {
        let Self { rank, size, .. } = *self;
        let steps = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
        let steps = if self.is_apart.load(Ordering::Relaxed) { 0 } else { steps };
        (0..steps)
            .rev()
            .filter_map(move |step| rank.checked_add(1 << step))
            .filter(move |below| *below < size)
    }

    /// Steps from rank 0 to the rank that is furthest down.
    fn depth(&self) -> u32 {
        u32::BITS - (self.size.max(1) - 1).leading_zeros()
    }

    fn send(&self, to: u32, said: &impl Serialize) {
        let bytes = serde_json::to_vec(said).expect("what ranks say has no maps but with texts as keys");
        self.lock().send(to, bytes);
        patiently(|| self.lock().has_sent().then_some(()));
    }

    fn receive<T: DeserializeOwned>(&self, from: u32) -> T {
        let bytes = patiently(|| self.lock().receive(from));
        serde_json::from_slice(&bytes).expect("all ranks are of one program, and say what is expected next")
    }

    /// At once, for as long as an answer takes. Where processes are more than processors, the other one gets this one's.
    fn receive_at_once<T: DeserializeOwned>(&self, from: u32) -> T {
        loop {
            if let Some(bytes) = self.lock().receive(from) {
                return serde_json::from_slice(&bytes)
                    .expect("all ranks are of one program, and say what is expected next");
            }
            thread::yield_now();
        }
    }

    /// What rank 0 says, for all.
    fn down<T: Serialize + DeserializeOwned>(&self, said: Option<T>) -> T {
        let said =
            said.unwrap_or_else(|| self.receive(self.above().expect("only rank 0 has something to say")));
        self.below().for_each(|below| self.send(below, &said));
        said
    }

    /// What all say, at rank 0, by rank.
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

    /// How far this process's clock is ahead of that of rank 0: as the rank above finds out, which knows it of its own.
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

/// Looks until something is found, and sleeps between.
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
        // All are here, and it is said at once: who slept might hear it too late.
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

    /// What each of so many ranks does, all at the same time, by rank.
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

    /// By how much a clock is behind another, and how far that may be wrong: of several readings the one during which the least went by.
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
            // Each began some milliseconds after the one before.
            thread::sleep(Duration::from_millis(3 * u64::from(cluster.rank())));
            let clock = Clock::start();
            let start = cluster.agree_start(&clock);
            assert!(start.0 > 0, "it is on a clock that has begun");
            let [behind, span] = behind(&clock, &common);
            // Threads that have no processor for a while let a round trip take as long, which the cluster says.
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
