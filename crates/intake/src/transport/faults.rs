//! Faults between an instrument and its recorder, derived from a seed: which packets leave, and in which
//! order. The logic is pure, so its counts are exact, and the same seed gives the same faults.
//!
//! Each kind draws from random numbers of its own, one for each packet: another share of one kind changes no other.

use std::collections::VecDeque;

use nilometer_model::{RandomStream, Seed};

/// Which faults, and how often. Shares are of the stream's packets, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Share of packets that do not leave.
    pub loss: f64,
    /// How many packets are lost at a time, at least 1; the share stays the same.
    pub loss_burst: u64,
    /// Share of packets that leave later.
    pub reorder: f64,
    /// How many packets of the stream overtake such a one, at least 1.
    pub distance: u64,
    /// Share of packets that leave twice.
    pub duplicate: f64,
    /// Share of packets that leave in another size.
    pub odd: f64,
    /// Packets of another kind beside the stream, for each packet of it; may be above 1.
    pub foreign: f64,
}

impl Default for Faults {
    /// None.
    fn default() -> Self {
        Faults { loss: 0.0, loss_burst: 1, reorder: 0.0, distance: 1, duplicate: 0.0, odd: 0.0, foreign: 0.0 }
    }
}

/// A packet that leaves next. Packets are counted from 0, from the beginning of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// A packet as it should be.
    Packet(u64),
    /// A packet in another size, and that size in bytes.
    Odd(u64, usize),
    /// A packet outside the stream, by its number among these.
    Foreign(u64),
}

/// Counts of each kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts {
    /// Packets of the stream that were due.
    pub due: u64,
    /// Due packets that left as they should be. A packet that left twice counts once.
    pub left: u64,
    /// Packets that did not leave.
    pub lost: u64,
    /// Losses: times that one or more consecutive packets did not leave.
    pub losses: u64,
    /// Packets that left after one of a higher number (RFC 4737), not counting second copies.
    pub reordered: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Packets in another size; as they should be, they never left.
    pub odd: u64,
    /// Packets beside the stream.
    pub foreign: u64,
}

impl FaultCounts {
    /// Adds up the faults of two streams.
    #[must_use]
    pub fn and(self, other: FaultCounts) -> Self {
        FaultCounts {
            due: self.due + other.due,
            left: self.left + other.left,
            lost: self.lost + other.lost,
            losses: self.losses + other.losses,
            reordered: self.reordered + other.reordered,
            duplicated: self.duplicated + other.duplicated,
            odd: self.odd + other.odd,
            foreign: self.foreign + other.foreign,
        }
    }
}

/// The packets of a stream as they leave.
#[derive(Debug, Clone)]
pub struct Departures {
    faults: Faults,
    /// Sizes that packets have as they should be.
    sizes: Vec<usize>,
    draws: Draws,
    /// Number of packets that are still to be lost in the current burst.
    losing: u64,
    was_lost: bool,
    /// Packets that are held back, the oldest first, and how many times each leaves.
    held: VecDeque<(u64, u64)>,
    /// The number after the highest one that left.
    above: u64,
    counts: FaultCounts,
}

/// Random numbers, separate for each kind of fault.
#[derive(Debug, Clone)]
struct Draws {
    loss: RandomStream,
    reorder: RandomStream,
    duplicate: RandomStream,
    odd: RandomStream,
    foreign: RandomStream,
    size: RandomStream,
}

/// The most bytes that a packet in another size has beyond its own.
const LONGER_MAX: usize = 64;

impl Departures {
    /// Takes the sizes of the stream's packets, at least one.
    pub fn new(faults: Faults, sizes: &[usize], seed: Seed) -> Self {
        assert!(
            !sizes.is_empty() && faults.loss_burst > 0 && faults.distance > 0,
            "parsing refuses impossible faults"
        );
        let of = |name| seed.named(name).stream();
        let draws = Draws {
            loss: of("loss"),
            reorder: of("reorder"),
            duplicate: of("duplicate"),
            odd: of("odd"),
            foreign: of("foreign"),
            size: of("size"),
        };
        Departures {
            faults,
            sizes: sizes.to_vec(),
            draws,
            losing: 0,
            was_lost: false,
            held: VecDeque::new(),
            above: 0,
            counts: FaultCounts::default(),
        }
    }

    /// Adds the packets that leave now that the next packet of the stream is due.
    pub fn next(&mut self, leaving: &mut Vec<Leaving>) {
        let number = self.counts.due;
        self.counts.due += 1;
        self.add_foreign(leaving);
        let lost = self.is_lost();
        let odd = chance(&mut self.draws.odd, self.faults.odd);
        let held = chance(&mut self.draws.reorder, self.faults.reorder);
        let copies = 1 + u64::from(chance(&mut self.draws.duplicate, self.faults.duplicate));
        if lost {
            self.counts.lost += 1;
            self.counts.losses += u64::from(!self.was_lost);
        } else if odd {
            self.counts.odd += 1;
            leaving.push(Leaving::Odd(number, self.odd_size(number)));
        } else if held {
            self.held.push_back((number, copies));
        } else {
            self.leave(number, copies, leaving);
        }
        self.was_lost = lost;
        while let Some(&(held, copies)) = self.held.front()
            && held + self.faults.distance <= number
        {
            self.held.pop_front();
            self.leave(held, copies, leaving);
        }
    }

    /// Adds the packets that are still held back, after the last one was due.
    pub fn finish(&mut self, leaving: &mut Vec<Leaving>) {
        while let Some((held, copies)) = self.held.pop_front() {
            self.leave(held, copies, leaving);
        }
    }

    /// The faults so far.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    fn leave(&mut self, number: u64, copies: u64, leaving: &mut Vec<Leaving>) {
        self.counts.left += 1;
        self.counts.duplicated += copies - 1;
        self.counts.reordered += u64::from(number < self.above);
        self.above = self.above.max(number + 1);
        leaving.extend((0..copies).map(|_| Leaving::Packet(number)));
    }

    /// Draws the beginnings of losses with a probability that keeps the share for any length.
    fn is_lost(&mut self) -> bool {
        let Faults { loss, loss_burst, .. } = self.faults;
        if loss <= 0.0 {
            return false;
        }
        let length = loss_burst as f64;
        let begins = chance(&mut self.draws.loss, loss / (length - loss * (length - 1.0)));
        if self.losing == 0 && begins {
            self.losing = loss_burst;
        }
        let lost = self.losing > 0;
        self.losing -= u64::from(lost);
        lost
    }

    fn add_foreign(&mut self, leaving: &mut Vec<Leaving>) {
        let beside = self.faults.foreign;
        if beside <= 0.0 {
            return;
        }
        #[expect(clippy::cast_sign_loss, reason = "negative shares are refused where they are read")]
        let whole = beside.trunc() as u64;
        let count = whole + u64::from(chance(&mut self.draws.foreign, beside.fract()));
        leaving.extend((0..count).map(|index| Leaving::Foreign(self.counts.foreign + index)));
        self.counts.foreign += count;
    }

    /// Draws a size, shorter as often as longer, that no packet of the stream has.
    fn odd_size(&mut self, number: u64) -> usize {
        let size = self.sizes[(number % self.sizes.len() as u64) as usize];
        loop {
            let drawn = self.draws.size.next();
            let odd = if drawn.is_multiple_of(2) {
                (drawn >> 1) as usize % size.max(1)
            } else {
                size + 1 + (drawn >> 1) as usize % LONGER_MAX
            };
            if !self.sizes.contains(&odd) {
                return odd;
            }
        }
    }
}

/// Draws whether an event with this probability happens. At 0 it consumes no random number.
#[inline]
fn chance(stream: &mut RandomStream, share: f64) -> bool {
    share > 0.0 && stream.unit() < share
}

#[cfg(test)]
mod tests;
