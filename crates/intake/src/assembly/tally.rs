//! What an assembly counted: loss and reordering in the terms of RFC 3357 and RFC 4737.

use std::collections::VecDeque;

use nilometer_model::Histogram;

use super::candidates::Behind;
use nilometer_wire::Ignored;

/// What became of packets. All counts are of packets, unless they say otherwise.
#[derive(Debug, Clone, Default)]
pub struct PacketTally {
    /// The number that its first frame has in packets; none before one came.
    pub first_frame: Option<u64>,
    /// That came and have their place in the recording.
    pub placed: u64,
    /// Bytes of them that are kept.
    pub bytes: u64,
    /// That should be between others and did not come in time: they are filled or left out.
    pub missing: u64,
    /// That came and found no free slot in the ring: they are left out, and among the missing where others follow.
    pub refused: u64,
    /// Places of packets that were left out, so that those behind them moved down: those of the recording are no longer as far
    /// from its first as their numbers are.
    pub left_out: u64,
    /// That did not come either and are in no gap: nothing came behind them that could say so.
    pub unfilled: u64,
    /// Times that packets were missing one after the other (RFC 3357, loss periods).
    pub losses: u64,
    /// The most packets missing in a row.
    pub longest_loss: u64,
    /// That were there already.
    pub duplicates: u64,
    /// Of these, packets with the same bytes as the one that was there. Packets of blocks that are closed are not compared.
    pub copies: u64,
    /// Of these, packets with other bytes than the one that was there: data of somebody else who counts in the same way.
    pub conflicts: u64,
    /// That came when their place had been closed.
    pub late: u64,
    /// That are none of the stream, by [`Ignored`].
    pub ignored: [u64; Ignored::ALL.len()],
    /// Whose number was far from all others'.
    pub stray: u64,
    /// Times that the numbers fell back: the stream began anew.
    pub restarts: u64,
    /// Times that the numbers jumped ahead, further than the stream's rate allows in the time: the instrument set them anew.
    pub jumps: u64,
    /// Over how many numbers in all. None of them is known to be that of a packet.
    pub jumped: u64,
    /// That came after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// By how many packets each of these was overtaken (RFC 4737, section 4.2, reordering extent).
    pub extents: Histogram,
    /// All of these together.
    pub overtaken: u64,
}

impl PacketTally {
    /// All that came, whatever it was.
    pub fn came(&self) -> u64 {
        self.of_stream() + self.stray + self.ignored.iter().sum::<u64>()
    }

    /// Those that are of the stream, wherever they belong in it.
    pub fn of_stream(&self) -> u64 {
        self.placed + self.duplicates + self.late + self.refused
    }

    /// Packets that should have come and are not in the recording, in gaps or not.
    pub fn lost(&self) -> u64 {
        self.missing + self.unfilled
    }

    /// The sum of two streams; the first frame is that of this one.
    #[must_use]
    pub fn and(mut self, other: &PacketTally) -> Self {
        for (own, others) in [
            (&mut self.placed, other.placed),
            (&mut self.bytes, other.bytes),
            (&mut self.missing, other.missing),
            (&mut self.refused, other.refused),
            (&mut self.left_out, other.left_out),
            (&mut self.unfilled, other.unfilled),
            (&mut self.losses, other.losses),
            (&mut self.duplicates, other.duplicates),
            (&mut self.copies, other.copies),
            (&mut self.conflicts, other.conflicts),
            (&mut self.late, other.late),
            (&mut self.stray, other.stray),
            (&mut self.restarts, other.restarts),
            (&mut self.jumps, other.jumps),
            (&mut self.jumped, other.jumped),
            (&mut self.reordered, other.reordered),
            (&mut self.overtaken, other.overtaken),
        ] {
            *own = own.saturating_add(others);
        }
        self.ignored.iter_mut().zip(other.ignored).for_each(|(own, others)| *own += others);
        self.longest_loss = self.longest_loss.max(other.longest_loss);
        self.extents.merge(&other.extents);
        self
    }

    /// A packet was overtaken by so many others.
    pub(super) fn reorder(&mut self, extent: u64) {
        self.reordered += 1;
        self.overtaken += extent;
        self.extents.add(extent);
    }

    pub(super) fn ignore(&mut self, why: Ignored) {
        self.ignored[why as usize] += 1;
    }

    /// A packet came whose place is closed or taken.
    pub(super) fn count_behind(&mut self, behind: Behind) {
        match behind {
            Behind::Late => self.late += 1,
            Behind::Duplicate => self.duplicates += 1,
            Behind::Copy => {
                self.duplicates += 1;
                self.copies += 1;
            }
            Behind::Conflict => {
                self.duplicates += 1;
                self.conflicts += 1;
            }
        }
    }

    /// A packet that was counted so is put down after all, where it is counted again.
    pub(super) fn uncount_behind(&mut self, behind: Behind) {
        match behind {
            Behind::Late => self.late -= 1,
            Behind::Duplicate => self.duplicates -= 1,
            Behind::Copy => {
                self.duplicates -= 1;
                self.copies -= 1;
            }
            Behind::Conflict => {
                self.duplicates -= 1;
                self.conflicts -= 1;
            }
        }
    }

    /// So many packets in a row are missing.
    pub(super) fn lose(&mut self, packets: u64) {
        self.missing += packets;
        self.period(packets);
    }

    /// So many packets in a row are missing, and no gap says so.
    pub(super) fn lose_unfilled(&mut self, packets: u64) {
        if packets > 0 {
            self.unfilled += packets;
            self.period(packets);
        }
    }

    /// The stream goes on with a number that is so much higher.
    pub(super) fn jump(&mut self, numbers: u64) {
        self.jumps += 1;
        self.jumped = self.jumped.saturating_add(numbers);
    }

    fn period(&mut self, packets: u64) {
        self.losses += 1;
        self.longest_loss = self.longest_loss.max(packets);
    }
}

/// The places of the last packets in the order in which they came, as runs.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    runs: VecDeque<(u64, u64)>,
}

/// A packet that was overtaken in more runs than this was overtaken by at least as many packets.
const RUNS: usize = 256;

impl Arrivals {
    /// Packets came one after the other from this place on.
    pub(super) fn add(&mut self, first: u64, count: u64) {
        match self.runs.back_mut() {
            Some((begin, length)) if *begin + *length == first => *length += count,
            _ => {
                if self.runs.len() == RUNS {
                    self.runs.pop_front();
                }
                self.runs.push_back((first, count));
            }
        }
    }

    /// How many packets came since the first that has a higher place than this.
    pub(super) fn extent(&self, place: u64) -> u64 {
        let mut overtaken = None;
        for &(first, count) in &self.runs {
            let higher = (first + count).saturating_sub((place + 1).max(first));
            overtaken = match overtaken {
                None if higher > 0 => Some(higher),
                None => None,
                Some(before) => Some(before + count),
            };
        }
        overtaken.unwrap_or(0)
    }

    /// Everything is so many places earlier.
    pub(super) fn move_down(&mut self, places: u64) {
        for (first, _) in &mut self.runs {
            *first = first.saturating_sub(places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_is_as_in_the_example_of_the_rfc() {
        // RFC 4737, section 7.1, table 1: 4 arrives after 8; then table 2: 5, 6 after 10; extents as given there.
        let mut arrivals = Arrivals::default();
        for place in [1, 2, 3, 5, 6, 7, 8] {
            arrivals.add(place, 1);
        }
        assert_eq!(arrivals.extent(4), 4);
        let mut arrivals = Arrivals::default();
        for place in [1, 2, 3, 4, 7, 8, 9, 10] {
            arrivals.add(place, 1);
        }
        assert_eq!(arrivals.extent(5), 4);
        arrivals.add(5, 1);
        assert_eq!(arrivals.extent(6), 5);
        assert_eq!(arrivals.extent(11), 0, "it was not overtaken");
    }
}
