//! Finds the intensity at which a recipe's frames compress as wished, before anything starts.

use nilometer_model::{DataKind, Seed};

use super::{
    ContentError,
    pool::compressed_bytes,
    recipe,
    scene::Grid,
    stamp::{PAGE, Stamp},
};

/// A wish is met if the pool's ratio is off by at most this share.
pub(super) const TOLERANCE: f64 = 0.1;
/// A search ends when the ratio is as near as this.
const NEAR: f64 = 0.01;
const STEPS: usize = 40;
/// What is looked at of a frame: bands of rows all over it, of so many bytes together.
const SAMPLE: usize = 4 << 20;
const BANDS: usize = 64;

/// The intensity at which a frame's ratio is as wished.
pub(super) fn intensity(kind: &DataKind, grid: Grid, seed: Seed, wished: f64) -> Result<f64, ContentError> {
    let [mut low, mut high] = recipe::intensities(kind, grid);
    let ratio = |intensity| sampled(kind, grid, seed, intensity);
    // The more intensity, the less it compresses.
    let greatest = ratio(low);
    let least = ratio(high);
    for (end, at) in [(greatest, low), (least, high)] {
        if is_near(end, wished, NEAR) {
            return Ok(at);
        }
    }
    if !(least..greatest).contains(&wished) {
        return Err(ContentError::OutOfReach { kind: kind.to_string(), wished, least, greatest });
    }
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        let found = ratio(middle);
        if is_near(found, wished, NEAR) {
            return Ok(middle);
        }
        if found > wished { low = middle } else { high = middle }
    }
    Ok((low * high).sqrt())
}

/// Whether a ratio is the wished one but for this share.
pub(super) fn is_near(found: f64, wished: f64, share: f64) -> bool {
    (found / wished - 1.0).abs() <= share
}

/// The ratio of a sample of frame 0.
fn sampled(kind: &DataKind, grid: Grid, seed: Seed, intensity: f64) -> f64 {
    let scene = recipe::scene(kind, grid, seed, intensity).expect("only recipes have an intensity");
    let rows = (SAMPLE / BANDS).div_ceil(grid.row_bytes());
    let mut sample = Vec::new();
    if rows * BANDS >= grid.rows {
        sample.resize(grid.frame_bytes(), 0);
        scene.rows(0, 0..grid.rows, &mut sample);
    } else {
        for band in 0..BANDS {
            let first = (grid.rows - rows) * band / (BANDS - 1);
            let at = sample.len();
            sample.resize(at + rows * grid.row_bytes(), 0);
            scene.rows(0, first..first + rows, &mut sample[at..]);
        }
    }
    let stamp = Stamp::new(seed, grid.pixel);
    // The head is in one page of a frame only, so the sample's pages count from 1.
    sample.chunks_mut(PAGE).zip(1..).for_each(|(page, index)| stamp.put(0, index, page));
    sample.len() as f64 / compressed_bytes(&sample, stamp.unit) as f64
}
