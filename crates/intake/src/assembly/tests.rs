//! The assembly's results for packets in every order.

use std::collections::{BTreeSet, VecDeque};

use nilometer_ring::Chronicle;
use proptest::prelude::*;

use super::*;
use nilometer_model::{RandomStream, Seed};
use nilometer_storage::Arena;
use nilometer_wire::{Geometry, Near};

/// Frames of `parts` packets of 16 bytes behind a serial number of 4 bytes. The kept bytes identify the
/// packet. A fill for a missing packet does so too, with a mark.
#[derive(Debug)]
struct Numbered(Geometry);

const BODY: usize = 16;
const FILLED: u8 = 77;
const PER_BLOCK: u64 = 8;
/// When packets begin to come: the recorder has waited for a while.
const LONG_AFTER: Nanos = Nanos(1_000_000);

impl Numbered {
    fn new(parts: usize) -> Self {
        Numbered(Geometry { prefix: 4, parts: vec![BODY; parts], number_bits: 31, behind: Vec::new() })
    }

    /// Packet `number` of the stream.
    fn packet(serial: u64) -> Vec<u8> {
        let mut packet = vec![0; 4 + BODY];
        packet[..4].copy_from_slice(&(serial as u32).to_le_bytes());
        Self::body(serial, 1, &mut packet[4..]);
        packet
    }

    fn body(serial: u64, mark: u8, into: &mut [u8]) {
        into.fill(mark);
        into[..4].copy_from_slice(&(serial as u32).to_le_bytes());
    }
}

impl WireFormat for Numbered {
    fn geometry(&self) -> &Geometry {
        &self.0
    }

    fn place(&mut self, Packet { prefix, body }: Packet<'_>) -> Result<Part, Ignored> {
        let serial = u32::from_le_bytes(prefix.try_into().expect("4 bytes"));
        if prefix != &body[..4] {
            return Err(Ignored::Corrupt);
        }
        let parts = self.0.parts.len() as u64;
        Ok(Part { frame: u64::from(serial) / parts, part: (u64::from(serial) % parts) as usize })
    }

    fn fill(&self, near: Option<Near<'_>>, part: usize, into: &mut [u8]) {
        let parts = self.0.parts.len().cast_signed() as i64;
        let serial = near.map_or(0, |near| {
            let first = u32::from_le_bytes(near.bytes[..4].try_into().expect("4 bytes"));
            (i64::from(first) + near.ahead * parts).cast_unsigned() + part as u64
        });
        Self::body(serial, FILLED, into);
    }

    fn make(&self, _number: u64, _part: usize, _prefix: &mut [u8], _body: &mut [u8]) {}
}

/// Packets elsewhere that are kept: more than any test here has. Its rings are very small.
fn kept() -> CandidateBound {
    CandidateBound::of(Bytes(1 << 20), Bytes(16))
}

pub(super) struct Lab {
    ring: Arc<Ring>,
    pub(super) assembly: Assembly,
    /// The output: serial number and mark of each packet, and the number recorded as missing.
    pub(super) out: Vec<(u32, u8)>,
    pub(super) noted: u64,
    taken: VecDeque<Frame>,
    pub(super) now: Nanos,
}

impl Lab {
    pub(super) fn new(parts: usize, slots: usize, limits: ReorderWindow, missing: Missing) -> Self {
        let size = PER_BLOCK as usize * BODY * parts;
        let (_, slots) = Arena::shared_out(slots, size);
        let ring = Ring::new(slots, 1, Chronicle::new(size as u64, Nanos(0)));
        let mut assembly =
            Assembly::new(vec![Box::new(Numbered::new(parts))], ring.clone(), PER_BLOCK, limits, missing);
        assembly.candidates = Candidates::within(kept());
        Lab { ring, assembly, out: Vec::new(), noted: 0, taken: VecDeque::new(), now: LONG_AFTER }
    }

    /// The kernel writes packets into spots as long as they last, `aside` of them elsewhere.
    pub(super) fn receive(&mut self, serials: &[u64], spots_most: usize) {
        self.now += Nanos(1);
        let mut spots = self.assembly.spots(self.now, 0, spots_most);
        let count = spots.len().min(serials.len());
        for (spot, &serial) in spots.iter_mut().zip(serials) {
            let packet = Numbered::packet(serial);
            spot.prefix.copy_from_slice(&packet[..4]);
            spot.body.copy_from_slice(&packet[4..]);
        }
        self.assembly.came(self.now, 0, count);
        for &serial in &serials[count..] {
            self.assembly.aside(self.now, 0, &Numbered::packet(serial));
        }
        self.assembly.drained(self.now);
        self.assembly.tick(self.now);
    }

    /// Takes packets of a socket that is never empty, before which the kernel dropped `dropped` others.
    pub(super) fn receive_behind(&mut self, serials: &[u64], dropped: u64) {
        self.now += Nanos(1);
        self.assembly.dropped(0, dropped);
        for &serial in serials {
            self.assembly.aside(self.now, 0, &Numbered::packet(serial));
        }
        self.assembly.tick(self.now);
    }

    /// Takes all waiting frames, as a lane does, and gives the slots back.
    pub(super) fn drain(&mut self) {
        while self.take_one() > 0 {}
    }

    /// A lane takes one block, if there is one, and gives the slot back: how many it took.
    fn take_one(&mut self) -> u64 {
        if self.taken.is_empty() {
            self.ring.take(Nanos(0), 0, &mut self.taken);
        }
        let Some(frame) = self.taken.pop_front() else { return 0 };
        self.look(&frame);
        self.ring.release(self.now, &mut vec![frame]);
        1
    }

    fn look(&mut self, frame: &Frame) {
        let packed = frame.packed.as_ref().expect("a block of packets");
        self.noted += packed.gaps.iter().map(|gap| gap.count).sum::<u64>();
        for packet in frame.data[..packed.length as usize].chunks_exact(BODY) {
            self.out.push((u32::from_le_bytes(packet[..4].try_into().expect("4 bytes")), packet[5]));
        }
    }

    pub(super) fn end(&mut self) {
        let blocks = self.assembly.end(self.now);
        self.ring.close(blocks);
        self.drain();
    }
}

pub(super) fn came(serials: impl IntoIterator<Item = u64>) -> Vec<(u32, u8)> {
    serials.into_iter().map(|serial| (serial as u32, 1)).collect()
}

pub(super) const SMALL: ReorderWindow =
    ReorderWindow { window: 16, gap: 100, patience: Nanos(50), quiet: Nanos(20) };

#[test]
fn packets_in_order_are_never_copied_and_come_out_as_they_came() {
    let start = u64::from(u32::MAX) - 100;
    let mut lab = Lab::new(1, 8, SMALL, Missing::Filled);
    for batch in 0..60 {
        let serials: Vec<u64> = (0..5).map(|at| start + batch * 5 + at).collect();
        lab.receive(&serials, 7);
        lab.drain();
    }
    lab.end();
    assert_eq!(lab.out, came(start..start + 300), "over the end of the numbers");
    let tally = lab.assembly.tally();
    assert_eq!((tally.placed, tally.missing, tally.reordered, tally.came()), (300, 0, 0, 300));
}

#[test]
fn a_restart_of_the_scan_goes_on_behind_what_came_before() {
    for first in [0, 1_000_000] {
        let mut lab = Lab::new(1, 12, SMALL, Missing::Filled);
        lab.receive(&(first + 500..first + 531).collect::<Vec<_>>(), 64);
        lab.receive(&(100..140).collect::<Vec<_>>(), 64);
        lab.end();
        assert_eq!(lab.out, came((first + 500..first + 531).chain(100..140)));
        assert_eq!((lab.assembly.tally().restarts, lab.assembly.tally().missing), (1, 0));
    }
}

/// The recorder was behind: the next scan arrived before it was clear that one had begun.
#[test]
fn scans_that_waited_in_the_kernel_follow_each_other_and_none_is_lost() {
    for lengths in [[100, 100, 80], [100, 60, 100], [130, 100, 30], [99, 99, 99]] {
        let mut lab = Lab::new(1, 80, SMALL, Missing::Filled);
        let all: Vec<u64> = lengths.iter().flat_map(|length| 0..*length).collect();
        lab.receive(&all, 64);
        for _ in 0..8 {
            lab.now += SMALL.quiet;
            lab.receive(&[], 64);
        }
        let tally = lab.assembly.tally();
        assert_eq!((tally.restarts, tally.duplicates, tally.late), (2, 0, 0), "{lengths:?}");
        lab.end();
        assert_eq!(lab.out, came(all), "{lengths:?}");
    }
}

#[test]
fn one_wrong_number_moves_nothing() {
    let mut lab = Lab::new(1, 8, SMALL, Missing::Filled);
    lab.receive(&[7, 8, 9, 1 << 30, 10, 11, 4_000_000, 12], 64);
    lab.end();
    assert_eq!(lab.out, came(7..13));
    assert_eq!((lab.assembly.tally().stray, lab.assembly.tally().restarts), (2, 0));
}

#[test]
fn a_copy_is_told_from_another_packet_with_the_same_number() {
    let mut lab = Lab::new(1, 8, SMALL, Missing::Filled);
    lab.receive(&[7, 8, 9], 64);
    let copy = Numbered::packet(8);
    let mut other = copy.clone();
    other[4 + BODY - 1] = 200;
    lab.assembly.aside(lab.now, 0, &copy);
    lab.assembly.aside(lab.now, 0, &other);
    let counted = |lab: &Lab| {
        let tally = lab.assembly.tally();
        (tally.duplicates, tally.copies, tally.conflicts)
    };
    assert_eq!(counted(&lab), (2, 1, 1));
    lab.receive(&(10..16).collect::<Vec<_>>(), 64);
    // Its block is in the ring: the assembly can't compare it any more.
    lab.assembly.aside(lab.now, 0, &other);
    lab.end();
    assert_eq!(counted(&lab), (3, 1, 1));
    assert_eq!(lab.out, came(7..16));
}

#[test]
fn a_jump_is_filled_or_begins_anew_by_its_length() {
    for (jump, filled) in [(64 + 30, true), (200, false)] {
        let mut lab = Lab::new(1, 60, SMALL, Missing::Filled);
        lab.receive(&(10..20).chain(20 + jump..30 + jump).collect::<Vec<_>>(), 64);
        lab.end();
        let gap = (20..20 + jump).map(|serial| (serial as u32, FILLED)).filter(|_| filled);
        let expected: Vec<_> =
            came(10..20).into_iter().chain(gap).chain(came(20 + jump..30 + jump)).collect();
        assert_eq!(lab.out, expected);
        let tally = lab.assembly.tally();
        assert_eq!((tally.missing, tally.jumped), if filled { (jump, 0) } else { (0, jump) });
        assert_eq!(lab.noted, tally.missing);
    }
}

#[test]
fn without_free_slots_packets_are_refused_and_left_out() {
    let mut lab = Lab::new(1, 2, SMALL, Missing::Filled);
    lab.receive(&(0..40).collect::<Vec<_>>(), 64);
    assert_eq!((lab.assembly.tally().placed, lab.assembly.tally().refused), (16, 24), "two slots of 8");
    lab.drain();
    lab.receive(&(40..44).collect::<Vec<_>>(), 64);
    lab.drain();
    lab.receive(&(44..60).collect::<Vec<_>>(), 64);
    lab.end();
    assert_eq!(lab.out, came((0..16).chain(40..56)));
    let tally = lab.assembly.tally();
    assert_eq!((tally.refused, tally.missing, tally.unfilled, tally.jumps), (28, 24, 4, 0), "{tally:?}");
    assert_eq!(lab.noted, 24, "what nothing came behind is in no block");
}

#[test]
fn storage_that_is_too_slow_gets_as_much_of_the_stream_as_it_takes() {
    for slots in [4, 64] {
        let mut lab = Lab::new(1, slots, SMALL, Missing::Filled);
        let mut taken = 0;
        for batch in 0..2000 {
            lab.receive(&(batch * 8..batch * 8 + 8).collect::<Vec<_>>(), 64);
            // It takes two of three blocks.
            if batch % 3 != 0 {
                taken += lab.take_one();
            }
        }
        lab.end();
        assert!(lab.out.is_sorted(), "in their order");
        assert!(lab.out.iter().all(|(_, mark)| *mark == 1), "nothing is filled");
        let tally = lab.assembly.tally();
        let share = tally.placed as f64 / 16_000.0;
        assert!((0.64..=0.7).contains(&share) && taken * 8 <= tally.placed, "{slots}: {tally:?}");
        assert_eq!(tally.placed + tally.lost(), 16_000);
        assert_eq!(tally.missing, lab.noted);
    }
}

#[test]
fn a_frame_is_complete_by_its_packets_and_not_by_their_count() {
    let mut lab = Lab::new(3, 4, SMALL, Missing::Filled);
    // The second packet of the first frame comes twice, the third never.
    let serials = [0, 1, 1].into_iter().chain(3..24);
    lab.receive(&serials.collect::<Vec<_>>(), 64);
    lab.drain();
    assert!(lab.out.is_empty(), "the third packet may still come");
    lab.receive(&(24..24 + 60).collect::<Vec<_>>(), 64);
    lab.end();
    assert_eq!(lab.out[..4], [(0, 1), (1, 1), (2, FILLED), (3, 1)]);
    assert_eq!((lab.assembly.tally().duplicates, lab.assembly.tally().missing), (1, 1));
}

#[test]
fn time_gives_up_what_others_follow() {
    let mut lab = Lab::new(1, 8, SMALL, Missing::Filled);
    lab.receive(&(0..20).filter(|serial| *serial != 3).collect::<Vec<_>>(), 64);
    lab.assembly.tick(lab.now + SMALL.patience);
    lab.drain();
    assert!(lab.out.is_empty());
    lab.assembly.tick(lab.now + SMALL.patience + Nanos(1));
    lab.drain();
    assert_eq!(lab.out.len(), 16, "two blocks, the third is not over");
    assert_eq!(lab.out[3], (3, FILLED));
    lab.receive(&[3, 4], 64);
    assert_eq!((lab.assembly.tally().late, lab.assembly.tally().duplicates), (1, 1));
}

#[test]
fn a_block_of_which_nothing_came_yet_is_waited_for() {
    let mut lab = Lab::new(1, 8, SMALL, Missing::Filled);
    lab.receive(&[0], 0);
    lab.receive(&(1..8).chain(16..24).collect::<Vec<_>>(), 0);
    lab.receive(&(8..16).collect::<Vec<_>>(), 0);
    lab.end();
    assert_eq!(lab.out, came(0..24), "the second block was overtaken by the third");
}

#[test]
fn a_second_copy_beside_a_gap_is_no_new_beginning() {
    let mut lab = Lab::new(1, 60, SMALL, Missing::Filled);
    lab.receive(&(0..21).collect::<Vec<_>>(), 0);
    // 25 is not near any more, as 21 to 24 are lost.
    lab.receive(&[25, 14, 26, 27, 28, 29, 30, 31, 32, 33], 0);
    lab.end();
    let filled = (21..25).map(|serial| (serial, FILLED));
    assert_eq!(lab.out, [came(0..21), filled.collect(), came(25..34)].concat());
    let tally = lab.assembly.tally();
    assert_eq!((tally.restarts, tally.duplicates, tally.missing), (0, 1, 4));
}

/// Simulates a network: it loses or doubles packets, or lets a few others overtake them.
fn disturbed(stream: &mut RandomStream, count: u64, reach: u64) -> Vec<u64> {
    let mut keyed = Vec::new();
    for serial in 0..count {
        let copies = match stream.below(20) {
            0 if serial > 0 => 0,
            1 => 2,
            _ => 1,
        };
        let late = if stream.below(4) == 0 { stream.below(reach) } else { 0 };
        keyed.extend((0..copies).map(|copy| (serial + late + copy, serial)));
    }
    // Nothing comes before the first packet, which says where the stream begins.
    keyed[1..].sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, serial)| serial).collect()
}

proptest! {
    #[test]
    fn every_packet_that_came_in_time_is_in_its_place(
        seed: u64, parts in 1_usize..4, batch in 1_usize..20, most in 0_usize..30, left_out: bool,
    ) {
        let mut stream = Seed(seed).stream();
        let arrivals = disturbed(&mut stream, 400, SMALL.window / 2);
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        // Packets that wait for a confirmed gap arrive all at once.
        let mut lab = Lab::new(parts, 60, SMALL, missing);
        for serials in arrivals.chunks(batch) {
            lab.receive(serials, most);
            lab.drain();
        }
        lab.end();
        let there: BTreeSet<u64> = arrivals.iter().copied().collect();
        let parts = parts as u64;
        let end = (there.last().expect("some came") + 1).next_multiple_of(parts);
        let in_a_frame = |serial: &u64| {
            let frame = serial / parts * parts;
            there.range(frame..frame + parts).next().is_some()
        };
        let expected: Vec<(u32, u8)> = (0..end)
            .filter(|serial| !left_out || in_a_frame(serial))
            .map(|serial| (serial as u32, if there.contains(&serial) { 1 } else { FILLED }))
            .collect();
        prop_assert_eq!(&lab.out, &expected);
        let tally = lab.assembly.tally();
        prop_assert_eq!(tally.missing, end - there.len() as u64);
        prop_assert_eq!(tally.missing, lab.noted);
        prop_assert_eq!(tally.came(), arrivals.len() as u64);
        prop_assert_eq!(tally.placed, there.len() as u64);
    }

    #[test]
    fn no_packet_whatever_it_says_breaks_it(
        serials in prop::collection::vec((any::<u32>(), 1_u64..20), 1..60), left_out: bool, slots in 1_usize..6,
    ) {
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        let mut lab = Lab::new(2, slots, SMALL, missing);
        let mut sent = 0;
        for (start, count) in serials {
            let batch: Vec<u64> = (0..count).map(|at| u64::from(start) + at).collect();
            sent += count;
            lab.receive(&batch, 7);
            lab.drain();
        }
        lab.end();
        prop_assert_eq!(lab.assembly.tally().came(), sent);
        let marked = lab.out.iter().filter(|(_, mark)| *mark == 1).count() as u64;
        prop_assert_eq!(marked, lab.assembly.tally().placed, "what was counted is what came out");
    }
}
