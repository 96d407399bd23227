//! The assembly's treatment of packets from another sender, with the format and from the address of the
//! stream.

use proptest::prelude::*;

use super::{tests::*, *};
use nilometer_model::{RandomStream, Seed};

/// Minimum distance from the stream, so that none of them takes the place of one of its packets.
const FAR: u64 = 200;

/// Makes at most `most` packets with consecutive numbers, far from the stream.
fn forged(stream: &mut RandomStream, at: u64, most: u64) -> Vec<u64> {
    let far = match stream.below(4) {
        0 => at + FAR + stream.below(1000),
        1 => at + FAR + stream.below(100_000),
        2 => at + (1 << 30) + stream.below(1 << 20),
        _ => at.saturating_sub(FAR + stream.below(1000)),
    };
    let back = at.saturating_sub(FAR + most);
    let begin = if far < at { far.min(back) } else { far };
    (begin..begin + 1 + stream.below(most)).collect()
}

/// Sends a stream from this number on in small batches, with forged packets between. Returns the number of
/// forged packets.
fn mixed(lab: &mut Lab, stream: &mut RandomStream, numbers: std::ops::Range<u64>, most: u64) -> u64 {
    let (mut sent, mut at) = (0, numbers.start);
    while at < numbers.end {
        let end = (at + 1 + stream.below(9)).min(numbers.end);
        let mut batch: Vec<u64> = (at..end).collect();
        if stream.below(3) == 0 {
            let forged = forged(stream, at, most);
            sent += forged.len() as u64;
            let place = stream.below(batch.len() as u64 + 1) as usize;
            batch.splice(place..place, forged);
        }
        lab.receive(&batch, stream.below(20) as usize);
        lab.drain();
        at = end;
    }
    sent
}

/// Sends enough packets to establish the stream.
fn begin(lab: &mut Lab, from: u64) -> u64 {
    for at in (from..from + 50).step_by(5) {
        lab.receive(&(at..at + 5).collect::<Vec<_>>(), 9);
        lab.drain();
    }
    from + 50
}

proptest! {
    #[test]
    fn no_packet_is_lost_to_forged_ones_and_nothing_is_claimed(
        seed: u64, parts in 1_usize..4, left_out: bool, slots in 6_usize..20,
    ) {
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        let mut lab = Lab::new(parts, slots, SMALL, missing);
        let (first, mut stream) = (3000 * parts as u64, Seed(seed).stream());
        let at = begin(&mut lab, first);
        let end = (at + 500).next_multiple_of(parts as u64);
        let sent = mixed(&mut lab, &mut stream, at..end, 40);
        // Without further packets the last ones remain ambiguous.
        lab.receive(&(end..end + 6).collect::<Vec<_>>(), 9);
        lab.end();
        prop_assert_eq!(&lab.out, &came(first..end + 6));
        let tally = lab.assembly.tally();
        prop_assert_eq!((tally.lost(), tally.refused, tally.jumps, tally.restarts), (0, 0, 0, 0), "{:?}", tally);
        prop_assert_eq!(tally.stray + tally.late + tally.duplicates, sent, "{:?}", tally);
    }

    #[test]
    fn a_restart_is_followed_among_forged_packets_and_none_is_lost(
        seed: u64, left_out: bool, to in prop::sample::select(vec![100, 500_000, 1 << 24]),
    ) {
        let missing = if left_out { Missing::LeftOut } else { Missing::Filled };
        let mut lab = Lab::new(1, 80, SMALL, missing);
        let mut stream = Seed(seed).stream();
        let at = begin(&mut lab, 3000);
        mixed(&mut lab, &mut stream, at..at + 200, 2);
        mixed(&mut lab, &mut stream, to..to + 400, 2);
        lab.end();
        prop_assert_eq!(&lab.out, &came((3000..at + 200).chain(to..to + 400)));
        let tally = lab.assembly.tally();
        prop_assert_eq!((tally.restarts + tally.jumps, tally.lost(), tally.refused), (1, 0, 0), "{:?}", tally);
    }
}

#[test]
fn numbers_that_go_on_elsewhere_are_believed_when_nothing_comes_where_they_were() {
    let mut lab = Lab::new(1, 20, SMALL, Missing::Filled);
    let at = begin(&mut lab, 1000);
    lab.receive(&(70_000..70_010).collect::<Vec<_>>(), 9);
    assert_eq!((lab.assembly.tally().placed, lab.assembly.of_stream()), (50, 60));
    // A look that leaves packets in the kernel says nothing about them.
    lab.assembly.tick(lab.now + SMALL.patience + SMALL.patience);
    assert_eq!((lab.assembly.tally().placed, lab.assembly.of_stream()), (50, 60));
    lab.now += SMALL.quiet;
    lab.receive(&[], 9);
    lab.receive(&[], 9);
    assert_eq!((lab.assembly.tally().placed, lab.assembly.tally().jumps), (60, 1));
    lab.receive(&[at, 70_010], 9);
    lab.end();
    assert_eq!(lab.out, came((1000..at).chain(70_000..70_011)));
    assert_eq!((lab.assembly.tally().stray, lab.assembly.tally().lost()), (1, 0));
}

#[test]
fn two_packets_of_an_instrument_that_is_slow_are_believed_after_a_while() {
    let mut lab = Lab::new(1, 20, SMALL, Missing::Filled);
    begin(&mut lab, 1000);
    for serial in [5, 6] {
        lab.now += SMALL.patience + SMALL.patience;
        lab.receive(&[serial], 9);
    }
    lab.now += SMALL.patience;
    lab.receive(&[], 9);
    assert_eq!((lab.assembly.tally().placed, lab.assembly.tally().restarts), (52, 1));
}

#[test]
fn a_loss_as_long_as_the_time_allows_is_none_of_numbers_that_were_set_anew() {
    let limits = ReorderWindow { gap: 10, ..SMALL };
    for (waited, jumps) in [(300, 0), (2, 1)] {
        let mut lab = Lab::new(1, 40, limits, Missing::Filled);
        let at = begin(&mut lab, 1000);
        lab.receive(&[], 9);
        lab.now += Nanos(waited);
        lab.receive(&(at + 800..at + 820).collect::<Vec<_>>(), 9);
        lab.end();
        let tally = lab.assembly.tally();
        assert_eq!((tally.jumps, tally.lost()), (jumps, if jumps == 0 { 800 } else { 0 }), "{tally:?}");
        assert_eq!(lab.out, came((1000..at).chain(at + 800..at + 820)), "too much to be filled");
        assert_eq!(lab.noted, tally.missing);
    }
}

#[test]
fn filling_never_takes_the_slots_that_packets_need() {
    let limits = ReorderWindow { gap: 10_000, ..SMALL };
    let mut lab = Lab::new(1, 12, limits, Missing::Filled);
    let at = begin(&mut lab, 1000);
    // No lane takes blocks here, and filling the many missing packets would take all free slots.
    lab.receive(&(at + 90..at + 120).collect::<Vec<_>>(), 9);
    lab.now += SMALL.patience;
    lab.receive(&[], 9);
    lab.receive(&(at + 120..at + 130).collect::<Vec<_>>(), 9);
    assert_eq!(lab.assembly.tally().refused, 0);
    lab.end();
    assert_eq!(lab.out, came((1000..at).chain(at + 90..at + 130)));
    assert_eq!((lab.assembly.tally().missing, lab.noted), (90, 90), "it is left out, and a gap says so");
}
