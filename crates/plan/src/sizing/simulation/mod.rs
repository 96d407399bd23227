//! The chain in virtual time, event by event. Every frame passes its link, its recorder and a storage server,
//! or is lost if it finds no room. The simulation does not use the closed formula, and can therefore check
//! it.

mod chain;
mod days;
mod storage;

use std::{cmp::Ordering, collections::BinaryHeap};

pub use days::fullest;

use nilometer_model::{Burst, Bytes, Nanos, Schedule, Seed};

use super::{Demand, Kind, Limits, Place, Sizing, recorder};

/// A trial of the chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizingTrial {
    /// The time for which frames arrive, in virtual time.
    pub duration: Nanos,
    /// Frames of a stream within this time are one event: fewer events, a coarser picture.
    pub grain: Nanos,
    /// The starts of the instruments.
    pub phases: Phases,
}

/// The times at which instruments begin their bursts and the storage stalls. It stalls once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phases {
    /// All at once, with the stall: the worst case.
    Together,
    /// Each at a random time, the stall as well.
    Random(Seed),
}

/// The fate of the frames.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationResult {
    /// Frames that arrived.
    pub came: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// The place at which the first frame was lost.
    pub lost_at: Option<Place>,
    /// The most memory that was in use in a recorder at once.
    pub memory: Bytes,
    /// The longest time from due until written.
    pub longest_wait: Nanos,
    /// Share of the servers' time in which they were at work.
    pub servers_busy: f64,
    /// True if the queue for a link, a recorder, the storage or a reader kept growing.
    pub grows: bool,
}

/// Pieces of streams in a trial that takes about a second.
const PIECES_SUITED: f64 = 4e5;

impl SizingTrial {
    /// Long enough for several bursts, stalls and pauses, and so coarse that it takes a second or so. A given duration
    /// is kept.
    pub fn suited(demand: &Demand, limits: &Limits, duration: Option<Nanos>, phases: Phases) -> Self {
        let stall = limits.stall.value.seconds();
        let cycle = demand.kinds.iter().map(Kind::cycle).fold(0.0, f64::max);
        let wished = duration.map_or(60_f64.max(8.0 * cycle).max(20.0 * stall), Nanos::seconds);
        let of_stream = PIECES_SUITED / demand.streams() as f64;
        // Coarser than a part of the stall, it would not be seen.
        let grain = (wished / of_stream).min(stall.max(0.4) / 4.0);
        let affordable = (of_stream * grain).max(2.0 * cycle);
        let duration = duration.unwrap_or_else(|| Nanos::from_seconds(wished.min(affordable)));
        SizingTrial { duration, grain: Nanos::from_seconds(grain), phases }
    }

    /// The number of pieces of streams: a million of them take some seconds.
    pub fn pieces(&self, demand: &Demand) -> f64 {
        let coarse = demand.kinds.iter().map(|kind| coarser(kind, self.grain));
        coarse
            .map(|kind| kind.streams as f64 * kind.mean() / kind.frame.0 as f64 * self.duration.seconds())
            .sum()
    }

    /// Tries the sized chain.
    pub fn run(&self, demand: &Demand, limits: &Limits, sizing: &Sizing) -> SimulationResult {
        let kinds: Vec<Kind> = demand.kinds.iter().map(|kind| coarser(kind, self.grain)).collect();
        let chain = chain::Chain::new(self, demand, &kinds, limits, sizing);
        chain.run()
    }
}

impl SimulationResult {
    /// True if more arrived than the chain carried.
    pub fn is_overloaded(&self) -> bool {
        self.lost > 0 || self.grows
    }
}

/// The same stream in larger frames: those within the grain together. Bursts stay whole.
fn coarser(kind: &Kind, grain: Nanos) -> Kind {
    let Schedule { period, burst, .. } = kind.schedule;
    let most = (grain.0 / period.0.max(1)).max(1);
    let divides = |number: &u64| burst.is_none_or(|burst| burst.frames.is_multiple_of(*number));
    let together = (1..=most.min(burst.map_or(most, |burst| burst.frames))).rev().find(divides).unwrap_or(1);
    let burst = burst.map(|burst| Burst { frames: burst.frames / together, ..burst });
    let schedule = Schedule { period: Nanos(period.0 * together), burst, ..kind.schedule };
    Kind { frame: Bytes(kind.frame.0 * together), schedule, ..kind.clone() }
}

/// Events in the order of their time; events at equal times in the order of insertion.
#[derive(Debug)]
struct Agenda<E> {
    heap: BinaryHeap<Entry<E>>,
    number: u64,
}

#[derive(Debug)]
struct Entry<E> {
    time: f64,
    number: u64,
    event: E,
}

impl<E> Agenda<E> {
    fn new() -> Self {
        Agenda { heap: BinaryHeap::new(), number: 0 }
    }

    /// `time` in seconds, or in any other unit that all entries share.
    fn add(&mut self, time: f64, event: E) {
        self.number += 1;
        self.heap.push(Entry { time, number: self.number, event });
    }

    fn next(&mut self) -> Option<(f64, E)> {
        self.heap.pop().map(|entry| (entry.time, entry.event))
    }
}

impl<E> Ord for Entry<E> {
    /// The heap gives the greatest: that is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then(other.number.cmp(&self.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}
