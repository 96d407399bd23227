//! Signal of a radio telescope: Gaussian noise, two bits per sample, offset binary, the first sample in the
//! lowest bits.

use std::ops::Range;

use nilometer_model::{RandomStream, Seed};

use super::scene::{Grid, Scene, row_seed};

/// Probability of the two outer values together, in 1/65536: 2 x 16.35 %, for a threshold at 0.98 deviations.
const OUTER: u32 = 21_430;

/// Simulates a radio telescope: noise with two bits per sample.
pub(super) struct Vlbi {
    grid: Grid,
    seed: Seed,
}

impl Vlbi {
    pub(super) fn new(grid: Grid, seed: Seed) -> Self {
        Vlbi { grid, seed }
    }
}

impl Scene for Vlbi {
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]) {
        for (row, bytes) in rows.zip(bytes.chunks_exact_mut(self.grid.row_bytes())) {
            let mut stream = row_seed(self.seed, frame, row).stream();
            for samples in bytes.chunks_mut(16) {
                samples.copy_from_slice(&sixty_four(&mut stream).to_le_bytes()[..samples.len()]);
            }
        }
    }
}

/// Returns 64 samples.
fn sixty_four(stream: &mut RandomStream) -> u128 {
    let positive = stream.next();
    let outer = with_probability(OUTER, stream);
    // Values 0 to 3: far below, below, above, far above the mean.
    let low = !(positive ^ outer);
    spread(low) | spread(positive) << 1
}

/// Returns bits that are each set with probability `share` / 65536.
///
/// Combines one random word for each binary digit of `share`, from the lowest: "or" halves the distance to 1,
/// "and" halves the probability.
fn with_probability(share: u32, stream: &mut RandomStream) -> u64 {
    (0..16).fold(0, |bits, digit| {
        let random = stream.next();
        if share >> digit & 1 == 1 { bits | random } else { bits & random }
    })
}

/// Moves bit `n` to bit `2 n`.
fn spread(bits: u64) -> u128 {
    let step = |bits: u128, by: u32, mask: u128| (bits | bits << by) & mask;
    let bits = step(u128::from(bits), 32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff);
    let bits = step(bits, 16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff);
    let bits = step(bits, 8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff);
    let bits = step(bits, 4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f);
    let bits = step(bits, 2, 0x3333_3333_3333_3333_3333_3333_3333_3333);
    step(bits, 1, 0x5555_5555_5555_5555_5555_5555_5555_5555)
}

#[cfg(test)]
mod tests {
    use nilometer_model::PixelType;

    use super::*;

    #[test]
    fn values_are_as_often_as_those_of_quantised_noise() {
        let grid = Grid::new(&[100, 8001], PixelType::Uint8);
        let mut bytes = vec![0; grid.frame_bytes()];
        Vlbi::new(grid, Seed(1)).rows(0, 0..100, &mut bytes);
        let mut counts = [0_u32; 4];
        for byte in &bytes {
            (0..4).for_each(|sample| counts[usize::from(byte >> (2 * sample) & 3)] += 1);
        }
        for (count, expected) in counts.into_iter().zip([0.1635, 0.3365, 0.3365, 0.1635]) {
            let share = f64::from(count) / (4.0 * bytes.len() as f64);
            assert!((share - expected).abs() < 0.001, "{counts:?}");
        }
    }

    #[test]
    fn bits_are_spread() {
        assert_eq!(spread(u64::MAX), 0x5555_5555_5555_5555_5555_5555_5555_5555);
        assert_eq!(spread(1 << 63 | 0b101), 1 << 126 | 0b01_0001);
    }
}
