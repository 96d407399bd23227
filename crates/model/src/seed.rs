//! The source of every random decision, so that you can repeat, resume and extend a campaign.
//!
//! A [`Seed`] is a hash of its purpose (cell, repeat, rank, worker, use). A [`RandomStream`] is xoshiro256**
//! seeded through SplitMix64, as its authors recommend (Blackman and Vigna, "Scrambled linear pseudorandom
//! number generators", 2021, section 6).
//!
//! Test vectors fix both, so that a record stays repeatable when a library changes.

use serde::{Deserialize, Serialize};

/// The root of random streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of one part. The same parts in the same order give the same seed.
    #[must_use]
    pub fn part(self, number: u64) -> Seed {
        Seed(mix(self.0 ^ mix(number.wrapping_add(GOLDEN))))
    }

    /// The seed of a named part: FNV-1a of the name (64 bit), mixed in.
    #[must_use]
    pub fn named(self, name: &str) -> Seed {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.part(hash)
    }

    /// The stream of numbers from this seed.
    pub fn stream(self) -> RandomStream {
        let mut state = self.0;
        let mut next = || {
            state = state.wrapping_add(GOLDEN);
            mix(state)
        };
        RandomStream { state: [next(), next(), next(), next()] }
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// xoshiro256**.
#[derive(Debug, Clone)]
pub struct RandomStream {
    state: [u64; 4],
}

impl RandomStream {
    /// The next 64 random bits.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a stream never ends: an Option at each call would be noise"
    )]
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `bound`, by multiplication (bias below 2^-32 for bounds below 2^32). `bound` must be
    /// above zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `bytes` with random bytes, and drops the rest of the last word.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.next().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        // Seed 1234567, from the reference implementation splitmix64.c.
        let mut state = 1_234_567_u64;
        let numbers: Vec<u64> = (0..3)
            .map(|_| {
                state = state.wrapping_add(GOLDEN);
                mix(state)
            })
            .collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn xoshiro256_gives_the_published_numbers() {
        // State 1, 2, 3, 4, from the reference implementation xoshiro256starstar.c.
        let mut stream = RandomStream { state: [1, 2, 3, 4] };
        let numbers: Vec<u64> = (0..4).map(|_| stream.next()).collect();
        assert_eq!(numbers, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn parts_differ_and_order_matters() {
        let root = Seed(7);
        assert_ne!(root.part(1).part(2), root.part(2).part(1));
        assert_ne!(root.named("write"), root.named("read"));
        assert_eq!(root.named("write").part(3), root.named("write").part(3));
        assert_eq!(root.named("a"), root.part(0xaf63_dc4c_8601_ec8c));
    }
}
