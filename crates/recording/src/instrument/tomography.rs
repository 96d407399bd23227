//! A projection in tomography: the light that passes a sample, with its shot noise, as a camera records it.

use std::ops::Range;

use nilometer_model::Seed;

use super::{
    noise::{Normal, Poisson},
    scene::{Grid, Scene, row_seed},
};

/// Properties of a pco.edge. Offset and read noise are in counts.
const ELECTRONS_PER_COUNT: f64 = 0.46;
const OFFSET: f64 = 100.0;
const READ_NOISE: f64 = 2.3;
/// Above this mean the scene draws counts as normal numbers, because their skew is below 0.04.
const NORMAL_FROM: f64 = 1000.0;
/// Frames per half turn of the sample.
const PROJECTIONS: f64 = 1500.0;

/// Simulates tomography: a turning sample in front of a camera.
pub(super) struct Tomography {
    grid: Grid,
    seed: Seed,
    electrons: f64,
    normal: Normal,
}

impl Tomography {
    /// Creates the scene with this number of electrons per pixel in the middle of the field, without a sample.
    pub(super) fn new(grid: Grid, seed: Seed, electrons: f64) -> Self {
        Tomography { grid, seed, electrons, normal: Normal::new() }
    }

    /// Returns the transmitted share of light by column, for a turning cylinder with a rod and two holes in it.
    fn transmission(&self, frame: u64) -> Vec<f64> {
        let width = self.grid.width as f64;
        let turn = frame as f64 / PROJECTIONS * std::f64::consts::PI;
        let chord = |x: f64, at: f64, radius: f64| 2.0 * (radius * radius - (x - at).powi(2)).max(0.0).sqrt();
        // Distance from the axis, angle, radius, absorption. Lengths are relative to the width.
        let parts =
            [[0.0, 0.0, 0.4, 1.2], [0.2, 0.5, 0.05, 4.0], [0.25, 2.5, 0.07, -1.2], [0.1, 4.0, 0.1, -1.2]];
        let depth = |x: f64, [from_axis, angle, radius, absorption]: [f64; 4]| {
            absorption * chord(x, from_axis * (turn + angle).cos(), radius)
        };
        let column = |x: usize| {
            let x = x as f64 / width - 0.5;
            (-parts.iter().map(|part| depth(x, *part)).sum::<f64>()).exp()
        };
        (0..self.grid.width).map(column).collect()
    }
}

impl Scene for Tomography {
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]) {
        let transmission = self.transmission(frame);
        let mut values = vec![0; self.grid.width];
        let count_max = f64::from(self.grid.count_max());
        for (row, bytes) in rows.zip(bytes.chunks_exact_mut(self.grid.row_bytes())) {
            let mut stream = row_seed(self.seed, frame, row).stream();
            let from_middle = (row % self.grid.height) as f64 / self.grid.height as f64 - 0.5;
            let light = self.electrons * (1.0 - 0.6 * from_middle * from_middle);
            for (value, share) in values.iter_mut().zip(&transmission) {
                let mean = light * share;
                let electrons = if mean >= NORMAL_FROM {
                    mean + mean.sqrt() * self.normal.draw(&mut stream)
                } else {
                    f64::from(Poisson::new(mean).draw(&mut stream))
                };
                let noise = OFFSET + READ_NOISE * self.normal.draw(&mut stream);
                let counts = noise + electrons / ELECTRONS_PER_COUNT;
                *value = counts.round().clamp(0.0, count_max) as i32;
            }
            self.grid.put(&values, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::PixelType;

    use super::*;

    /// Returns mean and variance of the counts in the first columns, beside the sample.
    fn flat(electrons: f64) -> [f64; 2] {
        let grid = Grid::new(&[400, 1000], PixelType::Uint16);
        let mut bytes = vec![0; 20 * grid.row_bytes()];
        Tomography::new(grid, Seed(1), electrons).rows(0, 190..210, &mut bytes);
        let counts: Vec<f64> = bytes
            .chunks_exact(grid.row_bytes())
            .flat_map(|row| row[..100].chunks_exact(2))
            .map(|pixel| f64::from(u16::from_le_bytes([pixel[0], pixel[1]])))
            .collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        [mean, counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64]
    }

    #[test]
    fn shot_noise_is_that_of_the_electrons() {
        for electrons in [200.0, 5000.0] {
            let [mean, variance] = flat(electrons);
            assert!((mean - 100.0 - electrons / 0.46).abs() < electrons * 0.02, "{mean}");
            let expected = electrons / (0.46 * 0.46) + 2.3 * 2.3;
            assert!((variance / expected - 1.0).abs() < 0.15, "{variance} of {expected}");
        }
    }
}
