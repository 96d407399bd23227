//! The built-in plans, instruments and facilities, each the text of its own file in the repository.
//!
//! The program looks up names here first. Callers that may do I/O read the files of users.

use std::path::Path;

use crate::{Instrument, packets::VlbiMode};

/// A file of the repository that is part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// The name that users write: the file's name without `.toml`.
    pub name: &'static str,
    /// The content of the file, in TOML.
    pub text: &'static str,
}

macro_rules! built_in {
    ($folder:literal: $($name:literal),*) => {
        [$(BuiltIn { name: $name, text: include_str!(concat!("../../../", $folder, "/", $name, ".toml")) }),*]
    };
}

/// The instruments of `instruments/`.
pub const INSTRUMENTS: [BuiltIn; 40] = built_in!(
    "instruments": "chime-fpga", "citius-840k", "codif", "counter", "dune-ethernet", "dune-readout-unit", "eht-64g", "eiger-4m", "eiger-500k", "eiger2-16m", "eiger2-4m-8bit", "em-movie", "excalibur-3m", "fila10g-1g", "fila10g-2g", "fila10g-4g", "fila10g-512m", "hera-snap", "jungfrau-4m", "jungfrau-4m-2khz", "jungfrau-9m", "lofar-rsp", "meerkat-digitiser", "meerkat-visibilities", "pco-4000", "pco-edge", "pco-edge-stack", "pilatus-2m", "pilatus-6m", "pilatus4-4m", "sequencer", "small-files", "stem-480g", "template", "timepix4", "vgos-16g", "vgos-32g", "vlbi-16g", "wa105-compressed", "wa105-raw"
);

/// The facilities of `facilities/`.
pub const FACILITIES: [BuiltIn; 2] = built_in!("facilities": "template", "wa105");

/// The name of the files that show how to write an instrument or facility, and are neither.
pub const TEMPLATE: &str = "template";

/// A name that is neither built in nor the path of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} `{name}`: {}, or the path of a .toml file", choices(what, name, known))]
pub struct UnknownName {
    /// The kind of thing looked up: a plan, an instrument.
    pub what: String,
    /// The name in the words of the user.
    pub name: String,
    /// The names that are built in.
    pub known: Vec<&'static str>,
}

/// Names less similar than this are no suggestions (Jaro-Winkler, 0 to 1).
const ALIKE_LEAST: f64 = 0.85;

/// The names to suggest: those similar to the unknown name, or all if none is.
fn choices(what: &str, name: &str, known: &[&'static str]) -> String {
    if let Ok(mode) = name.parse::<VlbiMode>() {
        return format!(
            "it is a data format: write `nilometer record --mode {mode}`, or the name of an instrument"
        );
    }
    let mut alike: Vec<(f64, &str)> =
        known.iter().map(|known| (strsim::jaro_winkler(&canonical(name), known), *known)).collect();
    alike.retain(|(alike, _)| *alike >= ALIKE_LEAST);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<&str> = alike.iter().take(SUGGESTIONS).map(|(_, name)| *name).collect();
    match names.split_last() {
        None => format!("write one of {}", known.join(", ")),
        Some((last, others)) => {
            let alike = if others.is_empty() { "" } else { " or " };
            let command = what.split(' ').next().unwrap_or_default();
            format!(
                "did you mean {}{alike}{last}? Write a name that `nilometer {command} list` shows",
                others.join(", ")
            )
        }
    }
}

/// The most names to suggest; more would be a list to read.
const SUGGESTIONS: usize = 3;

/// The instruments of the catalogue.
pub fn instruments() -> Vec<Instrument> {
    let real = INSTRUMENTS.into_iter().filter(|built_in| built_in.name != TEMPLATE);
    real.map(|BuiltIn { name, text }| Instrument::parse(text, name).expect("a test reads each of them"))
        .collect()
}

/// Returns true if an instrument of this name is built in.
pub fn has_instrument(name: &str) -> bool {
    INSTRUMENTS.iter().any(|known| known.name == canonical(name))
}

/// A name as the catalogue writes it: `EIGER2 16M` and `eiger2_16m` are `eiger2-16m`.
fn canonical(name: &str) -> String {
    let words: Vec<_> = name.split([' ', '_', '-']).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// Finds the file of this name, or `None` if the name is the path of a file.
///
/// A path contains a slash or ends in `.toml`. `what` names the kind of thing in the error.
///
/// # Errors
///
/// The name is neither built in nor a path.
pub fn look_up(name: &str, among: &[BuiltIn], what: &str) -> Result<Option<BuiltIn>, UnknownName> {
    if let Some(found) = among.iter().find(|known| known.name == canonical(name)) {
        return Ok(Some(*found));
    }
    if name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml") {
        return Ok(None);
    }
    let known = among.iter().map(|known| known.name).filter(|name| *name != TEMPLATE).collect();
    Err(UnknownName { what: what.into(), name: name.into(), known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facility;

    fn names_in(folder: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let entries =
            std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut names: Vec<String> =
            entries.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn instrument(name: &str) -> Result<Instrument, String> {
        let found = look_up(name, &INSTRUMENTS, "instrument").map_err(|error| error.to_string())?;
        let BuiltIn { name, text } = found.ok_or("a path")?;
        Instrument::parse(text, name).map_err(|error| error.to_string())
    }

    #[test]
    fn every_file_is_built_in_and_valid() {
        assert_eq!(names_in("instruments"), INSTRUMENTS.map(|instrument| instrument.name));
        for BuiltIn { name, .. } in INSTRUMENTS {
            assert_eq!(instrument(name).expect(name).name, name);
        }
        assert_eq!(instruments().len(), INSTRUMENTS.len() - 1, "all but the template");
        assert_eq!(names_in("facilities"), FACILITIES.map(|facility| facility.name));
        for BuiltIn { name, text } in FACILITIES {
            let facility = Facility::parse(text, name).expect(name);
            assert!(Facility::is_meant(text), "{name}");
            for member in facility.instruments {
                instrument(&member.name).expect("an instrument of the catalogue");
            }
        }
    }

    #[test]
    fn a_name_may_be_written_as_its_maker_does() {
        for name in ["eiger2-16m", "EIGER2 16M", "EIGER2-16M", "eiger2_16m", "Eiger2  16M"] {
            assert_eq!(
                instrument(name).map(|instrument| instrument.name),
                Ok("eiger2-16m".to_owned()),
                "{name}"
            );
            assert!(has_instrument(name), "{name}");
        }
        let error = look_up("Eiger2 17M", &INSTRUMENTS, "instrument").expect_err("unknown").to_string();
        assert!(error.contains("did you mean eiger2-16m"), "{error}");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = look_up("pilatos-2m", &INSTRUMENTS, "instrument").expect_err("unknown").to_string();
        assert!(error.contains("`pilatos-2m`") && error.contains("pilatus-6m"), "{error}");
        assert!(error.contains("did you mean pilatus-2m"), "{error}");
        let error = look_up("zebra", &INSTRUMENTS, "instrument").expect_err("unknown").to_string();
        assert!(!error.contains("did you mean"), "{error}");
        for path in ["./pilatos", "pilatos.toml", "/x/y"] {
            assert_eq!(look_up(path, &INSTRUMENTS, "instrument"), Ok(None), "{path}");
        }
    }
}
