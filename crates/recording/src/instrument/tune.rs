//! Searches the intensity at which a recipe's frames have the requested compressibility, before anything
//! starts.

use nilometer_model::{DataKind, Seed};

use super::{
    ContentError,
    pool::compressed_bytes,
    recipe,
    scene::Grid,
    stamp::{PAGE, Stamp},
};

/// Accepted relative error of the pool's ratio.
pub(super) const TOLERANCE: f64 = 0.1;
/// Relative error at which a search ends.
const NEAR: f64 = 0.01;
const STEPS: usize = 40;
/// Bytes of a frame that the search samples, in bands of rows spread over the frame.
const SAMPLE: usize = 4 << 20;
const BANDS: usize = 64;

/// Returns the intensity at which a frame's ratio matches the request.
pub(super) fn intensity(kind: &DataKind, grid: Grid, seed: Seed, wished: f64) -> Result<f64, ContentError> {
    let [mut low, mut high] = recipe::intensities(kind, grid);
    if let Some(at) = checked_reach(kind, grid, seed, wished)? {
        return Ok(at);
    }
    let ratio = |intensity| sampled(kind, grid, seed, intensity);
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

/// Checks that some intensity gives this ratio. Returns the least or the greatest intensity, if one of them does.
pub(super) fn checked_reach(
    kind: &DataKind,
    grid: Grid,
    seed: Seed,
    wished: f64,
) -> Result<Option<f64>, ContentError> {
    let [low, high] = recipe::intensities(kind, grid);
    // Frames compress less as the intensity grows.
    let [greatest, least] = [low, high].map(|intensity| sampled(kind, grid, seed, intensity));
    for (end, at) in [(greatest, low), (least, high)] {
        if is_near(end, wished, NEAR) {
            return Ok(Some(at));
        }
    }
    if !(least..greatest).contains(&wished) {
        return Err(ContentError::OutOfReach { kind: kind.to_string(), wished, least, greatest });
    }
    Ok(None)
}

/// Returns true if a ratio differs from the wished one by at most `share`.
pub(super) fn is_near(found: f64, wished: f64, share: f64) -> bool {
    (found / wished - 1.0).abs() <= share
}

/// Returns the ratio of a sample of frame 0.
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
    // Only one page of a frame holds the head, so number the sample's pages from 1.
    sample.chunks_mut(PAGE).zip(1..).for_each(|(page, index)| stamp.put(0, index, page));
    sample.len() as f64 / compressed_bytes(&sample, stamp.unit) as f64
}
