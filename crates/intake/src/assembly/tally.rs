//! The counters of an assembly: loss and reordering in the terms of RFC 3357 and RFC 4737.

use std::collections::VecDeque;

use nilometer_model::Histogram;

use super::candidates::Behind;
use nilometer_wire::Ignored;

/// Counts of packets by their fate. All counts are of packets, unless they say otherwise.
#[derive(Debug, Clone, Default)]
pub struct PacketTally {
    /// The number of its first frame according to its packets. `None`: no packet arrived.
    pub first_frame: Option<u64>,
    /// Packets with a place in the recording.
    pub placed: u64,
    /// Bytes of them that are kept.
    pub bytes: u64,
    /// Packets that are missing between others: they are filled or left out.
    pub missing: u64,
    /// Packets that arrived but found no free slot in the ring. They are left out, and also count as missing
    /// if others follow.
    pub refused: u64,
    /// Places left out. Later places moved down by as many, so that distances in the recording are smaller
    /// than those between packet numbers.
    pub left_out: u64,
    /// Missing packets outside any gap: none followed them that could show a gap.
    pub unfilled: u64,
    /// Times that consecutive packets were missing (RFC 3357, loss periods).
    pub losses: u64,
    /// The largest number of consecutive missing packets.
    pub longest_loss: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Duplicates with the same bytes as the first packet. Packets of closed blocks are not compared.
    pub copies: u64,
    /// Duplicates with other bytes than the first packet: data of another sender that counts in the same way.
    pub conflicts: u64,
    /// Packets that arrived when their place was already closed.
    pub late: u64,
    /// Packets that do not belong to the stream, by [`Ignored`].
    pub ignored: [u64; Ignored::ALL.len()],
    /// Frames of the stream whose header has no right checksum, in formats that have one.
    pub unchecked: u64,
    /// Packets whose number was far from all others.
    pub stray: u64,
    /// Times that the numbers fell back: the stream began anew.
    pub restarts: u64,
    /// Times that the numbers jumped ahead further than the stream's rate allows: the instrument set them
    /// anew.
    pub jumps: u64,
    /// The sum of these jumps, in numbers. The skipped numbers may belong to no packets.
    pub jumped: u64,
    /// Packets that arrived after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// By how many packets each of these was overtaken (RFC 4737, section 4.2, reordering extent).
    pub extents: Histogram,
    /// The sum of these extents.
    pub overtaken: u64,
}

impl PacketTally {
    /// All packets received.
    pub fn came(&self) -> u64 {
        self.of_stream() + self.stray + self.ignored.iter().sum::<u64>()
    }

    /// Packets of the stream, with or without a place.
    pub fn of_stream(&self) -> u64 {
        self.placed + self.duplicates + self.late + self.refused
    }

    /// Missing packets, in gaps or not.
    pub fn lost(&self) -> u64 {
        self.missing + self.unfilled
    }

    /// The sum of two streams. The first frame is that of this one.
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
            (&mut self.unchecked, other.unchecked),
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

    /// Counts a packet that `extent` others overtook.
    pub(super) fn reorder(&mut self, extent: u64) {
        self.reordered += 1;
        self.overtaken += extent;
        self.extents.add(extent);
    }

    pub(super) fn ignore(&mut self, why: Ignored) {
        self.ignored[why as usize] += 1;
    }

    /// Counts a packet whose place is closed or taken.
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

    /// Takes back the count of a packet that gets a place after all, where it is counted again.
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

    /// Counts consecutive missing packets.
    pub(super) fn lose(&mut self, packets: u64) {
        self.missing += packets;
        self.period(packets);
    }

    /// Counts consecutive missing packets outside any gap.
    pub(super) fn lose_unfilled(&mut self, packets: u64) {
        if packets > 0 {
            self.unfilled += packets;
            self.period(packets);
        }
    }

    /// Counts a jump of the numbers by this much.
    pub(super) fn jump(&mut self, numbers: u64) {
        self.jumps += 1;
        self.jumped = self.jumped.saturating_add(numbers);
    }

    fn period(&mut self, packets: u64) {
        self.losses += 1;
        self.longest_loss = self.longest_loss.max(packets);
    }
}

/// The places of the last packets in order of arrival, as runs.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    runs: VecDeque<(u64, u64)>,
}

/// A packet that was overtaken in more runs than this was overtaken by at least as many packets.
const RUNS: usize = 256;

impl Arrivals {
    /// Adds `count` packets that arrived one after the other, beginning with this place.
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

    /// Number of packets since the first one with a higher place.
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

    /// Moves all places up by `places`.
    pub(super) fn move_up(&mut self, places: u64) {
        for (first, _) in &mut self.runs {
            *first += places;
        }
    }

    /// Moves all places down by `places`.
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
