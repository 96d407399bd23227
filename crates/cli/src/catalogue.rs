//! What is built in: plans, instruments and facilities, each from its own file in the repository.

use std::path::Path;

use anyhow::{Result, bail};
use nilometer_model::Instrument;

use crate::small_file;

/// Name and text.
type Entry = (&'static str, &'static str);

macro_rules! built_in {
    ($folder:literal: $($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../", $folder, "/", $name, ".toml")))),*]
    };
}

/// The plans of `plans/`.
pub(crate) const PLANS: [Entry; 7] =
    built_in!("plans": "desy", "evlbi", "nus", "packets", "pandata", "quick", "wa105");

/// The instruments of `instruments/`.
pub(crate) const INSTRUMENTS: [Entry; 32] = built_in!(
    "instruments": "citius-840k", "dune-readout-unit", "eht-64g", "eiger-4m", "eiger2-16m", "eiger2-4m-8bit", "em-movie", "excalibur-3m", "fila10g-1g", "fila10g-2g", "fila10g-4g", "fila10g-512m", "jungfrau-4m", "jungfrau-4m-2khz", "jungfrau-9m", "meerkat-visibilities", "pco-4000", "pco-edge", "pco-edge-stack", "pilatus-2m", "pilatus-6m", "pilatus4-4m", "sequencer", "small-files", "stem-480g", "template", "timepix4", "vgos-16g", "vgos-32g", "vlbi-16g", "wa105-compressed", "wa105-raw"
);

/// It shows how a file is written, and is no instrument.
const TEMPLATE: &str = "template";

/// The instruments of the catalogue.
pub(crate) fn instruments() -> Vec<Instrument> {
    let real = INSTRUMENTS.into_iter().filter(|(name, _)| *name != TEMPLATE);
    real.map(|(name, text)| Instrument::parse(text, name).expect("a test reads each of them")).collect()
}

/// The facilities of `facilities/`.
pub(crate) const FACILITIES: [Entry; 1] = built_in!("facilities": "wa105");

/// Whether an instrument of this name is built in.
pub(crate) fn has_instrument(name: &str) -> bool {
    INSTRUMENTS.iter().any(|(known, _)| *known == name)
}

/// A built-in name, or a path with a slash or `.toml` in it; what messages call it, and its text.
pub(crate) fn find(name: &str, built_in: &[Entry], what: &str) -> Result<(String, String)> {
    if let Some((name, text)) = built_in.iter().find(|(known, _)| *known == name) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    if !name.contains('/') && Path::new(name).extension().is_none_or(|extension| extension != "toml") {
        let known: Vec<_> = built_in.iter().map(|(known, _)| *known).collect();
        bail!("no {what} `{name}`: write one of {}, or the path of a .toml file", known.join(", "));
    }
    Ok((name.to_owned(), small_file::read(Path::new(name), what)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let entries =
            std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut names: Vec<String> =
            entries.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_file_is_built_in_and_valid() {
        assert_eq!(names_in("plans"), PLANS.map(|(name, _)| name));
        for (name, text) in PLANS {
            crate::plan::read(text, name, 1.0).expect(name);
        }
        assert_eq!(names_in("instruments"), INSTRUMENTS.map(|(name, _)| name));
        for (name, text) in INSTRUMENTS {
            assert_eq!(nilometer_model::Instrument::parse(text, name).expect(name).name, name);
        }
        assert_eq!(instruments().len(), INSTRUMENTS.len() - 1, "all but the template");
        assert_eq!(names_in("facilities"), FACILITIES.map(|(name, _)| name));
        for (name, text) in FACILITIES {
            let facility = nilometer_model::Facility::parse(text, name).expect(name);
            for member in facility.instruments {
                find(&member.name, &INSTRUMENTS, "instrument").expect("an instrument of the catalogue");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = find("quik", &PLANS, "plan").expect_err("unknown").to_string();
        assert!(error.contains("`quik`") && error.contains("quick"), "{error}");
    }
}
