//! The scene of each kind of data, and the range of its intensity.

use nilometer_model::{DataKind, Seed};

use super::{
    argon::Argon,
    diffraction::Diffraction,
    scene::{Grid, Scene},
    tomography::Tomography,
    vlbi::Vlbi,
};

/// Returns the scene of a kind of data. `None` if the kind has no recipe.
pub(super) fn scene(kind: &DataKind, grid: Grid, seed: Seed, intensity: f64) -> Option<Box<dyn Scene>> {
    Some(match kind {
        DataKind::Diffraction => Box::new(Diffraction::new(grid, seed, intensity)),
        DataKind::Tomography => Box::new(Tomography::new(grid, seed, intensity)),
        DataKind::LiquidArgon => Box::new(Argon::new(grid, seed, intensity)),
        DataKind::Vlbi => Box::new(Vlbi::new(grid, seed)),
        DataKind::Incompressible | DataKind::Files(_) => return None,
    })
}

/// Electrons that fill a pixel of a pco.edge.
const FULL_WELL: f64 = 28_000.0;

/// Returns the least and greatest intensity. At higher intensities a pixel's counts no longer fit into its
/// type.
pub(super) fn intensities(kind: &DataKind, grid: Grid) -> [f64; 2] {
    let count_max = f64::from(grid.count_max());
    match kind {
        // The centre has about four times as many photons, and counts spread around the mean.
        DataKind::Diffraction => [1e-4, count_max / 12.0],
        DataKind::Tomography => [1.0, (0.4 * (count_max - 110.0)).clamp(2.0, FULL_WELL)],
        DataKind::LiquidArgon => [0.05, (count_max / 40.0).clamp(1.0, 100.0)],
        DataKind::Incompressible | DataKind::Vlbi | DataKind::Files(_) => [1.0, 1.0],
    }
}
