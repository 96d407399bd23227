//! A diffraction frame.
//!
//! It shows photons of a background that falls off from the centre, powder rings, and spots of a crystal. It
//! has gaps between the detector's modules, and hot or dead pixels.

use std::ops::Range;

use nilometer_model::{RandomStream, Seed};

use super::{
    noise::{Normal, Poisson},
    scene::{Grid, Scene, place, row_seed},
};

/// Values of gaps and of hot or dead pixels, as a Pilatus writes them. If the pixel type has no sign, the
/// values become its greatest and the one below, as an EIGER writes them.
const GAP: i32 = -1;
const BAD: i32 = -2;
/// Some 400 spots on the 4.5 million pixels of an EIGER 4M.
const PIXELS_PER_SPOT: usize = 11_000;
const PIXELS_PER_BAD: usize = 50_000;
/// Height of a spot's peak: its median, and the deviation of its logarithm.
const PEAK: f64 = 100.0;
const PEAK_SPREAD: f64 = 1.0;
/// A spot has no photons farther from its centre than this number of widths.
const REACH: f64 = 4.0;

/// Layout of a detector's modules: their pixels and the gaps between them, along rows and across.
#[derive(Debug, Clone, Copy)]
struct Modules {
    width: usize,
    height: usize,
    gap_x: usize,
    gap_y: usize,
}

/// Modules of EIGER, EIGER2 and Pilatus.
const MODULES: [Modules; 3] = [
    Modules { width: 1030, height: 514, gap_x: 10, gap_y: 37 },
    Modules { width: 1028, height: 512, gap_x: 12, gap_y: 38 },
    Modules { width: 487, height: 195, gap_x: 7, gap_y: 17 },
];

impl Modules {
    /// Returns the modules that fill the frame without a remainder, or else the first.
    fn of(grid: Grid) -> Self {
        let fills = |length: usize, module: usize, gap: usize| (length + gap).is_multiple_of(module + gap);
        let fit = MODULES.into_iter().find(|modules| {
            fills(grid.width, modules.width, modules.gap_x)
                && fills(grid.height, modules.height, modules.gap_y)
        });
        fit.unwrap_or(MODULES[0])
    }

    fn is_gap_row(self, y: usize) -> bool {
        y % (self.height + self.gap_y) >= self.height
    }

    fn is_gap_column(self, x: usize) -> bool {
        x % (self.width + self.gap_x) >= self.width
    }
}

/// Simulates a diffraction experiment: background, rings, spots, gaps and bad pixels.
pub(super) struct Diffraction {
    grid: Grid,
    seed: Seed,
    modules: Modules,
    /// Background by distance from the centre in pixels.
    background: Vec<Poisson>,
    /// Row and column of hot or dead pixels, sorted by row.
    bad: Vec<(usize, usize)>,
}

/// A reflection, with its position on the frame.
struct Spot {
    x: f64,
    y: f64,
    width: f64,
    peak: f64,
}

impl Diffraction {
    /// Creates the scene with a mean of `photons` per pixel in the background and rings.
    pub(super) fn new(grid: Grid, seed: Seed, photons: f64) -> Self {
        let mut stream = seed.named("bad pixels").stream();
        let mut bad: Vec<_> = (0..grid.rows * grid.width / PIXELS_PER_BAD)
            .map(|_| (stream.below(grid.rows as u64) as usize, stream.below(grid.width as u64) as usize))
            .collect();
        bad.sort_unstable();
        let relative = profile(grid);
        let mean = mean_over_frame(grid, &relative);
        let background = relative.iter().map(|share| Poisson::new(photons * share / mean)).collect();
        Diffraction { grid, seed, modules: Modules::of(grid), background, bad }
    }

    fn spots(&self, frame: u64) -> Vec<Spot> {
        let normal = Normal::new();
        let mut stream = self.seed.part(frame).named("spots").stream();
        let count = self.grid.rows * self.grid.width / PIXELS_PER_SPOT;
        (0..count).map(|_| Spot::random(self.grid, &normal, &mut stream)).collect()
    }

    fn row(&self, spots: &[Spot], stream: &mut RandomStream, row: usize, values: &mut [i32]) {
        let y = row % self.grid.height;
        if self.modules.is_gap_row(y) {
            values.fill(GAP);
            return;
        }
        let [centre_y, centre_x] = centre(self.grid);
        for (x, value) in values.iter_mut().enumerate() {
            let distance = distance(x as f32 - centre_x, y as f32 - centre_y);
            *value = self.background[distance].draw(stream);
        }
        for spot in spots {
            spot.add(row, values, stream);
        }
        for (x, value) in values.iter_mut().enumerate() {
            *value = if self.modules.is_gap_column(x) { GAP } else { (*value).min(self.grid.count_max()) };
        }
        let from = self.bad.partition_point(|(bad, _)| *bad < row);
        self.bad[from..].iter().take_while(|(bad, _)| *bad == row).for_each(|&(_, x)| values[x] = BAD);
    }
}

impl Spot {
    /// Draws a spot at any position of a frame.
    fn random(grid: Grid, normal: &Normal, stream: &mut RandomStream) -> Self {
        Spot {
            x: stream.unit() * grid.width as f64,
            y: stream.unit() * grid.rows as f64,
            width: 0.8 + 0.8 * stream.unit(),
            peak: PEAK * (PEAK_SPREAD * normal.draw(stream)).exp(),
        }
    }

    /// Adds the spot's photons in this row.
    fn add(&self, row: usize, values: &mut [i32], stream: &mut RandomStream) {
        let reach = REACH * self.width;
        let up = row as f64 - self.y;
        if up.abs() > reach {
            return;
        }
        let first = place(self.x - reach);
        let end = (place(self.x + reach) + 1).min(values.len());
        for (x, value) in values[..end].iter_mut().enumerate().skip(first) {
            let across = x as f64 - self.x;
            let part = (-(across * across + up * up) / (2.0 * self.width * self.width)).exp();
            *value += Poisson::new(self.peak * part).draw(stream);
        }
    }
}

impl Scene for Diffraction {
    fn rows(&self, frame: u64, rows: Range<usize>, bytes: &mut [u8]) {
        let spots = self.spots(frame);
        let mut values = vec![0; self.grid.width];
        for (row, bytes) in rows.zip(bytes.chunks_exact_mut(self.grid.row_bytes())) {
            let mut stream = row_seed(self.seed, frame, row).stream();
            self.row(&spots, &mut stream, row, &mut values);
            self.grid.put(&values, bytes);
        }
    }
}

fn centre(grid: Grid) -> [f32; 2] {
    [grid.height as f32 / 2.0, grid.width as f32 / 2.0]
}

#[inline]
fn distance(x: f32, y: f32) -> usize {
    place(f64::from((x * x + y * y).sqrt()))
}

/// Returns background and rings by distance from the centre, relative to the background at the centre.
fn profile(grid: Grid) -> Vec<f64> {
    let [y, x] = centre(grid);
    let corner = distance(x, y) + 2;
    (0..corner).map(|radius| share(radius as f64 / corner as f64)).collect()
}

/// Returns the same for one distance, given relative to the corner's distance.
fn share(radius: f64) -> f64 {
    // The strongest rings of ice lie close together.
    let rings = [(0.33, 0.25), (0.35, 0.3), (0.37, 0.2), (0.48, 0.1), (0.62, 0.12), (0.65, 0.06)];
    let ring = |(at, height): (f64, f64)| height * (-0.5 * ((radius - at) / 0.004).powi(2)).exp();
    0.1 + 0.9 * (-5.0 * radius).exp() + rings.into_iter().map(ring).sum::<f64>()
}

/// Returns the mean of a profile over the pixels of a frame. Samples every eighth row and column.
fn mean_over_frame(grid: Grid, profile: &[f64]) -> f64 {
    let [centre_y, centre_x] = centre(grid);
    let rows = (0..grid.height).step_by(8);
    let values: Vec<f64> = rows
        .flat_map(|y| {
            let value = move |x: usize| profile[distance(x as f32 - centre_x, y as f32 - centre_y)];
            (0..grid.width).step_by(8).map(value)
        })
        .collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use nilometer_model::PixelType;

    use super::*;

    fn pixels(grid: Grid, photons: f64) -> Vec<i32> {
        let mut bytes = vec![0; grid.frame_bytes()];
        Diffraction::new(grid, Seed(3), photons).rows(7, 0..grid.rows, &mut bytes);
        bytes.chunks_exact(4).map(|pixel| i32::from_le_bytes(pixel.try_into().expect("four"))).collect()
    }

    #[test]
    fn detectors_have_their_modules() {
        for (shape, pixels) in
            [([2167, 2070], 8 * 1030 * 514), ([4362, 4148], 32 * 1028 * 512), ([2527, 2463], 60 * 487 * 195)]
        {
            let grid = Grid::new(&shape, PixelType::Int32);
            let modules = Modules::of(grid);
            let rows = (0..grid.height).filter(|&y| !modules.is_gap_row(y)).count();
            let columns = (0..grid.width).filter(|&x| !modules.is_gap_column(x)).count();
            assert_eq!(rows * columns, pixels, "{shape:?}");
        }
    }

    #[test]
    fn a_frame_has_its_photons_spots_gaps_and_bad_pixels() {
        let grid = Grid::new(&[2527, 2463], PixelType::Int32);
        let pixels = pixels(grid, 2.0);
        assert_eq!(pixels[195 * 2463], GAP, "below the first module");
        assert_eq!(pixels[487], GAP, "beside it");
        let bad = pixels.iter().filter(|&&pixel| pixel == BAD).count();
        assert!((80..=124).contains(&bad), "{bad} bad pixels");
        let mut live: Vec<i32> = pixels.into_iter().filter(|pixel| *pixel >= 0).collect();
        assert!(live.len() + bad >= 60 * 487 * 195 - 124);
        let bright = live.iter().filter(|&&pixel| pixel > 30).count();
        assert!((1000..20_000).contains(&bright), "{bright} pixels of spots");
        live.retain(|&pixel| pixel <= 30);
        let mean = live.iter().map(|&pixel| f64::from(pixel)).sum::<f64>() / live.len() as f64;
        assert!((1.9..2.1).contains(&mean), "{mean} photons a pixel");
    }

    #[test]
    fn rows_do_not_depend_on_what_is_made_with_them() {
        let grid = Grid::new(&[3, 300, 500], PixelType::Int32);
        let scene = Diffraction::new(grid, Seed(3), 0.5);
        let mut whole = vec![0; grid.frame_bytes()];
        scene.rows(1, 0..900, &mut whole);
        let mut part = vec![0; 10 * grid.row_bytes()];
        scene.rows(1, 420..430, &mut part);
        assert!(part == whole[420 * grid.row_bytes()..430 * grid.row_bytes()]);
        scene.rows(2, 420..430, &mut part);
        assert!(part != whole[420 * grid.row_bytes()..430 * grid.row_bytes()], "another frame is another");
    }
}
