//! Several senders at one port: each in every order, with losses of its own, and strangers between them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use nilometer_recording::{Missing, Packed};
use nilometer_ring::{Chronicle, Ring, Taken};
use proptest::prelude::*;

use super::*;
use crate::{conformance::SerialFormat, transport::trial::Numbered};
use nilometer_model::{RandomStream, Seed};
use nilometer_storage::Arena;

pub(super) const BODY: usize = 32;
const FRAMES_OF_BLOCK: u64 = 40;
pub(super) const FILLED: u8 = 77;
const LIMITS: ReorderWindow = ReorderWindow {
    window: 64,
    gap: 1000,
    patience: Nanos::from_millis(1000),
    quiet: Nanos::from_millis(10),
};

/// Boards that number packets separately. After the number, a packet names its board. A filled packet has a
/// mark after that.
pub(super) struct Board;

impl Board {
    pub(super) fn format() -> SerialFormat {
        SerialFormat::new(BODY, |behind| behind[1] = FILLED)
    }

    pub(super) fn packet(board: u8, serial: u64) -> Vec<u8> {
        let mut packet = vec![1; 8 + BODY];
        packet[..8].copy_from_slice(&serial.to_le_bytes());
        packet[8..16].copy_from_slice(&serial.to_le_bytes());
        packet[16] = board;
        packet
    }
}

/// Time between two looks.
const LOOK_TIME: Nanos = Nanos(100_000);

pub(super) struct Port {
    pub(super) ring: Arc<Ring>,
    frames_of_block: u64,
    pub(super) streams: SenderStreams,
    pub(super) now: Nanos,
    pub(super) blocks: Vec<(Vec<u8>, Packed)>,
}

impl Port {
    fn new(slots: usize, missing: Missing) -> Self {
        Port::of(Box::new(Board::format()), slots, missing)
    }

    fn of(format: Box<dyn WireFormat>, slots: usize, missing: Missing) -> Self {
        Port::with_blocks(format, FRAMES_OF_BLOCK, slots, missing)
    }

    pub(super) fn with_blocks(
        format: Box<dyn WireFormat>,
        frames_of_block: u64,
        slots: usize,
        missing: Missing,
    ) -> Self {
        let size = format.geometry().frame_size() * frames_of_block as usize;
        let ring = Ring::new(Arena::shared_out(slots, size).1, 1, Chronicle::new(size as u64, Nanos(1)));
        let assembly = Assembly::new(vec![format], ring.clone(), frames_of_block, LIMITS, missing);
        let streams = SenderStreams::new(assembly);
        Port { ring, frames_of_block, streams, now: Nanos(0), blocks: Vec::new() }
    }

    /// A look that brings these packets, at most `spots` of them to where they are expected.
    pub(super) fn look(&mut self, spots: usize, packets: &[(u16, Vec<u8>)]) {
        self.look_without_storing(spots, packets);
        self.store();
    }

    /// The same while no lane takes blocks.
    pub(super) fn look_without_storing(&mut self, spots: usize, packets: &[(u16, Vec<u8>)]) {
        self.now += LOOK_TIME;
        let senders: Vec<_> = packets.iter().map(|(sender, _)| SenderId(*sender)).collect();
        for sender in &senders {
            self.streams.name(*sender, || Some(address(sender.0)));
        }
        // Every second look is one at a socket where only this sender was heard so far.
        let expected = senders.first().copied().filter(|_| self.now.0 / LOOK_TIME.0 % 2 == 1);
        let mut given = self.streams.spots(self.now, 0, spots, expected);
        let count = given.len().min(packets.len());
        for (spot, (_, packet)) in given.iter_mut().zip(packets) {
            let (prefix, body) = packet.split_at(spot.prefix.len());
            spot.prefix.copy_from_slice(prefix);
            spot.body.copy_from_slice(body);
        }
        self.streams.came(self.now, 0, count, &senders);
        for (sender, packet) in &packets[count..] {
            self.streams.aside(self.now, 0, SenderId(*sender), packet);
        }
        self.streams.drained(self.now);
        self.streams.tick(self.now);
    }

    /// Takes all waiting blocks, as a lane does.
    pub(super) fn store(&mut self) {
        let mut frames = VecDeque::new();
        while self.ring.take(self.now, 0, &mut frames) == Taken::Frames {}
        let mut stored = Vec::new();
        for frame in frames {
            let packed = *frame.packed.clone().expect("blocks of packets");
            self.blocks.push((frame.data[..packed.length as usize].to_vec(), packed));
            stored.push(frame);
        }
        self.ring.release(self.now, &mut stored);
    }

    pub(super) fn end(&mut self) {
        let blocks = self.streams.end(self.now, || None);
        self.store();
        assert_eq!(blocks, self.blocks.len() as u64);
        for (_, packed) in self.blocks.split_last().map_or(&[][..], |(_, all)| all) {
            assert_eq!(
                u64::from(packed.length),
                self.frames_of_block * BODY as u64,
                "only the last is shorter"
            );
        }
    }

    /// The recorded packets of each board: numbers and marks, in their order in the recording.
    pub(super) fn recorded(&self) -> BTreeMap<u8, Vec<(u64, u8)>> {
        let mut recorded: BTreeMap<u8, Vec<_>> = BTreeMap::new();
        for frame in self.blocks.iter().flat_map(|(bytes, _)| bytes.chunks_exact(BODY)) {
            let serial = u64::from_le_bytes(frame[..8].try_into().expect("8 bytes"));
            recorded.entry(frame[8]).or_default().push((serial, frame[9]));
        }
        recorded
    }

    /// Gaps by number of the sender.
    fn lost(&self) -> BTreeMap<u16, u64> {
        let mut lost = BTreeMap::new();
        for gap in self.blocks.iter().flat_map(|(_, packed)| &packed.gaps) {
            *lost.entry(gap.sender.map_or(0, |sender| sender.number)).or_default() += gap.count;
        }
        lost
    }
}

fn address(sender: u16) -> SocketAddr {
    ([127, 0, 0, 1], 4000 + sender).into()
}

/// Packets of boards that arrive a few at a time, each with its own numbers. Some are lost, or overtaken by
/// one other.
#[expect(clippy::type_complexity, reason = "packets by board, and the numbers that were lost of each")]
fn mixed(
    random: &mut RandomStream,
    firsts: &[u64],
    each: u64,
    loses: bool,
) -> (Vec<(u16, Vec<u8>)>, Vec<Vec<u64>>) {
    let mut left: Vec<Vec<u64>> = firsts.iter().map(|first| (*first..first + each).rev().collect()).collect();
    let mut sent = vec![Vec::new(); firsts.len()];
    let mut packets = Vec::new();
    while left.iter().any(|board| !board.is_empty()) {
        let board = random.below(firsts.len() as u64) as usize;
        for _ in 0..=random.below(6) {
            let Some(serial) = left[board].pop() else { break };
            let is_inner = serial > firsts[board] + 100 && !left[board].is_empty();
            if loses && is_inner && random.below(20) == 0 {
                continue;
            }
            sent[board].push(serial);
            packets.push((board as u16, Board::packet(board as u8, serial)));
        }
    }
    (packets, sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_of_every_board_is_recorded_in_its_order_and_losses_are_its_own(
        seed: u64, firsts in prop::collection::vec(prop::sample::select(vec![0, 40, 1000, 1 << 40]), 1..9),
        spots in 0_usize..20, left_out: bool,
    ) {
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        let mut random = Seed(seed).stream();
        let (packets, sent) = mixed(&mut random, &firsts, 600, true);
        let mut port = Port::new(400, missing);
        let mut rest = &packets[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((1 + random.below(12) as usize).min(rest.len()));
            port.look(spots, now);
            rest = later;
        }
        port.end();
        let recorded = port.recorded();
        for (board, sent) in sent.iter().enumerate() {
            let came: Vec<_> = recorded[&(board as u8)].clone();
            prop_assert!(came.is_sorted(), "in its order");
            let there: Vec<u64> = came.iter().filter(|(_, mark)| *mark == 1).map(|(serial, _)| *serial).collect();
            prop_assert_eq!(&there, sent, "board {}", board);
            // A gap is filled if the sender's small ring has slots for it; otherwise it is left out.
            let filled = came.len() - there.len();
            let most = if left_out { 0 } else { 600 - sent.len() };
            prop_assert!(filled <= most, "{} filled of {}", filled, most);
        }
        let counts = port.streams.counts(port.now);
        prop_assert_eq!(counts.len(), firsts.len());
        let lost: BTreeMap<_, _> = counts.iter().zip(1..).map(|(of, number)| (number, of.missing)).collect();
        for count in &counts {
            let board = count.sender.map_or(0, |sender| sender.port() - 4000) as usize;
            let absent = 600 - sent[board].len() as u64;
            prop_assert_eq!((count.placed, count.missing), (600 - absent, absent), "{:?}", count);
        }
        let noted = port.lost();
        if firsts.len() > 1 {
            let lost: BTreeMap<_, _> = lost.into_iter().filter(|(_, count)| *count > 0).collect();
            prop_assert_eq!(&noted, &lost, "the journal names the senders");
        } else {
            prop_assert!(noted.keys().all(|number| *number == 0));
        }
        let tally = port.streams.tally();
        prop_assert_eq!((tally.stray, tally.conflicts, tally.refused), (0, 0, 0), "{:?}", tally);
        prop_assert_eq!(tally.came(), packets.len() as u64);
    }

    #[test]
    fn a_stream_that_comes_by_several_ways_is_one(seed: u64, ways in 2_u64..5, spots in 0_usize..20) {
        let mut random = Seed(seed).stream();
        let mut port = Port::new(400, Missing::Filled);
        for at in (0..2000).step_by(4) {
            // One packet at least of each look comes by the first way.
            let mut way = |serial: u64| if serial == at { 0 } else { random.below(ways) as u16 };
            let packets: Vec<_> =
                (at..at + 4).map(|serial| (way(serial), Board::packet(0, serial))).collect();
            port.look(spots, &packets);
        }
        port.end();
        let tally = port.streams.tally();
        prop_assert_eq!((tally.placed, tally.lost(), tally.stray), (2000, 0, 0), "{:?}", tally);
        prop_assert_eq!(port.streams.counts(port.now).len(), 1);
        prop_assert!(port.recorded()[&0].is_sorted());
    }

    #[test]
    fn packets_of_strangers_cost_none_and_are_no_sender(seed: u64, spots in 0_usize..20) {
        let mut random = Seed(seed).stream();
        let mut port = Port::new(400, Missing::Filled);
        let mut sent = 0;
        for at in (0..3000).step_by(5) {
            let mut packets: Vec<_> = (at..at + 5).map(|serial| (0, Board::packet(0, serial))).collect();
            if random.below(3) == 0 {
                // No two of them follow each other.
                let first = 64 * random.below(1 << 40);
                let count = 1 + random.below(30);
                let sender = 1 + random.below(3) as u16;
                sent += count;
                packets.extend((first..first + count).map(|serial| (sender, Board::packet(9, serial))));
            }
            port.look(spots, &packets);
        }
        // After the last packet of the stream, the sender of the others is uncertain.
        port.look(spots, &(3000..3010).map(|serial| (0, Board::packet(0, serial))).collect::<Vec<_>>());
        // Nothing comes for a while before it ends.
        for _ in 0..200 {
            port.now += Nanos::from_millis(10);
            port.look(spots, &[]);
        }
        port.end();
        let tally = port.streams.tally();
        let others = tally.stray + tally.late + tally.duplicates;
        prop_assert_eq!(tally.lost(), 0, "{:?}", tally);
        prop_assert_eq!((tally.placed, others), (3010, sent), "{:?}", tally);
        prop_assert!(!port.recorded().contains_key(&9));
    }
}

#[test]
fn a_sender_that_uses_a_port_for_each_packet_is_one() {
    let mut port = Port::new(40, Missing::Filled);
    for serial in 0..2000_u64 {
        port.look(9, &[((serial % 300) as u16, Board::packet(0, serial))]);
    }
    for _ in 0..2000 {
        port.look(9, &[]);
    }
    port.end();
    let tally = port.streams.tally();
    assert_eq!((tally.placed, tally.lost(), tally.stray), (2000, 0, 0), "{tally:?}");
    assert_eq!(port.streams.counts(port.now).len(), 1);
}

#[test]
fn a_sender_with_another_port_goes_on_with_a_stream_that_is_silent() {
    let mut port = Port::new(400, Missing::Filled);
    for at in (0..500).step_by(5) {
        port.look(9, &(at..at + 5).map(|serial| (0, Board::packet(0, serial))).collect::<Vec<_>>());
    }
    for _ in 0..2000 {
        port.look(9, &[]);
    }
    for at in (510..1000).step_by(5) {
        port.look(9, &(at..at + 5).map(|serial| (1, Board::packet(0, serial))).collect::<Vec<_>>());
    }
    port.end();
    let tally = port.streams.tally();
    assert_eq!((tally.placed, tally.lost(), port.streams.counts(port.now).len()), (990, 10, 1), "{tally:?}");
}

#[test]
fn no_more_senders_are_recorded_than_a_limit_and_others_are_counted() {
    let mut port = Port::new(2000, Missing::Filled);
    for at in 0..200 {
        let packets: Vec<_> = (0..70_u16)
            .map(|board| (board, Board::packet(board as u8, at + 1000 * u64::from(board))))
            .collect();
        port.look(9, &packets);
    }
    port.end();
    let tally = port.streams.tally();
    assert_eq!(port.streams.counts(port.now).len(), STREAMS_MOST);
    assert_eq!((tally.came(), tally.lost()), (200 * 70, 0), "{tally:?}");
    assert_eq!(tally.placed + tally.stray, 200 * 70);
    assert!(tally.placed >= 60 * 200, "{tally:?}");
}

#[test]
fn storage_that_is_too_slow_costs_packets_of_all_and_each_is_counted() {
    let mut port = Port::new(12, Missing::Filled);
    let mut sent = 0;
    for at in (0..4000).step_by(4) {
        for board in 0..3_u16 {
            let packets: Vec<_> =
                (at..at + 4).map(|serial| (board, Board::packet(board as u8, serial))).collect();
            sent += 4;
            port.now += Nanos(100_000);
            for (sender, packet) in &packets {
                port.streams.aside(port.now, 0, SenderId(*sender), packet);
            }
            port.streams.drained(port.now);
            port.streams.tick(port.now);
        }
        // Now and then a lane takes the waiting blocks.
        if at % 400 == 0 {
            port.store();
        }
    }
    port.end();
    let tally = port.streams.tally();
    assert_eq!(tally.came(), sent, "{tally:?}");
    assert_eq!((tally.stray, tally.late, tally.duplicates), (0, 0, 0), "{tally:?}");
    assert!(tally.refused > 0 && tally.placed + tally.refused == sent, "{tally:?}");
}

#[test]
fn a_format_that_numbers_all_senders_together_has_one_stream() {
    let mut port = Port::of(Box::new(Numbered::new(&[BODY])), 40, Missing::Filled);
    for serial in 0..300_u64 {
        let packet = [&serial.to_le_bytes()[..], &[1; BODY]].concat();
        port.look(9, &[((serial % 3) as u16, packet)]);
    }
    port.end();
    assert_eq!((port.streams.placed(), port.streams.counts(port.now).len()), (300, 1));
}
