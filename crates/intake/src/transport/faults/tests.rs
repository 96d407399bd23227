//! Counts the packets that leave once more, from the departures alone, as a receiver would.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const SIZES: [usize; 2] = [5016, 5008];

fn departed(faults: Faults, packets: u64, seed: u64) -> (Vec<Leaving>, FaultCounts) {
    let (mut departures, mut leaving) = (Departures::new(faults, &SIZES, Seed(seed)), Vec::new());
    for _ in 0..packets {
        departures.next(&mut leaving);
    }
    departures.finish(&mut leaving);
    (leaving, departures.counts())
}

/// The counts that follow from the departures alone.
fn recounted(leaving: &[Leaving], due: u64) -> FaultCounts {
    let (mut seen, mut odd, mut above) = (BTreeMap::<u64, u64>::new(), BTreeSet::new(), 0);
    let mut counts = FaultCounts { due, ..FaultCounts::default() };
    for &left in leaving {
        match left {
            Leaving::Foreign(number) => {
                assert_eq!(number, counts.foreign);
                counts.foreign += 1;
            }
            Leaving::Odd(number, size) => {
                let should = SIZES[(number % 2) as usize];
                assert!(!SIZES.contains(&size) && size <= should + LONGER_MAX, "{size}");
                assert!(odd.insert(number));
            }
            Leaving::Packet(number) => {
                let copies = seen.entry(number).or_default();
                *copies += 1;
                counts.reordered += u64::from(*copies == 1 && number < above);
                above = above.max(number + 1);
            }
        }
    }
    assert!(odd.iter().all(|number| !seen.contains_key(number)), "either as it should be, or not");
    let missing: Vec<u64> =
        (0..due).filter(|number| !seen.contains_key(number) && !odd.contains(number)).collect();
    let begins =
        missing.iter().filter(|&&number| number == 0 || missing.binary_search(&(number - 1)).is_err());
    FaultCounts {
        left: seen.len() as u64,
        odd: odd.len() as u64,
        lost: missing.len() as u64,
        losses: begins.count() as u64,
        duplicated: seen.values().map(|copies| copies - 1).sum(),
        ..counts
    }
}

fn any_faults() -> impl Strategy<Value = Faults> {
    let share = || prop_oneof![Just(0.0), 0.0..=1.0];
    let shares = (share(), share(), share(), share(), 0.0..2.5);
    (shares, 1..20_u64, 1..20_u64).prop_map(
        |((loss, reorder, duplicate, odd, foreign), loss_burst, distance)| Faults {
            loss,
            loss_burst,
            reorder,
            distance,
            duplicate,
            odd,
            foreign,
        },
    )
}

proptest! {
    #[test]
    fn what_is_told_is_what_left(faults in any_faults(), packets in 0..400_u64, seed: u64) {
        let (leaving, counts) = departed(faults, packets, seed);
        prop_assert_eq!(counts, recounted(&leaving, packets));
        prop_assert_eq!(counts.left + counts.lost + counts.odd, packets);
        prop_assert_eq!(departed(faults, packets, seed).0, leaving);
    }

    #[test]
    fn one_kind_leaves_the_others_alone(faults in any_faults(), seed: u64) {
        let duplicates = |faults| {
            let (leaving, _) = departed(faults, 300, seed);
            let mut numbers: Vec<_> = leaving.iter().filter_map(|left| match left {
                Leaving::Packet(number) => Some(*number),
                _ => None,
            }).collect();
            numbers.sort_unstable();
            numbers.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect::<Vec<_>>()
        };
        let alone = Faults { duplicate: faults.duplicate, ..Faults::default() };
        let with_reordering = Faults { reorder: faults.reorder, distance: faults.distance, ..alone };
        prop_assert_eq!(duplicates(with_reordering), duplicates(alone));
    }
}

#[test]
fn without_faults_packets_leave_one_after_the_other() {
    let (leaving, counts) = departed(Faults::default(), 5, 1);
    assert_eq!(leaving, [0, 1, 2, 3, 4].map(Leaving::Packet));
    assert_eq!(counts, FaultCounts { due: 5, left: 5, ..FaultCounts::default() });
}

#[test]
fn a_packet_that_leaves_later_is_overtaken_by_so_many() {
    // Each packet is held back, so that each leaves right after the one that is `distance` later.
    let all = Faults { reorder: 1.0, distance: 3, ..Faults::default() };
    let (leaving, counts) = departed(all, 6, 1);
    assert_eq!(leaving, [0, 1, 2, 3, 4, 5].map(Leaving::Packet), "all are as late");
    assert_eq!(counts.reordered, 0);
    let some = Faults { reorder: 0.05, distance: 3, ..Faults::default() };
    let (leaving, counts) = departed(some, 1000, 4);
    let at = |number| leaving.iter().position(|&left| left == Leaving::Packet(number)).expect("it left");
    let alone = |number: u64| {
        (number.saturating_sub(7)..number + 7).filter(|&near| near < 1000 && at(near) as u64 != near)
    };
    let late = (10..990).filter(|&number| at(number) as u64 == number + 3).count();
    assert!(late > 20 && counts.reordered > 20, "{late} of {counts:?}");
    assert!((0..1000).all(|number| at(number) as u64 == number || alone(number).count() >= 1));
}

#[test]
fn shares_are_met_and_losses_have_their_length() {
    let faults =
        Faults { loss: 0.02, reorder: 0.03, duplicate: 0.04, odd: 0.05, foreign: 1.25, ..Faults::default() };
    let packets = 200_000;
    for loss_burst in [1, 50] {
        let counts = departed(Faults { loss_burst, ..faults }, packets, 9).1;
        let share = |count: u64| count as f64 / packets as f64;
        // Four deviations; losses of 50 are fewer.
        let near = |found: f64, wanted: f64, times: f64| {
            let deviation = (wanted * times / packets as f64).sqrt();
            assert!((found - wanted).abs() < 4.0 * deviation, "{found} of {wanted} in {counts:?}");
        };
        near(share(counts.lost), 0.02, loss_burst as f64);
        near(share(counts.odd), 0.05 * 0.98, 1.0);
        near(share(counts.duplicated), 0.04 * 0.98 * 0.95, 1.0);
        near(share(counts.foreign), 1.25, 1.0);
        let length = counts.lost as f64 / counts.losses as f64;
        // Two in a row look like one.
        let expected = loss_burst as f64 / (1.0 - 0.02 / (loss_burst as f64 * 0.98 + 0.02));
        assert!((length / expected - 1.0).abs() < 0.03, "{length} instead of {expected}");
    }
    let nothing = departed(Faults { loss: 1.0, loss_burst: 7, ..Faults::default() }, 1000, 1);
    assert!(nothing.0.is_empty());
}
