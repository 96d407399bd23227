//! The image that an instrument's modules make up, and the notes about values that its file assumes.

use nilometer_hdf5::{
    nexus::ModuleImage,
    tree::{MovedPart, TurnedRows},
};
use nilometer_model::{Instrument, ModulePlaces};

/// A note for readers of a file, if the instrument's file says that it assumes its table `[cbf]`.
const ASSUMED_GEOMETRY: &str =
    "pixel size, sensor, distance, beam centre, wavelength and exposure: the instrument's file assumes them";
/// The same, if it assumes the places of modules.
const ASSUMED_PLACES: &str = "places of the modules in the image: the instrument's file assumes them";

/// The parts of an instrument's description that its file assumes, a line each.
pub(crate) fn assumed_of(instrument: &Instrument) -> Vec<String> {
    let is_assumed = |key: &str| instrument.assumed.iter().any(|assumed| assumed == key);
    let notes = [
        (!instrument.cbf.is_empty() && is_assumed("cbf"), ASSUMED_GEOMETRY),
        (instrument.modules.is_some() && is_assumed("modules"), ASSUMED_PLACES),
    ];
    notes.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note.to_owned()).collect()
}

/// The image that modules make up, for frames of this shape: modules, rows, columns. `None` for other shapes.
pub(crate) fn module_image(places: &ModulePlaces, shape: &[u64]) -> Option<ModuleImage> {
    let &[_, rows, columns] = shape else { return None };
    let module = [rows, columns];
    let parts = places.blocks(module).into_iter().map(|block| MovedPart {
        from: std::iter::once(block.modules).chain(block.from).collect(),
        to: block.to.into(),
        turned: block.upside_down.then_some(TurnedRows { pieces: block.pieces, step: block.step }),
    });
    Some(ModuleImage {
        size: places.image(module),
        origins: places.origins.clone(),
        module: places.module_size(module),
        parts: parts.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_in_a_journal_of_an_older_version_is_upright() {
        let part = MovedPart::upright(vec![0..1, 0..2], vec![0..1, 5..7]);
        let text = serde_json::to_string(&part).expect("it can be written");
        assert!(!text.contains("turned"), "{text}");
        assert_eq!(serde_json::from_str::<MovedPart>(&text).expect("the same"), part);
    }
}
