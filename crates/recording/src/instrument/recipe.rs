//! Which scene belongs to a kind of data, and between which intensities it makes sense.

use nilometer_model::{DataKind, Seed};

use super::{
    argon::Argon,
    diffraction::Diffraction,
    scene::{Grid, Scene},
    tomography::Tomography,
    vlbi::Vlbi,
};

/// The scene of a kind of data; none where there is no recipe.
pub(super) fn scene(kind: &DataKind, grid: Grid, seed: Seed, intensity: f64) -> Option<Box<dyn Scene>> {
    Some(match kind {
        DataKind::Diffraction => Box::new(Diffraction::new(grid, seed, intensity)),
        DataKind::Tomography => Box::new(Tomography::new(grid, seed, intensity)),
        DataKind::LiquidArgon => Box::new(Argon::new(grid, seed, intensity)),
        DataKind::Vlbi => Box::new(Vlbi::new(grid, seed)),
        DataKind::Incompressible | DataKind::Files(_) => return None,
    })
}

/// The light that fills a pixel of a pco.edge, in electrons.
const FULL_WELL: f64 = 28_000.0;

/// The least and the greatest intensity: above, the counts of a pixel no longer fit into its type.
pub(super) fn intensities(kind: &DataKind, grid: Grid) -> [f64; 2] {
    let count_max = f64::from(grid.count_max());
    match kind {
        // There are some four times as many photons in the centre, and they are spread.
        DataKind::Diffraction => [1e-4, count_max / 12.0],
        DataKind::Tomography => [1.0, (0.4 * (count_max - 110.0)).clamp(2.0, FULL_WELL)],
        DataKind::LiquidArgon => [0.05, (count_max / 40.0).clamp(1.0, 100.0)],
        DataKind::Incompressible | DataKind::Vlbi | DataKind::Files(_) => [1.0, 1.0],
    }
}
