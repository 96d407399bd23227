//! A recorder with too little processor time: the kernel drops packets, and its socket is never empty. Each
//! packet received is recorded or counted by its kind, and exactly the packets that the kernel dropped are
//! missing.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::{tests::*, *};
use nilometer_model::Seed;

/// A socket in the kernel. It keeps the next `room` packets of a stream that does not wait, and counts its
/// drops.
struct FullSocket {
    room: usize,
    waiting: VecDeque<(u64, u64)>,
    dropped: u64,
}

impl FullSocket {
    fn come(&mut self, serials: std::ops::Range<u64>) {
        for serial in serials {
            if self.waiting.len() < self.room {
                self.waiting.push_back((serial, self.dropped));
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Takes some, with the count of dropped packets that stands at the last of them.
    fn take(&mut self, count: usize) -> (Vec<u64>, u64) {
        let taken: Vec<_> = self.waiting.drain(..count.min(self.waiting.len())).collect();
        let dropped = taken.last().map_or(0, |(_, dropped)| *dropped);
        (taken.into_iter().map(|(serial, _)| serial).collect(), dropped)
    }
}

proptest! {
    #[test]
    fn no_packet_of_the_only_sender_is_refused_under_overload(
        seed: u64, room in 20_usize..400, share in 2_u64..60, left_out: bool,
    ) {
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        let mut lab = Lab::new(1, 200, SMALL, missing);
        let mut random = Seed(seed).stream();
        let mut socket = FullSocket { room, waiting: VecDeque::new(), dropped: 0 };
        lab.receive(&(0..50).collect::<Vec<_>>(), 9);
        let (mut next, mut reported, mut taken_all) = (50, 0, 50);
        for _ in 0..300 {
            // Throttled for a while, in which many come; then it takes a few of them.
            let come = 1 + random.below(2000);
            socket.come(next..next + come);
            next += come;
            let (taken, dropped) = socket.take(1 + random.below(come.div_ceil(share)) as usize);
            taken_all += taken.len() as u64;
            lab.receive_behind(&taken, dropped - reported);
            reported = dropped;
            lab.drain();
        }
        let last = socket.waiting.front().map_or(next, |(serial, _)| *serial);
        for _ in 0..3 {
            lab.now += SMALL.quiet;
            lab.receive(&[], 9);
        }
        lab.end();
        let tally = lab.assembly.tally();
        prop_assert_eq!((tally.stray, tally.late, tally.duplicates), (0, 0, 0), "{:?}", tally);
        prop_assert_eq!(tally.placed, taken_all, "{:?}", tally);
        prop_assert_eq!((tally.jumps, tally.restarts), (0, 0), "{:?}", tally);
        prop_assert!(tally.lost() <= last - taken_all, "{:?}", tally);
        let came = lab.out.iter().filter(|(_, mark)| *mark == 1).count() as u64;
        prop_assert_eq!(came, taken_all);
    }

    /// The network card or a switch dropped packets: the kernel's socket knows nothing of them, and is never empty.
    #[test]
    fn losses_that_the_socket_does_not_count_are_believed_when_the_memory_for_others_is_full(seed: u64) {
        let mut lab = Lab::new(1, 200, SMALL, Missing::LeftOut);
        let bound = CandidateBound::of(Bytes(0), Bytes(16));
        lab.assembly.candidates = Candidates::within(bound);
        let mut random = Seed(seed).stream();
        lab.receive(&(0..50).collect::<Vec<_>>(), 9);
        let (mut next, mut taken) = (50, 50);
        for _ in 0..400 {
            next += 100 + random.below(2000);
            let count = 10 + random.below(80);
            lab.receive_behind(&(next..next + count).collect::<Vec<_>>(), 0);
            (next, taken) = (next + count, taken + count);
            lab.drain();
        }
        for _ in 0..100 {
            lab.now += SMALL.quiet;
            lab.receive(&[], 9);
        }
        lab.end();
        let tally = lab.assembly.tally();
        prop_assert_eq!((tally.placed, tally.stray, tally.refused), (taken, 0, 0), "{:?}", tally);
    }
}
