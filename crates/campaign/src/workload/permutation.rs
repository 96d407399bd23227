//! Numbers below a bound, each once, in random order, without a list of them. A keyed Feistel network over the
//! next power of two is applied again until the result falls below the bound. Source: Black and Rogaway,
//! "Ciphers with arbitrary finite domains", CT-RSA 2002, section 4: cycle walking.

use nilometer_model::Seed;

const ROUNDS: usize = 6;

/// A permutation of the numbers below a bound.
#[derive(Debug, Clone)]
pub struct Permutation {
    bound: u64,
    /// Bits of the left half, which is never the larger one.
    left: u32,
    /// Bits of the right half.
    right: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// One of the permutations of the numbers below `bound`, which is at least 1.
    pub fn new(bound: u64, seed: Seed) -> Self {
        assert!(bound > 0, "a file has at least one block");
        let bits = (u64::BITS - (bound - 1).leading_zeros()).max(2);
        let mut stream = seed.stream();
        Permutation {
            bound,
            left: bits / 2,
            right: bits - bits / 2,
            keys: [(); ROUNDS].map(|()| stream.next()),
        }
    }

    /// The number that this number maps to. Takes less than two steps on average: the power of two is less than
    /// twice the bound.
    #[inline]
    pub fn at(&self, number: u64) -> u64 {
        debug_assert!(number < self.bound, "only numbers below the bound are permuted");
        let mut place = self.step(number);
        while place >= self.bound {
            place = self.step(place);
        }
        place
    }

    /// Each round adds something of one half to the other, so each can be undone.
    #[inline]
    fn step(&self, number: u64) -> u64 {
        let mut high = number >> self.right;
        let mut low = number & mask(self.right);
        for pair in self.keys.chunks_exact(2) {
            high ^= blend(low, pair[0]) & mask(self.left);
            low ^= blend(high, pair[1]) & mask(self.right);
        }
        high << self.right | low
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The finalizer of `MurmurHash3`, cut short after its first multiplication and turned. The caller uses the low
/// bits, which by then depend on all bits.
#[inline]
const fn blend(half: u64, key: u64) -> u64 {
    let mixed = (half ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bound: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::new(bound, Seed(seed));
        (0..bound).map(|number| permutation.at(number)).collect()
    }

    #[test]
    fn every_number_comes_once_whatever_bound_and_key() {
        let bounds = (1..=70).chain([127, 128, 129, 1000, 4095, 4096, 4097, 65_537, 100_003]);
        for bound in bounds {
            for seed in [0, 1, 77, u64::MAX] {
                let mut all = numbers(bound, seed);
                all.sort_unstable();
                assert!(all.iter().copied().eq(0..bound), "no permutation of {bound} with seed {seed}");
            }
        }
    }

    #[test]
    fn the_largest_bound_stays_inside_and_different_numbers_stay_different() {
        let bound = u64::MAX / 2 + 12_345;
        let permutation = Permutation::new(bound, Seed(5));
        let mut all: Vec<_> = (0..1000).chain(bound - 1000..bound).map(|at| permutation.at(at)).collect();
        assert!(all.iter().all(|&place| place < bound));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
    }

    #[test]
    fn keys_give_other_orders() {
        assert_ne!(numbers(1000, 1), numbers(1000, 2));
        assert_eq!(numbers(1000, 1), numbers(1000, 1));
    }

    /// Tests steps between neighbours, and positions by eighths, against independent numbers. Chi squared with
    /// 7 degrees of freedom is above 29.9 once in ten thousand times.
    #[test]
    fn the_order_looks_random() {
        const BOUND: u64 = 32_768;
        for seed in 0..20 {
            let all = numbers(BOUND, seed);
            let steps: Vec<u64> = all.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) % BOUND).collect();
            let early = &all[..8000];
            let odd: Vec<u64> = all.iter().map(|place| place % 8 * (BOUND / 8)).take(8000).collect();
            for (what, values) in [("steps", &steps[..8000]), ("places", early), ("low bits", &odd)] {
                let mut counts = [0_f64; 8];
                for value in values {
                    counts[(value * 8 / BOUND) as usize] += 1.0;
                }
                let expected = values.len() as f64 / 8.0;
                let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
                assert!(chi < 29.9, "{what} of seed {seed} are not spread evenly: chi squared {chi}");
            }
            let near = steps.iter().filter(|&&step| step <= 64 || step >= BOUND - 64).count() as f64;
            let share = near / steps.len() as f64;
            assert!((0.002..0.007).contains(&share), "{share} of the steps are short, 0.0039 expected");
        }
    }
}
