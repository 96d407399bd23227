//! Streams of several senders whose packets lie where they are recorded. Each stream has the same frames as if
//! its blocks were copied.

use std::collections::{BTreeMap, VecDeque};

use nilometer_model::{RandomStream, Seed};
use nilometer_recording::{Gap, Missing};
use nilometer_ring::Taken;
use proptest::prelude::*;

use super::{
    Nanos, SenderId,
    tests::{BODY, Board, FILLED, Port},
};

const BOARDS_MOST: u64 = 5;

/// A board with numbers of its own, and its manner of sending.
struct TrialBoard {
    next: u64,
    /// Packets of it that are missing, of a thousand.
    losses: u64,
    /// It sends with this many of 64 looks.
    share: u64,
    /// Packets that wait to be overtaken.
    delayed: Vec<u64>,
}

impl TrialBoard {
    fn new(random: &mut RandomStream, number: u64) -> Self {
        TrialBoard {
            // Packets of one never fit into holes of another.
            next: number << 32,
            losses: [0, 0, 5, 50][random.below(4) as usize],
            share: [2, 16, 64, 64, 64][random.below(5) as usize],
            delayed: Vec::new(),
        }
    }

    /// The numbers of its next packets.
    fn send(&mut self, random: &mut RandomStream) -> Vec<u64> {
        let mut sent = Vec::new();
        if random.below(64) >= self.share {
            return sent;
        }
        for _ in 0..=random.below(24) {
            self.next += 1;
            match random.below(1000) {
                draw if draw < self.losses => {}
                draw if draw < 2 * self.losses => self.delayed.push(self.next),
                draw if draw < 3 * self.losses => sent.extend([self.next; 2]),
                _ => sent.push(self.next),
            }
            if random.below(20) == 0 {
                sent.append(&mut self.delayed);
            }
        }
        sent
    }
}

/// The packets of all looks. A look is at one board, or at several that share a port.
fn looks(random: &mut RandomStream) -> Vec<Vec<(u16, Vec<u8>)>> {
    let mut boards: Vec<_> =
        (0..2 + random.below(BOARDS_MOST - 1)).map(|number| TrialBoard::new(random, number)).collect();
    let shares_port = random.below(2) == 0;
    let mut looks = Vec::new();
    // The recorder first gets to know each of them.
    for (number, board) in boards.iter_mut().enumerate() {
        let serials = board.next + 1..board.next + 41;
        looks.push(serials.map(|serial| (number as u16, packet(number as u8, serial))).collect());
        board.next += 40;
    }
    for at in 0..24 {
        let mut packets = Vec::new();
        for (number, board) in boards.iter_mut().enumerate() {
            if at == 12 && random.below(3) == 0 {
                board.share = [0, 64][random.below(2) as usize];
            }
            let sent = board.send(random);
            packets.extend(sent.into_iter().map(|serial| (number as u16, packet(number as u8, serial))));
            if !shares_port {
                looks.push(std::mem::take(&mut packets));
            }
        }
        looks.push(packets);
    }
    looks
}

/// A packet whose bytes name its board and number.
fn packet(board: u8, serial: u64) -> Vec<u8> {
    let mut packet = Board::packet(board, serial);
    let bytes = packet.len() - 8..;
    packet[bytes].copy_from_slice(&(serial ^ u64::from(board) << 56).to_le_bytes());
    packet
}

/// The form of a trial.
#[derive(Debug, Clone, Copy)]
struct MergingTrial {
    seed: u64,
    frames_of_block: u64,
    slots: usize,
    missing: Missing,
    /// A lane stores all blocks with one of this many looks.
    storing: u64,
}

impl MergingTrial {
    /// Records the packets of these looks.
    fn record(self, looks: &[Vec<(u16, Vec<u8>)>], copies: bool) -> Port {
        let mut random = Seed(self.seed ^ 1).stream();
        let format = Box::new(Board::format());
        let mut port = Port::with_blocks(format, self.frames_of_block, self.slots, self.missing);
        for (at, packets) in looks.iter().enumerate() {
            let is_known = at > BOARDS_MOST as usize;
            if is_known && random.below(30) == 0 {
                port.now += Nanos::from_millis(random.below(2000));
            }
            if let Some(merger) = port.streams.merger.as_mut().filter(|_| copies) {
                merger.copy_all();
            }
            port.look_without_storing(random.below(70) as usize, packets);
            if !is_known || random.below(self.storing) == 0 {
                port.store();
            }
        }
        port.end();
        port
    }
}

/// The frames of a stream in a recording.
#[derive(Debug, Default, PartialEq)]
struct RecordedStream {
    frames: Vec<Vec<u8>>,
    /// The frames that are no packets.
    filled: Vec<usize>,
    /// Packets that are left out before a frame.
    left_out: Vec<(usize, u64)>,
}

/// The streams of a recording, by board.
fn recorded(port: &mut Port) -> BTreeMap<u8, RecordedStream> {
    let senders: Vec<_> = port.streams.counts(port.now).into_iter().map(|counts| counts.sender).collect();
    let board = |gap: &Gap| {
        let at = gap.sender.map_or(0, |sender| usize::from(sender.number) - 1);
        (senders[at].expect("looks name all senders").port() - 4000) as u8
    };
    let mut streams: BTreeMap<u8, RecordedStream> = BTreeMap::new();
    for (bytes, packed) in &port.blocks {
        let mut gaps = packed.gaps.clone();
        gaps.sort_by_key(|gap| gap.at);
        let mut gaps = gaps.into_iter().peekable();
        for at in 0..=bytes.len() / BODY {
            while let Some(gap) = gaps.next_if(|gap| gap.at as usize <= at) {
                let stream = streams.entry(board(&gap)).or_default();
                let here = stream.frames.len();
                if gap.filled {
                    stream.filled.extend(here..here + gap.count as usize);
                } else {
                    stream.left_out.push((here, gap.count));
                }
            }
            if let Some(frame) = bytes.chunks_exact(BODY).nth(at) {
                streams.entry(frame[8]).or_default().frames.push(frame.to_vec());
            }
        }
        assert!(gaps.next().is_none(), "gaps lie in their block: {:?}", packed.gaps);
    }
    streams
}

/// Checks that each frame of a recording is a packet of its board, or a filled one. They are in order, unless
/// late packets behind a silence began the stream anew.
fn check(port: &mut Port) -> BTreeMap<u8, RecordedStream> {
    let streams = recorded(port);
    let tally = port.streams.tally();
    let is_one_course = tally.restarts + tally.jumps == 0;
    let mut packets = 0;
    for (board, stream) in &streams {
        let mut filled = stream.filled.iter().peekable();
        let mut last = None;
        for (at, frame) in stream.frames.iter().enumerate() {
            let serial = u64::from_le_bytes(frame[..8].try_into().expect("8 bytes"));
            let is_next = last.replace(serial).is_none_or(|last| last < serial);
            assert!(is_next || !is_one_course, "board {board}, {serial}");
            let is_filled = filled.next_if_eq(&&at).is_some();
            assert_eq!(is_filled, frame[9] == FILLED, "board {board}, {serial}: {:?}", stream.filled);
            assert!(is_filled || *frame == packet(*board, serial)[8..], "board {board}, {serial}");
            packets += u64::from(!is_filled);
        }
    }
    assert_eq!(tally.placed, packets, "{tally:?}");
    assert_eq!(port.blocks.iter().map(|(_, packed)| packed.packets).sum::<u64>(), packets, "{tally:?}");
    streams
}

fn trial() -> impl Strategy<Value = MergingTrial> {
    let missing = prop::sample::select(vec![Missing::Filled, Missing::LeftOut]);
    let frames_of_block = prop::sample::select(vec![1_u64, 10, 40, 48, 64, 100]);
    (any::<u64>(), frames_of_block, 1_usize..70, missing, 1_u64..8).prop_map(
        |(seed, frames_of_block, slots, missing, storing)| MergingTrial {
            seed,
            frames_of_block,
            slots,
            missing,
            storing,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn streams_are_the_same_if_their_blocks_are_copied(trial in trial()) {
        // The ring never fills up.
        let trial = MergingTrial { slots: trial.slots + 400, storing: 1, ..trial };
        let looks = looks(&mut Seed(trial.seed).stream());
        let mut lying = trial.record(&looks, false);
        let mut copied = trial.record(&looks, true);
        prop_assert_eq!(check(&mut lying), check(&mut copied));
        let tallies = [lying, copied].map(|port| format!("{:?}", port.streams.tally()));
        prop_assert_eq!(&tallies[0], &tallies[1]);
    }

    #[test]
    fn a_ring_of_any_size_that_any_lane_empties_gets_each_packet_once(trial in trial()) {
        // The ring has room for the packets by which the recorder gets to know the boards.
        let least = 200_usize.div_ceil(trial.frames_of_block as usize);
        let trial = MergingTrial { slots: least + trial.slots, ..trial };
        let looks = looks(&mut Seed(trial.seed).stream());
        let mut port = trial.record(&looks, false);
        check(&mut port);
        let came = looks.iter().map(|packets| packets.len() as u64).sum::<u64>();
        prop_assert_eq!(port.streams.tally().came(), came);
    }
}

/// The addresses to which the kernel wrote packets, by board and number.
type Written = BTreeMap<(u8, u64), usize>;

/// A look at the port of a board that brings 32 packets.
fn look_at(port: &mut Port, board: u8, first: u64, written: &mut Written) {
    port.now += Nanos(100_000);
    let sender = SenderId(u16::from(board));
    let mut spots = port.streams.spots(port.now, 0, 32, Some(sender));
    assert_eq!(spots.len(), 32, "there is room");
    for (spot, serial) in spots.iter_mut().zip(first..) {
        let packet = packet(board, serial);
        spot.prefix.copy_from_slice(&packet[..8]);
        spot.body.copy_from_slice(&packet[8..]);
        written.insert((board, serial), spot.body.as_ptr().addr());
    }
    port.streams.came(port.now, 0, 32, &[sender; 32]);
    port.streams.tick(port.now);
}

/// Takes and stores the waiting blocks. Returns how many of their packets lie where the kernel wrote them, and
/// how many there are.
fn store_lying(port: &Port, written: &Written) -> [usize; 2] {
    let mut frames = VecDeque::new();
    while port.ring.take(port.now, 0, &mut frames) == Taken::Frames {}
    let mut lying = [0, 0];
    for frame in &frames {
        for bytes in frame.data.chunks_exact(BODY) {
            let serial = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
            let is_there = written.get(&(bytes[8], serial)) == Some(&bytes.as_ptr().addr());
            lying[0] += usize::from(is_there);
            lying[1] += 1;
        }
    }
    port.ring.release(port.now, &mut Vec::from(frames));
    lying
}

#[test]
fn packets_of_senders_with_one_pace_stay_where_the_kernel_wrote_them() {
    let mut port = Port::with_blocks(Box::new(Board::format()), 160, 40, Missing::Filled);
    for board in 0..2 {
        let begin: Vec<_> = (0..40).map(|serial| (u16::from(board), packet(board, serial))).collect();
        port.look(0, &begin);
    }
    let mut written = Written::new();
    let mut lying = [0, 0];
    for at in 0..100 {
        (0..2).for_each(|board| look_at(&mut port, board, 40 + at * 32, &mut written));
        let more = store_lying(&port, &written);
        lying = [lying[0] + more[0], lying[1] + more[1]];
    }
    // One block of ten lies in two slots, and the first few are copied.
    assert!(lying[1] > 6000 && lying[0] * 10 > lying[1] * 8, "{lying:?}");
}
