//! Which scene belongs to a kind of data, and between which intensities it makes sense.

use nilometer_model::{DataKind, PixelType, Seed};

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

/// The least and the greatest intensity: above, the counts of a pixel no longer fit into its type.
pub(super) fn intensities(kind: &DataKind, pixel: PixelType) -> [f64; 2] {
    let byte = pixel == PixelType::Uint8;
    match kind {
        DataKind::Diffraction => match pixel {
            PixelType::Uint8 => [1e-4, 20.0],
            PixelType::Uint16 => [1e-4, 5e3],
            PixelType::Int32 | PixelType::Uint32 => [1e-4, 1e5],
        },
        DataKind::Tomography => [1.0, if byte { 60.0 } else { 28_000.0 }],
        DataKind::LiquidArgon => [0.05, if byte { 20.0 } else { 100.0 }],
        DataKind::Incompressible | DataKind::Vlbi | DataKind::Files(_) => [1.0, 1.0],
    }
}
