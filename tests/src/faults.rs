//! Effects of a simulated network on a stream, repeated from the same seed.

use std::collections::BTreeSet;

use nilometer_intake::transport::faults::{Departures, Faults, Leaving};
use nilometer_model::Seed;

/// The packets that the simulated network does not send, of a stream of `packets` packets with `size` bytes
/// each.
pub fn not_sent(packets: u64, faults: Faults, size: usize, seed: Seed) -> BTreeSet<u64> {
    let mut departures = Departures::new(faults, &[size], seed);
    let mut leaving = Vec::new();
    (0..packets).for_each(|_| departures.next(&mut leaving));
    departures.finish(&mut leaving);
    let left: BTreeSet<u64> = leaving
        .iter()
        .filter_map(|left| if let Leaving::Packet(number) = left { Some(*number) } else { None })
        .collect();
    (0..packets).filter(|number| !left.contains(number)).collect()
}
