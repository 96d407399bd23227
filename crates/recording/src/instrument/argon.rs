//! Waveforms of a liquid-argon detector.
//!
//! Each wire has a pedestal, noise of its own and noise common to the wires of a board. Straight tracks add a
//! pulse to each wire that they pass.

use std::ops::Range;

use nilometer_model::{RandomStream, Seed};

use super::{
    noise::Normal,
    scene::{Grid, Scene, place, row_seed},
};

/// Wires that share noise.
const BOARD: usize = 16;
/// Deviation of the common noise, relative to a wire's own.
const COMMON: f64 = 0.4;
const TRACKS: usize = 6;
/// Shape of a pulse: deviation in samples, and median height in counts.
const PULSE: f64 = 5.0;
const HEIGHT: f64 = 120.0;
/// The converters have 12 bits.
const COUNT_MAX: i32 = 0xfff;

/// Simulates a liquid-argon detector: pedestals, noise and tracks.
pub(super) struct Argon {
    grid: Grid,
    seed: Seed,
    noise: f64,
    normal: Normal,
}

/// Path of a particle through the chamber.
struct Track {
    /// Sample at which the particle passes the first wire, and delay in samples for each further wire.
    start: f64,
    slope: f64,
    height: f64,
}

impl Argon {
    /// Creates the scene with this noise, in counts.
    pub(super) fn new(grid: Grid, seed: Seed, noise: f64) -> Self {
        Argon { grid, seed, noise, normal: Normal::new() }
    }

    fn tracks(&self, frame: u64) -> Vec<Track> {
        let mut stream = self.seed.part(frame).named("tracks").stream();
        let samples = self.grid.width as f64;
        let wires = self.grid.height as f64;
        let track = |stream: &mut RandomStream| Track {
            start: stream.unit() * samples,
            slope: (stream.unit() - 0.5) * 2.0 * samples / wires,
            height: HEIGHT * (0.5 * self.normal.draw(stream)).exp(),
        };
        (0..TRACKS).map(|_| track(&mut stream)).collect()
    }

    /// Draws the noise common to the wires of a board.
    fn common(&self, frame: u64, board: usize, common: &mut [f64]) {
        let mut stream = self.seed.part(frame).named("board").part(board as u64).stream();
        let deviation = COMMON * self.noise;
        for sample in common {
            *sample = deviation * self.normal.draw(&mut stream);
        }
    }

    /// Returns pedestal and noise of a wire, the same in all frames.
    fn wire(&self, row: usize) -> [f64; 2] {
        let mut stream = self.seed.named("wire").part(row as u64).stream();
        [400.0 + 20.0 * self.normal.draw(&mut stream), self.noise * (0.8 + 0.4 * stream.unit())]
    }

    fn waveform(&self, row: usize, tracks: &[Track], common: &[f64], stream: &mut RandomStream) -> Vec<f64> {
        let [pedestal, noise] = self.wire(row);
        let mut samples: Vec<f64> =
            common.iter().map(|common| pedestal + common + noise * self.normal.draw(stream)).collect();
        let wire = (row % self.grid.height) as f64;
        for track in tracks {
            track.add(wire, &mut samples);
        }
        samples
    }
}

impl Track {
    fn add(&self, wire: f64, samples: &mut [f64]) {
        let at = self.start + self.slope * wire;
        let first = place(at - 4.0 * PULSE);
        let end = place(at + 4.0 * PULSE).min(samples.len());
        for (time, sample) in samples[..end].iter_mut().enumerate().skip(first) {
            *sample += self.height * (-0.5 * ((time as f64 - at) / PULSE).powi(2)).exp();
        }
    }
}

impl Scene for Argon {
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]) {
        let tracks = self.tracks(frame);
        let mut common = vec![0.0; self.grid.width];
        let mut board = None;
        let mut values = vec![0; self.grid.width];
        let count_max = COUNT_MAX.min(self.grid.count_max());
        for (row, bytes) in rows.zip(bytes.chunks_exact_mut(self.grid.row_bytes())) {
            if board.replace(row / BOARD) != Some(row / BOARD) {
                self.common(frame, row / BOARD, &mut common);
            }
            let mut stream = row_seed(self.seed, frame, row).stream();
            let samples = self.waveform(row, &tracks, &common, &mut stream);
            for (value, sample) in values.iter_mut().zip(samples) {
                *value = sample.round().clamp(0.0, f64::from(count_max)) as i32;
            }
            self.grid.put(&values, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::PixelType;

    use super::*;

    fn waveforms(noise: f64) -> Vec<Vec<f64>> {
        let grid = Grid::new(&[64, 10_000], PixelType::Uint16);
        let mut bytes = vec![0; grid.frame_bytes()];
        Argon::new(grid, Seed(1), noise).rows(2, 0..64, &mut bytes);
        let sample = |bytes: &[u8]| f64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        bytes.chunks_exact(grid.row_bytes()).map(|row| row.chunks_exact(2).map(sample).collect()).collect()
    }

    /// Correlates differences of neighbouring samples, in which pedestals and pulses hardly show.
    fn correlation(one: &[f64], other: &[f64]) -> f64 {
        let steps = |samples: &[f64]| samples.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        let (one, other) = (steps(one), steps(other));
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        dot(&one, &other) / (dot(&one, &one) * dot(&other, &other)).sqrt()
    }

    #[test]
    fn wires_of_a_board_share_noise_and_others_do_not() {
        let wires = waveforms(10.0);
        let expected = COMMON * COMMON / (1.0 + COMMON * COMMON);
        assert!((correlation(&wires[0], &wires[15]) - expected).abs() < 0.08);
        assert!(correlation(&wires[15], &wires[16]).abs() < 0.05);
    }

    #[test]
    fn a_track_passes_the_wires_in_turn() {
        let wires = waveforms(1.0);
        let seen = |wire: &Vec<f64>| {
            let mut sorted = wire.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() - 1] - sorted[sorted.len() / 2] > 30.0
        };
        assert!(wires.iter().filter(|wire| seen(wire)).count() > 32);
    }
}
